//! A report as a value: what is said about each figure and table, before anything is drawn.
//!
//! Made by [`crate::study`], drawn by [`crate::drawing`], and written as JSON beside the drawing.
//!
//! Invariant: a section holds what its study made and nothing else.

use crate::figure::{Figure, TextTable};
use crate::heat_map::HeatMap;
use crate::standing::Standing;
use serde::Serialize;

/// A claim of a paper with what was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClaimLine {
    /// `EC-C5`.
    pub id: String,
    /// What the paper says, in our words.
    pub claim: String,
    /// "agrees with the text", "shape only", "does not agree", "by construction".
    pub verdict: String,
    /// The numbers the verdict rests on.
    pub measured: String,
    /// Why, where it does not agree; else empty.
    pub explanation: String,
}

/// What a report says about one figure or table of a paper.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Section {
    /// `ec/fig11`.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Where the text stands: paper, section, figure.
    pub source: String,
    /// A few sentences: what was run and what is seen. Plain text, paragraphs parted by an empty line.
    pub summary: String,
    /// Its pictures.
    pub figures: Vec<Figure>,
    /// Its heat maps.
    pub heat_maps: Vec<HeatMap>,
    /// Its tables.
    pub tables: Vec<TextTable>,
    /// The claims it bears on.
    pub claims: Vec<ClaimLine>,
    /// Where the flagship stands beside the paper's scheme.
    pub standings: Vec<Standing>,
    /// Parameters: name and value, chosen ones marked so in the value.
    pub parameters: Vec<(String, String)>,
}

/// A whole report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Its title.
    pub title: String,
    /// What made it: versions, preset, seeds, processors. Name and value.
    pub provenance: Vec<(String, String)>,
    /// Its sections, in order.
    pub sections: Vec<Section>,
}
