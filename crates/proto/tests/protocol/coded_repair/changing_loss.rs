//! What the path loses changes every five seconds: the estimate follows within a second, and what it over-estimates costs at most the budget.

use super::{Live, Parts, TARGET};
use crate::bottleneck::{Transfer, at_ms};
use core::ops::RangeInclusive;
use segstream_base::Duration;

/// A loss process in force for five seconds.
struct Phase {
    loss: &'static str,
    /// The rates that the estimate may have once it knows this process only. With independent losses of rate p the window of 0.8 s, some
    /// 6500 shipments, has sqrt(p / 6500) as the standard deviation: 3.7e-3 at 1e-1, 4e-4 at 1e-3; runs of 8 multiply it by sqrt(15): 4.8e-3 at
    /// 1e-2. These are five of them, and none contains a rate of the phase before.
    rates: RangeInclusive<f64>,
}

const PHASES: [Phase; 6] = [
    Phase { loss: "1e-3", rates: 0.0..=3e-3 },
    Phase { loss: "1e-1", rates: 0.08..=0.12 },
    Phase { loss: "gilbert:rate=1%,burst=8", rates: 1e-9..=3.4e-2 },
    Phase { loss: "none", rates: 0.0..=0.0 },
    Phase { loss: "1e-1", rates: 0.08..=0.12 },
    Phase { loss: "1e-3", rates: 0.0..=3e-3 },
];
const PHASE_MS: u64 = 5000;

/// At 1e-1 the load of 70 % leaves room for what is lost and the budget.
const LIVE: Live = Live { loss: "none", period: Duration::from_millis(30), parts: Parts::Both(TARGET), ..Live::RELIABLE };
/// The most that may be coded ahead of a segment.
const BUDGET_UNITS: u64 = 256 * TARGET.budget_permille as u64 / 1000;

fn transfer(live: &Live, seed: u64) -> Transfer {
    let mut from = 0..;
    let processes = PHASES.map(|phase| (at_ms(PHASE_MS * from.next().unwrap_or_default()), phase.loss));
    live.transfer(seed).losing(&processes, seed)
}

/// Whether the sender reckons with what is lost in `phase`.
fn knows(transfer: &Transfer, phase: &Phase) -> bool {
    phase.rates.contains(&transfer.sender.half.loss_estimate(transfer.now).unwrap().rate())
}

#[test]
fn the_estimate_follows_a_change_within_a_second() {
    for seed in 1..=3 {
        let mut transfer = transfer(&LIVE, seed);
        for (phase, from) in PHASES.iter().zip((0..).step_by(PHASE_MS as usize)) {
            for now in (from + 1000..=from + PHASE_MS).step_by(100) {
                transfer.run_to(at_ms(now));
                let estimate = transfer.sender.half.loss_estimate(transfer.now);
                assert!(knows(&transfer, phase), "seed {seed}, {} ms into {}: {estimate:?}", now - from, phase.loss);
            }
        }
    }
}

#[test]
fn an_over_estimate_costs_at_most_the_budget_and_ends() {
    let mut transfer = transfer(&LIVE, 1);
    // Into the bursts and into the end of losses the estimate comes from above; a segment more may begin or end in the second.
    for (change, most) in [(2, BUDGET_UNITS * (1000 / 30 + 2)), (3, BUDGET_UNITS * (1000 / 30 + 2))] {
        transfer.run_to(at_ms(change * PHASE_MS));
        let before = transfer.sender.half.counters.repair_units_ahead;
        transfer.run_to(at_ms(change * PHASE_MS + 1000));
        let ahead = transfer.sender.half.counters.repair_units_ahead - before;
        assert!((1..=most).contains(&ahead), "{ahead} of at most {most} in the second after change {change}");
    }
    // Nothing has been lost for a second, and the sender knows.
    let before = transfer.sender.half.counters.repair_units_sent;
    transfer.run_to(at_ms(4 * PHASE_MS));
    assert_eq!(transfer.sender.half.counters.repair_units_sent, before);
}

/// Prints, for each phase and five seeds together: after how long the estimate is that of the phase and stays so, at the latest; the 95th and
/// 99th percentiles of the latency without repair units and with both parts; and what is coded ahead in the first second and later.
#[test]
#[ignore = "a measurement"]
fn table() {
    let mut rows: Vec<Row> = PHASES.iter().map(|_| Row::default()).collect();
    for seed in 1..=5 {
        let plain = Live { parts: Parts::None, ..LIVE };
        for (live, is_coded) in [(plain, false), (LIVE, true)] {
            let mut transfer = transfer(&live, seed);
            for (at, (phase, row)) in PHASES.iter().zip(&mut rows).enumerate() {
                row.run(&mut transfer, at as u64, phase, is_coded);
            }
            assert!(transfer.finish_by(at_ms(50_000)));
            for &(segment, latency) in &transfer.delivered {
                // Those that begin while the estimate is still of the phase before count too.
                if let Some(row) = rows.get_mut((segment.0 * 30 / PHASE_MS) as usize)
                    && segment.0 >= 30
                {
                    row.latencies[usize::from(is_coded)].push(latency);
                }
            }
        }
    }
    eprintln!("| loss | known after, ms | none p95 | p99 | both p95 | p99 | ahead in the first second, % | later |");
    for (phase, mut row) in PHASES.iter().zip(rows) {
        let [none, both] = [row.quantiles(0), row.quantiles(1)];
        let [first, later] = [(0, 1000), (1, 4000)].map(|(at, ms)| row.ahead[at] as f64 * 100.0 * 30.0 / (256.0 * 5.0 * ms as f64));
        eprintln!(
            "| {} | {} | {:.1} | {:.1} | {:.1} | {:.1} | {first:.2} | {later:.2} |",
            phase.loss, row.known_after, none[0], none[1], both[0], both[1]
        );
    }
}

/// What became of a phase.
#[derive(Default)]
struct Row {
    known_after: u64,
    latencies: [Vec<Duration>; 2],
    /// Units coded ahead in the first second, and later.
    ahead: [u64; 2],
}

impl Row {
    fn run(&mut self, transfer: &mut Transfer, at: u64, phase: &Phase, is_coded: bool) {
        let mut known_after = 0;
        for into in (50..=PHASE_MS).step_by(50) {
            let before = transfer.sender.half.counters.repair_units_ahead;
            transfer.run_to(at_ms(at * PHASE_MS + into));
            self.ahead[usize::from(into > 1000)] += transfer.sender.half.counters.repair_units_ahead - before;
            if is_coded && !knows(transfer, phase) {
                known_after = into + 50;
            }
        }
        self.known_after = self.known_after.max(known_after);
    }

    fn quantiles(&mut self, of: usize) -> [f64; 2] {
        let latencies = &mut self.latencies[of];
        latencies.sort_unstable();
        [0.95, 0.99].map(|share| latencies[(share * latencies.len() as f64) as usize].as_millis_f64())
    }
}
