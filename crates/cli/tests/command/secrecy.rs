//! What an onlooker sees of a transfer.

use crate::process::{Ended, content, receiver, send};
use std::collections::BTreeSet;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const NAME: &str = "minutes-of-the-meeting.txt";
/// Runs of this length are looked for.
const RUN: usize = 8;

/// Passes datagrams between `to` and whoever sends here until `stop`; all of them.
fn look_on(socket: &UdpSocket, to: SocketAddr, stop: &AtomicBool) -> Vec<Vec<u8>> {
    socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let (mut seen, mut client, mut buffer) = (Vec::new(), None, [0; 65_536]);
    while !stop.load(Ordering::Relaxed) {
        let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
        if from != to {
            client = Some(from);
        }
        let next = if from == to { client } else { Some(to) };
        if let Some(next) = next {
            socket.send_to(&buffer[..length], next).unwrap();
        }
        seen.push(buffer[..length].to_vec());
    }
    seen
}

/// What an onlooker has seen of the transfer of a file.
fn transfer(flags: &[&str], bytes: &[u8]) -> (Ended, Vec<Vec<u8>>) {
    let directory = tempfile::tempdir().unwrap();
    let (source, out) = (directory.path().join(NAME), directory.path().join("out"));
    std::fs::create_dir(&out).unwrap();
    std::fs::write(&source, bytes).unwrap();
    let (receiver, address) = receiver(&[&["--out", out.to_str().unwrap()], flags].concat());
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let through = socket.local_addr().unwrap().to_string();
    let stop = AtomicBool::new(false);
    let (sent, seen) = std::thread::scope(|scope| {
        let onlooker = scope.spawn(|| look_on(&socket, address.parse().unwrap(), &stop));
        let sent = send([&[&through, source.to_str().unwrap(), "--json"], flags].concat()).expect(0);
        receiver.end().expect(0);
        stop.store(true, Ordering::Relaxed);
        (sent, onlooker.join().unwrap())
    });
    assert_eq!(std::fs::read(out.join(NAME)).unwrap(), bytes);
    (sent, seen)
}

fn is_in(datagrams: &[Vec<u8>], text: &str) -> bool {
    datagrams.iter().any(|datagram| datagram.windows(text.len()).any(|window| window == text.as_bytes()))
}

#[test]
fn an_onlooker_sees_nothing_of_content_names_and_hash_and_all_of_it_in_the_clear() {
    let bytes = content(300_000);
    let runs: BTreeSet<&[u8]> = bytes.windows(RUN).collect();
    for (flags, readable) in [(&[][..], false), (&["--insecure"], true)] {
        let (sent, datagrams) = transfer(flags, &bytes);
        assert!(datagrams.len() > 250, "{}", datagrams.len());
        let runs_seen = datagrams.iter().flat_map(|datagram| datagram.windows(RUN)).filter(|window| runs.contains(window)).count();
        assert_eq!(runs_seen > 0, readable, "{runs_seen} runs of the content, {flags:?}");
        let hash = sent.json()["files"][0]["blake3"].as_str().unwrap().to_owned();
        for text in [NAME, "segstream.manifest", "segstream.answers", &hash] {
            assert_eq!(is_in(&datagrams, text), readable, "{text}, {flags:?}");
        }
    }
}
