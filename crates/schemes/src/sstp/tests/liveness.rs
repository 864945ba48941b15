//! Whatever finite set of packets is lost, late or repeated: everything is delivered as promised.

use super::driver::{Fate, HALF_TRIP, Net, Way};
use super::*;
use proptest::prelude::*;
use segstream_base::random::Seed;
use segstream_base::{Duration, UnitIndex};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

fn config() -> impl Strategy<Value = Config> {
    let ways = prop::sample::select(&Acknowledgment::ALL);
    let tolerance = prop::sample::select(vec![(8, 0, 0), (8, 1, 1), (8, 3, 2), (8, 8, 8)]);
    let accounting = prop::sample::select(vec![Accounting::StrictAll, Accounting::StrictBurst]);
    (1u32..5, 1u32..5, ways, tolerance, accounting, prop::sample::select(vec![0u32, 3])).prop_map(
        |(window, buffer, acknowledgment, (w, e, b), accounting, reorder)| Config {
            window,
            buffer: buffer.min(window),
            acknowledgment,
            tolerance: Tolerance::new(w, e, b).unwrap(),
            accounting,
            reorder,
            ..small()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_finite_loss_of_data_and_control_ends_in_full_delivery(
        config in config(),
        seed: u64,
        loss in 0.0f64..0.6,
        late in 0.0f64..0.3,
        lossy_ms in 0u64..1500,
        segments in 1u64..14,
        last_bytes in 0u64..=800,
    ) {
        let mut random = Seed(seed).stream("fate");
        let arrived: Rc<RefCell<BTreeSet<(u32, u16, Instant)>>> = Rc::default();
        let log = Rc::clone(&arrived);
        let trip = HALF_TRIP;
        let time = config.packet_time();
        let fate = move |now: Instant, way: &Way| -> Fate {
            if now < Instant::ZERO + Duration::from_millis(lossy_ms) && random.chance(loss) {
                return None;
            }
            let extra = if config.reorder > 0 && random.chance(late) { time * 3 } else { Duration::ZERO };
            if let Way::There(Forward::Data(data)) = way {
                // A little early, without the packet's own time: what is logged later than the delivery was
                // surely a hole then.
                log.borrow_mut().insert((data.segment, data.packet, now + trip + extra));
            }
            Some(extra)
        };
        let mut net = Net::new(config, segments, fate).last_bytes(last_bytes);
        net.run(Duration::from_secs(600));
        let outcome = &net.outcome;
        prop_assert_eq!(outcome.ended, Some(segments));
        prop_assert_eq!(outcome.delivered.len() as u64, segments);
        prop_assert_eq!(outcome.judged.len() as u64, segments);
        let last_units = last_bytes.div_ceil(100).max(1) as u32;
        for (segment, (at, units, holes)) in &outcome.delivered {
            let true_units = if *segment + 1 == segments { last_units } else { 8 };
            prop_assert_eq!(*units, true_units, "segment {}", segment);
            let here: BTreeSet<u32> = arrived.borrow().iter().filter(|a| u64::from(a.0) == *segment && a.2 <= *at).map(|a| u32::from(a.1)).collect();
            let missing: Vec<u32> = (0..*units).filter(|unit| !here.contains(unit)).collect();
            prop_assert!(*holes <= config.tolerance.errors().min(*units));
            prop_assert!(*holes as usize >= missing.len(), "{} holes told, {:?} missing", holes, missing);
            prop_assert!(config.tolerance.clipped_to(*units).allows(missing.iter().copied().map(UnitIndex), 0), "segment {segment}: {missing:?}");
        }
    }

    #[test]
    fn ideal_feedback_delivers_under_any_loss_of_data(config in config(), seed: u64, loss in 0.0f64..0.7, segments in 1u64..14, last_bytes in 0u64..=800) {
        let config = Config { feedback: FeedbackMode::Ideal, ..config };
        let mut random = Seed(seed).stream("fate");
        let fate = move |_, way: &Way| -> Fate {
            let lost = matches!(way, Way::There(Forward::Data(_))) && random.chance(loss);
            (!lost).then_some(Duration::ZERO)
        };
        let mut net = Net::new(config, segments, fate).last_bytes(last_bytes);
        net.run(Duration::from_secs(600));
        prop_assert_eq!((net.outcome.ended, net.outcome.judged.len() as u64), (Some(segments), segments));
        let last = net.outcome.delivered[&(segments - 1)];
        prop_assert_eq!(u64::from(last.1), last_bytes.div_ceil(100).max(1));
    }
}
