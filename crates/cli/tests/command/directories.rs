//! Directories arrive as they were, whatever is in them, and what is refused harms nothing else.

use crate::process::{content, receiver, send};
use serde_json::{Value, json};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A tree with files of many sizes, empty directories, links and modes; and the directory of the receiver.
fn tree(directory: &Path) -> (PathBuf, PathBuf) {
    let (tree, out) = (directory.join("tree"), directory.join("out"));
    std::fs::create_dir_all(tree.join("sub/empty")).unwrap();
    std::fs::create_dir(&out).unwrap();
    for index in 0..300 {
        std::fs::write(tree.join(format!("file{index}")), content(index * 37)).unwrap();
    }
    std::fs::write(tree.join("sub/large"), content(1_500_000)).unwrap();
    std::fs::write(tree.join("sub/script"), "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(tree.join("sub/script"), PermissionsExt::from_mode(0o750)).unwrap();
    let old = SystemTime::UNIX_EPOCH + Duration::new(1_500_000_000, 123_456_789);
    for name in ["file7", "sub/large", "sub/empty", "sub"] {
        std::fs::File::open(tree.join(name)).unwrap().set_modified(old).unwrap();
    }
    symlink("../file9", tree.join("sub/link")).unwrap();
    (tree, out)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Sends `tree` to `out`; both reports, which have the same exit status.
fn transfer(tree: &Path, out: &Path, flags: &[&str], recv_flags: &[&str], code: i32) -> [Value; 2] {
    let mut all = vec!["--out", text(out), "--json"];
    all.extend(recv_flags);
    let (receiver, address) = receiver(&all);
    let sent = send([&[address.as_str(), text(tree), "--json"], flags].concat()).expect(code);
    [sent.json(), receiver.end().expect(code).json()]
}

fn same(a: &Path, b: &Path, name: &str) {
    assert_eq!(std::fs::read(a.join(name)).unwrap(), std::fs::read(b.join(name)).unwrap(), "{name}");
    let (a, b) = (std::fs::metadata(a.join(name)).unwrap(), std::fs::metadata(b.join(name)).unwrap());
    assert_eq!((a.mtime(), a.mtime_nsec(), a.mode()), (b.mtime(), b.mtime_nsec(), b.mode()), "{name}");
}

#[test]
fn a_directory_arrives_with_names_modes_times_links_and_empty_directories() {
    let directory = tempfile::tempdir().unwrap();
    let (tree, out) = tree(directory.path());
    for report in transfer(&tree, &out, &["--links"], &[], 0) {
        assert_eq!((&report["files_total"], &report["files_failed"]), (&json!(306), &json!(0)), "{report}");
        assert_eq!(report["hash_agrees"], true);
    }
    let arrived = out.join("tree");
    for name in (0..300).map(|index| format!("file{index}")).chain(["sub/large".into(), "sub/script".into()]) {
        same(&tree, &arrived, &name);
    }
    assert_eq!(std::fs::read_link(arrived.join("sub/link")).unwrap(), Path::new("../file9"));
    for name in ["sub", "sub/empty"] {
        let time = |base: &Path| std::fs::metadata(base.join(name)).unwrap().mtime();
        assert_eq!(time(&tree), time(&arrived), "{name}");
    }
    let left: Vec<_> = std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["tree"], "nothing else is left");
}

#[test]
fn what_the_receiver_has_is_not_sent_again() {
    let directory = tempfile::tempdir().unwrap();
    let (tree, out) = tree(directory.path());
    transfer(&tree, &out, &[], &[], 0);
    for report in transfer(&tree, &out, &[], &[], 0) {
        assert_eq!((&report["bytes"], &report["segments"], &report["files_skipped"]), (&json!(0), &json!(0), &json!(302)), "{report}");
    }
}

#[test]
fn files_give_way_as_the_receiver_says() {
    let directory = tempfile::tempdir().unwrap();
    let (tree, out) = tree(directory.path());
    transfer(&tree, &out, &[], &[], 0);
    // The same length, another length, and one that is older than what is there.
    for (name, bytes) in [("file100", content(3700).into_iter().rev().collect()), ("file200", content(9)), ("file7", content(1))] {
        std::fs::write(tree.join(name), bytes).unwrap();
    }
    std::fs::File::open(tree.join("file7")).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    let changed = |names: &[&str]| {
        for name in ["file100", "file200", "file7"] {
            let is_same = std::fs::read(tree.join(name)).unwrap() == std::fs::read(out.join("tree").join(name)).unwrap();
            assert_eq!(is_same, names.contains(&name), "{name}");
        }
    };
    for report in transfer(&tree, &out, &[], &[], 1) {
        assert_eq!(report["files_failed"], 3, "{report}");
        let failed: Vec<&Value> = report["files"].as_array().unwrap().iter().filter(|file| !file["error"].is_null()).collect();
        assert!(failed.iter().all(|file| file["error"].as_str().unwrap().contains("exists at the receiver")), "{failed:?}");
    }
    changed(&[]);
    for report in transfer(&tree, &out, &[], &["--overwrite", "newer"], 0) {
        assert_eq!(report["files_failed"], 0, "{report}");
    }
    changed(&["file100", "file200"]);
    transfer(&tree, &out, &[], &["--overwrite", "always"], 0);
    changed(&["file100", "file200", "file7"]);
}

#[test]
fn what_is_refused_is_told_by_name_and_the_rest_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let (tree, out) = tree(directory.path());
    std::fs::write(tree.join(".hidden"), "x").unwrap();
    std::fs::write(tree.join("turned\u{202e}gpj.exe"), "x").unwrap();
    symlink("../../outside", tree.join("sub/escape")).unwrap();
    std::fs::create_dir(out.join("tree")).unwrap();
    // A link where a directory is to be: nothing is written through it.
    symlink(directory.path(), out.join("tree/sub")).unwrap();
    for report in transfer(&tree, &out, &["--links"], &[], 1) {
        let files = report["files"].as_array().unwrap();
        let failed: Vec<&str> = files.iter().filter(|file| !file["error"].is_null()).map(|file| file["name"].as_str().unwrap()).collect();
        let expected = [".hidden", "sub", "sub/empty", "sub/escape", "sub/large", "sub/link", "sub/script", "turned\u{202e}gpj.exe"];
        assert_eq!(failed, expected.map(|name| format!("tree/{name}")), "{report}");
    }
    same(&tree, &out.join("tree"), "file299");
    assert!(!directory.path().join("large").exists() && !directory.path().join("empty").exists());
    transfer(&tree, &out, &["--links", "--exclude", "sub", "--exclude", "turned*"], &["--hidden"], 0);
    assert!(out.join("tree/.hidden").exists());
}

