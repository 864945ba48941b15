//! A claim of a paper as code, and the verdicts on it.
//!
//! Written by the studies; evaluated by [`crate::study`].
//!
//! Invariant: a verdict rests on measured points alone and carries the numbers it rests on; none is given but by the rule of the labels,
//! since nothing else can make a [`Finding`].

use crate::measured::Measured;
use std::borrow::Cow;
use std::fmt;

/// The verdict on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// The numbers of the text are reproduced.
    Agrees,
    /// The direction or the order is reproduced, the numbers are not.
    ShapeOnly,
    /// It is not reproduced.
    DoesNotAgree,
    /// A parameter that the text leaves open was chosen because the claim comes out with it.
    ByConstruction,
    /// The text itself takes back what it says, or it is of a machine that is gone, so that neither outcome would tell anything.
    NotJudged,
}

impl Judgement {
    /// The rule of the labels: what the parts of a sentence that came out, and a choice that was made for its sake, amount to.
    ///
    /// 1. A part that is the *point* of the sentence does not come out, or nothing does: it does not agree.
    /// 2. A parameter that the text leaves open was chosen because the sentence comes out with it: by construction.
    /// 3. Every part comes out, at every setting that the sentence names and by the size that it names: it agrees.
    /// 4. Otherwise: shape only.
    pub fn by_rule(parts: &[Part], chosen: bool) -> Self {
        let point_fails = parts.iter().any(|part| part.is_point && !part.holds);
        let holding = parts.iter().filter(|part| part.holds).count();
        match (point_fails || holding == 0, chosen, holding == parts.len()) {
            (true, ..) => Self::DoesNotAgree,
            (false, true, _) => Self::ByConstruction,
            (false, false, true) => Self::Agrees,
            (false, false, false) => Self::ShapeOnly,
        }
    }
}

/// One part of what a sentence says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// What it says, in a few words.
    pub what: Cow<'static, str>,
    /// Whether it came out.
    pub holds: bool,
    /// Whether the sentence says nothing without it.
    pub is_point: bool,
}

impl Part {
    /// What the sentence is about: without it nothing is left of it.
    pub const fn point(what: &'static str, holds: bool) -> Self {
        Self { what: Cow::Borrowed(what), holds, is_point: true }
    }

    /// A size, a range or a second order that the sentence names besides.
    pub const fn also(what: &'static str, holds: bool) -> Self {
        Self { what: Cow::Borrowed(what), holds, is_point: false }
    }

    /// One of the settings at which a target of our own is to be met.
    pub fn setting(name: impl Into<String>, holds: bool) -> Self {
        Self { what: Cow::Owned(name.into()), holds, is_point: false }
    }
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Agrees => "agrees with the text",
            Self::ShapeOnly => "shape only",
            Self::DoesNotAgree => "does not agree",
            Self::ByConstruction => "by construction",
            Self::NotJudged => "not judged",
        })
    }
}

/// A judgement with its grounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    judgement: Judgement,
    /// The numbers it rests on.
    pub measured: String,
    /// Why, where it needs saying; else empty.
    pub explanation: String,
    parts: Vec<Part>,
}

impl Finding {
    /// A finding: the parts of the sentence, or the settings of a target, give the verdict, by [`Judgement::by_rule`].
    pub fn of(parts: impl Into<Vec<Part>>, measured: impl Into<String>) -> Self {
        let parts = parts.into();
        Self { judgement: Judgement::by_rule(&parts, false), measured: measured.into(), explanation: String::new(), parts }
    }

    /// The same where `parameter`, which the text leaves open, was chosen because the sentence comes out with it; `otherwise` says
    /// what comes out with its other values.
    pub fn by_choice_of(mut self, parameter: &str, otherwise: &str) -> Self {
        self.judgement = Judgement::by_rule(&self.parts, true);
        self.measured = format!("{}. Chosen for it: {parameter}; otherwise: {otherwise}", self.measured);
        self
    }

    /// A sentence that cannot be judged, with what was measured all the same.
    pub fn not_judged(measured: impl Into<String>) -> Self {
        Self { judgement: Judgement::NotJudged, measured: measured.into(), explanation: String::new(), parts: Vec::new() }
    }

    /// What was found.
    pub const fn judgement(&self) -> Judgement {
        self.judgement
    }

    /// What it was judged by; nothing where it was not.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The same with more told of what was measured.
    pub fn with(mut self, more: &str) -> Self {
        self.measured = format!("{}; {more}", self.measured);
        self
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(point: bool, size: bool) -> [Part; 2] {
        [Part::point("the order", point), Part::also("the size", size)]
    }

    #[test]
    fn without_its_point_a_sentence_does_not_agree_whatever_else_comes_out_or_was_chosen() {
        for chosen in [false, true] {
            for size in [false, true] {
                assert_eq!(Judgement::by_rule(&parts(false, size), chosen), Judgement::DoesNotAgree);
            }
        }
        assert_eq!(Judgement::by_rule(&[Part::also("the size", false)], false), Judgement::DoesNotAgree);
        assert_eq!(Judgement::by_rule(&[], false), Judgement::DoesNotAgree);
    }

    #[test]
    fn it_agrees_only_when_every_part_comes_out_and_nothing_was_chosen_for_it() {
        assert_eq!(Judgement::by_rule(&parts(true, true), false), Judgement::Agrees);
        assert_eq!(Judgement::by_rule(&parts(true, false), false), Judgement::ShapeOnly);
        assert_eq!(Judgement::by_rule(&parts(true, true), true), Judgement::ByConstruction);
        assert_eq!(Judgement::by_rule(&parts(true, false), true), Judgement::ByConstruction);
    }

    #[test]
    fn a_target_is_met_at_every_setting_at_some_or_at_none() {
        let at = |first, second| Finding::of([Part::setting("a", first), Part::setting("b", second)], "").judgement();
        assert_eq!([at(true, true), at(true, false), at(false, false)], [Judgement::Agrees, Judgement::ShapeOnly, Judgement::DoesNotAgree]);
    }

    #[test]
    fn a_choice_is_named_with_what_comes_out_otherwise() {
        let finding = Finding::of(parts(true, true), "94 ms").by_choice_of("500 Mbit/s", "171 ms at 100 Mbit/s");
        assert_eq!(finding.judgement(), Judgement::ByConstruction);
        assert_eq!(finding.parts(), parts(true, true));
        assert_eq!(finding.measured, "94 ms. Chosen for it: 500 Mbit/s; otherwise: 171 ms at 100 Mbit/s");
    }
}
