//! A run over the tandem allocates nothing per slot.

#[path = "simulation/relay/mod.rs"]
mod relay;

use relay::{RelayReceiver, RelaySender};
use segstream_base::random::Seed;
use segstream_sim::tandem::{Arrivals, Tandem, TandemConfig};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::collections::VecDeque;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// How often memory is taken in a run of this many slots.
fn allocations(slots: u64) -> usize {
    // Why no loss: a message that is never delivered is kept forever, and so is everything behind it.
    let (arrivals, packet_error_rate, link1_room) = (Arrivals::Bernoulli { rate: 0.12 }, 0.0, 100);
    let config = TandemConfig { slots, arrivals, packet_error_rate, link1_room, ..TandemConfig::default() };
    let region = Region::new(ALLOCATOR);
    let sender = RelaySender { queued: VecDeque::with_capacity(4096), ..RelaySender::default() };
    let mut run = Tandem::new(sender, RelayReceiver::default(), &config, Seed(1)).unwrap();
    run.run().unwrap();
    let change = region.change();
    change.allocations + change.reallocations
}

// Why: one test alone, because the counter counts the whole process.
#[test]
fn a_run_ten_times_as_long_takes_memory_no_more_often() {
    // Why the least of three: the counter counts the thread that waits for the test as well.
    let least = |slots| (0..3).map(|_| allocations(slots)).min();
    assert_eq!(least(200_000), least(2_000_000));
}
