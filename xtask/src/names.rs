//! The check of names: files are called after a concept, have a known extension, and every module says
//! what it is.
//!
//! Called by `tidy`.

use crate::finding::Finding;
use crate::tree::File;

/// Extensions a file may have.
const EXTENSIONS: &[&str] = &[
    "c",
    "cff",
    "cpp",
    "css",
    "csv",
    "h",
    "html",
    "in",
    "ipynb",
    "js",
    "json",
    "jsonl",
    "lock",
    "lua",
    "md",
    "patch",
    "png",
    "proptest-regressions",
    "py",
    "pyi",
    "rs",
    "sh",
    "supp",
    "svg",
    "toml",
    "typed",
    "txt",
    "yml",
];

/// Files without an extension, by their path.
const PLAIN_FILES: &[&str] =
    &[".ci/run", ".gitattributes", ".gitignore", "LICENSE-APACHE", "LICENSE-MIT", "examples/sweeps/Snakefile", "verify/fuzz/.gitignore"];

/// The folder of fuzz inputs, whose files may be called anything.
const CORPUS: &str = "verify/fuzz/corpus/";

/// Names that say a rank or nothing instead of a concept.
const EMPTY_NAMES: &[&str] = &["common", "core", "helper", "helpers", "manager", "misc", "util", "utils"];

/// Endings of names that say when a file was written instead of what it is.
const DATED_ENDINGS: &[&str] = &["_new", "_old"];

/// Checks one file.
pub(crate) fn check(file: &File, findings: &mut Vec<Finding>) {
    if file.path.starts_with(CORPUS) {
        return;
    }
    let mut found = |message: String| findings.push(Finding::of_file(&file.path, message));
    for part in file.path.split('/') {
        let stem = part.split('.').next().unwrap_or(part);
        if EMPTY_NAMES.contains(&stem) {
            found(format!("'{stem}' names no concept; call it after the mechanism it holds"));
        }
        if DATED_ENDINGS.iter().any(|ending| stem.ends_with(ending)) {
            found(format!("'{stem}' says when it was written; call it after what it is, and remove what it replaces"));
        }
    }
    if !has_known_extension(&file.path) {
        found("its extension is not in the list in xtask/src/names.rs; add it there if such files belong to the project".to_owned());
    }
    if file.is_rust() && !file.text.as_deref().unwrap_or_default().starts_with("//! ") {
        found("the first line must be a `//!` comment that says what the module is".to_owned());
    }
}

fn has_known_extension(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() => EXTENSIONS.contains(&extension),
        _ => PLAIN_FILES.contains(&path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        let mut findings = Vec::new();
        check(&File { path: path.to_owned(), bytes: 0, text: Some(text.to_owned()) }, &mut findings);
        findings.len()
    }

    #[test]
    fn names_that_say_nothing_are_refused_for_files_and_folders() {
        let doc = "//! What it is.\n";
        assert_eq!(count("crates/a/src/interleave.rs", doc), 0);
        assert_eq!(count("crates/a/src/util.rs", doc), 1);
        assert_eq!(count("crates/a/tests/common/mod.rs", doc), 1);
        assert_eq!(count("crates/a/src/sender_new.rs", doc), 1);
        assert_eq!(count("crates/a/src/renew.rs", doc), 0);
    }

    #[test]
    fn extensions_outside_the_list_are_refused() {
        assert_eq!(count("docs/notes.xlsx", ""), 1);
        assert_eq!(count("notes", ""), 1);
        assert_eq!(count(".ci/run", ""), 0);
        assert_eq!(count("verify/fuzz/corpus/loss_spec/list", ""), 0);
    }

    #[test]
    fn a_module_without_docs_is_refused() {
        assert_eq!(count("crates/a/src/lib.rs", "use b;\n"), 1);
        assert_eq!(count("crates/a/src/lib.rs", "//! What it is.\n"), 0);
    }
}