#[test]
fn exclusions_and_a_dry_run_name_what_would_be_sent() {
    let directory = tempfile::tempdir().unwrap();
    let (tree, _) = tree(directory.path());
    let ended = send(["127.0.0.1:9", text(&tree), "--dry-run", "--exclude", "file*", "--exclude", "tree/sub/l*"]).expect(0);
    let listed = String::from_utf8(ended.stdout).unwrap();
    let names: Vec<&str> = listed.lines().map(|line| line.split_whitespace().last().unwrap()).collect();
    assert_eq!(names, ["tree/", "tree/sub/", "tree/sub/empty/", "tree/sub/script"]);
    let refused = send(["127.0.0.1:9", text(&tree), "--exclude", "[x"]).expect(2);
    assert!(refused.stderr.contains("not a pattern"), "{refused:?}");
}

#[test]
fn a_limit_refuses_what_is_above_it_and_leaves_nothing_that_blocks() {
    let directory = tempfile::tempdir().unwrap();
    let (tree, out) = tree(directory.path());
    for report in transfer(&tree, &out, &[], &["--max-bytes", "1.5MiB"], 1) {
        let files = report["files"].as_array().unwrap();
        let failed: Vec<&str> = files.iter().filter(|file| !file["error"].is_null()).map(|file| file["name"].as_str().unwrap()).collect();
        assert!(failed.contains(&"tree/sub/large"), "{failed:?}");
        assert!(report["files_failed"].as_u64().unwrap() < 100, "{report}");
    }
    for report in transfer(&tree, &out, &[], &[], 0) {
        assert_eq!(report["files_failed"], 0, "{report}");
    }
    same(&tree, &out.join("tree"), "sub/large");
}

#[test]
fn a_directory_needs_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    for out in ["-", text(&directory.path().join("target"))] {
        assert_refused(out);
    }
}

/// A tree is sent to a receiver with this `--out`, which is no directory.
fn assert_refused(out: &str) {
    let directory = tempfile::tempdir().unwrap();
    let (tree, _) = tree(directory.path());
    let (receiver, address) = receiver(&["--out", out]);
    let sent = send([&address, text(&tree)]).expect(1);
    assert!(sent.stderr.contains("tree is a directory, and --out of the receiver is no directory"), "{}", sent.stderr);
    receiver.end().expect(1);
}
