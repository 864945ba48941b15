//! An observer that writes one line for every event, for golden tests and for reading.
//!
//! Called by [`crate::Simulation`] as its observer.
//!
//! A line is the instant in whole nanoseconds, a word, and what it is about:
//!
//! ```text
//! 0 submit 0/0 bytes=1000                     a segment was accepted: stream/segment
//! 0 -> 0 data bytes=1008 arrives=5008064      packet 0 forward was sent; `copy=` when a copy follows
//! 0 start 0/0                                 it was the first packet of this segment
//! 8064 -> 1 data bytes=1008 lost              or dropped, or corrupted
//! 5008064 => 0 data bytes=1008                packet 0 forward has arrived
//! 5008064 deliver 0/0 complete units=1 holes=0
//! 5008064 end 0 segments=1
//! 5008064 <- 0 control bytes=12 arrives=10008064
//! 10008064 <= 0 control bytes=12              packet 0 back has arrived
//! 10008064 judge 0/0 complete
//! ```
//!
//! Where a queue decides at dequeue, a packet `waits` when it is sent; a line with `->*` or `<-*` has its fate.
//!
//! Invariant: the same run gives the same bytes.

use crate::observer::{Direction, Moment, Observer, PacketEvent, PacketFate};
use segstream_base::Instant;
use segstream_base::halves::{Packet, ReceiverEvent, Segment, SegmentNumber, SenderEvent, StreamId};
use std::io::{self, Write};

/// Writes a line for every event.
#[derive(Debug)]
pub struct EventLog<W> {
    out: W,
    contents: bool,
    failed: Option<io::Error>,
}

impl<W: Write> EventLog<W> {
    /// A log that tells of packets what they are and how long.
    pub const fn new(out: W) -> Self {
        Self { out, contents: false, failed: None }
    }

    /// A log that adds what is in every packet, as its `Debug` says.
    pub const fn with_contents(out: W) -> Self {
        Self { out, contents: true, failed: None }
    }

    /// The log, once the run is over.
    ///
    /// # Errors
    /// The first error of the writer; nothing was written after it.
    pub fn finish(mut self) -> io::Result<W> {
        match self.failed {
            Some(error) => Err(error),
            None => self.out.flush().map(|()| self.out),
        }
    }

    fn line(&mut self, now: Instant, what: std::fmt::Arguments<'_>) {
        if self.failed.is_none() {
            self.failed = writeln!(self.out, "{} {what}", now.as_nanos()).err();
        }
    }

    fn packet_line<P: Packet>(&mut self, event: PacketEvent<'_, P>, fate: std::fmt::Arguments<'_>) {
        let arrow = match (event.direction, event.moment) {
            (Direction::Forward, Moment::Sent(_)) => "->",
            (Direction::Forward, Moment::Decided(_)) => "->*",
            (Direction::Forward, Moment::Arrived) => "=>",
            (Direction::Back, Moment::Sent(_)) => "<-",
            (Direction::Back, Moment::Decided(_)) => "<-*",
            (Direction::Back, Moment::Arrived) => "<=",
        };
        let kind = if event.packet.is_data() { "data" } else { "control" };
        let (number, bytes) = (event.number, event.packet.encoded_len());
        if self.contents {
            self.line(event.now, format_args!("{arrow} {number} {kind} bytes={bytes}{fate} {:?}", event.packet));
        } else {
            self.line(event.now, format_args!("{arrow} {number} {kind} bytes={bytes}{fate}"));
        }
    }
}

impl<W: Write> Observer for EventLog<W> {
    const PACKETS: bool = true;

    fn submitted(&mut self, now: Instant, segment: &Segment, number: SegmentNumber) {
        self.line(now, format_args!("submit {}/{} bytes={}", segment.stream.0, number.0, segment.bytes.unwrap_or(0)));
    }

    fn started(&mut self, now: Instant, stream: StreamId, segment: SegmentNumber) {
        self.line(now, format_args!("start {}/{}", stream.0, segment.0));
    }

    fn delivered(&mut self, now: Instant, event: &ReceiverEvent) {
        match event {
            ReceiverEvent::Delivered { stream, segment, verdict, units, holes } => {
                self.line(now, format_args!("deliver {}/{} {verdict} units={units} holes={holes}", stream.0, segment.0));
            }
            ReceiverEvent::Ended { stream, segments } => self.line(now, format_args!("end {} segments={segments}", stream.0)),
            _ => {}
        }
    }

    fn judged(&mut self, now: Instant, event: &SenderEvent) {
        if let SenderEvent::Judged { stream, segment, verdict } = event {
            self.line(now, format_args!("judge {}/{} {verdict}", stream.0, segment.0));
        }
    }

    fn packet<P: Packet>(&mut self, event: PacketEvent<'_, P>) {
        let fate = match event.moment {
            Moment::Arrived => return self.packet_line(event, format_args!("")),
            Moment::Sent(fate) | Moment::Decided(fate) => fate,
        };
        match fate {
            PacketFate::Arrives { at, copy_at: None } => self.packet_line(event, format_args!(" arrives={}", at.as_nanos())),
            PacketFate::Arrives { at, copy_at: Some(copy) } => {
                self.packet_line(event, format_args!(" arrives={} copy={}", at.as_nanos(), copy.as_nanos()));
            }
            PacketFate::Lost => self.packet_line(event, format_args!(" lost")),
            PacketFate::Dropped => self.packet_line(event, format_args!(" dropped")),
            PacketFate::Corrupted => self.packet_line(event, format_args!(" corrupted")),
            PacketFate::Waits => self.packet_line(event, format_args!(" waits")),
        }
    }
}
