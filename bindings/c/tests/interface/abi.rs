//! The binary interface as it was announced: exported symbols, prototypes, layouts, values.
//!
//! `abi/abi.txt` is the announcement. A change of it is announced by writing it anew, and one that breaks programs by a new version:
//! `SEGSTREAM_BLESS=1` adds lines; where a line goes or changes it refuses unless the name of the shared library has changed, or it is
//! `SEGSTREAM_BLESS=break`, for an interface that nobody has used yet.

use crate::built::{bless, crate_folder, has, libraries, run};
use std::collections::BTreeSet;
use std::process::Command;

/// The structures of the header, each with its fields.
fn structures(header: &str) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    let mut lines = header.lines();
    while let Some(line) = lines.next() {
        let Some(name) = line.strip_prefix("typedef struct ").and_then(|rest| rest.strip_suffix(" {")) else { continue };
        let declarations = lines.by_ref().take_while(|line| !line.starts_with('}')).map(str::trim);
        let fields = declarations.filter(|line| line.ends_with(';')).map(|line| {
            let name = line.trim_end_matches(';').rsplit([' ', '*']).next();
            name.expect("a declaration has a name").to_owned()
        });
        found.push((name.to_owned(), fields.collect()));
    }
    found
}

/// The names of the header's values.
fn values(header: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = header.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("typedef enum ") {
            let inside = lines.by_ref().take_while(|line| !line.starts_with('}'));
            found.extend(inside.filter_map(|line| line.trim().split_once(" = ")).map(|(name, _)| name.to_owned()));
        }
    }
    found
}

/// The prototypes of the header, each on one line.
fn prototypes(header: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut current = String::new();
    for line in header.lines() {
        let begins = line.contains(" segstream_") || line.contains(" *segstream_");
        if current.is_empty() && !(begins && line.contains('(') && !line.starts_with([' ', '/', '*', '#'])) {
            continue;
        }
        current.push_str(line.trim());
        if line.ends_with(';') {
            found.push(std::mem::take(&mut current).replace("( ", "("));
        } else {
            current.push(' ');
        }
    }
    found
}

/// A program that prints layouts and values as its compiler sees them.
fn program(header: &str) -> String {
    let mut text = String::from("#include \"segstream.h\"\n#include <stdio.h>\nint main(void)\n{\n");
    for (name, fields) in structures(header) {
        text.push_str(&format!("    printf(\"layout {name} %zu bytes\\n\", sizeof({name}));\n"));
        for field in fields {
            text.push_str(&format!(
                "    printf(\"layout {name}.{field} at %zu, %zu bytes\\n\", offsetof({name}, {field}), sizeof((({name} *)0)->{field}));\n"
            ));
        }
    }
    for name in values(header) {
        text.push_str(&format!("    printf(\"value {name} = %d\\n\", (int){name});\n"));
    }
    text + "    return 0;\n}\n"
}

/// The interface as it is.
fn interface(header: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let (source, binary) = (folder.path().join("layout.c"), folder.path().join("layout"));
    std::fs::write(&source, program(header)).unwrap();
    std::fs::write(folder.path().join("segstream.h"), header).unwrap();
    run(Command::new("gcc").args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-I"]).arg(folder.path()).arg(&source).arg("-o").arg(&binary));
    let layouts = run(&mut Command::new(&binary));

    let library = libraries().join("libsegstream_c.so");
    let dynamic = run(Command::new("readelf").args(["-d", "-W"]).arg(&library));
    let soname = dynamic.lines().find_map(|line| line.split_once("soname: [")).map(|(_, name)| name.trim_end_matches(']'));
    let symbols = run(Command::new("nm").args(["-D", "--defined-only", "--format=posix"]).arg(&library));
    let symbols: BTreeSet<&str> = symbols.lines().filter_map(|line| line.split(' ').next()).collect();

    let mut text = format!("soname {}\n", soname.unwrap_or("none"));
    symbols.iter().for_each(|symbol| text.push_str(&format!("symbol {symbol}\n")));
    let mut told = prototypes(header);
    told.sort();
    told.iter().for_each(|prototype| text.push_str(&format!("prototype {prototype}\n")));
    text + &layouts
}

#[test]
fn the_interface_is_the_one_that_was_announced() {
    if !["gcc", "nm", "readelf"].iter().all(|program| has(program)) {
        return;
    }
    let path = crate_folder().join("abi/abi.txt");
    let (announced, now) = (std::fs::read_to_string(&path).unwrap_or_default(), interface(&crate::header::written()));
    check_names(&now);
    let missing: Vec<&str> = announced.lines().filter(|line| !now.lines().any(|now| now == *line)).collect();
    let new: Vec<&str> = now.lines().filter(|line| !announced.lines().any(|announced| announced == *line)).collect();
    let breaks = !missing.is_empty() && !missing.iter().any(|line| line.starts_with("soname "));
    match bless().as_deref() {
        Some("break") => std::fs::write(&path, &now).unwrap(),
        Some(_) if !breaks => std::fs::write(&path, &now).unwrap(),
        _ => assert_eq!(
            announced, now,
            "the interface is not the one in abi/abi.txt; gone or changed: {missing:#?}\nnew: {new:#?}\nSEGSTREAM_BLESS=1 cargo test \
             -p segstream-c announces what is new; what breaks programs needs a new version, in Cargo.toml and in build.rs"
        ),
    }
}

/// Every exported symbol is in the header, and every function of the header is exported.
fn check_names(interface: &str) {
    let symbols: BTreeSet<&str> = interface.lines().filter_map(|line| line.strip_prefix("symbol ")).collect();
    let functions: BTreeSet<&str> = interface
        .lines()
        .filter_map(|line| line.strip_prefix("prototype "))
        .filter_map(|prototype| prototype.split('(').next()?.rsplit([' ', '*']).next())
        .collect();
    assert_eq!(symbols, functions);
    assert!(symbols.len() > 40 && symbols.iter().all(|symbol| symbol.starts_with("segstream_")), "{symbols:?}");
}
