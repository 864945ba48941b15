//! What a sender offers on one connection, and what becomes of each offer.
//!
//! Called by the connection's state ([`super::incoming`]).
//!
//! ```text
//! Checking ── Wanted ──┬── on a stream ── Done
//!     │                └── in a pack ──── Done
//!     └── compared by the sender, made, or refused ── Done
//! ```
//!
//! Invariant: no more than [`HELD_MAX`] offers are held; the sender waits before that.
//! Invariant: no more bytes are asked for than the connection may write.

use super::checks::{JOURNAL_BYTES_MIN, Question, Reply, transfer_id};
use super::sink::Attributes;
use super::storage::{Beginning, Resumable};
use super::writer::Packed;
use crate::manifest::{Answer, Kind, OFFERS_AHEAD, Offer, Record, printable};
use crate::pack;
use crate::transfer_report::{FileReport, TransferReport};
use segstream::{ConnectionId, Fingerprint};
use segstream_base::Bytes;
use std::collections::BTreeMap;

/// The most offers that are held.
const HELD_MAX: usize = 2 * OFFERS_AHEAD as usize;

#[derive(Debug)]
enum State {
    Checking,
    /// It was told what is here; its data may come.
    Wanted {
        replaces: bool,
        resumable: Option<Box<Resumable>>,
    },
    /// The sender compares; its data may come if the file that is here gives way.
    Compared {
        replaces: bool,
    },
    /// Its data come or are written.
    Arriving,
    Done,
}

#[derive(Debug)]
struct Held {
    offer: Offer,
    state: State,
    report: FileReport,
}

/// How the data of an offer are written.
#[derive(Debug)]
pub(super) struct Begin {
    pub(super) name: String,
    pub(super) attributes: Attributes,
    pub(super) beginning: Beginning,
}

/// The offers of a connection.
#[derive(Debug)]
pub(super) struct Offers {
    id: ConnectionId,
    sender: Option<Fingerprint>,
    held: BTreeMap<u64, Held>,
    /// The most bytes that may be asked for, and how many were.
    bytes_max: Option<Bytes>,
    asked: u64,
    /// The bytes of all offers.
    offered: u64,
    /// Directories that are told complete.
    finished: u64,
}

impl Offers {
    /// No offers yet, of a sender with this key that may write so much.
    pub(super) const fn new(id: ConnectionId, sender: Option<Fingerprint>, bytes_max: Option<Bytes>) -> Self {
        Self { id, sender, held: BTreeMap::new(), bytes_max, asked: 0, offered: 0, finished: 0 }
    }

    /// The bytes of all offers.
    pub(super) const fn offered_bytes(&self) -> u64 {
        self.offered
    }

    /// Takes offers; what is to be looked at. Those that are told twice, or too many, are dropped.
    pub(super) fn on_offers(&mut self, offers: Vec<Offer>) -> Option<Question> {
        let mut news = Vec::new();
        for offer in offers {
            if self.held.len() >= HELD_MAX || self.held.contains_key(&offer.offer) {
                continue;
            }
            self.offered = self.offered.saturating_add(offer.bytes);
            let report = FileReport { name: offer.name.clone(), ..FileReport::default() };
            self.held.insert(offer.offer, Held { offer: offer.clone(), state: State::Checking, report });
            news.push(offer);
        }
        (!news.is_empty()).then_some(Question::Offers(self.id, self.sender, news))
    }

    /// These directories are complete.
    pub(super) fn on_finished(&self, directories: Vec<Offer>) -> Option<Question> {
        let directories: Vec<Offer> = directories.into_iter().filter(|offer| offer.kind == Kind::Directory).collect();
        (!directories.is_empty()).then_some(Question::Finished(self.id, directories))
    }

    /// So many directories have their times; the answer.
    pub(super) fn on_times(&mut self, count: u64) -> Answer {
        self.finished += count;
        Answer { finished: Some(self.finished), ..Answer::default() }
    }

