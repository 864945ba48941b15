//! The binary as a child process that never outlives its test.

pub(crate) use segstream_arena::process::{Ended, Running, content};
use std::ffi::OsStr;
use std::path::Path;

/// The binary.
pub(crate) fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_segstream"))
}

/// Starts the binary.
pub(crate) fn start<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Running {
    segstream_arena::process::start(binary(), arguments)
}

/// Runs the binary to its end.
pub(crate) fn run<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Ended {
    start(arguments).end()
}

/// Starts a receiver on a free port; where it listens.
pub(crate) fn receiver(arguments: &[&str]) -> (Running, String) {
    let mut running = start(["recv", "--listen", "127.0.0.1:0"].iter().chain(arguments));
    let address = running.listening().to_string();
    (running, address)
}

/// Starts a link to `to`; where it listens.
pub(crate) fn link(to: &str, arguments: &[&str]) -> (Running, String) {
    let mut running = start(["link", "--listen", "127.0.0.1:0", "--to", to].iter().chain(arguments));
    let address = running.listening().to_string();
    (running, address)
}
