//! Loss against load: what rate control at the transport adds to a window. FC names such a study and does not show it.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: offered load is what the applications have for the link, new data alone, over its bandwidth.
//! Source: FC 6 (the summary names the study); the loss-load curves of Williamson and Cheriton, SIGCOMM 1991, are FC's [25].

use crate::curves::{Look, SHADES};
use crate::flagship::sweep;
use segstream_base::Tolerance;
use segstream_base::{Bandwidth, Bytes, Duration};
use segstream_lab::claim::{Claim, Finding, Part};
use segstream_lab::figure::{Curve, Figure, Line, Marker, Scale, TextTable};
use segstream_lab::flagship;
use segstream_lab::measured::Measured;
use segstream_lab::scenario::Scenario;
use segstream_lab::shared::{Application, FlowOutcome, Pace, SharedFlow, SharedOutcome, SharedResult, SharedScenario, Traffic};
use segstream_lab::study::{SharedPoint, Study};
use segstream_schemes::sstp;

/// The study.
pub(super) static STUDY: Study = Study {
    id: "fc/loss_load",
    title: "Loss against load, with and without rate control",
    source: "FC 6 names the study, no section shows it; after the loss-load curves of FC's [25]",
    summary: "The paper's summary says that a loss-load model has shown how much rate control at the transport matters; no section of it \
              does. This is such a study, made anew: eight SSTP senders on one bottleneck, each with segments at even intervals. With the \
              window alone a segment leaves as fast as the access, ten times the bottleneck; with rate control it leaves at the sender's \
              share of the bottleneck, or at a multiple of it.\n\n\
              Segstream at automatic rate, told nothing of shares, is one more curve.",
    parameters: &[
        ("paper", "no set-up is given; everything here is chosen"),
        ("link", "20 Mbit/s, 60 ms; room for 16, 64 or 256 packets (146 are a bandwidth-delay product)"),
        ("senders", "8, SSTP in full mode, segments of 32 packets of 1024 bytes, a window of 2.5 w_a of the whole link, 12 segments"),
        ("rates", "the access: 200 Mbit/s; a share: 2.5 Mbit/s; twice and four times that"),
        ("run", "10 s, totals from 4 s on"),
    ],
    shared: points,
    figures,
    tables,
    claims: &[
        Claim {
            id: "FC-L1",
            text: "With rate control at its share no sender loses anything while the load is below 1, in any buffer.",
            check: share_loses_nothing,
        },
        Claim {
            id: "FC-L2",
            text: "The window alone loses packets below a load of 1 in every buffer; a larger one puts that off to a higher load.",
            check: window_alone_loses,
        },
        Claim {
            id: "FC-L3",
            text: "In overload goodput stays above 0.9 of the link with rate control at the share; with the window alone it is less.",
            check: overload,
        },
    ],
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

/// How the senders send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Window,
    Share(u32),
    Automatic,
}

const WAYS: [Way; 5] = [Way::Window, Way::Share(4), Way::Share(2), Way::Share(1), Way::Automatic];
const LOADS: [f64; 7] = [0.2, 0.4, 0.6, 0.8, 0.9, 1.1, 1.5];
const BUFFERS: [u32; 3] = [16, 64, 256];
const SENDERS: u32 = 8;
const LINK_BPS: u64 = 20_000_000;
const PACKET_BYTES: u32 = 1024;
const SEGMENT_PACKETS: u32 = 32;
const ACCESS: u64 = 10;

impl Way {
    fn label(self) -> String {
        match self {
            Self::Window => "window alone, at ten times the link".to_owned(),
            Self::Share(1) => "with rate control, at the share".to_owned(),
            Self::Share(times) => format!("with rate control, at {times} shares"),
            Self::Automatic => "Segstream, automatic rate".to_owned(),
        }
    }

    fn curve(self, buffer: u32) -> String {
        match self {
            Self::Window => format!("window, buffer {buffer}"),
            Self::Share(times) => format!("rate x{times}, buffer {buffer}"),
            Self::Automatic => format!("segstream, buffer {buffer}"),
        }
    }

    fn look(self) -> Look {
        let (colour, marker) = match self {
            Self::Window => (SHADES[0], Marker::Cross),
            Self::Share(1) => (SHADES[2], Marker::Square),
            Self::Share(2) => (SHADES[3], Marker::Triangle),
            Self::Share(_) => (SHADES[5], Marker::Diamond),
            Self::Automatic => (SHADES[1], Marker::Circle),
        };
        Look { colour, marker, line: Line::Solid }
    }

