//! The exchange of states: binding, loss decision, self-recovery, search, ranges, wrapping numbers.

use super::link::{Fate, Link, Rule, packets};
use crate::htpnet::{Class, Config, Coverage, Feedback, Forward, Ranges, SyncPeriod};
use proptest::prelude::*;
use segstream_base::halves::{Sender as _, Verdict};
use segstream_base::random::Seed;
use segstream_base::{Duration, Instant};
use segstream_blocks::Search;

fn small() -> Config {
    Config { packet_bytes: 114, ..Config::default() }
}

fn millis(count: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(count)
}

/// Loses the first transmission of each data packet in `seqs`.
fn lose_once(seqs: impl IntoIterator<Item = u16>) -> Rule<Forward> {
    let mut left: Vec<u16> = seqs.into_iter().collect();
    Box::new(move |_, packet| match packet {
        Forward::Data(data) => match left.iter().position(|seq| *seq == data.seq) {
            Some(at) => {
                left.remove(at);
                Fate::Lose
            }
            None => Fate::Pass,
        },
        _ => Fate::Pass,
    })
}

fn complete(link: &Link, segments: usize) {
    assert_eq!(link.order(), (0..segments as u64).collect::<Vec<_>>(), "in order, once");
    assert!(link.delivered.iter().all(|it| it.1 == Verdict::Complete));
    assert!(link.judged.iter().all(|it| it.1 == Verdict::Complete));
    assert_eq!((link.judged.len(), link.started.len(), link.ended), (segments, segments, Some(segments as u64)));
    assert!(link.sender.is_released() && link.receiver.is_released());
}

#[test]
fn the_first_group_is_bound_to_0_and_so_is_the_first_state() {
    let mut link = Link::new(&small(), packets(&small(), 120));
    link.settle();
    complete(&link, 120);
    let states: Vec<_> = link
        .sent
        .iter()
        .filter_map(|(at, packet)| match packet {
            Forward::State(state) => Some((at.as_nanos() / 1_000_000, state.sync, state.lseq)),
            _ => None,
        })
        .collect();
    // A packet each 100 us, an exchange each 5 ms, which takes the processor too.
    assert_eq!(states[..3], [(5, 0, 49), (10, 1, 98), (15, 2, 119)]);
}

#[test]
fn a_lost_packet_is_sent_again_when_its_exchange_comes_back_and_not_before() {
    let mut link = Link::new(&small(), packets(&small(), 600));
    link.fate_forward = lose_once([60]);
    link.settle();
    complete(&link, 600);
    assert_eq!((link.repeated(), link.receiver.duplicates()), (1, 0));
    let times: Vec<_> =
        link.sent.iter().filter(|(_, packet)| matches!(packet, Forward::Data(data) if data.seq == 60)).map(|(at, _)| *at).collect();
    // Bound to exchange 1, which leaves at 10 ms.
    assert!(times[0] < millis(10) && times[1] >= millis(30) && times[1] < millis(31), "{times:?}");
}

#[test]
fn a_lost_repetition_is_bound_to_the_exchange_it_was_sent_in() {
    let mut link = Link::new(&small(), packets(&small(), 900));
    link.fate_forward = lose_once([60, 60, 60]);
    link.settle();
    complete(&link, 900);
    assert_eq!((link.repeated(), link.receiver.duplicates()), (3, 0));
}

#[test]
fn a_lost_tail_is_found() {
    let mut link = Link::new(&small(), packets(&small(), 100));
    link.finish = false;
    link.fate_forward = lose_once(97..100);
    link.settle();
    assert_eq!((link.delivered.len(), link.judged.len()), (100, 100));
    assert_eq!(link.receiver.duplicates(), 0);
}

