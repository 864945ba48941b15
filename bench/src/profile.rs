//! `profile`: the processor time of a datagram, by stage and by end.
//!
//! Called by people. It lets `perf` look at both ends of `segstream bench throughput` many times a second, and adds up what
//! it saw by what the code belongs to. The stages are those a datagram passes, as HT 3.3 draws them and EC 6 times them.
//!
//! Invariant: every sample of an end is in one stage; what belongs to none is in the last. The sum of an end is the
//! processor time it took, idle time left out.

use anyhow::{Context as _, Result, bail, ensure};
use clap::{Args, ValueEnum};
use segstream_lab::machine::Machine;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Samples a second of each processor.
const SAMPLES_PER_SECOND: u32 = 2000;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Which of ours.
    #[arg(long, value_enum, default_value_t = Protection::Plain)]
    protection: Protection,
    /// How many gigabytes each of the five transfers moves.
    #[arg(long, value_name = "N", default_value_t = 8)]
    gigabytes: u32,
    /// The command to measure [default: built now, beside this program].
    #[arg(long, value_name = "PATH")]
    segstream: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Protection {
    Plain,
    Encrypted,
}

impl Protection {
    /// The payload of a datagram of 1200 bytes in `segstream bench`.
    const fn payload_bytes(self) -> u32 {
        match self {
            Self::Plain => 1160,
            Self::Encrypted => 1148,
        }
    }
}

/// What code belongs to, in the order a datagram passes it.
const STAGES: [(&str, &[&str]); 8] = [
    ("copies of the payload", &["__memmove", "__memcpy", "memcpy"]),
    (
        "seal",
        &["crc_fast", "crc32c", "::session::Plain", "PlainSession", "ring", "aes", "gcm", "GHASH", "segstream_secure", "rustls", "chacha"],
    ),
    ("sending half", &["segstream_proto::sender", "segstream_proto::connection::transmit", "SendStore", "segstream_blocks::burst"]),
    (
        "receiving half",
        &["segstream_proto::receiver", "segstream_proto::connection::receive", "RecvStore", "LossDetector", "segment_buffers"],
    ),
    ("wire format", &["segstream_wire", "segstream_base::codec"]),
    ("connection and endpoint", &["segstream_proto", "segstream_blocks", "segstream_base"]),
    (
        "driver and application",
        &["segstream", "quinn_udp", "rustix", "clock_gettime", "recvmmsg", "sendmsg", "sendmmsg", "core::", "alloc::", "std::"],
    ),
    ("system: copies", &["_copy_from_iter", "_copy_to_iter", "copy_user", "rep_movs"]),
];
const REST: &str = "system: the rest";

/// One end, in nanoseconds for each datagram of full size.
#[derive(Debug, Default, Serialize)]
struct End {
    stages: BTreeMap<&'static str, f64>,
    total_ns: f64,
}

#[derive(Debug, Serialize)]
struct Report {
    machine: Machine,
    protection: String,
    payload_bytes: u32,
    goodput_bps_median: f64,
    sender: End,
    receiver: End,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let program = match &options.segstream {
        Some(program) => program.clone(),
        None => crate::shared::build()?,
    };
    ensure!(program.is_file(), "there is no program {}; name the command segstream", program.display());
    let folder = tempfile::tempdir().context("there is no place for samples")?;
    let record = folder.path().join("samples");
    let protection = options.protection.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
    let (goodput, transfers) = measure(&program, &record, &protection, options.gigabytes)?;
    let datagrams =
        f64::from(transfers) * f64::from(options.gigabytes) * f64::from(1 << 30) / f64::from(options.protection.payload_bytes());
    let [sender, receiver] = ends(&samples(&record)?, datagrams);
    ensure!(sender.total_ns > 0.0 && receiver.total_ns > 0.0, "perf has seen neither end; can it sample the processors of this system?");
    let payload_bytes = options.protection.payload_bytes();
    let report = Report { machine: Machine::here(), protection, payload_bytes, goodput_bps_median: goodput, sender, receiver };
    crate::print(options.json, &report, &text(&report))
}

/// The goodput while `perf` looked, and how many transfers there were.
fn measure(program: &Path, record: &Path, protection: &str, gigabytes: u32) -> Result<(f64, u32)> {
    const TRANSFERS: u32 = 5;
    let output = Command::new("perf")
        .args(["record", "--all-cpus", "--quiet", "--freq", &SAMPLES_PER_SECOND.to_string(), "--output"])
        .arg(record)
        .arg("--")
        .arg(program)
        .args(["bench", "throughput", "--json", "--protection", protection])
        .args(["--repetitions", &TRANSFERS.to_string(), "--mebibytes", &(u64::from(gigabytes) << 10).to_string()])
        .stderr(Stdio::inherit())
        .output()
        .context("perf could not be started; it is a part of the tools of the kernel (Debian: linux-perf)")?;
    ensure!(output.status.success(), "the measurement has failed: {}", String::from_utf8_lossy(&output.stdout));
    let said: Value = serde_json::from_slice(&output.stdout).context("the measurement says what cannot be understood")?;
    let goodput =
        said.pointer("/runs/0/goodput_bps_median").and_then(Value::as_f64).context("the measurement does not tell its goodput")?;
    Ok((goodput, TRANSFERS))
}

