//! Random operations on a pair, then peace: every transfer ends, and the oracle never objects.
//!
//! `PROPTEST_CASES` sets the number of cases, 256 by default. Failures shrink and are kept in
//! `proptest-regressions/operations.txt`.

use crate::pair::{Offer, Pair, Setup, ms};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use segstream_base::halves::{Reconfigure, Sender};
use segstream_base::{Bandwidth, Duration, StreamId, Tolerance};
use segstream_proto::rate::Rate;
use segstream_wire::Contract;
use segstream_wire::contract::{InterleaveChoice, Order};

const UNIT_BYTES: u32 = 500;

#[derive(Clone, Debug)]
enum Op {
    Whole(u8, u32, Option<Tolerance>),
    Open(u8),
    Append(u8, u32, bool),
    Advance(u32),
    Loss(u8, u8),
    Drop { back: bool, count: u8 },
    Duplicate { back: bool, count: u8 },
    Late { back: bool, count: u8, by: u8 },
    Take(bool),
    Class(u8),
    Rate(u32),
    Auto(u32, u32),
}

fn triplet() -> impl Strategy<Value = Tolerance> {
    prop_oneof![
        2 => Just((1000, 0, 0)),
        1 => Just((1, 1, 1)),
        4 => (1u32..20).prop_flat_map(|w| (Just(w), 0..=w.min(4), 0..=w.min(3))),
    ]
    .prop_map(|(w, e, b)| Tolerance::new(w, e, b).unwrap())
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (any::<u8>(), 0u32..15_000, prop::option::weighted(0.2, triplet())).prop_map(|(s, b, t)| Op::Whole(s, b, t)),
        1 => any::<u8>().prop_map(Op::Open),
        4 => (any::<u8>(), 0u32..4000, prop::bool::weighted(0.3)).prop_map(|(s, b, l)| Op::Append(s, b, l)),
        6 => (0u32..120_000).prop_map(Op::Advance),
        2 => (0u8..50, 0u8..50).prop_map(|(f, b)| Op::Loss(f, b)),
        2 => (any::<bool>(), 1u8..20).prop_map(|(back, count)| Op::Drop { back, count }),
        1 => (any::<bool>(), 1u8..5).prop_map(|(back, count)| Op::Duplicate { back, count }),
        2 => (any::<bool>(), 1u8..5, 1u8..12).prop_map(|(back, count, by)| Op::Late { back, count, by }),
        2 => any::<bool>().prop_map(Op::Take),
        1 => (0u8..8).prop_map(Op::Class),
        1 => (1u32..500).prop_map(Op::Rate),
        1 => (1u32..50, 0u32..500).prop_map(|(floor, more)| Op::Auto(floor, floor + more)),
    ]
}

fn contract() -> impl Strategy<Value = Contract> {
    let shape = (triplet(), 0u32..3, any::<bool>(), prop_oneof![3 => Just(0u64), 1 => 30u64..400]);
    let room = (prop_oneof![1u32..4, 5u32..40, Just(1000)], prop_oneof![1u32..10, 20u32..60, Just(2000)], 0u8..4, 1u8..5);
    (shape, room).prop_map(|((tolerance, importance, in_order, lifetime), (segments, units, interleave, weight))| Contract {
        unit_bytes: UNIT_BYTES,
        tolerance,
        importance,
        order: if in_order { Order::InOrder } else { Order::AsAccepted },
        lifetime: ms(lifetime).into(),
        interleave: match interleave {
            0 => InterleaveChoice::Off,
            1 => InterleaveChoice::Depth(6),
            _ => InterleaveChoice::Auto,
        },
        window_units: units,
        window_segments: segments,
        weight,
        label: String::new(),
    })
}

