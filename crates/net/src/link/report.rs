//! The report of a link: its counters, and whether the emulation was exact enough.
//!
//! Called by the relay when it ends.
//!
//! Invariant: in each direction everything the path delivered is accounted for: `delivered = sent +
//! dropped_limit + dropped_send_buffer + dropped_refused + dropped_client_gone + unsent`.

use super::lateness::Lateness;
use super::priority::Priority;
use super::queueing::Queueing;
use crate::bind::SocketWarning;
use segstream_base::Duration;
use segstream_path::PathCounters;

/// What happened to the datagrams that the path of one direction delivered, including copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RelayCounters {
    /// Sent.
    pub sent: u64,
    /// Dropped because the relay's buffer was full (262,144 datagrams or 512 MiB).
    pub dropped_limit: u64,
    /// Dropped because the send buffer was full.
    pub dropped_send_buffer: u64,
    /// Dropped because the network or the system refused them, for example because they are too large.
    pub dropped_refused: u64,
    /// Dropped because their client was evicted before they were due.
    pub dropped_client_gone: u64,
    /// Still on their way when the link ended.
    pub unsent: u64,
}

/// The report of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkReport {
    /// How long it ran.
    pub ran: Duration,
    /// How late datagrams left, both directions together.
    pub lateness: Lateness,
    /// The counters of the forward path.
    pub forward: PathCounters,
    /// The counters of the path back.
    pub back: PathCounters,
    /// What happened to datagrams that the forward path delivered.
    pub forward_relayed: RelayCounters,
    /// What happened to datagrams that the path back delivered.
    pub back_relayed: RelayCounters,
    /// How long datagrams waited in the queue of the forward path.
    pub forward_queueing: Queueing,
    /// How long datagrams waited in the queue of the path back.
    pub back_queueing: Queueing,
    /// Datagrams that entered neither path: those at a client's socket that are not from the destination, and those of a client for
    /// which no socket could be opened.
    pub unroutable: u64,
    /// Clients seen.
    pub clients: u64,
    /// Clients that were evicted because there were more than 64.
    pub clients_evicted: u64,
    /// Datagrams that the kernel dropped before the link could read them; `None` if the system does not report them.
    pub receive_buffer_drops: Option<u64>,
    /// How the link's thread was scheduled. With anything but [`Priority::Realtime`] a busy machine can make it late.
    pub priority: Priority,
    /// Whether the system kept the processors out of deep sleep states. Without that a virtual machine may be late.
    pub kept_awake: bool,
    /// Where the system granted less than was requested.
    pub warnings: Vec<SocketWarning>,
    /// Whether the link kept up: 999 of 1000 datagrams left within the limit of lateness, and none was dropped because the link was
    /// too slow.
    pub kept_up: bool,
}

impl LinkReport {
    /// Sets [`LinkReport::kept_up`] from the other fields.
    pub(super) fn judge(mut self, lateness_limit: Duration) -> Self {
        let too_slow = |relayed: RelayCounters| relayed.dropped_limit > 0 || relayed.dropped_send_buffer > 0;
        self.kept_up = self.lateness.p999 < lateness_limit
            && self.receive_buffer_drops.unwrap_or(0) == 0
            && !too_slow(self.forward_relayed)
            && !too_slow(self.back_relayed);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> LinkReport {
        LinkReport {
            ran: Duration::ZERO,
            lateness: Lateness { p999: Duration::from_micros(999), ..Lateness::default() },
            forward: PathCounters::default(),
            back: PathCounters::default(),
            forward_relayed: RelayCounters::default(),
            back_relayed: RelayCounters::default(),
            forward_queueing: Queueing::default(),
            back_queueing: Queueing::default(),
            unroutable: 0,
            clients: 0,
            clients_evicted: 0,
            receive_buffer_drops: Some(0),
            priority: Priority::Unchanged,
            kept_awake: false,
            warnings: Vec::new(),
            kept_up: false,
        }
    }

    #[test]
    fn a_link_that_was_late_or_overran_has_not_kept_up() {
        let limit = Duration::from_millis(1);
        assert!(report().judge(limit).kept_up);
        assert!(LinkReport { receive_buffer_drops: None, ..report() }.judge(limit).kept_up);
        assert!(!report().judge(Duration::from_micros(999)).kept_up);
        assert!(!LinkReport { receive_buffer_drops: Some(1), ..report() }.judge(limit).kept_up);
        let limited = RelayCounters { dropped_limit: 1, ..RelayCounters::default() };
        assert!(!LinkReport { back_relayed: limited, ..report() }.judge(limit).kept_up);
        let refused = RelayCounters { dropped_refused: 1, dropped_client_gone: 1, unsent: 1, ..RelayCounters::default() };
        assert!(LinkReport { forward_relayed: refused, ..report() }.judge(limit).kept_up);
    }
}
