//! Storage over the model of the page cache, with a fault at every call; and over a real directory.

use super::page_cache::{Fault, PageCache};
use super::*;
use segstream_base::random::Seed;
use std::io::ErrorKind;
use std::path::Path;

/// The possibilities of a crash that are tried after each fault.
const CRASHES: u64 = 40;

/// What was told about each file: whether it is durable, or nothing when it failed.
type Told = BTreeMap<&'static str, Option<bool>>;

/// A file of this name that replaces none.
fn target(name: &str) -> Target {
    Target { name: SafePath::of_path(name, false).unwrap(), mode: Some(0o644), mtime: Some((1, 2)), replaces: false }
}

fn begin<D: Disk, K: Copy + Ord>(storage: &mut Storage<D, K>, key: K, name: &str) -> Result<(), String> {
    storage.begin(key, target(name), Beginning::Plain)
}

fn keep<D: Disk, K: Copy + Ord>(storage: &mut Storage<D, K>, keys: impl IntoIterator<Item = K>) -> Vec<(K, Kept)> {
    storage.keep(keys.into_iter().collect(), &[]).0
}

/// What the files must contain.
fn whole() -> BTreeMap<&'static str, Vec<u8>> {
    let (small, empty) = ("sub/small", "sub/empty");
    let files =
        [("empty", &b""[..]), ("holed", b"head\0\0\0tail\0\0"), ("plain", b"all of it"), ("sub/deep", b"below"), (small, b"little")];
    files.into_iter().chain([(empty, &b""[..])]).map(|(name, bytes)| (name, bytes.to_vec())).collect()
}

