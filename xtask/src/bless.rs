//! `cargo xtask bless`: makes the expected tables and the pictures of the studies anew, and the table of the papers.
//!
//! Called by people after a change that is meant to change results; the difference is theirs to read.
//! All of it comes from the quick preset, which continuous integration repeats, so that every document has the numbers of one
//! preset and one build.
//!
//! Invariant: what is written comes from a run of this tree, and only `expected.csv`, `*.svg` and `NUMBERS.md` in the
//! studies' folders and `docs/PAPERS.md` are written.

use crate::shell;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// What is made anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// `expected.csv` of every study.
    Tables,
    /// The pictures and numbers of every study, and the table of the papers.
    Pictures,
}

/// Runs the studies and copies what they gave.
pub(crate) fn run(root: &Path, what: What) -> Result<()> {
    let (preset, out) = match what {
        What::Tables => ("--quick", "target/bless-tables"),
        What::Pictures => ("--quick", "target/bless-pictures"),
    };
    // Results of another version of the sources are of no use.
    let made = root.join(out);
    if made.exists() {
        fs::remove_dir_all(&made).with_context(|| format!("removing {}", made.display()))?;
    }
    let command = format!("cargo run --release -- study run --all {preset} --out {out}");
    eprintln!("$ {command}");
    // Why: differing from the old expected tables, which it reports as a failure, is what it is run for.
    let _differs = shell::succeeds(root, &command, &[])?;
    let mut copied = 0;
    for study in studies(&made)? {
        let target = root.join("studies").join(study.strip_prefix(&made)?);
        for entry in fs::read_dir(&study)? {
            let from = entry?.path();
            let Some(name) = target_name(&from, study.strip_prefix(&made)?, what) else { continue };
            fs::copy(&from, target.join(name)).with_context(|| format!("copying {}", from.display()))?;
            copied += 1;
        }
    }
    if copied == 0 {
        bail!("the studies gave nothing in {out}");
    }
    if what == What::Pictures {
        let from = made.join("papers.md");
        fs::copy(&from, root.join("docs/PAPERS.md")).with_context(|| format!("copying {}", from.display()))?;
        eprintln!("docs/PAPERS.md written");
    }
    eprintln!("{copied} files written under studies; read the difference before committing it");
    Ok(())
}

/// What a result is called in the study's folder, if it belongs there: `points.csv` is the expected table, and
/// of the pictures of `ec/fig11` `ec-fig11.svg` is `figure.svg`, `ec-fig11-full.svg` is `figure-full.svg`.
fn target_name(from: &Path, study: &Path, what: What) -> Option<PathBuf> {
    let name = from.file_name()?.to_str()?;
    match what {
        What::Tables => (name == "points.csv").then(|| "expected.csv".into()),
        What::Pictures if name == "numbers.md" => Some("NUMBERS.md".into()),
        What::Pictures => {
            let prefix = study.to_str()?.replace(['/', '_'], "-");
            let rest = name.strip_prefix(&prefix)?;
            rest.ends_with(".svg").then(|| format!("figure{rest}").into())
        }
    }
}

/// The folders `<paper>/<figure>` of a result directory.
fn studies(made: &Path) -> Result<Vec<PathBuf>> {
    let folders = |folder: &Path| -> Result<Vec<PathBuf>> {
        let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
        let mut folders: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_dir()).collect();
        folders.sort();
        Ok(folders)
    };
    let mut studies = Vec::new();
    for paper in folders(made)?.into_iter().filter(|folder| folder.file_name().is_some_and(|name| name != "store")) {
        studies.extend(folders(&paper)?);
    }
    Ok(studies)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_called_after_what_they_are() {
        let name = |from: &str, study: &str, what| target_name(Path::new(from), Path::new(study), what);
        assert_eq!(name("x/points.csv", "ec/fig11", What::Tables), Some("expected.csv".into()));
        assert_eq!(name("x/ec-fig11.svg", "ec/fig11", What::Tables), None);
        assert_eq!(name("x/ec-fig11.svg", "ec/fig11", What::Pictures), Some("figure.svg".into()));
        assert_eq!(name("x/ec-random-loss-max.svg", "ec/random_loss", What::Pictures), Some("figure-max.svg".into()));
        assert_eq!(name("x/numbers.md", "ec/fig11", What::Pictures), Some("NUMBERS.md".into()));
        assert_eq!(name("x/ec-fig11.csv", "ec/fig11", What::Pictures), None);
    }
}
