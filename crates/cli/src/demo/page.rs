//! The results as one HTML page that needs nothing else: no network, no other file.
//!
//! Called by the verb at the end, which writes the page into `--out`. The template draws its plots from the embedded
//! JSON with a small script; tables and pictures are plain HTML and are there without one.
//!
//! Invariant: every text from outside is escaped, and the page names no address on the network.

use super::picture::{self, Colours, PictureError, Slice};
use super::report::{Report, Run, SliceRecord};
use super::table::{decibels, number, percent};
use segstream_lab::drawing::template::{escaped, filled, script_json};
use serde::Serialize;
use std::fmt::Write;

/// The page but for its results.
const TEMPLATE: &str = include_str!("page.html");
/// The largest side of a picture on the page, in pixels.
const PICTURE_SIDE: usize = 512;
/// The side of the enlarged part of a picture, in pixels of the slice.
const DETAIL_SIDE: usize = 80;

/// One slice of one run, to be looked at: as it was sent, as it was received, and as a viewer shows it.
#[derive(Clone, Debug)]
pub(crate) struct Exhibit {
    /// What the row shows, for people: which run, which slice, how many lines are missing.
    pub caption: String,
    /// The pictures as PNG files: sent, received with holes, repaired.
    pictures: [Vec<u8>; 3],
    /// The same round the pixel that was repaired worst; nothing when every pixel is right.
    details: Option<[Vec<u8>; 3]>,
}

impl Exhibit {
    /// The three pictures of a slice: `sent`, of which the lines in `holes` did not arrive, and `shown` in its place.
    ///
    /// # Errors
    /// When one of them has another number of bytes than its sides say.
    pub(crate) fn new(caption: String, sent: &Slice, holes: &[usize], shown: &Slice, colours: Colours) -> Result<Self, PictureError> {
        let whole = |slice: &Slice, holes: &[usize]| {
            let (slice, holes) = picture::reduced(slice, holes, PICTURE_SIDE);
            picture::png(&slice, &holes, colours)
        };
        let pictures = [whole(sent, &[])?, whole(sent, holes)?, whole(shown, &[])?];
        let Some(place) = worst_place(sent, shown) else { return Ok(Self { caption, pictures, details: None }) };
        let part = |slice: &Slice, holes: &[usize]| {
            let (slice, holes) = picture::detail(slice, holes, place, DETAIL_SIDE);
            picture::png(&slice, &holes, colours)
        };
        let details = Some([part(sent, &[])?, part(sent, holes)?, part(shown, &[])?]);
        Ok(Self { caption, pictures, details })
    }
}

/// The column and the line of the pixel that differs most; the first of several, nothing when none differs.
fn worst_place(sent: &Slice, shown: &Slice) -> Option<(usize, usize)> {
    let errors = sent.bytes.iter().zip(&shown.bytes).map(|(a, b)| a.abs_diff(*b)).enumerate();
    let (index, error) = errors.rev().max_by_key(|&(_, error)| error)?;
    (error > 0 && sent.width > 0).then(|| (index % sent.width, index / sent.width))
}

/// What the script draws.
#[derive(Serialize)]
struct Drawn<'a> {
    runs: Vec<DrawnRun<'a>>,
}

/// A run with its single slices.
#[derive(Serialize)]
struct DrawnRun<'a> {
    #[serde(flatten)]
    run: &'a Run,
    series: &'a [SliceRecord],
}

/// The whole page.
pub(crate) fn html(report: &Report, exhibits: &[Exhibit]) -> Result<String, serde_json::Error> {
    let drawn = Drawn { runs: report.runs.iter().map(|run| DrawnRun { run, series: &run.series }).collect() };
    let json = script_json(&drawn)?;
    let parts = [
        ("circumstances", circumstances(report)),
        ("headline", headline(report)),
        ("pictures", exhibits.iter().map(figure).collect()),
        ("delay_table", table(report, &delay_columns())),
        ("quality_table", table(report, &quality_columns())),
        ("json", json),
    ];
    Ok(filled(TEMPLATE, &parts))
}

