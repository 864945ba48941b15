//! The check of words: nothing left over, no path of one machine.
//!
//! Called by `tidy`, for every text git tracks.

use crate::finding::Finding;
use crate::source::{Source, is_word, line_of, words};
use crate::tree::File;

/// Words that say something is unfinished. Written in two parts, so that this file may name them.
const LEFT_OVER: &[&str] = &[concat!("FIX", "ME"), concat!("TO", "DO"), concat!("XX", "X"), concat!("HA", "CK")];

/// Where a path begins that exists on one machine only.
const MACHINE_PATHS: &[&str] =
    &[concat!("/wo", "rk/"), concat!("/tm", "p/"), concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/Use", "rs/")];

/// Checks one file.
pub(crate) fn check(file: &File, findings: &mut Vec<Finding>) {
    let Some(text) = &file.text else { return };
    for word in LEFT_OVER {
        for at in words(text, word) {
            let message = format!("`{word}` is left over; do it, or describe what is missing where a reader looks for it");
            findings.push(Finding::of_line(&file.path, line_of(text, at), message));
        }
    }
    if file.is_test() {
        return;
    }
    let source = file.is_rust().then(|| Source::new(text));
    for path in MACHINE_PATHS {
        for (at, _) in text.match_indices(path) {
            let within = at.checked_sub(1).is_some_and(|before| continues_a_path(text.as_bytes()[before]));
            let tested = source.as_ref().is_some_and(|source| source.is_test(at));
            if !within && !tested {
                let message = format!("`{path}` is a path of one machine; take the path as an argument or make it relative");
                findings.push(Finding::of_line(&file.path, line_of(text, at), message));
            }
        }
    }
}

/// Whether a slash after `byte` goes on with a path or an address instead of beginning one.
const fn continues_a_path(byte: u8) -> bool {
    is_word(byte) || matches!(byte, b'.' | b'-' | b'/' | b'~' | b'}' | b')')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        let file = File { path: path.to_owned(), bytes: 0, text: Some(text.to_owned()) };
        let mut findings = Vec::new();
        check(&file, &mut findings);
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn left_over_words_are_found_in_any_text_and_only_as_whole_words() {
        let word = LEFT_OVER[1];
        assert!(found("a.md", &format!("fine\n{word}: later"))[0].starts_with("a.md:2: "));
        assert_eq!(found("a.md", &format!("{word}S and s{word}")), [""; 0]);
        assert_eq!(found("a/tests/b.rs", &format!("// {word}")).len(), 1);
    }

    #[test]
    fn paths_of_one_machine_are_found_outside_tests() {
        let text = format!("let a = \"{}x\";", MACHINE_PATHS[1]);
        assert_eq!(found("a.rs", &text).len(), 1);
        assert_eq!(found("a/tests/b.rs", &text), [""; 0]);
        assert_eq!(found("a.rs", &format!("#[cfg(test)]\nmod tests {{ {text} }}")), [""; 0]);
        assert_eq!(found("a.md", &format!("https://example.org{}x", MACHINE_PATHS[2])), [""; 0]);
    }
}
