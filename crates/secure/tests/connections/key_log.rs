//! What a capture and a key log show together: the dissector of `wireshark/`, run by tshark.
//!
//! Skipped, and said so, where no tshark is installed, unless `SEGSTREAM_REQUIRE_TSHARK=1`.

use super::network::{Network, ms};
use segstream_base::random::Seed;
use segstream_base::{Instant, StreamId};
use segstream_network::capture::CaptureFile;
use segstream_secure::KeyLog;
use segstream_testbed::tshark;
use std::path::Path;

/// A transfer of `payload`: what the client has logged, and a capture of everything that was sent.
fn transfer(directory: &Path, payload: &[u8]) {
    let log = KeyLog::open(&directory.join("keys.txt")).unwrap();
    let mut network = Network::with_key_log(Some(&log));
    let id = network.connect();
    network.run_for(ms(500));
    let now = network.now();
    network.client_mut().connection_mut(id).unwrap().send(now, StreamId(0), payload.to_vec().into(), now, None).unwrap();
    network.run_for(ms(2_000));
    let now = network.now();
    network.client_mut().connection_mut(id).unwrap().close(now, 0, "done");
    network.run_for(ms(500));
    assert_eq!(network.received.len(), 1);
    let mut capture = CaptureFile::new(Vec::new()).unwrap();
    for sent in &network.sent {
        capture.write(Instant::ZERO, sent.from, sent.to, &sent.bytes).unwrap();
    }
    std::fs::write(directory.join("capture.pcap"), capture.finish().unwrap()).unwrap();
}

/// What tshark prints of these fields of every packet, separated by bars; nothing where there is no tshark.
fn dissected(directory: &Path, key_log: &str, fields: &[&str]) -> Option<Vec<String>> {
    let script = tshark::segstream_script();
    let key_log = format!("segstream.key_log:{}", directory.join(key_log).display());
    let columns = ["-X", &script, "-o", &key_log, "-T", "fields", "-E", "separator=|"];
    let fields = fields.iter().flat_map(|field| ["-e", field]);
    let printed = tshark::dissected(&directory.join("capture.pcap"), columns.into_iter().chain(fields))?;
    Some(printed.lines().map(str::to_owned).collect())
}

fn bytes(hex: &str) -> Vec<u8> {
    hex.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

#[test]
fn with_the_key_log_a_capture_shows_every_byte_and_without_it_none() {
    let directory = tempfile::tempdir().unwrap();
    let mut random = Seed(3).stream("payload");
    let payload: Vec<u8> = (0..40_000).map(|_| random.bits() as u8).collect();
    transfer(directory.path(), &payload);
    let Some(info) = dissected(directory.path(), "keys.txt", &["_ws.expert.message", "_ws.col.Info"]) else { return };
    assert!(info.iter().all(|line| line.starts_with('|') && !line.contains("sealed")), "{info:#?}");
    for text in ["CR #", "CC #", "HS #", "DT #", "TXS #", "RXS #", "DR #", "DC #", "handshake bytes", "complete stream 0 segments 0..1"] {
        assert!(info.iter().any(|line| line.contains(text)), "no {text}");
    }
    let shown = dissected(directory.path(), "keys.txt", &["segstream.payload"]).unwrap();
    let shown: Vec<u8> = shown.iter().flat_map(|line| line.split(',')).flat_map(bytes).collect();
    assert_eq!(shown, payload, "the path loses and reorders nothing");

    let without = dissected(directory.path(), "no-such-file", &["_ws.expert.message", "segstream.payload", "segstream.kind"]).unwrap();
    assert!(without.iter().all(|line| line.starts_with("||")), "{without:?}");
    assert!(without.iter().any(|line| line == "||"), "nothing was sealed");
}

#[cfg(unix)]
#[test]
fn the_key_log_is_for_its_owner_alone_and_has_a_line_for_each_secret() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    transfer(directory.path(), &[1; 100]);
    let file = directory.path().join("keys.txt");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let text = std::fs::read_to_string(file).unwrap();
    let labels: Vec<&str> = text.lines().map(|line| line.split(' ').next().unwrap()).collect();
    for label in
        ["CLIENT_HANDSHAKE_TRAFFIC_SECRET", "SERVER_HANDSHAKE_TRAFFIC_SECRET", "CLIENT_TRAFFIC_SECRET_0", "SERVER_TRAFFIC_SECRET_0"]
    {
        assert!(labels.contains(&label), "{label} is not in {labels:?}");
    }
}
