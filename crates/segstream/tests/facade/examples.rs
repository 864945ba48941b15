//! Every example runs, ends, and prints what its header says.
//!
//! `*` in a header stands for what differs from run to run.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What the header of an example says it prints.
fn expected(source: &str) -> Vec<String> {
    let header = source.lines().map_while(|line| line.strip_prefix("//!")).map(|line| line.strip_prefix(' ').unwrap_or(line));
    header.skip_while(|line| *line != "```text").skip(1).take_while(|line| *line != "```").map(str::to_owned).collect()
}

fn matches(pattern: &str, line: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == line };
    let Some(mut line) = line.strip_prefix(start) else { return false };
    let mut pieces: Vec<&str> = rest.split('*').collect();
    let last = pieces.pop().unwrap_or("");
    for piece in pieces {
        match line.find(piece) {
            Some(at) => line = &line[at + piece.len()..],
            None => return false,
        }
    }
    line.len() >= last.len() && line.ends_with(last)
}

/// The example's program, which `cargo test` builds beside this one.
fn program(name: &str) -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let build = here.parent().and_then(Path::parent).unwrap();
    let program = build.join("examples").join(name).with_extension(std::env::consts::EXE_EXTENSION);
    assert!(program.exists(), "{} is not built; run `cargo test -p segstream` or `cargo build -p segstream --examples`", program.display());
    program
}

fn check(name: &str) {
    let source = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(format!("{name}.rs"))).unwrap();
    assert!(source.lines().count() < 160, "{name} is too long for an example");
    for part in ["//! Shows: ", "//! Run: `cargo run -p segstream --example ", "//! Expect:"] {
        assert!(source.contains(part), "the header of {name} lacks {part:?}");
    }
    let output = Command::new(program(name)).output().unwrap();
    assert!(output.status.success(), "{name} failed: {}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout).unwrap();
    let (printed, expected): (Vec<&str>, Vec<String>) = (printed.lines().collect(), expected(&source));
    assert!(!expected.is_empty());
    let same = printed.len() == expected.len() && expected.iter().zip(&printed).all(|(pattern, line)| matches(pattern, line));
    assert!(same, "{name} printed\n{}\nand its header says\n{}", printed.join("\n"), expected.join("\n"));
}

#[test]
fn no_example_is_missing_here() {
    let mut names: Vec<String> = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples"))
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    names.sort();
    let known = [
        "01_hello",
        "02_tolerance",
        "03_open_segment",
        "04_progressive",
        "05_async",
        "06_statistics_and_rate",
        "07_own_congestion_control",
    ];
    assert_eq!(names, known);
}

#[test]
fn hello() {
    check("01_hello");
}

#[test]
fn tolerance() {
    check("02_tolerance");
}

#[test]
fn open_segment() {
    check("03_open_segment");
}

#[test]
fn progressive() {
    check("04_progressive");
}

#[test]
fn asynchronous() {
    check("05_async");
}

#[test]
fn statistics_and_rate() {
    check("06_statistics_and_rate");
}

#[test]
fn own_congestion_control() {
    check("07_own_congestion_control");
}
