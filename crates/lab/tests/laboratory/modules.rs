//! The modules of the laboratory use one another in the order that the head of `lib.rs` draws, so there is no circle of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The line of the drawing that each module stands in.
fn drawn(head: &str) -> BTreeMap<String, usize> {
    let lines = head.lines().skip_while(|line| *line != "//! ```text order").skip(1).take_while(|line| *line != "//! ```");
    let mut order = BTreeMap::new();
    for (level, line) in lines.enumerate() {
        let names = line.trim_start_matches("//! ").split("   ").next().unwrap();
        for name in names.split_whitespace() {
            assert_eq!(order.insert(name.to_owned(), level), None, "{name} is drawn twice");
        }
    }
    order
}

/// The modules of the crate that the code of a file names, whose path from `src` has `depth` parts.
fn named(code: &str, depth: usize) -> BTreeSet<String> {
    let code = bare(code);
    let to_root = "super::".repeat(depth);
    let mut names = BTreeSet::new();
    for prefix in ["crate::", &to_root] {
        for (at, _) in code.match_indices(prefix) {
            let before = code[..at].chars().next_back();
            // `super::super::x` of a deeper file is no `super::x`, and `$crate`, `lab_crate` are others.
            if before.is_some_and(|before| before.is_alphanumeric() || before == '_' || before == ':') {
                continue;
            }
            names.extend(first_names(&code[at + prefix.len()..]));
        }
    }
    assert!(!code.contains("crate as ") && !code.contains("use crate;"), "the crate goes by another name");
    names
}

/// What stands behind `crate::`: a name, or the first names of a group.
fn first_names(rest: &str) -> Vec<String> {
    let name = |text: &str| text.trim_start().chars().take_while(|at| at.is_alphanumeric() || *at == '_').collect::<String>();
    let Some(group) = rest.strip_prefix('{') else { return vec![name(rest)] };
    let (mut names, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => {
                names.push(name(&group[start..at]));
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                names.push(name(&group[start..at]));
                start = at + 1;
            }
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// The code without comments, and without white space around `::`. What stands behind `#[cfg(test)]` is left out: tests come
/// last in a file and may look anywhere.
fn bare(code: &str) -> String {
    let code = code.split("\n#[cfg(test)]\nmod tests {").next().unwrap();
    let lines = code.lines().map(|line| if line.trim_start().starts_with("//") { "" } else { line.split(" //").next().unwrap() });
    let tokens: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    tokens.join(" ").replace(" ::", "::").replace(":: ", "::")
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
            found.push(path);
        }
    }
}

#[test]
fn modules_use_only_those_above_them_in_the_drawing() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let order = drawn(&fs::read_to_string(root.join("lib.rs")).unwrap());
    let mut files = Vec::new();
    sources(&root, &mut files);
    let mut seen = BTreeSet::new();
    for file in files {
        let parts: Vec<String> =
            file.strip_prefix(&root).unwrap().with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
        let module = &parts[0];
        if module == "lib" {
            continue;
        }
        seen.insert(module.clone());
        let level = order.get(module).unwrap_or_else(|| panic!("{module} is not in the drawing at the head of lib.rs"));
        let depth = parts.iter().filter(|part| *part != "mod").count();
        for name in named(&fs::read_to_string(&file).unwrap(), depth) {
            // A macro or an item of the root has no line.
            let Some(used) = order.get(&name) else { continue };
            assert!(name == *module || used < level, "{} uses {name}, which the drawing has beside or below {module}", file.display());
        }
    }
    assert_eq!(seen, order.keys().cloned().collect(), "the drawing has other modules than the folder");
}

#[test]
fn every_way_to_name_a_module_is_seen() {
    let code = "use crate::{\n    a::{x, y},\n    b,\n};\n// crate::comment\nfn f() { let _: crate :: c::T = super::super::d::g(); other_crate::e(); }\nstruct X; // crate::f";
    let names: Vec<String> = named(code, 2).into_iter().collect();
    assert_eq!(names, ["a", "b", "c", "d"]);
    assert_eq!(named("use super::super::x;\nuse super::y;", 1).into_iter().collect::<Vec<_>>(), ["super", "y"]);
    assert!(named("use super::super::x;\nuse super::y;", 3).is_empty());
    assert!(named("fn f() {}\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n", 1).is_empty());
}
