//! A whole report as one HTML file that needs nothing else: no network, no other file.
//!
//! Called by the studies and by the command line, which write the page; [`super::browser`] opens it in tests.
//!
//! Text, tables and static pictures are plain HTML. The script draws interactive pictures over the static ones from the
//! embedded JSON, with the library in `vendor`; without scripts, on paper, and where drawing fails, the static ones stay.
//!
//! Invariant: every text of the report is escaped where it stands, and the page loads no address.

use super::notes::{Showing, notes, showing};
use super::span::Span;
use super::template::{escaped, filled, script_json};
use super::{Paper, canvas, csv, heat_map_csv, heat_map_svg, svg};
use crate::figure::{Axis, Curve, Figure, Line, Marker, Point, Scale, TextTable};
use crate::heat_map::HeatMap;
use crate::report::{ClaimLine, Report, Section};
use serde::Serialize;
use std::fmt::Write as _;

/// The page without the report.
const TEMPLATE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");
/// Plotly, without what a report does not draw.
const LIBRARY: &str = include_str!("vendor/plotly-basic.min.js");

/// The page of `report`. Each figure stands in an element with the figure's id and the class `figure`, which gets
/// `data-drawn="true"` when its interactive picture is drawn; the root element counts script errors in `data-errors`.
#[must_use]
pub fn page(report: &Report) -> String {
    let parts = [
        ("title", escaped(&report.title)),
        ("style", STYLE.to_owned()),
        ("provenance", facts(&report.provenance)),
        ("contents", contents(&report.sections)),
        ("claims", all_claims(&report.sections)),
        ("sections", report.sections.iter().map(section).collect()),
        // Why: numbers that are none become null, and strings are all JSON has left to fail on; Rust's are always Unicode.
        ("json", script_json(&drawn_figures(report)).unwrap_or_else(|_| "[]".to_owned())),
        ("library", LIBRARY.to_owned()),
        ("script", SCRIPT.to_owned()),
    ];
    filled(TEMPLATE, &parts)
}

/// A figure as the script draws it.
#[derive(Serialize)]
struct DrawnFigure<'a> {
    id: &'a str,
    title: &'a str,
    x: DrawnAxis<'a>,
    y: DrawnAxis<'a>,
    curves: Vec<DrawnCurve<'a>>,
}

/// An axis and what it covers at first: the same as in the static picture.
#[derive(Serialize)]
struct DrawnAxis<'a> {
    label: &'a str,
    scale: Scale,
    low: f64,
    high: f64,
}

#[derive(Serialize)]
struct DrawnCurve<'a> {
    label: &'a str,
    colour: String,
    marker: Marker,
    line: Line,
    points: Vec<DrawnPoint<'a>>,
}

/// A point; one that is left out is a gap, and one below a logarithmic axis says so.
#[derive(Serialize)]
struct DrawnPoint<'a> {
    x: f64,
    y: f64,
    low: Option<f64>,
    high: Option<f64>,
    imprecise: bool,
    below: bool,
    left_out: bool,
    note: &'a str,
}

fn drawn_figures(report: &Report) -> Vec<DrawnFigure<'_>> {
    report.sections.iter().flat_map(|section| &section.figures).map(drawn_figure).collect()
}

fn drawn_figure(figure: &Figure) -> DrawnFigure<'_> {
    fn axis(axis: &Axis, span: Span) -> DrawnAxis<'_> {
        DrawnAxis { label: &axis.label, scale: axis.scale, low: span.low, high: span.high }
    }
    let curves = figure.curves.iter().map(|curve| drawn_curve(figure, curve)).collect();
    let (x, y) = (axis(&figure.x, Span::across(figure)), axis(&figure.y, Span::up(figure)));
    DrawnFigure { id: &figure.id, title: &figure.title, x, y, curves }
}

fn drawn_curve<'a>(figure: &Figure, curve: &'a Curve) -> DrawnCurve<'a> {
    let point = |point: &'a Point| {
        let shown = showing(figure, point);
        let ends = point.interval.filter(|(low, high)| !low.is_nan() && !high.is_nan());
        DrawnPoint {
            x: point.x,
            y: point.y,
            low: ends.map(|ends| ends.0),
            high: ends.map(|ends| ends.1),
            imprecise: point.imprecise,
            below: shown == Showing::AtEdge,
            left_out: shown == Showing::LeftOut,
            note: &point.note,
        }
    };
    let canvas::RGBColor(red, green, blue) = canvas::colour(&curve.colour);
    DrawnCurve {
        label: &curve.label,
        colour: format!("#{red:02x}{green:02x}{blue:02x}"),
        marker: svg::sign_of(curve),
        line: curve.line,
        points: curve.points.iter().map(point).collect(),
    }
}

