//! One test for each decision about what the papers leave open.

use super::driver::{Fate, HALF_TRIP, Net, Way};
use super::*;
use segstream_base::Duration;
use segstream_base::halves::{ReceiverEvent, Reconfigure, ReconfigureError, SenderEvent, SubmitError};
use segstream_blocks::Bitmap;

/// Loses what `hit` says.
fn losing(mut hit: impl FnMut(Instant, &Way) -> bool) -> impl FnMut(Instant, &Way) -> Fate {
    move |now, way| (!hit(now, way)).then_some(Duration::ZERO)
}

fn data(way: &Way) -> Option<Data> {
    match way {
        Way::There(Forward::Data(data)) => Some(*data),
        _ => None,
    }
}

fn bits(of: u32, set: &[u32]) -> Bitmap {
    let mut bitmap = Bitmap::new();
    bitmap.reset(of);
    for bit in set {
        bitmap.set(*bit);
    }
    bitmap
}

fn snak(control: u32, segment: u32, request: Bitmap) -> Feedback {
    Feedback::Snak(Snak { grant: Grant { connection: 7, control, segment: Some(segment), accepted: 0, limit: 4 }, request })
}

/// A sender that has sent `segments` whole segments, and when its last packet left.
fn sender_with(config: Config, segments: usize) -> (Sender, Instant) {
    let mut sender = Sender::new(config, Instant::ZERO).unwrap();
    let mut now = Instant::ZERO;
    for _ in 0..segments {
        sender.submit(now, whole_segment(&config)).unwrap();
    }
    drain(&mut sender, &mut now);
    (sender, now)
}

fn packet(shipment: u32, segment: u32, packet: u16) -> Forward {
    Forward::Data(Data { connection: 7, shipment, segment, packet, bytes: 100, room: 100, last: packet == 7 })
}

/// A receiver to which these packets have come, each a microsecond after the other.
fn receiver_with(config: Config, packets: &[(u32, u32, u16)]) -> (Receiver, Instant) {
    let mut receiver = Receiver::new(config, Instant::ZERO).unwrap();
    let mut now = Instant::ZERO;
    for (shipment, segment, number) in packets {
        now += Duration::from_micros(1);
        receiver.handle_forward(now, &packet(*shipment, *segment, *number));
    }
    (receiver, now)
}

#[test]
fn a_lost_pack_cannot_close_the_window_for_good() {
    for lost_for_ms in [70, 200, 900] {
        let until = Instant::ZERO + Duration::from_millis(lost_for_ms);
        let mut net = Net::new(small(), 9, losing(move |now, way| now < until && matches!(way, Way::Back(_))));
        net.run(Duration::from_secs(10));
        assert_eq!(net.outcome.ended, Some(9));
        assert_eq!(net.outcome.sent, 72, "nothing was sent again for a lost acknowledgment");
    }
}

#[test]
fn a_premature_request_is_ignored_and_a_rightful_one_is_not() {
    let (mut sender, left) = sender_with(small(), 2);
    let trip = Duration::from_millis(60);
    sender.handle_feedback(left + trip, &snak(1, 1, bits(8, &[3])));
    let mut now = left + trip;
    let again: Vec<_> = drain(&mut sender, &mut now).into_iter().filter(|p| matches!(p, Forward::Data(_))).collect();
    assert!(matches!(again[..], [Forward::Data(Data { segment: 1, packet: 3, shipment, .. })] if shipment > 15), "{again:?}");
    let repeated = now;
    let count = |sender: &Sender| sender.counters().packets_retransmitted;
    sender.handle_feedback(repeated + trip - Duration::from_millis(1), &snak(2, 1, bits(8, &[3])));
    now = repeated + trip;
    drain(&mut sender, &mut now);
    assert_eq!(count(&sender), 1, "it cannot yet know of the repetition");
    sender.handle_feedback(now, &snak(3, 1, bits(8, &[3])));
    drain(&mut sender, &mut now);
    assert_eq!(count(&sender), 2);
}

#[test]
fn a_request_for_what_was_not_sent_or_is_queued_or_old_is_ignored() {
    let (mut sender, left) = sender_with(small(), 2);
    let mut now = left + Duration::from_millis(60);
    sender.handle_feedback(now, &snak(5, 1, bits(8, &[3, 4])));
    sender.handle_feedback(now, &snak(6, 1, bits(8, &[0])));
    sender.handle_feedback(now, &snak(7, 2, bits(8, &[0])));
    drain(&mut sender, &mut now);
    assert_eq!(sender.counters().packets_retransmitted, 2);
    now += Duration::from_millis(100);
    sender.handle_feedback(now, &snak(4, 1, bits(8, &[5])));
    sender.handle_feedback(now, &snak(6, 1, bits(8, &[5])));
    drain(&mut sender, &mut now);
    assert_eq!(sender.counters().packets_retransmitted, 2);
}