    /// What was found of offers; the answers.
    pub(super) fn on_replies(&mut self, replies: Vec<(u64, Reply)>) -> Vec<Answer> {
        let (mut answers, mut wanted, mut made) = (Vec::new(), Vec::new(), Vec::new());
        for (number, reply) in replies {
            match self.on_reply(number, reply) {
                Replied::Want => wanted.push(number),
                Replied::Made => made.push(number),
                Replied::Answer(answer) => answers.push(*answer),
                Replied::Nothing => {}
            }
        }
        answers.extend(ranges(&made).into_iter().map(|range| Answer { kept: Some(range), ..Answer::default() }));
        answers.extend(ranges(&wanted).into_iter().map(|range| Answer { want: Some(range), ..Answer::default() }));
        answers
    }

    fn on_reply(&mut self, number: u64, reply: Reply) -> Replied {
        let Some(held) = self.held.get_mut(&number).filter(|held| matches!(held.state, State::Checking)) else { return Replied::Nothing };
        let here = Answer { offer: Some(number), ..Answer::default() };
        let have = match &reply {
            Reply::Resume(resumable, _) => resumable.bytes,
            _ => 0,
        };
        let is_asked = matches!(reply, Reply::Want(_) | Reply::Resume(..) | Reply::Has { replaces: true, .. });
        let rest = held.offer.bytes.saturating_sub(have);
        if is_asked && let Some(most) = self.bytes_max.filter(|most| self.asked.saturating_add(rest) > most.get()) {
            let sentence = format!(
                "{} has {rest} bytes, and this receiver takes at most {most} of a connection; raise --max-bytes, or let less be sent",
                held.offer.name
            );
            return Replied::answer(held.refuse(number, sentence));
        }
        if is_asked {
            self.asked += rest;
        }
        match reply {
            Reply::Want(replaces) => {
                held.state = State::Wanted { replaces, resumable: None };
                Replied::Want
            }
            Reply::Resume(resumable, replaces) => {
                let answer = Answer { from: Some(resumable.bytes), blake3: Some(resumable.hash()), ..here };
                held.state = State::Wanted { replaces, resumable: Some(resumable) };
                Replied::answer(answer)
            }
            Reply::Has { hash, replaces, newer } => {
                held.state = State::Compared { replaces };
                Replied::answer(Answer { has: true, blake3: Some(hash), replaces, newer, ..here })
            }
            Reply::Newer => {
                (held.state, held.report.newer) = (State::Done, true);
                Replied::answer(Answer { newer: true, ..here })
            }
            Reply::Made => {
                (held.state, held.report.hash_agrees) = (State::Done, Some(true));
                Replied::Made
            }
            Reply::Refused(sentence) => Replied::answer(held.refuse(number, sentence)),
        }
    }

    /// What the sender says of an offer that it does not send.
    pub(super) fn on_record(&mut self, number: u64, record: &Record) {
        let Some(held) = self.held.get_mut(&number) else { return };
        match (&held.state, &record.failed) {
            (State::Compared { .. }, None) if record.same => {
                held.report.same = true;
                held.report.hash_agrees = Some(true);
                held.report.blake3.clone_from(&record.blake3);
            }
            (State::Compared { .. }, None) if record.newer => held.report.newer = true,
            (State::Wanted { .. } | State::Compared { .. }, Some(sentence)) => {
                held.report.error = Some(format!("the sender does not send {:?}: {}", held.offer.name, printable(sentence)));
            }
            _ => return,
        }
        held.state = State::Done;
    }

    /// The data of an offer come on a stream, from `from` on. Nothing when it was not asked for.
    pub(super) fn begin(&mut self, number: u64, from: u64) -> Option<Begin> {
        let sender = self.sender;
        let held = self.held.get_mut(&number)?;
        let (replaces, resumable) = held.take_wanted()?;
        let transfer = transfer_id(&held.offer, sender);
        let beginning = match resumable {
            Some(resumable) if from > 0 && resumable.bytes == from => {
                held.report.resumed_from = from;
                Beginning::Resumed(*resumable)
            }
            // The sender begins anew: its file is another one by now.
            Some(resumable) if from == 0 => Beginning::Resumed(resumable.emptied()),
            None if from == 0 && held.offer.bytes >= JOURNAL_BYTES_MIN => Beginning::New(transfer),
            None if from == 0 => Beginning::Plain,
            _ => return None,
        };
        Some(Begin { name: held.offer.name.clone(), attributes: held.attributes(replaces), beginning })
    }

