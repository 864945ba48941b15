//! A peer whose key is admitted, that is sent to, and whose reports cost a sender as much as reports can: requests for every other unit of a large
//! segment, again and again and with ever newer echoes; completion of small segments behind one that never is; maps of holes in pieces. An
//! honest client of the same victim measures how long it waits meanwhile.
//!
//! Called through [`super::ATTACKS`]. Source: spec 11.4. Every number is the median of a hundred tries.
//!
//! Invariant: what the attacker sends is sealed by its own session; a report is a data shipment of its own whose kind and body were changed
//! before it was sealed.

use super::Siege;
use super::tries::{self, BODY_BYTES, Peer};
use crate::labels::Forged;
use crate::outcome::Outcome;
use crate::victim::{LARGE_UNITS, SMALL_SEGMENTS};
use segstream::{Contract, Run, SegmentNumber, StreamId, UnitIndex, Verdict};
use segstream_base::codec::Writer;
use segstream_base::random::{Random, Seed};
use segstream_base::{Duration, Position, ReportNumber, ShipmentNumber};
use segstream_wire::report::{RUNS_MAX, Runs};
use segstream_wire::{Kind, Report, ReportFrame};

/// The streams of the victim: one large segment, and many small ones.
const LARGE: StreamId = StreamId(0);
const SMALL: StreamId = StreamId(1);
/// Shipments that the victim has sent before it is attacked: what is echoed must have left.
const SENT: u64 = 200;
/// So long the victim sends before it is attacked.
const HEAD_START: Duration = Duration::from_millis(1500);

/// Every other unit from a place on, in as many runs as a frame may have.
fn every_other<N: segstream_base::Ordinal>(from: u32) -> Runs<N> {
    (0..RUNS_MAX as u32).filter_map(|run| Run::single(N::of(from + 2 * run))).collect()
}

/// The frames of a report, as many as fit.
fn frames(random: &mut Random, tried: usize) -> Vec<ReportFrame> {
    let from = random.below(u64::from(LARGE_UNITS) - 2 * RUNS_MAX as u64) as u32;
    let request =
        |missing, tail_from| ReportFrame::Request { stream: LARGE, segment: SegmentNumber(0), missing, tail_from, length_wanted: true };
    match tried % 4 {
        // Every other unit somewhere.
        0 => vec![request(every_other::<Position>(from), None)],
        // Everything from the beginning on, in many frames.
        1 => (0..100).map(|_| request(Runs::new(), Some(Position(0)))).collect(),
        // All small segments behind the first, again and again.
        2 => (0..100).map(|_| ReportFrame::Complete { stream: SMALL, first: SegmentNumber(1), count: SMALL_SEGMENTS.into() }).collect(),
        // A map of holes that is never whole.
        _ => vec![ReportFrame::Judged {
            stream: LARGE,
            segment: SegmentNumber(0),
            verdict: Verdict::Expired,
            units: LARGE_UNITS,
            from: UnitIndex(from),
            to: UnitIndex(from + 2 * RUNS_MAX as u32),
            holes: every_other(from),
        }],
    }
}

/// The body of a report with these numbers that fits a datagram.
fn body(number: u64, echo: u64, frames: Vec<ReportFrame>) -> Vec<u8> {
    let mut report = Report { number: ReportNumber(number), echo: Some(ShipmentNumber(echo)), reorder: 3, ..Report::default() };
    for frame in frames {
        if report.encoded_len() + frame.encoded_len() <= BODY_BYTES {
            report.frames.push(frame);
        }
    }
    let mut body = vec![0; report.encoded_len()];
    report.encode(&mut Writer::new(&mut body));
    body
}

/// Costly reports of a served peer.
///
/// # Errors
/// When the victim fails.
pub fn costly_reports(siege: &Siege) -> anyhow::Result<Outcome> {
    let victim = siege.process(&["victim", "--anyone", "--talks"])?;
    let (mut attacker, mut honest) = (Peer::connect(&victim, Contract::default())?, Peer::connect(&victim, Contract::default())?);
    let until = std::time::Instant::now() + std::time::Duration::from(HEAD_START);
    while std::time::Instant::now() < until {
        attacker.client.serve(Duration::from_millis(20))?;
        honest.client.serve(Duration::from_millis(20))?;
    }
    honest.round_trip()?;
    let (mut random, mut number) = (Seed(2).stream("receiver"), 1 << 20);
    tries::run(siege, "receiver", (victim, attacker, honest), if siege.small { 8 } else { 100 }, |tried| {
        number += 1;
        // Filled up with MAX_STREAMS of 0, which says nothing.
        let body = body(number, number % SENT, frames(&mut random, tried));
        Forged { kind: Kind::Report, body, fill: |rest| tries::fill_with_frames(rest, 0x18) }
    })
}
