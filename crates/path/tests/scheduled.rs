//! Queues that decide when the link takes a packet, against what their RFCs say of them.

use segstream_base::endpoint::Ecn;
use segstream_base::random::Seed;
use segstream_base::{Bandwidth, Bytes, Duration, Instant};
use segstream_path::{Aqm, Fate, LossPlace, Passage, Path, PathConfig, PathPacket, QueueLimit, ScheduledPath, SpecError};

const MS: Duration = Duration::from_millis(1);

/// A packet of 1000 bytes takes a millisecond.
fn one_packet_a_millisecond(aqm: Aqm) -> PathConfig {
    PathConfig { bandwidth: Some(Bandwidth::from_megabits_per_second(8)), queue: QueueLimit::Packets(1000), aqm, ..PathConfig::default() }
}

fn path(config: &PathConfig) -> ScheduledPath {
    ScheduledPath::new(config, Seed(1), "forward").unwrap()
}

fn at(micros: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(micros)
}

/// A packet of `flow`.
fn packet(flow: u64, bytes: u64, ecn: Option<Ecn>) -> PathPacket {
    PathPacket { bytes: Bytes::new(bytes), ecn, flow }
}

/// All packets that are decided by `now`, by identifier.
fn decided(path: &mut ScheduledPath, now: Instant) -> Vec<(u64, Passage)> {
    path.advance(now);
    std::iter::from_fn(|| path.decided()).collect()
}

/// When the ids arrive, in microseconds.
fn arrivals(decided: &[(u64, Passage)]) -> Vec<(u64, u64)> {
    let arrival = |passage: &Passage| match passage.fate {
        Fate::Delivered { at } => Some(at.as_nanos() / 1000),
        Fate::Lost | Fate::Dropped => None,
    };
    decided.iter().filter_map(|(id, passage)| Some((*id, arrival(passage)?))).collect()
}

/// What a flow sends: from when on, how far apart, and what.
struct Sends {
    from: u64,
    every: u64,
    packet: PathPacket,
}

/// Lets flows send until `until`, all in microseconds, and returns the fate of each packet: the number of its flow, when it
/// was sent, and its passage.
fn run(path: &mut ScheduledPath, flows: &[Sends], until: u64) -> Vec<(usize, u64, Passage)> {
    let mut sent: Vec<(u64, usize)> = Vec::new();
    for (number, flow) in flows.iter().enumerate() {
        sent.extend((flow.from..until).step_by(flow.every as usize).map(|at| (at, number)));
    }
    sent.sort_unstable();
    for (id, (micros, flow)) in (0..).zip(&sent) {
        path.send(at(*micros), flows[*flow].packet, id);
    }
    let decided = decided(path, Instant::FAR_FUTURE);
    assert_eq!(decided.len(), sent.len(), "every packet is decided once");
    decided.into_iter().map(|(id, passage)| (sent[id as usize].1, sent[id as usize].0, passage)).collect()
}

fn delivered(outcome: &[(usize, u64, Passage)], flow: usize) -> usize {
    outcome.iter().filter(|(of, _, passage)| *of == flow && matches!(passage.fate, Fate::Delivered { .. })).count()
}

fn marked(outcome: &[(usize, u64, Passage)], flow: usize) -> usize {
    outcome.iter().filter(|(of, _, passage)| *of == flow && passage.marked).count()
}

#[test]
fn a_queue_that_decides_at_once_is_the_path_itself() {
    for aqm in [Aqm::DropTail, Aqm::CODEL, Aqm::PIE] {
        let config = PathConfig {
            loss: "gilbert:rate=2%,burst=3".parse().unwrap(),
            jitter: (MS * 3).into(),
            delay: MS * 20,
            duplicate: "1%".parse().unwrap(),
            queue: QueueLimit::Packets(100),
            ..one_packet_a_millisecond(aqm)
        };
        let mut plain = Path::new(&config, Seed(7), "forward").unwrap();
        let mut scheduled = ScheduledPath::new(&config, Seed(7), "forward").unwrap();
        for number in 0..20_000u64 {
            let ecn = (number % 3 == 0).then_some(Ecn::Ect0);
            let now = at(number * 950);
            let expected = if ecn.is_some() { plain.send_markable(now, Bytes::new(1000)) } else { plain.send(now, Bytes::new(1000)) };
            scheduled.send(now, packet(number % 5, 1000, ecn), number);
            assert_eq!((scheduled.decided(), scheduled.decided()), (Some((number, expected)), None));
        }
        assert_eq!((plain.counters(), scheduled.due()), (scheduled.counters(), Instant::FAR_FUTURE));
    }
}

