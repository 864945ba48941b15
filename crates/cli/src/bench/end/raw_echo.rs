//! Bare UDP there and back: one numbered datagram at a time.
//!
//! Called by an end for the workload `ping-pong`.
//!
//! Invariant: a round trip counts when its own number has come back; one that is lost is counted and sent again.

use super::job::Job;
use super::line::Outcome;
use super::raw::{ASK_AGAIN, Asking, Message, NUMBER_BYTES, PATIENCE, Raw};
use super::{Place, processor};
use anyhow::{Result, ensure};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Is one end of it.
pub(super) fn run(place: &Place, job: &Job) -> Result<Outcome> {
    ensure!(
        job.segment_bytes >= NUMBER_BYTES,
        "a datagram of {} bytes has no room for its number; give --segment-bytes {NUMBER_BYTES} or more",
        job.segment_bytes
    );
    ensure!(job.segment_bytes <= job.datagram_bytes, "{} bytes do not fit one datagram; raise --datagram-bytes", job.segment_bytes);
    match place {
        Place::Serve(bind) => answer(*bind, job),
        Place::Run { connect, .. } => ask(*connect, job),
    }
}

fn answer(bind: SocketAddr, job: &Job) -> Result<Outcome> {
    let mut raw = Raw::serve(bind, job)?;
    let mut datagram = vec![7; job.segment_bytes];
    let mut outcome = Outcome::default();
    let mut heard = Instant::now();
    let mut first: Option<(Instant, Duration)> = None;
    let mut finished = false;
    while !finished {
        let mut asked = None;
        let some = raw.receive(|message, _| match message {
            Message::Data(number) => asked = Some(number),
            Message::Finished { .. } => finished = true,
            _ => {}
        })?;
        if let Some(number) = asked {
            datagram[..NUMBER_BYTES].copy_from_slice(&number.to_le_bytes());
            raw.send(&datagram, datagram.len())?;
            outcome.complete += 1;
        }
        if some {
            heard = Instant::now();
            first = first.or_else(|| Some((heard, processor::time())));
        } else {
            ensure!(heard.elapsed() < PATIENCE, "nothing has come for {PATIENCE:?}");
            raw.wait(PATIENCE)?;
        }
    }
    let (began, spent) = first.unwrap_or_else(|| (heard, processor::time()));
    outcome.bytes = outcome.complete * job.segment_bytes as u64;
    outcome.seconds = (heard - began).as_secs_f64();
    outcome.cpu_seconds = (processor::time() - spent).as_secs_f64();
    raw.bid_farewell(outcome.complete)?;
    Ok(outcome)
}

fn ask(connect: SocketAddr, job: &Job) -> Result<Outcome> {
    let mut raw = Raw::run(connect, job)?;
    let mut datagram = vec![7; job.segment_bytes];
    let mut outcome = Outcome::default();
    let mut round_trips = Vec::new();
    let spent = processor::time();
    let began = Instant::now();
    while job.left(began, job.count.saturating_sub(outcome.complete)) > 0 {
        let number = outcome.complete;
        datagram[..NUMBER_BYTES].copy_from_slice(&number.to_le_bytes());
        let sent = Instant::now();
        outcome.incomplete += one_round_trip(&mut raw, &datagram, number)?;
        if job.is_warm(number) {
            round_trips.push(sent.elapsed().as_secs_f64() * 1e6);
        }
        outcome.complete += 1;
    }
    outcome.bytes = outcome.complete * job.segment_bytes as u64;
    outcome.seconds = began.elapsed().as_secs_f64();
    outcome.cpu_seconds = (processor::time() - spent).as_secs_f64();
    outcome.round_trips_us = Some(round_trips);
    outcome.wire_bytes = Some(raw.wire_bytes());
    raw.finish(outcome.complete)?;
    Ok(outcome)
}

/// Sends `datagram` until its number comes back; how often it was lost.
fn one_round_trip(raw: &mut Raw, datagram: &[u8], number: u64) -> Result<u64> {
    let mut lost = 0;
    let mut asking = Asking::heard();
    raw.send(datagram, datagram.len())?;
    loop {
        let mut came_back = false;
        let some = raw.receive(|message, _| came_back |= message == Message::Data(number))?;
        if came_back {
            return Ok(lost);
        }
        if !some {
            raw.wait(ASK_AGAIN)?;
            if asking.is_due()? {
                raw.send(datagram, datagram.len())?;
                lost += 1;
            }
        }
    }
}
