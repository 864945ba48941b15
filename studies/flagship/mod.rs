//! The flagship's rate control on links that change and that others share, and its report periods: targets of our own, judged
//! like claims.
//!
//! Called by [`crate::all`]. The scenarios are named after those of RFC 8867 and RFC 9743 where one fits.
//!
//! - [`link`]: the link, the parties, and the point all of them start from;
//! - [`over_time`]: what is drawn and read off over time;
//! - [`sweep`]: what is drawn over a setting;
//! - [`target`]: when a target is met.
//!
//! Invariant: one folder a scenario; every target is judged in exactly one of them.

mod link;
mod over_time;
pub(crate) mod sweep;
mod target;

#[path = "beside_tcp/study.rs"]
mod beside_tcp;
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
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_is_judged_once_and_in_order() {
        let targets: Vec<&str> = STUDIES.iter().flat_map(|study| study.claims).map(|claim| claim.id).collect();
        let wanted: Vec<String> = (1..=targets.len()).map(|number| format!("SG-T{number}")).collect();
        assert_eq!(targets, wanted);
    }
}
