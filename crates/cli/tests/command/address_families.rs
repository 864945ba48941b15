//! IPv4 and IPv6.

use crate::process::{expecting, send, start};

#[test]
fn a_file_arrives_over_ipv4_and_over_ipv6() {
    for listen in ["127.0.0.1:0", "[::1]:0"] {
        let directory = tempfile::tempdir().unwrap();
        let (source, target) = (directory.path().join("source"), directory.path().join("target"));
        std::fs::write(&source, b"over either family").unwrap();
        let mut receiver = start(expecting("recv", "--allow", ["--listen", listen, "--out", target.to_str().unwrap()]));
        let address = receiver.listening().to_string();
        send([&address, source.to_str().unwrap()]).expect(0);
        receiver.end().expect(0);
        assert_eq!(std::fs::read(&target).unwrap(), b"over either family", "{listen}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_listener_on_all_addresses_answers_from_the_one_it_was_asked_at() {
    for (listen, asked) in [("0.0.0.0:0", "127.0.0.2"), ("[::]:0", "127.0.0.2"), ("[::]:0", "[::1]")] {
        let directory = tempfile::tempdir().unwrap();
        let (source, target) = (directory.path().join("source"), directory.path().join("target"));
        std::fs::write(&source, b"asked at the second address").unwrap();
        let mut receiver = start(expecting("recv", "--allow", ["--listen", listen, "--out", target.to_str().unwrap()]));
        let port = receiver.listening().port();
        send([&format!("{asked}:{port}"), source.to_str().unwrap()]).expect(0);
        receiver.end().expect(0);
        assert_eq!(std::fs::read(&target).unwrap(), b"asked at the second address", "{listen} {asked}");
    }
}
