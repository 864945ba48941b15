//! The workloads over a blocking stream of bytes.
//!
//! Called by [`crate::tcp`], [`crate::kcp_end`] and `crate::aeron_end`.
//!
//! Invariant: neither side waits forever: who makes no progress for [`STALL`] fails, and a transfer that is limited by
//! time ends by it.

use crate::options::{Options, Side, Workload};
use crate::outcome::{Meter, Outcome};
use crate::schedule::{Arrivals, HEAD_BYTES, Schedule, TIMEOUT};
use anyhow::{Result, bail};
use std::io;
use std::time::{Duration, Instant};

/// How long a call waits at most.
pub(crate) const CALL: Duration = Duration::from_millis(100);
/// How long nothing may happen.
pub(crate) const STALL: Duration = Duration::from_secs(30);
/// How much longer than the serving side the running side goes on: set-up and the one-way delay are not counted.
const GRACE: Duration = Duration::from_secs(2);
/// The size of a ping.
pub(crate) const PING_BYTES: usize = 64;
/// The first byte of the last ping.
pub(crate) const LAST: u8 = 0;

/// A connection that carries bytes in order, both ways.
pub(crate) trait Connection {
    /// Takes what is there; nothing if nothing came for [`CALL`], no bytes at the end of the stream.
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>>;
    /// Gives as much as there is room for; nothing if there was no room for [`CALL`].
    fn send(&mut self, bytes: &[u8]) -> io::Result<Option<usize>>;
    /// Waits.
    fn idle(&mut self, until: Instant) -> io::Result<()>;
    /// Sees that what was given is on its way before the process ends.
    fn finish(&mut self) -> io::Result<()>;
}

/// One side of a workload.
pub(crate) fn run(connection: &mut impl Connection, options: &Options) -> Result<Outcome> {
    let outcome = match (options.workload, options.side) {
        (Workload::Throughput, Side::Serve) => sink(connection, options),
        (Workload::Throughput, Side::Run) => source(connection, options),
        (Workload::PingPong, Side::Serve) => echo(connection, options),
        (Workload::PingPong, Side::Run) => ping(connection, options),
        (Workload::Schedule, Side::Serve) => collect(connection, options),
        (Workload::Schedule, Side::Run) => emit(connection, options),
    };
    connection.finish()?;
    outcome
}

fn sink(connection: &mut impl Connection, options: &Options) -> Result<Outcome> {
    let mut buffer = vec![0; 1 << 20];
    let mut bytes = match receive_by(connection, &mut buffer, Instant::now() + STALL)? {
        Some(bytes) if bytes > 0 => bytes as u64,
        _ => bail!("nothing has come for {} s", STALL.as_secs()),
    };
    let (meter, time) = (Meter::start()?, options.time()?);
    let end = |now: Instant| time.map_or(now + STALL, |time| now - meter.elapsed() + time);
    while time.is_some_and(|time| meter.elapsed() < time) || time.is_none() && bytes < options.bytes {
        match receive_by(connection, &mut buffer, end(Instant::now()))? {
            Some(0) => break,
            Some(length) => bytes += length as u64,
            None if time.is_some() => break,
            None => bail!("nothing more has come for {} s, after {bytes} bytes", STALL.as_secs()),
        }
    }
    let outcome = meter.outcome(bytes, options)?;
    send_all(connection, &[1], Instant::now() + CALL)?;
    Ok(outcome)
}

fn source(connection: &mut impl Connection, options: &Options) -> Result<Outcome> {
    let (segment, meter, time) = (options.segment(), Meter::start()?, options.time()?);
    let (began, mut bytes) = (Instant::now(), 0);
    loop {
        let left = if time.is_some() { u64::MAX } else { options.bytes - bytes };
        let length = left.min(options.segment_bytes) as usize;
        if length == 0 {
            break;
        }
        if options.rate > 0 {
            connection.idle(began + Duration::from_secs_f64(bytes as f64 * 8.0 / options.rate as f64))?;
        }
        match (send_all(connection, &segment[..length], time.map_or_else(|| Instant::now() + STALL, |time| began + time + GRACE)), time) {
            (Ok(true), _) => bytes += length as u64,
            // The time is over, here or at the other side.
            (_, Some(_)) => return meter.outcome(bytes, options),
            (Ok(false), None) => bail!("the other side has taken nothing for {} s, after {bytes} bytes", STALL.as_secs()),
            (Err(error), None) => return Err(error.into()),
        }
    }
    if receive_by(connection, &mut [0], Instant::now() + STALL)? != Some(1) {
        bail!("the other side has not said that it has everything");
    }
    meter.outcome(bytes, options)
}

