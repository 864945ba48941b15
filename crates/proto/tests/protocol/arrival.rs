//! What an ARRIVAL tells: the newest exchange, and everything that had arrived by then.

use crate::receiver_config::receiver_config;
use segstream_base::{Duration, ExchangeNumber, Instant, ShipmentNumber};
use segstream_proto::receiver::{ReceiverConfig, RecvHalf};
use segstream_wire::report::Arrived;
use segstream_wire::{ReportFrame, State};

fn half() -> RecvHalf {
    let config = ReceiverConfig { reorder_adapting: true, ..receiver_config() };
    RecvHalf::new(config, Instant::ZERO)
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// A datagram of 100 bytes arrives, and is a state if `sync` is given.
fn arrive(half: &mut RecvHalf, millis: u64, number: u64, state: Option<(u64, bool)>) {
    assert!(half.on_shipment(at(millis), ShipmentNumber(number), 100));
    if let Some((sync, exchange)) = state {
        half.on_state(at(millis + 1), ShipmentNumber(number), &State { sync: ExchangeNumber(sync), exchange, ..State::default() });
    }
    half.after_shipment(at(millis + 1));
}

/// What the reports up to `millis` tell of arrivals.
fn told(half: &mut RecvHalf, millis: u64) -> Vec<Arrived> {
    let mut told = Vec::new();
    while let Some(report) = half.poll_report(at(millis)) {
        told.extend(report.frames.iter().filter_map(|frame| match frame {
            ReportFrame::Arrival(arrived) => Some(*arrived),
            _ => None,
        }));
    }
    told
}

#[test]
fn the_newest_exchange_is_told_once_with_all_that_came_before_it() {
    let mut half = half();
    arrive(&mut half, 0, 0, Some((0, true)));
    arrive(&mut half, 5, 1, None);
    half.note_congestion_mark();
    arrive(&mut half, 6, 2, None);
    // 3 and 4 are lost, and declared lost three numbers later.
    arrive(&mut half, 10, 5, None);
    arrive(&mut half, 20, 9, Some((3, true)));
    arrive(&mut half, 21, 10, None);
    let expected = Arrived { sync: ExchangeNumber(3), at: 20_000_000, bytes: 5 * 128, shipments: 5, lost: 2, marked: 1 };
    assert_eq!(told(&mut half, 22), [expected], "one report for both, of the newer");
    assert_eq!(told(&mut half, 2000), [], "it is told once");
}

#[test]
fn a_state_that_does_not_ask_or_is_older_is_not_told() {
    let mut half = half();
    arrive(&mut half, 0, 5, Some((4, false)));
    arrive(&mut half, 1, 2, Some((1, true)));
    assert_eq!(told(&mut half, 1000), []);
}

#[test]
fn a_mark_of_a_duplicate_does_not_count() {
    let mut half = half();
    arrive(&mut half, 0, 0, None);
    half.note_congestion_mark();
    assert!(!half.on_shipment(at(1), ShipmentNumber(0), 100));
    arrive(&mut half, 2, 1, Some((0, true)));
    assert_eq!(told(&mut half, 10).first().map(|arrived| (arrived.marked, arrived.shipments)), Some((0, 2)));
}
