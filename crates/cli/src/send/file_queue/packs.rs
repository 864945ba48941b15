//! Small files, many in a segment, on one stream for all of them.
//!
//! Called by the file queue.
//!
//! Invariant: a pack leaves when it is full, or when nothing else is ready.

use super::{FileQueue, Opened, Records, Step, Submission, Unjudged, open};
use crate::manifest::{PACKS_LABEL, Record};
use crate::pack::Filling;
use crate::send::outgoing::{Start, State};
use crate::send::source::open_file;
use segstream::blocking::Connection;
use segstream::{Bytes, Contract, Error, StreamId, SubmitError};
use segstream_base::Instant;
use std::io::Read as _;
use std::path::Path;

/// The stream of packs and what goes there next.
#[derive(Debug, Default)]
pub(super) struct Packs {
    pub(super) stream: Option<StreamId>,
    pub(super) filling: Filling,
    /// A full pack that the send buffer did not take, and how many bytes of files it has.
    pub(super) held: Option<(Bytes, u64)>,
}

impl FileQueue {
    /// Whether a file of this length goes into a pack.
    pub(super) fn takes_packed(&self, bytes: Option<u64>) -> bool {
        let packs = self.packable && self.takes.is_some_and(|takes| takes.packs);
        packs && bytes.is_some_and(|bytes| bytes <= Filling::file_bytes_max(self.segment_bytes).get())
    }

    /// Adds a small file to the pack; a full one is to be sent first.
    pub(super) fn pack(&mut self, number: u64, content: &[u8]) -> Step {
        if !self.packs.filling.takes(content.len() as u64, self.segment_bytes) {
            self.ready.push_front(number);
            self.outgoing.set_state(number, State::Ready(Start::Anew(false)));
            return self.hold_pack();
        }
        let hash = self.packs.filling.add(number, content);
        self.outgoing.edit(number, |report| (report.bytes, report.blake3) = (content.len() as u64, Some(hash)));
        self.outgoing.set_state(number, State::Sent);
        Step::Read(content.len())
    }

    /// The pack is full, or nothing else is to be added.
    pub(super) fn hold_pack(&mut self) -> Step {
        let bytes = self.packs.filling.content_bytes();
        let (segment, _) = self.packs.filling.take();
        self.packs.held = Some((segment.into(), bytes));
        Step::Read(0)
    }

    /// Sends the pack that is held.
    pub(super) fn send_pack(
        &mut self,
        connection: &mut Connection<'_>,
        contract: &Contract,
        unjudged: &mut Unjudged,
        records: &mut Records,
    ) -> Result<Step, Error> {
        let stream = match self.packs.stream {
            Some(stream) => stream,
            None => match open(connection, Contract { label: PACKS_LABEL.to_owned(), ..contract.clone() })? {
                Opened::Stream(stream) => {
                    records.push(Record { stream: Some(stream.0), pack: true, ..Record::default() });
                    *self.packs.stream.insert(stream)
                }
                Opened::Limit => return Ok(Step::Wait(Instant::FAR_FUTURE)),
            },
        };
        let Some((segment, bytes)) = self.packs.held.take() else { return Ok(Step::Read(0)) };
        let source_time = self.clock.now();
        match connection.try_send(stream, segment.clone(), source_time, None) {
            Ok(number) => {
                let units = contract.units_of(segment.len() as u64);
                unjudged.insert((stream, number), Submission { bytes, units, source_time });
            }
            Err(Error::Submit(SubmitError::Blocked)) => {
                self.packs.held = Some((segment, bytes));
                return Ok(Step::Wait(Instant::FAR_FUTURE));
            }
            Err(error) => return Err(error),
        }
        self.units += contract.units_of(segment.len() as u64);
        Ok(Step::Sent(segment.len()))
    }

    /// Nothing more is packed.
    pub(super) fn finish_packs(&mut self, connection: &mut Connection<'_>) -> Result<(), Error> {
        self.packs.stream.take().map_or(Ok(()), |stream| connection.finish_stream(stream))
    }
}

/// All of a small file; nothing when it has grown too long for a pack.
pub(super) fn read_small(path: &Path, is_found: bool, segment_bytes: usize) -> Result<Option<Vec<u8>>, String> {
    let most = Filling::file_bytes_max(segment_bytes).get();
    let (file, length) = open_file(path, is_found)?;
    let mut content = Vec::with_capacity(length.min(most) as usize + 1);
    let read = file.take(most + 1).read_to_end(&mut content);
    read.map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    Ok((content.len() as u64 <= most).then_some(content))
}
