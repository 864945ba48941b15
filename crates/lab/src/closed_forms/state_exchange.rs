//! The throughput of HTPNET: what its processor, its window and its list of ranges allow.
//!
//! Called by the studies of HT and by tests. Source: HT 3.3 and 3.4; HT prints no formula.
//!
//! A packet is acknowledged by the first exchange that starts behind it, so it stays in the window for a round trip and
//! what is left of the period: with as many periods as the window allows groups, a window is sent in each RTD + T. A
//! fraction p is lost and sent again. An exchange that reports n runs settles n holes, each of which stays for RTD + T.
//!
//! Limit: RTD + T holds where RTD is a whole number of periods, as in HT's cases. In between, a window that leaves
//! within one period comes back at the next whole number of them, and a wider one after RTD and part of a period.
//!
//! Limit: each of the three is a mean. Where the list and another of them are about as narrow, an exchange that meets
//! more holes than n is behind and none that meets fewer makes up for it: up to an eighth less is measured there.
//!
//! Invariant: total; a probability of 1 gives nothing, none gives no limit of the list.

/// What limits HTPNET's throughput.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StateExchange {
    /// s: what a packet takes of the transmitter's processor, in seconds.
    pub service_s: f64,
    /// W: packets that may be unacknowledged.
    pub window: u32,
    /// RTD: the round-trip delay in seconds.
    pub rtt_s: f64,
    /// T: the period of the exchange in seconds.
    pub period_s: f64,
    /// n: the runs that an exchange reports; `None` when it reports all.
    pub pairs: Option<u32>,
}

impl StateExchange {
    /// (1 - p) / s: packets a second that the processor allows.
    pub fn of_processor(&self, p: f64) -> f64 {
        (1.0 - p) / self.service_s
    }

    /// (1 - p) W / (RTD + T): what the window allows.
    pub fn of_window(&self, p: f64) -> f64 {
        (1.0 - p) * f64::from(self.window) / self.exchange_s()
    }

    /// n / (p (RTD + T)): what the list of ranges allows.
    pub fn of_ranges(&self, p: f64) -> f64 {
        self.pairs.map_or(f64::INFINITY, |pairs| f64::from(pairs) / (p * self.exchange_s()))
    }

    /// The least of the three: packets delivered a second.
    pub fn throughput(&self, p: f64) -> f64 {
        self.of_processor(p).min(self.of_window(p)).min(self.of_ranges(p))
    }

    /// RTD + T.
    fn exchange_s(&self) -> f64 {
        self.rtt_s + self.period_s
    }
}
