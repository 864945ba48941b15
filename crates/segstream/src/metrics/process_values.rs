//! Present values of the process to which each of its endpoints has a share, such as the shards of a port.
//!
//! Called by the publisher of each endpoint. Invariant: a value is the sum of the shares of the endpoints that there are.

use std::sync::atomic::{AtomicU64, Ordering};

/// A present value of the process.
#[derive(Debug)]
struct OfProcess(AtomicU64);

static CONNECTIONS: OfProcess = OfProcess::new();
static MEMORY_GRANTED: OfProcess = OfProcess::new();
static MEMORY_BUDGET: OfProcess = OfProcess::new();

impl OfProcess {
    const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// The share of an endpoint is `now` instead of `share`. Returns the sum.
    fn set(&self, share: &mut u64, now: u64) -> f64 {
        // Wrapping: the difference may be negative, the sum never is.
        let growth = now.wrapping_sub(core::mem::replace(share, now));
        self.0.fetch_add(growth, Ordering::Relaxed).wrapping_add(growth) as f64
    }
}

/// The shares of one endpoint.
#[derive(Debug, Default)]
pub(super) struct Shares {
    connections: u64,
    memory_granted: u64,
    memory_budget: u64,
}

impl Shares {
    /// This endpoint has so many connections. Returns those of the process.
    pub(super) fn set_connections(&mut self, now: u64) -> f64 {
        CONNECTIONS.set(&mut self.connections, now)
    }

    /// This endpoint has granted so much memory of such a budget. Returns both of the process.
    pub(super) fn set_memory(&mut self, granted: u64, budget: u64) -> (f64, f64) {
        (MEMORY_GRANTED.set(&mut self.memory_granted, granted), MEMORY_BUDGET.set(&mut self.memory_budget, budget))
    }
}

impl Drop for Shares {
    fn drop(&mut self) {
        self.set_connections(0);
        self.set_memory(0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_the_sum_of_the_shares_that_there_are() {
        static VALUE: OfProcess = OfProcess::new();
        let (mut one, mut other) = (0, 0);
        assert_eq!((VALUE.set(&mut one, 5), VALUE.set(&mut other, 7), VALUE.set(&mut one, 2)), (5.0, 12.0, 9.0));
        assert_eq!((VALUE.set(&mut other, 0), VALUE.set(&mut one, 0)), (2.0, 0.0));
    }
}