#[test]
fn a_path_that_answers_at_once_refuses_a_queue_that_does_not() {
    for aqm in [Aqm::FQ_CODEL, Aqm::DUALPI2] {
        let refused = Path::new(&one_packet_a_millisecond(aqm), Seed(1), "forward").unwrap_err();
        assert_eq!(refused, SpecError::QueueDecidesLate(aqm.to_string()));
        let unlimited = PathConfig { bandwidth: None, ..one_packet_a_millisecond(aqm) };
        assert!(matches!(ScheduledPath::new(&unlimited, Seed(1), "forward"), Err(SpecError::NothingToManage(_))));
    }
}

#[test]
fn one_flow_alone_leaves_as_from_any_queue() {
    for (aqm, ecn) in [(Aqm::FQ_CODEL, None), (Aqm::DUALPI2, None), (Aqm::DUALPI2, Some(Ecn::Ect1))] {
        let config = PathConfig { delay: MS * 10, ..one_packet_a_millisecond(aqm) };
        let (mut fair, mut plain) = (path(&config), path(&PathConfig { aqm: Aqm::DropTail, ..config }));
        for number in 0..5u64 {
            for path in [&mut fair, &mut plain] {
                path.send(at(number * 700), packet(3, 1000, ecn), number);
            }
        }
        assert_eq!(fair.due(), at(3000));
        let far = Instant::FAR_FUTURE;
        assert_eq!(arrivals(&decided(&mut fair, far)), arrivals(&decided(&mut plain, far)));
        assert_eq!((fair.due(), fair.free_at()), (far, plain.free_at()));
    }
}

#[test]
fn queues_of_flows_are_served_in_turn_by_the_quantum() {
    let aqm = "fq-codel:quantum=1000".parse().unwrap();
    let mut path = path(&one_packet_a_millisecond(aqm));
    // Four of flow 1, then four of flow 2 and eight small ones of flow 3, all at once; the first is taken at once.
    let flows = [(1, 1000, 4), (2, 1000, 4), (3, 500, 8)];
    let mut id = 0;
    for (flow, bytes, count) in flows {
        for _ in 0..count {
            path.send(at(0), packet(flow, bytes, None), flow * 100 + id % 100);
            id += 1;
        }
    }
    let order: Vec<u64> = arrivals(&decided(&mut path, Instant::FAR_FUTURE)).iter().map(|(id, _)| id / 100).collect();
    // Flow 1 has used its quantum, so the new flows go first; then each has a turn, two packets for flow 3.
    assert_eq!(order, [1, 2, 3, 3, 1, 2, 3, 3, 1, 2, 3, 3, 1, 2, 3, 3]);
}

#[test]
fn a_sparse_flow_does_not_wait_for_one_that_fills_the_link() {
    let bulk = Sends { from: 0, every: 500, packet: packet(1, 1000, None) };
    let sparse = Sends { from: 100_300, every: 20_000, packet: packet(2, 200, None) };
    let waits = |aqm: Aqm| -> Vec<u64> {
        let outcome = run(&mut path(&one_packet_a_millisecond(aqm)), &[Sends { ..bulk }, Sends { ..sparse }], 2_000_000);
        let of_sparse = outcome.iter().filter(|(flow, _, passage)| *flow == 1 && matches!(passage.fate, Fate::Delivered { .. }));
        of_sparse.map(|(_, _, passage)| passage.queued.as_micros()).collect()
    };
    // One packet of the other flow is in flight, at most.
    assert!(waits(Aqm::FQ_CODEL).iter().all(|wait| *wait <= 1000), "{:?}", waits(Aqm::FQ_CODEL));
    assert!(waits(Aqm::DropTail).iter().all(|wait| *wait > 50_000));
}

