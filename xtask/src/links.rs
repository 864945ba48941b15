//! The check of links: whatever a Markdown file of the project points to inside the project exists.
//!
//! Called by `tidy`. It reads `[text](target)`, `![text](target)`, `[name]: target` and `src="target"`
//! outside of code. Links to other sites are not followed: a check must not depend on the network.

use crate::finding::Finding;
use crate::tree::File;
use std::path::Path;

/// Checks one Markdown file.
pub(crate) fn check(root: &Path, file: &File, findings: &mut Vec<Finding>) {
    let Some(text) = &file.text else { return };
    let folder = root.join(&file.path).parent().map(Path::to_owned).unwrap_or_default();
    for (line, target) in targets(text) {
        let path = target.split(['#', '?']).next().unwrap_or_default();
        if is_elsewhere(&target) || path.is_empty() {
            continue;
        }
        if path.starts_with('/') || !folder.join(path).exists() {
            findings.push(Finding::of_line(
                &file.path,
                line,
                format!("the link to '{target}' leads nowhere; mend the path or add the file"),
            ));
        }
    }
}

fn is_elsewhere(target: &str) -> bool {
    target.contains("://") || target.starts_with("mailto:")
}

/// Every link target outside of code, with its line counted from 1.
fn targets(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            continue;
        }
        if !fenced {
            let mut targets = Vec::new();
            of_line(&without_code(line), &mut targets);
            found.extend(targets.into_iter().map(|target| (at + 1, target)));
        }
    }
    found
}

/// The line without what stands between backquotes.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join(" ")
}

fn of_line(line: &str, targets: &mut Vec<String>) {
    for (mark, end) in [("](", [')', ' ']), ("src=\"", ['"', ' '])] {
        for (at, _) in line.match_indices(mark) {
            let rest = &line[at + mark.len()..];
            targets.extend(rest.split(end).next().map(|target| target.trim_matches(['<', '>']).to_owned()));
        }
    }
    if let Some((name, target)) = line.split_once("]: ")
        && name.starts_with('[')
    {
        targets.extend(target.split_whitespace().next().map(str::to_owned));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_pictures_and_definitions_are_read_and_code_is_not() {
        let text = "See [a](b.md#x \"title\") and ![p](docs/p.png).\n\n```text\n[no](no.md)\n```\n`[no](no.md)` <img src=\"q.svg\">\n[r]: ../r.md\n";
        let expected = [(1, "b.md#x"), (1, "docs/p.png"), (6, "q.svg"), (7, "../r.md")];
        assert_eq!(targets(text), expected.map(|(line, target)| (line, target.to_owned())));
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found_with_its_line() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let text = "[here](src/links.rs) [above](#top) [site](https://example.org/x)\n[gone](src/gone.rs)\n";
        let file = File { path: "page.md".to_owned(), bytes: 0, text: Some(text.to_owned()) };
        let mut findings = Vec::new();
        check(root, &file, &mut findings);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert_eq!(findings[0].line, Some(2));
    }
}
