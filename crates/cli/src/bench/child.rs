//! An end as a child process: started, listened to, and gone when nobody holds it any more.
//!
//! Called by [`super::measurement`] and by the server of [`super::remote`].
//!
//! Invariant: a child never outlives whoever started it by more than the time it waits for its peer.

use super::end::Side;
use super::end::job::Job;
use super::end::line::{Failure, Listening, Outcome};
use super::transport::Program;
use anyhow::{Context as _, Result, bail};
use serde::de::DeserializeOwned;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::thread;
use std::time::Duration;

/// How long a child may take until it listens.
const START_UP: Duration = Duration::from_secs(30);
/// How long a child whose other end has failed may take to say why it failed itself.
const EXIT_TIMEOUT: Duration = Duration::from_millis(500);

/// Which end a child is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Role<'a> {
    Serve { bind: SocketAddr },
    Run { connect: SocketAddr, trust: &'a str },
}

/// A running end.
#[derive(Debug)]
pub(super) struct End {
    child: Child,
    lines: Receiver<String>,
    name: String,
}

impl End {
    /// Starts an end; on processor `cpu` if given.
    pub(super) fn start(program: &Program, transport: &str, role: Role<'_>, job: &Job, cpu: Option<usize>) -> Result<Self> {
        let mut command = Command::new(&program.file);
        command.args(&program.words).args(["end", transport]);
        let side = match role {
            Role::Serve { bind } => {
                command.args(["--side", "serve", "--bind", &bind.to_string()]);
                Side::Serve
            }
            Role::Run { connect, trust } => {
                command.args(["--side", "run", "--connect", &connect.to_string()]);
                if !trust.is_empty() {
                    // Why in one word: a text that begins with a dash would look like a flag.
                    command.arg(format!("--trust={trust}"));
                }
                Side::Run
            }
        };
        let own_flags = if program.is_ours() { job.own_words() } else { job.peers_words() };
        command.args(job.words()).args(own_flags);
        if let Some(cpu) = cpu {
            command.args(["--cpu", &cpu.to_string()]);
        }
        let name = format!("{transport} {}", if side == Side::Serve { "receiver" } else { "sender" });
        let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut child = started.with_context(|| format!("{} cannot be started", program.file.display()))?;
        let (say, lines) = channel();
        if let Some(output) = child.stdout.take() {
            thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(std::result::Result::ok) {
                    if say.send(line).is_err() {
                        break;
                    }
                }
            });
        }
        Ok(Self { child, lines, name })
    }

    /// Waits until it listens.
    pub(super) fn listening(&self) -> Result<Listening> {
        match self.lines.recv_timeout(START_UP) {
            Ok(line) => self.read(&line),
            Err(RecvTimeoutError::Timeout) => bail!("the {} does not listen after {START_UP:?}", self.name),
            Err(RecvTimeoutError::Disconnected) => Err(self.silent()),
        }
    }

    /// Waits for its result.
    pub(super) fn outcome(&self) -> Result<Outcome> {
        match self.lines.recv() {
            Ok(line) => self.read(&line),
            Err(_) => Err(self.silent()),
        }
    }

    /// Its result, if it has come.
    pub(super) fn poll_outcome(&self) -> Option<Result<Outcome>> {
        match self.lines.try_recv() {
            Ok(line) => Some(self.read(&line)),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(self.silent())),
        }
    }

    /// Why it has failed too, when it has, now that the other end has.
    pub(super) fn complaint(&self) -> Option<anyhow::Error> {
        let line = self.lines.recv_timeout(EXIT_TIMEOUT).ok()?;
        self.read::<Outcome>(&line).err()
    }

    fn read<T: DeserializeOwned>(&self, line: &str) -> Result<T> {
        if let Ok(Failure { error }) = serde_json::from_str(line) {
            bail!("the {} has failed: {error}", self.name);
        }
        serde_json::from_str(line).with_context(|| format!("the output of the {} cannot be decoded: {line}", self.name))
    }

    fn silent(&self) -> anyhow::Error {
        anyhow::anyhow!("the {} has ended without a result", self.name)
    }
}

impl Drop for End {
    fn drop(&mut self) {
        // Why ignored: it has ended by itself, as a rule.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
