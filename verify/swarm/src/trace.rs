//! Events as lines, for reading, and as a digest.
//!
//! Called by [`crate::watch`]. A line is the instant in whole nanoseconds, a word, and what it is about; segments are
//! side.stream/number, hosts h0, h1, ..., addresses where no host is x0, x1, ...:
//!
//! ```text
//! 0 appear 0 h1 to h0 initiator
//! 0 -> h1 h0 CR bytes=77 arrives=30000000
//! 30000000 => h0 h1 CR bytes=77
//! 91250000 deliver 0.0/3 complete units=4 holes=0 at 1
//! ```
//!
//! Invariant: the same run gives the same lines and the same digest, whether lines are written or not.

use crate::event::{Delivered, Event, Fate};
use core::fmt::{self, Write};
use core::hash::{Hash as _, Hasher as _};
use segstream_base::Instant;
use segstream_wire::Kind;
use siphasher::sip::SipHasher13;

/// The digest of all events so far.
#[derive(Debug, Default)]
pub(crate) struct Digest(SipHasher13);

impl Digest {
    /// Adds an event.
    pub(crate) fn add(&mut self, now: Instant, event: &Event) {
        now.hash(&mut self.0);
        match event {
            // Why not as lines: these are the bulk of a run.
            Event::Step | Event::Kept(_) | Event::Worked { .. } | Event::Connections { .. } => {}
            Event::Sent { host, to, bytes, content, fate, .. } => (1u8, *host as u64, to, bytes, content, fate).hash(&mut self.0),
            Event::Arrived { host, from, bytes, hostile, .. } => (2u8, *host as u64, from, bytes, hostile).hash(&mut self.0),
            Event::Delivered(delivered) => (3u8, delivered).hash(&mut self.0),
            // A hasher never fails.
            rest => _ = write!(self, "{}", Line(rest)),
        }
    }

    pub(crate) fn value(&self) -> u64 {
        self.0.finish()
    }
}

impl Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

/// Whether the event is worth a line.
pub(crate) const fn has_line(event: &Event) -> bool {
    !matches!(event, Event::Step | Event::Kept(_) | Event::Worked { .. } | Event::Connections { .. })
}

/// An event as a line without its time.
pub(crate) struct Line<'a>(pub(crate) &'a Event);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Event::Step => f.write_str("step"),
            Event::Sent { host, to, kind, bytes, fate, .. } => write!(f, "-> h{host} {to} {} bytes={bytes} {fate}", name(*kind)),
            Event::Arrived { host, from, kind, bytes, hostile, .. } => {
                write!(f, "=> h{host} {from} {} bytes={bytes}{}", name(*kind), if *hostile { " hostile" } else { "" })
            }
            Event::Appeared { side, host, peer, role, .. } => write!(f, "appear {side} h{host} to {peer} {role:?}"),
            Event::Established { side, class } => write!(f, "established {side} class={class}"),
            Event::ClassAsked { side, class } => write!(f, "ask {side} class={class}"),
            Event::CloseAsked(side) => write!(f, "ask {side} close"),
            Event::Opened { name, contract } => write!(f, "open {name} {contract:?}"),
            Event::Offered { at, name, order } => write!(f, "offered {name} {order:?} at {at}"),
            Event::Refused(name) => write!(f, "refused {name}"),
            Event::Submitted { name, bytes: Some(bytes), own } => write!(f, "submit {name} bytes={bytes} own={own:?}"),
            Event::Submitted { name, bytes: None, own } => write!(f, "submit {name} open own={own:?}"),
            Event::Appended { name, bytes, last } => write!(f, "append {name} bytes={bytes}{}", if *last { " last" } else { "" }),
            Event::Told { name, verdict, holes } => write!(f, "judge {name} {verdict} holes={holes:?}"),
            Event::Delivered(delivered) => delivered.fmt(f),
            Event::Ended { at, name, segments } => write!(f, "end {name} segments={segments} at {at}"),
            Event::Confirmed { at, name, segments } => write!(f, "confirmed {name} below {segments} at {at}"),
            Event::Durable { name, segments } => write!(f, "durable {name} below {segments}"),
            Event::Closed { side, reason } => write!(f, "closed {side} {reason}"),
            Event::Forgotten(side) => write!(f, "forgotten {side}"),
            Event::Kept(kept) => write!(f, "kept {kept:?}"),
            Event::Worked { steps, bytes, .. } => write!(f, "worked {steps} steps for {bytes} bytes"),
            Event::Connections { host, count, most } => write!(f, "connections h{host} {count} of {most}"),
            Event::Fault(what) => write!(f, "fault {what}"),
            Event::Crashed(host) => write!(f, "crash h{host}"),
            Event::Resumed(host) => write!(f, "resume h{host}"),
            Event::Over(left) => write!(f, "over {left:?}"),
        }
    }
}

impl fmt::Display for Delivered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let holes: u32 = self.holes.iter().map(|hole| hole.len()).sum();
        write!(f, "deliver {} {} units={} holes={holes} at {}", self.name, self.verdict, self.units, self.at)
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arrives(at) => write!(f, "arrives={}", at.as_nanos()),
            Self::Twice(at, copy) => write!(f, "arrives={} copy={}", at.as_nanos(), copy.as_nanos()),
            Self::Damaged(at) => write!(f, "damaged arrives={}", at.as_nanos()),
            Self::Lost => f.write_str("lost"),
            Self::Blocked => f.write_str("blocked"),
            Self::Nowhere => f.write_str("nowhere"),
        }
    }
}

fn name(kind: Option<Kind>) -> &'static str {
    kind.map_or("?", Kind::name)
}
