//! Two endpoints with a connection, and an input that says what happens to them: datagrams of any bytes,
//! real datagrams changed and sealed again, crafted ones, losses, late ones, duplicates, time, and calls of
//! the application.
//!
//! Promises: nothing panics; every segment is judged once at most, and is when its connection has ended;
//! what is kept is bounded; without time passing no end sends or wakes forever; without a peer every
//! connection ends.

use crate::pair::Pair;
use bytes::Bytes;
use segstream_base::codec::Writer;
use segstream_base::{Bandwidth, Duration, StreamId, Tolerance};
use segstream_proto::rate::Rate;
use segstream_proto::session::Plain;
use segstream_wire::header::HEADER_BYTES;
use segstream_wire::{Class, Contract, Header, Kind, Level};

/// Steps of one input; what follows them is not looked at.
const STEPS_MAX: usize = 100;

/// What a step does. The number is the low half of its first byte.
pub mod step {
    /// Any bytes: flags, length, bytes.
    pub const RAW: u8 = 0;
    /// A datagram on its way, changed and sealed again: flags, which, changes, each position (2) and value.
    pub const CHANGED: u8 = 1;
    /// A crafted shipment: flags, kind, numbers skipped, length, body.
    pub const CRAFTED: u8 = 2;
    /// Time passes: two to the power of this many microseconds.
    pub const ADVANCE: u8 = 3;
    /// This many datagrams arrive.
    pub const DELIVER: u8 = 4;
    /// A datagram is lost: which end.
    pub const LOSE: u8 = 5;
    /// A datagram comes later: which end.
    pub const DELAY: u8 = 6;
    /// A datagram arrives twice: which end.
    pub const DUPLICATE: u8 = 7;
    /// A segment: flags, stream, length (2).
    pub const SEND: u8 = 8;
    /// An open segment: flags, stream.
    pub const OPEN_SEGMENT: u8 = 9;
    /// More of it: flags, stream, length (2).
    pub const APPEND: u8 = 10;
    /// The end of a stream: flags, stream.
    pub const FINISH: u8 = 11;
    /// The application reads: which end.
    pub const READ: u8 = 12;
    /// Class and rate: flags, class.
    pub const RECLASS: u8 = 13;
    /// Close, or abort: flags.
    pub const CLOSE: u8 = 14;
    /// Another stream: flags, unit size, E, B.
    pub const OPEN_STREAM: u8 = 15;
}

/// Flags of a step: which end, and a choice whose meaning the step says.
pub mod flag {
    /// The end that has accepted the connection.
    pub const RESPONDER: u8 = 1;
    /// From a stranger; keep the datagram; a tolerance of its own; the last; abort.
    pub const CHOICE: u8 = 2;
    /// Cut the datagram short.
    pub const CUT: u8 = 4;
}

/// The bytes of an input, read as steps.
struct Script<'a> {
    bytes: &'a [u8],
}

