//! A network namespace, which holds one end of the link.
//!
//! Called by the relay when it makes its devices, and by tests that run programs at an end.
//!
//! Source: setns(2), ip-netns(8) for the names.
//!
//! Invariant: the calling thread stays in its namespace; a temporary thread enters the other one.

use super::config::TunError;
use rustix::io::Errno;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;

/// Where `ip netns` keeps named namespaces.
const NAMED: &str = "/var/run/netns";

/// A handle that keeps a network namespace alive.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    file: File,
}

impl Namespace {
    /// Opens the namespace with the name `name`, as `ip netns` shows it, or at the path `name` if that contains a slash.
    ///
    /// # Errors
    /// It does not exist, or this user may not open it.
    pub fn open(name: &str) -> Result<Self, TunError> {
        let path = if name.contains('/') { PathBuf::from(name) } else { Path::new(NAMED).join(name) };
        let name = name.to_owned();
        match File::open(&path) {
            // Why: an empty name would be the folder of all namespaces.
            Ok(file) if file.metadata().is_ok_and(|found| found.is_file()) => Ok(Self { name, file }),
            Ok(_) => Err(TunError::NoNamespace { name }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(TunError::NoSuchNamespace { name, path }),
            Err(error) => Err(refused("look", &name, error)),
        }
    }

    /// The name or path it was opened by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether both are the same.
    pub fn is(&self, other: &Self) -> bool {
        let place = |file: &File| file.metadata().map(|file| (file.dev(), file.ino())).ok();
        place(&self.file).is_some_and(|here| Some(here) == place(&other.file))
    }

    /// Runs `work` inside, on a temporary thread. Sockets, devices and child processes that it creates stay inside, whichever
    /// thread uses them later.
    ///
    /// # Errors
    /// This user may not enter the namespace, or it is not one.
    ///
    /// # Panics
    /// If `work` panics.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, TunError> {
        thread::scope(|scope| {
            let inside = || self.enter().map(|()| work());
            let thread =
                thread::Builder::new().spawn_scoped(scope, inside).map_err(|error| refused("start a thread", &self.name, error))?;
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Moves this thread into the namespace.
    fn enter(&self) -> Result<(), TunError> {
        move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network)).map_err(|error| match error {
            Errno::INVAL => TunError::NoNamespace { name: self.name.clone() },
            error => refused("work", &self.name, error.into()),
        })
    }
}

/// The error of a step that the system refused.
pub(super) fn refused(step: &'static str, name: &str, source: io::Error) -> TunError {
    let name = name.to_owned();
    match source.kind() {
        io::ErrorKind::PermissionDenied => TunError::NotPermitted { step, name },
        _ => TunError::System { step, name, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_namespace_is_told_apart_from_what_does_not_exist() {
        let missing = Namespace::open("segstream-no-such").unwrap_err();
        assert!(matches!(missing, TunError::NoSuchNamespace { .. }));
        assert!(missing.to_string().contains("`ip netns add segstream-no-such`"), "{missing}");
        for folder in ["/proc", "/proc/"] {
            assert!(matches!(Namespace::open(folder), Err(TunError::NoNamespace { .. })));
        }
        let file = Namespace::open("/proc/self/status").unwrap();
        assert!(matches!(file.inside(|| ()), Err(TunError::NoNamespace { .. } | TunError::NotPermitted { .. })));
    }

    #[test]
    fn the_same_place_is_recognised_by_whatever_name() {
        let thread = Namespace::open("/proc/thread-self/ns/net").unwrap();
        assert!(Namespace::open("/proc/self/ns/net").unwrap().is(&thread));
        assert!(!Namespace::open("/proc/self/status").unwrap().is(&thread));
    }
}