fn write_all(storage: &mut Storage<PageCache, &'static str>, key: &'static str) -> io::Result<()> {
    match key {
        "plain" => storage.write_at(key, b"all of it", 0),
        "sub/deep" => storage.write_at(key, b"below", 0),
        "holed" => {
            storage.write_at(key, b"tail", 7)?;
            storage.write_at(key, b"head", 0)?;
            storage.extend_to(key, 13);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Receives files alone, as a group and in a pack, over a disk that may fail; what was told about them.
fn receive(disk: PageCache, durability: Durability) -> (PageCache, Told) {
    let mut storage: Storage<PageCache, &str> = Storage::new(disk, durability);
    let mut told: Told = whole().keys().map(|key| (*key, None)).collect();
    for (group, pack) in [(&["plain"][..], &[][..]), (&["sub/deep"], &[]), (&["empty", "holed"], &["sub/small", "sub/empty"])] {
        let begun = group.iter().filter(|key| begin(&mut storage, **key, key).is_ok()).copied().collect::<Vec<_>>();
        let written = begun.into_iter().filter(|key| write_all(&mut storage, key).is_ok()).collect::<Vec<_>>();
        let put = pack.iter().filter_map(|name| Some((*name, storage.put(target(name), &whole()[name]).ok()?)));
        let (names, small): (Vec<&str>, Vec<Small>) = put.collect::<Vec<_>>().into_iter().unzip();
        let (streams, smalls) = storage.keep(written, &small);
        for (key, result) in streams.into_iter().chain(names.into_iter().zip(smalls)) {
            told.insert(key, result.ok());
        }
    }
    (storage.disk, told)
}

/// Numbers below a bound, from a seed.
fn choices(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut random = Seed(seed).stream("crash");
    move |bound| random.below(bound)
}

/// What is wrong with the files that a crash leaves, given what was told: a file that is not whole has its name, or one that is
/// durable is not there.
fn wrong(left: &BTreeMap<String, Vec<u8>>, told: &Told) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, bytes) in whole() {
        match left.get(name) {
            Some(found) if *found != bytes => wrong.push(format!("{name} is not whole")),
            None if told[name] == Some(true) => wrong.push(format!("{name} is durable and not there")),
            _ => {}
        }
    }
    wrong
}

#[test]
fn after_any_fault_and_any_crash_a_file_is_whole_or_was_never_called_durable() {
    let faults = [Fault::Crash, Fault::Short, Fault::Fails(ErrorKind::StorageFull), Fault::Fails(ErrorKind::Other)];
    for durability in [Durability::File, Durability::Directory] {
        let (disk, told) = receive(PageCache::default(), durability);
        let durable = Some(durability == Durability::Directory);
        assert!(told.values().all(|told| *told == durable), "without a fault: {told:?}");
        assert!(disk.calls() > 15, "{} calls", disk.calls());
        // The last is beyond all calls: a crash after everything.
        for (at, fault) in (0..=disk.calls()).flat_map(|at| faults.map(|fault| (at, fault))) {
            let (disk, told) = receive(PageCache::with_fault(at, fault), durability);
            let seen = disk.seen();
            for (name, told) in &told {
                assert!(told.is_none() || seen.get(*name) == whole().get(name), "call {at}, {fault:?}: {name} was kept");
            }
            for seed in 0..CRASHES {
                let wrong = wrong(&disk.after_crash(choices(seed)), &told);
                assert!(wrong.is_empty(), "{durability:?}, call {at}, {fault:?}, crash {seed}: {wrong:?}");
            }
        }
    }
}

#[test]
fn the_model_loses_what_was_not_synced() {
    let lost = |durability, what: &str| {
        let (disk, _) = receive(PageCache::default(), durability);
        // As if it had been called durable.
        let told = whole().keys().map(|key| (*key, Some(true))).collect();
        (0..CRASHES).any(|seed| wrong(&disk.after_crash(choices(seed)), &told).iter().any(|wrong| wrong.contains(what)))
    };
    assert!(lost(Durability::None, "not whole") && lost(Durability::None, "not there"));
    assert!(!lost(Durability::File, "not whole") && lost(Durability::File, "not there"));
    assert!(!lost(Durability::Directory, "not whole") && !lost(Durability::Directory, "not there"));
}

#[test]
fn without_syncs_nothing_is_called_durable_and_a_file_is_whole_for_all_programs() {
    let (disk, told) = receive(PageCache::default(), Durability::None);
    assert!(told.values().all(|told| *told == Some(false)), "{told:?}");
    assert_eq!(disk.seen().values().collect::<Vec<_>>(), whole().values().collect::<Vec<_>>());
}

#[test]
fn open_files_are_bounded_and_files_without_bytes_cost_nothing() {
    let mut storage = Storage::new(PageCache::default(), Durability::None);
    for key in 0..1000 {
        begin(&mut storage, key, &format!("file{key}")).unwrap();
        storage.extend_to(key, 1 << 40);
    }
    assert!(storage.disk.seen().is_empty(), "nothing was written");
    for round in 0..3 {
        (0..300).for_each(|key| storage.write_at(key, &[round], u64::from(round)).unwrap());
    }
    assert_eq!(storage.disk.open_max(), OPEN_FILES_MAX);
    assert!(storage.disk.seen().values().all(|bytes| *bytes == [0, 1, 2]));
    assert_eq!(storage.disk.seen().len(), 300);
}

#[test]
fn what_could_not_be_synced_when_it_was_closed_is_never_kept() {
    let mut storage = Storage::new(PageCache::default(), Durability::Directory);
    let fill = |storage: &mut Storage<PageCache, usize>| {
        for key in 0..=OPEN_FILES_MAX {
            begin(storage, key, &format!("file{key}")).unwrap();
            storage.write_at(key, b"x", 0).unwrap();
        }
    };
    fill(&mut storage);
    // The last file is begun, the first is synced and closed for it: then come a creation, a lock and a write.
    let sync = storage.disk.calls() - 4;
    let mut storage = Storage::new(PageCache::with_fault(sync, Fault::Fails(ErrorKind::Other)), Durability::Directory);
    fill(&mut storage);
    let kept = keep(&mut storage, [0, 1]);
    assert!(kept[0].1.as_ref().unwrap_err().contains("could not be synced"), "{kept:?}");
    assert_eq!(kept[1].1, Ok(true));
}

fn at(directory: &Path) -> Storage<Directory, u32> {
    Storage::new(Directory::open(directory).unwrap(), Durability::Directory)
}

fn files_of(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>();
    names.sort();
    names
}

#[test]
fn a_file_has_its_name_only_when_it_is_whole() {
    let directory = tempfile::tempdir().unwrap();
    let mut storage = at(directory.path());
    begin(&mut storage, 0, "a").unwrap();
    storage.write_at(0, b"world", 6).unwrap();
    storage.write_at(0, b"hello ", 0).unwrap();
    assert_eq!(files_of(directory.path()), ["a.part"]);
    assert_eq!(keep(&mut storage, [0]), [(0, Ok(true))]);
    assert_eq!(files_of(directory.path()), ["a"]);
    assert_eq!(std::fs::read(directory.path().join("a")).unwrap(), b"hello world");
}

#[test]
fn the_part_of_another_transfer_is_neither_in_the_way_nor_written() {
    let directory = tempfile::tempdir().unwrap();
    let mut storage = at(directory.path());
    for (key, bytes) in [(0, b"left"), (1, b"full"), (2, b"late")] {
        begin(&mut storage, key, "a").unwrap();
        storage.write_at(key, bytes, 0).unwrap();
    }
    let left = storage.leave(0, false).unwrap();
    assert_eq!(keep(&mut storage, [1]), [(1, Ok(true))]);
    assert!(keep(&mut storage, [2])[0].1.as_ref().unwrap_err().contains("not overwritten"));
    let late = storage.leave(2, false).unwrap();
    for (file, bytes) in [(left.as_str(), "left"), ("a", "full"), (&late, "late")] {
        assert_eq!(std::fs::read_to_string(directory.path().join(file)).unwrap(), bytes, "{file}");
    }
}

#[test]
fn what_exists_is_not_overwritten_and_links_are_not_followed() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("there"), b"old").unwrap();
    std::os::unix::fs::symlink(directory.path().join("target"), directory.path().join("link")).unwrap();
    for taken in ["there", "link"] {
        assert!(begin(&mut at(directory.path()), 0, taken).unwrap_err().contains("exists"), "{taken}");
    }
    assert!(!directory.path().join("target").exists());
}

#[test]
fn the_longest_name_has_a_part_file_too() {
    let directory = tempfile::tempdir().unwrap();
    let long = "ü".repeat(127);
    let mut storage = at(directory.path());
    begin(&mut storage, 0, &long).unwrap();
    storage.write_at(0, b"x", 0).unwrap();
    assert_eq!(keep(&mut storage, [0]), [(0, Ok(true))]);
    assert_eq!(files_of(directory.path()), [long]);
}
