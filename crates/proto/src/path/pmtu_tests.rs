//! The search alone, over a path that is one number: the largest datagram it carries.

use super::*;
use segstream_base::ShipmentNumber;

const RTT: Duration = Duration::from_millis(20);

/// A search, a path, and the time that has passed.
struct Walk {
    search: PmtuSearch,
    carries: usize,
    now: Instant,
    number: ShipmentNumber,
    /// The sizes of all probes.
    probes: Vec<usize>,
}

fn bounds(rate_cap: usize) -> Bounds {
    Bounds { rate_cap, rate: None, round_trip: RTT }
}

impl Walk {
    fn new(below: u64, most: usize, carries: usize) -> Self {
        let mut search = PmtuSearch::new(below);
        search.limit(most);
        Self { search, carries, now: Instant::ZERO + Duration::from_secs(5), number: ShipmentNumber(0), probes: Vec::new() }
    }

    /// A round trip in which data flows: whatever is carried is answered, and the rest is lost. Whether a probe left.
    fn step(&mut self, rate_cap: usize) -> bool {
        let size_due = self.search.next_probe(self.now, &bounds(rate_cap));
        if let Some(size) = size_due {
            self.number += 1;
            let token = self.search.on_sent(self.now, size, self.number, || 1000 + self.number.0);
            self.probes.push(size);
            self.now += RTT;
            if size <= self.carries {
                assert_eq!(self.search.on_response(self.now, token), Some(self.number));
            }
        } else {
            self.now += RTT;
        }
        self.number += 4;
        self.search.on_echo(self.now, self.number, 3);
        size_due.is_some()
    }

    /// Until `span` has passed.
    fn run(&mut self, span: Duration, rate_cap: usize) -> usize {
        let end = self.now + span;
        while self.now < end {
            self.step(rate_cap);
        }
        self.search.size()
    }
}

#[test]
fn the_search_finds_what_the_path_carries() {
    // Headers around, what the peer takes, what the path carries; what is found, and probes lost by then.
    let cases = [
        (28, 65_507, usize::MAX, 65_507, 0),
        (48, 65_507, usize::MAX, 65_487, 0),
        (28, 65_507, 8_972, 8_972, 6),
        (28, 65_507, 1_472, 1_472, 9),
        (48, 65_507, 1_452, 1_452, 9),
        (28, 4_000, 65_507, 4_000, 0),
        (28, 1_200, 65_507, 1_200, 0),
    ];
    for (below, most, carries, found, lost) in cases {
        let mut walk = Walk::new(below, most, carries);
        assert_eq!(walk.run(Duration::from_secs(20), usize::MAX), found, "a path of {carries}");
        let too_large = walk.probes.iter().filter(|&&size| size > carries).count();
        assert_eq!(too_large, lost, "a path of {carries}: {:?}", walk.probes);
    }
}

#[test]
fn sizes_that_no_link_has_are_found_to_a_few_bytes() {
    for carries in [1_200, 1_207, 1_252, 1_372, 1_464, 1_500, 2_016, 4_324, 9_188, 20_000, 65_000] {
        let mut walk = Walk::new(28, 65_507, carries);
        let found = walk.run(Duration::from_secs(20), usize::MAX);
        assert!((carries - GRANULARITY..=carries).contains(&found) || found == 1_200 && carries < 1_209, "{found} of {carries}");
        let before = walk.probes.iter().rposition(|&size| size > carries).unwrap();
        assert!(walk.probes[before + 1..].iter().all(|&size| size == found), "the search does not end");
    }
}

#[test]
fn a_size_that_was_lost_once_or_twice_is_asked_again() {
    let mut walk = Walk::new(28, 65_507, 1_472);
    walk.carries = 0;
    assert!(walk.step(1_500) && walk.step(1_500));
    walk.carries = 1_472;
    walk.step(1_500);
    assert_eq!((walk.search.size(), walk.probes.as_slice()), (1_472, [1_472; 3].as_slice()));
}

#[test]
fn one_probe_is_on_its_way_at_a_time() {
    let mut search = PmtuSearch::new(28);
    search.limit(65_507);
    let now = Instant::ZERO + RTT;
    let size = search.next_probe(now, &bounds(usize::MAX)).unwrap();
    search.on_sent(now, size, ShipmentNumber(7), || 1);
    assert_eq!(search.next_probe(now + RTT, &bounds(usize::MAX)), None);
    // With R = 3 shipment 7 is lost once 11 has arrived.
    search.on_echo(now + RTT, ShipmentNumber(10), 3);
    assert_eq!(search.next_probe(now + RTT, &bounds(usize::MAX)), None);
    search.on_echo(now + RTT, ShipmentNumber(11), 3);
    assert_eq!(search.next_probe(now + RTT, &bounds(usize::MAX)), Some(size));
}

