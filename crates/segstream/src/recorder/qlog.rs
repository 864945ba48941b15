//! A qlog for each connection, in JSON text sequences (draft-ietf-quic-qlog-main-schema, RFC 7464).
//!
//! Called by the thread of the recorder. Texts gather in memory, and are appended to the connection's file some thousands of bytes at a time.
//!
//! Invariant: a connection that was never established here gets no file unless this end has asked for it, so that strangers cannot fill a
//! folder. An error of one file ends that file, and no other.

use super::failures::Failures;
use super::open_files::OpenFiles;
use super::qlog_events::{append, append_event};
use super::{Batch, Origin};
use segstream_proto::connection::Role;
use segstream_proto::trace::{TraceEvent, Traced};
use serde_json::json;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// The schema of the events.
const EVENT_SCHEMA: &str = "urn:segstream:qlog:events-01";
/// How many events of a connection wait until it is established.
const PENDING_MAX: usize = 256;
/// So much text of a connection gathers before it is written.
const GATHERED_BYTES: usize = 16 << 10;

/// The folder of the qlogs.
#[derive(Debug)]
pub(super) struct Qlog {
    folder: PathBuf,
    files: OpenFiles,
    connections: BTreeMap<u64, Log>,
}

#[derive(Debug)]
enum Log {
    /// It is not known yet whether it gets a file.
    Pending(Vec<Traced>),
    Made {
        path: PathBuf,
        /// Texts that are not in the file yet.
        texts: Vec<u8>,
    },
    /// Its file has failed, which was noted.
    Failed,
}

impl Qlog {
    /// Qlogs in `folder`, of which at most `open_max` are open at a time.
    pub(super) fn in_folder(folder: PathBuf, open_max: usize) -> io::Result<Self> {
        std::fs::create_dir_all(&folder)?;
        Ok(Self { folder, files: OpenFiles::new(open_max), connections: BTreeMap::new() })
    }

    /// Takes what a connection did. How many events are lost because its file has failed.
    pub(super) fn write(&mut self, batch: &Batch, failures: &mut Failures) -> u64 {
        let serial = batch.origin.serial;
        let log = self.connections.remove(&serial).unwrap_or_else(|| Log::Pending(Vec::new()));
        let (log, lost) = match self.take(log, batch) {
            Ok(Log::Failed) => (Log::Failed, batch.events.len() as u64),
            Ok(log) => (log, 0),
            Err((path, error)) => {
                failures.note(&path, error);
                self.files.close(serial);
                (Log::Failed, batch.events.len() as u64)
            }
        };
        if batch.ended {
            self.files.close(serial);
        } else {
            self.connections.insert(serial, log);
        }
        lost
    }

    /// The log after what the connection did; or the file that has failed, and how.
    fn take(&mut self, log: Log, batch: &Batch) -> Result<Log, (PathBuf, io::Error)> {
        let Batch { origin, events, ended, .. } = batch;
        let (path, mut texts) = match log {
            Log::Failed => return Ok(Log::Failed),
            Log::Made { path, texts } => (path, texts),
            Log::Pending(mut pending) => {
                let established = events.iter().any(|traced| traced.event == TraceEvent::Established);
                if *ended || origin.role == Role::Responder && !established {
                    let room = PENDING_MAX - pending.len().min(PENDING_MAX);
                    pending.extend(events.iter().take(room).cloned());
                    return Ok(Log::Pending(pending));
                }
                let first = pending.first().or(events.first());
                let path = path_of(&self.folder, origin, first.map_or(0.0, |traced| origin.unix_ms(traced.at)));
                self.files.create(origin.serial, &path).map_err(|error| (path.clone(), error))?;
                let mut texts = head(origin);
                pending.iter().for_each(|traced| append_event(&mut texts, origin, traced));
                (path, texts)
            }
        };
        events.iter().for_each(|traced| append_event(&mut texts, origin, traced));
        if *ended || texts.len() >= GATHERED_BYTES {
            let written = self.files.append(origin.serial, &path, &texts);
            texts.clear();
            written.map_err(|error| (path.clone(), error))?;
        }
        Ok(Log::Made { path, texts })
    }

    /// Writes what has gathered.
    pub(super) fn finish(mut self, failures: &mut Failures) {
        for (serial, log) in self.connections {
            if let Log::Made { path, texts } = log
                && let Err(error) = self.files.append(serial, &path, &texts)
            {
                failures.note(&path, error);
            }
            self.files.close(serial);
        }
    }
}

/// The name of this end in qlog.
const fn vantage_point(role: Role) -> &'static str {
    match role {
        Role::Initiator => "client",
        Role::Responder => "server",
    }
}

/// The file of a connection.
fn path_of(folder: &Path, origin: &Origin, begin_ms: f64) -> PathBuf {
    let (begin, serial, end) = (begin_ms as u64, origin.serial, vantage_point(origin.role));
    folder.join(format!("{begin}-{serial}-{end}.sqlog"))
}

/// The first text of a connection.
fn head(origin: &Origin) -> Vec<u8> {
    let head = json!({
        "file_schema": "urn:ietf:params:qlog:file:sequential",
        "serialization_format": "application/qlog+json-seq",
        "title": "segstream",
        "trace": {
            "vantage_point": { "type": vantage_point(origin.role) },
            "event_schemas": [EVENT_SCHEMA],
            "common_fields": {
                "time_format": "relative_to_epoch",
                "reference_time": { "clock_type": "system", "epoch": "1970-01-01T00:00:00.000Z" },
                "group_id": origin.serial.to_string(),
                "remote": origin.remote.to_string(),
            },
        },
    });
    let mut texts = Vec::new();
    append(&mut texts, &head);
    texts
}
