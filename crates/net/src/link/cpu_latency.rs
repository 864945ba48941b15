//! A request to the system that keeps processors out of deep sleep states while datagrams are on their way.
//!
//! Called by the relay in every turn that polls for arrivals.
//!
//! A processor in a deep sleep state wakes late. So the relay requests zero wake-up latency while there is traffic, and where no
//! such request keeps a processor from halting, `idle_poll` does. An idle link saves the energy.
//!
//! Source: `/dev/cpu_dma_latency`, the kernel's PM QoS interface. The request lasts as long as the file is open, so it ends with the
//! program, however that ends. Limit: Linux, as root; elsewhere nothing is requested.
//!
//! Invariant: a refusal is no error, and the request ends [`IDLE_TIMEOUT`] after the last datagram.

use super::idle_poll::IdlePoll;
use segstream_base::{Duration, Instant};
use std::fs::File;

/// How long the link must be idle before the request ends.
const IDLE_TIMEOUT: Duration = Duration::from_secs(1);

/// The request for low wake-up latency.
#[derive(Debug)]
pub(super) struct CpuLatencyRequest {
    wanted: bool,
    request: Option<File>,
    idle_poll: Option<IdlePoll>,
    active_at: Instant,
    was_granted: bool,
}

impl CpuLatencyRequest {
    /// No request yet; none will be made unless `wanted`.
    pub(super) fn new(wanted: bool) -> Self {
        Self { wanted, request: None, idle_poll: None, active_at: Instant::ZERO, was_granted: false }
    }

    /// Records at `now` whether there is traffic.
    pub(super) fn note(&mut self, now: Instant, traffic: bool) {
        if traffic {
            self.active_at = now;
            if self.wanted && !self.is_held() {
                self.request = request_no_latency();
                self.idle_poll = IdlePoll::begin();
                self.was_granted |= self.is_held();
                // Why: a request that was refused once will be refused again.
                self.wanted = self.is_held();
            }
        } else if self.is_held() && now.since(self.active_at) >= IDLE_TIMEOUT {
            (self.request, self.idle_poll) = (None, None);
        }
    }

    /// Whether processors are kept awake now.
    fn is_held(&self) -> bool {
        self.request.is_some() || self.idle_poll.is_some()
    }

    /// Whether processors were ever kept awake.
    pub(super) fn was_granted(&self) -> bool {
        self.was_granted
    }
}

#[cfg(target_os = "linux")]
fn request_no_latency() -> Option<File> {
    use std::io::Write;
    let mut request = File::options().write(true).open("/dev/cpu_dma_latency").ok()?;
    // The tolerated latency in microseconds.
    request.write_all(&0i32.to_ne_bytes()).ok()?;
    Some(request)
}

#[cfg(not(target_os = "linux"))]
fn request_no_latency() -> Option<File> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wish_is_held_during_traffic_and_a_while_after() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut cpu_latency = CpuLatencyRequest::new(true);
        cpu_latency.note(at(0), false);
        assert!(!cpu_latency.is_held());
        cpu_latency.note(at(1000), true);
        // The administrator is granted the request, and everyone may spin, where that helps.
        assert_eq!(cpu_latency.is_held(), cpu_latency.was_granted());
        cpu_latency.note(at(1999), false);
        assert_eq!(cpu_latency.is_held(), cpu_latency.was_granted());
        cpu_latency.note(at(2000), false);
        assert!(!cpu_latency.is_held());
    }

    #[test]
    fn nothing_is_asked_unless_wanted() {
        let mut cpu_latency = CpuLatencyRequest::new(false);
        cpu_latency.note(Instant::ZERO, true);
        assert!(!cpu_latency.is_held() && !cpu_latency.was_granted());
    }
}
