//! Sets of ranges compared with sets of numbers, for all sequences of four changes of a small domain.

use segstream_blocks::ranges::RangeSet;

/// Numbers of the domain.
const NUMBERS: u64 = 5;

fn mask(range: &std::ops::Range<u64>) -> u32 {
    range.clone().fold(0, |bits, number| bits | 1 << number)
}

#[test]
fn every_sequence_of_four_insertions_and_removals_leaves_the_numbers_that_it_should() {
    let ranges: Vec<_> = (0..NUMBERS).flat_map(|start| (start..=NUMBERS).map(move |end| start..end)).collect();
    let changes: Vec<_> = ranges.iter().flat_map(|range| [(true, range.clone()), (false, range.clone())]).collect();
    let mut sets = vec![(RangeSet::new(), 0_u32)];
    for depth in 0..4 {
        let mut next = std::collections::BTreeMap::new();
        for ((set, bits), (inserts, range)) in sets.iter().flat_map(|set| changes.iter().map(move |change| (set, change))) {
            let (mut set, mask) = (set.clone(), mask(range));
            let (changed, after) =
                if *inserts { (set.insert(range.clone()), bits | mask) } else { (set.remove(range.clone()), bits & !mask) };
            assert_eq!(changed, u64::from((bits ^ after).count_ones()), "{bits:b} {inserts} {range:?}");
            check(&set, after, &ranges);
            // Invariant: a set has one form, so that one of those with the same numbers stands for all.
            let known = next.entry(after).or_insert_with(|| set.clone());
            assert_eq!(*known, set, "{after:b} after {depth} changes");
        }
        sets = next.into_iter().map(|(bits, set)| (set, bits)).collect();
    }
    assert_eq!(sets.len(), 1 << NUMBERS, "every set of numbers was reached");
}

fn check(set: &RangeSet, bits: u32, ranges: &[std::ops::Range<u64>]) {
    for number in 0..=NUMBERS {
        assert_eq!(set.contains(number), bits >> number & 1 == 1, "{number} in {bits:b}");
    }
    assert_eq!(set.len(), u64::from(bits.count_ones()));
    let held: Vec<_> = set.iter().collect();
    assert!(held.iter().all(|range| range.start < range.end) && held.windows(2).all(|pair| pair[0].end < pair[1].start), "{held:?}");
    for range in ranges {
        let gaps = set.gaps(range.clone()).fold(0, |gaps, gap| gaps | mask(&gap));
        assert_eq!(gaps, !bits & mask(range), "gaps of {range:?} in {bits:b}");
        assert_eq!(set.first_gap(range.clone()), set.gaps(range.clone()).next());
    }
}
