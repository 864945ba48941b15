//! The sockets by which programs of one user on one machine find each other: `send` and `recv` listen, `top` looks.
//!
//! Each process has a socket named after its number, in a folder that only its user may enter.
//!
//! Invariant: a socket in the folder of another user is neither made nor read.

use anyhow::{Result, bail};
use std::fs::{DirBuilder, read_dir, remove_file};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// The folder, which is made if it is missing.
///
/// # Errors
/// If it cannot be made, or belongs to another user or is open to others.
pub(crate) fn folder() -> Result<PathBuf> {
    let user = rustix::process::getuid().as_raw();
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|runtime| runtime.is_absolute());
    let folder = runtime.map_or_else(|| std::env::temp_dir().join(format!("segstream-{user}")), |runtime| runtime.join("segstream"));
    DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    let found = std::fs::symlink_metadata(&folder)?;
    if !found.is_dir() || found.uid() != user || found.mode() & 0o077 != 0 {
        bail!("{} must be a directory of this user that others cannot enter; remove it or set XDG_RUNTIME_DIR", folder.display());
    }
    Ok(folder)
}

/// A socket that is removed when the program ends.
#[derive(Debug)]
pub(crate) struct OwnSocket(PathBuf);

impl OwnSocket {
    /// The path for a socket of this process; a socket that an earlier process with this number left there is removed.
    ///
    /// # Errors
    /// As for [`folder`].
    pub(crate) fn new() -> Result<Self> {
        let path = folder()?.join(format!("{}.sock", std::process::id()));
        // What is not there need not be removed; what cannot be removed fails when the socket is made.
        _ = remove_file(&path);
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for OwnSocket {
    fn drop(&mut self) {
        // A socket that stays is removed by whoever finds nobody behind it.
        _ = remove_file(&self.0);
    }
}

/// The sockets that there are, with the numbers of their processes.
pub(crate) fn list(folder: &Path) -> Vec<(u32, PathBuf)> {
    let entries = read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let number = |path: &Path| path.file_name()?.to_str()?.strip_suffix(".sock")?.parse().ok();
    let mut sockets: Vec<(u32, PathBuf)> = entries.filter_map(|path| Some((number(&path)?, path))).collect();
    sockets.sort();
    sockets
}
