//! The flags of schemes whose receiver tells its state at even intervals: adaptive acknowledgment and SSCOP (AA 3.2).
//!
//! Called by the flags of `segstream sim`.
//!
//! Invariant: what is not given is as usual.

use crate::quantity;
use clap::Args;
use segstream_base::Duration;
use segstream_lab::scenario::Scenario;

/// When the state is told.
#[derive(Debug, Args)]
#[command(next_help_heading = "For adaptive-ack and sscop")]
pub(crate) struct Status {
    /// The report interval of adaptive-ack's receiver while nothing is missing.
    #[arg(long, value_name = "T", value_parser = quantity::positive_duration, default_value = "40ms")]
    t_normal: Duration,
    /// The report interval of adaptive-ack's receiver while something is missing.
    #[arg(long, value_name = "T", value_parser = quantity::positive_duration, default_value = "5ms")]
    t_error: Duration,
    /// adaptive-ack's sender waits for ever when the last packets are lost, as in the paper.
    #[arg(long)]
    no_tail_rule: bool,
    /// The interval at which sscop polls while data is outstanding (Timer_POLL).
    #[arg(long, value_name = "T", value_parser = quantity::positive_duration, default_value = "40ms")]
    timer_poll: Duration,
    /// The number of packets after which sscop polls at the latest (MaxPD) [default: no limit].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_pd: Option<u32>,
}

impl Status {
    /// Tells the scenario.
    pub(super) fn tell(&self, scenario: &mut Scenario) {
        scenario.t_normal = self.t_normal;
        scenario.t_error = self.t_error;
        scenario.tail_rule = !self.no_tail_rule;
        scenario.timer_poll = self.timer_poll;
        scenario.max_pd = self.max_pd;
    }
}
