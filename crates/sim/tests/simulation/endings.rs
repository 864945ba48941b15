//! Every way in which a run ends other than at its goal.

use crate::arq::{ArqReceiver, ArqSender, Defect, Forward, Mode, Pair, SLOT, Settings, backlog, pair, setup};
use segstream_base::Instant;
use segstream_base::halves::SubmitError;
use segstream_base::random::Seed;
use segstream_path::{LossSpec, SpecError};
use segstream_sim::{Direction, EncodingFault, End, Setup, Simulation, Source};

fn settings() -> Settings {
    Settings::filling(Mode::GoBackN, 4)
}

fn defective(defect: Defect, setup: &Setup) -> Pair<()> {
    pair(&Settings { defect: Some(defect), ..settings() }, backlog(10), setup, 1, ())
}

#[test]
fn a_deadlock_is_found_once_nothing_is_pending() {
    let mut setup = setup(4);
    setup.forward.loss = LossSpec::List(vec![3]);
    let mut run = pair(&Settings { timeout: None, ..settings() }, backlog(10), &setup, 1, ());
    assert_eq!(run.run(), End::Quiet);
    assert_eq!(run.traffic().forward.in_flight, 0);
    assert_eq!(run.settle(), End::Quiet);
    // The window of five closes behind the lost packet: packets 4 to 7 were sent, the last acknowledgement came.
    assert_eq!(run.traffic().forward.data_packets, 8);
}

#[test]
fn a_half_whose_deadline_does_not_move_is_found() {
    let mut run = defective(Defect::FrozenTimer, &setup(4));
    assert_eq!(run.run(), End::Stuck { timer: "frozen" });
    assert_eq!(run.run(), End::Stuck { timer: "frozen" });
    assert_eq!(run.now(), Instant::from_nanos(1));
}

#[test]
fn a_half_that_sends_without_end_is_found() {
    let mut setup = setup(4);
    setup.forward.loss = LossSpec::Random("0.999999".parse().unwrap());
    assert_eq!(defective(Defect::Endless, &setup).run(), End::Stuck { timer: "transmit" });
}

#[test]
fn nothing_happens_after_the_limit() {
    let until = Instant::ZERO + SLOT * 7;
    let mut run = pair(&settings(), backlog(10), &Setup { until: Some(until), ..setup(4) }, 1, ());
    assert_eq!((run.run(), run.now()), (End::Limit, until));
    // Packet 7 was sent at the limit, packet 4 has arrived at it.
    let forward = run.traffic().forward;
    assert_eq!((forward.data_packets, forward.arrived, forward.in_flight), (8, 5, 3));
    assert_eq!(run.settle(), End::Limit);
}

#[test]
fn a_segment_that_is_refused_for_good_ends_the_run_with_its_reason() {
    let source = Source::Periodic { segments: 3, segment_bytes: 5, interval: SLOT };
    let mut run = pair(&settings(), source, &setup(4), 1, ());
    assert_eq!(run.run(), End::Refused { segment: 0, error: SubmitError::TooLong { units: 5, window: 1000 } });
}

#[test]
fn an_empty_source_is_delivered_at_once() {
    let mut run = pair(&settings(), backlog(0), &setup(4), 1, ());
    assert_eq!((run.run(), run.now()), (End::Delivered, Instant::ZERO));
}

#[test]
fn a_packet_that_does_not_survive_encoding_ends_the_run_in_check_mode_alone() {
    let cases = [
        (&Forward::TooShort, EncodingFault::Length { announced: 5, written: 6 }),
        (
            &Forward::Garbled,
            EncodingFault::Undecodable(segstream_base::codec::DecodeError {
                at: 1,
                field: "kind",
                kind: segstream_base::codec::DecodeErrorKind::UnknownType(4),
            }),
        ),
    ];
    for (packet, fault) in cases {
        let mut run = defective(Defect::Third(packet), &Setup { check: true, ..setup(4) });
        let end = run.run();
        assert_eq!(end, End::BadEncoding { direction: Direction::Forward, number: 2, at: Instant::ZERO + SLOT * 2, fault });
        assert!(end.to_string().starts_with("packet 2 forward, sent at 2ms, "), "{end}");
        assert!(!end.is_reached());
        assert_eq!(defective(Defect::Third(packet), &setup(4)).run(), End::Delivered);
    }
}

#[test]
fn a_path_that_cannot_be_is_refused() {
    let mut setup = setup(4);
    setup.back.bandwidth = Some(segstream_base::Bandwidth::ZERO);
    let (sender, receiver) = (ArqSender::new(settings()), ArqReceiver::new(&settings()));
    assert_eq!(Simulation::new(sender, receiver, backlog(1), &setup, Seed(1), ()).err(), Some(SpecError::ZeroBandwidth));
}
