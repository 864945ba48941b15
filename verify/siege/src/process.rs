//! A process of the suite from outside: started, asked, ended.
//!
//! Called by the attacks. Invariant: it never outlives its parent, and waiting for it always ends.

use crate::messages::{Hello, Report, Request};
use anyhow::{Context as _, bail};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Longer than any answer takes on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A running process.
#[derive(Debug)]
pub struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    hello: Hello,
}

impl Process {
    /// Starts this program in another role.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start(program: &Path, arguments: &[String]) -> anyhow::Result<Self> {
        let mut child = Command::new(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let out = child.stdout.take().context("its output is a pipe")?;
        let (told, lines) = channel();
        std::thread::spawn(move || BufReader::new(out).lines().map_while(Result::ok).for_each(|line| drop(told.send(line))));
        let hello = Hello { address: crate::victim::any(), key: String::new() };
        let stdin = child.stdin.take();
        let mut process = Self { child, stdin, lines, hello };
        process.hello = serde_json::from_str(&process.line()?)?;
        Ok(process)
    }

    /// Where it is.
    pub const fn address(&self) -> SocketAddr {
        self.hello.address
    }

    /// The fingerprint of its key.
    pub fn key(&self) -> &str {
        &self.hello.key
    }

    fn line(&mut self) -> anyhow::Result<String> {
        self.lines.recv_timeout(TIMEOUT).with_context(|| match self.child.try_wait() {
            Ok(Some(status)) => format!("the process under attack has ended: {status}"),
            _ => format!("the process under attack has said nothing for {TIMEOUT:?}"),
        })
    }

    fn say(&mut self, request: &Request) -> anyhow::Result<()> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        let stdin = self.stdin.as_mut().context("nothing is asked after the end")?;
        stdin.write_all(&line).context("the process under attack has ended")
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// When the process is gone or silent.
    pub fn ask(&mut self, request: &Request) -> anyhow::Result<Report> {
        self.say(request)?;
        Ok(serde_json::from_str(&self.line()?)?)
    }

    /// Asks for its state.
    ///
    /// # Errors
    /// When the process is gone or silent.
    pub fn report(&mut self) -> anyhow::Result<Report> {
        self.ask(&Request::Report)
    }

    /// Ends it in order, and waits for what it says last.
    ///
    /// # Errors
    /// As [`Process::end`].
    pub fn finish(mut self) -> anyhow::Result<Report> {
        self.say(&Request::End)?;
        let last = serde_json::from_str(&self.line()?)?;
        self.wait()?;
        Ok(last)
    }

    /// Ends it in order.
    ///
    /// # Errors
    /// When it ends otherwise: by a panic, for instance.
    pub fn end(mut self) -> anyhow::Result<()> {
        self.say(&Request::End)?;
        self.wait()
    }

    fn wait(&mut self) -> anyhow::Result<()> {
        self.stdin = None;
        let asked = Instant::now();
        loop {
            match self.child.try_wait()? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => bail!("the process under attack has failed: {status}"),
                None if asked.elapsed() > TIMEOUT => bail!("the process under attack does not end"),
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Why ignored: it may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
