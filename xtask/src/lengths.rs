//! The check of lengths: no file above 600 lines, no function above 60.
//!
//! Called by `tidy`. The ten longest files and functions are printed on every run, so that growth is seen
//! before it is a failure. Test code is free in the length of its functions, not of its files.

use crate::finding::Finding;
use crate::functions::functions;
use crate::source::Source;
use crate::tree::File;

/// The most lines a Rust file may have.
pub(crate) const FILE_LINES_MAX: usize = 600;
/// The most lines a function may have, tests excepted.
pub(crate) const FUNCTION_LINES_MAX: usize = 60;
/// The most bytes a file may have.
pub(crate) const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// The most bytes a library may have that is kept as it was published, in a folder `vendor`.
pub(crate) const VENDORED_BYTES_MAX: u64 = 2 * FILE_BYTES_MAX;
/// How many of the longest are printed.
const SHOWN: usize = 10;

/// Something with a length, for the list of the longest.
#[derive(Debug, PartialEq, Eq)]
struct Length {
    lines: usize,
    place: String,
}

/// Checks all files and prints the longest.
pub(crate) fn check(files: &[File], findings: &mut Vec<Finding>) {
    let mut file_lengths = Vec::new();
    let mut function_lengths = Vec::new();
    for file in files {
        let bytes_max = if file.is_vendored() { VENDORED_BYTES_MAX } else { FILE_BYTES_MAX };
        if file.bytes > bytes_max {
            let message = format!("{} bytes, at most {bytes_max}; keep large data outside the repository", file.bytes);
            findings.push(Finding::of_file(&file.path, message));
        }
        let Some(text) = file.text.as_ref().filter(|_| file.is_rust()) else { continue };
        file_lengths.push(check_file(&file.path, text, findings));
        if !file.is_test() {
            check_functions(&file.path, text, &mut function_lengths, findings);
        }
    }
    show("files", file_lengths, FILE_LINES_MAX);
    show("functions", function_lengths, FUNCTION_LINES_MAX);
}

fn check_file(path: &str, text: &str, findings: &mut Vec<Finding>) -> Length {
    let lines = text.lines().count();
    if lines > FILE_LINES_MAX {
        let message = format!("{lines} lines, at most {FILE_LINES_MAX}; a concept is missing: name it and give it a file");
        findings.push(Finding::of_file(path, message));
    }
    Length { lines, place: path.to_owned() }
}

fn check_functions(path: &str, text: &str, lengths: &mut Vec<Length>, findings: &mut Vec<Finding>) {
    let source = Source::new(text);
    for function in functions(&source.code).into_iter().filter(|function| !source.is_test(function.at)) {
        let lines = function.lines;
        if lines > FUNCTION_LINES_MAX {
            let message = format!("the function `{}` has {lines} lines, at most {FUNCTION_LINES_MAX}; split it by decision", function.name);
            findings.push(Finding::of_line(path, function.line, message));
        }
        lengths.push(Length { lines, place: format!("{path}:{} {}", function.line, function.name) });
    }
}

fn show(what: &str, mut lengths: Vec<Length>, limit: usize) {
    lengths.sort_by(|a, b| b.lines.cmp(&a.lines).then_with(|| a.place.cmp(&b.place)));
    eprintln!("longest {what}, of at most {limit} lines:");
    for length in lengths.iter().take(SHOWN) {
        eprintln!("{:>6}  {}", length.lines, length.place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function_of(lines: usize) -> String {
        format!("fn long() {{\n{}}}\n", "    step();\n".repeat(lines - 2))
    }

    fn findings(text: &str) -> Vec<String> {
        let mut findings = Vec::new();
        check_file("a.rs", text, &mut findings);
        check_functions("a.rs", text, &mut Vec::new(), &mut findings);
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_function_at_the_limit_passes_and_one_line_more_fails() {
        assert_eq!(findings(&function_of(FUNCTION_LINES_MAX)), [""; 0]);
        let found = findings(&format!("\n{}", function_of(FUNCTION_LINES_MAX + 1)));
        assert!(found[0].starts_with("a.rs:2: the function `long` has 61 lines"), "{found:?}");
    }

    #[test]
    fn only_a_vendored_library_may_be_longer_than_other_files() {
        let count = |path: &str, bytes: u64| {
            let mut findings = Vec::new();
            check(&[File { path: path.to_owned(), bytes, text: None }], &mut findings);
            findings.len()
        };
        assert_eq!((count("a/data.json", FILE_BYTES_MAX), count("a/data.json", FILE_BYTES_MAX + 1)), (0, 1));
        assert_eq!((count("a/vendor/b.js", FILE_BYTES_MAX + 1), count("a/vendor/b.js", VENDORED_BYTES_MAX + 1)), (0, 1));
    }

    #[test]
    fn test_code_is_free_in_its_functions_but_not_in_its_file() {
        let long = function_of(FUNCTION_LINES_MAX + 1);
        assert_eq!(findings(&format!("#[cfg(test)]\nmod tests {{\n{long}}}\n")), [""; 0]);
        let found = findings(&format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "// line\n".repeat(FILE_LINES_MAX)));
        assert!(found[0].starts_with("a.rs: 603 lines, at most 600"), "{found:?}");
    }
}
