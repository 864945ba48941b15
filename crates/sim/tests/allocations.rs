//! The loop allocates nothing per packet.

#[path = "simulation/arq/mod.rs"]
mod arq;

use arq::{Mode, Settings, backlog, pair, setup};
use segstream_base::Duration;
use segstream_path::QueueLimit;
use segstream_sim::{Control, End, EndSystem};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// How often a run of this many packets allocates. Why the least of three: the counter counts the test harness's thread as well.
fn allocations(packets: u64, control: Control, check: bool, end_systems: Option<EndSystem>) -> usize {
    (0..3).map(|_| allocations_once(packets, control, check, end_systems)).min().unwrap_or(usize::MAX)
}

fn allocations_once(packets: u64, control: Control, check: bool, end_systems: Option<EndSystem>) -> usize {
    let mut setup = setup(60);
    (setup.control, setup.check, setup.end_systems) = (control, check, end_systems);
    setup.forward.queue = QueueLimit::Packets(1000);
    setup.forward.jitter = arq::SLOT.into();
    setup.forward.loss = "1%".parse().unwrap();
    setup.forward.duplicate = "1%".parse().unwrap();
    let settings = Settings::filling(Mode::GoBackN, 62);
    let mut run = pair(&settings, backlog(packets), &setup, 1, ());
    let region = Region::new(ALLOCATOR);
    assert_eq!(run.settle(), End::Settled);
    let change = region.change();
    change.allocations + change.reallocations
}

// Why: one test alone, because the counter counts the whole process.
#[test]
fn a_run_ten_times_as_long_allocates_no_more_often() {
    let working = EndSystem { packet: Duration::from_micros(100), ..EndSystem::default() };
    for control in [Control::InBand, Control::OutOfBand] {
        for check in [false, true] {
            for end_systems in [None, Some(working)] {
                assert_eq!(allocations(5_000, control, check, end_systems), allocations(50_000, control, check, end_systems));
            }
        }
    }
}
