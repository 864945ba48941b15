//! The binary as a child process that never outlives its test.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longer than anything here takes on a busy machine; only a defect meets it.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running verb.
pub(crate) struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: JoinHandle<Vec<u8>>,
    errors: Receiver<String>,
    seen: Vec<String>,
    started: Instant,
}

/// A verb that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
    /// From its start to its end.
    pub(crate) took: Duration,
}

/// Starts the binary.
pub(crate) fn start<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Running {
    let mut child = Command::new(env!("CARGO_BIN_EXE_segstream"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let stdout = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        out.read_to_end(&mut bytes).unwrap();
        bytes
    });
    let (sender, errors) = channel();
    std::thread::spawn(move || BufReader::new(err).lines().map_while(Result::ok).for_each(|line| drop(sender.send(line))));
    Running { stdin: child.stdin.take(), child, stdout, errors, seen: Vec::new(), started: Instant::now() }
}

/// Runs the binary to its end.
pub(crate) fn run<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Ended {
    start(arguments).end()
}

/// Starts a receiver on a free port; where it listens.
pub(crate) fn receiver(arguments: &[&str]) -> (Running, String) {
    let mut running = start(["recv", "--listen", "127.0.0.1:0"].iter().chain(arguments));
    let address = running.listening().to_string();
    (running, address)
}

/// Starts a link to `to`; where it listens.
pub(crate) fn link(to: &str, arguments: &[&str]) -> (Running, String) {
    let mut running = start(["link", "--listen", "127.0.0.1:0", "--to", to].iter().chain(arguments));
    let address = running.listening().to_string();
    (running, address)
}

/// Bytes that are the same in every run and compress badly.
pub(crate) fn content(length: usize) -> Vec<u8> {
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
    pub(crate) fn listening(&mut self) -> SocketAddr {
        let line = self.line();
        line.strip_prefix("listening on ").and_then(|address| address.parse().ok()).unwrap_or_else(|| panic!("not an address: {line}"))
    }

    /// The next line of standard error.
    pub(crate) fn line(&mut self) -> String {
        let line = self.errors.recv_timeout(PATIENCE).expect("a line on standard error");
        self.seen.push(line.clone());
        line
    }

    /// Reads standard error until a line contains `text`.
    pub(crate) fn wait_for(&mut self, text: &str) {
        while !self.line().contains(text) {}
    }

    /// Writes to standard input.
    pub(crate) fn input(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// Ends standard input.
    pub(crate) fn end_input(&mut self) {
        self.stdin = None;
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Asks for an orderly end and waits for it.
    pub(crate) fn interrupt(self) -> Ended {
        self.signal(Signal::INT);
        self.end()
    }

    /// The same while standard input stays open.
    pub(crate) fn interrupt_with_open_input(self) -> Ended {
        self.signal(Signal::INT);
        self.wait()
    }

    /// Ends standard input and waits for the end.
    pub(crate) fn end(mut self) -> Ended {
        self.end_input();
        self.wait()
    }

    fn wait(mut self) -> Ended {
        let started = Instant::now();
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None if started.elapsed() > PATIENCE => panic!("the command does not end; it said {:?}", self.seen),
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        let took = self.started.elapsed();
        let stdout = std::mem::replace(&mut self.stdout, std::thread::spawn(Vec::new)).join().unwrap();
        while let Ok(line) = self.errors.recv_timeout(PATIENCE) {
            self.seen.push(line);
        }
        Ended { code: status.code(), stdout, stderr: self.seen.join("\n"), took }
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
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The JSON object that is the last line of standard error.
    pub(crate) fn last_line_json(&self) -> Value {
        serde_json::from_str(self.stderr.lines().last().unwrap()).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Demands an exit status.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }
}
