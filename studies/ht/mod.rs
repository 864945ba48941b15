//! HT: Chan and Gorton 1994, HTPNET, a parallel transport for high-speed networks.
//!
//! Called by [`crate::all`].
//!
//! - [`end_system`]: who stands in a figure, at HT's point, where the sender's processor is the limit;
//! - [`packet_rate`]: what is drawn and read off: packets a second;
//! - [`under_errors`]: the two halves of Fig. 14.
//!
//! Invariant: one folder a figure or table; the claims HT-C1 to HT-C9 are each judged in exactly one of them, except for HT-C6,
//! which needs both halves of Fig. 14 and is judged at 40 ms.

mod end_system;
#[path = "fig10/study.rs"]
mod fig10;
#[path = "fig11/study.rs"]
mod fig11;
#[path = "fig12/study.rs"]
mod fig12;
#[path = "fig13/study.rs"]
mod fig13;
#[path = "fig14a/study.rs"]
mod fig14a;
#[path = "fig14b/study.rs"]
mod fig14b;
#[path = "fig5/study.rs"]
mod fig5;
#[path = "fig8/study.rs"]
mod fig8;
mod packet_rate;
#[path = "table1/study.rs"]
mod table1;
#[path = "table2/study.rs"]
mod table2;
mod under_errors;

use segstream_lab::study::Study;

/// The studies of this paper, in its order.
pub(crate) const STUDIES: &[&Study] = &[
    &table1::STUDY,
    &table2::STUDY,
    &fig5::STUDY,
    &fig8::STUDY,
    &fig10::STUDY,
    &fig11::STUDY,
    &fig12::STUDY,
    &fig13::STUDY,
    &fig14a::STUDY,
    &fig14b::STUDY,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_claim_of_the_paper_is_judged_once() {
        let mut claims: Vec<&str> = STUDIES.iter().flat_map(|study| study.claims).map(|claim| claim.id).collect();
        claims.sort_unstable();
        let wanted: Vec<String> = (1..=9).map(|number| format!("HT-C{number}")).collect();
        assert_eq!(claims, wanted);
    }
}
