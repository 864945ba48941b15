//! The tables of a study's points, one for each kind of experiment: what the expected tables are compared with.
//!
//! Called by [`Measured::csv`].
//!
//! Invariant: six digits, and nothing where a number is not known; a row a point, or a flow of it.

use super::Measured;
use crate::figure::digits;
use crate::shared::FlowOutcome;
use crate::tandem::TandemOutcome;
use std::fmt::Write as _;

const CSV_HEAD: &str = "curve,x,throughput_efficiency,throughput_efficiency_ci95,delay_ms_mean,delay_ms_mean_ci95,delay_ms_max,\
packets_sent,packets_retransmitted,feedback_packets,segments_delivered,trouble\n";

const SHARED_CSV_HEAD: &str = "curve,x,party,throughput_bps,throughput_bps_ci95,share,goodput_bps,loss_share,packets_marked,\
delay_ms_mean,delay_ms_p95,queue_ms_mean,queue_ms_p95,queue_ms_max,trouble\n";

const STAGES_CSV_HEAD: &str = "curve,x,packets_per_second,busiest_share,packets_spurious,trouble\n";

const TANDEM_CSV_HEAD: &str = "curve,x,delay_slots_mean,delay_slots_mean_ci95,throughput_messages_per_slot,overflow_drops,\
packets_sent,packets_retransmitted,feedback_packets,unstable_runs,trouble\n";

impl Measured {
    pub(super) fn stages_csv(&self) -> String {
        let mut csv = String::from(STAGES_CSV_HEAD);
        for point in &self.stages {
            let outcome = &point.result;
            let trouble = if outcome.trouble.is_some() { "trouble" } else { "" };
            // A write to a string cannot fail.
            let _ = writeln!(
                csv,
                "\"{}\",{},{},{},{},{trouble}",
                point.curve,
                point.x,
                digits(outcome.packets_per_second()),
                digits(outcome.busiest_share()),
                outcome.spurious
            );
        }
        csv
    }

    pub(super) fn shared_csv(&self) -> String {
        let mut csv = String::from(SHARED_CSV_HEAD);
        for point in &self.shared {
            let result = &point.result;
            for flow in &result.scenario.flows {
                let of = |value: fn(&FlowOutcome) -> f64| digits(result.of_flow(&flow.name, value).mean);
                let throughput = result.throughput_bps(&flow.name);
                // A write to a string cannot fail.
                let _ = writeln!(
                    csv,
                    "\"{}\",{},\"{}\",{},{},{},{},{},{},{},{},{},{},{},{}",
                    point.curve,
                    point.x,
                    flow.name,
                    digits(throughput.mean),
                    digits(throughput.half_width.unwrap_or(f64::NAN)),
                    digits(result.share(&flow.name).mean),
                    of(FlowOutcome::goodput_bps),
                    of(FlowOutcome::loss_share),
                    of(|flow| flow.packets_marked as f64),
                    of(|flow| flow.delays.mean_ns as f64 * 1e-6),
                    of(|flow| flow.delays.p95_ns as f64 * 1e-6),
                    digits(result.queue_ms_mean().mean),
                    digits(result.queue_ms_p95().mean),
                    digits(result.over_replications(|outcome| outcome.queue.max_ns as f64 * 1e-6).mean),
                    if result.trouble().is_some() { "trouble" } else { "" },
                );
            }
        }
        csv
    }

    pub(super) fn points_csv(&self) -> String {
        let mut csv = String::from(CSV_HEAD);
        for point in &self.points {
            let result = &point.result;
            let (efficiency, delay, max) = (result.throughput_efficiency(), result.delay_ms_mean(), result.delay_ms_max());
            // A write to a string cannot fail.
            let _ = writeln!(
                csv,
                "\"{}\",{},{},{},{},{},{},{},{},{},{},{}",
                point.curve,
                point.x,
                digits(efficiency.mean),
                digits(efficiency.half_width.unwrap_or(f64::NAN)),
                digits(delay.mean),
                digits(delay.half_width.unwrap_or(f64::NAN)),
                digits(max.value),
                result.total(|outcome| outcome.packets_sent),
                result.total(|outcome| outcome.packets_retransmitted),
                result.total(|outcome| outcome.feedback_packets),
                result.total(|outcome| outcome.segments_delivered),
                if result.trouble().is_some() { "trouble" } else { "" },
            );
        }
        csv
    }

    pub(super) fn tandem_csv(&self) -> String {
        let mut csv = String::from(TANDEM_CSV_HEAD);
        for point in &self.tandem {
            let result = &point.result;
            let (delay, throughput) = (result.delay_slots_mean(), result.throughput_messages_per_slot());
            // A write to a string cannot fail.
            let _ = writeln!(
                csv,
                "\"{}\",{},{},{},{},{},{},{},{},{},{}",
                point.curve,
                point.x,
                digits(delay.mean),
                digits(delay.half_width.unwrap_or(f64::NAN)),
                digits(throughput.mean),
                result.total(TandemOutcome::overflow_drops),
                result.total(|outcome| outcome.packets_sent),
                result.total(|outcome| outcome.packets_retransmitted),
                result.total(|outcome| outcome.feedback_packets),
                result.unstable_runs(),
                if result.trouble().is_some() { "trouble" } else { "" },
            );
        }
        csv
    }
}
