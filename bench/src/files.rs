//! `segstream-bench files`: a directory of small files and one large file, by `segstream send` and by rsync, in turn over loopback.
//!
//! rsync copies from a daemon of its own on a port of this machine, without encryption and without comparing blocks; ours is encrypted. Each is
//! run with nothing synced, and with every file synced before it counts (`--durability directory`, `rsync --fsync`).
//!
//! Called by people, on a quiet machine. Invariant: contenders take turns, so that what the machine does besides meets all of them; every copy is
//! compared with its source, and removed.

use crate::spread::Spread;
use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use segstream_base::random::Seed;
use serde::Serialize;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What is copied, and how often.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// How many small files, of 0 to 16 KiB.
    #[arg(long, default_value_t = 10_000)]
    files: usize,
    /// The length of the large file in MiB.
    #[arg(long, default_value_t = 2048)]
    large_mib: u64,
    /// How often each is run.
    #[arg(long, default_value_t = 5)]
    repetitions: usize,
    /// The command; default: segstream beside this program.
    #[arg(long)]
    segstream: Option<PathBuf>,
    /// Prints one JSON object.
    #[arg(long)]
    json: bool,
}

/// Who copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contender {
    Ours { durability: &'static str },
    Rsync { fsync: bool },
}

/// In the order in which they take turns.
const CONTENDERS: [(&str, Contender); 4] = [
    ("segstream --durability none", Contender::Ours { durability: "none" }),
    ("rsync", Contender::Rsync { fsync: false }),
    ("segstream", Contender::Ours { durability: "directory" }),
    ("rsync --fsync", Contender::Rsync { fsync: true }),
];

/// What one contender took for one source.
#[derive(Debug, Serialize)]
struct Row {
    source: &'static str,
    contender: &'static str,
    elapsed_ms: Spread,
    megabytes_per_second: f64,
}

/// The folders, and the daemon of rsync.
struct Stage {
    directory: tempfile::TempDir,
    segstream: PathBuf,
    daemon: Child,
    port: u16,
}

