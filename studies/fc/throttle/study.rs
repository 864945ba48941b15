//! FC 3.4: a receiver whose user is slow throttles the sender, by the window that it withholds and by a smaller one.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: nothing is lost on the path, so what is sent again is sent in vain.
//! Source: FC 3.4 (window control strategy), FC 4.3.1 (two segment slots). The paper runs none of it.

use super::buffer_sweep::WINDOW;
use crate::black_box::Who;
use crate::curves::{Look, SHADES, valued};
use segstream_base::{Duration, Instant};
use segstream_blocks::user::Slowdown;
use segstream_lab::claim::{Claim, Finding, Part};
use segstream_lab::closed_forms::Point;
use segstream_lab::figure::{Axis, Curve, Figure, Line, Marker, Scale, TextTable};
use segstream_lab::measured::Measured;
use segstream_lab::outcome::Outcome;
use segstream_lab::point::PointResult;
use segstream_lab::scenario::Scenario;
use segstream_lab::statistics::Estimate;
use segstream_lab::study::{Study, StudyPoint};
use segstream_path::LossSpec;
use segstream_schemes::sstp::{self, Acknowledgment, Discard, Throttle};

/// The study.
pub(super) static STUDY: Study = Study {
    id: "fc/throttle",
    title: "A slow user, and a window that is withheld or made smaller",
    source: "FC 3.4 and 4.3.1; no figure of the paper runs it",
    summary: "A receiver whose user takes F_1 segments a second of the F that the rate allows. It may withhold the advancement of the \
              window, so that the window moves as segments are taken, and it may make the window smaller, W_1 = (F_1 / F) W_0. What the \
              user works on keeps its place in the buffer until it is done.\n\n\
              With a buffer as large as the window, withholding is all that is needed. With a smaller one, whoever grants what it cannot \
              keep is sent it again and again for as long as the user is slow: that is what the smaller window saves.",
    parameters: &[
        ("path", "60 ms, 500 Mbit/s, nothing lost; packets of 1024 bytes, s = 256: F is 238 segments a second"),
        ("F_1 / F", "1/8 to 3/4, from the beginning to the end (chosen)"),
        ("slow for a while", "F_1 / F = 1/4 from 200 to 500 ms; judged by the last quarter of the run (chosen)"),
        ("window, buffers", "36 segments; 36, 14 and 7 (Figs. 17 to 19)"),
        ("two slots", "a user that takes t_s for a segment, window 36, buffers of 1, 2, 3 and 4 segments, hard ACK"),
        ("discard", "hard ACK by group, soft ACK by packet, a discarded segment asked for when it is next (as in Figs. 17 to 19)"),
        ("Segstream", "its window follows what the user has taken; it does not make it smaller"),
        ("run length", "a fifth of the preset's packets"),
    ],
    points,
    shortened: 5,
    at_whole_length: true,
    figures,
    tables,
    claims: &[
        Claim {
            id: "FC-C12",
            text: "Without errors two segment slots are sufficient for continuous receiving and processing (FC 4.3.1)",
            check: two_slots,
        },
        Claim {
            id: "FC-T1",
            text: "A receiver throttles the sender to F_1 by withholding the window, by a smaller one, or by both (FC 3.4)",
            check: f1_is_met,
        },
        Claim {
            id: "FC-T2",
            text: "With a buffer of the window nothing is sent in vain: withholding is enough (FC 3.4)",
            check: withholding_is_enough,
        },
        Claim {
            id: "FC-T3",
            text: "With a smaller buffer W_1 = (F_1 / F) W_0 saves most of what is sent in vain (ours)",
            check: smaller_window_saves,
        },
        Claim {
            id: "FC-T4",
            text: "After a slowdown without losses the throughput is what it was before, with hard ACK and with soft ACK (ours)",
            check: heals,
        },
    ],
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

/// F_1 / F.
const SHARES: [f64; 4] = [0.125, 0.25, 0.5, 0.75];
const BUFFERS: [u32; 3] = [WINDOW, 14, 7];
/// The buffers of the user that takes as long as a segment comes.
const SLOTS: [u32; 4] = [1, 2, 3, 4];
/// F_1 / F where the user is slow for a while.
const SHARE_FOR_A_WHILE: f64 = 0.25;

/// Who is slow, and what it does about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Sstp(Acknowledgment, Throttle),
    Segstream,
}

const WAYS: [Way; 5] = [
    Way::Sstp(Acknowledgment::Hard, Throttle::Withhold),
    Way::Sstp(Acknowledgment::Hard, Throttle::Resize),
    Way::Sstp(Acknowledgment::SoftLazy, Throttle::Withhold),
    Way::Sstp(Acknowledgment::SoftLazy, Throttle::Resize),
    Way::Segstream,
];

