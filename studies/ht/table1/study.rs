//! HT Table 1: the eight classes, and that nothing is retransmitted in vain regardless of what happens to state packets.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: where nothing is lost but states, whatever is retransmitted was sent in vain.
//! Source: HT 3.2, HT 4, Table 1.

use super::end_system::{PACKET_BYTES, SERVICE, Who, one_packet_in};
use super::packet_rate;
use crate::black_box::random;
use segstream_base::{Bandwidth, Bytes, Duration, Tolerance};
use segstream_lab::claim::{Claim, Finding, Part};
use segstream_lab::figure::TextTable;
use segstream_lab::measured::Measured;
use segstream_lab::registry;
use segstream_lab::scenario::Scenario;
use segstream_lab::shared::{FlowOutcome, Pace, SharedFlow, SharedScenario, Traffic};
use segstream_lab::study::{SharedPoint, Study, StudyPoint};
use segstream_path::LossSpec;
use segstream_schemes::htpnet::{self, Class, Ranges};
use segstream_schemes::snr;
use segstream_schemes::tcp::Backoff;

/// The study.
pub(super) static STUDY: Study = Study {
    id: "ht/table1",
    title: "Protocol classes, and what is sent in vain",
    source: "HT 3.2, Table 1; HT 4",
    summary: "The eight classes as the code has them, each with a run over a path that loses one packet in a hundred: with error \
              control everything arrives, without it what was lost is missing.\n\nHT 4 argues that a lost state, or a way that becomes \
              longer, never makes HTPNET send again what has arrived. The second table loses states alone; the third has a \
              link on which others come and go in bursts, with room for all that waits. What is sent again there is sent in vain.",
    parameters: &[
        ("classes", "error control 4, flow control 2, rate control 1 (HT Table 1)"),
        ("round trip, window", "40 ms, 256 packets; 64 on the shared link (chosen)"),
        ("errors of the first table", "0.01 of all packets, both directions (chosen)"),
        ("shared link", "65.5 Mbit/s beside bursts of as much, 200 ms on and off in the mean (chosen)"),
        ("SNR", "blocks of 8 packets, a state each 5 ms, 12,048 packets/s; 1,220 on the shared link (chosen)"),
        ("run length", "a twentieth of the preset's packets; the shared link 20 s"),
    ],
    points,
    shortened: 20,
    shared,
    tables,
    claims: &[Claim {
        id: "HT-C7",
        text: "No packet is sent again in vain when state packets are lost or the delay varies (HT 4)",
        check: in_vain,
    }],
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

const RTT: Duration = Duration::from_millis(40);
const PERIOD: Duration = Duration::from_millis(5);
const WINDOW: u32 = 256;
/// The errors under which each class is run, and those of data where states are lost too.
const ERRORS: f64 = 1e-2;
/// The shares of states that are lost.
const STATES_LOST: [f64; 4] = [0.0, 0.01, 0.1, 0.3];

/// Who loses states.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Loser {
    Of(Who),
    Snr,
}

const LOSERS: [Loser; 6] = [
    Loser::Of(Who::Htpnet(Ranges::Eight)),
    Loser::Of(Who::Htpnet(Ranges::Four)),
    Loser::Of(Who::Htpnet(Ranges::All)),
    Loser::Snr,
    Loser::Of(Who::Tcp(Backoff::Retain)),
    Loser::Of(Who::Segstream),
];

impl Loser {
    fn name(self) -> String {
        match self {
            Self::Of(who) => who.name(),
            Self::Snr => "snr".to_owned(),
        }
    }

    fn label(self) -> String {
        match self {
            Self::Of(who) => who.label(),
            Self::Snr => "SNR".to_owned(),
        }
    }

    fn over(self, window: u32, loss: &LossSpec) -> Scenario {
        match self {
            Self::Of(who @ Who::Htpnet(_)) => {
                who.over(RTT, window, loss).with_settings(|it: &mut htpnet::Settings| it.sync_period = Some(PERIOD))
            }
            Self::Of(who) => who.over(RTT, window, loss),
            Self::Snr => snr(RTT, PERIOD, 8, window, loss),
        }
    }
}

