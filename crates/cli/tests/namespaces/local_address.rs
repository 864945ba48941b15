//! A host with two interfaces, asked at the address of the one by somebody behind the other.

use crate::process::{binary, expecting, home};
use crate::testbed::{Ends, Side, ends};
use segstream_testbed::process::Running;
use std::path::Path;
use std::process::Stdio;

/// Runs `ip` at a side.
fn ip(ends: &Ends, side: Side, arguments: &str) {
    let words: Vec<&str> = arguments.split_whitespace().collect();
    ends.start(side, Path::new("ip"), &words, Stdio::null()).end().expect(0);
}

/// Runs the command at a side, with the configuration of all tests.
fn start(ends: &Ends, side: Side, verb: &str, flag: &str, arguments: &[&str]) -> Running {
    let mut words = vec![format!("HOME={0}", home().display()).into(), format!("XDG_CONFIG_HOME={0}", home().display()).into()];
    words.push(binary().as_os_str().to_owned());
    words.extend(expecting(verb, flag, arguments));
    ends.start(side, Path::new("/usr/bin/env"), &words, Stdio::null())
}

#[test]
fn a_host_with_two_interfaces_answers_from_the_address_it_was_asked_at() {
    let Some(ends) = ends(["10.77.1.1", "10.77.1.2"]) else { return };
    let [_, space] = ends.paths();
    // A has the link to B, and a second interface that B reaches through A alone.
    ip(&ends, Side::A, &format!("link add first type veth peer name only netns {space}"));
    ip(&ends, Side::A, "link add second type veth peer name beyond");
    for (address, interface) in
        [("10.77.1.1/24", "first"), ("fd77:1::1/64", "first"), ("10.77.2.1/24", "second"), ("fd77:2::1/64", "second")]
    {
        let nodad = if address.contains("::") { "nodad" } else { "" };
        ip(&ends, Side::A, &format!("addr add {address} dev {interface} {nodad}"));
    }
    for interface in ["lo", "first", "second", "beyond"] {
        ip(&ends, Side::A, &format!("link set {interface} up"));
    }
    ip(&ends, Side::B, "addr add 10.77.1.2/24 dev only");
    ip(&ends, Side::B, "addr add fd77:1::2/64 dev only nodad");
    ip(&ends, Side::B, "link set only up");
    ip(&ends, Side::B, "route add 10.77.2.0/24 via 10.77.1.1");
    ip(&ends, Side::B, "route add fd77:2::/64 via fd77:1::1");
    for (listen, asked) in [
        ("0.0.0.0:0", "10.77.1.1"),
        ("0.0.0.0:0", "10.77.2.1"),
        ("[::]:0", "10.77.2.1"),
        ("[::]:0", "[fd77:1::1]"),
        ("[::]:0", "[fd77:2::1]"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let (source, target) = (directory.path().join("source"), directory.path().join("target"));
        let content: Vec<u8> = (0..3_000_000u32).map(|at| (at % 251) as u8).collect();
        std::fs::write(&source, &content).unwrap();
        let mut receiver = start(&ends, Side::A, "recv", "--allow", &["--listen", listen, "--out", target.to_str().unwrap()]);
        let port = receiver.listening().port();
        start(&ends, Side::B, "send", "--peer", &[&format!("{asked}:{port}"), source.to_str().unwrap()]).end().expect(0);
        receiver.end().expect(0);
        assert!(std::fs::read(&target).unwrap() == content, "{listen} {asked}");
    }
}
