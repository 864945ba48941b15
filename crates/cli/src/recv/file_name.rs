//! A name that came from a peer, once it is safe to create a file of.
//!
//! Called for every stream that is to become a file in a directory.
//!
//! Invariant: a safe name is one part of a path: it leaves no directory and names no directory.

use std::fmt;

/// A name without anything that could lead elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileName(String);

impl FileName {
    /// The name, if it is safe; else a sentence.
    pub(super) fn parse(name: &str) -> Result<Self, String> {
        let wrong = match name {
            "" => "is empty",
            "." | ".." => "stands for a directory",
            _ if name.contains(['/', '\\']) => "leads through directories",
            _ if name.contains(char::is_control) => "has control characters",
            _ => return Ok(Self(name.to_owned())),
        };
        Err(format!("the file name {name:?} is refused because it {wrong}; send the file under a plain name"))
    }

    /// The name.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in ["", ".", "..", "../x", "/etc/passwd", "a/b", "a\\b", "x\0y", "a\nb", "\u{1b}[2J"] {
            let sentence = FileName::parse(name).expect_err(name);
            assert!(sentence.contains("refused") && !sentence.contains(char::is_control), "{sentence}");
        }
        for name in ["a", "...", "größe.bin", "a b", "-rf"] {
            assert_eq!(FileName::parse(name).unwrap().as_str(), name);
        }
    }
}