/// What was the same in all runs.
fn circumstances(report: &Report) -> String {
    let row = |(name, value): &(String, String)| format!("<div><dt>{}</dt><dd>{}</dd></div>\n", escaped(name), escaped(value));
    report.circumstances.iter().map(row).collect()
}

/// For each loss process one sentence of numbers for each run.
fn headline(report: &Report) -> String {
    let mut text = String::new();
    for loss in report.losses() {
        let _ = write!(text, "<section class=\"card\"><h3>Loss <code>{}</code></h3><ul>", escaped(loss));
        for (index, run) in report.runs.iter().enumerate().filter(|(_, run)| run.loss == loss) {
            let usable = run.usable_share.get(&100).map_or_else(|| "-".into(), |&share| percent(share));
            let usable = usable.trim_end_matches(".0");
            let holes = match run.holes_longest_run {
                0 => "no line missing".to_owned(),
                1 => format!("{:.2} lines missing in a slice, never two in a row", run.holes_per_slice_mean),
                longest => format!("{:.2} lines missing in a slice, up to {longest} in a row", run.holes_per_slice_mean),
            };
            let delay = format!("delay p99 {}&#8239;ms", number(run.delay_ms_p99, 1));
            let cost =
                if run.repair_units_sent > 0 { format!(", {:.2}&#8239;% repair lines", run.repair_percent()) } else { String::new() };
            let _ = write!(
                text,
                "<li><span class=\"key\" data-run=\"{index}\"></span><span><b>{}</b><br><strong>{usable}&#8239;%</strong> usable \
                 at 100&#8239;ms, {holes}; {delay}{cost}</span></li>",
                escaped(&run.name)
            );
        }
        text.push_str("</ul></section>\n");
    }
    text
}

/// The pictures of one slice: whole, and the worst place enlarged.
fn figure(exhibit: &Exhibit) -> String {
    let caption = escaped(&exhibit.caption);
    let whole = ["Sent", "Received, missing lines marked", "Repaired by the viewer"];
    let mut text = format!("<figure>{}", row("row", &caption, whole, &exhibit.pictures));
    if let Some(details) = &exhibit.details {
        let enlarged = ["Sent, enlarged", "Received, enlarged", "Repaired, enlarged"];
        text.push_str(&row("row detail", &caption, enlarged, details));
        let _ = writeln!(text, "<figcaption>{caption}. The enlarged part is round the pixel that was repaired worst.</figcaption>");
    } else {
        let _ = writeln!(text, "<figcaption>{caption}. Every pixel is as it was sent.</figcaption>");
    }
    text.push_str("</figure>\n");
    text
}

/// Three pictures side by side.
fn row(class: &str, caption: &str, labels: [&str; 3], files: &[Vec<u8>; 3]) -> String {
    let mut text = format!("<div class=\"{class}\">");
    for (label, file) in labels.into_iter().zip(files) {
        let data = base64(file);
        let _ = write!(text, "<div><img alt=\"{label}: {caption}\" src=\"data:image/png;base64,{data}\"><p>{label}</p></div>");
    }
    text.push_str("</div>");
    text
}