#[test]
fn two_flows_share_the_link_however_unequally_they_send() {
    let few = Sends { from: 0, every: 1500, packet: packet(1, 1000, None) };
    let many = Sends { from: 0, every: 300, packet: packet(2, 1000, None) };
    let outcome = run(&mut path(&one_packet_a_millisecond(Aqm::FQ_CODEL)), &[few, many], 4_000_000);
    let within = |flow| {
        let arrives = |passage: &Passage| matches!(passage.fate, Fate::Delivered { at: arrival } if arrival <= at(4_000_000));
        outcome.iter().filter(|(of, _, passage)| *of == flow && arrives(passage)).count()
    };
    // 4000 packets cross in the time: both send more than half.
    assert!(within(0).abs_diff(2000) <= 30 && within(1).abs_diff(2000) <= 30, "{} {}", within(0), within(1));
}

#[test]
fn each_flow_has_a_codel_of_its_own() {
    // Flow 1 stands in its queue, flow 2 never does.
    let flows =
        [Sends { from: 0, every: 1500, packet: packet(1, 1000, None) }, Sends { from: 0, every: 2500, packet: packet(2, 1000, None) }];
    let outcome = run(&mut path(&one_packet_a_millisecond(Aqm::FQ_CODEL)), &flows, 3_000_000);
    assert_eq!(delivered(&outcome, 1), 1200);
    let dropped: Vec<u64> = outcome.iter().filter(|(_, _, passage)| passage.fate == Fate::Dropped).map(|(_, sent, _)| *sent).collect();
    assert!(dropped.len() > 10, "{}", dropped.len());
    // With marks nothing is dropped.
    let flows = flows.map(|flow| Sends { packet: PathPacket { ecn: Some(Ecn::Ect0), ..flow.packet }, ..flow });
    let mut marking = path(&one_packet_a_millisecond(Aqm::FQ_CODEL));
    let outcome = run(&mut marking, &flows, 3_000_000);
    assert_eq!((delivered(&outcome, 0), delivered(&outcome, 1), marked(&outcome, 1)), (2000, 1200, 0));
    assert!(marked(&outcome, 0) > 10);
    assert_eq!(marking.counters().marked, marked(&outcome, 0) as u64);
}

#[test]
fn a_queue_that_does_not_know_ecn_drops_what_it_would_mark() {
    let capable = [Sends { from: 0, every: 900, packet: packet(1, 1000, Some(Ecn::Ect0)) }];
    let plain = [Sends { from: 0, every: 900, packet: packet(1, 1000, None) }];
    for aqm in [Aqm::CODEL, Aqm::PIE, Aqm::FQ_CODEL, Aqm::DUALPI2] {
        let counted = |ecn_unaware, flows: &[Sends]| {
            let mut path = path(&PathConfig { ecn_unaware, queue: QueueLimit::UNLIMITED, ..one_packet_a_millisecond(aqm) });
            run(&mut path, flows, 3_000_000);
            (path.counters().marked, path.counters().dropped_aqm)
        };
        assert!(counted(false, &capable).0 > 0, "{aqm}");
        let unaware = counted(true, &capable);
        assert!(unaware.0 == 0 && unaware.1 > 0, "{aqm}: {unaware:?}");
        assert_eq!(unaware, counted(false, &plain), "{aqm}");
    }
}