#[test]
fn older_segments_leave_before_newer_data() {
    let (mut sender, left) = sender_with(small(), 2);
    let mut now = left + Duration::from_millis(60);
    for _ in 0..2 {
        sender.submit(now, whole_segment(&small())).unwrap();
    }
    let first = std::iter::from_fn(|| sender.poll_transmit(now)).find(|p| matches!(p, Forward::Data(_)));
    assert!(matches!(first, Some(Forward::Data(Data { segment: 2, packet: 0, .. }))), "{first:?}");
    sender.handle_feedback(now, &snak(1, 1, bits(8, &[6])));
    sender.handle_feedback(now, &snak(2, 0, bits(8, &[7])));
    let order: Vec<_> = drain(&mut sender, &mut now).iter().filter_map(|p| data(&Way::There(*p))).map(|d| (d.segment, d.packet)).collect();
    assert_eq!(order[..4], [(0, 7), (1, 6), (2, 1), (2, 2)]);
}

#[test]
fn a_request_is_repeated_until_the_segment_is_accepted_and_made_anew_each_time() {
    let packets: Vec<_> = (0u32..9).filter(|n| *n != 2 && *n != 4).map(|n| (n, n / 8, (n % 8) as u16)).collect();
    let (mut receiver, mut now) = receiver_with(small(), &packets);
    assert_eq!(asked(&feedback(&mut receiver, now)), [(0, vec![2, 4])]);
    for expected in [vec![2, 4], vec![4]] {
        let next = loop {
            now = receiver.poll_timeout().unwrap().at;
            receiver.handle_timeout(now);
            let requests = asked(&feedback(&mut receiver, now));
            if let Some(request) = requests.into_iter().find(|request| request.0 == 0) {
                break request;
            }
        };
        assert_eq!(next, (0, expected));
        receiver.handle_forward(now, &packet(20, 0, 2));
        feedback(&mut receiver, now);
    }
    receiver.handle_forward(now, &packet(21, 0, 4));
    let last = feedback(&mut receiver, now);
    assert!(matches!(last[..], [Feedback::Pack(Pack { grant: Grant { segment: Some(0), accepted: 1, .. }, .. })]), "{last:?}");
    for _ in 0..50 {
        now = receiver.poll_timeout().unwrap().at.max(now);
        receiver.handle_timeout(now);
        assert!(asked(&feedback(&mut receiver, now)).iter().all(|(segment, _)| *segment > 0));
    }
}

#[test]
fn a_lost_retransmission_is_recovered() {
    for times in 1..4 {
        let mut left = times;
        let hit = move |_, way: &Way| {
            let lost = left > 0 && data(way).is_some_and(|d| (d.segment, d.packet) == (1, 5));
            left -= i32::from(lost);
            lost
        };
        let mut net = Net::new(small(), 6, losing(hit));
        net.run(Duration::from_secs(10));
        assert_eq!((net.outcome.ended, net.outcome.sent), (Some(6), 48 + times as u64), "only the lost packet is sent again");
    }
}

#[test]
fn a_lost_end_of_a_segment_is_found_when_the_packet_behind_it_is_a_repetition() {
    // 1,7 is lost between 1,6 and a repeated packet of segment 0: the gap names no segment (n2 < n1).
    let mut packets: Vec<_> = (0u32..8).filter(|n| *n != 3).map(|n| (n, 0, n as u16)).collect();
    packets.extend((0u32..7).map(|n| (8 + n, 1, n as u16)));
    let (mut receiver, now) = receiver_with(small(), &packets);
    feedback(&mut receiver, now);
    receiver.handle_forward(now, &packet(16, 0, 3));
    assert_eq!(asked(&feedback(&mut receiver, now)), []);
    receiver.handle_forward(now, &packet(17, 2, 0));
    assert_eq!(asked(&feedback(&mut receiver, now)), [(1, vec![7])]);
}

