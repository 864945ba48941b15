//! `cargo xtask packages`: every crate that others may depend on can be packed, and each package builds from itself.
//!
//! Called by people and by `ci`. Nothing is published: cargo gives the packages of one run to each other. Crates that say
//! `publish = false` are left out; their manifests say why.

use crate::shell;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// What the manifest of a published crate must say, as `cargo metadata` names it.
const FIELDS: &[&str] = &["description", "license", "readme", "rust_version"];

/// Packs all published crates and builds each package.
pub(crate) fn run(root: &Path) -> Result<()> {
    let packages = packages(root)?;
    // Why a directory of its own: a package knows no profile of the workspace, so everything below it is built in another way.
    let mut command = "cargo package --workspace --allow-dirty --quiet --target-dir target/packages".to_owned();
    for package in &packages {
        let name = package["name"].as_str().context("a package has no name")?;
        if is_published(package) {
            for field in FIELDS {
                ensure!(package[*field].is_string(), "{name} is published, but its Cargo.toml does not say its {field}");
            }
        } else {
            command.push_str(" --exclude ");
            command.push_str(name);
        }
    }
    eprintln!("$ {command}");
    if !shell::succeeds(root, &command, &[])? {
        bail!("packages: failed: {command}");
    }
    eprintln!("packages: {} can be published", packages.iter().filter(|package| is_published(package)).count());
    Ok(())
}

/// Whether the package may go to a registry: `cargo metadata` gives an empty list for `publish = false`.
fn is_published(package: &Value) -> bool {
    package["publish"].as_array().is_none_or(|registries| !registries.is_empty())
}

fn packages(root: &Path) -> Result<Vec<Value>> {
    let output = Command::new("cargo")
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .current_dir(root)
        .output()
        .context("cargo could not be started")?;
    ensure!(output.status.success(), "cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo metadata is no JSON")?;
    Ok(metadata["packages"].as_array().context("cargo metadata names no packages")?.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_package_is_published_unless_its_manifest_says_false() {
        assert!(is_published(&json!({ "publish": null })));
        assert!(is_published(&json!({ "publish": ["crates-io"] })));
        assert!(!is_published(&json!({ "publish": [] })));
    }

    #[test]
    fn a_published_crate_depends_on_published_crates_alone() {
        let packages = packages(&crate::tree::root().unwrap()).unwrap();
        let published: Vec<&str> =
            packages.iter().filter(|package| is_published(package)).map(|package| package["name"].as_str().unwrap()).collect();
        for package in packages.iter().filter(|package| is_published(package)) {
            for dependency in package["dependencies"].as_array().unwrap() {
                let name = dependency["name"].as_str().unwrap();
                if dependency["path"].is_string() && dependency["kind"] != "dev" {
                    assert!(published.contains(&name), "{} depends on {name}", package["name"]);
                }
            }
        }
    }
}
