//! The asks that come in over standard input, and the answers that go out.
//!
//! Called by the processes under attack and the sender beside them.
//!
//! Invariant: when whoever started the process is gone, it is asked to end.

use crate::messages::Ask;
use anyhow::Context as _;
use segstream::Waker;
use serde::Serialize;
use std::io::{BufRead as _, Write as _};
use std::sync::mpsc::{Receiver, TryRecvError, channel};

/// What has been asked and not been answered.
#[derive(Debug)]
pub(crate) struct Asks(Receiver<Ask>);

impl Asks {
    /// Reads standard input from now on, and wakes who waits.
    pub(crate) fn listen(waker: Waker) -> Self {
        let (told, asked) = channel();
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                let Ok(ask) = serde_json::from_str(&line) else { break };
                if told.send(ask).is_err() {
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
    pub(crate) fn next(&self) -> Option<Ask> {
        match self.0.try_recv() {
            Ok(ask) => Some(ask),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Ask::End),
        }
    }
}

/// Says something to whoever started this process.
pub(crate) fn say(what: &impl Serialize) -> anyhow::Result<()> {
    let mut line = serde_json::to_vec(what).context("what is said is always JSON")?;
    line.push(b'\n');
    let mut out = std::io::stdout().lock();
    out.write_all(&line).and_then(|()| out.flush()).context("whoever started this process is gone")
}
