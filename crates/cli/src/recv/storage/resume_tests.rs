//! Interrupted transfers over the model of the page cache: a fault at every call, a crash behind it, and the same transfer again.

use super::page_cache::{Fault, PageCache};
use super::*;
use segstream_base::random::Seed;
use std::io::ErrorKind;

/// The possibilities of a crash that are tried after each fault.
const CRASHES: u64 = 25;
const CONTENT: &[u8] = b"one and two and three";
/// How far the journal is to say that it is written.
const NOTES: [usize; 2] = [7, 15];

const FAULTS: [Fault; 4] = [Fault::Crash, Fault::Short, Fault::Fails(ErrorKind::StorageFull), Fault::Fails(ErrorKind::Other)];

fn transfer() -> TransferId {
    TransferId::new(None, "file", CONTENT.len() as u64, None)
}

fn choices(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut random = Seed(seed).stream("crash");
    move |bound| random.below(bound)
}

fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// What a transfer has come to.
#[derive(Debug, Default)]
struct Came {
    /// Where it began.
    from: u64,
    /// How much was told to be on the medium.
    noted: u64,
    /// Whether the file was kept, and called durable.
    kept: Option<bool>,
}

/// Receives the file, from where a part of the same transfer ends.
fn receive(disk: PageCache, durability: Durability) -> (PageCache, Came) {
    let mut storage: Storage<PageCache, u8> = Storage::new(disk, durability);
    let mut came = Came::default();
    let result = attempt(&mut storage, &mut came);
    if result.is_err() {
        storage.leave(0, false);
    }
    (storage.disk, came)
}

fn attempt(storage: &mut Storage<PageCache, u8>, came: &mut Came) -> Result<(), String> {
    let text = |error: io::Error| error.to_string();
    let name = SafePath::of_name("file", false)?;
    if let Some(found) = storage.disk.existing("file").map_err(text)? {
        // A sender would skip it: its hash is the same.
        came.from = found.bytes;
        return Ok(());
    }
    let beginning = match find(&storage.disk, &name, &transfer()).map_err(text)? {
        Some(found) => {
            came.from = found.bytes;
            assert_eq!(found.hash(), hash(&CONTENT[..came.from as usize]), "what is told to be here is not");
            Beginning::Resumed(found)
        }
        None => Beginning::New(transfer()),
    };
    storage.begin(0, Target { name, mode: None, mtime: None, replaces: false }, beginning)?;
    let mut at = came.from as usize;
    for end in NOTES.into_iter().chain([CONTENT.len()]).filter(|end| *end > came.from as usize) {
        storage.write_at(0, &CONTENT[at..end], at as u64).map_err(text)?;
        at = end;
        if end < CONTENT.len() && storage.note(0, end as u64, &hash(&CONTENT[..end])).map_err(text)? {
            came.noted = end as u64;
        }
    }
    let kept = storage.keep(vec![0], &[]).0.pop().unwrap().1;
    came.kept = Some(kept?);
    Ok(())
}

/// A disk without faults finishes it; how much is received again is what was not noted.
fn finishes(disk: PageCache, before: &Came, what: &str) {
    let (disk, came) = receive(disk, Durability::Directory);
    // With `file` a name that was given and not synced may come back as the part's, without its journal.
    assert!(came.from >= before.noted || before.kept == Some(false), "{what}: {came:?} after {before:?}");
    let seen = disk.seen();
    assert_eq!(seen.get("file").map(Vec::as_slice), Some(CONTENT), "{what}: {came:?} after {before:?}");
}

#[test]
fn after_any_fault_and_crash_the_file_is_whole_or_goes_on_where_it_was_told_to_be_safe() {
    for durability in [Durability::File, Durability::Directory] {
        let (disk, came) = receive(PageCache::default(), durability);
        assert_eq!((came.noted, came.kept), (NOTES[1] as u64, Some(durability == Durability::Directory)));
        for (at, fault) in (0..=disk.calls()).flat_map(|at| FAULTS.map(|fault| (at, fault))) {
            let (disk, came) = receive(PageCache::with_fault(at, fault), durability);
            for seed in 0..CRASHES {
                let what = format!("{durability:?}, call {at}, {fault:?}, crash {seed}");
                let restarted = disk.restarted(choices(seed));
                let there = restarted.seen().get("file").cloned();
                assert!(there.as_ref().is_none_or(|bytes| bytes == CONTENT), "{what}: a name without its file");
                assert!(came.kept != Some(true) || there.is_some(), "{what}: called durable and lost");
                finishes(restarted, &came, &what);
            }
        }
    }
}

