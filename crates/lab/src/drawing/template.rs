//! What every page this project writes needs: a template filled in, text as text, JSON in a script element.
//!
//! Called by [`super::page`] and by the demonstration's page.
//!
//! Invariant: no text of a value is read as markup, ends a script element or stands for another part.

use serde::Serialize;

/// `template` with each `{{name}}` replaced by the part of that name, or by nothing when there is none.
pub fn filled(template: &str, parts: &[(&str, String)]) -> String {
    // What is filled in is never searched for further places, so no text can stand for another part.
    let mut page = String::with_capacity(template.len() + parts.iter().map(|part| part.1.len()).sum::<usize>());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        page.push_str(before);
        page.push_str(parts.iter().find(|part| part.0 == name).map_or("", |part| part.1.as_str()));
        rest = after;
    }
    page.push_str(rest);
    page
}

/// `value` as JSON that cannot end the script element it stands in, whatever its strings hold.
///
/// # Errors
/// When the value has no JSON form.
pub fn script_json<T: Serialize + ?Sized>(value: &T) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string(value)?.replace('<', "\\u003c"))
}

/// A text that stands for itself in HTML and XML, in an attribute too. Characters XML forbids are left out.
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars().filter(|&letter| is_printed(letter)) {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

/// Whether XML 1.0 allows the character.
pub(super) fn is_printed(letter: char) -> bool {
    matches!(letter, '\t' | '\n') || (letter >= ' ' && !matches!(letter, '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_filled_in_stands_for_no_other_part() {
        let parts = [("a", "{{b}}".to_owned()), ("b", "2".to_owned())];
        assert_eq!(filled("<{{a}}|{{b}}|{{c}}>", &parts), "<{{b}}|2|>");
    }

    #[test]
    fn a_string_cannot_end_a_script_or_be_markup() {
        assert!(!script_json("</script>").unwrap().contains('<'));
        assert_eq!(escaped("<a b='\"'>\u{1}&"), "&lt;a b=&#39;&quot;&#39;&gt;&amp;");
    }
}
