//! The header that is kept in the tree is the one that the sources give.

use crate::built::{bless, crate_folder};

/// The header as cbindgen writes it now.
pub(crate) fn written() -> String {
    let config = cbindgen::Config::from_file(crate_folder().join("cbindgen.toml")).expect("cbindgen.toml can be read");
    let mut text = Vec::new();
    let bindings = cbindgen::Builder::new().with_config(config).with_crate(crate_folder()).generate().expect("the sources can be read");
    bindings.write(&mut text);
    without_safety_sections(&String::from_utf8(text).expect("the sources are UTF-8"))
}

/// Leaves out what is written for Rust: the head of the section of what a caller promises, whose sentences stay.
fn without_safety_sections(text: &str) -> String {
    let heading = |line: &str| line.trim_start_matches([' ', '*']) == "# Safety";
    let mut lines: Vec<&str> = Vec::new();
    let mut skip_empty = false;
    for line in text.lines() {
        if heading(line) {
            skip_empty = true;
        } else if !(std::mem::take(&mut skip_empty) && line.trim() == "*") {
            lines.push(line);
        }
    }
    lines.join("\n") + "\n"
}

#[test]
fn the_header_in_the_tree_is_what_the_sources_give() {
    let path = crate_folder().join("include/segstream.h");
    let (kept, now) = (std::fs::read_to_string(&path).unwrap_or_default(), written());
    if kept != now && bless().is_some() {
        std::fs::write(&path, &now).expect("the header can be written");
        return;
    }
    let differs = kept.lines().zip(now.lines()).find(|(kept, now)| kept != now);
    assert!(
        kept == now,
        "include/segstream.h is not what the sources give (first difference: {differs:?}); \
         SEGSTREAM_BLESS=1 cargo test -p segstream-c writes it anew"
    );
}
