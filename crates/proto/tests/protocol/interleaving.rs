//! What interleaving is for: bursts on the path become isolated holes, which the tolerance excuses.

use crate::pair::{Pair, Setup, ms};
use segstream_base::random::Seed;
use segstream_base::{Bandwidth, Bytes, Instant, Tolerance};
use segstream_path::{Fate, Path, PathConfig};
use segstream_proto::rate::Rate;
use segstream_wire::Contract;
use segstream_wire::contract::InterleaveChoice;
use std::collections::BTreeSet;

const SEGMENTS: u64 = 500;
const UNITS: u64 = 256;

/// The departures that a bursty path loses.
fn lost() -> BTreeSet<u64> {
    let config = PathConfig { loss: "gilbert:rate=1%,burst=8".parse().unwrap(), ..PathConfig::default() };
    let mut path = Path::new(&config, Seed(1), "forward").unwrap();
    let all = 0..SEGMENTS * UNITS * 2;
    all.filter(|&number| path.send(Instant::from_nanos(number), Bytes::new(1100)).fate == Fate::Lost).collect()
}

/// How many segments had any unit sent again, and the median delay from submission to acceptance in nanoseconds.
fn run(interleave: InterleaveChoice) -> (u64, u64) {
    let contract = Contract { tolerance: Tolerance::new(256, 32, 3).unwrap(), interleave, ..Contract::default() };
    let mut setup = Setup::new(&[contract]);
    setup.rate = Rate::smooth(Bandwidth::from_megabits_per_second(100));
    setup.forward.lost = lost();
    let mut pair: Pair = setup.build();
    let mut starts = Vec::new();
    for _ in 0..SEGMENTS {
        starts.push(pair.now);
        pair.offer(0, 1, UNITS * 1024);
        let next = pair.now + ms(25);
        pair.run_to(next);
    }
    let end = pair.now + ms(2000);
    pair.run_to(end);
    assert_eq!(pair.judged.len() as u64, SEGMENTS);
    let mut delays: Vec<u64> = pair.judged.iter().map(|&(_, segment, at)| at.since(starts[segment.0 as usize]).as_nanos()).collect();
    delays.sort_unstable();
    (pair.sender.half.counters.segments_repaired, delays[delays.len() / 2])
}

#[test]
fn under_bursts_interleaving_cuts_the_segments_that_need_repair_tenfold_at_the_same_delay() {
    let (plain, plain_delay) = run(InterleaveChoice::Off);
    let (interleaved, interleaved_delay) = run(InterleaveChoice::Auto);
    eprintln!("{SEGMENTS} segments: {plain} repaired in order, {interleaved} interleaved; {plain_delay} and {interleaved_delay} ns");
    assert!(plain * 100 >= SEGMENTS * 15, "about one in five needs repair without interleaving, not {plain} of {SEGMENTS}");
    assert!(interleaved * 10 <= plain, "{interleaved} against {plain}");
    assert!(interleaved_delay.abs_diff(plain_delay) < 1_000_000, "{interleaved_delay} against {plain_delay} ns");
}
