//! `cargo xtask oldest`: the code builds with the oldest compiler that `Cargo.toml` promises.
//!
//! Called by people and by `ci`. Where that compiler is not installed, clippy looks for what is too new, and the last line says
//! that this is all that was done.

use crate::shell;
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::{Command, Stdio};

/// Builds everything that is no test with the oldest compiler.
pub(crate) fn run(root: &Path) -> Result<()> {
    let version = version(root)?;
    if is_installed(root, &version) {
        return step(root, &format!("cargo +{version} check --workspace --target-dir target/oldest"));
    }
    step(root, "cargo clippy --workspace -- -D clippy::incompatible_msrv")?;
    eprintln!(
        "oldest: Rust {version} is not installed here, so clippy alone has looked for what is newer; \
         for a build: rustup toolchain install {version} --profile minimal"
    );
    Ok(())
}

/// The `rust-version` of the workspace.
fn version(root: &Path) -> Result<String> {
    let text = std::fs::read_to_string(root.join("Cargo.toml")).context("Cargo.toml could not be read")?;
    let line = text.lines().find_map(|line| line.strip_prefix("rust-version = \"")).context("Cargo.toml names no rust-version")?;
    Ok(line.trim_end_matches('"').to_owned())
}

fn is_installed(root: &Path, version: &str) -> bool {
    let mut asked = Command::new("cargo");
    asked.args([&format!("+{version}"), "--version"]).current_dir(root).stdout(Stdio::null()).stderr(Stdio::null());
    asked.status().is_ok_and(|status| status.success())
}

fn step(root: &Path, command: &str) -> Result<()> {
    eprintln!("$ {command}");
    if !shell::succeeds(root, command, &[])? {
        bail!("oldest: failed: {command}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_oldest_compiler_is_the_one_the_manifest_names() {
        let version = super::version(&crate::tree::root().unwrap()).unwrap();
        assert!(version.starts_with("1.") && version[2..].parse::<u32>().is_ok(), "{version}");
    }
}