#[test]
fn an_idle_connection_falls_silent_and_wakes_with_data() {
    let config = small();
    let mut link = Link::new(&config, packets(&config, 1));
    link.finish = false;
    link.settle();
    let exchanges = link.exchanges();
    let quiet = link.now;
    assert!(exchanges.len() < 14 && quiet < millis(300), "{exchanges:?}");
    let slow: Vec<_> = exchanges.windows(2).map(|pair| pair[1].since(pair[0])).rev().take(3).collect();
    assert_eq!(slow, [Duration::from_millis(40); 3], "eight periods");
    link.now = quiet + Duration::from_secs(5);
    link.submit(50);
    link.settle();
    assert_eq!(link.judged.len(), 2);
}

#[test]
fn a_report_is_not_cut_short_by_what_it_has_no_room_for() {
    // Every third packet of the first 300 is lost: 100 holes, and four pairs.
    for (ranges, at_most) in [(Ranges::Four, 2000), (Ranges::Eight, 1000), (Ranges::Rotating, 450), (Ranges::All, 150)] {
        for search in [Search::Fifo, Search::Exhaustive] {
            let config = Config { ranges, search, window: 1024, ..small() };
            let mut link = Link::new(&config, packets(&config, 400));
            link.fate_forward = lose_once((0..300).step_by(3));
            link.settle();
            complete(&link, 400);
            assert_eq!((link.repeated(), link.receiver.duplicates()), (100, 0), "{ranges:?}");
            assert!(link.judged.iter().all(|it| it.2 < millis(at_most)), "{ranges:?} {:?}", link.judged.last());
        }
    }
}

#[test]
fn both_searches_send_the_same_packets_and_only_one_costs_the_window() {
    for ranges in Ranges::ALL {
        let run = |search| {
            let config = Config { search, ranges, window: 512, ..small() };
            let mut link = Link::new(&config, packets(&config, 4000));
            let mut random = Seed(7).stream("loss");
            link.fate_forward = Box::new(move |_, _| if random.chance(0.02) { Fate::Lose } else { Fate::Pass });
            link.settle();
            complete(&link, 4000);
            let answers = link.answered.len() as u64;
            (link.sent, link.sender.operations().slots_searched, answers)
        };
        let (fifo, fifo_cost, _) = run(Search::Fifo);
        let (exhaustive, exhaustive_cost, answers) = run(Search::Exhaustive);
        assert!(fifo == exhaustive, "{ranges:?}");
        assert!(fifo_cost < exhaustive_cost / 2, "{fifo_cost} {exhaustive_cost}");
        assert!(exhaustive_cost % 512 == 0 && exhaustive_cost <= answers * 512);
    }
}

#[test]
fn without_loss_a_fifo_search_looks_at_each_packet_once() {
    let mut link = Link::new(&small(), packets(&small(), 3000));
    link.settle();
    assert_eq!(link.sender.operations().slots_searched, 3000);
}

#[test]
fn sequence_numbers_wrap() {
    let config = Config { window: 2048, ..small() };
    let mut link = Link::new(&config, packets(&config, 140_000));
    let mut random = Seed(3).stream("loss");
    link.cost = Duration::from_micros(20);
    link.fate_forward = Box::new(move |_, _| if random.chance(0.001) { Fate::Lose } else { Fate::Pass });
    link.settle();
    complete(&link, 140_000);
    assert_eq!(link.receiver.duplicates(), 0);
}

#[test]
fn exchange_numbers_and_times_wrap() {
    let gap = Some(Duration::from_micros(400));
    let config = Config { sync_period: SyncPeriod::Fixed(Duration::from_micros(100)), gap, ..small() };
    let mut link = Link::new(&config, packets(&config, 20_000));
    let mut random = Seed(4).stream("loss");
    let mut other = Seed(5).stream("loss");
    link.cost = Duration::from_micros(10);
    link.fate_forward = Box::new(move |_, _| if random.chance(0.01) { Fate::Lose } else { Fate::Pass });
    link.fate_back = Box::new(move |_, _| if other.chance(0.01) { Fate::Lose } else { Fate::Pass });
    link.settle();
    complete(&link, 20_000);
    assert!(link.exchanges().len() > 70_000, "{}", link.exchanges().len());
    assert_eq!(link.receiver.duplicates(), 0);
}

