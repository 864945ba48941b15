//! The files of a transfer that are not settled, by number, and the results of those that are.
//!
//! Called by the file queue.
//!
//! ```text
//! New ── Offered ── Ready ──┬── Sending ── Sent ── Settled
//!                           └── Sent (in a pack)
//! ```
//!
//! Invariant: results are reported in the order of the numbers, so what is held lies between the first that is not settled and the last.

use super::walk::Item;
use crate::manifest::{Kind, Offer, Record};
use crate::transfer_report::{FileReport, TransferReport};
use std::collections::VecDeque;

/// The most bytes of a label: those of a file name.
const LABEL_BYTES_MAX: usize = 255;

/// How a file begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// From its first byte; whether it has been compared before.
    Anew(bool),
    /// From here on, if what comes before has this hash.
    From(u64, String),
    /// Not at all, if it has this hash; or if the receiver's file does not give way.
    Compare { hash: String, replaces: bool, newer: bool },
}

/// The state of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    New,
    Offered,
    Ready(Start),
    Sending,
    /// All of it is submitted.
    Sent,
    Settled,
}

#[derive(Debug)]
struct Held {
    item: Item,
    state: State,
    report: FileReport,
}

/// The files between the first that is not settled and the last that was found.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    held: VecDeque<Held>,
    /// The number of the first that is held.
    first: u64,
    /// The first that was not offered.
    new_from: u64,
    unsettled: usize,
    /// How many are offered and have no reply.
    unreplied: usize,
    expected_bytes: u64,
    failed: Vec<Record>,
}

impl Outgoing {
    /// Adds what was found; its number.
    pub(super) fn push(&mut self, item: Item) -> u64 {
        self.expected_bytes += item.bytes.unwrap_or(0);
        self.unsettled += 1;
        self.held.push_back(Held { report: FileReport { name: item.name.clone(), ..FileReport::default() }, item, state: State::New });
        self.first + self.held.len() as u64 - 1
    }

    /// Adds what cannot be sent.
    pub(super) fn push_failed(&mut self, name: String, sentence: String) {
        let number = self.push(Item::unreadable(name));
        self.settle(number, |report| report.error = Some(sentence));
    }

    /// How many are held.
    pub(super) fn held(&self) -> u64 {
        self.held.len() as u64
    }

    /// How many are not settled.
    pub(super) const fn unsettled(&self) -> usize {
        self.unsettled
    }

    /// Whether an offer has no reply.
    pub(super) const fn waits_for_reply(&self) -> bool {
        self.unreplied > 0
    }

    /// The bytes of all files so far.
    pub(super) const fn expected_bytes(&self) -> u64 {
        self.expected_bytes
    }

    /// The first file of which nothing has been said.
    pub(super) fn next_new(&mut self) -> Option<(u64, &Item)> {
        self.new_from = self.new_from.max(self.first);
        while let Some(held) = self.held.get((self.new_from - self.first) as usize) {
            if held.state == State::New {
                break;
            }
            self.new_from += 1;
        }
        let number = self.new_from;
        self.held.get((number - self.first) as usize).map(|held| (number, &held.item))
    }