/// SNR at HT's rate of packets, a block of this many.
pub(super) fn snr(rtt: Duration, period: Duration, block: u32, window: u32, loss: &LossSpec) -> Scenario {
    Who::Htpnet(Ranges::Eight)
        .over(rtt, window, loss)
        .with(|it| {
            it.scheme = snr::Settings::default().into();
            it.black_box.bandwidth = one_packet_in(SERVICE, PACKET_BYTES);
            it.workload.segment_packets = block;
            it.workload.tolerance = Tolerance::reliable(block);
            it.workload.window = window / block;
            it.black_box.service = Duration::ZERO;
        })
        .with_settings(|it: &mut snr::Settings| it.status_period = Some(period))
}

/// Where data are lost too.
fn with_data(loser: Loser) -> String {
    format!("{}, data lost", loser.name())
}

fn points() -> Vec<StudyPoint> {
    let class = |number: u8| StudyPoint {
        curve: "class".to_owned(),
        x: f64::from(number),
        scenario: LOSERS[0]
            .over(WINDOW, &random(ERRORS))
            .with_settings(|it: &mut htpnet::Settings| it.class = Class::new(number).unwrap_or(Class::ALL)),
    };
    let mut points: Vec<StudyPoint> = (0..8).map(class).collect();
    for loser in LOSERS {
        for (curve, loss) in [(loser.name(), LossSpec::None), (with_data(loser), random(ERRORS))] {
            points.extend(STATES_LOST.map(|lost| {
                StudyPoint {
                    curve: curve.clone(),
                    x: lost,
                    scenario: loser
                        .over(WINDOW, &loss)
                        .with(|it| it.black_box.control_loss = Some(if lost > 0.0 { random(lost) } else { LossSpec::None })),
                }
            }));
        }
    }
    points
}

/// The link that others use in bursts.
const LINK: Bandwidth = Bandwidth::from_bits_per_second(65_536_000);
/// What schemes with a rate of their own send at: less than bursts leave in the mean.
const RATE: Bandwidth = Bandwidth::from_bits_per_second(20_000_000);
const BURST: Duration = Duration::from_millis(200);

/// Each of the schemes beside bursts; there is room for whatever waits, so nothing is lost.
fn shared() -> Vec<SharedPoint> {
    let of = |loser: Loser| {
        let scheme = Box::new(loser.over(64, &LossSpec::None));
        let name = loser.name();
        let flow = SharedFlow { rtt: RTT, ..SharedFlow::new(&name, Traffic::Scheme { scenario: scheme, pace: Pace::Fixed(RATE) }) };
        let others = SharedFlow { rtt: RTT, ..SharedFlow::new("others", Traffic::OnOff { rate: LINK, on: BURST, off: BURST }) };
        let scenario = SharedScenario {
            bandwidth: LINK,
            queue: Bytes::new(64_000_000),
            duration: Duration::from_secs(20),
            warm_up: Duration::from_secs(1),
            flows: vec![flow, others],
            ..SharedScenario::default()
        };
        SharedPoint { curve: name, x: BURST.as_nanos() as f64 * 1e-6, scenario }
    };
    LOSERS.map(of).to_vec()
}

fn tables(points: &Measured) -> Vec<TextTable> {
    vec![classes(points), states_lost(points), delay_varies(points)]
}

fn classes(points: &Measured) -> TextTable {
    let yes = |has: bool| if has { "yes" } else { "no" }.to_owned();
    let row = |number: u8| {
        let class = Class::new(number)?;
        let found = points.at("class", f64::from(number))?;
        let accepted = found.total(|one| one.packets_accepted);
        let missing = accepted.saturating_sub(found.total(|one| one.packets_delivered));
        Some(vec![
            class.to_string(),
            yes(class.has_error_control()),
            yes(class.has_flow_control()),
            yes(class.has_rate_control()),
            format!("{:.0}", packet_rate::of(found).mean),
            digits_of(missing as f64 / accepted.max(1) as f64),
            found.total(|one| one.packets_retransmitted).to_string(),
        ])
    };
    let columns = ["class", "error control", "flow control", "rate control", "packets/s", "share missing", "packets sent again"];
    TextTable {
        title: "Classes, and what each does over a path that loses one packet in a hundred".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: (0..8).filter_map(row).collect(),
    }
}

