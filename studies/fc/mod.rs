//! FC: Gong and Parulkar 1992, a two-level flow control scheme for high-speed networks.
//!
//! Called by [`crate::all`]. `buffer_sweep` holds the points that Figs. 17 to 19 share.
//!
//! Invariant: one folder a figure or table; every claim of the paper is judged in exactly one of them.

mod buffer_sweep;
#[path = "bursts/study.rs"]
mod bursts;
#[path = "fig14/study.rs"]
mod fig14;
#[path = "fig17/study.rs"]
mod fig17;
#[path = "fig18/study.rs"]
mod fig18;
#[path = "fig19/study.rs"]
mod fig19;
#[path = "loss_load/study.rs"]
mod loss_load;
#[path = "pauses/study.rs"]
mod pauses;
#[path = "table1/study.rs"]
mod table1;
#[path = "throttle/study.rs"]
mod throttle;

use segstream_lab::study::Study;

/// The studies of this paper.
pub(crate) const STUDIES: &[&Study] = &[
    &bursts::STUDY,
    &throttle::STUDY,
    &pauses::STUDY,
    &fig14::STUDY,
    &fig17::STUDY,
    &fig18::STUDY,
    &fig19::STUDY,
    &loss_load::STUDY,
    &table1::STUDY,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_claim_of_the_paper_is_judged_once() {
        let mut claims: Vec<&str> = STUDIES.iter().flat_map(|study| study.claims).map(|claim| claim.id).collect();
        // Of what the paper describes or names and does not show the claims are ours to number.
        claims.retain(|id| id.starts_with("FC-C"));
        // A claim on a figure that states no rate is judged at each rate by itself.
        for rate in [" at 100 Mbit/s", " at 500 Mbit/s"] {
            assert_eq!(claims.iter().filter(|id| id.ends_with(rate)).count(), 2);
            let of_rate: Vec<&str> = claims.iter().filter_map(|id| id.strip_suffix(rate)).collect();
            assert_eq!(of_rate, ["FC-C1", "FC-C2"]);
        }
        claims.retain(|id| !id.ends_with(" at 500 Mbit/s"));
        let mut claims: Vec<&str> = claims.into_iter().map(|id| id.split_once(" at ").map_or(id, |(claim, _)| claim)).collect();
        claims.sort_by_key(|id| id.trim_start_matches("FC-C").parse::<u32>().unwrap_or(0));
        let wanted: Vec<String> = (1..=12).map(|number| format!("FC-C{number}")).collect();
        assert_eq!(claims, wanted);
    }

    #[test]
    fn the_figures_on_buffers_share_their_points() {
        let texts = |study: &Study| (study.points)().iter().map(|point| point.scenario.canonical()).collect::<Vec<_>>();
        let mut distinct: Vec<String> = [&fig17::STUDY, &fig18::STUDY, &fig19::STUDY].into_iter().flat_map(texts).collect();
        distinct.sort_unstable();
        distinct.dedup();
        assert!(distinct.len() <= 340, "{} points are more than ten minutes at ten million packets each", distinct.len());
    }
}
