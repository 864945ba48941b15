//! Schemes that their end systems limit, against closed forms and what lighter simulations give.

use segstream_base::Bandwidth;
use segstream_base::Duration;
use segstream_base::Tolerance;
use segstream_base::random::Seed;
use segstream_lab::closed_forms::StateExchange;
use segstream_lab::outcome::Outcome;
use segstream_lab::registry;
use segstream_lab::run::run;
use segstream_lab::scenario::Scenario;
use segstream_schemes::htpnet::{self, Class, Ranges};
use segstream_schemes::tcp::{self, Backoff};
use segstream_schemes::{adaptive_ack, sscop};

const SERVICE: Duration = Duration::from_micros(83);
const PERIOD: Duration = Duration::from_millis(5);

/// Segments of one packet on a line that plays no part; control is never lost.
fn scenario(scheme: &str, rtt_ms: u64, window: u32, packets: u64) -> Scenario {
    Scenario::default().with(|it| {
        it.scheme = registry::find(scheme).unwrap().config();
        it.black_box.rtt = Duration::from_millis(rtt_ms);
        it.black_box.bandwidth = Bandwidth::from_megabits_per_second(100_000);
        it.workload.segment_packets = 1;
        it.workload.tolerance = Tolerance::reliable(1);
        it.workload.window = window;
        it.black_box.service = SERVICE;
        it.black_box.control_loss = Some("none".parse().unwrap());
        it.workload.packets = packets;
    })
}

fn outcome(scenario: &Scenario) -> Outcome {
    let outcome = run(scenario, Seed(1)).unwrap().outcome;
    assert_eq!(outcome.trouble, None, "{}", scenario.canonical());
    outcome
}

fn assert_near(found: f64, wanted: f64, share: f64, what: &str) {
    assert!((found / wanted - 1.0).abs() < share, "{what}: {found:.1} instead of {wanted:.1}, {:.4}", found / wanted);
}

fn exchange(scenario: &Scenario) -> StateExchange {
    StateExchange {
        service_s: scenario.black_box.service.as_secs_f64(),
        window: scenario.workload.window,
        rtt_s: scenario.black_box.rtt.as_secs_f64(),
        period_s: PERIOD.as_secs_f64(),
        pairs: match scenario.scheme.settings_of::<htpnet::Settings>().unwrap().ranges {
            Ranges::Four => Some(4),
            Ranges::Eight => Some(8),
            Ranges::Rotating | Ranges::All => None,
        },
    }
}

#[test]
fn htpnet_without_loss_sends_a_window_an_exchange_or_a_packet_a_service() {
    for rtt_ms in [20, 40] {
        for window in [16, 64, 128, 256, 512, 1024] {
            let scenario =
                scenario("htpnet", rtt_ms, window, 60_000).with_settings(|it: &mut htpnet::Settings| it.sync_period = Some(PERIOD));
            let found = outcome(&scenario).throughput_packets_per_second();
            assert_near(found, exchange(&scenario).throughput(0.0), 0.01, &scenario.canonical());
        }
    }
}

#[test]
fn htpnets_window_comes_back_at_a_whole_number_of_periods() {
    for (rtt_ms, periods) in [(18, 4), (20, 5), (22, 5), (39, 8), (40, 9)] {
        let scenario = scenario("htpnet", rtt_ms, 32, 20_000).with_settings(|it: &mut htpnet::Settings| it.sync_period = Some(PERIOD));
        let wanted = 32.0 / (PERIOD * periods).as_secs_f64();
        assert_near(outcome(&scenario).throughput_packets_per_second(), wanted, 0.005, &scenario.canonical());
    }
}

#[test]
fn htpnet_loses_what_its_processor_its_window_or_its_list_of_ranges_says() {
    let (mut clear, mut knees) = (0, 0);
    for ranges in [Ranges::Four, Ranges::Eight, Ranges::All] {
        for rtt_ms in [20, 40] {
            for window in [64, 128, 256, 512] {
                for p in [1e-4, 1e-3, 1e-2, 3e-2, 0.1] {
                    let loss = p.to_string().parse().unwrap();
                    let scenario = scenario("htpnet", rtt_ms, window, 60_000).with(|it| it.black_box.loss = loss).with_settings(
                        |it: &mut htpnet::Settings| {
                            it.sync_period = Some(PERIOD);
                            it.ranges = ranges;
                        },
                    );
                    let run = outcome(&scenario);
                    assert_eq!(run.packets_received_again, Some(0), "nothing is sent again in vain");
                    let form = exchange(&scenario);
                    let list = form.of_ranges(p) / form.of_processor(p).min(form.of_window(p));
                    let share = run.throughput_packets_per_second() / form.throughput(p);
                    // Why the knee: where the list is about as narrow as the rest, means no longer say the least.
                    if (0.7..2.0).contains(&list) {
                        assert!((0.86..1.01).contains(&share), "{}: {share}", scenario.canonical());
                        knees += 1;
                    } else {
                        assert_near(share, 1.0, 0.03, &scenario.canonical());
                        clear += 1;
                    }
                }
            }
        }
    }
    assert!(clear >= 100 && knees >= 5, "{clear} and {knees}");
}