    fn pace(self) -> Pace {
        let bps = match self {
            Self::Window => LINK_BPS * ACCESS,
            Self::Share(times) => LINK_BPS * u64::from(times) / u64::from(SENDERS),
            Self::Automatic => return Pace::AUTO,
        };
        Pace::Fixed(Bandwidth::from_bits_per_second(bps))
    }

    fn sender(self, number: u32, load: f64) -> SharedFlow {
        let scenario = Scenario::default().with(|it| {
            it.scheme = if self == Self::Automatic { flagship::Settings::default().into() } else { sstp::Settings::default().into() };
            it.workload.packet_bytes = PACKET_BYTES;
            it.workload.segment_packets = SEGMENT_PACKETS;
            it.workload.tolerance = Tolerance::reliable(SEGMENT_PACKETS);
            it.workload.window = 12;
        });
        let offered = Bandwidth::from_bits_per_second((LINK_BPS as f64 * load / f64::from(SENDERS)) as u64);
        let traffic = Traffic::Scheme { scenario: Box::new(scenario), pace: self.pace() };
        SharedFlow { application: Application::periodic(offered), ..SharedFlow::new(&format!("{number}"), traffic) }
    }

    fn over(self, buffer: u32, load: f64) -> SharedScenario {
        SharedScenario {
            bandwidth: Bandwidth::from_bits_per_second(LINK_BPS),
            queue: Bytes::new(u64::from(buffer * PACKET_BYTES)),
            duration: Duration::from_secs(10),
            warm_up: Duration::from_secs(4),
            // A second: the segments of different senders come at times of their own.
            start_spread: Duration::from_secs(1),
            flows: (1..=SENDERS).map(|number| self.sender(number, load)).collect(),
            ..SharedScenario::default()
        }
    }
}

fn points() -> Vec<SharedPoint> {
    let mut points = Vec::new();
    for buffer in BUFFERS {
        for way in WAYS {
            points.extend(LOADS.map(|load| SharedPoint { curve: way.curve(buffer), x: load, scenario: way.over(buffer, load) }));
        }
    }
    points
}

/// The drop rate of the link.
fn lost(outcome: &SharedOutcome) -> f64 {
    let of = |count: fn(&FlowOutcome) -> u64| outcome.flows.iter().map(count).sum::<u64>() as f64;
    of(|flow| flow.packets_dropped) / of(|flow| flow.packets_sent)
}

/// The goodput of all applications over the bandwidth of the link.
fn goodput(outcome: &SharedOutcome) -> f64 {
    outcome.flows.iter().map(FlowOutcome::goodput_bps).sum::<f64>() / LINK_BPS as f64
}

fn figures(points: &Measured) -> Vec<Figure> {
    let mut found = Vec::new();
    for buffer in BUFFERS {
        let curves = WAYS.map(|way| {
            sweep::curve(points, &way.curve(buffer), &way.label(), way.look(), |result| {
                result.over_replications(|outcome| 100.0 * lost(outcome))
            })
        });
        let title = format!("Packets dropped of eight senders, room for {buffer} packets");
        found.push(figure(&format!("loss-{buffer}"), &title, ("packets dropped (%)", 100.0), curves.to_vec()));
    }
    for buffer in [BUFFERS[0], BUFFERS[1]] {
        let curves =
            WAYS.map(|way| sweep::curve(points, &way.curve(buffer), &way.label(), way.look(), |result| result.over_replications(goodput)));
        let title = format!("Goodput of eight senders, room for {buffer} packets");
        found.push(figure(&format!("goodput-{buffer}"), &title, ("goodput over bandwidth", 1.0), curves.to_vec()));
    }
    found
}

fn figure(id: &str, title: &str, (up, most): (&str, f64), curves: Vec<Curve>) -> Figure {
    let axes = (("offered load", Scale::Linear), (up, Scale::Linear));
    let mut figure = sweep::figure(&format!("fc-loss-load-{id}"), title, axes.0, axes.1, curves);
    figure.y.range = Some((0.0, most));
    figure
}

