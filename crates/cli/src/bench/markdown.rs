//! The tables as Markdown: a file of their own, or a part of one that is there.
//!
//! Called by the verb with `--markdown`.
//!
//! Invariant: of a file that is there only what lies between its marks is replaced, and a file without them is refused.

use crate::usage;
use anyhow::{Context as _, Result};
use std::fs;
use std::io;
use std::ops::Range;
use std::path::Path;

/// What ends a part of any workload.
const END: &str = "<!-- /bench -->";

/// Puts each part, by workload and text, into the file: between the marks of its workload, or into a new file with them.
pub(super) fn write(file: &Path, parts: &[(&str, String)]) -> Result<()> {
    let text = match fs::read_to_string(file) {
        Ok(text) => {
            let put = |text, (workload, part): &(&str, String)| replaced(text, workload, part);
            parts.iter().try_fold(text, put).map_err(|mark| lacks(file, &mark))?
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            parts.iter().map(|(workload, part)| format!("{}\n{part}{END}\n", begin(workload))).collect::<Vec<_>>().join("\n")
        }
        Err(error) => return Err(error).with_context(|| format!("{} cannot be read", file.display())),
    };
    fs::write(file, text).with_context(|| format!("{} cannot be written", file.display()))
}

/// Refuses a file that has no place for a workload, before anything is measured.
///
/// # Errors
/// Bad usage.
pub(super) fn check(file: &Path, workloads: &[&str]) -> Result<()> {
    let Ok(text) = fs::read_to_string(file) else { return Ok(()) };
    match workloads.iter().find(|workload| place(&text, workload).is_none()) {
        Some(workload) => Err(lacks(file, &begin(workload))),
        None => Ok(()),
    }
}

fn lacks(file: &Path, mark: &str) -> anyhow::Error {
    usage::bad(format!("{} has no lines {mark} and {END} to write between; add them, or name a new file", file.display()))
}

fn begin(workload: &str) -> String {
    format!("<!-- bench:{workload} -->")
}

/// What lies between the marks of a workload.
fn place(text: &str, workload: &str) -> Option<Range<usize>> {
    let mark = begin(workload);
    let from = text.find(&mark)? + mark.len();
    let to = from + text.get(from..)?.find(END)?;
    Some(from..to)
}

/// `text` with `part` in its place; the missing mark if there is none.
fn replaced(mut text: String, workload: &str, part: &str) -> Result<String, String> {
    let place = place(&text, workload).ok_or_else(|| begin(workload))?;
    text.replace_range(place, &format!("\n{part}"));
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_between_the_marks_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.md");
        fs::write(&file, "before\n<!-- bench:throughput -->\nold\n<!-- /bench -->\nafter\n<!-- bench:records -->\n<!-- /bench -->\n")
            .unwrap();
        write(&file, &[("throughput", "new\n".to_owned())]).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text, "before\n<!-- bench:throughput -->\nnew\n<!-- /bench -->\nafter\n<!-- bench:records -->\n<!-- /bench -->\n");
        write(&file, &[("throughput", "new\n".to_owned())]).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), text, "written twice");
    }

    #[test]
    fn a_new_file_gets_its_marks_and_a_file_without_them_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (new, other) = (folder.path().join("new.md"), folder.path().join("other.md"));
        write(&new, &[("throughput", "a\n".to_owned()), ("records", "b\n".to_owned())]).unwrap();
        assert!(check(&new, &["records", "throughput"]).is_ok() && check(&new, &["ping-pong"]).is_err());
        fs::write(&other, "mine").unwrap();
        assert!(write(&other, &[("throughput", "a\n".to_owned())]).unwrap_err().to_string().contains("<!-- bench:throughput -->"));
        assert_eq!(fs::read_to_string(&other).unwrap(), "mine");
    }
}
