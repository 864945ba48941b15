//! A change of class is taken as it is asked for, or not at all.

use crate::receiver_config::receiver_config;
use segstream_base::{Bandwidth, Duration, Instant, ShipmentNumber};
use segstream_proto::receiver::{ReceiverConfig, RecvHalf};
use segstream_wire::{Class, ReportFrame, State, StateFrame};

fn class(number: u8) -> Class {
    Class::new(number).unwrap()
}

/// What a receiver of class `present`, which allows `most`, echoes when `asked` comes with `rate`.
fn echoed(present: u8, most: u8, asked: u8, rate: Bandwidth) -> u8 {
    let config = ReceiverConfig { class: class(present), class_max: class(most), ..receiver_config() };
    let mut half = RecvHalf::new(config, Instant::ZERO);
    let frame = StateFrame::Reclass { change: 1, class: class(asked), rate };
    assert!(half.on_shipment(Instant::ZERO, ShipmentNumber(0), 100));
    half.on_state(Instant::ZERO, ShipmentNumber(0), &State { frames: [frame].into_iter().collect(), ..State::default() });
    let report = half.poll_report(Instant::ZERO + Duration::from_secs(1)).expect("an echo is due");
    let echo = report.frames.iter().find_map(|frame| match frame {
        ReportFrame::ReclassEcho { change: 1, class } => Some(class.number()),
        _ => None,
    });
    echo.expect("the change is echoed")
}

#[test]
fn a_change_of_class_is_taken_only_within_what_is_allowed_and_with_some_limit() {
    let rate = Bandwidth::from_megabits_per_second(10);
    assert_eq!(echoed(7, 7, 5, rate), 5);
    assert_eq!(echoed(5, 7, 6, Bandwidth::ZERO), 6, "flow control is a limit");
    assert_eq!(echoed(5, 5, 7, rate), 5, "more than is allowed here");
    assert_eq!(echoed(7, 7, 4, rate), 7, "neither flow nor rate control");
    assert_eq!(echoed(7, 7, 1, Bandwidth::ZERO), 7, "rate control without a rate");
}