#[test]
fn data_with_a_late_shipment_number_are_kept_and_not_asked_for() {
    let config = Config { reorder: 3, ..small() };
    let order = [0u32, 1, 3, 4, 2, 5, 7, 8, 9, 6];
    let packets: Vec<_> = order.iter().map(|n| (*n, n / 8, (n % 8) as u16)).collect();
    let (mut receiver, now) = receiver_with(config, &packets);
    let answers = feedback(&mut receiver, now);
    assert_eq!(asked(&answers), [], "every packet was at most 3 positions late");
    assert!(matches!(answers[..], [Feedback::Pack(Pack { grant: Grant { segment: Some(0), .. }, .. })]), "{answers:?}");
}

#[test]
fn a_packet_is_lost_once_a_number_r_plus_1_beyond_it_has_come() {
    let config = Config { reorder: 3, ..small() };
    // 7, the last of segment 0, is missing; 10 is three beyond, 11 four.
    let packets: Vec<_> = (0u32..11).filter(|n| *n != 7).map(|n| (n, n / 8, (n % 8) as u16)).collect();
    let (mut receiver, now) = receiver_with(config, &packets);
    assert_eq!(asked(&feedback(&mut receiver, now)), []);
    receiver.handle_forward(now, &packet(11, 1, 3));
    assert_eq!(asked(&feedback(&mut receiver, now)), [(0, vec![7])]);
}

#[test]
fn paper_literal_accounting_breaks_the_promise_and_strict_keeps_it() {
    let delivered_with = |accounting| {
        let config = Config { tolerance: Tolerance::new(8, 1, 1).unwrap(), accounting, ..small() };
        // Packets 2 and 5 of segment 0 are lost, 5 a second time.
        let mut losses = vec![2, 5, 5];
        let hit = move |_, way: &Way| {
            let at = data(way).filter(|d| d.segment == 0).and_then(|d| losses.iter().position(|p| *p == d.packet));
            at.map(|at| losses.remove(at)).is_some()
        };
        let mut net = Net::new(config, 4, losing(hit));
        net.run(Duration::from_secs(10));
        net.outcome.delivered[&0].2
    };
    assert_eq!(delivered_with(Accounting::PaperLiteral), 2, "the first check forgot a hole, the second forgave another");
    assert!(delivered_with(Accounting::StrictBurst) <= 1);
    assert!(delivered_with(Accounting::StrictAll) <= 1);
}

#[test]
fn the_loss_timer_asks_for_the_segment_behind_the_highest_but_never_accepts_it() {
    let config = Config { tolerance: Tolerance::any(8), ..small() };
    let (mut receiver, _) = receiver_with(config, &[(0, 0, 0), (1, 0, 1), (8, 1, 0)]);
    let mut asked_for = Vec::new();
    for _ in 0..4 {
        let now = receiver.poll_timeout().unwrap().at;
        receiver.handle_timeout(now);
        asked_for.extend(asked(&feedback(&mut receiver, now)));
    }
    assert!(asked_for.len() >= 2 && asked_for.iter().all(|(segment, packets)| *segment == 2 && packets.len() == 8), "{asked_for:?}");
    let delivered: Vec<_> = std::iter::from_fn(|| receiver.poll_event()).collect();
    assert!(matches!(delivered[..], [ReceiverEvent::Delivered { holes: 6, units: 8, .. }]), "segment 1 has no end yet: {delivered:?}");
}

#[test]
fn a_short_last_segment_is_known_by_its_last_packet_or_by_the_end_of_the_stream() {
    for lose_last in [false, true] {
        let mut hits = u32::from(lose_last);
        let hit = move |_, way: &Way| {
            let lost = hits > 0 && data(way).is_some_and(|d| d.segment == 2 && d.last);
            hits -= u32::from(lost);
            lost
        };
        let mut net = Net::new(small(), 3, losing(hit)).last_bytes(250);
        net.run(Duration::from_secs(10));
        assert_eq!((net.outcome.delivered[&2].1, net.outcome.delivered[&2].2), (3, 0));
        assert_eq!(net.outcome.sent, 19 + u64::from(lose_last), "no packet beyond the end is asked for");
    }
}

#[test]
fn a_keep_alive_finds_the_lost_end_of_a_paused_stream() {
    let config = small();
    let (mut sender, mut receiver) = (Sender::new(config, Instant::ZERO).unwrap(), Receiver::new(config, Instant::ZERO).unwrap());
    sender.submit(Instant::ZERO, whole_segment(&config)).unwrap();
    let mut now = Instant::ZERO;
    for packet in drain(&mut sender, &mut now) {
        if matches!(packet, Forward::Data(data) if data.packet < 6) {
            receiver.handle_forward(now, &packet);
        }
    }
    now = sender.poll_timeout().unwrap().at;
    receiver.handle_forward(now, &sender.poll_transmit(now).unwrap());
    let requests = asked(&feedback(&mut receiver, now));
    assert_eq!(requests, [(0, vec![6, 7])], "EC 4.2's own range [H, n] needs n > H");
}

