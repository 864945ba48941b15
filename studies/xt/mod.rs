//! XT: Nilsson and Lee 1993, a performance study of the XTP error control.
//!
//! Called by [`crate::all`].
//!
//! - [`tandem`]: who stands in a figure, and over which tandem;
//! - [`delay`]: what is drawn and read off: the mean delay of a message;
//! - [`over_throughput`]: the points of Figs. 4 to 6; [`over_window`]: those of Figs. 7 and 8 and Table 4.
//!
//! Invariant: one folder a figure or table; the claims XT-C1 to XT-C11 are each judged in exactly one of them.

mod delay;
#[path = "fig4/study.rs"]
mod fig4;
#[path = "fig5/study.rs"]
mod fig5;
#[path = "fig6/study.rs"]
mod fig6;
#[path = "fig7/study.rs"]
mod fig7;
#[path = "fig8/study.rs"]
mod fig8;
#[path = "future_work/study.rs"]
mod future_work;
mod over_throughput;
mod over_window;
#[path = "sensitivity/study.rs"]
mod sensitivity;
#[path = "table4/study.rs"]
mod table4;
mod tandem;

use segstream_lab::study::Study;

/// The studies of this paper, in its order, and what its silence leaves open.
pub(crate) const STUDIES: &[&Study] =
    &[&fig4::STUDY, &fig5::STUDY, &fig6::STUDY, &table4::STUDY, &fig7::STUDY, &fig8::STUDY, &sensitivity::STUDY, &future_work::STUDY];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_claim_of_the_paper_is_judged_once() {
        // Those of our own, XT-F1, are not the paper's.
        let claims: Vec<&str> =
            STUDIES.iter().flat_map(|study| study.claims).map(|claim| claim.id).filter(|id| id.starts_with("XT-C")).collect();
        let found: BTreeSet<String> = claims.iter().map(|id| (*id).to_owned()).collect();
        let wanted: BTreeSet<String> = (1..=11).map(|number| format!("XT-C{number}")).collect();
        assert_eq!((found, claims.len()), (wanted, 11));
    }
}
