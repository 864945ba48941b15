//! The check that dependencies between our crates run one way, as the table of layers says.
//!
//! Called by `cargo xtask layers`, which also runs the scan in `purity`. The graph comes from
//! `cargo metadata`, so it is what the compiler sees.

use crate::finding::{Finding, report};
use crate::layers_table::{IMPURE_LIBRARIES, layer, short_name};
use crate::{purity, tree};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Where the table is; every message about an edge points there.
const TABLE: &str = "xtask/src/layers_table.rs";

/// The workspaces whose crates use ours.
const WORKSPACES: [&str; 2] = ["Cargo.toml", "bindings/python/Cargo.toml"];

/// One package of the workspace.
#[derive(Debug)]
struct Package {
    /// The package name.
    name: String,
    /// Its manifest, relative to the root.
    manifest: String,
    /// What it depends on.
    dependencies: Vec<Dependency>,
}

/// One dependency of a package.
#[derive(Debug)]
struct Dependency {
    /// The package name.
    name: String,
    /// Whether only tests, examples and benchmarks see it.
    tests_only: bool,
    /// Whether it is one of our own crates, known by their path.
    ours: bool,
}

/// Checks the graph and the sources, prints every finding, and fails when there is one.
pub(crate) fn run(root: &Path) -> Result<()> {
    let mut packages = Vec::new();
    for workspace in WORKSPACES {
        packages.extend(self::packages(root, workspace)?);
    }
    let edges: usize = packages.iter().map(|package| package.dependencies.iter().filter(|dependency| dependency.ours).count()).sum();
    let mut findings: Vec<Finding> = packages.iter().flat_map(check).collect();
    findings.extend(heavy_for_the_facade(&facade_tree(root)?));
    let scanned = purity::scan(&tree::files(root)?, &mut findings);
    report("layers", &format!("{} crates, {edges} edges, {scanned} pure source files", packages.len()), findings)
}

