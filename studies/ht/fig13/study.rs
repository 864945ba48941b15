//! HT Fig. 13: HTPNET and TCP over the window, without loss.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: both spend the same on a packet; TCP spends more on its timers.
//! Source: HT 7, Fig. 13.

use super::end_system::{EVERYONE, SERVICE, Who};
use super::packet_rate::{self, LABEL};
use crate::standings::{self as standing, Pair};
use segstream_base::Duration;
use segstream_lab::claim::{Claim, Finding, Part};
use segstream_lab::figure::{Figure, Scale, TextTable};
use segstream_lab::measured::Measured;
use segstream_lab::standing::{Quality, Standing};
use segstream_lab::study::{Study, StudyPoint};
use segstream_path::LossSpec;
use segstream_schemes::htpnet::{self, Ranges};
use segstream_schemes::tcp::Backoff;

/// The study.
pub(super) static STUDY: Study = Study {
    id: "ht/fig13",
    title: "HTPNET and TCP over the window",
    source: "HT 7, Figure 13",
    summary: "Packets a second over the window, without loss. HTPNET's throughput grows with the window until the processor is busy, and \
              stays. TCP keeps a timer for every packet in a delta list, which is searched from its head: to set one, behind all that \
              run, it passes the whole window. With one timer for the oldest packet, as TCP has had it since, nothing is searched.\n\n\
              At small windows HTPNET has a ninth less: what arrives is acknowledged by the next exchange, so that a window takes a \
              round trip and a period, 45 ms instead of 40.",
    parameters: &[
        ("round trip", "40 ms (stated)"),
        ("windows", "8 to 2048 packets (chosen)"),
        ("processor", "83 us a packet (inferred); HT had one for all of the sender here"),
        ("a timer", "5 us to set or clear one, 1 us for each it passes (chosen: not stated)"),
        ("exchange of states", "each 5 ms (chosen: an eighth of the round trip)"),
        ("run length", "a twentieth of the preset's packets, between the first quarter and the last eighth"),
    ],
    points,
    shortened: 20,
    figures,
    tables,
    claims: &[Claim {
        id: "HT-C5",
        text: "At small windows HTPNET and TCP are almost the same; HTPNET grows with the window until the network is full and then stays, \
               TCP saturates earlier and lower (HT 7)",
        check: saturation,
    }],
    standings,
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

const RTT: Duration = Duration::from_millis(40);
const PERIOD: Duration = Duration::from_millis(5);
const WINDOWS: [u32; 9] = [8, 16, 32, 64, 128, 256, 512, 1024, 2048];

/// Without loss there is nothing that four pairs could not tell, nor to rotate through.
fn everyone() -> impl Iterator<Item = Who> {
    EVERYONE.into_iter().filter(|who| !matches!(who, Who::Htpnet(Ranges::Four | Ranges::Rotating)))
}

fn points() -> Vec<StudyPoint> {
    let of = |who: Who| {
        WINDOWS.map(|window| StudyPoint {
            curve: who.name(),
            x: f64::from(window),
            scenario: who
                .over(RTT, window, &LossSpec::None)
                .with_settings(|it: &mut htpnet::Settings| it.sync_period = matches!(who, Who::Htpnet(_)).then_some(PERIOD)),
        })
    };
    everyone().flat_map(of).collect()
}

fn figures(points: &Measured) -> Vec<Figure> {
    let curves = everyone().map(|who| packet_rate::curve(points, &who.name(), &who.label(), who.look(), 1.0)).collect();
    let title = "HTPNET and TCP over the window, round trip 40 ms, no loss";
    vec![packet_rate::figure("ht-fig13", title, ("window (packets)", Scale::Log), LABEL, curves)]
}

fn tables(points: &Measured) -> Vec<TextTable> {
    let mut rows = Vec::new();
    for window in WINDOWS {
        let mut row = vec![window.to_string()];
        row.extend(
            everyone()
                .map(|who| packet_rate::at(points, &who.name(), f64::from(window)).map_or_else(String::new, |rate| format!("{rate:.0}"))),
        );
        rows.push(row);
    }
    let mut columns = vec!["window".to_owned()];
    columns.extend(everyone().map(Who::label));
    vec![TextTable { title: "Packets a second".to_owned(), columns, rows }]
}

fn saturation(points: &Measured) -> Option<Finding> {
    // "Almost identical", "almost linearly" and "constant" are put at 5 %.
    const FLAT: f64 = 0.05;
    let windows = WINDOWS.map(f64::from);
    let of = |who: Who| packet_rate::row(points, &who.name(), &windows);
    let (ours, tcp) = (of(Who::Htpnet(Ranges::Eight))?, of(Who::Tcp(Backoff::Retain))?);
    let one_timer = of(Who::Tcp(Backoff::Oldest))?;
    let small = ours.iter().zip(&tcp).take(3).fold(0.0, |most: f64, (ours, tcp)| most.max((ours / tcp - 1.0).abs()));
    // A window takes a round trip and a period; beyond that the processor is busy.
    let most = 1.0 / SERVICE.as_secs_f64();
    let fits = |(window, rate): (&f64, &f64)| {
        let wanted = (window / (RTT + PERIOD).as_secs_f64()).min(most);
        (rate / wanted - 1.0).abs() <= FLAT
    };
    let fitting = windows.iter().zip(&ours).filter(|pair| fits(*pair)).count();
    let peak = tcp.iter().copied().fold(0.0, f64::max);
    let (at, last) = (tcp.iter().position(|rate| *rate == peak)?, tcp.len() - 1);
    let lower = peak < 0.9 * ours[last] && at < ours.iter().position(|rate| *rate > (1.0 - FLAT) * ours[last])?;
    let parts = [
        Part::point("TCP saturates earlier and lower", lower),
        Part::also("the same at small windows", small <= FLAT),
        Part::also("HTPNET linear, then constant", fitting == windows.len()),
    ];
    let measured = format!(
        "windows 8 to 32: at most {:.0} % apart; HTPNET within 5 % of min(W / 45 ms, 1 / 83 us) at {fitting} of {} windows, {:.0} packets/s \
         at 2048; TCP has its peak of {peak:.0} at {} and {:.0} at 2048; with one timer it reaches {:.0}",
        small * 100.0,
        windows.len(),
        ours[last],
        WINDOWS[at],
        tcp[last],
        one_timer[last]
    );
    Some(Finding::of(parts, measured).because(
        "Where TCP saturates follows from what a timer costs, which was chosen; that it does follows from the list. The difference at \
         small windows is the exchange period: 45 ms a window against 40.",
    ))
}

/// The flagship beside HTPNET.
fn standings(points: &Measured) -> Vec<Standing> {
    let pair = Pair { ours: Who::Segstream.name(), theirs: Who::Htpnet(Ranges::Eight).name(), curve: "W".to_owned() };
    standing::of(points, "HTPNET, eight pairs", Quality::Throughput, &[pair], |result| packet_rate::of(result).mean)
}