impl Way {
    fn name(self) -> String {
        match self {
            Self::Sstp(ack, throttle) => format!("sstp {ack} {throttle}"),
            Self::Segstream => "segstream".to_owned(),
        }
    }

    fn label(self) -> String {
        let of = |ack: Acknowledgment| if ack == Acknowledgment::Hard { "hard ACK" } else { "soft ACK" };
        match self {
            Self::Sstp(ack, Throttle::Withhold) => format!("{}, window withheld", of(ack)),
            Self::Sstp(ack, Throttle::Resize) => format!("{}, smaller window", of(ack)),
            Self::Segstream => "Segstream".to_owned(),
        }
    }

    fn look(self) -> Look {
        match self {
            Self::Sstp(ack, throttle) => Look {
                colour: if ack == Acknowledgment::Hard { SHADES[2] } else { SHADES[3] },
                marker: if ack == Acknowledgment::Hard { Marker::Square } else { Marker::Triangle },
                line: if throttle == Throttle::Withhold { Line::Solid } else { Line::Dashed },
            },
            Self::Segstream => Look { colour: SHADES[1], marker: Marker::Circle, line: Line::Solid },
        }
    }

    fn curve(self, what: &str, buffer: u32) -> String {
        format!("{} {what} b{buffer}", self.name())
    }

    /// With this buffer and a user who is slow so.
    fn scenario(self, buffer: u32, slowdown: Slowdown) -> Scenario {
        let who = if self == Self::Segstream { Who::Segstream } else { Who::SstpIdeal };
        let buffer = (buffer < WINDOW).then_some(buffer);
        let scenario = who.over(&LossSpec::None).with(|it| {
            it.workload.buffer = buffer;
            it.workload.slowdown = Some(slowdown);
        });
        let Self::Sstp(ack, throttle) = self else { return scenario };
        let discard = if ack == Acknowledgment::Hard && buffer.is_some() { Discard::Group } else { Discard::Packet };
        scenario.with_settings(|it: &mut sstp::Settings| (it.ack, it.discard, it.throttle) = (ack, discard, throttle))
    }
}

