//! A claim of a paper as code, and the words of a verdict on it.
//!
//! Written by the studies; evaluated by [`crate::study`].
//!
//! Invariant: a verdict rests on measured points alone and carries the numbers it rests on.

use crate::measured::Measured;
use std::fmt;

/// What was found of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// The numbers of the text come out.
    Agrees,
    /// The direction or the order comes out, the numbers do not.
    ShapeOnly,
    /// It does not come out.
    DoesNotAgree,
    /// A parameter was inferred from the claim, so that it could not fail.
    ByConstruction,
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Agrees => "agrees with the text",
            Self::ShapeOnly => "shape only",
            Self::DoesNotAgree => "does not agree",
            Self::ByConstruction => "by construction",
        })
    }
}

/// A judgement with its grounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was found.
    pub judgement: Judgement,
    /// The numbers it rests on.
    pub measured: String,
    /// Why, where it needs saying; else empty.
    pub explanation: String,
}

impl Finding {
    /// A finding without explanation.
    pub fn new(judgement: Judgement, measured: impl Into<String>) -> Self {
        Self { judgement, measured: measured.into(), explanation: String::new() }
    }

    /// The same with an explanation.
    pub fn because(mut self, explanation: impl Into<String>) -> Self {
        self.explanation = explanation.into();
        self
    }
}

/// A claim of a paper.
pub struct Claim {
    /// `EC-C5`.
    pub id: &'static str,
    /// What the paper says, in our words, with the section.
    pub text: &'static str,
    /// Looks at the points; `None` when one it needs was not run or failed.
    pub check: fn(&Measured) -> Option<Finding>,
}
