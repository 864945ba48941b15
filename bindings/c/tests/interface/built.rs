//! What cargo has built, and the programs that the tests need.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The folder of this crate.
pub(crate) fn crate_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where cargo has left the shared and the static library.
pub(crate) fn libraries() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    // Why there: a test builds libraries, and copies none to where `cargo build` leaves them.
    let folder = program.parent().unwrap().to_owned();
    for library in ["libsegstream_c.so", "libsegstream_c.a"] {
        assert!(folder.join(library).is_file(), "{} is not there; run the tests with cargo", folder.join(library).display());
    }
    folder
}

/// Whether the interface shall be written anew where it differs.
pub(crate) fn bless() -> Option<String> {
    std::env::var("SEGSTREAM_BLESS").ok().filter(|value| !value.is_empty())
}

/// Whether `program` is there. Its absence is a failure if `SEGSTREAM_REQUIRE_C_TOOLS` is set, as `.ci/run` does.
pub(crate) fn has(program: &str) -> bool {
    let there = Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success());
    if !there {
        assert!(std::env::var_os("SEGSTREAM_REQUIRE_C_TOOLS").is_none(), "{program} is not installed");
        eprintln!("skipped: {program} is not installed");
    }
    there
}

/// Runs a command that must succeed, and returns what it has printed.
pub(crate) fn run(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout).into_owned(), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?} failed with {status}:\n{stdout}{stderr}");
    stdout
}
