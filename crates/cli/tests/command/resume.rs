//! A transfer that was interrupted goes on where it was.

use crate::process::{content, receiver, send, start_send};
use rustix::process::Signal;
use segstream_base::random::Seed;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What is sent again after an end was killed: what was under way, which is the window and the writer's queue, and an interval of the
/// journal.
const RESENT_MAX: u64 = (16 + 32 + 32) << 20;

/// A file of a length that is not slow to make.
fn large(path: &Path, length: usize) {
    let block = content(1 << 20);
    let mut bytes = Vec::with_capacity(length + block.len());
    for index in 0..length.div_ceil(block.len()) {
        bytes.extend_from_slice(&block);
        let at = bytes.len() - block.len();
        bytes[at..at + 8].copy_from_slice(&(index as u64).to_le_bytes());
    }
    bytes.truncate(length);
    std::fs::write(path, bytes).unwrap();
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(files_below(&path)) } else { files.push(path) }
    }
    files.sort();
    files
}

/// Sends files of these lengths and some small ones, kills either end so many times, and gives the same command again each time. What
/// came in each round is counted by the sender, so what was sent again is the excess over the whole.
fn kill(large_files: &[usize], small_files: usize, kills: u64, pause_ms: u64) {
    let directory = tempfile::tempdir().unwrap();
    let (tree, out) = (directory.path().join("tree"), directory.path().join("out"));
    std::fs::create_dir_all(tree.join("small")).unwrap();
    std::fs::create_dir(&out).unwrap();
    for (index, length) in large_files.iter().enumerate() {
        large(&tree.join(format!("large{index}")), *length);
    }
    for index in 0..small_files {
        std::fs::write(tree.join(format!("small/{index}")), content(index * 50 % 200_000)).unwrap();
    }
    let total: u64 = files_below(&tree).iter().map(|path| path.metadata().unwrap().len()).sum();
    let mut random = Seed(26).stream("kills");
    let mut delivered = 0;
    for round in 0..=kills {
        let (mut receiver, address) = receiver(&["--out", out.to_str().unwrap(), "--json"]);
        let arguments = [&address, tree.to_str().unwrap(), "--json", "--rate", "900mbit", "--idle-timeout", "1s"];
        let sender = start_send(arguments);
        receiver.wait_for("connected");
        if round == kills {
            let report = sender.end().expect(0).json();
            let received = receiver.end().expect(0).json();
            assert_eq!((&report["hash_agrees"], &received["hash_agrees"]), (&true.into(), &true.into()));
            delivered += received["bytes"].as_u64().unwrap();
            break;
        }
        std::thread::sleep(Duration::from_millis(random.below(pause_ms)));
        // The end that lives says what came.
        let survivor = if random.below(2) == 0 {
            sender.signal(Signal::KILL);
            sender.end();
            receiver.end()
        } else {
            receiver.signal(Signal::KILL);
            receiver.end();
            sender.end()
        };
        delivered += survivor.json()["bytes"].as_u64().unwrap();
    }
    let resent = delivered.saturating_sub(total);
    eprintln!("{total} bytes, {kills} kills, {resent} sent again");
    assert!(resent <= kills * RESENT_MAX, "{resent} bytes of {total} were sent again after {kills} kills");
    for path in files_below(&tree) {
        let arrived = out.join("tree").join(path.strip_prefix(&tree).unwrap());
        assert!(std::fs::read(&path).unwrap() == std::fs::read(&arrived).unwrap(), "{}", path.display());
    }
    let left: Vec<PathBuf> =
        files_below(&out).into_iter().filter(|file| !tree.join(file.strip_prefix(out.join("tree")).unwrap_or(file)).is_file()).collect();
    assert!(left.is_empty(), "left behind: {left:?}");
}

#[test]
fn after_random_kills_of_either_end_the_same_command_goes_on_and_ends_with_the_same_files() {
    kill(&[90_000_000, 700_000, 60_000_000], 400, 6, 400);
}

#[test]
#[ignore = "takes minutes and 4 GB of disk"]
fn twenty_kills_in_a_transfer_of_two_gigabytes_lose_nothing() {
    kill(&[900_000_000, 500_000_000, 300_000_000, 90_000_000, 3_000_000], 2000, 20, 1500);
}