fn tables(points: &Measured) -> Vec<TextTable> {
    let mut rows = Vec::new();
    for buffer in BUFFERS {
        for load in LOADS {
            let text = |way: Way| {
                points.shared_at(&way.curve(buffer), load).map_or_else(String::new, |result| {
                    let mean = |value: fn(&SharedOutcome) -> f64| result.over_replications(value).mean;
                    format!("{:.2} %, {:.3}", 100.0 * mean(lost), mean(goodput))
                })
            };
            let mut row = vec![buffer.to_string(), load.to_string()];
            row.extend(WAYS.map(text));
            rows.push(row);
        }
    }
    let mut columns = vec!["room (packets)".to_owned(), "load".to_owned()];
    columns.extend(WAYS.map(Way::label));
    vec![TextTable { title: "Packets dropped, and goodput over bandwidth".to_owned(), columns, rows }]
}

fn at(points: &Measured, way: Way, buffer: u32, load: f64) -> Option<&SharedResult> {
    points.shared_at(&way.curve(buffer), load)
}

fn lost_at(points: &Measured, way: Way, buffer: u32, load: f64) -> Option<f64> {
    Some(at(points, way, buffer, load)?.over_replications(lost).mean)
}

fn listed(values: &[f64], decimals: usize) -> String {
    values.iter().map(|value| format!("{value:.decimals$}")).collect::<Vec<_>>().join(" / ")
}

fn share_loses_nothing(points: &Measured) -> Option<Finding> {
    let mut worst = Vec::new();
    for buffer in BUFFERS {
        let below: Option<Vec<f64>> =
            LOADS.iter().filter(|load| **load < 1.0).map(|load| lost_at(points, Way::Share(1), buffer, *load)).collect();
        worst.push(100.0 * below?.into_iter().fold(0.0, f64::max));
    }
    let most = worst.iter().copied().fold(0.0, f64::max);
    let parts = [Part::point("less than one packet in a thousand", most < 0.1), Part::also("none at all", most == 0.0)];
    let measured = format!("most lost below a load of 1, room for 16 / 64 / 256 packets: {} %", listed(&worst, 3));
    Some(Finding::of(parts, measured))
}

fn window_alone_loses(points: &Measured) -> Option<Finding> {
    let row =
        |buffer: u32| -> Option<Vec<f64>> { LOADS.iter().map(|load| Some(100.0 * lost_at(points, Way::Window, buffer, *load)?)).collect() };
    let rows = BUFFERS.map(row).into_iter().collect::<Option<Vec<_>>>()?;
    // The least load at which more than 1 % is lost.
    let first = |row: &Vec<f64>| LOADS.iter().zip(row).find(|(_, lost)| **lost > 1.0).map_or(f64::INFINITY, |(load, _)| *load);
    let firsts: Vec<f64> = rows.iter().map(first).collect();
    let (below, rising) = (firsts.iter().all(|load| *load < 1.0), firsts.is_sorted());
    let parts = [Part::also("at loads below 1", below), Part::also("later with more room", rising)];
    let told: Vec<String> = BUFFERS.iter().zip(&rows).map(|(buffer, row)| format!("room for {buffer}: {} %", listed(row, 1))).collect();
    let loads = LOADS.map(|load| load.to_string()).join(" / ");
    let told = format!("more than 1 % from a load of {} on; at loads of {loads}: {}", listed(&firsts, 1), told.join("; "));
    Some(Finding::of(parts, told))
}

fn overload(points: &Measured) -> Option<Finding> {
    let load = LOADS[LOADS.len() - 1];
    let got = |way: Way| -> Option<Vec<f64>> {
        BUFFERS.iter().map(|buffer| Some(at(points, way, *buffer, load)?.over_replications(goodput).mean)).collect()
    };
    let (share, window) = (got(Way::Share(1))?, got(Way::Window)?);
    let wins = share.iter().zip(&window).filter(|(share, window)| share > window).count();
    let kept = share.iter().all(|share| *share >= 0.9);
    let parts = [Part::also("more than with the window alone", wins == BUFFERS.len()), Part::also("at least 0.9 of the link", kept)];
    let measured = format!(
        "goodput over bandwidth at a load of {load}, room for 16 / 64 / 256 packets: {} with rate control at the share, {} with the window alone",
        listed(&share, 3),
        listed(&window, 3)
    );
    Some(Finding::of(parts, measured))
}
