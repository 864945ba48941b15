//! Rust source as the checks see it: comments and literals blanked out, test code marked.
//!
//! Called by `purity`, `lengths` and `words`. This is a lexer, not a parser: it knows comments (nested ones
//! too), strings (raw, byte and C ones too), characters, lifetimes and raw identifiers.
//!
//! Invariant: blanked code has the length and the line breaks of its source, so an offset in one is the same
//! place in the other.

use std::ops::Range;

/// A Rust source text and what the lexer knows of it.
pub(crate) struct Source {
    /// The text with every comment and literal replaced by spaces.
    pub(crate) code: String,
    /// The parts that are compiled for tests only.
    tests: Vec<Range<usize>>,
}

impl Source {
    /// Reads `text`.
    pub(crate) fn new(text: &str) -> Self {
        let code = blank(text);
        let tests = test_code(&code);
        Self { code, tests }
    }

    /// Whether the byte at `offset` belongs to code that is compiled for tests only.
    pub(crate) fn is_test(&self, offset: usize) -> bool {
        self.tests.iter().any(|range| range.contains(&offset))
    }
}

/// The line of the byte at `offset`, counted from 1.
pub(crate) fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}

/// Whether `byte` can be part of an identifier.
pub(crate) const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Every place where `word` stands in `text` with no letter, digit or underscore beside it.
pub(crate) fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = text.as_bytes();
    text.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let before = at.checked_sub(1).and_then(|at| bytes.get(at));
        let after = bytes.get(at + word.len());
        !before.is_some_and(|byte| is_word(*byte)) && !after.is_some_and(|byte| is_word(*byte))
    })
}

/// The offset just after the bracket that closes the one at `open`; the end of the code when none does.
pub(crate) fn after_closing(code: &str, open: usize) -> usize {
    let mut depth = 0usize;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    code.len()
}

/// The text with comments and literals replaced by spaces; line breaks stay.
fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let (end, keep) = token(bytes, at);
        match keep {
            Keep::Yes => {}
            Keep::RawIdentifier => out[at + 1] = b'_',
            Keep::No => {
                for byte in &mut out[at..end] {
                    if *byte != b'\n' {
                        *byte = b' ';
                    }
                }
            }
        }
        at = end;
    }
    // Tokens begin and end between characters, so what is left is UTF-8.
    String::from_utf8_lossy(&out).into_owned()
}

/// The result of checking a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keep {
    Yes,
    No,
    /// `r#fn` becomes `r_fn`, which no longer looks like the keyword.
    RawIdentifier,
}

/// Where the token that begins at `at` ends, and what it is.
fn token(bytes: &[u8], at: usize) -> (usize, Keep) {
    let rest = &bytes[at..];
    match rest[0] {
        b'/' if rest.starts_with(b"//") => (at + find(rest, b'\n').unwrap_or(rest.len()), Keep::No),
        b'/' if rest.starts_with(b"/*") => (at + block_comment(rest), Keep::No),
        b'"' => (at + string(rest, 0), Keep::No),
        b'\'' => match character(rest) {
            Some(len) => (at + len, Keep::No),
            None => (at + 1, Keep::Yes),
        },
        byte if is_word(byte) => word(bytes, at),
        _ => (at + 1, Keep::Yes),
    }
}

/// A word, or a literal with a prefix: `r"..."`, `br#"..."#`, `c"..."`, `b'x'`.
fn word(bytes: &[u8], at: usize) -> (usize, Keep) {
    let rest = &bytes[at..];
    let len = rest.iter().position(|byte| !is_word(*byte)).unwrap_or(rest.len());
    let (prefix, after) = rest.split_at(len);
    let raw = matches!(prefix, b"r" | b"br" | b"cr");
    if raw {
        let hashes = after.iter().take_while(|byte| **byte == b'#').count();
        if after.get(hashes) == Some(&b'"') {
            return (at + len + raw_string(after, hashes), Keep::No);
        }
        if prefix == b"r" && hashes == 1 {
            let name = after[1..].iter().take_while(|byte| is_word(**byte)).count();
            return (at + len + 1 + name, Keep::RawIdentifier);
        }
    }
    match after.first() {
        Some(b'"') if matches!(prefix, b"b" | b"c") => (at + len + string(after, 0), Keep::No),
        Some(b'\'') if prefix == b"b" => (at + len + character(after).unwrap_or(1), Keep::No),
        _ => (at + len, Keep::Yes),
    }
}

fn find(bytes: &[u8], wanted: u8) -> Option<usize> {
    bytes.iter().position(|byte| *byte == wanted)
}