/// Names and values.
fn facts(facts: &[(String, String)]) -> String {
    let row = |(name, value): &(String, String)| format!("<div><dt>{}</dt><dd>{}</dd></div>\n", escaped(name), escaped(value));
    facts.iter().map(row).collect()
}

/// The name of a section's place on the page.
fn anchor(section: &Section) -> String {
    let name: String = section.id.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect();
    format!("section-{name}")
}

fn contents(sections: &[Section]) -> String {
    let entry = |section: &Section| {
        let (place, id, title) = (anchor(section), escaped(&section.id), escaped(&section.title));
        format!("<li><a href=\"#{place}\"><code>{id}</code> {title}</a></li>\n")
    };
    sections.iter().map(entry).collect()
}

/// How a verdict looks: the class of its badge and the sign before it, so that colour is not all that tells them apart.
fn verdict_look(verdict: &str) -> (&'static str, &'static str) {
    match verdict {
        "agrees with the text" => ("agrees", "\u{2713}"),
        "shape only" => ("shape", "\u{223c}"),
        "does not agree" => ("differs", "\u{2715}"),
        "by construction" => ("built", "\u{25c7}"),
        _ => ("other", "\u{2022}"),
    }
}

fn badge(verdict: &str) -> String {
    let (class, sign) = verdict_look(verdict);
    format!("<span class=\"verdict {class}\"><span aria-hidden=\"true\">{sign}</span> {}</span>", escaped(verdict))
}

/// The table of all claims of all sections, with a button for each verdict that occurs.
fn all_claims(sections: &[Section]) -> String {
    let claims: Vec<(&Section, &ClaimLine)> =
        sections.iter().flat_map(|section| section.claims.iter().map(move |claim| (section, claim))).collect();
    if claims.is_empty() {
        return "<p class=\"soft\">This report bears on no claim.</p>\n".to_owned();
    }
    let mut verdicts: Vec<&str> = Vec::new();
    for (_, claim) in &claims {
        if !verdicts.contains(&claim.verdict.as_str()) {
            verdicts.push(&claim.verdict);
        }
    }
    let mut text = format!("<div class=\"filter\"><button type=\"button\" aria-pressed=\"true\">all <b>{}</b></button>\n", claims.len());
    for verdict in verdicts {
        let (count, name) = (claims.iter().filter(|(_, claim)| claim.verdict == verdict).count(), escaped(verdict));
        let _ = writeln!(
            text,
            "<button type=\"button\" aria-pressed=\"false\" data-verdict=\"{name}\">{} <b>{count}</b></button>",
            badge(verdict)
        );
    }
    text.push_str("</div>\n<div class=\"scroll\" tabindex=\"0\"><table id=\"all-claims\"><thead><tr>");
    text.push_str("<th scope=\"col\">Claim</th><th scope=\"col\">Verdict</th><th scope=\"col\">What the text says</th>");
    text.push_str("<th scope=\"col\">Measured</th></tr></thead>\n<tbody>");
    for (section, claim) in claims {
        let (id, says, found) = (escaped(&claim.id), escaped(&claim.claim), escaped(&claim.measured));
        let (verdict, place) = (escaped(&claim.verdict), anchor(section));
        let _ = writeln!(
            text,
            "<tr data-verdict=\"{verdict}\"><th scope=\"row\"><a href=\"#{place}\">{id}</a></th><td>{}</td><td class=\"text\">{says}</td>\
             <td class=\"text\">{found}</td></tr>",
            badge(&claim.verdict)
        );
    }
    text.push_str("</tbody></table></div>\n");
    text
}

