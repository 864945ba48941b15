//! When reports are due, by hand: a shipment each 100 us, a round trip of 40 ms, a window of 1600 units, unless told otherwise.

use super::*;

/// The periods that follow from the path above (`ReportPeriod::set_from`): a gap of 32 shipments, rtt/16 and 512 shipments.
const GAP: Duration = Duration::from_micros(3_200);
const SHORT: Duration = GAP;
const LONG: Duration = Duration::from_micros(51_200);
const SHIPMENT: Duration = Duration::from_micros(100);
const RTT: Duration = Duration::from_millis(40);
const WINDOW: u64 = 1600;
/// The periods before anything is known.
const SHORT_AT_FIRST: Duration = Duration::from_millis(25);
const LONG_AT_FIRST: Duration = Duration::from_millis(200);

const NOTHING: Outstanding = Outstanding { in_repair: 0, unconfirmed: 0 };
const IN_REPAIR: Outstanding = Outstanding { in_repair: 1, unconfirmed: 0 };
const UNCONFIRMED: Outstanding = Outstanding { in_repair: 0, unconfirmed: 1 };

fn us(micros: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(micros)
}

/// A schedule whose last report left at 1 s and echoed shipment 10,000.
fn running() -> ReportSchedule {
    let mut schedule = ReportSchedule::new(Instant::ZERO);
    schedule.set_rtt(RTT);
    schedule.on_data();
    schedule.on_report(us(1_000_000), ShipmentNumber(10_000), WINDOW);
    schedule.on_report_end(1);
    schedule
}

fn due(schedule: &ReportSchedule, outstanding: Outstanding) -> Option<(Instant, &'static str)> {
    schedule.due(outstanding).map(|deadline| (deadline.at, deadline.timer))
}

#[test]
fn the_periods_are_those_of_the_path() {
    let schedule = running();
    assert_eq!((schedule.period.gap(), schedule.period.error(), schedule.period.normal()), (GAP, SHORT, LONG));
    assert_eq!(schedule.arrivals.shipment_time(), SHIPMENT);
    assert_eq!(schedule.round_trip(), Some(RTT));
}

#[test]
fn nothing_is_due_when_nothing_happened_and_nothing_is_outstanding() {
    assert_eq!(due(&running(), NOTHING), None);
    assert_eq!(due(&ReportSchedule::new(Instant::ZERO), NOTHING), None);
}

#[test]
fn what_is_outstanding_says_which_period_holds() {
    let mut schedule = running();
    assert_eq!(due(&schedule, IN_REPAIR), Some((us(1_000_000) + SHORT, "report.short")));
    assert_eq!(due(&schedule, UNCONFIRMED), Some((us(1_000_000) + LONG, "report.long")));
    schedule.on_data();
    assert_eq!(due(&schedule, NOTHING), Some((us(1_000_000) + LONG, "report.long")));
    assert_eq!(due(&schedule, IN_REPAIR), Some((us(1_000_000) + SHORT, "report.short")));
    schedule.on_report(us(1_050_000), ShipmentNumber(10_500), WINDOW);
    assert_eq!(due(&schedule, NOTHING), None, "a report tells what came");
    schedule.on_state();
    assert_eq!(due(&schedule, NOTHING).map(|due| due.1), Some("report.long"), "a state is to be answered too");
}

#[test]
fn before_a_round_trip_is_known_the_longest_periods_hold() {
    let schedule = ReportSchedule::new(us(500));
    assert_eq!(due(&schedule, IN_REPAIR), Some((us(500) + SHORT_AT_FIRST, "report.short")));
    assert_eq!(due(&schedule, UNCONFIRMED), Some((us(500) + LONG_AT_FIRST, "report.long")));
    assert_eq!(schedule.round_trip(), None);
    assert_eq!(schedule.window_update_lead(), None);
    assert!(!schedule.exhausts_window_within(1, 1));
}

#[test]
fn an_immediate_report_leaves_at_once_but_two_shipments_after_the_last() {
    let mut schedule = running();
    schedule.report_now(us(1_000_050));
    assert_eq!(due(&schedule, NOTHING), Some((us(1_000_000) + SHIPMENT * 2, "report.news")));
    assert!(!schedule.is_requested_by(us(1_000_199)) && schedule.is_requested_by(us(1_000_200)));
    let mut schedule = running();
    schedule.report_now(us(1_002_000));
    assert_eq!(due(&schedule, NOTHING), Some((us(1_002_000), "report.news")));
    schedule.on_report(us(1_002_000), ShipmentNumber(10_020), WINDOW);
    assert!(!schedule.is_requested_by(us(9_000_000)), "a report answers the request");
}