fn digits_of(share: f64) -> String {
    if share == 0.0 { "0".to_owned() } else { format!("{share:.4}") }
}

/// Packets sent again where only states are lost, and packets that arrived twice where data are lost too.
fn vain(points: &Measured, loser: Loser, lost: f64) -> Option<(u64, Option<u64>)> {
    let alone = points.at(&loser.name(), lost)?.total(|one| one.packets_retransmitted);
    Some((alone, packet_rate::received_again(points.at(&with_data(loser), lost)?)))
}

fn states_lost(points: &Measured) -> TextTable {
    let row = |loser: Loser| {
        let mut row = vec![loser.label()];
        row.extend(STATES_LOST.map(|lost| {
            let told =
                |(alone, with): (u64, Option<u64>)| format!("{alone} / {}", with.map_or_else(String::new, |count| count.to_string()));
            vain(points, loser, lost).map_or_else(String::new, told)
        }));
        row
    };
    let mut columns = vec!["share of states lost".to_owned()];
    columns.extend(STATES_LOST.map(|lost| lost.to_string()));
    TextTable {
        title: "Packets sent in vain when states are lost: without errors / arrived twice with one data packet in a hundred lost"
            .to_owned(),
        columns,
        rows: LOSERS.map(row).to_vec(),
    }
}

/// What a scheme sent on the shared link, and what of it again.
fn over_the_link(points: &Measured, loser: Loser) -> Option<[f64; 4]> {
    let name = loser.name();
    let result = points.shared_at(&name, BURST.as_nanos() as f64 * 1e-6)?;
    let of = |value: fn(&FlowOutcome) -> f64| result.of_flow(&name, value).mean;
    let lost = of(|flow| (flow.packets_lost + flow.packets_dropped) as f64);
    let sent = of(|flow| flow.packets_sent as f64);
    Some([sent, lost, of(|flow| flow.packets_retransmitted as f64), result.over_replications(|one| one.queue.max_ns as f64 * 1e-6).mean])
}

fn delay_varies(points: &Measured) -> TextTable {
    let row = |loser: Loser| {
        let [sent, lost, again, queue] = over_the_link(points, loser)?;
        Some(vec![loser.label(), format!("{sent:.0}"), format!("{lost:.0}"), format!("{again:.0}"), format!("{queue:.0}")])
    };
    let columns = ["", "packets sent", "lost", "sent again", "longest wait at the link (ms)"];
    TextTable {
        title: "Packets sent in vain when the delay varies, mean of the runs".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: LOSERS.into_iter().filter_map(row).collect(),
    }
}

fn in_vain(points: &Measured) -> Option<Finding> {
    let of = |loser: Loser| {
        let mut sum = 0;
        for lost in STATES_LOST {
            let (alone, with) = vain(points, loser, lost)?;
            sum += alone + with?;
        }
        Some(sum)
    };
    let [eight, four, all, snr, tcp, ours] = LOSERS;
    let (in_vain, in_vain_four, in_vain_all) = (of(eight)?, of(four)?, of(all)?);
    let [_, lost, again, queue] = over_the_link(points, eight)?;
    let again_of = |loser| Some(over_the_link(points, loser)?[2]);
    let parts = [
        Part::point("none in vain with lost states", in_vain + in_vain_four + in_vain_all == 0),
        Part::point("none in vain with varying delay", again == 0.0 && lost == 0.0),
    ];
    let name = registry::find("htpnet").map_or("", |scheme| scheme.name);
    let measured = format!(
        "{name} with eight pairs / four / all runs: {in_vain} / {in_vain_four} / {in_vain_all} packets in vain with up to 0.3 of the states lost, with and without \
         errors; {again:.0} / {:.0} / {:.0} with waits of up to {queue:.0} ms coming and going. SNR, TCP, Segstream: {} / {} / {} and \
         {:.0} / {:.0} / {:.0}",
        again_of(four)?,
        again_of(all)?,
        of(snr)?,
        of(tcp)?,
        of(ours)?,
        again_of(snr)?,
        again_of(tcp)?,
        again_of(ours)?
    );
    Some(Finding::of(parts, measured))
}
