//! The same seed gives the same events, to the byte; a small scenario is kept as a golden log.
//!
//! `BLESS=1 cargo test -p segstream-proto --test protocol determinism` rewrites `golden/*.txt`. Look at the
//! difference before you commit it: it is a change of the protocol's behaviour.

use crate::pair::{Offer, Pair, Setup, ms};
use segstream_base::{Duration, Tolerance};
use segstream_wire::Contract;
use segstream_wire::contract::Order;

fn large(seed: u64) -> Pair {
    let contracts = [
        Contract::default(),
        Contract { tolerance: Tolerance::new(16, 3, 1).unwrap(), order: Order::AsAccepted, weight: 3, ..Contract::default() },
        Contract { lifetime: ms(80).into(), ..Contract::default() },
    ];
    let mut setup = Setup::new(&contracts).loss(0.1, 0.1).seed(seed);
    setup.log = true;
    (setup.forward.jitter, setup.forward.duplicate, setup.forward.late, setup.forward.late_by) = (ms(1), 0.02, 0.02, 7);
    let mut pair = setup.build();
    for stream in 0..3 {
        pair.offer(stream, 100, 12_000);
    }
    pair.run_over(Duration::from_secs(30));
    pair
}

#[test]
fn the_same_seed_gives_the_same_events() {
    let first = large(7);
    assert!(first.log.lines().count() > 3000);
    assert_eq!(first.log, large(7).log);
    assert_ne!(first.log, large(8).log, "the seed matters");
}

fn golden(name: &str, log: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/protocol/golden").join(name);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, log).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    for (number, (is, was)) in log.lines().zip(expected.lines()).enumerate() {
        assert_eq!(is, was, "{name}, line {}", number + 1);
    }
    assert_eq!(log.lines().count(), expected.lines().count(), "{name}: lines");
}

#[test]
fn a_reliable_and_a_tolerant_stream_behave_as_they_did() {
    let contracts = [Contract::default(), Contract { tolerance: Tolerance::new(8, 2, 1).unwrap(), ..Contract::default() }];
    let mut setup = Setup::new(&contracts);
    setup.log = true;
    // One loss of each stream, one repair, one report.
    setup.forward.lost.extend([3, 14, 40]);
    setup.back.lost.insert(4);
    let mut pair = setup.build();
    pair.offer(0, 2, 8 * 1024);
    pair.offer(1, 2, 8 * 1024);
    pair.run_over(Duration::from_secs(5));
    golden("two_streams.txt", &pair.log);
}

#[test]
fn an_open_segment_that_expires_behaves_as_it_did() {
    let mut setup = Setup::new(&[Contract { lifetime: ms(150).into(), window_units: 8, ..Contract::default() }]);
    setup.log = true;
    setup.forward.lost.extend([4, 9]);
    let mut pair = setup.build();
    pair.offer_one(0, Offer::Open(None));
    for _ in 0..3 {
        pair.offer_one(0, Offer::Append(2048, false));
        pair.run_for(ms(60));
    }
    pair.offer_one(0, Offer::Append(10, true));
    pair.offer(0, 2, 4096);
    pair.run_over(Duration::from_secs(5));
    golden("open_segment.txt", &pair.log);
}
