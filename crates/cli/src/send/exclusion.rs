//! What is left out of directories: `--exclude`.
//!
//! Called by the walk, for every name it comes to.
//!
//! Invariant: a pattern without a slash is held against the last part of a path, one with a slash against all of it.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// Patterns of names that are not sent.
#[derive(Clone, Debug)]
pub(super) struct Exclusions {
    names: GlobSet,
    paths: GlobSet,
}

impl Exclusions {
    /// The patterns; a sentence for one that is none.
    pub(super) fn new<P: AsRef<str>>(patterns: &[P]) -> Result<Self, String> {
        let (mut names, mut paths) = (GlobSetBuilder::new(), GlobSetBuilder::new());
        for pattern in patterns {
            let pattern = pattern.as_ref();
            let glob = GlobBuilder::new(pattern.trim_end_matches('/')).literal_separator(true).build();
            let glob = glob.map_err(|error| format!("--exclude {pattern:?} is not a pattern: {}", error.kind()))?;
            let set = if pattern.trim_end_matches('/').contains('/') { &mut paths } else { &mut names };
            set.add(glob);
        }
        let built = |set: GlobSetBuilder| set.build().map_err(|error| format!("the patterns of --exclude cannot be used: {error}"));
        Ok(Self { names: built(names)?, paths: built(paths)? })
    }

    /// Whether the file or directory of this path, as the receiver would have it, is left out.
    pub(super) fn leave_out(&self, path: &str) -> bool {
        self.names.is_match(path.rsplit('/').next().unwrap_or(path)) || self.paths.is_match(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names_or_paths() {
        let exclusions = Exclusions::new(&["*.o", "target/", "docs/*.pdf", "**/cache/*"]).unwrap();
        for path in ["a.o", "x/y.o", "x/target", "docs/a.pdf", "a/b/cache/c"] {
            assert!(exclusions.leave_out(path), "{path}");
        }
        for path in ["a.out", "targets", "docs/sub/a.pdf", "cache"] {
            assert!(!exclusions.leave_out(path), "{path}");
        }
        assert!(Exclusions::new(&["[a"]).unwrap_err().contains("not a pattern"));
    }
}
