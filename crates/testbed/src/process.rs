//! A program as a child process that never outlives whoever started it.
//!
//! Called by tests of the command and by measurements.
//!
//! Invariant: everything a program says is read as it says it, so that none waits for a full pipe.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longer than anything here takes on a busy machine; only a defect exceeds it.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A running program.
#[derive(Debug)]
pub struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: JoinHandle<Vec<u8>>,
    errors: Receiver<Said>,
    seen: Vec<Said>,
    started: Instant,
}

/// A line on standard error.
#[derive(Clone, Debug)]
pub struct Said {
    /// When it was read.
    pub at: Instant,
    /// The line without its end.
    pub line: String,
}

/// A program that has ended.
#[derive(Debug)]
pub struct Ended {
    /// Its exit status; `None` when a signal ended it.
    pub code: Option<i32>,
    /// What it wrote on standard output.
    pub stdout: Vec<u8>,
    /// What it wrote on standard error.
    pub stderr: String,
    /// The same, line by line with the time.
    pub said: Vec<Said>,
    /// From its start to its end.
    pub took: Duration,
}

/// Starts a program that can be given input.
///
/// # Panics
/// When it cannot be started.
pub fn start<S: AsRef<OsStr>>(program: &Path, arguments: impl IntoIterator<Item = S>) -> Running {
    start_with(program, arguments, Stdio::piped())
}

/// Starts a program with this standard input.
///
/// # Panics
/// When it cannot be started.
pub fn start_with<S: AsRef<OsStr>>(program: &Path, arguments: impl IntoIterator<Item = S>, stdin: Stdio) -> Running {
    let mut command = Command::new(program);
    command.args(arguments).stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{} cannot be started: {error}", program.display()));
    let (mut out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let stdout = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        out.read_to_end(&mut bytes).unwrap();
        bytes
    });
    let (sender, errors) = channel();
    std::thread::spawn(move || {
        let said = |line| Said { at: Instant::now(), line };
        BufReader::new(err).lines().map_while(Result::ok).for_each(|line| drop(sender.send(said(line))));
    });
    Running { stdin: child.stdin.take(), child, stdout, errors, seen: Vec::new(), started: Instant::now() }
}

/// Bytes that are the same in every run and compress badly.
pub fn content(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.flatten().take(length).collect()
}

impl Running {
    /// The address on the first line of standard error.
    ///
    /// # Panics
    /// When the line is another one.
    pub fn listening(&mut self) -> SocketAddr {
        let line = self.line();
        line.strip_prefix("listening on ").and_then(|address| address.parse().ok()).unwrap_or_else(|| panic!("not an address: {line}"))
    }

    /// The next line of standard error.
    ///
    /// # Panics
    /// When none comes.
    pub fn line(&mut self) -> String {
        let said = self.errors.recv_timeout(TIMEOUT).unwrap_or_else(|_| panic!("no line on standard error after {:?}", self.seen));
        self.seen.push(said.clone());
        said.line
    }

    /// Reads standard error until a line contains `text`.
    ///
    /// # Panics
    /// When none does.
    pub fn wait_for(&mut self, text: &str) {
        while !self.line().contains(text) {}
    }

    /// Writes to standard input.
    ///
    /// # Panics
    /// When it is no pipe or has been ended.
    pub fn input(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// Ends standard input.
    pub fn end_input(&mut self) {
        self.stdin = None;
    }

    /// Hands over standard input, so that another thread can write to it; `None` if it is no pipe or has been ended.
    pub const fn take_input(&mut self) -> Option<ChildStdin> {
        self.stdin.take()
    }

    /// Its number.
    pub fn id(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Sends a signal.
    ///
    /// # Panics
    /// When the system refuses.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Asks for an orderly end and waits for it.
    pub fn interrupt(self) -> Ended {
        self.signal(Signal::INT);
        self.end()
    }

    /// The same while standard input stays open.
    pub fn interrupt_with_open_input(self) -> Ended {
        self.signal(Signal::INT);
        self.wait()
    }

    /// Waits for the end while standard input stays open.
    pub fn end_with_open_input(self) -> Ended {
        self.wait()
    }

    /// Ends standard input and waits for the end.
    pub fn end(mut self) -> Ended {
        self.end_input();
        self.wait()
    }

    fn wait(mut self) -> Ended {
        let started = Instant::now();
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None if started.elapsed() > TIMEOUT => panic!("the command does not end; it said {:?}", self.seen),
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        let took = self.started.elapsed();
        let stdout = std::mem::replace(&mut self.stdout, std::thread::spawn(Vec::new)).join().unwrap();
        while let Ok(said) = self.errors.recv_timeout(TIMEOUT) {
            self.seen.push(said);
        }
        let said = std::mem::take(&mut self.seen);
        let lines: Vec<&str> = said.iter().map(|said| said.line.as_str()).collect();
        Ended { code: status.code(), stdout, stderr: lines.join("\n"), took, said }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ended {
    /// The JSON object on standard output.
    ///
    /// # Panics
    /// When there is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The JSON object that is the last line of standard error.
    ///
    /// # Panics
    /// When there is none.
    pub fn last_line_json(&self) -> Value {
        serde_json::from_str(self.stderr.lines().last().unwrap_or_default()).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Demands an exit status.
    ///
    /// # Panics
    /// When it is another one.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }
}
