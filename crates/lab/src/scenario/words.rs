//! The words for what HTPNET can be told, on the command line and in a scenario's text.
//!
//! Called by both.
//!
//! Invariant: what a value is called reads back as that value.

use segstream_blocks::Search;
pub use segstream_schemes::htpnet::{Ptif, Ranges};

/// How much a receiver reports: `4`, `8`, `rotate` or `all`.
///
/// # Errors
/// Says what can be written.
pub fn ranges(text: &str) -> Result<Ranges, String> {
    Ranges::ALL
        .into_iter()
        .find(|ranges| of_ranges(*ranges) == text)
        .ok_or_else(|| format!("\"{text}\" is no number of runs to report; write 4, 8, rotate or all"))
}

/// The word for it.
pub const fn of_ranges(ranges: Ranges) -> &'static str {
    match ranges {
        Ranges::Four => "4",
        Ranges::Eight => "8",
        Ranges::Rotating => "rotate",
        Ranges::All => "all",
    }
}

/// How the table is searched: `fifo` or `exhaustive`.
///
/// # Errors
/// Says what can be written.
pub fn search(text: &str) -> Result<Search, String> {
    let all = [Search::Fifo, Search::Exhaustive];
    all.into_iter()
        .find(|search| of_search(*search) == text)
        .ok_or_else(|| format!("\"{text}\" is no way to search; write fifo or exhaustive"))
}

/// The word for it.
pub const fn of_search(search: Search) -> &'static str {
    match search {
        Search::Fifo => "fifo",
        Search::Exhaustive => "exhaustive",
    }
}

/// The law of congestion avoidance: `off`, `literal` or `held`.
///
/// # Errors
/// Says what can be written.
pub fn ptif(text: &str) -> Result<Ptif, String> {
    Ptif::ALL
        .into_iter()
        .find(|ptif| ptif.name() == text)
        .ok_or_else(|| format!("\"{text}\" is no law of congestion avoidance; write off, literal or held"))
}
