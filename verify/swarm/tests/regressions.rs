//! Seeds that long runs have failed on, with what was wrong.

use segstream_swarm::runner;

/// A seed, and what it found.
const FOUND: &[(u64, &str)] = &[
    (30_589, "control that was due more often than the rate allows kept data out"),
    (69_895, "in bursts of one shipment control took the place of data"),
    (86_107, "in bursts of one shipment control took the place of data"),
    (89_726, "every answer to a connection request was lost, which the checker took for a fault"),
    (100_677, "five shipments a second of small units take longer than the checker waited"),
    (113_566, "a peer at a low rate answered repeated DRs too late, so that a close lost its segments"),
    (171_767, "the states of a fixed rate filled a narrow path and kept the last data out"),
    (173_291, "the states of a fixed rate filled a narrow path and kept the last data out"),
    (179_661, "spare buffers of a stream were kept after it had been retired"),
];

#[test]
fn seeds_that_failed_once_pass() {
    for (seed, found) in FOUND {
        assert_eq!(runner::run(*seed).failure, None, "seed {seed}: {found}");
    }
}
