//! The flags of what packets cost the sender's processor, where that is the limit: HTPNET and the TCP it is compared with
//! (HT 6, HT 7).
//!
//! Called by the flags of `segstream sim`.
//!
//! Invariant: the defaults are those of HT, or zero where the scheme has no such costs.

use crate::quantity;
use clap::Args;
use segstream_base::Duration;
use segstream_lab::scenario::BlackBox;

/// What packets cost the sender's processor.
#[derive(Debug, Args)]
#[command(next_help_heading = "For htpnet and tcp")]
pub(crate) struct SenderCosts {
    /// Processor time of the sender per data packet, in microseconds [default: 83].
    #[arg(long, value_name = "US", value_parser = microseconds)]
    service_us: Option<Duration>,
    /// Processor time per entry searched in htpnet's table of sent packets, in microseconds [default: 0].
    #[arg(long, value_name = "US", value_parser = microseconds)]
    search_us: Option<Duration>,
    /// Processor time per operation on the sender's timer list, and per timer passed in it, in microseconds [default: 0,0].
    #[arg(long, value_name = "US,US", value_parser = timer_cost)]
    timer_us: Option<(Duration, Duration)>,
}

impl SenderCosts {
    /// Sets the costs of the black box; `service` is the default cost of a packet.
    pub(super) fn tell(&self, service: Duration, black_box: &mut BlackBox) {
        black_box.service = self.service_us.unwrap_or(service);
        black_box.search_cost = self.search_us.unwrap_or(Duration::ZERO);
        black_box.timer_cost = self.timer_us.unwrap_or((Duration::ZERO, Duration::ZERO));
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