/// Appends are only offered while a segment is open, and submissions while none is.
fn apply(pair: &mut Pair, open: &mut [bool], op: &Op) {
    let stream = |number: u8| u32::from(number) % open.len() as u32;
    match *op {
        Op::Whole(number, bytes, own) => {
            let id = stream(number);
            if !open[id as usize] {
                pair.offer_one(id, Offer::Whole(u64::from(bytes).min(window_bytes(pair, id)), own));
            }
        }
        Op::Open(number) => {
            let id = stream(number);
            if !core::mem::replace(&mut open[id as usize], true) {
                pair.offer_one(id, Offer::Open(None));
            }
        }
        Op::Append(number, bytes, last) => {
            let id = stream(number);
            if open[id as usize] {
                pair.offer_one(id, Offer::Append(u64::from(bytes), last));
                open[id as usize] = !last;
            }
        }
        Op::Advance(micros) => pair.run_for(Duration::from_micros(u64::from(micros))),
        Op::Loss(forward, back) => {
            pair.forward.habits.loss = f64::from(forward) / 100.0;
            pair.back.habits.loss = f64::from(back) / 100.0;
        }
        Op::Drop { back: false, count } => pair.forward.drop_next = u32::from(count),
        Op::Drop { back: true, count } => pair.back.drop_next = u32::from(count),
        Op::Duplicate { back: false, count } => pair.forward.duplicate_next = u32::from(count),
        Op::Duplicate { back: true, count } => pair.back.duplicate_next = u32::from(count),
        Op::Late { back: false, count, by } => pair.forward.late_next = (u32::from(count), u32::from(by)),
        Op::Late { back: true, count, by } => pair.back.late_next = (u32::from(count), u32::from(by)),
        Op::Take(taking) => {
            pair.taking = taking;
            if taking {
                pair.take();
            }
        }
        // An automatic rate refuses a class without rate control, and the other way round.
        Op::Class(class) => _ = pair.try_class(class),
        Op::Auto(floor, peak) => {
            let of = |hundreds| Bandwidth::from_bits_per_second(u64::from(hundreds) * 100_000);
            let _ = pair.sender.half.set_rate(pair.now, Rate::between(of(floor), of(peak)));
        }
        Op::Rate(hundreds) => {
            let rate = Bandwidth::from_bits_per_second(u64::from(hundreds) * 100_000);
            pair.sender.reconfigure(pair.now, Reconfigure::Rate(rate)).unwrap();
        }
    }
}

fn window_bytes(pair: &Pair, id: u32) -> u64 {
    pair.sender.half.contract(StreamId(id)).map_or(0, |contract| u64::from(contract.window_units) * u64::from(contract.unit_bytes))
}

fn run(contracts: &[Contract], seed: u64, check_mode: bool, ops: &[Op]) -> Pair {
    let mut setup = Setup::new(contracts).seed(seed);
    if seed.is_multiple_of(2) {
        setup.rate = Rate::AUTO;
    }
    setup.check_mode = check_mode;
    setup.log = true;
    let mut pair = setup.build();
    let mut open = vec![false; contracts.len()];
    for op in ops {
        apply(&mut pair, &mut open, op);
    }
    for (id, open) in open.into_iter().enumerate() {
        if open {
            pair.offer_one(id as u32, Offer::Append(0, true));
        }
    }
    (pair.forward.habits.loss, pair.back.habits.loss) = (0.1, 0.1);
    pair.taking = true;
    pair.take();
    pair.run_over(Duration::from_secs(60));
    pair
}

fn config() -> ProptestConfig {
    // The number of cases is read from PROPTEST_CASES by the default.
    let kept = FileFailurePersistence::Direct("proptest-regressions/operations.txt");
    ProptestConfig { max_shrink_iters: 20_000, failure_persistence: Some(Box::new(kept)), ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_sequence_of_operations_ends_well(
        contracts in prop::collection::vec(contract(), 1..4),
        seed in any::<u64>(),
        ops in prop::collection::vec(op(), 1..60),
    ) {
        run(&contracts, seed, false, &ops);
    }

    #[test]
    fn every_sequence_of_operations_is_the_same_through_bytes(
        contracts in prop::collection::vec(contract(), 1..3),
        seed in any::<u64>(),
        ops in prop::collection::vec(op(), 1..30),
    ) {
        let typed = run(&contracts, seed, false, &ops);
        let bytes = run(&contracts, seed, true, &ops);
        prop_assert_eq!(typed.log, bytes.log);
    }
}
