//! Made-up figures: every sign, line, scale and hard case, with numbers that look like a transport's.

use segstream_lab::figure::{Axis, Curve, Figure, Line, Marker, Point, Scale, TextTable};
use segstream_lab::heat_map::{Cell, HeatMap, Side};
use segstream_lab::report::{ClaimLine, Report, Section};

const COLOURS: [&str; 8] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#7f7f00"];
const MARKERS: [Marker; 8] =
    [Marker::Circle, Marker::Square, Marker::Triangle, Marker::Diamond, Marker::Cross, Marker::Star, Marker::Plus, Marker::Hexagon];
const LINES: [Line; 3] = [Line::Solid, Line::Dashed, Line::Dotted];

pub(crate) fn point(x: f64, y: f64) -> Point {
    Point { x, y, interval: None, imprecise: false, note: String::new() }
}

fn measured(x: f64, y: f64, half: f64) -> Point {
    Point { interval: Some((y - half, y + half)), note: "16 runs of 10 000 000 packets".into(), ..point(x, y) }
}

fn curve(index: usize, label: &str, points: Vec<Point>) -> Curve {
    let (marker, line) = (MARKERS[index % 7], LINES[index % 3]);
    Curve { label: label.into(), colour: COLOURS[index % 8].into(), marker, line, points }
}

fn axis(label: &str, scale: Scale) -> Axis {
    Axis { label: label.into(), scale, range: None }
}

fn figure(id: &str, title: &str, scales: (Scale, Scale), curves: Vec<Curve>) -> Figure {
    let (x, y) = (axis("loss ratio of the path", scales.0), axis("delay, max (ms)", scales.1));
    Figure { id: id.into(), title: title.into(), x, y, curves }
}

/// Four curves over four decades of loss.
fn delays() -> Figure {
    let losses = [1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2];
    let names = ["(256, 0, 0), hard acknowledgment", "(256, 1, 1), hard", "(256, 1, 1), soft", "closed form"];
    let curves = names.iter().enumerate().map(|(index, name)| {
        let delay = |loss: f64| 34.4 + [180.0, 90.0, 60.0, 176.0][index] * (loss * 3e3) / (1.0 + loss * 3e3);
        let points = losses.iter().enumerate().map(|(at, &loss)| {
            let mut made = measured(loss, delay(loss), 1.5 + 9.0 * loss.sqrt() * 10.0);
            made.imprecise = at > 6 && index == 1;
            if index == 3 { point(loss, delay(loss)) } else { made }
        });
        let mut made = curve(index, name, points.collect());
        made.marker = if index == 3 { Marker::None } else { made.marker };
        made
    });
    figure("ec-fig11", "Largest delay of a segment against loss, W = 36, RTD 60 ms", (Scale::Log, Scale::Linear), curves.collect())
}

/// Bars that reach zero and below, and values of zero, on logarithmic axes.
fn touching_zero() -> Figure {
    let mut rare: Vec<Point> = (0..8).map(|at| measured(10_f64.powi(at - 6), 10_f64.powi(at - 8), 10_f64.powi(at - 8) * 0.6)).collect();
    rare[0].interval = Some((0.0, 4e-8));
    rare[1].interval = Some((-1e-7, 3e-7));
    rare[2].imprecise = true;
    let mut never = vec![point(1e-6, 0.0), measured(1e-4, 2e-6, 1e-6), measured(1e-2, 3e-4, 1e-4)];
    never[0].interval = Some((0.0, 3.7e-7));
    let curves = vec![curve(0, "violated promises", rare), curve(1, "never seen at the left", never)];
    Figure { y: axis("share of segments", Scale::Log), ..figure("log-log", "Intervals that touch zero", (Scale::Log, Scale::Log), curves) }
}

/// Twelve curves with long names.
fn twelve() -> Figure {
    let curves = (0..12).map(|index| {
        let points = (1..=12).map(|x| measured(f64::from(x) * 6.0, 1.0 - 0.9 / f64::from(x) - 0.03 * index as f64, 0.01));
        curve(index, &format!("scheme {index} with tolerance (1024, {index}, 1) and soft eager acknowledgment"), points.collect())
    });
    let made = figure(
        "twelve",
        "Throughput efficiency of twelve schemes against the window, and a title so long that it does not fit on \
                       one line of the sheet",
        (Scale::Linear, Scale::Linear),
        curves.collect(),
    );
    Figure { x: axis("window (segments)", Scale::Linear), y: axis("throughput efficiency", Scale::Linear), ..made }
}

/// Nothing, one point, the same value everywhere, numbers that are none, and a range that cuts.
fn hard_cases() -> Vec<Figure> {
    let linear = (Scale::Linear, Scale::Linear);
    let broken = [1.0, f64::NAN, 3.0, f64::INFINITY, 5.0, 6.0];
    let broken = broken.iter().enumerate().map(|(x, &y)| measured(x as f64, y, 0.5)).collect();
    let mut cut = figure(
        "cut",
        "A range that cuts",
        linear,
        vec![curve(0, "through", (0..20).map(|x| point(f64::from(x), f64::from(x * x))).collect())],
    );
    (cut.x.range, cut.y.range) = (Some((2.0, 16.0)), Some((20.0, 200.0)));
    vec![
        figure("nothing", "No curve", linear, vec![]),
        figure("no-points", "A curve without points", (Scale::Log, Scale::Log), vec![curve(0, "none", vec![])]),
        figure("single", "One point", linear, vec![curve(2, "alone", vec![measured(3.0, 12_345.0, 20.0)])]),
        figure("flat", "The same value everywhere", linear, vec![curve(3, "flat", (0..9).map(|x| point(f64::from(x), 0.9965)).collect())]),
        figure("broken", "Numbers that are none", linear, vec![curve(4, "with gaps", broken)]),
        cut,
    ]
}