#[test]
fn an_idle_sender_repeats_keep_alive_every_quarter_of_a_round_trip() {
    let (mut sender, left) = sender_with(Config { reorder: 2, ..small() }, 1);
    let trip = Duration::from_millis(60);
    sender.handle_feedback(left + trip, &snak(1, 0, bits(8, &[0])));
    let mut now = left + trip;
    drain(&mut sender, &mut now);
    let mut left_at = Vec::new();
    for _ in 0..8 {
        now = sender.poll_timeout().unwrap().at.max(now);
        while let Some(packet) = sender.poll_transmit(now) {
            assert!(matches!(packet, Forward::KeepAlive(Mark { segments: 1, packets: 8, .. })));
            left_at.push(now);
        }
    }
    let gaps: Vec<_> = left_at.windows(2).map(|pair| pair[1].since(pair[0])).collect();
    assert!(gaps.iter().filter(|gap| **gap >= Duration::from_millis(14)).count() >= 3, "{gaps:?}");
    assert!(gaps.iter().all(|gap| *gap <= Duration::from_millis(16)), "{gaps:?}");
}

#[test]
fn a_backlog_is_refused_and_told_when_there_is_room() {
    let config = small();
    let mut sender = Sender::new(config, Instant::ZERO).unwrap();
    let taken = (0..100).take_while(|_| sender.submit(Instant::ZERO, whole_segment(&config)).is_ok()).count();
    assert_eq!(taken, 8, "two windows");
    assert_eq!(sender.submit(Instant::ZERO, whole_segment(&config)), Err(SubmitError::Blocked));
    let mut now = Instant::ZERO;
    drain(&mut sender, &mut now);
    let grant = Grant { connection: 7, control: 1, segment: Some(0), accepted: 1, limit: 5 };
    sender.handle_feedback(now + HALF_TRIP, &Feedback::Pack(Pack { grant, soft: false, holes: false, end: false }));
    let events: Vec<_> = std::iter::from_fn(|| sender.poll_event()).collect();
    assert!(events.contains(&SenderEvent::WindowOpen(StreamId(0))), "{events:?}");
    let mut refuse = |segment| sender.submit(now, segment);
    let whole = whole_segment(&config);
    assert_eq!(refuse(Segment { bytes: Some(801), ..whole }), Err(SubmitError::TooLong { units: 9, window: 8 }));
    assert_eq!(refuse(Segment { bytes: None, ..whole }), Err(SubmitError::Finished));
    assert_eq!(refuse(Segment { stream: StreamId(1), ..whole }), Err(SubmitError::Finished));
    assert_eq!(refuse(Segment { tolerance: Some(Tolerance::new(8, 1, 1).unwrap()), ..whole }), Err(SubmitError::BadTolerance));
    assert!(refuse(whole).is_ok());
}

#[test]
fn a_slower_rate_uses_less_of_the_window_and_no_edge_retreats() {
    let config = Config { window: 4, ..small() };
    let mut sender = Sender::new(config, Instant::ZERO).unwrap();
    let half = Bandwidth::from_megabits_per_second(5);
    sender.reconfigure(Instant::ZERO, Reconfigure::Rate(half)).unwrap();
    assert_eq!(sender.reconfigure(Instant::ZERO, Reconfigure::Rate(Bandwidth::ZERO)), Err(ReconfigureError::OutOfRange));
    assert_eq!(sender.reconfigure(Instant::ZERO, Reconfigure::Class(7)), Err(ReconfigureError::Unsupported));
    for _ in 0..4 {
        sender.submit(Instant::ZERO, whole_segment(&config)).unwrap();
    }
    let mut now = Instant::ZERO;
    let sent = drain(&mut sender, &mut now).into_iter().filter(|p| matches!(p, Forward::Data(_))).count();
    assert_eq!(sent, 16, "W1 = F1 / F W0 = 2 segments");
    let mut receiver = Receiver::new(config, Instant::ZERO).unwrap();
    receiver.resize_window(2);
    let mut limits = Vec::new();
    for n in 0u32..32 {
        receiver.handle_forward(now, &packet(n, n / 8, (n % 8) as u16));
        limits.extend(feedback(&mut receiver, now).iter().map(|p| p.grant().limit));
    }
    assert_eq!(limits, [4, 4, 5, 6], "the edge waits until the window fits below it");
}