    fn get(&self, number: u64) -> Option<&Held> {
        self.held.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    fn get_mut(&mut self, number: u64) -> Option<&mut Held> {
        self.held.get_mut(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// What was found under a number, while it is held.
    pub(super) fn item(&self, number: u64) -> Option<&Item> {
        self.get(number).map(|held| &held.item)
    }

    /// The result so far.
    pub(super) fn report(&self, number: u64) -> Option<&FileReport> {
        self.get(number).map(|held| &held.report)
    }

    /// Whether a file is offered and has no reply.
    pub(super) fn is_offered(&self, number: u64) -> bool {
        self.get(number).is_some_and(|held| held.state == State::Offered)
    }

    /// Changes the state of a file that is not settled.
    pub(super) fn set_state(&mut self, number: u64, state: State) {
        let becomes_offered = state == State::Offered;
        let Some(held) = self.get_mut(number).filter(|held| held.state != State::Settled) else { return };
        let was_offered = std::mem::replace(&mut held.state, state) == State::Offered;
        self.unreplied = self.unreplied + usize::from(becomes_offered) - usize::from(was_offered);
    }

    /// A file that is ready, and how it begins.
    pub(super) fn take_start(&mut self, number: u64) -> Option<(Item, Start)> {
        let held = self.get(number)?;
        let State::Ready(start) = &held.state else { return None };
        Some((held.item.clone(), start.clone()))
    }

    /// Changes the result of a file.
    pub(super) fn edit(&mut self, number: u64, with: impl FnOnce(&mut FileReport)) {
        if let Some(held) = self.get_mut(number) {
            with(&mut held.report);
        }
    }

    /// Settles a file, once.
    pub(super) fn settle(&mut self, number: u64, with: impl FnOnce(&mut FileReport)) {
        let Some(held) = self.get(number).filter(|held| held.state != State::Settled) else { return };
        debug_assert!(self.unsettled > 0, "{} is settled and was not counted", held.item.name);
        self.set_state(number, State::Settled);
        self.edit(number, with);
        self.unsettled -= 1;
    }

    /// Settles a file that the transfer did not come to.
    pub(super) fn settle_unsent(&mut self, number: u64) {
        self.settle(number, |report| {
            let sentence = format!("{} was not sent", report.name);
            report.error.get_or_insert(sentence);
        });
    }

    /// A file that was offered fails: the receiver is to be told.
    pub(super) fn say_failed(&mut self, number: u64, sentence: &str) {
        self.failed.push(Record { offer: Some(number), failed: Some(sentence.to_owned()), ..Record::default() });
    }

    /// What is to be told of files that have failed.
    pub(super) fn take_failed(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.failed)
    }

    /// Moves the results of settled files to `report`.
    pub(super) fn report_settled(&mut self, report: &mut TransferReport) {
        while self.held.front().is_some_and(|held| held.state == State::Settled)
            && let Some(held) = self.held.pop_front()
        {
            self.first += 1;
            report.add_file(held.report);
        }
    }

    /// Moves all results to `report`; what is not settled was not sent, or not whole.
    pub(super) fn conclude(mut self, report: &mut TransferReport) {
        self.report_settled(report);
        for Held { state, report: mut file, item } in self.held {
            if state != State::Settled {
                let sentence = match state {
                    // Its segments say how it ended.
                    State::Sent if item.bytes.is_none() || report.error.is_none() => None,
                    State::Sending | State::Sent => Some("was not sent completely"),
                    _ => Some("was not sent"),
                };
                if let Some(sentence) = sentence {
                    file.error.get_or_insert(format!("{} {sentence}", item.name));
                }
            }
            report.add_file(file);
        }
    }
}

impl Item {
    /// Something that cannot be read.
    fn unreadable(name: String) -> Self {
        Self { name, path: None, kind: Kind::File, bytes: None, mode: 0, mtime: (0, 0), target: None, is_found: true }
    }

    /// The offer of it.
    pub(super) fn offer(&self, number: u64) -> Offer {
        Offer {
            offer: number,
            name: self.name.clone(),
            kind: self.kind,
            bytes: self.bytes.unwrap_or(0),
            mode: Some(self.mode),
            mtime: Some(self.mtime),
            target: self.target.clone(),
        }
    }

    /// The label of its stream: the last part of its name.
    pub(super) fn label(&self) -> String {
        let last = self.name.rsplit('/').next().unwrap_or("");
        let end = (0..=LABEL_BYTES_MAX.min(last.len())).rev().find(|&end| last.is_char_boundary(end));
        last.get(..end.unwrap_or(0)).unwrap_or("").to_owned()
    }
}