/// Seven tolerances over eight losses, two of them not run.
pub(crate) fn delays_by_tolerance() -> HeatMap {
    let losses = [1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2];
    let tolerances = ["(256, 0, 0)", "(256, 1, 1)", "(256, 2, 1)", "(256, 4, 1)", "(256, 4, 2)", "(256, 8, 1)", "(256, 8, 4)"];
    let sides = (Side::numbers("loss ratio of the path", &losses), Side::names("tolerance (W, E, B)", tolerances));
    let cell = |column: usize, row: usize| {
        let repeated = losses[column] * 256.0 / (1.0 + 3.0 * row as f64);
        let delay = 34.4 + 120.0 * repeated / (1.0 + repeated) + 0.8 * row as f64;
        let measured = Cell { value: delay, interval: Some((delay - 0.6, delay + 0.6)), note: "16 runs of 10 000 000 packets".into() };
        (column < 7 || row > 1).then_some(measured)
    };
    let made = HeatMap::of(
        ("ec-fig11-grid", "Largest delay of a segment, by loss and tolerance"),
        sides,
        axis("delay, max (ms)", Scale::Log),
        cell,
    );
    made.marking_lowest("shortest delay").marking_highest("longest delay")
}

/// What would be markup, were it not escaped.
const MARKUP: &str = "</script><script>throw new Error('label')</script><img src=x onerror=\"throw 1\">&amp;<b>{{json}}";

/// A heat map of nothing but such texts.
fn hostile_map() -> HeatMap {
    let sides = (Side::names(MARKUP, [MARKUP]), Side::names(MARKUP, [MARKUP]));
    HeatMap::of(("hostile-map", MARKUP), sides, axis(MARKUP, Scale::Linear), |_, _| Some(1.0)).marking_lowest(MARKUP)
}

/// Names that would be markup, were they not escaped.
fn hostile() -> Figure {
    let mut made =
        figure("hostile", MARKUP, (Scale::Linear, Scale::Linear), vec![curve(0, MARKUP, vec![point(1.0, 1.0), point(2.0, 3.0)])]);
    made.curves[0].points[0].note = MARKUP.into();
    made.x.label = MARKUP.into();
    made.curves[0].colour = "red\" onload=\"throw 2".into();
    made
}

fn claim(id: &str, verdict: &str) -> ClaimLine {
    let explanation = if verdict == "does not agree" { "The text counts the bits of a bitmap; ours counts packets." } else { "" };
    ClaimLine {
        id: id.into(),
        claim: "With a tolerance of one packet in a segment the largest delay stays below one and a half round trips.".into(),
        verdict: verdict.into(),
        measured: "94.3 ms (93.9 to 94.7) against 94.3 ms".into(),
        explanation: explanation.into(),
    }
}

/// A report of all of them.
pub(crate) fn report() -> Report {
    let section = |id: &str, title: &str, figures: Vec<Figure>, claims: Vec<ClaimLine>| Section {
        id: id.into(),
        title: title.into(),
        source: "EC 4.2, Figure 11".into(),
        summary: "What was run: a long path with random loss.\n\nWhat is seen: the tolerant transfer keeps its delay.".into(),
        figures,
        heat_maps: Vec::new(),
        tables: vec![TextTable {
            title: "Delay at a loss of 10⁻³".into(),
            columns: ["tolerance", "delay, mean (ms)", "delay, max (ms)"].map(String::from).to_vec(),
            rows: vec![
                ["(256, 0, 0)", "46.1", "154.4"].map(String::from).to_vec(),
                ["(256, 1, 1)", "34.5", "94.3"].map(String::from).to_vec(),
            ],
        }],
        claims,
        standings: Vec::new(),
        parameters: [("round trip", "60 ms"), ("bandwidth", "500 Mbit/s"), ("window", "36 segments (chosen)")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
    };
    let mut sections = vec![
        section(
            "ec/fig11",
            "Delay against loss",
            vec![delays(), touching_zero()],
            vec![claim("EC-C5", "agrees with the text"), claim("EC-C6", "shape only")],
        ),
        section(
            "ec/fig12",
            "Efficiency against the window",
            vec![twelve()],
            vec![claim("EC-C7", "does not agree"), claim("EC-C8", "by construction")],
        ),
        section("x/hard", "Hard cases <b>&", hard_cases(), vec![]),
        section("x/hostile", "Hostile names", vec![hostile()], vec![claim("X</td>", "<i>unheard of</i>")]),
    ];
    sections[0].heat_maps = vec![delays_by_tolerance()];
    sections[3].heat_maps = vec![hostile_map()];
    let provenance = [("version", "0.1.0"), ("preset", "quick"), ("seed", "1"), ("processors", "2")];
    Report { title: "Made-up report".into(), provenance: provenance.map(|(name, value)| (name.into(), value.into())).to_vec(), sections }
}