    /// The files of a pack that were asked for; nothing when it is no pack.
    pub(super) fn unpack(&mut self, segment: &[u8]) -> Option<Vec<Packed>> {
        let mut packed = Vec::new();
        for (pack::Entry(offer, _, blake3), place) in pack::read(segment)? {
            let held = self.held.get_mut(&offer)?;
            let (replaces, _) = held.take_wanted()?;
            (held.report.bytes, held.report.blake3) = (place.len() as u64, Some(blake3.clone()));
            packed.push(Packed { offer, name: held.offer.name.clone(), attributes: held.attributes(replaces), blake3, place });
        }
        Some(packed)
    }

    /// What became of files in packs; the answers, and sentences for people.
    pub(super) fn on_unpacked(&mut self, told: Vec<(u64, Result<bool, String>)>) -> (Vec<Answer>, Vec<String>) {
        let (mut answers, mut sentences) = (Vec::new(), Vec::new());
        let (mut kept, mut is_durable) = (Vec::new(), true);
        for (number, result) in told {
            let Some(held) = self.held.get_mut(&number).filter(|held| matches!(held.state, State::Arriving)) else { continue };
            held.state = State::Done;
            match result {
                Ok(durable) => {
                    (held.report.durable, held.report.hash_agrees) = (Some(durable), Some(true));
                    is_durable &= durable;
                    kept.push(number);
                }
                Err(sentence) => {
                    answers.push(held.refuse(number, sentence.clone()));
                    sentences.push(sentence);
                }
            }
        }
        kept.sort_unstable();
        answers.extend(ranges(&kept).into_iter().map(|range| Answer { kept: Some(range), durable: is_durable, ..Answer::default() }));
        (answers, sentences)
    }

    /// The stream of an offer is settled.
    pub(super) fn on_settled(&mut self, number: u64, report: FileReport) {
        if let Some(held) = self.held.get_mut(&number) {
            let resumed_from = held.report.resumed_from;
            held.report = FileReport { name: held.offer.name.clone(), resumed_from, ..report };
            held.state = State::Done;
        }
    }

    /// Whether the data of every offer that came are written.
    pub(super) fn is_done(&self) -> bool {
        !self.held.values().any(|held| matches!(held.state, State::Arriving))
    }

    /// Moves the results of the first offers that are settled to the report.
    pub(super) fn report_settled(&mut self, report: &mut TransferReport) {
        while let Some(first) = self.held.first_entry().filter(|first| matches!(first.get().state, State::Done)) {
            report.add_file(first.remove().report);
        }
    }

    /// Moves all results to the report.
    pub(super) fn conclude(self, report: &mut TransferReport) {
        for mut held in self.held.into_values() {
            if !matches!(held.state, State::Done) {
                held.report.error.get_or_insert_with(|| format!("{} did not come before the connection ended", held.offer.name));
            }
            report.add_file(held.report);
        }
    }
}

/// What follows from a reply.
enum Replied {
    Want,
    Made,
    Answer(Box<Answer>),
    Nothing,
}

impl Replied {
    fn answer(answer: Answer) -> Self {
        Self::Answer(Box::new(answer))
    }
}

impl Held {
    const fn attributes(&self, replaces: bool) -> Attributes {
        Attributes { mode: self.offer.mode, mtime: self.offer.mtime, replaces }
    }

    /// Its data begin to come, if they may.
    fn take_wanted(&mut self) -> Option<(bool, Option<Box<Resumable>>)> {
        match std::mem::replace(&mut self.state, State::Arriving) {
            State::Wanted { replaces, resumable } => Some((replaces, resumable)),
            State::Compared { replaces: true } => Some((true, None)),
            other => {
                self.state = other;
                None
            }
        }
    }

    fn refuse(&mut self, number: u64, sentence: String) -> Answer {
        self.state = State::Done;
        self.report.error = Some(sentence.clone());
        Answer { offer: Some(number), error: Some(sentence), ..Answer::default() }
    }
}

/// The runs of ascending numbers: the first of each and how many.
fn ranges(numbers: &[u64]) -> Vec<(u64, u64)> {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((first, count)) if *first + *count == number => *count += 1,
            _ => ranges.push((number, 1)),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_runs() {
        assert_eq!(ranges(&[]), []);
        assert_eq!(ranges(&[3, 4, 5, 9, 10, 12]), [(3, 3), (9, 2), (12, 1)]);
    }
}
