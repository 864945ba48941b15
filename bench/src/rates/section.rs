//! The place of a summary in a file that has one of the emulator and one of virtual time.
//!
//! Called by [`super::run`] with `--markdown`.
//!
//! Invariant: what is written takes the place of the section of its kind alone.

use anyhow::{Context as _, Result};
use std::io::ErrorKind;
use std::path::Path;

/// Where the runs of a summary were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Emulator,
    VirtualTime,
}

impl Kind {
    /// The heading that begins its section.
    pub(super) const fn heading(self) -> &'static str {
        match self {
            Self::Emulator => "# The matrix of rates",
            Self::VirtualTime => "# The matrix of rates in virtual time",
        }
    }
}

/// The content of the file with `text` in its place: the emulator's section comes first.
pub(super) fn place(path: &Path, kind: Kind, text: &str) -> Result<String> {
    let before = match std::fs::read_to_string(path) {
        Ok(before) => before,
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error).with_context(|| format!("{} cannot be read", path.display())),
    };
    Ok(placed(&before, kind, text))
}

fn placed(before: &str, kind: Kind, text: &str) -> String {
    let heading = format!("{}\n", Kind::VirtualTime.heading());
    let cut = if before.starts_with(&heading) { Some(0) } else { before.find(&format!("\n{heading}")).map(|at| at + 1) };
    let (emulator, simulated) = before.split_at(cut.unwrap_or(before.len()));
    let (emulator, simulated) = match kind {
        Kind::Emulator => (text, simulated),
        Kind::VirtualTime => (emulator, text),
    };
    let parts = [emulator, simulated].map(str::trim_end);
    parts.into_iter().filter(|part| !part.is_empty()).map(|part| format!("{part}\n")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_takes_its_own_place() {
        let (emulator, simulated) = ("# The matrix of rates\n\none\n", "# The matrix of rates in virtual time\n\ntwo\n");
        let both = placed(emulator, Kind::VirtualTime, simulated);
        assert_eq!(both, format!("{emulator}\n{simulated}"));
        assert_eq!(placed(simulated, Kind::Emulator, emulator), both);
        assert_eq!(placed(&both, Kind::VirtualTime, simulated), both);
        let new = placed(&both, Kind::Emulator, "# The matrix of rates\n\nthree\n");
        assert_eq!(new, both.replace("one", "three"));
    }
}