fn section(section: &Section) -> String {
    let mut text = format!("<section id=\"{}\">\n", anchor(section));
    let (id, title, source) = (escaped(&section.id), escaped(&section.title), escaped(&section.source));
    let _ = writeln!(text, "<h2><code>{id}</code> {title}</h2>\n<p class=\"soft\">{source}</p>");
    for paragraph in section.summary.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty()) {
        let _ = writeln!(text, "<p class=\"prose\">{}</p>", escaped(paragraph.trim()));
    }
    text.extend(section.figures.iter().map(figure));
    text.extend(section.heat_maps.iter().map(heat_map));
    text.extend(section.claims.iter().map(claim));
    text.extend(section.tables.iter().map(table));
    if !section.parameters.is_empty() {
        let (count, list) = (section.parameters.len(), facts(&section.parameters));
        let _ = writeln!(text, "<details class=\"parameters\"><summary>Parameters ({count})</summary><dl>{list}</dl></details>");
    }
    text.push_str("</section>\n");
    text
}

/// The place of a figure, with its static picture and its points to take away.
fn figure(figure: &Figure) -> String {
    let (id, title, picture) = (escaped(&figure.id), escaped(&figure.title), svg(figure));
    let notes = notes(figure).join("; ");
    let points = percent_encoded(&csv(figure));
    format!(
        "<figure class=\"card\">\n<figcaption>{title}</figcaption>\n<div id=\"{id}\" class=\"figure\"><div class=\"static\">{picture}</div></div>\n\
         <p class=\"take\"><span>{notes}</span><a download=\"{id}.csv\" href=\"data:text/csv;charset=utf-8,{points}\">CSV</a>\
         <a download=\"{id}.svg\" class=\"picture\" hidden>SVG</a></p>\n</figure>\n"
    )
}

/// A heat map with its cells to take away: drawn for a light and for a dark page, of which the style shows one.
fn heat_map(map: &HeatMap) -> String {
    let (id, light, dark) = (escaped(&map.id), heat_map_svg(map, Paper::White), heat_map_svg(map, Paper::Dark));
    let cells = percent_encoded(&heat_map_csv(map));
    format!(
        "<figure class=\"card\">\n<div id=\"{id}\" class=\"heat-map\"><div class=\"static light\">{light}</div>\
         <div class=\"static dark\">{dark}</div></div>\n<p class=\"take\"><span>Point at a cell for its interval.</span>\
         <a download=\"{id}.csv\" href=\"data:text/csv;charset=utf-8,{cells}\">CSV</a>\
         <a download=\"{id}.svg\" class=\"picture\" hidden>SVG</a></p>\n</figure>\n"
    )
}

fn claim(claim: &ClaimLine) -> String {
    let (id, says, found) = (escaped(&claim.id), escaped(&claim.claim), escaped(&claim.measured));
    let why = match claim.explanation.trim() {
        "" => String::new(),
        why => format!("<p><span class=\"soft\">Why:</span> {}</p>", escaped(why)),
    };
    format!(
        "<div class=\"claim card\"><p class=\"head\"><b>{id}</b> {}</p><p>{says}</p><p><span class=\"soft\">Measured:</span> {found}</p>{why}</div>\n",
        badge(&claim.verdict)
    )
}

fn table(table: &TextTable) -> String {
    let cells = |row: &[String], tag: &str| row.iter().map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell))).collect::<String>();
    let rows: String = table.rows.iter().map(|row| format!("<tr>{}</tr>\n", cells(row, "td"))).collect();
    let (title, head) = (escaped(&table.title), cells(&table.columns, "th"));
    format!(
        "<h3>{title}</h3>\n<div class=\"scroll\" tabindex=\"0\"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>\n"
    )
}