impl Drop for Stage {
    fn drop(&mut self) {
        // Why ignored: it may be gone already.
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

impl Stage {
    fn new(options: &Options) -> Result<Self> {
        let directory = tempfile::tempdir().context("no temporary directory can be made")?;
        let segstream = match &options.segstream {
            Some(named) => named.clone(),
            None => std::env::current_exe()?.with_file_name("segstream"),
        };
        ensure!(segstream.exists(), "{} is not there; build it with the same profile: cargo build -p segstream-cli", segstream.display());
        fill(directory.path(), options)?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let daemon = daemon(directory.path(), port)?;
        let stage = Self { directory, segstream, daemon, port };
        stage.wait_for_daemon()?;
        Ok(stage)
    }

    fn wait_for_daemon(&self) -> Result<()> {
        for _ in 0..100 {
            if std::net::TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        bail!("the daemon of rsync does not listen on port {}", self.port)
    }

    /// Copies `source` and compares; how long the copying took.
    fn run(&self, contender: Contender, source: &str) -> Result<f64> {
        let (from, out) = (self.directory.path().join(source), self.directory.path().join("out"));
        fs::create_dir(&out)?;
        // Why: what an earlier run has left to be written must not be waited for in this one.
        succeeds(&mut Command::new("sync"))?;
        let seconds = match contender {
            Contender::Ours { durability } => self.ours(&from, &out, durability)?,
            Contender::Rsync { fsync } => self.rsync(source, &out, fsync)?,
        };
        succeeds(Command::new("diff").arg("-rq").arg(&from).arg(out.join(source)))?;
        fs::remove_dir_all(&out)?;
        Ok(seconds)
    }

    fn ours(&self, from: &Path, out: &Path, durability: &str) -> Result<f64> {
        let mut receiver = Command::new(&self.segstream)
            .args(["recv", "--listen", "127.0.0.1:0", "--allow-anyone", "--max-bytes", "1TiB", "--durability", durability, "--out"])
            .arg(out)
            .env("XDG_CONFIG_HOME", self.directory.path().join("receiver"))
            .stderr(Stdio::piped())
            .spawn()?;
        let mut lines = BufReader::new(receiver.stderr.take().context("its standard error is a pipe")?).lines();
        let (mut address, mut key, mut said) = (None, None, String::new());
        while key.is_none() {
            let Some(line) = lines.next().transpose()? else { bail!("recv has ended: {said}") };
            said.push_str(&line);
            said.push('\n');
            if let Some(listens) = line.strip_prefix("listening on ") {
                address = Some(listens.to_owned());
            }
            key = line.strip_prefix("fingerprint ").map(str::to_owned);
        }
        let drained = std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        let address = address.context("recv has not said where it listens")?;
        let began = Instant::now();
        let mut send = Command::new(&self.segstream);
        send.args(["send", &address]).arg(from).args(["--peer", &key.unwrap_or_default()]).stderr(Stdio::null());
        let sent = succeeds(send.env("XDG_CONFIG_HOME", self.directory.path().join("sender")));
        let seconds = began.elapsed().as_secs_f64();
        if sent.is_err() {
            receiver.kill()?;
        }
        let received = receiver.wait()?;
        drop(drained.join());
        sent?;
        ensure!(received.success(), "recv has failed: {received}");
        Ok(seconds)
    }

    fn rsync(&self, source: &str, out: &Path, fsync: bool) -> Result<f64> {
        let mut rsync = Command::new("rsync");
        rsync.args(["--archive", "--whole-file"]).args(fsync.then_some("--fsync"));
        rsync.arg(format!("rsync://127.0.0.1:{}/source/{source}", self.port)).arg(out);
        let began = Instant::now();
        succeeds(&mut rsync)?;
        Ok(began.elapsed().as_secs_f64())
    }
}

fn succeeds(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("{} cannot be started; is it installed?", command.get_program().display()))?;
    ensure!(status.success(), "{command:?} has failed: {status}");
    Ok(())
}

/// The daemon of rsync, which serves `directory` as the module source.
fn daemon(directory: &Path, port: u16) -> Result<Child> {
    let file = directory.join("rsyncd.conf");
    let text = format!(
        "port = {port}\naddress = 127.0.0.1\nuse chroot = no\npid file = {pid}\n[source]\npath = {path}\nread only = yes\n",
        pid = directory.join("rsyncd.pid").display(),
        path = directory.display()
    );
    fs::write(&file, text)?;
    let mut command = Command::new("rsync");
    command.args(["--daemon", "--no-detach", "--config"]).arg(&file).stderr(Stdio::null());
    command.spawn().context("rsync cannot be started; install it")
}

/// Makes the sources.
fn fill(directory: &Path, options: &Options) -> Result<()> {
    let mut random = Seed(26).stream("files");
    let small = directory.join("small");
    for index in 0..options.files {
        let folder = small.join((index / 100).to_string());
        fs::create_dir_all(&folder)?;
        let bytes: Vec<u8> = (0..random.below(2049)).flat_map(|_| random.bits().to_le_bytes()).collect();
        fs::write(folder.join(index.to_string()), bytes)?;
    }
    let large = directory.join("large");
    fs::create_dir(&large)?;
    let mut file = fs::File::create(large.join("file"))?;
    for _ in 0..options.large_mib {
        let block: Vec<u8> = (0..1 << 17).flat_map(|_| random.bits().to_le_bytes()).collect();
        std::io::Write::write_all(&mut file, &block)?;
    }
    Ok(())
}

fn bytes_below(path: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        bytes += if entry.file_type()?.is_dir() { bytes_below(&entry.path())? } else { entry.metadata()?.len() };
    }
    Ok(bytes)
}

/// Runs all contenders on all sources.
pub(crate) fn run(options: &Options) -> Result<()> {
    let stage = Stage::new(options)?;
    let mut rows = Vec::new();
    for source in ["small", "large"] {
        let mut seconds = vec![Vec::new(); CONTENDERS.len()];
        for repetition in 0..options.repetitions {
            for (at, (name, contender)) in CONTENDERS.iter().enumerate() {
                eprintln!("{source}, {} of {}: {name}", repetition + 1, options.repetitions);
                seconds[at].push(stage.run(*contender, source)?);
            }
        }
        let megabytes = bytes_below(&stage.directory.path().join(source))? as f64 / 1e6;
        for ((name, _), seconds) in CONTENDERS.iter().zip(seconds) {
            let elapsed_ms = Spread::of(seconds.into_iter().map(|seconds: f64| seconds * 1e3).collect());
            rows.push(Row { source, contender: name, elapsed_ms, megabytes_per_second: megabytes / elapsed_ms.median * 1e3 });
        }
    }
    let line = |row: &Row| format!("| {} | {} | {} | {:.0} |\n", row.source, row.contender, row.elapsed_ms, row.megabytes_per_second);
    let text: String = rows.iter().map(line).collect();
    let head = format!(
        "{} small files, a file of {} MiB; medians\n\n| source | by | ms, median (smallest to largest) | MB/s |\n|---|---|---|---|\n",
        options.files, options.large_mib
    );
    crate::print(options.json, &rows, &format!("{head}{text}"))
}
