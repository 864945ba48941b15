//! Bare UDP as fast as it goes: GSO batches of numbered datagrams, a window, and counts that come back.
//!
//! Called by an end for the workload `throughput`. It does what any reliable transport over UDP must do at least, and nothing
//! else: GSO batches as long as the system takes them (54 datagrams of 1200 bytes), nothing copied into
//! segments, checked, sealed or repaired.
//!
//! Invariant: what is lost is counted, and a receiver that is gone ends the sender with an error.

use super::job::Job;
use super::line::Outcome;
use super::raw::{ASK_AGAIN, Asking, Message, NUMBER_BYTES, PATIENCE, Raw};
use super::{Place, processor};
use anyhow::{Result, ensure};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// How many datagrams may be on their way.
const WINDOW_DATAGRAMS: u64 = 4000;
/// After how many the receiver says what it has.
const ACKNOWLEDGE_EVERY: u64 = 500;
/// After how long without an arrival the receiver says what it has.
const IDLE: Duration = Duration::from_millis(1);

/// Is one end of it.
pub(super) fn run(place: &Place, job: &Job) -> Result<Outcome> {
    match place {
        Place::Serve(bind) => receive(*bind, job),
        Place::Run { connect, .. } => send(*connect, job),
    }
}

/// What the receiver has seen.
#[derive(Debug, Default)]
struct Seen {
    /// Numbers below this are no longer on their way.
    below: u64,
    received: u64,
    bytes: u64,
    /// Of `received`, what the sender was told.
    told: u64,
    asked: bool,
    /// How many the sender has sent in all.
    finished: Option<u64>,
}

impl Seen {
    fn take(&mut self, message: Message, length: usize) {
        match message {
            Message::Data(number) => {
                self.below = self.below.max(number.saturating_add(1));
                self.received += 1;
                self.bytes += length as u64;
            }
            Message::Asked { sent } => (self.below, self.asked) = (self.below.max(sent), true),
            Message::Finished { sent } => self.finished = Some(sent),
            Message::Acknowledged { .. } | Message::Farewell { .. } => {}
        }
    }

    fn tell(&mut self, raw: &Raw) -> Result<()> {
        (self.told, self.asked) = (self.received, false);
        raw.tell(Message::Acknowledged { below: self.below, received: self.received })
    }
}

fn receive(bind: SocketAddr, job: &Job) -> Result<Outcome> {
    let mut raw = Raw::serve(bind, job)?;
    let mut seen = Seen::default();
    let mut heard = Instant::now();
    let mut first: Option<(Instant, Duration)> = None;
    let sent = loop {
        if raw.receive(|message, length| seen.take(message, length))? {
            heard = Instant::now();
            first = first.or_else(|| Some((heard, processor::time())));
        } else {
            if heard.elapsed() >= IDLE && seen.received > seen.told {
                seen.tell(&raw)?;
            }
            ensure!(heard.elapsed() < PATIENCE, "nothing has come for {PATIENCE:?}");
            raw.wait(if seen.received > seen.told { IDLE } else { PATIENCE })?;
        }
        if let Some(sent) = seen.finished {
            break sent;
        }
        if seen.asked || seen.received - seen.told >= ACKNOWLEDGE_EVERY {
            seen.tell(&raw)?;
        }
    };
    let (began, spent) = first.unwrap_or_else(|| (heard, processor::time()));
    let outcome = Outcome {
        bytes: seen.bytes,
        seconds: (heard - began).as_secs_f64(),
        cpu_seconds: (processor::time() - spent).as_secs_f64(),
        complete: seen.received,
        incomplete: sent.saturating_sub(seen.received),
        ..Outcome::default()
    };
    raw.bid_farewell(seen.received)?;
    Ok(outcome)
}

fn send(connect: SocketAddr, job: &Job) -> Result<Outcome> {
    let mut raw = Raw::run(connect, job)?;
    let spent = processor::time();
    let began = Instant::now();
    let sent = send_batches(&mut raw, job, began)?;
    let received = raw.finish(sent)?;
    Ok(Outcome {
        bytes: sent * job.datagram_bytes as u64,
        seconds: began.elapsed().as_secs_f64(),
        cpu_seconds: (processor::time() - spent).as_secs_f64(),
        complete: received,
        incomplete: sent.saturating_sub(received),
        wire_bytes: Some(raw.wire_bytes()),
        ..Outcome::default()
    })
}

/// Sends all datagrams, and says how many those were.
fn send_batches(raw: &mut Raw, job: &Job, began: Instant) -> Result<u64> {
    let size = job.datagram_bytes;
    let longest = raw.batch_datagrams(size);
    let mut batch = vec![7; longest * size];
    let (mut sent, mut below) = (0u64, 0u64);
    let mut asking = Asking::heard();
    loop {
        let left = job.left(began, job.bytes.div_ceil(size as u64).saturating_sub(sent));
        let count = (longest as u64).min(left);
        if count == 0 {
            return Ok(sent);
        }
        if sent + count <= below + WINDOW_DATAGRAMS {
            for (number, datagram) in (sent..sent + count).zip(batch.chunks_exact_mut(size)) {
                datagram[..NUMBER_BYTES].copy_from_slice(&number.to_le_bytes());
            }
            raw.send(&batch[..count as usize * size], size)?;
            sent += count;
            continue;
        }
        let before = below;
        let heard = raw.receive(|message, _| {
            if let Message::Acknowledged { below: told, .. } = message {
                below = below.max(told);
            }
        })?;
        if below > before {
            asking = Asking::heard();
        } else if !heard {
            raw.wait(ASK_AGAIN)?;
            if asking.is_due()? {
                raw.tell(Message::Asked { sent })?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_neither_closes_the_window_nor_counts_as_received() {
        let mut seen = Seen::default();
        for number in [0, 1, 5] {
            seen.take(Message::Data(number), 1200);
        }
        assert_eq!((seen.below, seen.received, seen.bytes), (6, 3, 3600));
        seen.take(Message::Asked { sent: 9 }, 25);
        assert_eq!((seen.below, seen.received, seen.asked), (9, 3, true));
    }
}
