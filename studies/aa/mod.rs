//! AA: Lee, Kim, Chung and Kim, about 1998, adaptive acknowledgment for an ATM clustering system, against SSCOP.
//!
//! Called by [`crate::all`].
//!
//! - [`end_system`]: who stands in a figure, at the point of AA Table 1, where the processors are the limit;
//! - [`efficiency`]: what is drawn and read off: throughput efficiency, and the difference of two on the same losses;
//! - [`intervals`]: the two intervals against each other, for Figs. 5 to 7;
//! - [`rearming`]: when the receiver's timer is set anew, which AA leaves open;
//! - [`against_sscop`]: what Figs. 9 and 10 have in common.
//!
//! Invariant: one folder a figure or table; the claims AA-C1 to AA-C8 are each judged in exactly one of them.

pub(crate) mod against_sscop;
pub(crate) mod efficiency;
pub(crate) mod end_system;
#[path = "fig10/study.rs"]
mod fig10;
#[path = "fig5/study.rs"]
mod fig5;
#[path = "fig6/study.rs"]
mod fig6;
#[path = "fig7/study.rs"]
mod fig7;
#[path = "fig8/study.rs"]
mod fig8;
#[path = "fig9/study.rs"]
mod fig9;
pub(crate) mod intervals;
mod rearming;
#[path = "table1/study.rs"]
mod table1;

use segstream_lab::study::Study;

/// The studies of this paper, in its order.
pub(crate) const STUDIES: &[&Study] =
    &[&table1::STUDY, &fig5::STUDY, &fig6::STUDY, &fig7::STUDY, &fig8::STUDY, &fig9::STUDY, &fig10::STUDY];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_claim_of_the_paper_is_judged_once() {
        let mut claims: Vec<&str> = STUDIES.iter().flat_map(|study| study.claims).map(|claim| claim.id).collect();
        claims.sort_unstable();
        let wanted: Vec<String> = (1..=8).map(|number| format!("AA-C{number}")).collect();
        assert_eq!(claims, wanted);
    }
}