#[test]
fn a_second_interruption_costs_nothing_that_was_noted_before_the_first() {
    let faults = [Fault::Crash, Fault::Fails(ErrorKind::StorageFull)];
    let (disk, _) = receive(PageCache::default(), Durability::Directory);
    for first in 0..=disk.calls() {
        for (second, fault) in (0..=disk.calls() + 6).flat_map(|second| faults.map(|fault| (second, fault))) {
            let (disk, came) = receive(PageCache::with_fault(first, fault), Durability::Directory);
            let seed = (first * 1000 + second) as u64;
            let (disk, again) = receive(disk.restarted(choices(seed)).faulty(second, fault), Durability::Directory);
            let noted = if again.from > 0 { again.noted.max(came.noted) } else { again.noted };
            let before = Came { noted, ..again };
            let restarted = disk.restarted(choices(seed + 7));
            finishes(restarted, &before, &format!("calls {first} and {second}, {fault:?}"));
        }
    }
}

#[test]
fn without_syncs_a_part_is_used_as_far_as_its_bytes_are_right() {
    let (disk, _) = receive(PageCache::default(), Durability::None);
    let mut resumed = 0;
    for at in 0..=disk.calls() {
        // The program ends, and what the system holds is as it was.
        let (disk, _) = receive(PageCache::with_fault(at, Fault::Fails(ErrorKind::Other)), Durability::None);
        let (disk, came) = receive(disk, Durability::None);
        assert_eq!(disk.seen().get("file").map(Vec::as_slice), Some(CONTENT), "call {at}: {came:?}");
        resumed += u64::from(came.from > 0);
        for seed in 0..CRASHES {
            let (disk, _) = receive(PageCache::with_fault(at, Fault::Crash), Durability::None);
            let restarted = disk.restarted(choices(seed));
            if restarted.seen().contains_key("file") {
                // Nothing was called durable: without syncs a name may come before its bytes.
                continue;
            }
            let (disk, came) = receive(restarted, Durability::None);
            assert_eq!(disk.seen().get("file").map(Vec::as_slice), Some(CONTENT), "call {at}, crash {seed}: {came:?}");
        }
    }
    assert!(resumed > 3, "a part was gone on with {resumed} times");
}

#[test]
fn the_part_and_the_journal_of_another_transfer_are_left_alone() {
    let mut storage: Storage<PageCache, u8> = Storage::new(PageCache::default(), Durability::Directory);
    let target = |name: &str| Target { name: SafePath::of_name(name, false).unwrap(), mode: None, mtime: None, replaces: false };
    let other = TransferId::new(None, "file", 99, None);
    storage.begin(0, target("file"), Beginning::New(other.clone())).unwrap();
    storage.write_at(0, b"of another", 0).unwrap();
    storage.note(0, 10, &hash(b"of another")).unwrap();
    storage.leave(0, false);
    let name = SafePath::of_name("file", false).unwrap();
    assert!(find(&storage.disk, &name, &transfer()).unwrap().is_none());
    storage.begin(1, target("file"), Beginning::New(transfer())).unwrap();
    storage.write_at(1, CONTENT, 0).unwrap();
    // While it goes on, and after it was left, each finds its own.
    assert_eq!(find(&storage.disk, &name, &other).unwrap().unwrap().bytes, 10);
    storage.note(1, 5, &hash(&CONTENT[..5])).unwrap();
    storage.leave(1, false);
    assert_eq!(find(&storage.disk, &name, &transfer()).unwrap().unwrap().bytes, 5);
    assert_eq!(storage.disk.seen()["file.part"], b"of another");
    // A length that another transfer has is another transfer.
    assert!(find(&storage.disk, &name, &TransferId::new(None, "file", 98, None)).unwrap().is_none());
}