/// The samples of our processes: for each process, how often each function was seen.
fn samples(record: &Path) -> Result<BTreeMap<u32, BTreeMap<String, u64>>> {
    let output = Command::new("perf")
        .args(["script", "--fields", "comm,pid,ip,sym", "--input"])
        .arg(record)
        .stderr(Stdio::null())
        .output()
        .context("perf could not be started")?;
    if !output.status.success() {
        bail!("perf cannot read its own samples");
    }
    let mut processes: BTreeMap<u32, BTreeMap<String, u64>> = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        // `COMMAND PID ADDRESS FUNCTION`, where functions have spaces as well.
        let mut words = line.split_whitespace();
        let (Some("segstream"), Some(Ok(process)), Some(_)) = (words.next(), words.next().map(str::parse), words.next()) else { continue };
        let function = words.collect::<Vec<_>>().join(" ");
        *processes.entry(process).or_default().entry(function).or_default() += 1;
    }
    Ok(processes)
}

/// The senders' and the receivers' samples by stage. The system copies out of one kind of process and into the other.
fn ends(processes: &BTreeMap<u32, BTreeMap<String, u64>>, datagrams: f64) -> [End; 2] {
    let mut ends = [End::default(), End::default()];
    for functions in processes.values() {
        let seen = |name| functions.get(name).copied().unwrap_or(0);
        let (sends, receives) = (seen("_copy_from_iter"), seen("_copy_to_iter"));
        if sends + receives == 0 {
            // Neither: the process that starts the two.
            continue;
        }
        let end = &mut ends[usize::from(receives > sends)];
        for (function, &count) in functions {
            let ns = count as f64 * 1e9 / f64::from(SAMPLES_PER_SECOND) / datagrams;
            *end.stages.entry(stage(function)).or_default() += ns;
            end.total_ns += ns;
        }
    }
    ends
}

fn stage(function: &str) -> &'static str {
    let belongs = |parts: &[&str]| parts.iter().any(|part| function.contains(part));
    STAGES.iter().find(|(_, parts)| belongs(parts)).map_or(REST, |(stage, _)| stage)
}

fn text(report: &Report) -> String {
    let mut out = format!(
        "{}\n{}, {:.1} Gbit/s while perf looked {SAMPLES_PER_SECOND} times a second; ns for each datagram of {} bytes of payload\n\n",
        report.machine,
        report.protection,
        report.goodput_bps_median / 1e9,
        report.payload_bytes
    );
    out.push_str("| stage | sender | receiver |\n|---|---|---|\n");
    let cell = |end: &End, stage: &str| end.stages.get(stage).map_or_else(|| "-".to_owned(), |ns| format!("{ns:.0}"));
    for stage in STAGES.iter().map(|(stage, _)| *stage).chain([REST]) {
        let _ = writeln!(out, "| {stage} | {} | {} |", cell(&report.sender, stage), cell(&report.receiver, stage));
    }
    let _ = writeln!(out, "| all | {:.0} | {:.0} |", report.sender.total_ns, report.receiver.total_ns);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_belongs_to_the_first_stage_that_names_it() {
        let of = [
            ("__memmove_avx512_unaligned_erms", "copies of the payload"),
            ("segstream_proto::session::Plain::checksum", "seal"),
            ("segstream_proto::sender::gso_batch::<impl segstream_proto::sender::SendHalf>::extend_batch", "sending half"),
            ("segstream_proto::receiver::RecvHalf::on_first_time", "receiving half"),
            ("segstream_wire::part::Part::read", "wire format"),
            ("segstream_proto::endpoint::Endpoint::hand_over", "connection and endpoint"),
            ("segstream_net::socket::Socket::send", "driver and application"),
            ("_copy_from_iter", "system: copies"),
            ("__ip_append_data", "system: the rest"),
        ];
        for (function, expected) in of {
            assert_eq!(stage(function), expected, "{function}");
        }
    }

    #[test]
    fn who_copies_out_of_the_system_is_the_receiver_and_who_copies_nothing_is_neither() {
        let process = |functions: &[(&str, u64)]| functions.iter().map(|&(name, count)| (name.to_owned(), count)).collect();
        let processes = BTreeMap::from([
            (1, process(&[("_copy_from_iter", 6), ("segstream_net::x", 4)])),
            (2, process(&[("_copy_to_iter", 5), ("_copy_from_iter", 1)])),
            (3, process(&[("segstream::y", 100)])),
        ]);
        let [sender, receiver] = ends(&processes, f64::from(1_000_000));
        assert_eq!((sender.total_ns, receiver.total_ns), (5.0, 3.0));
        assert_eq!(sender.stages["driver and application"], 2.0);
    }
}
