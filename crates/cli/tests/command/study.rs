//! `segstream study`: what it lists, what it writes, how it goes on, and that its page opens.

use crate::process::run;
use segstream_lab::drawing::browser::Browser;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// A study with pictures and claims, and few points.
const STUDY: &str = "ec/random_loss";

fn reproduce(out: &Path, seed: &str) -> Value {
    // Another seed than the usual one is not compared with the expected table.
    let ended = run(["study", "run", STUDY, "--quick", "--json", "--seed", seed, "--out", out.to_str().unwrap()]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    serde_json::from_slice(&ended.stdout).unwrap()
}

#[test]
fn every_study_is_listed_and_has_its_folder() {
    let ended = run(["study", "list", "--json"]);
    let listed: Value = serde_json::from_slice(&ended.stdout).unwrap();
    let studies = listed["studies"].as_array().unwrap();
    assert!(studies.len() >= 12, "{listed}");
    for study in studies {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies").join(study["id"].as_str().unwrap());
        for file in ["README.md", "study.rs", "expected.csv"] {
            assert!(folder.join(file).is_file(), "{}", folder.join(file).display());
        }
    }
}

#[test]
fn a_study_writes_a_page_that_opens_pictures_and_tables_and_runs_once() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let first = reproduce(&out, "2");
    assert!(!first["claims"].as_array().unwrap().is_empty(), "{first}");
    let points = fs::read_to_string(out.join(STUDY).join("points.csv")).unwrap();
    assert!(points.lines().count() > 10, "{points}");
    let pictures = fs::read_dir(out.join(STUDY)).unwrap().filter(|entry| {
        let path = entry.as_ref().unwrap().path();
        path.extension().is_some_and(|extension| extension == "svg")
    });
    assert!(pictures.count() >= 1);

    let second = reproduce(&out, "2");
    assert_eq!(second["claims"], first["claims"]);
    assert_eq!(fs::read_to_string(out.join(STUDY).join("points.csv")).unwrap(), points);

    if let Some(browser) = Browser::find().unwrap() {
        let page = fs::read_to_string(out.join("report.html")).unwrap();
        let opened = browser.open(&page, folder.path(), &["html[data-errors='0']", ".figure", ".figure[data-drawn='true']"]).unwrap();
        assert!(opened.errors.is_empty(), "{:?}", opened.errors);
        assert!(opened.matches[1] >= 1 && opened.matches[1] == opened.matches[2], "{:?}", opened.matches);
    }
}

#[test]
fn a_directory_that_is_not_ours_and_a_store_of_another_version_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    fs::create_dir(&store).unwrap();
    fs::write(store.join("letter.txt"), "dear").unwrap();
    let out = folder.path().to_str().unwrap();
    let ended = run(["study", "run", STUDY, "--quick", "--out", out]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("no result store"), "{}", ended.stderr);
    fs::write(store.join("store.json"), r#"{"format":1,"model":"another"}"#).unwrap();
    let ended = run(["study", "run", STUDY, "--quick", "--out", out]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("written by another version"), "{}", ended.stderr);
}

#[test]
fn bad_usage_is_refused_with_a_sentence() {
    for (line, sentence) in [
        ("study", "study"),
        ("study run", "ID"),
        ("study run ec/fig99", "study list"),
        ("study run ec/fig11 --all", "--all"),
        ("study run --all --quick --paper", "--paper"),
    ] {
        let ended = run(line.split(' '));
        assert_eq!(ended.code, Some(2), "{line}: {ended:?}");
        assert!(ended.stderr.contains(sentence), "{line}: {}", ended.stderr);
    }
}
