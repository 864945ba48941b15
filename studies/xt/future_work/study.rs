//! What XT leaves to later studies: processing overhead, intermediate buffers, and the best windows at other throughputs.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: what is not varied is as in the other figures; the claims are targets of our own, written down before the first run.
//! Source: XT 4, its last paragraph ("processing overhead, intermediate buffer requirements"; "different throughput assumption").

use super::delay::{self, Across, Drawn};
use super::over_window::WINDOWS;
use super::tandem::{FIVE, SEGSTREAM, THROUGHPUT, WINDOW, Who, bernoulli};
use crate::curves::Look;
use segstream_lab::claim::{Claim, Finding, Part};
use segstream_lab::figure::{Axis, Curve, Figure, Line, Point, Scale, TextTable};
use segstream_lab::measured::Measured;
use segstream_lab::study::{Study, TandemPoint};
use segstream_lab::tandem::{TandemConfig, TandemScenario, TandemScheme};
use segstream_schemes::xtp::{Question, ReceiverStrategy};

/// The study.
pub(super) static STUDY: Study = Study {
    id: "xt/future_work",
    title: "Processing overhead, buffers, and windows at other throughputs",
    source: "XT 4, which leaves them to future studies",
    summary: "Three things that the paper names and does not run. What XTP's stations take for a packet: the slower its own sender is, the less \
              it overfills LINK1. The room of every finite queue. The best of ten windows at five throughputs. And one that it names as a \
              policy: whether the last packet of a window asks for the status at once (SREQ) or for it when all is delivered (DREQ), \
              with a user that takes time to read.",
    parameters: &[
        ("processing", "XTP1 and XTP2 1 to 4 slots a packet, LINK1 and LINK2 2 (chosen; the paper has 2 for all)"),
        ("room", "5 to 40 packets at LINK1, LINK2 and XTP2 (chosen; the paper has 10)"),
        ("throughputs", "0.06 to 0.14 messages/slot (chosen; the paper has 0.12)"),
        ("windows", "30 to 120 packets"),
        ("reading", "0 to 5 slots a packet behind XTP2 (chosen; the paper has none), at 0.08 messages/slot"),
    ],
    tandem: points,
    figures,
    tables,
    claims: &[
        Claim {
            id: "XT-F1",
            text: "Selective repeat with one slot more of processing a packet is still not worse than go-back-N without it (ours; XT 4)",
            check: overhead_pays,
        },
        Claim { id: "XT-F2", text: "More room makes no scheme slower, and with enough all six are alike (ours; XT 4)", check: room_helps },
        Claim {
            id: "XT-F3",
            text: "At a lower throughput a scheme's best window is as large or larger, since LINK1 has more to spare (ours; XT 4)",
            check: windows_shrink,
        },
        Claim {
            id: "XT-F4",
            text: "Where the user reads slowly, asking by DREQ takes fewer packets of control than by SREQ (ours; XT 2)",
            check: dreq_asks_less,
        },
    ],
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

const PROCESSING: [u32; 4] = [1, 2, 3, 4];
const ROOMS: [u32; 6] = [5, 10, 13, 20, 30, 40];
const RATES: [f64; 5] = [0.06, 0.08, 0.10, 0.12, 0.14];
const READS: [u32; 4] = [0, 2, 4, 5];
/// At which the reading user is tried, in messages a slot: at five slots a packet it is busy for 0.8 of the time.
const READ_AT: f64 = 0.08;
/// Who is compared, with the flagship.
const ALL: [Who; 6] = [FIVE[0], FIVE[1], FIVE[2], FIVE[3], FIVE[4], SEGSTREAM];
/// Both questions, as curves are called by them.
const QUESTIONS: [(Question, &str); 2] = [(Question::Status, "SREQ"), (Question::Delivery, "DREQ")];

fn changed(who: Who, window: u32, rate: f64, change: impl FnOnce(&mut TandemConfig)) -> TandemScenario {
    let mut scenario = who.over(window, bernoulli(rate));
    change(&mut scenario.tandem);
    scenario
}

fn of_processing(who: Who) -> String {
    format!("processing, {}", who.name())
}

fn of_room(who: Who) -> String {
    format!("room, {}", who.name())
}

fn of_window(who: Who, rate: f64) -> String {
    format!("{} at {rate}", who.name())
}

fn of_question(who: Who, question: &str) -> String {
    format!("{question}, {}", who.name())
}

/// Who reads: the store's receivers, with the sender that repeats what is missing.
const READERS: [Who; 2] = [FIVE[3], FIVE[4]];

fn asking(who: Who, question: Question, reads: u32) -> TandemScenario {
    let mut scenario = who.over(WINDOW, bernoulli(READ_AT));
    if let TandemScheme::Xtp { asks, reads_slots, .. } = &mut scenario.scheme {
        (*asks, *reads_slots) = (question, reads);
    }
    scenario
}

fn points() -> Vec<TandemPoint> {
    let mut points = Vec::new();
    for who in ALL {
        points.extend(PROCESSING.map(|slots| TandemPoint {
            curve: of_processing(who),
            x: f64::from(slots),
            scenario: changed(who, WINDOW, THROUGHPUT, |tandem| tandem.xtp_processing_slots = slots),
        }));
        points.extend(ROOMS.map(|room| TandemPoint {
            curve: of_room(who),
            x: f64::from(room),
            scenario: changed(who, WINDOW, THROUGHPUT, |tandem| {
                (tandem.link1_room, tandem.link2_room, tandem.xtp2_room) = (room, room, room);
            }),
        }));
        for rate in RATES {
            points.extend(WINDOWS.map(|window| TandemPoint {
                curve: of_window(who, rate),
                x: f64::from(window),
                scenario: who.over(window, bernoulli(rate)),
            }));
        }
    }
    for who in READERS {
        for (question, name) in QUESTIONS {
            points.extend(READS.map(|reads| TandemPoint {
                curve: of_question(who, name),
                x: f64::from(reads),
                scenario: asking(who, question, reads),
            }));
        }
    }
    points
}

/// The best window of a scheme at a throughput, and its delay.
fn best(measured: &Measured, who: Who, rate: f64) -> Option<(u32, f64)> {
    let at = |window: u32| delay::at(measured, &of_window(who, rate), f64::from(window)).map(|delay| (window, delay));
    let delays: Vec<(u32, f64)> = WINDOWS.into_iter().filter_map(at).collect();
    delays.into_iter().filter(|(_, delay)| delay.is_finite()).min_by(|a, b| a.1.total_cmp(&b.1))
}

fn figures(measured: &Measured) -> Vec<Figure> {
    let drawn = |name: fn(Who) -> String| ALL.map(|who| (name(who), who.label(), who.look())).to_vec();
    let mut questions: Vec<Drawn> = Vec::new();
    for who in READERS {
        for (question, name) in QUESTIONS {
            let line = if question == Question::Status { Line::Solid } else { Line::Dashed };
            questions.push((of_question(who, name), format!("{}, {name}", who.label()), Look { line, ..who.look() }));
        }
    }
    const SLOTS: Across = ("processing at XTP1 and XTP2 (slots a packet)", (0.5, 4.5));
    const ROOM: Across = ("room of each finite queue (packets)", (0.0, 42.0));
    const READING: Across = ("time the user takes (slots a packet)", (-0.2, 5.2));
    vec![
        delay::figure(
            measured,
            ("xt-future-work-processing", "Delay over the processing of XTP"),
            SLOTS,
            (15.0, 80.0),
            &drawn(of_processing),
        ),
        delay::figure(measured, ("xt-future-work-room", "Delay over the room of the queues"), ROOM, (15.0, 80.0), &drawn(of_room)),
        window_figure(measured),
        delay::figure(
            measured,
            ("xt-future-work-questions", "SREQ and DREQ with a user that reads slowly"),
            READING,
            (15.0, 80.0),
            &questions,
        ),
    ]
}

/// Best windows over the throughput.
fn window_figure(measured: &Measured) -> Figure {
    let curve = |who: &Who| {
        let look = who.look();
        let point = |rate: f64| {
            let (window, delay) = best(measured, *who, rate)?;
            let note = format!("{} slots", delay::text(delay));
            Some(Point { x: rate, y: f64::from(window), interval: None, imprecise: false, note })
        };
        Curve {
            label: who.label(),
            colour: look.colour.to_owned(),
            marker: look.marker,
            line: look.line,
            points: RATES.into_iter().filter_map(point).collect(),
        }
    };
    let axis = |label: &str, range| Axis { label: label.to_owned(), scale: Scale::Linear, range: Some(range) };
    Figure {
        id: "xt-future-work-windows".to_owned(),
        title: "The window with the least delay over the throughput".to_owned(),
        x: axis("user throughput (messages/slot)", (0.05, 0.15)),
        y: axis("best window (packets)", (25.0, 125.0)),
        curves: ALL.iter().map(curve).collect(),
    }
}

fn tables(measured: &Measured) -> Vec<TextTable> {
    let head = |first: &str| std::iter::once(first.to_owned()).chain(ALL.map(|who| who.label())).collect::<Vec<_>>();
    let rows = |name: fn(Who) -> String, xs: &[u32]| {
        let row = |x: &u32| [vec![x.to_string()], ALL.map(|who| delay::cell(measured, &name(who), f64::from(*x))).to_vec()].concat();
        xs.iter().map(row).collect::<Vec<_>>()
    };
    let window = |who: Who, rate: f64| {
        best(measured, who, rate).map_or_else(|| "none".to_owned(), |(window, delay)| format!("{window} ({})", delay::text(delay)))
    };
    let best_row = |rate: f64| [vec![format!("{rate:.2}")], ALL.map(|who| window(who, rate)).to_vec()].concat();
    let asked = |who: Who, name: &str, reads: u32| {
        let curve = of_question(who, name);
        let control = control_per_1000(measured, &curve, f64::from(reads)).unwrap_or(f64::NAN);
        format!("{}; {control:.1}", delay::cell(measured, &curve, f64::from(reads)))
    };
    let asking = |reads: u32| {
        let cells = READERS.iter().flat_map(|who| QUESTIONS.map(|(_, name)| asked(*who, name, reads)));
        std::iter::once(reads.to_string()).chain(cells).collect::<Vec<_>>()
    };
    let question_heads = READERS.iter().flat_map(|who| QUESTIONS.map(|(_, name)| format!("{}, {name}", who.number())));
    let delay_in = "Mean delay of a message in slots";
    let title = |over: &str| format!("{delay_in}, over {over}");
    vec![
        TextTable {
            title: title("the processing of XTP in slots a packet"),
            columns: head("slots"),
            rows: rows(of_processing, &PROCESSING),
        },
        TextTable { title: title("the room of each finite queue"), columns: head("packets"), rows: rows(of_room, &ROOMS) },
        TextTable {
            title: "Best window, and its delay in slots".to_owned(),
            columns: head("messages/slot"),
            rows: RATES.map(best_row).to_vec(),
        },
        TextTable {
            title: format!("{delay_in} at {READ_AT} messages/slot; packets of control both ways for 1000 messages"),
            columns: std::iter::once("slots a packet".to_owned()).chain(question_heads).collect(),
            rows: READS.map(asking).to_vec(),
        },
    ]
}

/// Packets of control in both directions for a thousand messages.
fn control_per_1000(measured: &Measured, curve: &str, x: f64) -> Option<f64> {
    let control = delay::total(measured, curve, x, |outcome| outcome.control_packets + outcome.feedback_packets)?;
    let messages = delay::total(measured, curve, x, |outcome| outcome.messages_delivered)?;
    Some(1e3 * control as f64 / messages.max(1) as f64)
}

fn overhead_pays(measured: &Measured) -> Option<Finding> {
    let row = |who: Who| delay::row(measured, &of_processing(who), &PROCESSING.map(f64::from));
    let (mut pays, mut told) = (Vec::new(), Vec::new());
    for (selective, back) in [(FIVE[3], FIVE[1]), (FIVE[4], FIVE[2])] {
        let (ours, theirs) = (row(selective)?, row(back)?);
        for at in 0..PROCESSING.len() - 1 {
            // Without a steady state on both sides neither is worse.
            pays.push(ours[at + 1] <= theirs[at]);
        }
        told.push(format!("{} {}; {} {}", selective.number(), delay::list(&ours), back.number(), delay::list(&theirs)));
    }
    let discard = row(FIVE[0])?;
    let parts = [
        Part::point("at the paper's two slots for go-back-N", pays[1] && pays[PROCESSING.len()]),
        Part::also("at every cost tried", pays.iter().all(|pays| *pays)),
    ];
    let told = told.join("; ");
    Some(Finding::of(parts, format!("slots at 1, 2, 3 and 4 slots of processing a packet: {told}; 1.1 {}", delay::list(&discard))))
}

fn room_helps(measured: &Measured) -> Option<Finding> {
    let rows: Vec<Vec<f64>> = FIVE.iter().map(|who| delay::row(measured, &of_room(*who), &ROOMS.map(f64::from))).collect::<Option<_>>()?;
    // What two delays of these runs may differ by without a reason.
    const CHANCE: f64 = 1.02;
    let never_slower = rows.iter().all(|row| row.is_sorted_by(|a, b| *b <= *a * CHANCE));
    let last: Vec<f64> = rows.iter().filter_map(|row| row.last().copied()).collect();
    let (least, most) = last.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), delay| (least.min(*delay), most.max(*delay)));
    let parts = [Part::point("more room makes none slower", never_slower), Part::also("all alike in the end", most <= least * CHANCE)];
    let told: Vec<String> = FIVE.iter().zip(&rows).map(|(who, row)| format!("{} {}", who.number(), delay::list(row))).collect();
    let rooms = ROOMS.map(|room| room.to_string()).join(" / ");
    Some(Finding::of(parts, format!("slots with room for {rooms} packets in each queue: {}", told.join("; "))))
}

