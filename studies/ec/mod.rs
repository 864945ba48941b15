//! EC: Gong and Parulkar 1992, an application-oriented error control scheme for high-speed networks.
//!
//! Called by [`crate::all`].
//!
//! - [`four_tolerances`]: the tolerances of Figs. 11 and 12, and their scenarios;
//! - [`against_loss`]: pictures over a probability of loss, and the numbers claims read off them.
//!
//! Invariant: one folder a figure or table; the claims EC-C1 to EC-C14 are each judged in exactly one of them.

mod against_loss;
#[path = "fig10/study.rs"]
mod fig10;
#[path = "fig11/study.rs"]
mod fig11;
#[path = "fig12/study.rs"]
mod fig12;
#[path = "fig13/study.rs"]
mod fig13;
mod four_tolerances;
#[path = "random_loss/study.rs"]
mod random_loss;
#[path = "table1/study.rs"]
mod table1;
#[path = "table2/study.rs"]
mod table2;

use segstream_lab::study::Study;

/// The studies of this paper, in its order.
pub(crate) const STUDIES: &[&Study] =
    &[&fig10::STUDY, &fig11::STUDY, &fig12::STUDY, &table1::STUDY, &fig13::STUDY, &random_loss::STUDY, &table2::STUDY];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_claim_of_the_paper_is_judged_once() {
        let claims: Vec<&str> = STUDIES.iter().flat_map(|study| study.claims).map(|claim| claim.id).collect();
        assert_eq!(claims.len(), claims.iter().collect::<BTreeSet<_>>().len());
        // A claim on a figure that states no rate is judged at each rate by itself.
        let once: BTreeSet<&str> = claims.iter().map(|id| id.split_once(" at ").map_or(*id, |(claim, _)| claim)).collect();
        let all: BTreeSet<String> = (1..=14).map(|number| format!("EC-C{number}")).collect();
        assert_eq!(once, all.iter().map(String::as_str).collect());
    }

    #[test]
    fn all_figures_together_stay_affordable() {
        let different: BTreeSet<String> =
            STUDIES.iter().flat_map(|study| (study.points)()).map(|point| point.scenario.canonical()).collect();
        assert!(different.len() <= 440, "{} different points of ten million packets take too long", different.len());
    }
}