#[test]
fn the_window_counts_unacknowledged_packets_and_not_what_they_span() {
    let config = Config { window: 40, ..small() };
    let mut link = Link::new(&config, packets(&config, 400));
    // Packet 0 is lost three times; meanwhile the others go on.
    link.fate_forward = lose_once([0, 0, 0]);
    link.settle();
    complete(&link, 400);
    let (last_try, _) = link.sent.iter().rev().find(|(_, packet)| matches!(packet, Forward::Data(data) if data.seq == 0)).unwrap();
    let span = link.sent.iter().filter(|(at, packet)| at < last_try && matches!(packet, Forward::Data(_))).count();
    assert!(span > 100, "{span} packets left before packet 0 arrived");
}

#[test]
fn misordering_needs_an_offset() {
    let spurious = |offset| {
        let config = Config { offset, ..small() };
        let mut link = Link::new(&config, packets(&config, 2000));
        let mut random = Seed(11).stream("delay");
        link.delay = Box::new(move || Duration::from_micros(10_000 + random.below(4_000)));
        link.reorders = true;
        link.settle();
        complete(&link, 2000);
        link.receiver.duplicates()
    };
    assert!(spurious(0) > 10);
    assert_eq!(spurious(1), 0, "delays vary by less than a period");
}

#[test]
fn the_period_follows_the_round_trip() {
    let config = Config { sync_period: SyncPeriod::Adaptive, rtt: Duration::from_millis(400), ..small() };
    let mut link = Link::new(&config, packets(&config, 5000));
    link.settle();
    complete(&link, 5000);
    let exchanges = link.exchanges();
    assert_eq!(exchanges[0], millis(10), "an eighth of the guess, at most 10 ms");
    let late = exchanges[60].since(exchanges[50]) / 10;
    assert!(late > Duration::from_micros(2_450) && late < Duration::from_micros(2_650), "an eighth of 20 ms: {late}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn nothing_is_sent_in_vain_whatever_states_are_lost_and_however_delay_varies_in_order(
        seed in any::<u64>(),
        data_loss in 0.0f64..0.2,
        state_loss in 0.0f64..0.9,
        jitter_us in 0u64..60_000,
        ranges in prop::sample::select(Ranges::ALL.to_vec()),
        exhaustive in any::<bool>(),
        window in 1u32..300,
        cost_us in 0u64..300,
    ) {
        let search = if exhaustive { Search::Exhaustive } else { Search::Fifo };
        let config = Config { ranges, search, window, ..small() };
        let mut link = Link::new(&config, packets(&config, 600));
        let mut forward = Seed(seed).stream("forward");
        let mut back = Seed(seed).stream("back");
        let mut delay = Seed(seed).stream("delay");
        link.cost = Duration::from_micros(cost_us);
        link.fate_forward = Box::new(move |_, packet| {
            let loss = if matches!(packet, Forward::Data(_)) { data_loss } else { state_loss };
            if forward.chance(loss) { Fate::Lose } else { Fate::Pass }
        });
        link.fate_back = Box::new(move |_, _| if back.chance(state_loss) { Fate::Lose } else { Fate::Pass });
        link.delay = Box::new(move || Duration::from_micros(5_000 + delay.below(jitter_us + 1)));
        link.settle();
        complete_or_silent(&link, 600)?;
        prop_assert_eq!(link.receiver.duplicates(), 0, "a packet that was there was sent again");
        let lost = link.sent.iter().filter(|(_, packet)| matches!(packet, Forward::Data(_))).count() as u64 - 600;
        prop_assert_eq!(link.repeated(), lost);
    }

    #[test]
    fn any_finite_loss_ends_in_full_delivery(
        seed in any::<u64>(),
        loss in 0.0f64..1.0,
        quiet_after in 0u64..3000,
        lengths in prop::collection::vec(0u64..1500, 0..60),
        class in 4u8..8,
        ranges in prop::sample::select(Ranges::ALL.to_vec()),
        connect in any::<bool>(),
        offset in 0u16..3,
        reorders in any::<bool>(),
        credit in 1u16..100,
    ) {
        let class = Class::new(class).unwrap();
        let config = Config { class, ranges, connect, offset, credit, segment_packets: 16, ..small() };
        let mut link = Link::new(&config, lengths.iter().copied());
        let mut forward = Seed(seed).stream("forward");
        let mut back = Seed(seed).stream("back");
        let mut delay = Seed(seed).stream("delay");
        let mut fate = move |at: Instant| match at < millis(quiet_after) && forward.chance(loss) {
            true if forward.chance(0.3) => Fate::Twice,
            true => Fate::Lose,
            false => Fate::Pass,
        };
        link.fate_forward = Box::new(move |at, _| fate(at));
        link.fate_back = Box::new(move |at, _| if at < millis(quiet_after) && back.chance(loss) { Fate::Lose } else { Fate::Pass });
        link.delay = Box::new(move || Duration::from_micros(5_000 + delay.below(20_000)));
        link.reorders = reorders;
        link.settle();
        complete_or_silent(&link, lengths.len())?;
    }
}