fn echo(connection: &mut impl Connection, options: &Options) -> Result<Outcome> {
    let (mut ping, mut meter, mut rounds) = ([0; PING_BYTES], None, 0);
    loop {
        if !receive_all(connection, &mut ping, Instant::now() + STALL)? {
            bail!("round trip {rounds} does not come");
        }
        let meter = meter.get_or_insert(Meter::start()?);
        send_all(connection, &ping, Instant::now() + STALL)?;
        rounds += 1;
        if ping[0] == LAST {
            return Ok(Outcome { complete: rounds, ..meter.outcome(rounds * PING_BYTES as u64, options)? });
        }
    }
}

fn ping(connection: &mut impl Connection, options: &Options) -> Result<Outcome> {
    let (meter, mut round_trips_us, mut rounds) = (Meter::start()?, Vec::new(), 0);
    let mut ping = [1; PING_BYTES];
    while ping[0] != LAST {
        if !options.goes_on(rounds + 1, meter.elapsed())? {
            ping[0] = LAST;
        }
        let began = Instant::now();
        let answered = send_all(connection, &ping, began + STALL)? && receive_all(connection, &mut ping, began + STALL)?;
        if !answered {
            bail!("round trip {rounds} has no answer");
        }
        if rounds >= options.warm_up {
            round_trips_us.push(began.elapsed().as_secs_f64() * 1e6);
        }
        rounds += 1;
    }
    let outcome = meter.outcome(rounds * PING_BYTES as u64, options)?;
    Ok(Outcome { complete: rounds, round_trips_us: Some(round_trips_us), ..outcome })
}

fn collect(connection: &mut impl Connection, options: &Options) -> Result<Outcome> {
    let mut arrivals = Arrivals::new(options)?;
    let (mut prefix, mut segment) = ([0; 4], options.segment());
    while !arrivals.are_all() && receive_all(connection, &mut prefix, arrivals.end())? {
        arrivals.begin()?;
        let length = u32::from_le_bytes(prefix) as usize;
        if !(HEAD_BYTES..=segment.len()).contains(&length) {
            bail!("a segment of {length} bytes; both sides need the same --segment-bytes");
        }
        if !receive_all(connection, &mut segment[..length], arrivals.end())? {
            break;
        }
        arrivals.complete(std::array::from_fn(|at| segment[at]), length, options)?;
    }
    let outcome = arrivals.outcome();
    // The other side may have given up by now.
    let _ = send_all(connection, &[1], Instant::now() + CALL);
    Ok(outcome)
}

fn emit(connection: &mut impl Connection, options: &Options) -> Result<Outcome> {
    let mut message = u32::try_from(options.segment_bytes)?.to_le_bytes().to_vec();
    message.extend(options.segment());
    let (schedule, meter) = (Schedule::start(options)?, Meter::start()?);
    let count = options.segments()?;
    let end = schedule.due(count) + TIMEOUT + GRACE;
    let mut sent = 0;
    while sent < count {
        connection.idle(schedule.due(sent))?;
        schedule.stamp(sent, &mut message[4..]);
        match send_all(connection, &message, end) {
            Ok(true) => sent += 1,
            // The other side has given up, or should have.
            Ok(false) | Err(_) => break,
        }
    }
    // Either all have arrived, or the other side has gone.
    let _ = receive_by(connection, &mut [0], end);
    Ok(Outcome { complete: sent, ..meter.outcome(sent * options.segment_bytes, options)? })
}

/// What comes until then, if anything.
fn receive_by(connection: &mut impl Connection, buffer: &mut [u8], end: Instant) -> io::Result<Option<usize>> {
    loop {
        match connection.receive(buffer)? {
            None if Instant::now() < end => {}
            received => return Ok(received),
        }
    }
}

/// Whether the buffer could be filled by then.
fn receive_all(connection: &mut impl Connection, mut buffer: &mut [u8], end: Instant) -> io::Result<bool> {
    while !buffer.is_empty() {
        match receive_by(connection, buffer, end)? {
            None | Some(0) => return Ok(false),
            Some(length) => buffer = &mut buffer[length..],
        }
    }
    Ok(true)
}

/// Whether there was room for all by then.
fn send_all(connection: &mut impl Connection, mut bytes: &[u8], end: Instant) -> io::Result<bool> {
    while !bytes.is_empty() {
        match connection.send(bytes)? {
            Some(length) => bytes = &bytes[length..],
            None if Instant::now() < end => {}
            None => return Ok(false),
        }
        // A receiver that takes a little all the time does not make the sender stay.
        if !bytes.is_empty() && Instant::now() >= end {
            return Ok(false);
        }
    }
    Ok(true)
}