#[test]
fn of_two_requests_the_earlier_holds() {
    let mut schedule = running();
    schedule.report_now(us(1_002_000));
    schedule.report_now(us(1_001_000));
    schedule.report_now(us(1_003_000));
    assert_eq!(due(&schedule, IN_REPAIR), Some((us(1_001_000), "report.news")));
}

#[test]
fn a_request_for_later_does_not_put_off_a_period() {
    let mut schedule = running();
    schedule.report_now(us(1_000_000) + SHORT + SHORT);
    assert_eq!(due(&schedule, IN_REPAIR), Some((us(1_000_000) + SHORT, "report.short")));
}

#[test]
fn a_delayed_report_leaves_a_short_period_after_the_last() {
    let mut schedule = running();
    schedule.report_delayed(us(1_001_000));
    assert_eq!(due(&schedule, NOTHING), Some((us(1_000_000) + SHORT, "report.news")));
    let mut schedule = running();
    schedule.report_delayed(us(1_020_000));
    assert_eq!(due(&schedule, NOTHING), Some((us(1_020_000), "report.news")), "that time is over");
}

#[test]
fn reports_within_the_budget_are_a_gap_apart_when_the_burst_is_spent() {
    let mut schedule = running();
    let mut now = us(1_000_000);
    let mut apart = Vec::new();
    for _ in 0..8 {
        schedule.report_now_within_budget(now);
        let at = schedule.due(NOTHING).unwrap().at;
        apart.push(at.since(now));
        now = at;
        (schedule.last, schedule.requested_at) = (now, None);
        schedule.on_report_end(1);
    }
    // One had left before. Three more and the first that is not in the burst have only the shipments between them.
    assert_eq!(apart[..4], [SHIPMENT * 2; 4]);
    assert_eq!(apart[5..], [GAP; 3]);
}

#[test]
fn within_the_budget_too_two_shipments_lie_between_reports() {
    let mut schedule = running();
    schedule.report_now_within_budget(us(1_000_050));
    assert_eq!(due(&schedule, NOTHING), Some((us(1_000_000) + SHIPMENT * 2, "report.news")));
}

#[test]
fn a_report_of_many_shipments_spends_the_budget_of_as_many() {
    let mut schedule = running();
    schedule.on_report_end(8);
    schedule.report_now_within_budget(us(1_000_000));
    // Nine shipments in all, of which a burst of four is free.
    assert_eq!(due(&schedule, NOTHING), Some((us(1_000_000) + GAP * 5, "report.news")));
}

/// The distances of the next so many reports while units are requested; before each of them `arrives` says what came.
fn distances(schedule: &mut ReportSchedule, count: u32, arrives: impl Fn(&mut ReportSchedule)) -> Vec<Duration> {
    let last = schedule.last;
    let mut apart = Vec::new();
    for _ in 0..count {
        arrives(schedule);
        let at = schedule.due(IN_REPAIR).unwrap().at;
        apart.push(at.since(schedule.last));
        schedule.on_report(at, ShipmentNumber(10_000), WINDOW);
        // What follows from the time that passes is not looked at here.
        schedule.arrivals = ArrivalRate::default();
        schedule.arrivals.on_report(SHIPMENT * 10_000, ShipmentNumber(10_000));
        schedule.period.set_from(RTT, SHIPMENT, WINDOW);
    }
    assert_eq!(apart.iter().copied().fold(Duration::ZERO, |sum, distance| sum + distance), schedule.last.since(last));
    apart
}

#[test]
fn reports_between_which_nothing_arrives_are_rarer_up_to_the_long_period() {
    let mut schedule = running();
    assert_eq!(distances(&mut schedule, 6, |_| ()), [SHORT, SHORT * 2, SHORT * 4, SHORT * 8, LONG, LONG]);
    schedule.on_data();
    assert_eq!(distances(&mut schedule, 3, |_| ()), [SHORT, SHORT, SHORT * 2], "the next report tells of the arrival");
    assert_eq!(distances(&mut schedule, 6, ReportSchedule::on_data), [SHORT; 6]);
}