#[test]
fn what_is_sent_again_is_what_was_under_way_and_an_interval_of_the_journal() {
    let directory = tempfile::tempdir().unwrap();
    let (source, out) = (directory.path().join("source"), directory.path().join("out"));
    std::fs::create_dir(&out).unwrap();
    large(&source, 260_000_000);
    let (first, address) = receiver(&["--out", out.to_str().unwrap()]);
    let sender = start_send([&address, source.to_str().unwrap(), "--json", "--rate", "1gbit", "--idle-timeout", "1s"]);
    let part = out.join("source.part");
    while std::fs::metadata(&part).map_or(0, |part| part.len()) < 120_000_000 {
        std::thread::sleep(Duration::from_millis(5));
    }
    first.signal(Signal::KILL);
    first.end();
    let delivered = sender.end().json()["bytes"].as_u64().unwrap();
    let (second, address) = receiver(&["--out", out.to_str().unwrap(), "--json"]);
    let report = send([&address, source.to_str().unwrap(), "--json"]).expect(0).json();
    let received = second.end().expect(0).json();
    let resumed_from = report["files"][0]["resumed_from"].as_u64().unwrap();
    assert_eq!(received["files"][0]["resumed_from"], resumed_from);
    assert!(resumed_from > 0 && delivered.saturating_sub(resumed_from) <= RESENT_MAX, "{delivered} were delivered, {resumed_from} kept");
    assert_eq!(report["bytes"].as_u64().unwrap(), 260_000_000 - resumed_from);
    assert!(std::fs::read(out.join("source")).unwrap() == std::fs::read(&source).unwrap());
    assert_eq!(files_below(&out).len(), 1);
}

/// A part of `source` in `out` and its journal, as an interrupted transfer leaves them.
fn interrupted(source: &Path, out: &Path) {
    let (mut receiver, address) = receiver(&["--out", out.to_str().unwrap()]);
    let sender = start_send([&address, source.to_str().unwrap(), "--rate", "200mbit"]);
    receiver.wait_for("connected");
    let part = out.join("source.part");
    while std::fs::metadata(&part).map_or(0, |part| part.len()) < 2_000_000 {
        std::thread::sleep(Duration::from_millis(2));
    }
    sender.signal(Signal::INT);
    sender.end();
    receiver.end().expect(1);
    assert!(part.exists() && out.join("source.part.journal").exists());
}

#[test]
fn a_part_whose_bytes_are_not_what_its_journal_says_is_not_trusted() {
    let directory = tempfile::tempdir().unwrap();
    let (source, out) = (directory.path().join("source"), directory.path().join("out"));
    std::fs::create_dir(&out).unwrap();
    large(&source, 40_000_000);
    interrupted(&source, &out);
    let part = out.join("source.part");
    let mut bytes = std::fs::read(&part).unwrap();
    bytes[1000] ^= 1;
    // In place: another file would not be the part of the journal.
    std::os::unix::fs::FileExt::write_all_at(&std::fs::File::options().write(true).open(&part).unwrap(), &bytes, 0).unwrap();
    let (receiver, address) = receiver(&["--out", out.to_str().unwrap()]);
    let report = send([&address, source.to_str().unwrap(), "--json"]).expect(0).json();
    receiver.end().expect(0);
    assert_eq!(report["files"][0]["resumed_from"], 0);
    assert!(std::fs::read(out.join("source")).unwrap() == std::fs::read(&source).unwrap());
    assert_eq!(files_below(&out).len(), 1, "the part was used");
}

#[test]
fn a_source_that_has_changed_begins_anew_beside_the_part_of_the_old_one() {
    let directory = tempfile::tempdir().unwrap();
    let (source, out) = (directory.path().join("source"), directory.path().join("out"));
    std::fs::create_dir(&out).unwrap();
    large(&source, 40_000_000);
    interrupted(&source, &out);
    let part = std::fs::read(out.join("source.part")).unwrap();
    std::fs::write(&source, content(3_000_000)).unwrap();
    let (receiver, address) = receiver(&["--out", out.to_str().unwrap()]);
    send([&address, source.to_str().unwrap()]).expect(0);
    receiver.end().expect(0);
    assert_eq!(std::fs::read(out.join("source")).unwrap(), content(3_000_000));
    assert!(std::fs::read(out.join("source.part")).unwrap() == part, "the part of the other transfer is as it was");
}
