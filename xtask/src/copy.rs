//! A copy of the project for steps that break the code on purpose.
//!
//! Called by `faults` and `mutants`. The copy lies below `target`, and so does what is built from it.
//!
//! Invariant: the copy holds the files that git tracks or would track, and nothing else but what is built in it. A file
//! that has not changed is not written again, so that it is not built again.

use crate::tree;
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Brings the copy in `folder` up to date with the files of `root`.
pub(crate) fn refresh(root: &Path, folder: &Path) -> Result<()> {
    let mut kept = BTreeSet::new();
    for file in tree::files(root)? {
        let (from, to) = (root.join(&file.path), folder.join(&file.path));
        let content = std::fs::read(&from).with_context(|| format!("{} could not be read", from.display()))?;
        if std::fs::read(&to).ok().as_ref() != Some(&content) {
            let parent = to.parent().context("a file lies in a folder")?;
            std::fs::create_dir_all(parent).with_context(|| format!("{} could not be made", parent.display()))?;
            std::fs::write(&to, content).with_context(|| format!("{} could not be written", to.display()))?;
        }
        kept.insert(to);
    }
    remove_others(folder, &kept)
}

/// Removes what is not in `kept`: files of the project that are gone.
fn remove_others(folder: &Path, kept: &BTreeSet<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| format!("{} could not be read", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(&path, kept)?;
        } else if !kept.contains(&path) {
            std::fs::remove_file(&path).with_context(|| format!("{} could not be removed", path.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_from_the_project_goes_from_the_copy() {
        let folder = std::env::temp_dir().join(format!("segstream-copy-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("a/b")).unwrap();
        let (stays, goes) = (folder.join("a/stays"), folder.join("a/b/goes"));
        std::fs::write(&stays, "").unwrap();
        std::fs::write(&goes, "").unwrap();
        remove_others(&folder, &BTreeSet::from([stays.clone()])).unwrap();
        assert_eq!((stays.exists(), goes.exists()), (true, false));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
