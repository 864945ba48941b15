//! Sweeps in several processes: `segstream sim sweep` and `segstream study run` with `--shard`, and their merges.

use crate::process::{run, start};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Twelve scenarios, two of them the same.
const GRID: &str = r#"
scheme = ["sstp", "segstream", "snr"]
loss = ["1e-3", "1e-3", "1e-2", "gilbert:rate=1%,burst=4"]
window = 9
packets = 20480
replications = 3
"#;

/// A study with points of two kinds of scheme, and a short run.
const STUDY: [&str; 3] = ["ec/random_loss", "--quick", "--threads=2"];

/// Every file below `folder` but the stores, by its path.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && path != folder.join("store") {
                open.push(path);
            } else if path.is_file() {
                found.insert(path.strip_prefix(folder).unwrap().display().to_string(), fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// How many results a store has.
fn stored(out: &Path) -> usize {
    let Ok(folders) = fs::read_dir(out.join("store")) else { return 0 };
    let folders = folders.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let files = folders.flat_map(|folder| fs::read_dir(folder).unwrap()).map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "json")).count()
}

#[test]
fn a_grid_gives_the_same_bytes_from_any_number_of_shards() {
    let folder = tempfile::tempdir().unwrap();
    let (grid, whole) = (folder.path().join("grid.toml"), folder.path().join("whole"));
    fs::write(&grid, GRID).unwrap();
    run(["sim", "sweep", text(&grid), "--out", text(&whole)]).expect(0);
    let wanted = files(&whole);
    assert_eq!(wanted.keys().collect::<Vec<_>>(), ["results.csv", "results.jsonl"]);
    let csv = String::from_utf8(wanted["results.csv"].clone()).unwrap();
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines[0].starts_with("scheme,loss,") && lines[0].contains(",throughput_efficiency,throughput_efficiency_ci95"), "{}", lines[0]);
    assert_eq!(lines.len(), 13);
    assert!(lines[4].starts_with("sstp,\"gilbert:rate=1%,burst=4\","), "{}", lines[4]);
    assert_eq!(lines[1], lines[2], "equal scenarios have equal results");
    assert!(!csv.contains("wall"), "{}", lines[0]);

    for count in [2, 3, 20] {
        let outs: Vec<_> = (1..=count).map(|index| folder.path().join(format!("{index}-of-{count}"))).collect();
        for (index, out) in outs.iter().enumerate() {
            let shard = format!("--shard={}/{count}", index + 1);
            let told = run(["sim", "sweep", text(&grid), &shard, "--threads=1", "--json", "--out", text(out)]).expect(0).json();
            assert_eq!((told["of"].as_u64(), files(out).len()), (Some(12), 0), "{told}");
        }
        assert_eq!(outs.iter().map(|out| stored(out)).sum::<usize>(), 9 * 3, "every run is made once");
        let merged = folder.path().join(format!("merged-{count}"));
        let from = outs.iter().flat_map(|out| ["--from", text(out)]);
        run(["sim", "merge", text(&grid), "--out", text(&merged)].into_iter().chain(from)).expect(0);
        assert!(files(&merged) == wanted, "{count} shards give other bytes");
    }
}