/// 1 / F, which is t_s.
fn segment_time() -> Duration {
    Duration::from_nanos((Point::of_the_papers(500e6).segment_time() * 1e9).round() as u64)
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// A user who takes this share of F from the beginning to the end.
fn always(share: f64) -> Slowdown {
    let takes = Duration::from_nanos((segment_time().as_nanos() as f64 / share).round() as u64);
    Slowdown { from: Instant::ZERO, until: Instant::FAR_FUTURE, takes }
}

fn for_a_while() -> Slowdown {
    Slowdown { from: at(200), until: at(500), ..always(SHARE_FOR_A_WHILE) }
}

fn points() -> Vec<StudyPoint> {
    let mut points = Vec::new();
    for way in WAYS {
        for buffer in BUFFERS {
            points.extend(SHARES.map(|share| StudyPoint {
                curve: way.curve("slow", buffer),
                x: share,
                scenario: way.scenario(buffer, always(share)),
            }));
        }
        points.extend(BUFFERS.map(|buffer| StudyPoint {
            curve: format!("{} for a while", way.name()),
            x: f64::from(buffer),
            scenario: way.scenario(buffer, for_a_while()),
        }));
    }
    points.extend(SLOTS.map(|buffer| StudyPoint {
        curve: "slots".to_owned(),
        x: f64::from(buffer),
        scenario: WAYS[0].scenario(buffer, always(1.0)),
    }));
    points
}

/// Segments accepted a second in the second half of a run. Why not all of it: the first window comes at once, whoever is slow.
fn segments_per_second(outcome: &Outcome) -> f64 {
    let half = &outcome.batches[outcome.batches.len() / 2..];
    let (segments, nanos) = half.iter().fold((0, 0), |(segments, nanos), it| (segments + it.segments, nanos + it.span_ns));
    segments as f64 * 1e9 / nanos as f64
}

/// Segments a second over what the user takes.
fn over_f1(result: &PointResult) -> Estimate {
    let takes = result.scenario.workload.slowdown.map_or(f64::NAN, |slow| slow.takes.as_secs_f64());
    result.over_replications(|outcome| segments_per_second(outcome) * takes)
}

/// Packets sent for each that was accepted: 1 when none is sent in vain.
fn sent_per_packet(result: &PointResult) -> Estimate {
    result.over_replications(|outcome| outcome.packets_sent as f64 / outcome.packets_accepted as f64)
}

/// The throughput of the last quarter of a run over the rate of the path.
fn last_quarter(result: &PointResult) -> Estimate {
    let share = |outcome: &Outcome| {
        let last = &outcome.batches[outcome.batches.len() * 3 / 4..];
        let (segments, nanos) = last.iter().fold((0, 0), |(segments, nanos), it| (segments + it.segments, nanos + it.span_ns));
        segments as f64 * segment_time().as_nanos() as f64 / nanos as f64
    };
    result.over_replications(share)
}

fn figure(id: &str, title: &str, x: (&str, Scale), y: (&str, Scale), curves: Vec<Curve>) -> Figure {
    let axis = |(label, scale): (&str, Scale)| Axis { label: label.to_owned(), scale, range: None };
    Figure { id: id.to_owned(), title: title.to_owned(), x: axis(x), y: axis(y), curves }
}

fn figures(points: &Measured) -> Vec<Figure> {
    let x = ("F_1 / F", Scale::Linear);
    let over = |buffer: u32, value: fn(&PointResult) -> Estimate| {
        let one = |way: &Way| {
            valued(points, &way.curve("slow", buffer), &way.label(), way.look(), |result| (value(result).mean, value(result).interval()))
        };
        WAYS.iter().map(one).collect::<Vec<_>>()
    };
    let after = WAYS
        .iter()
        .map(|way| {
            let name = format!("{} for a while", way.name());
            valued(points, &name, &way.label(), way.look(), |result| (last_quarter(result).mean, last_quarter(result).interval()))
        })
        .collect();
    let sent = ("packets sent for each accepted", Scale::Log);
    vec![
        figure("fc-throttle", "A slow user: packets sent for each accepted, buffer 14 of 36", x, sent, over(14, sent_per_packet)),
        figure("fc-throttle-7", "A slow user: packets sent for each accepted, buffer 7 of 36", x, sent, over(7, sent_per_packet)),
        figure(
            "fc-throttle-rate",
            "A slow user: segments a second over F_1, buffer 14 of 36",
            x,
            ("segments a second / F_1", Scale::Linear),
            over(14, over_f1),
        ),
        figure(
            "fc-throttle-after",
            "After the user was slow for 300 ms",
            ("buffer (segments)", Scale::Linear),
            ("throughput of the last quarter", Scale::Linear),
            after,
        ),
    ]
}

fn tables(points: &Measured) -> Vec<TextTable> {
    let mut rows = Vec::new();
    for way in WAYS {
        for buffer in BUFFERS {
            let text = |share: f64| {
                points
                    .at(&way.curve("slow", buffer), share)
                    .map_or_else(String::new, |result| format!("{:.3}, {:.2}", over_f1(result).mean, sent_per_packet(result).mean))
            };
            let after = points.at(&format!("{} for a while", way.name()), f64::from(buffer));
            let after = after.map_or_else(String::new, |result| format!("{:.3}", last_quarter(result).mean));
            rows.push([vec![way.label(), buffer.to_string()], SHARES.map(text).to_vec(), vec![after]].concat());
        }
    }
    let columns = [
        vec!["".to_owned(), "buffer".to_owned()],
        SHARES.map(|share| format!("F_1 / F = {share}")).to_vec(),
        vec!["last quarter, after 300 ms of 0.25".to_owned()],
    ]
    .concat();
    let slots = |buffer: u32| {
        let result = points.at("slots", f64::from(buffer));
        let text = |value: fn(&PointResult) -> Estimate, digits: usize| {
            result.map_or_else(String::new, |result| format!("{:.digits$}", value(result).mean))
        };
        vec![buffer.to_string(), text(over_f1, 3), text(sent_per_packet, 2)]
    };
    vec![
        TextTable { title: "Segments a second over F_1, and packets sent for each accepted".to_owned(), columns, rows },
        TextTable {
            title: "A user that takes t_s a segment, window 36, hard ACK".to_owned(),
            columns: ["slots", "segments a second / F", "packets sent for each accepted"].map(str::to_owned).to_vec(),
            rows: SLOTS.map(slots).to_vec(),
        },
    ]
}

/// A value of a way at each share, with a buffer.
fn row(points: &Measured, way: Way, buffer: u32, value: fn(&PointResult) -> Estimate) -> Option<Vec<f64>> {
    SHARES.iter().map(|share| Some(value(points.at(&way.curve("slow", buffer), *share)?).mean)).collect()
}

fn listed(values: &[f64], digits: usize) -> String {
    values.iter().map(|value| format!("{value:.digits$}")).collect::<Vec<_>>().join(" / ")
}

/// What of F or F_1 counts as all of it.
const NEAR: f64 = 0.02;

fn two_slots(points: &Measured) -> Option<Finding> {
    let rates: Vec<f64> = SLOTS.iter().map(|slots| Some(over_f1(points.at("slots", f64::from(*slots))?).mean)).collect::<Option<_>>()?;
    let sent: Vec<f64> =
        SLOTS.iter().map(|slots| Some(sent_per_packet(points.at("slots", f64::from(*slots))?).mean)).collect::<Option<_>>()?;
    let parts = [
        Part::point("all of F with two slots", rates[1] >= 1.0 - NEAR),
        Part::also("and none is sent in vain", sent[1] <= 1.0 + NEAR),
        Part::also("not with one", rates[0] < 1.0 - NEAR),
    ];
    Some(Finding::of(
        parts,
        format!(
            "slots 1 / 2 / 3 / 4: {} of F, {} packets sent for each accepted; the user takes exactly t_s for a segment, the window is {WINDOW}",
            listed(&rates, 3),
            listed(&sent, 2)
        ),
    ))
}

fn f1_is_met(points: &Measured) -> Option<Finding> {
    let (mut told, mut met, mut all) = (Vec::new(), 0, 0);
    for way in WAYS {
        for buffer in BUFFERS {
            let rates = row(points, way, buffer, over_f1)?;
            met += rates.iter().filter(|rate| (**rate - 1.0).abs() <= NEAR).count();
            all += rates.len();
            told.push(format!("{}, buffer {buffer}: {}", way.label(), listed(&rates, 3)));
        }
    }
    let parts = [Part::point("at most settings", 2 * met > all), Part::also("at every setting", met == all)];
    Some(Finding::of(parts, format!("segments a second over F_1 at F_1 / F = 1/8, 1/4, 1/2, 3/4: {}", told.join("; "))))
}

fn withholding_is_enough(points: &Measured) -> Option<Finding> {
    let ways = [WAYS[0], WAYS[2], Way::Segstream];
    let rows: Vec<Vec<f64>> = ways.iter().map(|way| row(points, *way, WINDOW, sent_per_packet)).collect::<Option<_>>()?;
    let exact = |row: &Vec<f64>| row.iter().all(|sent| *sent <= 1.0);
    let parts = [Part::point("of SSTP", rows[..2].iter().all(exact)), Part::also("of Segstream too", exact(&rows[2]))];
    let told: Vec<String> = ways.iter().zip(&rows).map(|(way, row)| format!("{} {}", way.label(), listed(row, 3))).collect();
    Some(Finding::of(parts, format!("packets sent for each accepted at F_1 / F = 1/8, 1/4, 1/2, 3/4: {}", told.join("; "))))
}

fn smaller_window_saves(points: &Measured) -> Option<Finding> {
    // "Most": what is sent in vain becomes less than half.
    let (mut told, mut saved, mut all) = (Vec::new(), 0, 0);
    for (withheld, smaller) in [(WAYS[0], WAYS[1]), (WAYS[2], WAYS[3])] {
        for buffer in &BUFFERS[1..] {
            let (before, after) = (row(points, withheld, *buffer, sent_per_packet)?, row(points, smaller, *buffer, sent_per_packet)?);
            saved += before.iter().zip(&after).filter(|(before, after)| (**after - 1.0) <= 0.5 * (**before - 1.0)).count();
            all += before.len();
            told.push(format!("{}, buffer {buffer}: {} and {}", withheld.label(), listed(&before, 2), listed(&after, 2)));
        }
    }
    let ours: Vec<String> = BUFFERS[1..]
        .iter()
        .map(|buffer| Some(format!("Segstream, buffer {buffer}: {}", listed(&row(points, Way::Segstream, *buffer, sent_per_packet)?, 2))))
        .collect::<Option<_>>()?;
    let parts = [Part::point("at most settings", 2 * saved > all), Part::also("at every setting", saved == all)];
    let told =
        format!("packets sent for each accepted, with the window withheld and made smaller: {}; {}", told.join("; "), ours.join("; "));
    Some(Finding::of(parts, told))
}

fn heals(points: &Measured) -> Option<Finding> {
    let mut told = Vec::new();
    let mut heals = Vec::new();
    for way in WAYS {
        let name = format!("{} for a while", way.name());
        let rates: Vec<f64> =
            BUFFERS.iter().map(|buffer| Some(last_quarter(points.at(&name, f64::from(*buffer))?).mean)).collect::<Option<_>>()?;
        heals.push(rates.iter().all(|rate| *rate >= 1.0 - NEAR));
        told.push(format!("{} {}", way.label(), listed(&rates, 3)));
    }
    let parts = [
        Part::point("with hard ACK", heals[0] && heals[1]),
        Part::also("with soft ACK", heals[2] && heals[3]),
        Part::also("with Segstream", heals[4]),
    ];
    Some(Finding::of(parts, format!("throughput of the last quarter, buffers of 36 / 14 / 7: {}", told.join("; "))))
}
