//! The files of the project: what git tracks, and what it would track.
//!
//! Called by `layers`, `tidy` and `copy`.
//!
//! Invariant: nothing that `.gitignore` names is looked at, so build output never fails a check.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// One file of the project.
pub(crate) struct File {
    /// The path relative to the root, with `/` between its parts.
    pub(crate) path: String,
    /// The length in bytes.
    pub(crate) bytes: u64,
    /// The content; `None` when it is not UTF-8.
    pub(crate) text: Option<String>,
}

impl File {
    /// Whether the file is Rust source.
    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether the file is Markdown.
    pub(crate) fn is_markdown(&self) -> bool {
        self.path.ends_with(".md")
    }

    /// Whether the file is a library of others, kept as it was published: anything below a folder `vendor`.
    pub(crate) fn is_vendored(&self) -> bool {
        self.path.split('/').rev().skip(1).any(|part| part == "vendor")
    }

    /// Whether the whole file is test code: a `tests.rs`, or anything below a folder `tests`.
    pub(crate) fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs") || self.path.split('/').rev().skip(1).any(|part| part == "tests")
    }
}

/// The root of the project: the folder above this crate.
pub(crate) fn root() -> Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(Path::to_owned).context("xtask must lie in a folder of the project")
}

/// Every file git tracks or would track, in the order of their paths.
pub(crate) fn files(root: &Path) -> Result<Vec<File>> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .current_dir(root)
        .output()
        .context("git could not be started; install it, the checks ask it which files belong to the project")?;
    if !output.status.success() {
        bail!("git ls-files failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let listed = String::from_utf8(output.stdout).context("a file name is not UTF-8; rename the file")?;
    let mut paths: Vec<&str> = listed.split('\0').filter(|path| !path.is_empty()).collect();
    paths.sort_unstable();
    paths.dedup();
    // A file that was removed but is still in the index is not there to be read.
    paths.into_iter().filter(|path| root.join(path).is_file()).map(|path| read(root, path)).collect()
}

fn read(root: &Path, path: &str) -> Result<File> {
    let content = std::fs::read(root.join(path)).with_context(|| format!("{path} could not be read"))?;
    Ok(File { path: path.to_owned(), bytes: content.len() as u64, text: String::from_utf8(content).ok() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_under_a_tests_folder_are_test_code_and_a_file_named_like_it_is_not() {
        let file = |path: &str| File { path: path.to_owned(), bytes: 0, text: None };
        assert!(file("crates/proto/tests/loss.rs").is_test());
        assert!(file("crates/proto/src/sender/tests.rs").is_test());
        assert!(file("crates/proto/src/sender/tests/tail.rs").is_test());
        assert!(!file("crates/proto/src/contests.rs").is_test());
        assert!(!file("crates/proto/src/sender.rs").is_test());
    }

    #[test]
    fn this_file_is_one_of_the_projects_files() {
        let files = files(&root().unwrap()).unwrap();
        assert!(files.iter().any(|file| file.path == "xtask/src/tree.rs"));
        assert!(!files.iter().any(|file| file.path.starts_with("target/")));
    }
}
