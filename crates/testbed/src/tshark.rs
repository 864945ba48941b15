//! Wireshark's tshark, which reads captures with dissectors of its own or of this repository.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Set to 1, this variable makes a missing tshark a failure.
pub const REQUIRE: &str = "SEGSTREAM_REQUIRE_TSHARK";

/// Where the dissector of Segstream is, as the value of tshark's option `-X`.
pub fn segstream_script() -> String {
    let script: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().join("wireshark/segstream.lua");
    format!("lua_script:{}", script.display())
}

/// What tshark prints of `capture` with these arguments; nothing, and a line on standard error, where no tshark is installed.
///
/// # Panics
/// When tshark fails or a dissector in Lua does, and when there is no tshark although [`REQUIRE`] asks for one.
pub fn dissected<A: AsRef<OsStr>>(capture: &Path, arguments: impl IntoIterator<Item = A>) -> Option<String> {
    let output = match Command::new("tshark").arg("-r").arg(capture).args(arguments).output() {
        Ok(output) => output,
        Err(error) if error.kind() == ErrorKind::NotFound && std::env::var_os(REQUIRE).is_none_or(|set| set != "1") => {
            eprintln!("SKIPPED: no tshark is installed, so the capture was not dissected");
            return None;
        }
        Err(error) => panic!("tshark does not run ({error}); install it, or unset {REQUIRE}"),
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !errors.contains("Lua"), "{errors}");
    Some(String::from_utf8(output.stdout).unwrap())
}
