//! The binary as a child process that never outlives its test.
//!
//! Transfers are encrypted unless a test says `--insecure`: [`receiver`] and [`send`] say whom they expect. All run with
//! one configuration directory, made for the tests, and so with one identity.

use segstream::Identity;
pub(crate) use segstream_testbed::process::{Ended, Running, content};
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::OnceLock;
use tempfile::TempDir;

/// The binary.
pub(crate) fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_segstream"))
}

/// The configuration directory of all tests that need none of their own, with an identity in it.
fn configuration() -> &'static (TempDir, Identity) {
    static CONFIGURATION: OnceLock<(TempDir, Identity)> = OnceLock::new();
    CONFIGURATION.get_or_init(|| {
        let directory = tempfile::tempdir().unwrap();
        let identity = Identity::load_or_create(&directory.path().join("segstream/identity.pem")).unwrap();
        (directory, identity)
    })
}

/// The identity of both ends, unless a test gives them others.
pub(crate) fn identity() -> Identity {
    configuration().1.clone()
}

/// The directory all that is in.
pub(crate) fn home() -> &'static Path {
    configuration().0.path()
}

/// Starts the binary as a user whose configuration is in `home`.
pub(crate) fn start_at<S: AsRef<OsStr>>(home: &Path, arguments: impl IntoIterator<Item = S>) -> Running {
    start_with_variables(home, &[], arguments)
}

/// The same with more variables in its environment, each written NAME=VALUE.
pub(crate) fn start_with_variables<S: AsRef<OsStr>>(home: &Path, variables: &[&str], arguments: impl IntoIterator<Item = S>) -> Running {
    let variable = |name: &str, path: &Path| [OsStr::new(name), path.as_os_str()].join(OsStr::new("="));
    let mut words = vec![variable("HOME", home), variable("XDG_CONFIG_HOME", home)];
    words.extend(variables.iter().map(|variable| (*variable).into()));
    words.push(binary().into());
    words.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
    segstream_testbed::process::start(Path::new("/usr/bin/env"), words)
}

/// Starts the binary.
pub(crate) fn start<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Running {
    start_at(home(), arguments)
}

/// Runs the binary to its end.
pub(crate) fn run<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Ended {
    start(arguments).end()
}

/// Starts `send`, which expects the identity of all tests.
pub(crate) fn start_send<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Running {
    start(expecting("send", "--peer", arguments))
}

/// Runs `send` to its end.
pub(crate) fn send<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Ended {
    start_send(arguments).end()
}

/// Starts a receiver of the identity of all tests on a free port; where it listens.
pub(crate) fn receiver(arguments: &[&str]) -> (Running, String) {
    let mut running = start(expecting("recv", "--allow", ["--listen", "127.0.0.1:0"].iter().chain(arguments)));
    let address = running.listening().to_string();
    (running, address)
}

/// The arguments of `verb`, which expects our identity under `flag`, unless it runs in the clear or serves anyone.
pub(crate) fn expecting<S: AsRef<OsStr>>(verb: &str, flag: &str, arguments: impl IntoIterator<Item = S>) -> Vec<OsString> {
    let mut words = vec![OsString::from(verb)];
    words.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
    if !words.iter().any(|word| word == "--insecure" || word == "--allow-anyone") {
        words.extend([flag.into(), identity().fingerprint().to_string().into()]);
    }
    words
}

/// Starts a link to `to`; where it listens.
pub(crate) fn link(to: &str, arguments: &[&str]) -> (Running, String) {
    let mut running = start(["link", "--listen", "127.0.0.1:0", "--to", to].iter().chain(arguments));
    let address = running.listening().to_string();
    (running, address)
}
