//! Segments one way: as fast as they go, or due at fixed times.
//!
//! Called by an end for the workloads `throughput` and `schedule`.
//!
//! Invariant: what the receiver counts as complete has kept its promise and is as long as it was sent.

use super::job::{Job, Task};
use super::line::Outcome;
use super::{Place, processor, settings};
use crate::transfer_report::missing_bytes;
use anyhow::{Result, ensure};
use segstream::blocking::Endpoint;
use segstream::{Bytes, ConnectionId, Error, Fingerprint, Received, StreamId, SubmitError, UnitIndex};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// What each unit of a scheduled segment begins with: when it was due, and its number. Why each: the first may be missing.
const STAMP_BYTES: usize = 16;
/// The overhead of a datagram in its IP packet (RFC 768, RFC 791, RFC 8200).
const IPV4_OVERHEAD: u64 = 28;
const IPV6_OVERHEAD: u64 = 48;
/// How long the processor time that was read last may be used. What a transfer waits for at its end does not count.
const CPU_LOOK_AFTER: segstream_base::Duration = segstream_base::Duration::from_micros(100);
/// What an application gives or takes with one call: at most so many segments, and so many bytes or one segment.
const BATCH_SEGMENTS: usize = 64;
const BATCH_BYTES: usize = 64 << 10;
/// What a new connection does once is over before the first segment is due: keys, and the tables of the erasure code.
const LEAD: Duration = Duration::from_millis(150);

/// Is one end of it.
pub(super) fn run(place: &Place, job: &Job, encrypted: bool) -> Result<Outcome> {
    let least = if job.workload == Task::Schedule { STAMP_BYTES } else { 1 };
    ensure!(job.segment_bytes >= least, "segments of {} bytes are too short; give --segment-bytes at least {least}", job.segment_bytes);
    match place {
        Place::Serve(bind) => receive(*bind, job, encrypted),
        Place::Run { connect, trust } => send(*connect, *trust, job, encrypted),
    }
}

fn receive(bind: SocketAddr, job: &Job, encrypted: bool) -> Result<Outcome> {
    let mut endpoint = settings::serve(bind, job, encrypted)?;
    let id = settings::accept(&mut endpoint)?;
    let clock = endpoint.clock();
    let scheduled = job.workload == Task::Schedule;
    let spent = processor::time();
    let mut outcome = Outcome::default();
    let (mut first, mut last, mut cpu, mut tolerated) = (None, clock.now(), Duration::ZERO, 0u64);
    let (mut delays, mut looked) = (Vec::new(), last);
    let (mut batch, most) = (Vec::new(), batch_segments(job));
    while endpoint.connection(id).recv_many(StreamId(0), &mut batch, most, None)? > 0 {
        last = clock.now();
        // Why not each time: the system's call takes longer than a short segment.
        if last.since(looked) > CPU_LOOK_AFTER {
            (cpu, looked) = (processor::time() - spent, last);
        }
        for segment in batch.drain(..) {
            first = first.or(segment.first_arrival);
            let kept = segment.verdict.is_met() && segment.bytes.len() <= job.segment_bytes && !segment.bytes.is_empty();
            outcome.complete += u64::from(kept);
            outcome.incomplete += u64::from(!kept);
            if !kept {
                continue;
            }
            outcome.bytes += delivered_bytes(&segment);
            tolerated += u64::from(!segment.holes.is_empty());
            if scheduled
                && let Some((due, number)) = stamp(&segment)
                && job.is_warm(number)
            {
                delays.push(processor::monotonic().saturating_sub(due).as_secs_f64() * 1e3);
            }
        }
    }
    endpoint.close()?;
    outcome.seconds = first.map_or(0.0, |first| last.since(first).as_secs_f64());
    outcome.cpu_seconds = cpu.as_secs_f64();
    outcome.delays_ms = scheduled.then_some(delays);
    if tolerated > 0 {
        outcome.note = format!("{tolerated} of the complete segments have holes that were tolerated");
    }
    Ok(outcome)
}

fn send(connect: SocketAddr, trust: Option<Fingerprint>, job: &Job, encrypted: bool) -> Result<Outcome> {
    let (mut endpoint, peer) = settings::run(connect, trust, job, encrypted)?;
    let id = endpoint.connect(peer, vec![settings::contract(job, encrypted)?])?;
    let spent = processor::time();
    wait_until(&mut endpoint, processor::monotonic() + LEAD)?;
    let began = Instant::now();
    let mut outcome = match job.workload {
        Task::Schedule => send_on_time(&mut endpoint, id, job, encrypted)?,
        _ => send_at_once(&mut endpoint, id, job)?,
    };
    let mut connection = endpoint.connection(id);
    connection.finish_stream(StreamId(0))?;
    // Why only now: the receiver counts them, and asking earlier costs what nothing else here needs.
    while connection.next_verdict(StreamId(0), None)?.is_some() {}
    outcome.seconds = began.elapsed().as_secs_f64();
    outcome.cpu_seconds = (processor::time() - spent).as_secs_f64();
    let statistics = connection.statistics()?;
    let overhead = if connect.is_ipv4() { IPV4_OVERHEAD } else { IPV6_OVERHEAD };
    outcome.wire_bytes = Some(statistics.bytes_sent + overhead * statistics.shipments_sent);
    connection.close(0, "done")?;
    Ok(outcome)
}