impl Script<'_> {
    fn next(&mut self) -> Option<u8> {
        let (&first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(first)
    }

    fn byte(&mut self) -> u8 {
        self.next().unwrap_or(0)
    }

    fn word(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    fn take(&mut self, count: usize) -> Vec<u8> {
        let (taken, rest) = self.bytes.split_at(count.min(self.bytes.len()));
        self.bytes = rest;
        taken.to_vec()
    }

    /// An end and the choice.
    fn flags(&mut self) -> (usize, bool, bool) {
        let flags = self.byte();
        (usize::from(flags & flag::RESPONDER), flags & flag::CHOICE != 0, flags & flag::CUT != 0)
    }
}

/// Checks the promises for one input.
///
/// # Panics
/// When a promise is broken.
pub fn check(data: &[u8]) {
    let mut pair = Pair::established();
    let mut script = Script { bytes: data };
    for _ in 0..STEPS_MAX {
        let Some(first) = script.next() else { break };
        match first & 0x0f {
            kind @ ..=step::DUPLICATE => on_the_path(&mut pair, kind, &mut script),
            kind => of_the_application(&mut pair, kind, &mut script),
        }
        pair.settle();
        pair.check_bounds();
    }
    pair.wind_down();
}

fn on_the_path(pair: &mut Pair, kind: u8, script: &mut Script<'_>) {
    match kind {
        step::RAW => {
            let (side, stranger, _) = script.flags();
            let count = script.byte();
            let datagram = script.take(usize::from(count));
            pair.arrive(side, stranger, datagram);
        }
        step::CHANGED => changed(pair, script),
        step::CRAFTED => crafted(pair, script),
        step::ADVANCE => pair.now += Duration::from_micros(1 << (script.byte() % 24)),
        step::DELIVER => {
            for _ in 0..script.byte() {
                for side in [0, 1] {
                    if let Some(datagram) = pair.sides[side].pending.pop_front() {
                        pair.arrive(side, false, datagram);
                    }
                }
            }
        }
        kind => {
            let (side, ..) = script.flags();
            let Some(datagram) = pair.sides[side].pending.pop_front() else { return };
            match kind {
                step::LOSE => {}
                step::DELAY => pair.sides[side].pending.push_back(datagram),
                _ => {
                    pair.arrive(side, false, datagram.clone());
                    pair.arrive(side, false, datagram);
                }
            }
        }
    }
}

fn changed(pair: &mut Pair, script: &mut Script<'_>) {
    let (side, keep, cut) = script.flags();
    let which = usize::from(script.byte());
    let changes: Vec<(u16, u8)> = (0..script.byte() % 8).map(|_| (script.word(), script.byte())).collect();
    let pending = &mut pair.sides[side].pending;
    if pending.is_empty() {
        return;
    }
    let which = which % pending.len();
    let original = if keep { pending.get(which).cloned() } else { pending.remove(which) };
    let mut datagram = original.unwrap_or_default();
    if cut {
        datagram.truncate(usize::from(script.byte()).max(HEADER_BYTES + Plain::SEAL_BYTES));
    }
    let length = datagram.len();
    for (at, value) in changes {
        datagram[usize::from(at) % length] = value;
    }
    pair.arrive_sealed(side, false, datagram);
}

fn crafted(pair: &mut Pair, script: &mut Script<'_>) {
    let (side, stranger, _) = script.flags();
    let kind = Kind::ALL[usize::from(script.byte()) % Kind::ALL.len()];
    let (connection, next) = pair.next_shipment(side);
    let number = next.saturating_add(u64::from(script.byte()));
    let connection = if kind == Kind::Request { 0 } else { connection };
    let count = script.byte();
    let body = script.take(usize::from(count));
    let mut datagram = vec![0; HEADER_BYTES + body.len() + Plain::SEAL_BYTES];
    let mut out = Writer::new(&mut datagram);
    let level = match kind {
        Kind::Request | Kind::Confirm | Kind::Reject | Kind::Cookie => Level::Initial,
        Kind::Handshake => Level::Handshake,
        _ => Level::Data,
    };
    Header { level, kind, connection, number: number as u32 }.encode(&mut out);
    out.bytes(&body);
    pair.arrive_sealed(side, stranger, datagram);
}

fn of_the_application(pair: &mut Pair, kind: u8, script: &mut Script<'_>) {
    let (side, choice, _) = script.flags();
    let now = pair.now;
    if kind == step::READ {
        pair.read(side);
        return;
    }
    let Some(connection) = pair.connection(side) else { return };
    // What the application is refused is part of the play.
    match kind {
        step::SEND => {
            let (stream, bytes) = (u32::from(script.byte() % 8), usize::from(script.word()) % 12_000);
            // Clipped, it may contradict itself.
            let own = choice.then(|| [script.byte(), script.byte(), script.byte()].map(u32::from));
            let own = own.and_then(|[window, errors, burst]| Some(Tolerance::new(256, errors, burst).ok()?.clipped_to(window)));
            let _ = connection.send(now, StreamId(stream), Bytes::from(vec![7; bytes]), now, own);
        }
        step::OPEN_SEGMENT => {
            let _ = connection.open_segment(now, StreamId(u32::from(script.byte() % 8)), now, None);
        }
        step::APPEND => {
            let (stream, bytes) = (u32::from(script.byte() % 8), usize::from(script.word()) % 4_000);
            let _ = connection.append(now, StreamId(stream), &vec![8; bytes], choice);
        }
        step::FINISH => connection.finish_stream(now, StreamId(u32::from(script.byte() % 8))),
        step::RECLASS => {
            let class = script.byte();
            if choice {
                let rate = Bandwidth::from_bits_per_second(1_000 << (class % 24));
                let rate = if class < 128 { Rate::smooth(rate) } else { Rate::between(Rate::FLOOR, rate.max(Rate::FLOOR)) };
                let _ = connection.set_rate(now, rate);
            } else if let Some(class) = Class::new(class % 8) {
                let _ = connection.set_class(now, class);
            }
        }
        step::CLOSE if choice => connection.abort(now, 1, "aborted"),
        step::CLOSE => connection.close(now, 0, "closed"),
        _ => {
            let (unit_bytes, errors, burst) = (u32::from(script.byte()), u32::from(script.byte()), u32::from(script.byte()));
            let window = Contract { window_units: 64, window_segments: 4, ..Contract::default() };
            let Ok(tolerance) = Tolerance::new(256, errors, burst).map(|tolerance| tolerance.clipped_to(16)) else { return };
            let _ = connection.open_stream(now, Contract { unit_bytes, tolerance, ..window });
        }
    }
}