/// Text as part of an address (RFC 3986 2.1).
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len() * 2);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b',') {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawing::notes::tests::{curve, figure, point};
    use crate::heat_map::Side;

    const MARKUP: &str = "</script><b onload=\"x\">{{json}}";

    fn heat_map() -> HeatMap {
        let axis = Axis { label: MARKUP.into(), scale: Scale::Linear, range: None };
        let sides = (Side::names(MARKUP, [MARKUP]), Side::names(MARKUP, [MARKUP]));
        HeatMap::of((MARKUP, MARKUP), sides, axis, |_, _| Some(1.0)).marking_lowest(MARKUP)
    }

    fn report(figures: Vec<Figure>) -> Report {
        let claim = ClaimLine {
            id: MARKUP.into(),
            claim: MARKUP.into(),
            verdict: MARKUP.into(),
            measured: MARKUP.into(),
            explanation: MARKUP.into(),
        };
        let table = TextTable { title: MARKUP.into(), columns: vec![MARKUP.into()], rows: vec![vec![MARKUP.into()]] };
        let section = Section {
            id: MARKUP.into(),
            title: MARKUP.into(),
            source: MARKUP.into(),
            summary: format!("one {MARKUP}\n\ntwo"),
            figures,
            heat_maps: vec![heat_map()],
            tables: vec![table],
            claims: vec![claim],
            standings: Vec::new(),
            parameters: vec![(MARKUP.into(), MARKUP.into())],
        };
        Report { title: MARKUP.into(), provenance: vec![(MARKUP.into(), MARKUP.into())], sections: vec![section] }
    }

    fn embedded_json(page: &str) -> serde_json::Value {
        let start = page.split_once("<script type=\"application/json\" id=\"figures\">").unwrap().1;
        serde_json::from_str(start.split_once("</script>").unwrap().0).unwrap()
    }

    #[test]
    fn no_text_can_leave_its_place() {
        let mut made = figure(vec![curve(MARKUP, vec![point(1.0, 2.0)])]);
        (made.id, made.title, made.x.label) = (MARKUP.into(), MARKUP.into(), MARKUP.into());
        made.curves[0].colour = MARKUP.into();
        made.curves[0].points[0].note = MARKUP.into();
        let page = page(&report(vec![made]));
        assert!(!page.contains("</script><b") && !page.contains("<b onload"));
        let json = embedded_json(&page);
        assert_eq!(json[0]["curves"][0]["label"], MARKUP);
        assert_eq!(json[0]["curves"][0]["colour"], "#444444");
    }

    #[test]
    fn the_library_stands_on_the_page_once_and_nothing_is_loaded() {
        let page = page(&report(vec![figure(vec![]), figure(vec![])]));
        assert_eq!(page.matches(LIBRARY).count(), 1);
        let own = page.replace(LIBRARY, "");
        for outside in ["src=", "<link", "@import", "url(", "fetch(", "import(", "XMLHttp", "href=\"http"] {
            assert!(!own.contains(outside), "{outside}");
        }
        // What would end or change the script element it stands in.
        for mark in ["</script", "<!--", "<script"] {
            assert!(!LIBRARY.contains(mark) && !SCRIPT.contains(mark), "{mark}");
        }
    }

    #[test]
    fn every_place_in_the_template_is_filled_once() {
        for name in ["style", "provenance", "contents", "claims", "sections", "json", "library", "script"] {
            assert_eq!(TEMPLATE.matches(&format!("{{{{{name}}}}}")).count(), 1, "{name}");
        }
        assert_eq!(TEMPLATE.matches("{{").count(), 10, "the title stands twice");
    }

    #[test]
    fn every_figure_has_its_place_its_static_picture_and_its_points() {
        let page = page(&report(vec![figure(vec![curve("a", vec![point(1.0, 2.0)])])]));
        assert_eq!(page.matches("<div id=\"made-up\" class=\"figure\"><div class=\"static\"><svg").count(), 1);
        assert!(page.contains("data:text/csv;charset=utf-8,curve,x,y,low,high,imprecise,note%0Aa,1,2,,,false,%0A"));
    }

    #[test]
    fn every_heat_map_has_its_place_a_picture_for_each_theme_and_its_cells() {
        let page = page(&report(vec![]));
        assert_eq!(page.matches("class=\"heat-map\"><div class=\"static light\"><svg").count(), 1);
        assert_eq!(page.matches("<div class=\"static dark\"><svg").count(), 1);
        assert!(page.contains("data:text/csv;charset=utf-8,x,y,value,low,high,mark,note%0A"));
    }

    #[test]
    fn numbers_that_are_none_are_null_and_points_below_the_axis_say_so() {
        let mut made = figure(vec![curve("a", vec![point(1.0, f64::NAN), point(1.0, 0.0), point(1.0, 10.0)])]);
        made.y.scale = Scale::Log;
        let json = embedded_json(&page(&report(vec![made])));
        let points = &json[0]["curves"][0]["points"];
        assert!(points[0]["y"].is_null() && points[0]["left_out"] == true);
        assert!(points[1]["below"] == true && points[2]["below"] == false);
        assert_eq!(json[0]["y"]["scale"], "log");
    }
}