#[test]
fn reports_to_a_sender_without_states_back_off_to_the_longest_distance() {
    let mut schedule = running();
    let distances = distances(&mut schedule, 64, ReportSchedule::on_data);
    assert_eq!(schedule.unacked_reports, 65);
    // One report had left before the first distance. Doubled with the 24th report and each eighth after it.
    assert!(distances[..23].iter().all(|distance| *distance == SHORT), "{distances:?}");
    assert!(distances[23..31].iter().all(|distance| *distance == SHORT * 2), "{distances:?}");
    assert!(distances[31..39].iter().all(|distance| *distance == SHORT * 4), "{distances:?}");
    assert_eq!(distances[55], SHORT * 32);
    schedule.unacked_reports = u32::MAX;
    assert_eq!(schedule.due(IN_REPAIR).unwrap().at.since(schedule.last), BACKOFF_MAX);
    schedule.on_state();
    assert_eq!(schedule.due(IN_REPAIR).unwrap().at.since(schedule.last), SHORT, "the sender is heard again");
}

#[test]
fn a_back_off_stops_at_ten_doublings() {
    let mut schedule = running();
    schedule.unacked_reports = 10_000;
    let short = Duration::from_micros(10);
    assert_eq!(schedule.backed_off(short), short * 1024);
}

#[test]
fn a_sender_near_the_edge_of_its_window_is_known_by_the_rate_of_its_shipments() {
    let mut schedule = running();
    schedule.on_shipment(us(1_000_000));
    schedule.on_confirmed(us(1_040_000), Some(ReportNumber(0)), ReportNumber(1));
    // A round trip is 400 shipments.
    assert!(schedule.exhausts_window_within(399, 1) && !schedule.exhausts_window_within(400, 1));
    assert!(schedule.exhausts_window_within(799, 2) && !schedule.exhausts_window_within(800, 2));
    assert_eq!(schedule.window_update_lead(), Some(RTT * 3 / 2 + SHIPMENT * 2));
}

#[test]
fn a_confirmed_report_is_a_sample_from_which_the_periods_follow() {
    let mut schedule = ReportSchedule::new(Instant::ZERO);
    schedule.on_report(us(1_000_000), ShipmentNumber(10_000), WINDOW);
    schedule.on_shipment(us(1_000_000));
    schedule.on_confirmed(us(1_040_000), None, ReportNumber(1));
    assert_eq!(schedule.period.normal(), LONG_AT_FIRST, "nothing was confirmed");
    schedule.on_confirmed(us(1_040_000), Some(ReportNumber(0)), ReportNumber(1));
    assert_eq!((schedule.period.error(), schedule.period.normal()), (SHORT, LONG));
    assert_eq!(schedule.round_trip(), Some(RTT));
}

#[test]
fn another_path_begins_with_the_longest_periods() {
    let mut schedule = running();
    schedule.on_path_change(us(1_010_000));
    assert_eq!(schedule.round_trip(), None);
    assert_eq!(due(&schedule, UNCONFIRMED), Some((us(1_000_000) + LONG_AT_FIRST, "report.long")));
}

#[test]
fn a_sender_that_became_eight_times_as_fast_is_reported_to_by_its_new_rate() {
    // As many shipments as one report covers, in a little more and in less than an eighth of their time.
    let eighth = SHIPMENT * SHARE_NORMAL / SPEEDUP;
    let after = |elapsed: Duration, shipments: u64| {
        let mut schedule = running();
        schedule.update_periods_if_faster(us(1_000_000) + elapsed, ShipmentNumber(10_000 + shipments));
        schedule.arrivals.shipment_time()
    };
    assert_eq!(after(eighth, SHARE_NORMAL), SHIPMENT, "just eight times is not more");
    let faster = eighth.saturating_sub(Duration::from_micros(512));
    assert_eq!(after(faster, SHARE_NORMAL), faster / SHARE_NORMAL);
    assert_eq!(after(Duration::from_micros(100), SHARE_NORMAL - 1), SHIPMENT, "too few to tell");
    assert_eq!(after(eighth, 2 * SHARE_NORMAL), eighth / (2 * SHARE_NORMAL));
}
