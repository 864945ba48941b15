//! One segment there and back, again and again, each on a stream of its direction.
//!
//! Called by an end for the workload `ping-pong`.
//!
//! Invariant: a round trip counts when the same bytes have come back.

use super::job::Job;
use super::line::Outcome;
use super::{Place, processor, settings};
use anyhow::{Result, ensure};
use segstream::{Bytes, Fingerprint, StreamId};
use std::net::SocketAddr;
use std::time::Instant;

/// Is one end of it.
pub(super) fn run(place: &Place, job: &Job, encrypted: bool) -> Result<Outcome> {
    ensure!(job.segment_bytes > 0, "a segment of no bytes cannot come back; raise --segment-bytes");
    match place {
        Place::Serve(bind) => answer(*bind, job, encrypted),
        Place::Run { connect, trust } => ask(*connect, *trust, job, encrypted),
    }
}

fn answer(bind: SocketAddr, job: &Job, encrypted: bool) -> Result<Outcome> {
    let mut endpoint = settings::serve(bind, job, encrypted)?;
    let id = settings::accept(&mut endpoint)?;
    let mut connection = endpoint.connection(id);
    let back = connection.open_stream(settings::contract(job, encrypted)?)?;
    let spent = processor::time();
    let (mut outcome, mut first) = (Outcome::default(), None);
    while let Some(segment) = connection.recv(StreamId(0), None)? {
        let first = *first.get_or_insert_with(Instant::now);
        outcome.bytes += segment.bytes.len() as u64;
        outcome.complete += 1;
        connection.send(back, segment.bytes)?;
        outcome.seconds = first.elapsed().as_secs_f64();
        outcome.cpu_seconds = (processor::time() - spent).as_secs_f64();
    }
    endpoint.close()?;
    Ok(outcome)
}

fn ask(connect: SocketAddr, trust: Option<Fingerprint>, job: &Job, encrypted: bool) -> Result<Outcome> {
    let (mut endpoint, peer) = settings::run(connect, trust, job, encrypted)?;
    let id = endpoint.connect(peer, vec![settings::contract(job, encrypted)?])?;
    let mut connection = endpoint.connection(id);
    let payload = Bytes::from(vec![7; job.segment_bytes]);
    let mut round_trips = Vec::new();
    let mut outcome = Outcome::default();
    let mut back = None;
    let spent = processor::time();
    let began = Instant::now();
    while job.left(began, job.count.saturating_sub(outcome.complete)) > 0 {
        let sent = Instant::now();
        connection.send(StreamId(0), payload.clone())?;
        let stream = match back {
            Some(stream) => stream,
            None => {
                let stream = connection.accept_stream(None)?;
                *back.insert(stream.unwrap_or_default())
            }
        };
        let answer = connection.recv(stream, None)?;
        ensure!(answer.is_some_and(|answer| answer.bytes == payload), "something else came back");
        if job.is_warm(outcome.complete) {
            round_trips.push(sent.elapsed().as_secs_f64() * 1e6);
        }
        outcome.complete += 1;
        outcome.bytes += payload.len() as u64;
    }
    outcome.seconds = began.elapsed().as_secs_f64();
    outcome.cpu_seconds = (processor::time() - spent).as_secs_f64();
    outcome.round_trips_us = Some(round_trips);
    connection.close(0, "done")?;
    Ok(outcome)
}