fn packages(root: &Path, workspace: &str) -> Result<Vec<Package>> {
    let output = Command::new("cargo")
        .args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path", workspace])
        .current_dir(root)
        .output()
        .context("cargo could not be started")?;
    if !output.status.success() {
        bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo metadata did not print JSON")?;
    parse(&metadata)
}

fn parse(metadata: &Value) -> Result<Vec<Package>> {
    let root = metadata["workspace_root"].as_str().unwrap_or_default();
    let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    packages.iter().map(|package| parse_package(package, root)).collect()
}

fn parse_package(package: &Value, root: &str) -> Result<Package> {
    let name = package["name"].as_str().context("a package has no name")?.to_owned();
    let manifest = package["manifest_path"].as_str().unwrap_or_default();
    let manifest = manifest.strip_prefix(root).unwrap_or(manifest).trim_start_matches('/').to_owned();
    let dependencies = package["dependencies"].as_array().into_iter().flatten();
    let dependencies = dependencies.filter_map(|dependency| {
        let name = dependency["name"].as_str()?.to_owned();
        Some(Dependency { name, tests_only: dependency["kind"] == "dev", ours: dependency["path"].is_string() })
    });
    Ok(Package { name, manifest, dependencies: dependencies.collect() })
}

fn check(package: &Package) -> Vec<Finding> {
    let name = short_name(&package.name);
    let Some(layer) = layer(name) else {
        let message = format!("the crate '{name}' has no row in {TABLE}; add one that says what it may use");
        return vec![Finding::of_file(&package.manifest, message)];
    };
    let mut findings = Vec::new();
    for dependency in &package.dependencies {
        let used = short_name(&dependency.name);
        let allowed = layer.uses.contains(&used) || (dependency.tests_only && layer.tests_use.contains(&used));
        let message = if dependency.ours && !allowed {
            wrong_edge(name, used, dependency.tests_only, layer.uses)
        } else if layer.pure && !dependency.tests_only && IMPURE_LIBRARIES.contains(&dependency.name.as_str()) {
            format!("{name} -> {used}: '{name}' must know no clock, socket, thread or entropy; take the value as an argument")
        } else {
            continue;
        };
        findings.push(Finding::of_file(&package.manifest, message));
    }
    findings
}

/// What an application that links the facade without features must not have to build: an executor, the link emulator, and
/// what only the laboratory needs.
const HEAVY: [&str; 4] = ["tokio", "segstream-path", "tun-rs", "hdrhistogram"];

/// The packages that the facade needs without features, one a line.
fn facade_tree(root: &Path) -> Result<String> {
    let arguments = ["tree", "-p", "segstream", "--no-default-features", "-e", "normal", "--prefix", "none"];
    let output = Command::new("cargo").args(arguments).current_dir(root).output().context("cargo could not be started")?;
    if !output.status.success() {
        bail!("cargo tree failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn heavy_for_the_facade(tree: &str) -> Vec<Finding> {
    let heavy = HEAVY.into_iter().filter(|heavy| tree.lines().any(|line| line.split_whitespace().next() == Some(heavy)));
    let message = |heavy| {
        format!(
            "segstream depends on {heavy} without features; put what needs it behind a feature \
             (`cargo tree -p segstream --no-default-features -e normal -i {heavy}` shows what does)"
        )
    };
    heavy.map(|heavy| Finding::of_file("crates/segstream/Cargo.toml", message(heavy))).collect()
}

fn wrong_edge(name: &str, used: &str, tests_only: bool, uses: &[&str]) -> String {
    let of = if tests_only { "the tests of " } else { "" };
    let may = if uses.is_empty() { "none of our crates".to_owned() } else { uses.join(", ") };
    format!(
        "{name} -> {used}: {of}'{name}' may use {may}; move the code down to where both may see it, pass the value in from above, \
         or change the row in {TABLE} if the architecture is meant to change"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The messages about a workspace with one package `name` that has these dependencies.
    fn messages(name: &str, dependencies: &Value) -> Vec<String> {
        let metadata = json!({
            "workspace_root": "/somewhere",
            "packages": [{ "name": name, "manifest_path": "/somewhere/crates/x/Cargo.toml", "dependencies": dependencies }],
        });
        parse(&metadata).unwrap().iter().flat_map(check).map(|finding| finding.to_string()).collect()
    }

    fn ours(name: &str) -> Value {
        json!({ "name": name, "kind": null, "path": format!("/somewhere/{name}") })
    }

    #[test]
    fn an_edge_that_runs_down_is_allowed() {
        let down = json!([ours("segstream-base"), ours("segstream-blocks"), { "name": "smallvec", "kind": null }]);
        assert_eq!(messages("segstream-proto", &down), [""; 0]);
    }

    #[test]
    fn an_edge_that_runs_up_is_named_with_what_to_do() {
        let found = messages("segstream-blocks", &json!([ours("segstream-proto")]));
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("crates/x/Cargo.toml: blocks -> proto: 'blocks' may use base; move the code down"), "{}", found[0]);
        assert!(found[0].contains(TABLE), "{}", found[0]);
    }

    #[test]
    fn the_facade_may_not_use_the_emulator_but_its_tests_may() {
        assert_eq!(messages("segstream", &json!([ours("segstream-path")])).len(), 1);
        let dev = json!([{ "name": "segstream-path", "kind": "dev", "path": "/somewhere/path" }]);
        assert_eq!(messages("segstream", &dev), [""; 0]);
        assert_eq!(messages("segstream-wire", &dev).len(), 1);
    }

    #[test]
    fn the_facade_without_features_needs_no_executor_and_no_emulator() {
        assert_eq!(heavy_for_the_facade("segstream v0.1.0\nbytes v1.12.1\ntokio-not v1.0.0\n").len(), 0);
        let found = heavy_for_the_facade("segstream v0.1.0\ntokio v1.47.0\nsegstream-path v0.1.0 (/somewhere)\n");
        assert_eq!(found.len(), 2);
        assert!(found[0].to_string().contains("depends on tokio without features"), "{}", found[0]);
    }

    #[test]
    fn a_crate_without_a_row_is_refused() {
        let found = messages("segstream-attic", &json!([]));
        assert!(found[0].contains("'attic' has no row"), "{}", found[0]);
    }

    #[test]
    fn a_pure_crate_may_not_depend_on_a_library_with_a_clock_or_a_socket() {
        let tokio = json!([{ "name": "tokio", "kind": null }]);
        assert_eq!(messages("segstream-wire", &tokio).len(), 1);
        assert_eq!(messages("segstream-net", &tokio), [""; 0]);
        assert_eq!(messages("segstream-wire", &json!([{ "name": "tokio", "kind": "dev" }])), [""; 0]);
    }
}
