//! Functions and their lengths, from the keyword `fn` to the closing brace.
//!
//! Called by `lengths`. Attributes and doc comments above a function do not count; a function inside
//! another counts in both.

use crate::source::{after_closing, is_word, line_of, words};

/// A function with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    /// Its name.
    pub(crate) name: String,
    /// Where its keyword stands, as an offset in the code.
    pub(crate) at: usize,
    /// The line of its keyword, counted from 1.
    pub(crate) line: usize,
    /// Its lines, the first and the last included.
    pub(crate) lines: usize,
}

/// Every function with a body in blanked `code` (see [`crate::source::Source`]).
pub(crate) fn functions(code: &str) -> Vec<Function> {
    words(code, "fn").filter_map(|at| function(code, at)).collect()
}

/// The function whose keyword is at `at`; `None` for a type `fn(u8)`, a macro's `fn $name` and a
/// declaration without a body.
fn function(code: &str, at: usize) -> Option<Function> {
    let signature = code[at + 2..].trim_start();
    let name: String = signature.bytes().take_while(|byte| is_word(*byte)).map(char::from).collect();
    if name.is_empty() {
        return None;
    }
    let body = body(code, code.len() - signature.len() + name.len())?;
    let line = line_of(code, at);
    let last = line_of(code, after_closing(code, body).saturating_sub(1));
    Some(Function { name, at, line, lines: last - line + 1 })
}

/// The brace that opens the body of the function whose signature goes on at `from`.
fn body(code: &str, from: usize) -> Option<usize> {
    let bytes = code.as_bytes();
    let mut angles = 0usize;
    let mut at = from;
    while at < bytes.len() {
        match bytes[at] {
            b'(' | b'[' => {
                at = after_closing(code, at);
                continue;
            }
            // A constant among generic arguments: `Ring<{ N + 1 }>`.
            b'{' if angles > 0 => {
                at = after_closing(code, at);
                continue;
            }
            b'{' => return Some(at),
            b';' | b'}' => return None,
            b'<' => angles += 1,
            // The arrow before a return type closes nothing.
            b'>' if bytes[at - 1] != b'-' => angles = angles.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    fn lengths(text: &str) -> Vec<(String, usize, usize)> {
        functions(&Source::new(text).code).into_iter().map(|f| (f.name, f.line, f.lines)).collect()
    }

    fn row(name: &str, line: usize, lines: usize) -> (String, usize, usize) {
        (name.to_owned(), line, lines)
    }

    #[test]
    fn a_function_counts_from_its_keyword_to_its_closing_brace() {
        let text = "/// Doc.\n#[inline]\npub fn one() -> u8 {\n    1\n}\n\nfn two() {}\n";
        assert_eq!(lengths(text), [row("one", 3, 3), row("two", 7, 1)]);
    }

    #[test]
    fn braces_in_strings_comments_and_characters_do_not_end_a_function() {
        let text = "fn f() {\n    let a = \"}\";\n    // }\n    /* } */\n    let b = '}';\n    let c = r#\"}\"#;\n}\n";
        assert_eq!(lengths(text), [row("f", 1, 7)]);
    }

    #[test]
    fn a_signature_with_generics_bounds_and_constants_is_read_to_its_body() {
        let text = "fn f<T, const N: usize>(x: [u8; { 3 }], y: Ring<{ 1 + 1 }>) -> Result<Box<dyn Fn(u8) -> u8>, Ring<{ 2 }>>\nwhere\n    T: Into<u8>,\n{\n}\n";
        assert_eq!(lengths(text), [row("f", 1, 5)]);
    }

    #[test]
    fn types_declarations_and_words_that_contain_the_keyword_are_no_functions() {
        let text = "type F = fn(u8) -> u8;\ntrait T { fn declared(&self) -> [u8; 4]; fn given(&self) {\n} }\nlet fnord = r#fn; macro!(fn $name() {});";
        assert_eq!(lengths(text), [row("given", 2, 2)]);
    }

    #[test]
    fn a_function_within_a_function_counts_in_both() {
        let text = "fn outer() {\n    fn inner() {\n    }\n}\n";
        assert_eq!(lengths(text), [row("outer", 1, 4), row("inner", 2, 2)]);
    }
}