/// The length of a block comment; they nest.
fn block_comment(rest: &[u8]) -> usize {
    let mut depth = 0usize;
    let mut at = 0;
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => {
                depth += 1;
                at += 2;
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    rest.len()
}

/// The length of a string whose opening quote is at `open`.
fn string(rest: &[u8], open: usize) -> usize {
    let mut at = open + 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// The length of a raw string that begins with `hashes` hashes and a quote.
fn raw_string(rest: &[u8], hashes: usize) -> usize {
    let closes = |at: usize| rest[at] == b'"' && rest[at + 1..].iter().take(hashes).filter(|byte| **byte == b'#').count() == hashes;
    (hashes + 1..rest.len()).find(|at| closes(*at)).map_or(rest.len(), |at| at + 1 + hashes)
}

/// The length of a character literal; `None` when the quote opens a lifetime or a label.
fn character(rest: &[u8]) -> Option<usize> {
    match *rest.get(1)? {
        b'\\' => Some(rest.get(3..).and_then(|tail| find(tail, b'\'')).map_or(rest.len(), |at| at + 4)),
        first => {
            let len = match first {
                0..0x80 => 1,
                0x80..0xe0 => 2,
                0xe0..0xf0 => 3,
                _ => 4,
            };
            (rest.get(1 + len) == Some(&b'\'')).then_some(len + 2)
        }
    }
}

/// The parts of blanked `code` that are compiled for tests only.
fn test_code(code: &str) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for (start, _) in code.match_indices('#') {
        if ranges.last().is_some_and(|range| range.contains(&start)) {
            continue;
        }
        let inner = code[start + 1..].starts_with('!');
        let open = start + 1 + usize::from(inner);
        if !code[open..].starts_with('[') {
            continue;
        }
        let end = after_closing(code, open);
        let attribute: String = code[open..end].split_whitespace().collect();
        if attribute == "[cfg(test)]" || attribute.starts_with("[cfg(all(test,") {
            ranges.push(if inner { 0..code.len() } else { start..item_end(code, end) });
        }
    }
    ranges
}

/// Where the item ends whose attribute ends at `from`.
///
/// Limit: an item that is neither closed by a brace nor by a semicolon, such as a field or a match arm, is
/// taken to end at the bracket around it.
fn item_end(code: &str, from: usize) -> usize {
    let bytes = code.as_bytes();
    let mut at = from;
    while at < bytes.len() {
        match bytes[at] {
            // Further attributes, arguments and array types.
            b'(' | b'[' => at = after_closing(code, at),
            b'{' => return after_closing(code, at),
            b';' => return at + 1,
            b')' | b']' | b'}' => return at,
            _ => at += 1,
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_lines_stay_where_they_are() {
        let text = "let a = \"{ \\\" }\"; // fn x() {\n/* { /* { */ } */ let b = '{';\nlet c = r#\"\" {\"#;";
        let code = Source::new(text).code;
        assert_eq!(code.len(), text.len());
        assert_eq!(code.lines().count(), 3);
        assert!(!code.contains(['{', '}', '"']), "{code}");
        assert!(code.contains("let b =") && code.contains("let c ="), "{code}");
    }

    #[test]
    fn a_lifetime_does_not_open_a_character() {
        let code = Source::new("fn f<'a>(x: &'a str, y: &'static str) -> char { 'x' }").code;
        assert_eq!(code, "fn f<'a>(x: &'a str, y: &'static str) -> char {     }");
        assert_eq!(
            Source::new("['\\'', '\"', b'\\\\', 'é']").code.trim_end().chars().filter(|c| !c.is_whitespace()).collect::<String>(),
            "[,,,]"
        );
    }

    #[test]
    fn prefixed_literals_are_literals_and_raw_identifiers_are_names() {
        assert_eq!(Source::new("f(b\"}\", c\"}\", br\"}\")").code.split_whitespace().collect::<String>(), "f(,,)");
        assert_eq!(Source::new("r#fn + bar").code, "r_fn + bar");
        assert_eq!(Source::new("for\"}\"").code, "for   ");
    }

    #[test]
    fn an_unfinished_literal_or_comment_ends_with_the_file() {
        for text in ["\"abc", "/* abc", "r##\"abc\"#", "'\\", "b'", "\"\\"] {
            assert_eq!(Source::new(text).code.len(), text.len(), "{text}");
        }
    }

    #[test]
    fn test_modules_are_marked_and_the_code_around_them_is_not() {
        let text = "fn a() {}\n#[cfg(test)]\n#[allow(unused)]\nmod tests { fn b() { } }\nfn c() {}\n#[cfg(not(test))]\nfn d() {}";
        let source = Source::new(text);
        let is_test = |name: &str| source.is_test(text.find(name).unwrap());
        assert!(!is_test("fn a"));
        assert!(is_test("fn b"));
        assert!(!is_test("fn c"));
        assert!(!is_test("fn d"));
    }

    #[test]
    fn a_test_only_declaration_ends_at_its_semicolon() {
        let text = "#[cfg(test)]\nmod tests;\nfn after() {}\n#[cfg(all(test, unix))] fn only() { } fn last() {}";
        let source = Source::new(text);
        assert!(!source.is_test(text.find("fn after").unwrap()));
        assert!(source.is_test(text.find("fn only").unwrap()));
        assert!(!source.is_test(text.find("fn last").unwrap()));
        assert!(Source::new("#![cfg(test)]\nfn a() {}").is_test(20));
    }

    #[test]
    fn a_word_is_found_only_where_it_stands_alone() {
        assert_eq!(words("HashMap MyHashMap HashMaps a::HashMap;", "HashMap").collect::<Vec<_>>(), [0, 30]);
    }
}
