//! The scan for clocks, sockets, threads, files, entropy and hash maps in the pure crates.
//!
//! Called by `layers`. It reads the code with comments and literals blanked and leaves tests out, so prose
//! may speak of a clock and a test may use one.
//!
//! Limit: it is textual. It sees what a file mentions, not what a macro of another crate expands to; the
//! list of refused libraries in the table of layers closes most of that gap.

use crate::finding::Finding;
use crate::layers_table::layer;
use crate::source::{Source, after_closing, is_word, line_of, words};
use crate::tree::File;

/// Modules of the standard library that reach outside the program, and what to use instead.
const MODULES: &[(&str, &str)] = &[
    ("time", "time is an argument: take a `segstream_base::Instant`, and `core::time::Duration` for conversions"),
    ("net", "sockets belong to crates/net; addresses are in `core::net`"),
    ("thread", "threads belong to crates/net; a state machine is driven by its caller"),
    ("fs", "files belong to the command; take the bytes as an argument"),
    ("env", "the environment is a hidden input; take the value as an argument"),
    ("process", "processes belong to the command; return an error"),
];

/// Names that are refused wherever they come from, and what to use instead.
const NAMES: &[(&str, &str)] = &[
    ("SystemTime", "time is an argument: take a `segstream_base::Instant`"),
    ("UdpSocket", "sockets belong to crates/net"),
    ("TcpStream", "sockets belong to crates/net"),
    ("TcpListener", "sockets belong to crates/net"),
    ("getrandom", "randomness is a named stream: take a `segstream_base::random::Seed`"),
    ("OsRng", "randomness is a named stream: take a `segstream_base::random::Seed`"),
    ("ThreadRng", "randomness is a named stream: take a `segstream_base::random::Seed`"),
    ("thread_rng", "randomness is a named stream: take a `segstream_base::random::Seed`"),
    ("HashMap", "its order differs from run to run; use a BTreeMap, a sorted Vec or an index"),
    ("HashSet", "its order differs from run to run; use a BTreeSet, a sorted Vec or a bitmap"),
];

/// Scans the sources of the pure crates; returns how many files they have.
pub(crate) fn scan(files: &[File], findings: &mut Vec<Finding>) -> usize {
    let mut scanned = 0;
    for file in files.iter().filter(|file| file.is_rust() && is_pure(&file.path) && !file.is_test()) {
        let Some(text) = &file.text else { continue };
        scanned += 1;
        findings.extend(check(&file.path, text));
    }
    scanned
}

fn is_pure(path: &str) -> bool {
    let mut parts = path.split('/');
    parts.next() == Some("crates") && parts.next().and_then(layer).is_some_and(|layer| layer.pure) && parts.next() == Some("src")
}

fn check(path: &str, text: &str) -> Vec<Finding> {
    let source = Source::new(text);
    let code = source.code.as_str();
    let mut found: Vec<(usize, String)> = Vec::new();
    for (at, module) in std_modules(code) {
        if let Some((_, instead)) = MODULES.iter().find(|(name, _)| *name == module) {
            found.push((at, format!("`std::{module}` is not allowed here: {instead}")));
        }
    }
    for (name, instead) in NAMES {
        found.extend(words(code, name).map(|at| (at, format!("`{name}` is not allowed here: {instead}"))));
    }
    for at in words(code, "rand") {
        let next = next_path_part(code, at + 4).map(|(_, name)| name);
        if let Some(name @ ("rng" | "random")) = next {
            found.push((at, format!("`rand::{name}` is not allowed here: take a `segstream_base::random::Seed`")));
        }
    }
    found.retain(|(at, _)| !source.is_test(*at));
    found.sort();
    found.into_iter().map(|(at, message)| Finding::of_line(path, line_of(code, at), message)).collect()
}

/// Every module of `std` that the code names, in a path (`std::time::Instant`) or a group (`std::{fs, io}`).
fn std_modules(code: &str) -> Vec<(usize, &str)> {
    let mut modules = Vec::new();
    for at in words(code, "std") {
        let Some(after) = after_colons(code, at + 3) else { continue };
        if code[after..].starts_with('{') {
            group(code, after, &mut modules);
        } else {
            modules.push((at, word_at(code, after)));
        }
    }
    modules
}

/// The first word of every entry of the group that opens at `open`.
fn group<'a>(code: &'a str, open: usize, modules: &mut Vec<(usize, &'a str)>) {
    let end = after_closing(code, open).saturating_sub(1);
    let mut at = open + 1;
    let mut entry = true;
    while at < end {
        match code.as_bytes()[at] {
            b'{' => {
                at = after_closing(code, at);
                continue;
            }
            b',' => entry = true,
            byte if entry && is_word(byte) => {
                modules.push((at, word_at(code, at)));
                entry = false;
            }
            _ => {}
        }
        at += 1;
    }
}

fn next_path_part(code: &str, from: usize) -> Option<(usize, &str)> {
    let at = after_colons(code, from)?;
    Some((at, word_at(code, at)))
}

/// The offset after `::` and the spaces around it, when that is what stands at `from`.
fn after_colons(code: &str, from: usize) -> Option<usize> {
    let rest = code.get(from..)?.trim_start().strip_prefix("::")?;
    Some(code.len() - rest.trim_start().len())
}

fn word_at(code: &str, at: usize) -> &str {
    let rest = &code[at..];
    let len = rest.bytes().position(|byte| !is_word(byte)).unwrap_or(rest.len());
    &rest[..len]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        check("crates/base/src/x.rs", text).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn clocks_sockets_threads_files_and_entropy_are_named_with_their_line() {
        let text = "use std::time::Instant;\nuse std::net::UdpSocket;\nfn f() { std::thread::sleep(x); }\nlet r = rand::rng();\nstd :: fs::read(p);";
        let lines = found(text);
        assert!(lines[0].starts_with("crates/base/src/x.rs:1: `std::time` is not allowed here: time is an argument"), "{lines:?}");
        assert_eq!(lines.len(), 6, "{lines:?}");
        assert!(lines[5].contains(":5: `std::fs`"), "{lines:?}");
    }

    #[test]
    fn a_group_of_imports_is_looked_into() {
        let lines = found("use std::{\n    collections::{BTreeMap, HashMap},\n    fmt,\n    time::Instant,\n};");
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].contains(":2: `HashMap`") && lines[1].contains(":4: `std::time`"), "{lines:?}");
    }

    #[test]
    fn comments_texts_tests_and_harmless_paths_are_left_alone() {
        let text = "//! Never std::time::Instant.\nuse core::net::SocketAddr;\nuse std::fmt;\nconst A: &str = \"HashMap\";\nuse rand_core::Rng;\n#[cfg(test)]\nmod tests { use std::collections::HashMap; }";
        assert_eq!(found(text), [""; 0]);
    }

    #[test]
    fn only_the_sources_of_pure_crates_are_scanned() {
        assert!(is_pure("crates/proto/src/sender/tail.rs"));
        assert!(!is_pure("crates/net/src/lib.rs"));
        assert!(!is_pure("crates/proto/tests/loss.rs"));
        assert!(!is_pure("bench/src/main.rs"));
    }
}