#[test]
fn htpnet_pays_for_every_slot_that_an_exhaustive_search_looks_at() {
    use segstream_blocks::Search;
    let costly = |search, window| {
        let cost = Duration::from_nanos(1100);
        let scenario = scenario("htpnet", 40, window, 60_000);
        outcome(&scenario.with(|it| it.black_box.search_cost = cost).with_settings(|it: &mut htpnet::Settings| {
            it.sync_period = Some(PERIOD);
            it.search = search;
        }))
        .throughput_packets_per_second()
    };
    // FIFO looks at every packet once and at the first of the next group. Exhaustive looks at all W slots an exchange.
    let slot = 1.1e-6;
    let fifo = (1.0 - slot / PERIOD.as_secs_f64()) / (SERVICE.as_secs_f64() + slot);
    assert_near(costly(Search::Fifo, 1024), fifo, 0.01, "FIFO");
    let exhaustive = (1.0 - 1024.0 * slot / PERIOD.as_secs_f64()) / SERVICE.as_secs_f64();
    assert_near(costly(Search::Exhaustive, 1024), exhaustive, 0.01, "exhaustive");
}

#[test]
fn tcp_without_loss_sends_a_window_a_round_trip_or_a_packet_a_service() {
    for backoff in [Backoff::Retain, Backoff::Own, Backoff::Oldest] {
        for rtt_ms in [20, 40] {
            for window in [16, 64, 256, 1024] {
                let scenario = scenario("tcp", rtt_ms, window, 60_000).with_settings(|it: &mut tcp::Settings| it.backoff = backoff);
                let run = outcome(&scenario);
                let wanted = (f64::from(window) / scenario.black_box.rtt.as_secs_f64()).min(1.0 / SERVICE.as_secs_f64());
                assert_near(run.throughput_packets_per_second(), wanted, 0.01, &scenario.canonical());
                assert_eq!((run.packets_retransmitted, run.packets_received_again), (0, Some(0)));
            }
        }
    }
}

/// Every packet sets a timer behind those of all packets in flight and clears it in front of them.
#[test]
fn tcp_pays_for_every_timer_it_passes() {
    let timer_cost = (Duration::from_micros(5), Duration::from_nanos(100));
    let (set, passed) = (5e-6, 1e-7);
    let rtt = 0.04;
    // Where the processor is the limit, X RTD packets are in flight: X (s + 2 c + c' X RTD) = 1.
    let busy = SERVICE.as_secs_f64() + 2.0 * set;
    let wanted = 2.0 / (busy + (busy * busy + 4.0 * passed * rtt).sqrt());
    let found = outcome(&scenario("tcp", 40, 2048, 60_000).with(|it| it.black_box.timer_cost = timer_cost)).throughput_packets_per_second();
    assert_near(found, wanted, 0.01, "the processor");
    // Where the window is, the acknowledgment of a packet costs what clears its timer before the next one leaves.
    let found = outcome(&scenario("tcp", 40, 64, 60_000).with(|it| it.black_box.timer_cost = timer_cost)).throughput_packets_per_second();
    assert_near(found, 64.0 / (rtt + set), 0.01, "the window");
}

/// A lost packet holds the window until its timer has run out and its repetition is acknowledged. Lost is the first packet
/// of a window: what leaves between two windows is then as without loss.
#[test]
fn a_lone_loss_costs_tcp_two_round_trips_and_a_window_more_with_one_timer() {
    const WINDOW: u64 = 128;
    for rtt_ms in [20, 40] {
        for backoff in [Backoff::Retain, Backoff::Own, Backoff::Oldest] {
            // All timers of the window run out behind the first, or the only one; the list counts what was retransmitted.
            let again = if backoff == Backoff::Oldest { 1 } else { WINDOW };
            let losses: Vec<String> = (1..=20).map(|at| (at * 32 * WINDOW + (at - 1) * again).to_string()).collect();
            let clean = scenario("tcp", rtt_ms, WINDOW as u32, 100_000).with_settings(|it: &mut tcp::Settings| it.backoff = backoff);
            let lossy = clean.clone().with(|it| it.black_box.loss = format!("list:{}", losses.join(",")).parse().unwrap());
            let (clean, lossy) = (outcome(&clean), outcome(&lossy));
            assert_eq!((lossy.packets_lost, lossy.packets_retransmitted), (20, 20 * again));
            assert_eq!(lossy.packets_received_again, Some(20 * (again - 1)));
            let cost_ms = (lossy.span_ns - clean.span_ns) as f64 * 1e-6 / 20.0;
            // The one timer is started anew by the last acknowledgment of the window before.
            let later_ms = if backoff == Backoff::Oldest { 0.083 * (WINDOW - 1) as f64 } else { 0.0 };
            assert_near(cost_ms, 2.0 * rtt_ms as f64 + later_ms, 0.002, &format!("{backoff} at {rtt_ms} ms"));
        }
    }
}

