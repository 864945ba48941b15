//! `top`: what runs on this machine is seen without any flag, elsewhere by the address of its metrics.

use crate::process::{content, home, link, start_with_variables};
use std::path::Path;
use std::time::{Duration, Instant};

/// Runs `top` until a line of what it prints contains all of `texts`.
fn view(variables: &[&str], arguments: &[&str], texts: &[&str]) -> String {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let arguments = [&["top", "--interval", "300ms"][..], arguments].concat();
        let text = start_with_variables(home(), variables, arguments).end().expect(0).stdout;
        let text = String::from_utf8(text).unwrap();
        if texts.iter().all(|wanted| text.contains(wanted)) {
            return text;
        }
        assert!(Instant::now() < deadline, "{texts:?} are not in:\n{text}");
    }
}

#[test]
fn running_transfers_are_seen_without_a_flag_and_by_the_address_of_their_metrics() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = format!("XDG_RUNTIME_DIR={}", directory.path().display());
    let variables = [runtime.as_str()];
    let file = directory.path().join("secret-name.bin");
    std::fs::write(&file, content(40_000_000)).unwrap();
    assert!(view(&variables, &[], &["waiting for connections"]).starts_with("0 connections"));

    let flags = ["recv", "--listen", "127.0.0.1:0", "--insecure", "--keep", "--metrics", "127.0.0.1:0"];
    let mut receiver = start_with_variables(home(), &variables, flags);
    let at = receiver.listening().to_string();
    let metrics = loop {
        if let Some(rest) = receiver.line().strip_prefix("metrics: http://") {
            break rest.strip_suffix("/metrics").unwrap().to_owned();
        }
    };
    let (link, at_link) = link(&at, &["--bandwidth", "30mbit", "--loss", "2%", "--rtt", "10ms"]);
    let flags = ["send", &at_link, file.to_str().unwrap(), "--insecure", "--tolerance", "64,4,2", "--rate", "20mbit"];
    let sender = start_with_variables(home(), &variables, flags);

    let text = view(&variables, &[], &["2 connections", "PROCESS", "received stream", "Mbit/s"]);
    assert!(!text.contains("secret-name"), "{text}");
    let remote = view(&[], &[&metrics], &["1 connection,", "received stream"]);
    assert!(!remote.contains("PROCESS"), "{remote}");
    sender.interrupt();
    receiver.interrupt();
    link.interrupt();
    let left: Vec<_> = std::fs::read_dir(directory.path().join("segstream")).unwrap().collect();
    assert!(left.is_empty(), "a socket is left: {left:?}");
}

#[test]
fn a_socket_that_a_killed_process_left_is_removed_and_an_address_without_metrics_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = format!("XDG_RUNTIME_DIR={}", directory.path().display());
    assert!(view(&[&runtime], &[], &[]).contains("waiting"));
    let left = directory.path().join("segstream").join("4711.sock");
    drop(std::os::unix::net::UnixListener::bind(&left).unwrap());
    view(&[&runtime], &[], &["waiting"]);
    assert!(!Path::new(&left).exists());
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let refused = start_with_variables(home(), &[&runtime], ["top", &nobody]).end().expect(1);
    assert!(refused.stderr.contains(&nobody) && refused.stderr.contains("check the address and --metrics there"), "{}", refused.stderr);
}
