//! The testbed of these tests: the real binary's link between two network namespaces.

use crate::process::binary;
use rustix::process::Signal;
use segstream_testbed::Refused;
pub(crate) use segstream_testbed::{Ends, Side, Testbed};
use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

/// The link with `flags` between 10.77.0.1 (A) and 10.77.0.2 (B). `None`, and a notice, where that is not allowed.
pub(crate) fn testbed(flags: &[&str]) -> Option<Testbed> {
    allowed(Testbed::new(binary(), flags))
}

/// The link with `flags` between two addresses.
pub(crate) fn testbed_between(addresses: [&str; 2], flags: &[&str]) -> Option<Testbed> {
    allowed(Testbed::between(binary(), addresses, flags))
}

/// Two namespaces without a link.
pub(crate) fn ends(addresses: [&str; 2]) -> Option<Ends> {
    allowed(Ends::new(addresses))
}

fn allowed<T>(made: Result<T, Refused>) -> Option<T> {
    match made {
        Ok(made) => Some(made),
        Err(refused) if std::env::var_os("SEGSTREAM_REQUIRE_NAMESPACES").is_some_and(|set| set == "1") => {
            panic!("namespaces are required, but {refused}")
        }
        Err(refused) => {
            eprintln!("NOT TESTED: {refused}");
            None
        }
    }
}

#[test]
fn a_program_runs_inside() {
    let Some(testbed) = testbed(&["--bandwidth", "1mbit", "--rtt", "1ms"]) else { return };
    let cat = testbed.start(Side::B, "cat".as_ref(), &["/proc/self/net/dev"], Stdio::null()).end().expect(0);
    let interfaces = String::from_utf8(cat.stdout).unwrap();
    assert!(interfaces.contains("segstream0:"), "{interfaces}");
}

#[test]
fn the_interfaces_are_gone_when_the_link_has_ended_or_was_killed() {
    for signal in [Signal::INT, Signal::KILL] {
        let Some(testbed) = testbed(&["--bandwidth", "1mbit", "--rtt", "1ms"]) else { return };
        let interfaces = |side| testbed.inside(side, || fs::read_to_string("/proc/thread-self/net/dev").unwrap());
        assert!([Side::A, Side::B].into_iter().all(|side| interfaces(side).contains("segstream0:")));
        testbed.signal(signal);
        let patience = Instant::now() + Duration::from_secs(60);
        while [Side::A, Side::B].into_iter().any(|side| interfaces(side).contains("segstream0:")) {
            assert!(Instant::now() < patience, "the interfaces are still there after {signal:?}");
            thread::sleep(Duration::from_millis(10));
        }
    }
}
