//! The requests that a process reads from standard input, and the reports that it writes.
//!
//! Called by the processes under attack and the sender beside them.
//!
//! Invariant: when the parent process is gone, the next request is to end.

use crate::messages::Request;
use anyhow::Context as _;
use segstream::Waker;
use serde::Serialize;
use std::io::{BufRead as _, Write as _};
use std::sync::mpsc::{Receiver, TryRecvError, channel};

/// Requests that have not been answered.
#[derive(Debug)]
pub(crate) struct Requests(Receiver<Request>);

impl Requests {
    /// Reads standard input from now on, and wakes the waiting thread.
    pub(crate) fn listen(waker: Waker) -> Self {
        let (told, asked) = channel();
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                let Ok(request) = serde_json::from_str(&line) else { break };
                if told.send(request).is_err() {
                    break;
                }
                waker.wake();
            }
            drop(told);
            waker.wake();
        });
        Self(asked)
    }

    /// The next one, if there is one.
    pub(crate) fn next(&self) -> Option<Request> {
        match self.0.try_recv() {
            Ok(request) => Some(request),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Request::End),
        }
    }
}

/// Writes a report to the parent process.
pub(crate) fn say(what: &impl Serialize) -> anyhow::Result<()> {
    let mut line = serde_json::to_vec(what).context("what is said is always JSON")?;
    line.push(b'\n');
    let mut out = std::io::stdout().lock();
    out.write_all(&line).and_then(|()| out.flush()).context("whoever started this process is gone")
}
