//! What cannot be connected is refused with a sentence.

use crate::process::{binary, run};
use crate::testbed::{Side, ends};
use std::process::Stdio;

fn refused(flags: &[&str], code: i32) -> String {
    run(["link", "--bandwidth", "1mbit", "--rtt", "1ms"].iter().chain(flags)).expect(code).stderr
}

#[test]
fn a_namespace_that_is_not_there_is_named() {
    let sentence = refused(&["--tun", "segstream-no-such", "segstream-no-such-either"], 2);
    assert!(sentence.contains("there is no network namespace segstream-no-such ("), "{sentence}");
    let sentence = refused(&["--tun", "/proc/self/ns/net", "/proc/self/ns/net"], 2);
    assert!(sentence.contains("the same network namespace"), "{sentence}");
}

#[test]
fn flags_that_contradict_each_other_are_bad_usage() {
    for flags in [
        &["--tun", "one"][..],
        &["--tun", "one", "two", "--to", "127.0.0.1:9"],
        &["--tun-addresses", "10.0.0.1,10.0.0.2"],
        &["--listen", "127.0.0.1:0"],
        &["--listen", "127.0.0.1:0", "--to", "127.0.0.1:9", "--tun-addresses", "10.0.0.1,10.0.0.2"],
    ] {
        refused(flags, 2);
    }
}

#[test]
fn addresses_of_two_networks_are_bad_usage() {
    let Some(ends) = ends(["10.77.0.1", "10.78.0.2"]) else { return };
    let paths = ends.paths();
    let sentence = refused(&["--tun", &paths[0], &paths[1], "--tun-addresses", "10.77.0.1,10.78.0.2"], 2);
    assert!(sentence.contains("10.77.0.1 and 10.78.0.2 are not in the same /24 network"), "{sentence}");
}

#[test]
fn an_address_without_a_route_ends_at_once_with_a_sentence() {
    let Some(ends) = ends(["10.77.0.1", "10.77.0.2"]) else { return };
    for address in ["198.51.100.1:9", "[2001:db8::1]:9"] {
        let ended = ends.start(Side::A, binary(), &["send", address, "x", "--insecure"], Stdio::null()).end().expect(1);
        assert!(ended.stderr.contains(&format!("no route to {address}")), "{ended:?}");
        assert!(!ended.stderr.contains("nobody answered") && !ended.stderr.contains("sent 0 bytes"), "{ended:?}");
    }
}
