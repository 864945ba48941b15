//! When a target is met.
//!
//! Called by the claims of this folder's studies.
//!
//! The words are those of the papers' claims: a target that is met everywhere *agrees with the text*; one that is met at
//! some of its settings agrees in *shape only*; one that is met nowhere does *not agree*.
//!
//! Invariant: the settings at which a target is missed are named.

use segstream_lab::claim::{Finding, Part};

/// A setting at which a target is judged: its name, the number, and whether that meets it.
pub(super) struct Place {
    name: String,
    number: String,
    met: bool,
}

impl Place {
    /// A setting with its number.
    pub(super) fn new(name: impl Into<String>, number: impl Into<String>, met: bool) -> Self {
        Self { name: name.into(), number: number.into(), met }
    }
}

/// The finding on a target from its settings; `why` is told when it is missed somewhere.
pub(super) fn judged(places: &[Place], why: &str) -> Finding {
    let missed: Vec<&str> = places.iter().filter(|place| !place.met).map(|place| place.name.as_str()).collect();
    let parts: Vec<Part> = places.iter().map(|place| Part::setting(place.name.as_str(), place.met)).collect();
    let measured: Vec<String> = places.iter().map(|place| format!("{}: {}", place.name, place.number)).collect();
    let finding = Finding::of(parts, measured.join("; "));
    if missed.is_empty() { finding } else { finding.because(format!("Missed at {}. {why}", missed.join(", "))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segstream_lab::claim::Judgement;

    #[test]
    fn a_target_missed_at_one_setting_is_not_met_and_names_it() {
        let places = [Place::new("a", "1", true), Place::new("b", "2", false)];
        let finding = judged(&places, "Because.");
        assert_eq!(finding.judgement(), Judgement::ShapeOnly);
        assert_eq!(finding.explanation, "Missed at b. Because.");
        assert_eq!(judged(&places[..1], "").judgement(), Judgement::Agrees);
        assert_eq!(judged(&places[1..], "").judgement(), Judgement::DoesNotAgree);
    }
}
