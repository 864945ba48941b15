//! `cargo xtask packages`: every crate that others may depend on can be packed, and each package builds from itself.
//!
//! Called by people and by `ci`. Nothing is published: cargo gives the packages of one run to each other. Crates that say
//! `publish = false` are left out; their manifests say why.

use crate::shell;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the manifest of a published crate must say, as `cargo metadata` names it.
const FIELDS: &[&str] = &["description", "license", "readme", "rust_version"];

/// A package knows no profile of the workspace. Why no debug information: nothing that is built here is run, and it is a third of the work.
const ENVIRONMENT: &[(&str, &str)] = &[("CARGO_PROFILE_DEV_DEBUG", "false")];

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
    remove_earlier_runs(root, &packages)?;
    eprintln!("$ {}{command}", shell::variables(ENVIRONMENT));
    if !shell::succeeds(root, &command, ENVIRONMENT)? {
        bail!("packages: failed: {command}");
    }
    eprintln!("packages: {} can be published", packages.iter().filter(|package| is_published(package)).count());
    Ok(())
}

/// Removes what earlier runs left: what they built, and what they unpacked of these packages.
///
/// Why: cargo gives the packages of one run to each other through a registry of its own below the target directory. It takes a
/// package of a registry for one that never changes, so it neither unpacks it again in its home nor builds it again. A second run
/// from the same directory would build against the sources of the first.
fn remove_earlier_runs(root: &Path, packages: &[Value]) -> Result<()> {
    let built = root.join("target/packages");
    if built.is_dir() {
        std::fs::remove_dir_all(&built).with_context(|| format!("{} cannot be removed", built.display()))?;
    }
    remove_unpacked(&cargo_home()?, packages)
}

/// Removes what is unpacked of these packages from registries in directories: `registry/src/-HASH` in cargo's home.
fn remove_unpacked(cargo_home: &Path, packages: &[Value]) -> Result<()> {
    let Ok(registries) = std::fs::read_dir(cargo_home.join("registry/src")) else { return Ok(()) };
    for registry in registries {
        let registry = registry?;
        // A registry in a directory has no host, so its name begins with the dash.
        if !registry.file_name().to_string_lossy().starts_with('-') {
            continue;
        }
        for package in packages {
            let (Some(name), Some(version)) = (package["name"].as_str(), package["version"].as_str()) else { continue };
            let unpacked = registry.path().join(format!("{name}-{version}"));
            if unpacked.is_dir() {
                std::fs::remove_dir_all(&unpacked).with_context(|| format!("{} cannot be removed", unpacked.display()))?;
            }
        }
    }
    Ok(())
}

/// Where cargo keeps what it unpacks: `CARGO_HOME`, else `.cargo` in the user's home.
fn cargo_home() -> Result<PathBuf> {
    if let Some(home) = std::env::var_os("CARGO_HOME") {
        return Ok(home.into());
    }
    std::env::home_dir().map(|home| home.join(".cargo")).context("neither CARGO_HOME nor a home directory is set")
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
    fn what_an_earlier_run_unpacked_is_removed_and_nothing_else() {
        let home = std::env::temp_dir().join(format!("xtask-packages-{}", std::process::id()));
        let src = home.join("registry/src");
        let (stale, other) = (src.join("-0123/ours-0.1.0"), src.join("-0123/other-0.1.0"));
        let downloaded = src.join("index.crates.io-0123/ours-0.1.0");
        for directory in [&stale, &other, &downloaded] {
            std::fs::create_dir_all(directory).unwrap();
        }
        remove_unpacked(&home, &[json!({ "name": "ours", "version": "0.1.0" })]).unwrap();
        assert!(!stale.exists() && other.exists() && downloaded.exists());
        std::fs::remove_dir_all(&home).unwrap();
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