#[test]
fn a_source_that_offers_less_than_can_be_sent_is_served_as_it_offers() {
    for scheme in ["tcp", "htpnet"] {
        let scenario = scenario(scheme, 20, 256, 20_000).with(|it| it.workload.offered = Some(2000));
        assert_near(outcome(&scenario).throughput_packets_per_second(), 2000.0, 0.01, scheme);
    }
}

#[test]
fn a_queue_of_packets_drops_what_is_offered_beyond_the_bottleneck() {
    // 4000 packets of 1024 bytes a second, and 8000 leave.
    let bandwidth = Bandwidth::from_bits_per_second(4000 * 8192);
    let fast = scenario("htpnet", 20, 1024, 20_000)
        .with(|it| {
            it.black_box.service = Duration::from_micros(125);
            it.black_box.bandwidth = bandwidth;
        })
        .with_settings(|it: &mut htpnet::Settings| it.class = Class::new(4).unwrap());
    let short = outcome(&fast.clone().with(|it| it.black_box.queue_packets = Some(64)));
    let long = outcome(&fast.with(|it| it.black_box.queue_packets = Some(10_000)));
    assert!(short.packets_retransmitted > 1000, "{}", short.packets_retransmitted);
    assert_eq!((long.packets_retransmitted, long.packets_received_again), (0, Some(0)));
}

/// AA Table 1: both ends work, 400 packets of window, a tenth of the bandwidth back, losses of data alone.
fn atm_cluster(scheme: &str, packets: u64) -> Scenario {
    Scenario::default().with(|it| {
        it.scheme = registry::find(scheme).unwrap().config();
        it.black_box.rtt = Duration::ZERO;
        it.black_box.bandwidth = Bandwidth::from_megabits_per_second(100);
        it.black_box.bandwidth_back = Some(Bandwidth::from_megabits_per_second(10));
        it.workload.segment_packets = 1;
        it.workload.tolerance = Tolerance::reliable(1);
        it.workload.window = 400;
        it.black_box.work = (Duration::from_micros(70), Duration::from_nanos(50));
        it.black_box.control_loss = Some("none".parse().unwrap());
        it.workload.packets = packets;
    })
}

fn efficiency(scenario: &Scenario) -> f64 {
    outcome(scenario).throughput_efficiency(scenario.reference_time_s())
}

#[test]
fn adaptive_acknowledgment_without_loss_pays_for_its_answers_or_waits_for_its_window() {
    // An answer is 71.6 us of work in every period; a window of 400 packets takes 48.48 ms.
    for t_normal_ms in [5, 10, 20, 30, 40, 60, 80] {
        let scenario = atm_cluster("adaptive-ack", 60_000)
            .with_settings(|it: &mut adaptive_ack::Settings| it.t_normal = Duration::from_millis(t_normal_ms));
        let period_s = t_normal_ms as f64 * 1e-3;
        let wanted = (1.0 - 71.6e-6 / period_s).min(400.0 * 121.2e-6 / period_s);
        assert_near(efficiency(&scenario), wanted, 0.007, &scenario.canonical());
    }
}

#[test]
fn under_loss_adaptive_acknowledgment_and_sscop_carry_what_their_periods_let_them() {
    let sscop = |poll_ms| atm_cluster("sscop", 0).with_settings(|it: &mut sscop::Settings| it.timer_poll = Duration::from_millis(poll_ms));
    let cases = [
        (atm_cluster("adaptive-ack", 0), [(1e-3, 0.997), (1e-2, 0.984), (1e-1, 0.853)]),
        (sscop(40), [(1e-3, 0.995), (1e-2, 0.973), (1e-1, 0.677)]),
        (sscop(10), [(1e-3, 0.984), (1e-2, 0.971), (1e-1, 0.848)]),
    ];
    for (scenario, points) in cases {
        for (p, wanted) in points {
            let scenario = scenario.clone().with(|it| {
                it.black_box.loss = p.to_string().parse().unwrap();
                it.workload.packets = 100_000;
            });
            // Why wider at the highest loss: what is lost again waits for the next poll, and so the end of a window decides.
            assert_near(efficiency(&scenario), wanted, if p < 0.05 { 0.01 } else { 0.05 }, &scenario.canonical());
        }
    }
}