#[test]
fn an_answer_that_comes_late_counts() {
    let mut search = PmtuSearch::new(28);
    search.limit(65_507);
    let now = Instant::ZERO + RTT;
    let token = search.on_sent(now, 1_472, ShipmentNumber(7), || 77);
    search.on_echo(now + RTT, ShipmentNumber(11), 3);
    assert_eq!(search.on_sent(now + RTT, 1_472, ShipmentNumber(12), || 78), token, "all tries have one token");
    assert_eq!(search.on_response(now + RTT, 78), None);
    assert_eq!((search.size(), search.on_response(now + RTT, token), search.size()), (1_200, Some(ShipmentNumber(12)), 1_472));
    assert_eq!(search.on_response(now + RTT, token), None, "an answer counts once");
}

#[test]
fn a_low_rate_asks_for_small_sizes_only_and_a_higher_one_goes_on() {
    let mut walk = Walk::new(28, 65_507, 65_507);
    assert_eq!(walk.run(Duration::from_secs(5), 1_400), 1_200);
    assert_eq!(walk.probes, []);
    assert_eq!(walk.run(Duration::from_secs(5), 5_000), 1_472);
    assert_eq!(walk.run(Duration::from_secs(5), 9_000), 8_972);
    assert_eq!(walk.run(Duration::from_secs(5), 70_000), 65_507);
    assert!(walk.probes.is_sorted());
}

#[test]
fn a_path_that_narrows_is_found_out_and_searched_below() {
    let mut walk = Walk::new(28, 65_507, 65_507);
    assert_eq!(walk.run(Duration::from_secs(5), usize::MAX), 65_507);
    walk.carries = 1_472;
    walk.search.on_loss();
    let before = walk.now;
    while walk.search.size() == 65_507 {
        walk.step(usize::MAX);
    }
    assert_eq!(walk.search.size(), 1_200);
    assert!(walk.now.since(before) <= CONFIRMATION_SUSPECT + RTT * 5, "{}", walk.now.since(before));
    assert_eq!(walk.run(Duration::from_secs(5), usize::MAX), 1_472);
    // What has failed is left alone for 600 s; then all of it is asked again.
    walk.carries = 65_507;
    assert_eq!(walk.run(Duration::from_secs(580), usize::MAX), 1_472);
    assert_eq!(walk.run(Duration::from_secs(30), usize::MAX), 65_507);
}

#[test]
fn the_size_in_use_is_confirmed_sooner_when_something_was_lost_and_takes_little_of_the_rate() {
    // When the size found first is confirmed: in milliseconds, at a rate if there is one, and after a loss.
    let due = |rate: Option<u64>, lost: bool| {
        let rate = rate.map(Bandwidth::from_megabits_per_second);
        let mut walk = Walk::new(28, 1_472, 1_472);
        while walk.search.size() < 1_472 {
            walk.step(usize::MAX);
        }
        if lost {
            walk.search.on_loss();
        }
        let found = walk.now;
        let bounds = Bounds { rate, ..bounds(usize::MAX) };
        (0..5_000).find(|&millis| walk.search.next_probe(found + Duration::from_millis(millis), &bounds) == Some(1_472))
    };
    assert_eq!([due(None, false), due(None, true)], [Some(1_000), Some(100)]);
    // 1500 bytes take 0.12 ms and 12 ms, 128 times as long is 15 and 1536.
    assert_eq!([due(Some(100), true), due(Some(1), true), due(Some(1), false)], [Some(100), Some(1_536), Some(1_536)]);
}

#[test]
fn silence_falls_back_and_says_nothing_of_sizes() {
    let mut walk = Walk::new(28, 65_507, 65_507);
    assert_eq!(walk.run(Duration::from_secs(5), usize::MAX), 65_507);
    let silence = walk.now + PROBE_TIMER * 5;
    while walk.now < silence {
        if let Some(size) = walk.search.next_probe(walk.now, &bounds(usize::MAX)) {
            walk.number += 1;
            walk.search.on_sent(walk.now, size, walk.number, || walk.number.0);
        }
        walk.now += RTT;
    }
    assert_eq!((walk.search.size(), walk.search.failed), (1_200, None));
    assert_eq!(walk.run(PROBE_TIMER + RTT * 4, usize::MAX), 65_507);
}

#[test]
fn another_path_is_searched_anew() {
    let mut walk = Walk::new(28, 4_000, 65_507);
    assert_eq!(walk.run(Duration::from_secs(5), usize::MAX), 4_000);
    walk.search.restart();
    assert_eq!(walk.search.size(), 1_200);
    assert_eq!(walk.run(Duration::from_secs(5), usize::MAX), 4_000);
}
