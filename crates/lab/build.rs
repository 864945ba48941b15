//! Hashes the sources of everything that decides a result, and the versions of the libraries below, so that a result store can tell whose it is.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The crates a simulated result depends on.
const CRATES: [&str; 8] = ["base", "blocks", "lab", "path", "proto", "schemes", "sim", "wire"];

fn main() -> io::Result<()> {
    let crates = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("..");
    let mut files = Vec::new();
    for name in CRATES {
        let sources = crates.join(name).join("src");
        println!("cargo::rerun-if-changed={}", sources.display());
        collect(&sources, &mut files)?;
    }
    let lock = crates.join("../Cargo.lock");
    println!("cargo::rerun-if-changed={}", lock.display());
    files.push(lock);
    files.sort();
    let mut hasher = blake3::Hasher::new();
    for file in &files {
        hasher.update(file.strip_prefix(&crates).unwrap_or(file).to_string_lossy().as_bytes());
        hasher.update(&fs::read(file)?);
    }
    println!("cargo::rustc-env=SEGSTREAM_MODEL={}", &hasher.finalize().to_hex()[..16]);
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}