#[test]
fn the_window_follows_what_a_slow_user_has_done_with_and_is_smaller_while_it_is_slow() {
    let at = |millis| Instant::ZERO + Duration::from_millis(millis);
    // A segment takes 0.76 ms on the line; the user takes four times that, so W_1 is one segment of four.
    let takes = small().segment_time() * 4;
    let slowdown = Some(Slowdown { from: Instant::ZERO, until: at(100), takes });
    for (throttle, limits) in [(Throttle::Withhold, [5, 6]), (Throttle::Resize, [4, 4])] {
        let config = Config { slowdown, throttle, ..small() };
        let mut receiver = Receiver::new(config, Instant::ZERO).unwrap();
        receiver.handle_timeout(Instant::ZERO);
        for n in 0u32..32 {
            receiver.handle_forward(Instant::ZERO, &packet(n, n / 8, (n % 8) as u16));
        }
        let told = feedback(&mut receiver, Instant::ZERO);
        assert!(told.iter().all(|p| p.grant().limit == 4 && p.grant().accepted == 0), "nothing has been done with: {told:?}");
        assert_eq!(told.len(), 4, "but all of it is acknowledged");
        for (done, limit) in (1..).zip(limits) {
            let mut due = receiver.poll_timeout().unwrap();
            while due.timer != "user" {
                receiver.handle_timeout(due.at);
                feedback(&mut receiver, due.at);
                due = receiver.poll_timeout().unwrap();
            }
            assert_eq!(due.at, Instant::ZERO + takes * done);
            receiver.handle_timeout(due.at);
            let grant = *feedback(&mut receiver, due.at).pop().unwrap().grant();
            assert_eq!((u64::from(grant.accepted), grant.limit), (done, limit), "{throttle}");
        }
        receiver.handle_timeout(at(100));
        let limit = feedback(&mut receiver, at(100)).pop().unwrap().grant().limit;
        assert_eq!(limit, 8, "all is done with, and the window is whole again");
    }
}

#[test]
fn a_softly_acknowledged_segment_is_kept_and_asked_for_again_when_it_is_the_head() {
    let config = Config { buffer: 1, acknowledgment: Acknowledgment::SoftLazy, ..small() };
    let second: Vec<_> = (8u32..16).map(|n| (n, 1, (n % 8) as u16)).collect();
    let (mut receiver, mut now) = receiver_with(config, &second);
    let soft = feedback(&mut receiver, now);
    assert!(soft.iter().any(|p| matches!(p, Feedback::Pack(pack) if pack.soft && pack.grant.segment == Some(1))), "{soft:?}");
    assert_eq!(receiver.poll_event(), None, "it may still be discarded");
    let (mut sender, left) = sender_with(config, 2);
    sender.handle_feedback(left, soft.iter().find(|p| matches!(p, Feedback::Pack(_))).unwrap());
    assert!(std::iter::from_fn(|| sender.poll_event()).all(|event| !matches!(event, SenderEvent::Judged { .. })));
    let mut after = Vec::new();
    for n in 0u32..8 {
        now += Duration::from_micros(1);
        receiver.handle_forward(now, &packet(16 + n, 0, n as u16));
        after.push(asked(&feedback(&mut receiver, now)));
    }
    assert!(after[..7].iter().all(Vec::is_empty), "{after:?}");
    assert_eq!(after[7], [(1, (0..8).collect::<Vec<_>>())]);
}

#[test]
fn a_configuration_that_contradicts_itself_is_refused() {
    let refused = |config: Config| config.check().unwrap_err();
    let cases = [
        refused(Config { packet_bytes: 18, ..small() }),
        refused(Config { segment_packets: 0, ..small() }),
        refused(Config { discard: Discard::Group, ..small() }),
        refused(Config { window: 0, ..small() }),
        refused(Config { buffer: 5, ..small() }),
        refused(Config { buffer: 0, ..small() }),
        refused(Config { tolerance: Tolerance::reliable(9), ..small() }),
        refused(Config { rate: RateSpec::smooth(Bandwidth::ZERO), ..small() }),
        refused(Config { reorder: 1024, ..small() }),
    ];
    assert!(cases.iter().all(|error| error.to_string().len() > 30));
    assert_eq!(small().check(), Ok(()));
    assert_eq!("soft-lazy".parse(), Ok(Acknowledgment::SoftLazy));
    assert_eq!("ideal".parse(), Ok(FeedbackMode::Ideal));
    assert!("sofft".parse::<Acknowledgment>().unwrap_err().to_string().contains("soft-eager"));
}
