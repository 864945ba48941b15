//! The report page in a real browser: every figure is drawn, no script fails, and a failure would be seen.
//!
//! Skipped, and said so, where no Chromium is installed, unless `SEGSTREAM_REQUIRE_BROWSER=1`.

mod made_up;

use segstream_lab::drawing::browser::{Browser, Opened};
use segstream_lab::drawing::page;
use segstream_lab::report::Report;

/// The page as the browser leaves it; nothing where there is no browser.
fn open(html: &str, selectors: &[&str]) -> Option<Opened> {
    let Some(browser) = Browser::find().unwrap() else {
        eprintln!("SKIPPED: no Chromium or Chrome is installed, so the page was not opened");
        return None;
    };
    let directory = tempfile::tempdir().unwrap();
    Some(browser.open(html, directory.path(), selectors).unwrap())
}

fn figures(report: &Report) -> usize {
    report.sections.iter().map(|section| section.figures.len()).sum()
}

/// The page with a script of the test at its end.
fn with_script(report: &Report, script: &str) -> String {
    page(report).replace("</body>", &format!("<script>{script}</script></body>"))
}

#[test]
fn every_figure_of_a_report_is_drawn_without_a_script_error() {
    let report = made_up::report();
    let drawn = ".figure[data-drawn='true'] .plot .main-svg .cartesianlayer";
    let selectors = ["html[data-errors='0']", ".figure[data-drawn='true']", drawn, ".errorbar", "[data-title*='Share']", "a[href^='http']"];
    let Some(opened) = open(&page(&report), &selectors) else { return };
    assert_eq!(opened.errors, [""; 0]);
    let all = figures(&report);
    assert_eq!(opened.matches[..3], [1, all, all]);
    assert!(opened.matches[3] > 100, "error bars: {}", opened.matches[3]);
    assert_eq!(opened.matches[4..], [0, 0], "a button that uploads, or a link that leads away");
    for figure in report.sections.iter().flat_map(|section| &section.figures) {
        assert!(opened.document.contains(&format!("<div id=\"{}\" class=\"figure", figure.id)), "{}", figure.id);
    }
}

#[test]
fn every_heat_map_is_shown_once_for_the_theme_and_its_texts_are_no_markup() {
    let report = made_up::report();
    let shown = "document.querySelectorAll('.heat-map .static').forEach((picture) => { \
                 if (getComputedStyle(picture).display !== 'none') picture.dataset.shown = 'true'; });";
    let selectors =
        [".heat-map", ".heat-map [data-shown] > svg", "#ec-fig11-grid [data-shown] rect > title", ".heat-map script, .heat-map img"];
    let Some(opened) = open(&with_script(&report, shown), &selectors) else { return };
    assert_eq!(opened.errors, [""; 0]);
    let maps: usize = report.sections.iter().map(|section| section.heat_maps.len()).sum();
    assert_eq!(opened.matches, [maps, maps, made_up::delays_by_tolerance().places().count(), 0]);
}

#[test]
fn a_script_that_fails_is_detected() {
    let page = |script: &str| format!("<!DOCTYPE html><html><head></head><body><p>here</p>{script}</body></html>");
    let broken =
        "<script>nowhere.call()</script><script>(((</script><script>Promise.reject(new Error('refused'))</script><img src='gone.png'>";
    let Some(opened) = open(&page(broken), &["p"]) else { return };
    assert_eq!(opened.errors.len(), 4, "{:?}", opened.errors);
    for part in ["nowhere", "SyntaxError", "refused", "gone.png"] {
        assert!(opened.errors.iter().any(|error| error.contains(part)), "{part}: {:?}", opened.errors);
    }
    assert_eq!(opened.matches, [1]);
    assert_eq!(open(&page("<script>document.body.append('fine')</script>"), &[]).unwrap().errors, [""; 0]);
}

#[test]
fn a_figure_that_cannot_be_drawn_is_detected_and_the_others_are_drawn() {
    let report = made_up::report();
    let spoiled = page(&report).replacen("\"id\":\"flat\"", "\"id\":\"elsewhere\"", 1);
    let Some(opened) = open(&spoiled, &["html[data-errors='0']", "#flat[data-drawn]", "#flat .static svg", ".figure[data-drawn='true']"])
    else {
        return;
    };
    assert!(!opened.errors.is_empty());
    assert_eq!(opened.matches, [0, 0, 1, figures(&report) - 1]);
}

#[test]
fn a_click_hides_a_curve_and_a_verdict_filters_the_claims() {
    let report = made_up::report();
    let clicks = "setTimeout(() => { document.querySelector('#ec-fig11 .legend button').click(); \
                  document.querySelector(\".filter button[data-verdict='does not agree']\").click(); }, 3000);";
    let selectors = ["#ec-fig11 .scatterlayer .trace", "#ec-fig11 .legend [aria-pressed='false']", "#all-claims tbody tr:not([hidden])"];
    let Some(opened) = open(&with_script(&report, clicks), &selectors) else { return };
    assert_eq!(opened.errors, [""; 0]);
    assert_eq!(opened.matches, [report.sections[0].figures[0].curves.len() - 1, 1, 1]);
}
