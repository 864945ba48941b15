//! Text that has to fit: how wide it is, and where it is broken into lines.
//!
//! Called by `svg` for the legend, the title and the names of the axes.
//!
//! Invariant: no line is wider than asked for, as far as a width is known without the reader's letters; the estimate is
//! on the wide side.

/// Wider letters than Helvetica are often what a machine has.
const RESERVE: f64 = 1.1;

/// A bold line is about as wide as a plain one in letters so much larger.
pub(super) const BOLD: f64 = 1.12;

/// About how wide a line of text is, in pixels, in letters of this size.
pub(super) fn width(text: &str, size: f64) -> f64 {
    text.chars().map(letter_width).sum::<f64>() * size * RESERVE
}

/// The width of a letter of Helvetica as a share of its size.
fn letter_width(letter: char) -> f64 {
    match letter {
        'i' | 'j' | 'l' | '\'' | '|' => 0.23,
        ' ' | '!' | ',' | '.' | '/' | ':' | ';' | 'I' | '[' | ']' | 'f' | 't' | '\u{2009}' => 0.28,
        '(' | ')' | '-' | '`' | 'r' | '\u{2070}'..='\u{207f}' | '\u{b2}' | '\u{b3}' | '\u{b9}' => 0.34,
        'm' | 'M' | 'W' | '%' | '@' | '\u{2014}' => 0.87,
        'w' | 'A'..='Z' => 0.70,
        // Letters of scripts written in squares.
        '\u{1100}'.. => 1.0,
        _ => 0.56,
    }
}

/// The text in lines of at most `most` pixels: broken between words, a longer word within. Empty text is no line.
pub(super) fn wrapped(text: &str, size: f64, most: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        if let Some(line) = lines.last_mut()
            && width(line, size) + width(" ", size) + width(word, size) <= most
        {
            line.push(' ');
            line.push_str(word);
            continue;
        }
        let mut line = String::new();
        for letter in word.chars() {
            if !line.is_empty() && width(&line, size) + width(letter.encode_utf8(&mut [0; 4]), size) > most {
                lines.push(std::mem::take(&mut line));
            }
            line.push(letter);
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bold_title_breaks_before_the_edge_of_its_picture() {
        let title = "A window of 36 with hard ACK that discards by group, by packet (dotted), and without pre-emption (dashed)";
        // In DejaVu Sans Bold of 15 pixels the line that ends in "pre-emption" is some 840 pixels wide.
        let lines = wrapped(title, 15.0 * BOLD, 792.0);
        assert_eq!(lines.last().unwrap(), "pre-emption (dashed)");
    }

    #[test]
    fn lines_are_broken_between_words_and_long_words_within() {
        let lines = wrapped("soft acknowledgment, (256,1,1) averyveryveryverylongwordindeed end", 12.0, 100.0);
        assert!(lines.len() > 3 && lines.iter().all(|line| width(line, 12.0) <= 100.0), "{lines:?}");
        assert_eq!(lines.concat().replace(' ', ""), "softacknowledgment,(256,1,1)averyveryveryverylongwordindeedend");
        assert_eq!(wrapped("one two", 12.0, 1000.0), ["one two"]);
    }

    #[test]
    fn no_text_is_no_line_and_no_room_is_a_letter_a_line() {
        assert!(wrapped("  ", 12.0, 100.0).is_empty());
        assert_eq!(wrapped("ab", 12.0, 0.0), ["a", "b"]);
    }
}
