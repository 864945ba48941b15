//! `cargo xtask tidy`: the style of the project as far as a machine can check it.
//!
//! Called by people and by `ci`. Each check is a module: `lengths`, `names`, `words`, `links`. There is no
//! list of exceptions: what fails is mended.

use crate::finding::report;
use crate::{lengths, links, names, tree, words};
use anyhow::Result;
use std::path::Path;

/// Checks every file of the project, prints every finding, and fails when there is one.
pub(crate) fn run(root: &Path) -> Result<()> {
    let files = tree::files(root)?;
    let mut findings = Vec::new();
    lengths::check(&files, &mut findings);
    for file in &files {
        names::check(file, &mut findings);
        words::check(file, &mut findings);
        if file.is_markdown() {
            links::check(root, file, &mut findings);
        }
    }
    report("tidy", &format!("{} files", files.len()), findings)
}