/// Sends --bytes, or as much as goes in --seconds; the last segment may be short.
fn send_at_once(endpoint: &mut Endpoint, id: ConnectionId, job: &Job) -> Result<Outcome> {
    let mut connection = endpoint.connection(id);
    let payload = Bytes::from(vec![7; job.segment_bytes]);
    let began = Instant::now();
    let (mut outcome, mut batch, most) = (Outcome::default(), VecDeque::new(), batch_segments(job));
    loop {
        let mut left = job.left(began, job.bytes.saturating_sub(outcome.bytes));
        while batch.len() < most && left > 0 {
            let length = usize::try_from(left).unwrap_or(usize::MAX).min(payload.len());
            batch.push_back(payload.slice(..length));
            outcome.bytes += length as u64;
            outcome.complete += 1;
            left -= length as u64;
        }
        // Why not each by itself: that would serve the network once for each, and short ones would leave in datagrams of their own.
        match connection.try_send_many(StreamId(0), &mut batch) {
            Ok(_) => {}
            Err(Error::Submit(SubmitError::Blocked)) => drop(connection.send(StreamId(0), batch.pop_front().unwrap_or_default())?),
            Err(error) => return Err(error.into()),
        }
        if left == 0 && batch.is_empty() {
            return Ok(outcome);
        }
    }
}

/// Serves the network until `due`, by the machine's clock.
fn wait_until(endpoint: &mut Endpoint, due: Duration) -> Result<()> {
    while let Some(left) = due.checked_sub(processor::monotonic()).filter(|left| !left.is_zero()) {
        endpoint.wait(Some(left))?;
    }
    Ok(())
}

/// How many segments an application with segments of that size gives or takes with one call.
fn batch_segments(job: &Job) -> usize {
    (BATCH_BYTES / job.segment_bytes.max(1)).clamp(1, BATCH_SEGMENTS)
}

/// Sends --count segments, or those of --seconds, each when it is due.
fn send_on_time(endpoint: &mut Endpoint, id: ConnectionId, job: &Job, encrypted: bool) -> Result<Outcome> {
    let start = processor::monotonic();
    let unit_bytes = settings::contract(job, encrypted)?.unit_bytes as usize;
    let mut outcome = Outcome::default();
    for number in 0..count(job) {
        let due = start + job.interval().mul_f64(number as f64);
        wait_until(endpoint, due)?;
        let mut bytes = vec![7; job.segment_bytes];
        for unit in bytes.chunks_mut(unit_bytes).filter(|unit| unit.len() >= STAMP_BYTES) {
            unit[..8].copy_from_slice(&u64::try_from(due.as_nanos()).unwrap_or(u64::MAX).to_le_bytes());
            unit[8..STAMP_BYTES].copy_from_slice(&number.to_le_bytes());
        }
        endpoint.connection(id).send(StreamId(0), bytes.into())?;
        outcome.bytes += job.segment_bytes as u64;
        outcome.complete += 1;
    }
    Ok(outcome)
}

/// How many segments a schedule has.
fn count(job: &Job) -> u64 {
    match job.duration() {
        Some(duration) => (duration.as_secs_f64() / job.interval().as_secs_f64().max(1e-9)) as u64,
        None => job.count,
    }
}

/// When a scheduled segment was due, and its number.
fn stamp(segment: &Received) -> Option<(Duration, u64)> {
    // Holes do not touch, so one at the beginning reaches to the first unit that is there.
    let hole = segment.holes.first().filter(|hole| hole.start() == UnitIndex::FIRST);
    let first = hole.map_or(0, |hole| hole.byte_range(segment.unit_bytes, segment.bytes.len() as u64).end);
    let bytes = segment.bytes.get(first as usize..)?;
    let (due, rest) = bytes.split_first_chunk()?;
    let (number, _) = rest.split_first_chunk()?;
    Some((Duration::from_nanos(u64::from_le_bytes(*due)), u64::from_le_bytes(*number)))
}

/// The bytes of a segment without those of its holes.
fn delivered_bytes(segment: &Received) -> u64 {
    let length = segment.bytes.len() as u64;
    length - missing_bytes(length, segment.unit_bytes, &segment.holes)
}