/// All was delivered, and unless the release itself was lost too often both sides know.
fn complete_or_silent(link: &Link, segments: usize) -> Result<(), TestCaseError> {
    prop_assert!(link.sender.failure().is_none());
    prop_assert_eq!(link.order(), (0..segments as u64).collect::<Vec<_>>());
    prop_assert!(link.delivered.iter().all(|it| it.1 == Verdict::Complete && it.3 == 0));
    prop_assert_eq!(link.judged.len(), segments);
    prop_assert!(link.sender.is_released());
    Ok(())
}

/// What a peer may claim.
fn report() -> impl Strategy<Value = Feedback> {
    let numbers = (any::<u16>(), 0u16..700, any::<bool>(), 0u8..8);
    (numbers, prop::collection::vec((0u16..700, 0u16..700), 0..4), 0u16..20).prop_map(|((wild, caack, tame, class), pairs, esync)| {
        let mut ranges = crate::htpnet::RangeList::new(crate::htpnet::Pairs::Four);
        pairs.iter().for_each(|(bseq, eseq)| assert!(ranges.push(*bseq, *eseq)));
        Feedback::State(crate::htpnet::ReceiverState {
            connection: 1,
            esync: if tame { esync } else { wild },
            etime: wild,
            spgap: wild,
            class: Class::new(class).unwrap(),
            rate: wild % 400,
            caack: if tame { caack } else { wild },
            coverage: [Coverage::Whole, Coverage::Continued, Coverage::Succeeding][usize::from(wild % 3)],
            ranges,
            credit: wild,
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_report_makes_the_sender_panic(reports in prop::collection::vec(report(), 0..60)) {
        let config = Config { window: 700, class: Class::ALL, ..small() };
        let mut link = Link::new(&config, packets(&config, 1000));
        link.run(millis(60));
        for report in reports {
            link.sender.handle_feedback(link.now, &report);
        }
        link.run(millis(500));
    }

    #[test]
    fn no_packet_makes_the_receiver_panic_or_deliver_twice(
        forged in prop::collection::vec((any::<u16>(), 0u32..2000, 0u16..20, any::<bool>(), 0u8..8, any::<bool>()), 0..80),
    ) {
        use segstream_base::halves::Receiver as _;
        let config = Config { class: Class::ALL, ..small() };
        let mut link = Link::new(&config, packets(&config, 300));
        link.run(millis(15));
        for (number, segment, packet, last, class, is_data) in forged {
            let forged = if is_data {
                Forward::Data(crate::htpnet::Data { connection: 1, seq: number, segment, packet, last, room: 100, bytes: 100 })
            } else {
                let class = Class::new(class).unwrap();
                Forward::State(crate::htpnet::TransmitterState { connection: 1, sync: number, time: 0, lseq: number / 2, class, rate: 0 })
            };
            link.receiver.handle_forward(link.now, &forged);
        }
        link.run(millis(2000));
        let mut order = link.order();
        order.sort_unstable();
        let count = order.len();
        order.dedup();
        prop_assert_eq!(order.len(), count);
    }
}