fn windows_shrink(measured: &Measured) -> Option<Finding> {
    let (mut ordered, mut told) = (0, Vec::new());
    for who in FIVE {
        let windows: Vec<u32> = RATES.iter().map(|rate| best(measured, who, *rate).map_or(0, |(window, _)| window)).collect();
        ordered += usize::from(windows.is_sorted_by(|a, b| a >= b));
        let listed: Vec<String> = windows.iter().map(|window| if *window == 0 { "none".to_owned() } else { window.to_string() }).collect();
        told.push(format!("{} {}", who.number(), listed.join(", ")));
    }
    let parts = [Part::point("for most schemes", 2 * ordered > FIVE.len()), Part::also("for every scheme and step", ordered == FIVE.len())];
    Some(Finding::of(parts, format!("best windows at 0.06, 0.08, 0.10, 0.12, 0.14 messages/slot: {}", told.join("; "))))
}

fn dreq_asks_less(measured: &Measured) -> Option<Finding> {
    let (mut less, mut told) = (Vec::new(), Vec::new());
    for who in READERS {
        let of = |name: &str, reads: u32| control_per_1000(measured, &of_question(who, name), f64::from(reads));
        let slow = READS.into_iter().filter(|reads| *reads > 0);
        for reads in slow {
            let (status, delivery) = (of("SREQ", reads)?, of("DREQ", reads)?);
            less.push(delivery < status);
            told.push(format!("{} at {reads} slots a packet {status:.1} by SREQ and {delivery:.1} by DREQ", who.number()));
        }
    }
    debug_assert!(matches!(READERS[0], Who::Xtp(_, ReceiverStrategy::StoreConservative)));
    let holding = less.iter().filter(|less| **less).count();
    let parts = [Part::point("at most settings", 2 * holding > less.len()), Part::also("at every setting", holding == less.len())];
    Some(Finding::of(parts, format!("packets of control for 1000 messages: {}", told.join("; "))))
}