#[test]
fn a_killed_worker_costs_its_shard_only_and_its_shard_is_run_again_without_harm() {
    let folder = tempfile::tempdir().unwrap();
    let grid = folder.path().join("grid.toml");
    let [a, b, merged, completed, whole] = ["a", "b", "merged", "completed", "whole"].map(|name| folder.path().join(name));
    // Long enough that a worker is killed on its way.
    fs::write(&grid, GRID.replace("packets = 20480", "packets = 102400")).unwrap();
    run(["sim", "sweep", text(&grid), "--shard", "2/2", "--out", text(&b)]).expect(0);
    let first = ["sim", "sweep", text(&grid), "--shard", "1/2", "--threads", "1", "--out", text(&a)].map(str::to_owned);
    let killed = start(first.clone());
    while stored(&a) < 2 {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    killed.signal(Signal::KILL);
    assert_ne!(killed.end().code, Some(0));
    let survived = stored(&a);

    let merge = ["sim", "merge", text(&grid), "--from", text(&a), "--from", text(&b), "--out", text(&merged)];
    let ended = run(merge);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("a shard was not run to its end"), "{}", ended.stderr);
    assert!(files(&merged).is_empty());

    // Run again: what was finished is not made again, and twice changes nothing.
    run(first.clone()).expect(0);
    let made = stored(&a);
    assert!(survived < made && made == 5 * 3, "{survived} of {made}");
    let store = files(&a.join("store"));
    run(first).expect(0);
    assert!(files(&a.join("store")) == store, "a shard that was run again changed results");
    run(merge).expect(0);
    run(["sim", "sweep", text(&grid), "--out", text(&whole)]).expect(0);
    assert!(files(&merged) == files(&whole), "the bytes are others");
    // What no worker has can be made here.
    let alone = ["sim", "merge", text(&grid), "--from", text(&a), "--complete", "--out", text(&completed)];
    run(alone).expect(0);
    assert!(files(&completed) == files(&whole), "the bytes are others");
}

#[test]
fn a_study_gives_the_same_bytes_from_shards_in_one_directory_and_in_several() {
    let folder = tempfile::tempdir().unwrap();
    let out = |name: &str| folder.path().join(name);
    let study = |verb: &str, name: &str, more: &[&str]| {
        let out = out(name);
        let head = ["study", verb, "--out", text(&out)];
        let words: Vec<&str> = head.into_iter().chain(STUDY).chain(more.iter().copied()).collect();
        run(words)
    };
    study("run", "whole", &[]).expect(0);
    let wanted = files(&out("whole"));
    assert!(wanted.len() >= 5 && wanted.contains_key("report.html"), "{:?}", wanted.keys());
    for shard in ["1/3", "2/3", "3/3"] {
        study("run", shard.split('/').next().unwrap(), &["--shard", shard]).expect(0);
        study("run", "shared", &["--shard", shard]).expect(0);
    }
    let [first, second, third] = ["1", "2", "3"].map(out);
    study("merge", "merged", &["--from", text(&first), "--from", text(&second), "--from", text(&third)]).expect(0);
    study("merge", "shared", &[]).expect(0);
    for name in ["merged", "shared"] {
        assert!(files(&out(name)) == wanted, "{name}: the bytes are others");
    }
    let ended = study("merge", "partial", &["--from", text(&first)]);
    assert!(ended.code == Some(1) && ended.stderr.contains("a shard was not run to its end"), "{}", ended.stderr);
}

#[test]
fn what_is_no_shard_and_no_grid_is_bad_usage() {
    let folder = tempfile::tempdir().unwrap();
    let grid = folder.path().join("grid.toml");
    fs::write(&grid, "scheme = \"sstp\"\nspeed = 3\n").unwrap();
    for (words, part) in [
        (vec!["sim", "sweep", text(&grid)], "--speed"),
        (vec!["sim", "sweep", text(&grid), "--shard", "0/4"], "1/4 for the first of four"),
        (vec!["study", "run", "ec/fig11", "--shard", "5/4"], "1/4 for the first of four"),
        (vec!["study", "merge", "ec/fig99"], "study list"),
    ] {
        let ended = run(&words);
        assert!(ended.code == Some(2) && ended.stderr.contains(part), "{words:?}: {}", ended.stderr);
    }
    let ended = run(["sim", "sweep", text(&folder.path().join("none.toml"))]);
    assert!(ended.code == Some(1) && ended.stderr.contains("none.toml"), "{}", ended.stderr);
    let ended = run(["study", "merge", "ec/fig11", "--from", text(folder.path()), "--out", text(&folder.path().join("out"))]);
    assert!(ended.code == Some(1) && ended.stderr.contains("no result store"), "{}", ended.stderr);
}