/// A column of an HTML table: heading, with the quantity's measure, and cell.
type Column = (&'static str, fn(&Run) -> String);

fn delay_columns() -> Vec<Column> {
    vec![
        ("Tolerance<br>W,E,B", Run::tolerance_text),
        ("Inter-<br>leaved", |run| if run.interleave { "yes" } else { "no" }.into()),
        ("Slices", |run| run.slices.to_string()),
        ("Delay<br>mean, ms", |run| number(run.delay_ms_mean, 1)),
        ("Delay<br>p99, ms", |run| number(run.delay_ms_p99, 1)),
        ("Delay<br>max, ms", |run| number(run.delay_ms_max, 1)),
        ("Sent again<br>lines", |run| run.units_retransmitted.to_string()),
        ("Repair<br>lines", |run| run.repair_units_sent.to_string()),
        ("Wire bytes<br>a byte", |run| number(run.wire_bytes_per_byte, 4)),
        ("Path late<br>p99.9, ms", |run| number(run.emulator_lateness_ms_p999, 2)),
        ("Attempts", |run| run.attempts.to_string()),
    ]
}

fn quality_columns() -> Vec<Column> {
    fn usable(run: &Run, latency_ms: u32) -> String {
        run.usable_share.get(&latency_ms).map_or_else(|| "-".into(), |&share| percent(share))
    }
    vec![
        ("Usable, %,<br>at 60&nbsp;ms", |run| usable(run, 60)),
        ("<br>80&nbsp;ms", |run| usable(run, 80)),
        ("<br>100&nbsp;ms", |run| usable(run, 100)),
        ("<br>150&nbsp;ms", |run| usable(run, 150)),
        ("<br>200&nbsp;ms", |run| usable(run, 200)),
        ("<br>300&nbsp;ms", |run| usable(run, 300)),
        ("<br>400&nbsp;ms", |run| usable(run, 400)),
        ("Missing<br>lines a slice", |run| format!("{:.2}", run.holes_per_slice_mean)),
        ("Longest<br>run, lines", |run| run.holes_longest_run.to_string()),
        ("PSNR<br>mean, dB", |run| decibels(run.psnr_db_mean)),
        ("PSNR<br>worst, dB", |run| decibels(run.psnr_db_worst)),
    ]
}

/// One table of all runs, grouped by loss process.
fn table(report: &Report, columns: &[Column]) -> String {
    let mut text = String::from("<div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th scope=\"col\">Run</th>");
    for (heading, _) in columns {
        let _ = write!(text, "<th scope=\"col\">{heading}</th>");
    }
    text.push_str("</tr></thead>\n");
    for loss in report.losses() {
        let (span, loss_name) = (columns.len() + 1, escaped(loss));
        let heading = format!("<th scope=\"rowgroup\" colspan=\"{span}\"><span>Loss <code>{loss_name}</code></span></th>");
        let _ = writeln!(text, "<tbody><tr class=\"group\">{heading}</tr>");
        for (index, run) in report.runs.iter().enumerate().filter(|(_, run)| run.loss == loss) {
            let key = format!("<span class=\"key\" data-run=\"{index}\"></span>");
            let _ = write!(text, "<tr><th scope=\"row\"><span class=\"name\">{key}{}</span></th>", escaped(&run.name));
            for (_, cell) in columns {
                let _ = write!(text, "<td>{}</td>", escaped(&cell(run)));
            }
            text.push_str("</tr>\n");
        }
        text.push_str("</tbody>");
    }
    text.push_str("</table></div>");
    text
}

/// RFC 4648 4: three bytes as four letters.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = (0..3).fold(0, |word, index| word << 8 | u32::from(chunk.get(index).copied().unwrap_or(0)));
        for letter in 0..4 {
            let index = (word >> (18 - 6 * letter)) as usize & 63;
            text.push(if letter <= chunk.len() { char::from(LETTERS[index]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::report::made_up;
    use segstream_lab::drawing::browser::{Browser, Opened};

    fn exhibit() -> Exhibit {
        let slice = Slice { width: 4, height: 4, bytes: vec![128; 16] };
        Exhibit::new("run <1> & \"slice\" 7".into(), &slice, &[1], &slice, Colours::Diverging).unwrap()
    }

    fn embedded_json(page: &str) -> serde_json::Value {
        let start = page.split_once("<script type=\"application/json\" id=\"results\">").unwrap().1;
        serde_json::from_str(start.split_once("</script>").unwrap().0).unwrap()
    }

    #[test]
    fn the_page_needs_nothing_from_outside() {
        let page = html(&made_up(), &[exhibit()]).unwrap();
        for outside in ["http:", "https:", "src=\"/", "src='", "<link", "@import", "url(", "fetch(", "import(", "XMLHttp"] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert_eq!(page.matches("src=").count(), page.matches("src=\"data:image/png;base64,").count());
        assert!(!page.contains("{{") && page.contains("<noscript>"));
    }

    #[test]
    fn the_page_holds_the_printed_results_and_every_slice() {
        let report = made_up();
        let json = embedded_json(&html(&report, &[]).unwrap());
        assert_eq!(json["runs"].as_array().unwrap().len(), report.runs.len());
        assert_eq!(json["runs"][1]["series"].as_array().unwrap().len(), report.runs[1].series.len());
        assert_eq!(json["runs"][1]["usable_share"], serde_json::to_value(&report).unwrap()["runs"][1]["usable_share"]);
    }

    #[test]
    fn no_text_can_leave_its_place() {
        let mut report = made_up();
        report.runs[0].name = "</script><b>{{json}}".into();
        report.circumstances.push(("<i>".into(), "\" onload=".into()));
        let page = html(&report, &[exhibit()]).unwrap();
        assert_eq!(embedded_json(&page)["runs"][0]["name"], "</script><b>{{json}}");
        assert!(!page.contains("</script><b>") && !page.contains("<i>") && page.contains("run &lt;1&gt; &amp; &quot;slice&quot; 7"));
    }

    /// The page as a browser leaves it; nothing where there is none, unless `SEGSTREAM_REQUIRE_BROWSER=1`.
    fn opened(page: &str, selectors: &[&str]) -> Option<Opened> {
        let Some(browser) = Browser::find().unwrap() else {
            eprintln!("SKIPPED: no Chromium or Chrome is installed, so the page was not opened");
            return None;
        };
        let directory = tempfile::tempdir().unwrap();
        Some(browser.open(page, directory.path(), selectors).unwrap())
    }

    #[test]
    fn the_page_opens_in_a_browser_without_a_script_error_and_draws_a_plot_for_each_loss() {
        let report = made_up();
        let selectors = ["#usable .plot svg path[opacity]", "#usable .plot svg", "#delay .plot svg", ".key > svg", "img"];
        let Some(opened) = opened(&html(&report, &[exhibit()]).unwrap(), &selectors) else { return };
        assert_eq!(opened.errors, [""; 0]);
        let (losses, runs) = (report.losses().len(), report.runs.len());
        assert_eq!(opened.matches, [runs, losses, losses, 5 * runs, 3], "lines, plots, plots, keys, pictures");
    }

    #[test]
    fn a_page_whose_script_fails_is_found_out() {
        let spoiled = html(&made_up(), &[]).unwrap().replacen("\"runs\":", "\"walks\":", 1);
        let Some(opened) = opened(&spoiled, &["#usable .plot svg"]) else { return };
        assert!(!opened.errors.is_empty() && opened.matches == [0]);
    }

    #[test]
    fn every_place_in_the_template_is_filled_once() {
        for name in ["circumstances", "headline", "pictures", "delay_table", "quality_table", "json"] {
            assert_eq!(TEMPLATE.matches(&format!("{{{{{name}}}}}")).count(), 1, "{name}");
        }
        assert_eq!(TEMPLATE.matches("{{").count(), 6);
    }

    #[test]
    fn an_exhibit_enlarges_the_worst_repaired_pixel_and_nothing_when_all_is_right() {
        let sent = Slice { width: 4, height: 4, bytes: vec![128; 16] };
        let mut shown = sent.clone();
        assert_eq!(worst_place(&sent, &shown), None);
        shown.bytes[6] = 120;
        shown.bytes[9] = 140;
        shown.bytes[11] = 140;
        assert_eq!(worst_place(&sent, &shown), Some((1, 2)));
        let exhibit = |shown| Exhibit::new("slice".into(), &sent, &[2], shown, Colours::Grey).unwrap();
        assert_eq!(figure(&exhibit(&shown)).matches("<img").count(), 6);
        assert_eq!(figure(&exhibit(&sent)).matches("<img").count(), 3);
    }

    #[test]
    fn base64_is_that_of_the_rfc() {
        let pairs = [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("foobar", "Zm9vYmFy")];
        assert!(pairs.iter().all(|(plain, coded)| base64(plain.as_bytes()) == *coded));
    }
}
