//! The flagship's rate control on links that change and that others share, its report periods and its repair units: targets of our
//! own, judged like claims.
//!
//! Called by [`crate::all`]. The scenarios are named after those of RFC 8867 and RFC 9743 where one fits.
//!
//! - [`link`]: the link, the flows, and the common operating point;
//! - [`over_time`]: curves and numbers over time;
//! - [`sweep`]: curves over a setting;
//! - [`target`]: when a target is met.
//!
//! Invariant: one folder a scenario; every target is judged in exactly one of them.

mod link;
mod over_time;
pub(crate) mod sweep;
mod target;

#[path = "beside_many_tcps/study.rs"]
mod beside_many_tcps;
#[path = "beside_tcp/study.rs"]
mod beside_tcp;
#[path = "coded_repair/study.rs"]
mod coded_repair;
#[path = "competing_streams/study.rs"]
mod competing_streams;
#[path = "pause_and_resume/study.rs"]
mod pause_and_resume;
#[path = "policer/study.rs"]
mod policer;
#[path = "random_loss/study.rs"]
mod random_loss;
#[path = "report_periods/study.rs"]
mod report_periods;
#[path = "single_stream/study.rs"]
mod single_stream;
#[path = "variable_capacity/study.rs"]
mod variable_capacity;

use segstream_lab::study::Study;

/// The studies of the flagship's own targets.
pub(crate) const STUDIES: &[&Study] = &[
    &single_stream::STUDY,
    &competing_streams::STUDY,
    &variable_capacity::STUDY,
    &beside_tcp::STUDY,
    &random_loss::STUDY,
    &pause_and_resume::STUDY,
    &policer::STUDY,
    &report_periods::STUDY,
    &coded_repair::STUDY,
    &beside_many_tcps::STUDY,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_is_judged_once_and_a_studys_in_order() {
        let number = |id: &str| id.strip_prefix("SG-T").and_then(|number| number.parse::<usize>().ok());
        let targets_of = |study: &Study| study.claims.iter().map(|claim| number(claim.id)).collect::<Vec<_>>();
        for study in STUDIES {
            assert!(targets_of(study).is_sorted(), "{}: {:?}", study.id, targets_of(study));
        }
        let mut targets: Vec<Option<usize>> = STUDIES.iter().flat_map(|study| targets_of(study)).collect();
        targets.sort_unstable();
        assert_eq!(targets, (1..=targets.len()).map(Some).collect::<Vec<_>>());
    }
}
