//! Every figure and table of the papers, and the flagship's own scenarios, one folder each: `studies/<paper>/<figure>/study.rs`.
//!
//! Called by the command line. A study is a value: points to run, pictures to draw, claims to judge; the
//! laboratory runs all of them together.
//!
//! Invariant: the identifier of a study is its folder.

mod aa;
pub mod black_box;
pub mod curves;
mod ec;
mod fc;
mod flagship;
mod ht;
pub mod paired;
pub mod papers;
pub mod processing_cost;
mod standings;
pub mod window_sweep;
mod xt;

use segstream_lab::study::Study;

/// All studies, in the order of the report.
pub fn all() -> Vec<&'static Study> {
    [ec::STUDIES, fc::STUDIES, ht::STUDIES, aa::STUDIES, xt::STUDIES, flagship::STUDIES].concat()
}

/// The study with this identifier.
pub fn find(id: &str) -> Option<&'static Study> {
    all().into_iter().find(|study| study.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_scenario_can_be_run() {
        for study in all() {
            for point in (study.points)() {
                let told = format!("{} {} at {}", study.id, point.curve, point.x);
                point.scenario.check().unwrap_or_else(|error| panic!("{told}: {error}"));
                segstream_lab::run::run(&point.scenario.with(|it| it.workload.packets = 256), segstream_base::random::Seed(1))
                    .unwrap_or_else(|error| panic!("{told}: {error}"));
            }
            for point in (study.shared)() {
                point.scenario.check().unwrap_or_else(|error| panic!("{} {} at {}: {error}", study.id, point.curve, point.x));
            }
            for point in (study.stages)() {
                point.scenario.check().unwrap_or_else(|error| panic!("{} {} at {}: {error}", study.id, point.curve, point.x));
            }
            for point in (study.tandem)() {
                point.scenario.check().unwrap_or_else(|error| panic!("{} {} at {}: {error}", study.id, point.curve, point.x));
            }
        }
    }

    #[test]
    fn a_study_is_called_like_its_folder_and_no_two_alike() {
        let studies = all();
        let found: BTreeSet<&str> = studies.iter().map(|study| study.id).collect();
        assert_eq!(found.len(), studies.len());
        for id in found {
            let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(id);
            assert!(folder.join("README.md").is_file() && folder.join("study.rs").is_file(), "{id} has no folder of that name");
        }
    }

    #[test]
    fn a_curve_has_one_point_at_each_place() {
        for study in all() {
            let mut places = BTreeSet::new();
            for point in (study.points)() {
                assert!(places.insert((point.curve.clone(), point.x.to_bits())), "{} twice at {} of {}", study.id, point.x, point.curve);
            }
            let mut places = BTreeSet::new();
            for point in (study.shared)() {
                assert!(places.insert((point.curve.clone(), point.x.to_bits())), "{} twice at {} of {}", study.id, point.x, point.curve);
            }
            let mut places = BTreeSet::new();
            for point in (study.stages)() {
                assert!(places.insert((point.curve.clone(), point.x.to_bits())), "{} twice at {} of {}", study.id, point.x, point.curve);
            }
            let mut places = BTreeSet::new();
            for point in (study.tandem)() {
                assert!(places.insert((point.curve.clone(), point.x.to_bits())), "{} twice at {} of {}", study.id, point.x, point.curve);
            }
        }
    }

    /// The sources of a folder of studies, by file.
    fn sources(folder: &std::path::Path, found: &mut Vec<(String, String)>) {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push((path.display().to_string(), std::fs::read_to_string(&path).unwrap()));
            }
        }
    }

    #[test]
    fn every_verdict_is_made_by_the_rule_of_its_label() {
        // Nothing but `Finding::of` and `Finding::not_judged` makes a finding, and of these the first applies the rule. What is left to
        // see is that claims are judged by parts that can fail, and that what is not judged is what the rule says may not be.
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut found = Vec::new();
        sources(root, &mut found);
        found.retain(|(path, _)| !path.ends_with("studies/lib.rs"));
        // `Part::point("...", true)`: its second argument is a constant.
        let cannot_fail = |text: &str| {
            text.split("Part::").skip(1).any(|part| part.split_once("\", ").is_some_and(|(_, holds)| holds.starts_with("true)")))
        };
        let constant: Vec<&str> = found.iter().filter(|(_, text)| cannot_fail(text)).map(|(path, _)| path.as_str()).collect();
        assert!(constant.is_empty(), "a part that cannot fail: {constant:?}");
        let judging = found.iter().filter(|(_, text)| text.contains("Finding::of(")).count();
        assert!(judging >= 25, "only {judging} files judge by parts");
        let not_judged: Vec<&str> =
            found.iter().filter(|(_, text)| text.contains("Finding::not_judged(")).map(|(path, _)| path.as_str()).collect();
        let allowed = |path: &str| path.ends_with("ec/table2/study.rs") || path.ends_with("fc/fig19/study.rs");
        assert!(not_judged.iter().all(|path| allowed(path)), "{not_judged:?}");
    }
}
