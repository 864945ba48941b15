//! The flags of schemes whose end systems limit them: HTPNET and the TCP it is compared with (HT 6, HT 7).
//!
//! Called by the flags of `segstream sim`.
//!
//! Invariant: what is not given is as HT has it, or as usual where the scheme has no such setting.

use crate::quantity;
use clap::Args;
use segstream_base::Duration;
use segstream_blocks::Search;
use segstream_lab::scenario::{Scenario, words};
use segstream_schemes::tcp::Backoff;

/// What an end system does and what that costs it.
#[derive(Debug, Args)]
#[command(next_help_heading = "For htpnet and tcp")]
pub(crate) struct EndSystem {
    /// Processor time of the sender per data packet, in microseconds [default: 83].
    #[arg(long, value_name = "US", value_parser = microseconds)]
    service_us: Option<Duration>,
    /// Processor time per entry searched in htpnet's table of sent packets, in microseconds [default: 0].
    #[arg(long, value_name = "US", value_parser = microseconds)]
    search_us: Option<Duration>,
    /// Processor time per operation on the sender's timer list, and per timer passed in it, in microseconds [default: 0,0].
    #[arg(long, value_name = "US,US", value_parser = timer_cost)]
    timer_us: Option<(Duration, Duration)>,
    /// How tcp backs off its retransmission timeout: retain (Karn), own (one for each packet) or oldest (one timer).
    #[arg(long, value_name = "HOW", default_value = "retain")]
    backoff: Backoff,
    /// The granularity of tcp's timers [default: none].
    #[arg(long, value_name = "T", value_parser = quantity::positive_duration)]
    timer_tick: Option<Duration>,
    /// The interval at which htpnet exchanges state [default: an eighth of the round-trip time, 1 to 10 ms].
    #[arg(long, value_name = "T", value_parser = quantity::positive_duration)]
    sync_period: Option<Duration>,
    /// How many exchanges htpnet waits before it declares a packet lost.
    #[arg(long, value_name = "N", default_value_t = 0)]
    offset: u16,
    /// How many ranges of packets htpnet's receiver reports: 4, 8, all, or rotate (4 at a time, in turns).
    #[arg(long, value_name = "HOW", value_parser = words::ranges, default_value = "4")]
    ranges: words::Ranges,
    /// How htpnet searches its table of sent packets: fifo or exhaustive.
    #[arg(long, value_name = "HOW", value_parser = words::search, default_value = "fifo")]
    search: Search,
    /// The class of htpnet: error control 4, flow control 2, rate control 1.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=7), default_value_t = 5)]
    class: u8,
    /// Congestion avoidance of htpnet: off, held (holds the rate that the bottleneck serves) or literal (the
    /// law exactly as in HT).
    #[arg(long, value_name = "LAW", value_parser = words::ptif, num_args = 0..=1, require_equals = true, default_value = "off",
        default_missing_value = "held")]
    ptif: words::Ptif,
}

impl EndSystem {
    /// Tells the scenario; `usual` is the service where none is given.
    pub(super) fn tell(&self, usual: Duration, scenario: &mut Scenario) {
        scenario.service = self.service_us.unwrap_or(usual);
        scenario.search_cost = self.search_us.unwrap_or(Duration::ZERO);
        scenario.timer_cost = self.timer_us.unwrap_or((Duration::ZERO, Duration::ZERO));
        scenario.backoff = self.backoff;
        scenario.timer_tick = self.timer_tick.unwrap_or(Duration::ZERO);
        scenario.sync_period = self.sync_period;
        scenario.offset = self.offset;
        scenario.ranges = self.ranges;
        scenario.search = self.search;
        scenario.class = self.class;
        scenario.ptif = self.ptif;
    }
}

/// Microseconds without their measure: `83`, `1.1`.
pub(super) fn microseconds(text: &str) -> Result<Duration, String> {
    quantity::duration(&format!("{}us", text.trim())).map_err(|_| format!("\"{text}\" is not a number of microseconds; write 83 or 1.1"))
}

/// Two such: `5,1`.
fn timer_cost(text: &str) -> Result<(Duration, Duration), String> {
    let (each, passed) = text.split_once(',').ok_or_else(|| {
        format!("\"{text}\" is not what a timer costs; write what an operation costs and what each timer passed does, such as 5,1")
    })?;
    Ok((microseconds(each)?, microseconds(passed)?))
}
