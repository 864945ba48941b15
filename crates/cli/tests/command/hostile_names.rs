//! Names from a hostile sender stay inside the output directory, and sentences of a hostile peer off the terminal.

use crate::process::{self, receiver};
use segstream::blocking::Endpoint;
use segstream::{Bytes, Contract, StreamId};
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

#[test]
fn a_hostile_name_creates_nothing_and_the_good_one_beside_it_arrives() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    std::fs::create_dir(&out).unwrap();
    std::os::unix::fs::symlink(directory.path().join("outside"), out.join("sly")).unwrap();
    let (receiver, address) = receiver(&["--out", out.to_str().unwrap(), "--json"]);

    let absolute = directory.path().join("absolute");
    let labels = ["../climbed", "..", ".", "", "sub/file", "nul\0byte", absolute.to_str().unwrap(), "sly", "good"];
    let mut endpoint = Endpoint::builder().identity(process::identity()).bind(([127, 0, 0, 1], 0)).unwrap();
    let streams = labels.iter().map(|label| Contract { label: (*label).to_owned(), ..Contract::default() });
    let id = endpoint.connect((address.parse::<SocketAddr>().unwrap(), process::identity().fingerprint()), streams.collect()).unwrap();
    for stream in 0..labels.len() as u32 {
        endpoint.connection(id).send(StreamId(stream), Bytes::from_static(b"payload")).unwrap();
    }
    endpoint.connection(id).close(0, "done").unwrap();

    let ended = receiver.end().expect(1);
    let report = ended.json();
    for (index, label) in labels.iter().enumerate() {
        assert_eq!(report["files"][index]["error"].is_null(), *label == "good", "{label:?}: {report}");
    }
    assert_eq!(std::fs::read(out.join("good")).unwrap(), b"payload");
    let mut names: Vec<_> = std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["good", "sly"]);
    let beside: Vec<_> = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(beside, ["out"]);
}

#[test]
fn the_sender_sends_the_last_part_of_a_path_only() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    std::fs::create_dir_all(directory.path().join("deep/er")).unwrap();
    std::fs::create_dir(&out).unwrap();
    let source = directory.path().join("deep/er/../er/file");
    std::fs::write(&source, b"x").unwrap();
    let (receiver, address) = receiver(&["--out", out.to_str().unwrap()]);
    process::send([&address, source.to_str().unwrap()]).expect(0);
    receiver.end().expect(0);
    assert_eq!(std::fs::read(out.join("file")).unwrap(), b"x");
}

#[test]
fn a_peer_s_last_words_cannot_steer_the_terminal() {
    let mut endpoint = Endpoint::builder().identity(process::identity()).allow_anyone().listen(([127, 0, 0, 1], 0)).unwrap();
    let address = endpoint.local_addr().to_string();
    let refusing = thread::spawn(move || {
        let id = endpoint.accept(Some(Duration::from_secs(20))).unwrap();
        endpoint.connection(id).abort(7, "\u{1b}[2J\u{7}all is well").unwrap();
        endpoint.wait(Some(Duration::from_secs(1))).unwrap();
    });
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, vec![1; 100_000]).unwrap();
    let ended = process::send([&address, file.to_str().unwrap()]).expect(1);
    refusing.join().unwrap();
    assert!(ended.stderr.contains("all is well"), "{}", ended.stderr);
    assert!(!ended.stderr.contains(['\u{1b}', '\u{7}']), "{:?}", ended.stderr);
}
