//! A file with a line of JSON for each result, by which a run that was ended goes on.
//!
//! Called by the journals of `paths` and `rates`.
//!
//! Invariant: what is there is never changed, and a line that was not written to its end is left out.

use anyhow::{Context as _, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

/// Reads what is there, and opens the file to add to it; makes it and its directory if they are not there.
pub(crate) fn open<T: DeserializeOwned>(path: &Path) -> Result<(File, Vec<T>)> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).with_context(|| format!("{} cannot be made", directory.display()))?;
    }
    let mut file = File::options().create(true).append(true).open(path).with_context(|| format!("{} cannot be written", path.display()))?;
    let text = std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
    if !text.is_empty() && !text.ends_with('\n') {
        writeln!(file)?;
    }
    let lines = || text.lines().filter(|line| !line.is_empty());
    let results: Vec<T> = lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    match lines().count() - results.len() {
        0 => {}
        left_out => eprintln!("{}: lines that are no results, as if interrupted or changed, and are left out: {left_out}", path.display()),
    }
    Ok((file, results))
}

/// Adds a line to the file, whose path is told if that fails.
pub(crate) fn add<T: Serialize>(file: &mut File, path: &Path, entry: &T) -> Result<()> {
    let line = serde_json::to_string(entry)? + "\n";
    file.write_all(line.as_bytes()).with_context(|| format!("{} cannot be written", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_no_results_are_left_out_and_what_is_added_has_a_line_of_its_own() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("new/results.jsonl");
        let (mut file, none) = open::<u32>(&path)?;
        assert!(none.is_empty());
        add(&mut file, &path, &1)?;
        file.write_all(b"{\"changed\"\n\n2\n\"cut off")?;
        let (mut file, kept) = open::<u32>(&path)?;
        assert_eq!(kept, [1, 2]);
        add(&mut file, &path, &3)?;
        assert_eq!(open::<u32>(&path)?.1, [1, 2, 3]);
        Ok(())
    }
}
