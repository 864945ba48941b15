//! One side of a measurement: a process in its namespace that says lines of JSON.
//!
//! Called by [`super::cell`]. The same form for every transport: `end TRANSPORT --side serve --bind ADDR ...` says where it
//! listens, `end TRANSPORT --side run --connect ADDR ...` goes there, and both say what they counted.
//!
//! Invariant: a process never outlives the value that stands for it.

use anyhow::{Context as _, Result, bail};
use segstream_testbed::{Ends, Side};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Where the receiver listens.
#[derive(Debug, Deserialize)]
pub(super) struct Listening {
    pub(super) listening: String,
    #[serde(default)]
    pub(super) trust: String,
}

/// What an end has counted, as far as it is read here.
#[derive(Debug, Deserialize)]
pub(super) struct Outcome {
    pub(super) bytes: u64,
    pub(super) seconds: f64,
    pub(super) cpu_seconds: f64,
    #[serde(default)]
    pub(super) delays_ms: Option<Vec<f64>>,
}

#[derive(Debug, Deserialize)]
struct Failure {
    error: String,
}

/// A running end.
#[derive(Debug)]
pub(super) struct End {
    child: Child,
    lines: Receiver<String>,
}

impl End {
    /// Starts a program at a side.
    pub(super) fn start(ends: &Ends, side: Side, program: &Path, words: &[String]) -> Result<Self> {
        let mut command = Command::new(program);
        command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = ends.inside(side, || command.spawn()).with_context(|| format!("{} cannot be started", program.display()))?;
        let (say, lines) = channel();
        if let Some(output) = child.stdout.take() {
            thread::spawn(move || {
                BufReader::new(output).lines().map_while(Result::ok).all(|line| say.send(line).is_ok());
            });
        }
        Ok(Self { child, lines })
    }

    /// Its next line.
    pub(super) fn line<T: DeserializeOwned>(&self, end: Instant) -> Result<T> {
        let line = match self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => bail!("it says nothing and does not end"),
            Err(RecvTimeoutError::Disconnected) => bail!("it has ended without a result"),
        };
        if let Ok(Failure { error }) = serde_json::from_str(&line) {
            bail!("{error}");
        }
        serde_json::from_str(&line).with_context(|| format!("it says what cannot be understood: {line}"))
    }

    /// Lets it end by itself for a moment.
    pub(super) fn leave(mut self) {
        let end = Instant::now() + Duration::from_secs(2);
        while Instant::now() < end && self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        // Why ignored: it has ended by itself, as a rule.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