#[test]
fn a_full_queue_takes_half_of_the_longest_flow_from_its_head() {
    let config = PathConfig { queue: QueueLimit::Packets(20), ..one_packet_a_millisecond(Aqm::FQ_CODEL) };
    let mut path = path(&config);
    // One is in flight, 16 of flow 1 wait, then four of flow 2: full.
    for id in 0..21 {
        path.send(at(0), packet(1 + u64::from(id >= 17), 1000, None), id);
    }
    assert_eq!(decided(&mut path, at(0)).len(), 1);
    path.send(at(0), packet(2, 1000, None), 21);
    let dropped: Vec<u64> = std::iter::from_fn(|| path.decided()).map(|(id, _)| id).collect();
    assert_eq!(dropped, [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!((path.counters().dropped_queue, path.waiting_bytes(at(0))), (8, Bytes::new(13_000)));
}

#[test]
fn what_a_hostile_sender_puts_into_the_queue_is_bounded_by_its_limit() {
    for aqm in [Aqm::FQ_CODEL, Aqm::DUALPI2] {
        let config = PathConfig { queue: QueueLimit::Bytes(Bytes::new(30_000)), ..one_packet_a_millisecond(aqm) };
        let mut path = path(&config);
        for id in 0..100_000u64 {
            let ecn = [None, Some(Ecn::Ect0), Some(Ecn::Ect1)][id as usize % 3];
            path.send(at(id / 100), packet(id, id % 1500, ecn), id);
            assert!(path.waiting_bytes(Instant::ZERO) <= Bytes::new(30_000));
        }
        let decided = decided(&mut path, Instant::FAR_FUTURE);
        assert_eq!(decided.len(), 100_000);
        let counters = path.counters();
        assert_eq!(counters.sent, counters.delivered + counters.dropped_queue + counters.dropped_aqm);
    }
}

#[test]
fn only_ect1_and_ce_go_to_the_queue_of_l4s() {
    let mut path = path(&one_packet_a_millisecond(Aqm::DUALPI2));
    let codepoints = [None, Some(Ecn::Ect0), Some(Ecn::Ect1), Some(Ecn::CongestionExperienced)];
    // One goes at once; behind it one of each kind waits.
    path.send(at(0), packet(0, 1000, None), 9);
    for (id, ecn) in (0..).zip(codepoints) {
        path.send(at(1), packet(0, 1000, ecn), id);
    }
    let order: Vec<u64> = arrivals(&decided(&mut path, Instant::FAR_FUTURE)).iter().map(|(id, _)| *id).collect();
    // The first of L4S gives the classic queue credit for its turn: 1 part of 10 earned, 9 paid.
    assert_eq!(order, [9, 2, 0, 3, 1]);
}

#[test]
fn an_l4s_packet_is_marked_when_it_has_waited_a_millisecond() {
    let mut path = path(&one_packet_a_millisecond(Aqm::DUALPI2));
    // At once: packet n waits n ms; the last of them is alone in its queue then.
    for id in 0..6 {
        path.send(at(0), packet(0, 1000, Some(Ecn::Ect1)), id);
    }
    let marks: Vec<bool> = decided(&mut path, at(6000)).iter().map(|(_, passage)| passage.marked).collect();
    assert_eq!(marks, [false, false, true, true, true, false]);
    assert_eq!(path.counters().marked, 3);
}

#[test]
fn classic_packets_are_dropped_where_they_cannot_be_marked() {
    let flow = |ecn| [Sends { from: 0, every: 900, packet: packet(1, 1000, ecn) }];
    let outcome = |ecn| {
        let mut path = path(&PathConfig { queue: QueueLimit::UNLIMITED, ..one_packet_a_millisecond(Aqm::DUALPI2) });
        run(&mut path, &flow(ecn), 400_000);
        path.counters()
    };
    let (dropping, marking) = (outcome(None), outcome(Some(Ecn::Ect0)));
    assert!(dropping.dropped_aqm > 0 && dropping.marked == 0, "{dropping:?}");
    assert!(marking.dropped_aqm == 0 && marking.marked > 0, "{marking:?}");
}

#[test]
fn overload_by_what_does_not_yield_drops_l4s_too_and_the_queue_stays_bounded() {
    // Twice the link, all of it ECT(1).
    let flows = [Sends { from: 0, every: 500, packet: packet(1, 1000, Some(Ecn::Ect1)) }];
    let mut path = path(&PathConfig { queue: QueueLimit::UNLIMITED, ..one_packet_a_millisecond(Aqm::DUALPI2) });
    let outcome = run(&mut path, &flows, 10_000_000);
    let late: Vec<u64> =
        outcome.iter().filter(|(_, sent, _)| *sent > 5_000_000).map(|(_, _, passage)| passage.queued.as_millis()).collect();
    // Half must go: p' settles at 0.71 and the wait near the target.
    assert!(path.counters().dropped_aqm > 5_000);
    assert!(late.iter().all(|wait| *wait < 100), "{:?}", late.iter().max());
}

#[test]
fn l4s_goes_first_and_leaves_the_classic_queue_a_tenth() {
    let flows = [
        Sends { from: 0, every: 900, packet: packet(1, 1000, Some(Ecn::Ect1)) },
        Sends { from: 0, every: 900, packet: packet(2, 1000, None) },
    ];
    // Controllers that are as good as off, so that the scheduler alone decides.
    let aqm = "dualpi2:target=1000s,rtt=1000s,minth=1000s".parse().unwrap();
    let mut path = path(&PathConfig { queue: QueueLimit::UNLIMITED, ..one_packet_a_millisecond(aqm) });
    let outcome = run(&mut path, &flows, 1_000_000);
    let within = |flow| {
        let arrives = |passage: &Passage| matches!(passage.fate, Fate::Delivered { at: arrival } if arrival <= at(1_000_000));
        outcome.iter().filter(|(of, _, passage)| *of == flow && arrives(passage)).count()
    };
    assert!(within(1).abs_diff(100) <= 2 && within(0).abs_diff(900) <= 2, "{} {}", within(0), within(1));
}

#[test]
fn losses_and_the_other_impairments_meet_the_same_packets_whatever_the_queue() {
    for loss_at in [LossPlace::Before, LossPlace::After] {
        let lost = |aqm: Aqm, seed: u64| -> Vec<u64> {
            let config = PathConfig { loss: "5%".parse().unwrap(), loss_at, ..one_packet_a_millisecond(aqm) };
            let mut path = ScheduledPath::new(&config, Seed(seed), "forward").unwrap();
            for id in 0..2000 {
                path.send(at(id * 1100), packet(id % 3, 1000, None), id);
            }
            let mut lost: Vec<u64> = decided(&mut path, Instant::FAR_FUTURE)
                .iter()
                .filter(|(_, passage)| passage.fate == Fate::Lost)
                .map(|(id, _)| *id)
                .collect();
            lost.sort_unstable();
            assert_eq!(path.counters().lost, lost.len() as u64);
            lost
        };
        let plain = lost(Aqm::DropTail, 1);
        assert!(plain.len() > 50);
        for aqm in [Aqm::FQ_CODEL, Aqm::DUALPI2] {
            assert_eq!(lost(aqm, 1), plain);
            assert_ne!(lost(aqm, 2), plain);
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_passages_however_often_it_is_asked() {
    for aqm in [Aqm::FQ_CODEL, Aqm::DUALPI2] {
        let config = PathConfig { jitter: "wifi:3ms".parse().unwrap(), aggregate: MS * 4, ..one_packet_a_millisecond(aqm) };
        let outcome = |asks: bool| {
            let mut path = path(&config);
            for id in 0..5000u64 {
                if asks {
                    path.advance(at(id * 800 - 400 * u64::from(id > 0)));
                }
                let ecn = [None, Some(Ecn::Ect0), Some(Ecn::Ect1)][id as usize % 3];
                path.send(at(id * 800), packet(id % 7, 1000, ecn), id);
            }
            decided(&mut path, Instant::FAR_FUTURE)
        };
        assert_eq!(outcome(false), outcome(true));
    }
}

#[test]
fn a_recorded_link_serves_a_scheduled_queue_in_its_opportunities() {
    let config = PathConfig { bandwidth: None, opportunities: "2,3,5*2,9".parse().unwrap(), ..one_packet_a_millisecond(Aqm::FQ_CODEL) };
    let mut path = path(&config);
    for (id, micros, flow) in [(0, 0, 1), (1, 0, 1), (2, 0, 2), (3, 500, 2), (4, 5000, 1)] {
        path.send(at(micros), packet(flow, 700, None), id);
    }
    // Two of 700 bytes share an opportunity, and 100 bytes of the next; flow 1 has used its quantum by then.
    assert_eq!(arrivals(&decided(&mut path, Instant::FAR_FUTURE)), [(0, 2000), (1, 2000), (2, 3000), (3, 3000), (4, 9000)]);
}
