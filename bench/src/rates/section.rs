//! The place of a summary in a file that has one of the emulator, one of virtual time, and one of cells drawn at random.
//!
//! Called by [`super::run`] with `--markdown`.
//!
//! Invariant: what is written takes the place of the section of its kind alone.

use anyhow::{Context as _, Result};
use std::io::ErrorKind;
use std::path::Path;

/// Where the runs of a summary were made, and of which cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Emulator,
    VirtualTime,
    /// In virtual time.
    Drawn,
}

impl Kind {
    /// In the order of the file.
    const ALL: [Self; 3] = [Self::Emulator, Self::VirtualTime, Self::Drawn];

    /// The heading that begins its section.
    pub(super) const fn heading(self) -> &'static str {
        match self {
            Self::Emulator => "# The matrix of rates",
            Self::VirtualTime => "# The matrix of rates in virtual time",
            Self::Drawn => "# Cells drawn at random, in virtual time",
        }
    }

    /// Where its section begins in a file.
    fn begins(self, file: &str) -> Option<usize> {
        let heading = format!("{}\n", self.heading());
        if file.starts_with(&heading) { Some(0) } else { file.find(&format!("\n{heading}")).map(|at| at + 1) }
    }

    /// Its section of a file; empty if there is none.
    fn section(self, file: &str) -> &str {
        let Some(from) = self.begins(file) else { return "" };
        let others = Self::ALL.into_iter().filter_map(|kind| kind.begins(file));
        &file[from..others.filter(|at| *at > from).min().unwrap_or(file.len())]
    }
}

/// The content of the file with `text` in its place.
pub(super) fn place(path: &Path, kind: Kind, text: &str) -> Result<String> {
    let before = match std::fs::read_to_string(path) {
        Ok(before) => before,
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error).with_context(|| format!("{} cannot be read", path.display())),
    };
    Ok(placed(&before, kind, text))
}

fn placed(before: &str, kind: Kind, text: &str) -> String {
    let sections = Kind::ALL.map(|each| if each == kind { text } else { each.section(before) }.trim_end());
    sections.into_iter().filter(|section| !section.is_empty()).map(|section| format!("{section}\n")).collect::<Vec<_>>().join("\n")
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
        let drawn = "# Cells drawn at random, in virtual time\n\nfour\n";
        let all = placed(&both, Kind::Drawn, drawn);
        assert_eq!(all, format!("{both}\n{drawn}"));
        assert_eq!(placed(&all, Kind::VirtualTime, simulated), all);
    }
}
