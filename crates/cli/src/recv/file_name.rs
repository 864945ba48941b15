//! A name that came from a peer, once it is safe to create a file of.
//!
//! Called for every offer and stream that is to become a file in a directory.
//!
//! Invariant: a safe path consists of names that stay below the directory it begins in. None is hidden, unless the receiver's user has
//! permitted that, so that whoever looks sees it, and a terminal or file manager shows it in the order of its characters.
//!
//! Source: Unicode 16.0, chapter 23 (characters that are not shown, or that change how others are); UTR 36 3.1 (bidirectional text).

use super::storage::SCRATCH_PREFIX;
use std::fmt;

/// The longest name that common file systems take, in bytes.
const BYTES_MAX: usize = 255;

/// The longest path and the most names in it. PATH_MAX is 4096 on Linux.
const PATH_BYTES_MAX: usize = 3500;
const DEPTH_MAX: usize = 100;

/// A path below a directory, without anything that could lead elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SafePath(String);

impl SafePath {
    /// A name without directories, if it is safe; else a sentence.
    pub(super) fn of_name(name: &str, hidden: bool) -> Result<Self, String> {
        match wrong(name, hidden) {
            None => Ok(Self(name.to_owned())),
            Some(wrong) => Err(refusal(name, wrong)),
        }
    }

    /// A path whose names are all safe; else a sentence.
    pub(super) fn of_path(path: &str, hidden: bool) -> Result<Self, String> {
        if path.len() > PATH_BYTES_MAX || path.split('/').count() > DEPTH_MAX {
            return Err(refusal(path, "is too long or too deep a path"));
        }
        match path.split('/').find_map(|name| wrong(name, hidden)) {
            None => Ok(Self(path.to_owned())),
            Some(wrong) => Err(refusal(path, wrong)),
        }
    }

    /// The path.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it leads through a directory.
    pub(super) fn is_nested(&self) -> bool {
        self.0.contains('/')
    }

    /// Whether a link of this path that leads to `target` stays below the directory where the path begins.
    pub(super) fn keeps(&self, target: &str) -> bool {
        if target.is_empty() || target.starts_with('/') || target.contains('\0') || target.len() > PATH_BYTES_MAX {
            return false;
        }
        // Why one less: the link's own name is no directory. Why at least one stays: the first directory is what was sent.
        let mut depth = self.0.split('/').count() - 1;
        let mut descends = false;
        for part in target.split('/') {
            match part {
                "" | "." => {}
                // Why not behind a name: that may be a link itself, and what is above it elsewhere.
                ".." if depth <= 1 || descends => return false,
                ".." => depth -= 1,
                _ => descends = true,
            }
        }
        true
    }
}

/// What is wrong with a name.
fn wrong(name: &str, hidden: bool) -> Option<&'static str> {
    Some(match name {
        "" => "is empty",
        "." | ".." => "stands for a directory",
        _ if name.contains(['/', '\\']) => "leads through directories",
        _ if name.starts_with(SCRATCH_PREFIX) => "is one that the receiver uses itself",
        _ if name.starts_with('.') && !hidden => "begins with a dot, which hides it (the receiver can permit that with --hidden)",
        _ if name.contains(char::is_control) => "has control characters",
        _ if name.contains(misleads) => "has characters that are not shown or change the order in which others are",
        _ if name.len() > BYTES_MAX => "is longer than 255 bytes",
        _ => return None,
    })
}

fn refusal(name: &str, wrong: &str) -> String {
    format!("the file name {} is refused because it {wrong}; send the file under a plain name", shown(name))
}

/// Whether a character makes a name look like another: it is not shown, or changes the direction of others.
fn misleads(character: char) -> bool {
    matches!(character,
        // Soft hyphen, combining grapheme joiner, Arabic letter mark, Hangul and Khmer fillers, Mongolian selectors.
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' |
        // Spaces without width, marks of direction, separators of lines, embeddings and overrides.
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' |
        // Invisible operators, isolates, deprecated formats.
        '\u{2060}'..='\u{206f}' |
        // The Hangul filler, byte order mark, half-width filler, annotations.
        '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' |
        // Musical and shorthand formats, tags.
        '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// A name for a sentence: what would mislead is escaped, and what is too long is cut.
fn shown(name: &str) -> String {
    let start: String = name.chars().take(80).collect();
    let escaped = start
        .chars()
        .map(|character| if misleads(character) { character.escape_unicode().to_string() } else { character.escape_debug().to_string() });
    format!("\"{}{}\"", escaped.collect::<String>(), if start.len() < name.len() { "..." } else { "" })
}

impl fmt::Display for SafePath {
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
            let sentence = SafePath::of_name(name, false).expect_err(name);
            assert!(sentence.contains("refused") && !sentence.contains(char::is_control), "{sentence}");
        }
        for name in ["a", "größe.bin", "a b", "-rf", "файл", "日本", "قلم.txt", "a..b", "né", &"a".repeat(255)] {
            assert_eq!(SafePath::of_name(name, false).unwrap().as_str(), name);
        }
    }

    #[test]
    fn names_that_hide_or_look_like_others_are_refused_and_shown_as_they_are() {
        for name in [".bashrc", "...", ".part"] {
            assert!(SafePath::of_name(name, false).unwrap_err().contains("hides it"), "{name}");
        }
        for name in ["photo\u{202e}gpj.exe", "a\u{200b}b", "\u{2066}x", "x\u{feff}", "a\u{2028}b", "\u{e0041}tag", "a\u{ad}b", "\u{61c}x"] {
            let sentence = SafePath::of_name(name, false).expect_err(name);
            assert!(sentence.contains("not shown") && sentence.contains("\\u{") && !sentence.contains(misleads), "{sentence}");
        }
        assert_eq!(SafePath::of_name(".bashrc", true).unwrap().as_str(), ".bashrc");
        assert!(SafePath::of_name(".segstream.1.part", true).is_err(), "what the receiver itself uses");
        let long = SafePath::of_name(&"ö".repeat(128), false).unwrap_err();
        assert!(long.contains("longer than 255 bytes") && long.len() < 400, "{long}");
    }

    #[test]
    fn paths_stay_below_their_directory_and_links_below_what_was_sent() {
        for path in ["a/b", "a/b c/größe"] {
            assert_eq!(SafePath::of_path(path, false).unwrap().as_str(), path);
        }
        for path in ["/a", "a//b", "a/../b", "../a", "a/", "a/.git/hooks", "a/b\\c", "", &"a/".repeat(200), &"a".repeat(300)] {
            assert!(SafePath::of_path(path, false).is_err(), "{path}");
        }
        let keeps = |path: &str, target: &str| SafePath::of_path(path, false).unwrap().keeps(target);
        assert!(keeps("tree/link", "a") && keeps("tree/sub/link", "../a") && keeps("tree/sub/link", "../sub/./x"));
        for (path, target) in [
            ("tree/link", "../other"),
            ("tree/sub/link", "../../x"),
            ("link", "a/.."),
            ("tree/a/link", "up/.."),
            ("tree/link", "/etc"),
            ("tree/link", ""),
        ] {
            assert!(!keeps(path, target), "{path} -> {target}");
        }
    }
}
