//! Many connections at once, each with a segment due now and then.
//!
//! Called by an end for the workload `active`. What counts is what the server's one endpoint gets, and whether anything on
//! the way to it was lost.
//!
//! Invariant: nobody sends before everybody is connected, and each connection paces by itself.

use super::job::Job;
use super::line::Outcome;
use super::{Place, processor, settings};
use anyhow::{Result, ensure};
use segstream::blocking::Endpoint;
use segstream::{Bytes, CloseReason, ConnectionEvent, ConnectionId, Fingerprint, StreamId};
use std::net::SocketAddr;
use std::time::Instant;

/// Is one end of it.
pub(super) fn run(place: &Place, job: &Job, encrypted: bool) -> Result<Outcome> {
    match place {
        Place::Serve(bind) => receive(*bind, job, encrypted),
        Place::Run { connect, trust } => send(*connect, *trust, job, encrypted),
    }
}

fn receive(bind: SocketAddr, job: &Job, encrypted: bool) -> Result<Outcome> {
    let mut server = settings::serve(bind, job, encrypted)?;
    let clock = server.clock();
    let mut outcome = Outcome::default();
    // Why: with nobody there this gives up at some time. What it tells comes below as well.
    settings::accept(&mut server)?;
    let (mut spent, mut first, mut last) = (processor::time(), None, clock.now());
    let (mut cpu, mut ended) = (spent, 0);
    while ended < job.count {
        let Some((id, event)) = server.wait(None)? else { continue };
        match event {
            ConnectionEvent::Readable(stream) => {
                if first.is_none() {
                    // Why only now: set-up is measured by itself.
                    spent = processor::time();
                }
                first = first.or(take(&mut server, id, stream, job, &mut outcome));
                (last, cpu) = (clock.now(), processor::time());
            }
            ConnectionEvent::Ended { stream, .. } => {
                take(&mut server, id, stream, job, &mut outcome);
                ended += 1;
            }
            ConnectionEvent::Closed(reason) => {
                ensure!(matches!(reason, CloseReason::ClosedByPeer { .. }), "a connection is gone: {reason}");
            }
            _ => {}
        }
    }
    outcome.seconds = first.map_or(0.0, |first| last.since(first).as_secs_f64());
    outcome.cpu_seconds = (cpu - spent).as_secs_f64();
    server.close()?;
    Ok(outcome)
}

/// Takes what is ready of a stream; when the first of it began to arrive.
fn take(server: &mut Endpoint, id: ConnectionId, stream: StreamId, job: &Job, outcome: &mut Outcome) -> Option<segstream_base::Instant> {
    let mut first = None;
    while let Some(segment) = server.connection(id).try_recv(stream) {
        let kept = segment.verdict.is_met() && segment.bytes.len() == job.segment_bytes;
        outcome.complete += u64::from(kept);
        outcome.incomplete += u64::from(!kept);
        outcome.bytes += segment.bytes.len() as u64;
        first = first.or(segment.first_arrival);
    }
    first
}

fn send(connect: SocketAddr, trust: Option<Fingerprint>, job: &Job, encrypted: bool) -> Result<Outcome> {
    let (mut client, peer) = settings::run(connect, trust, job, encrypted)?;
    let contract = settings::contract(job, encrypted)?;
    let ids: Vec<_> = (0..job.count).map(|_| client.connect(peer.clone(), vec![contract.clone()])).collect::<Result<_, _>>()?;
    let payload = Bytes::from(vec![7; job.segment_bytes]);
    let spent = processor::time();
    let began = Instant::now();
    let mut outcome = Outcome { connections: job.count, ..Outcome::default() };
    for number in 0..rounds(job) * job.count {
        // One after the other, so that over an interval each has its turn.
        let due = job.interval().mul_f64(number as f64 / job.count as f64);
        while let Some(left) = due.checked_sub(began.elapsed()).filter(|left| !left.is_zero()) {
            client.wait(Some(left))?;
        }
        client.connection(ids[(number % job.count) as usize]).send(StreamId(0), payload.clone())?;
        outcome.bytes += payload.len() as u64;
        outcome.complete += 1;
    }
    for &id in &ids {
        client.connection(id).finish_stream(StreamId(0))?;
    }
    for &id in &ids {
        while client.connection(id).next_verdict(StreamId(0), None)?.is_some() {}
        outcome.sent_again += client.connection(id).statistics()?.units_retransmitted;
    }
    outcome.seconds = began.elapsed().as_secs_f64();
    outcome.cpu_seconds = (processor::time() - spent).as_secs_f64();
    client.close()?;
    Ok(outcome)
}

/// How many segments each connection has.
fn rounds(job: &Job) -> u64 {
    (job.seconds.unwrap_or_default() * 1e6 / job.interval_us).ceil().max(1.0) as u64
}
