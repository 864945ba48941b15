//! The transports, the losses and the workloads that are measured.
//!
//! Called by [`super::run`].
//!
//! Invariant: all seeds of a cell come last, so that a run that is ended has every transport with the first seeds.

use anyhow::{Result, bail};
use std::fmt;

/// The path without its loss: 100 Mbit/s, 60 ms, and a queue of one bandwidth-delay product, which is the default.
const LINK: [&str; 4] = ["--bandwidth", "100mbit", "--rtt", "60ms"];

/// Segments of 256 KiB due every 26.2144 ms are 80 Mbit/s.
pub(super) const SEGMENTS: u64 = 600;
pub(super) const WARM_UP: u64 = 100;
pub(super) const INTERVAL_US: f64 = 26214.4;
const SEGMENT_BYTES: u64 = 256 << 10;

/// A transport as it is measured.
#[derive(Debug)]
pub(super) struct Contender {
    pub(super) name: &'static str,
    /// Whether it is an end of `segstream bench`, not of the program of the peers.
    pub(super) is_ours: bool,
    /// Its name at that program.
    pub(super) transport: &'static str,
    /// Its own flags.
    pub(super) flags: &'static [&'static str],
    /// Whether it can do `bulk`.
    does_bulk: bool,
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Segments that are due at fixed times.
    Schedule,
    /// As much as goes through.
    Bulk,
}

/// Loss of packets, in both directions and before the bottleneck.
#[derive(Debug)]
pub(super) struct Loss {
    pub(super) name: &'static str,
    spec: &'static str,
}

/// One measurement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    pub(super) work: Work,
    pub(super) contender: &'static Contender,
    pub(super) loss: &'static Loss,
    pub(super) seed: u64,
    /// How long `bulk` lasts.
    pub(super) seconds: u32,
}

/// What a path of 1500 bytes carries, as the others find out.
const DATAGRAM_BYTES: &str = "1472";

const fn ours(name: &'static str, transport: &'static str, flags: &'static [&'static str]) -> Contender {
    Contender { name, is_ours: true, transport, flags, does_bulk: true }
}

const fn peer(name: &'static str, transport: &'static str, flags: &'static [&'static str]) -> Contender {
    Contender { name, is_ours: false, transport, flags, does_bulk: true }
}

impl Contender {
    const fn schedule_only(mut self) -> Self {
        self.does_bulk = false;
        self
    }
}

/// All transports, in the order of the table.
pub(super) const CONTENDERS: &[Contender] = &[
    ours("plain", "plain", &["--rate", "auto", "--datagram-bytes", DATAGRAM_BYTES]),
    ours("encrypted", "encrypted", &["--rate", "auto", "--datagram-bytes", DATAGRAM_BYTES]),
    // Of the 256 units of a segment 32 may be missing, never more than 3 in a row.
    ours("tolerant", "encrypted", &["--rate", "auto", "--tolerance", "256,32,3"]).schedule_only(),
    // A rate that was agreed on beforehand: nearly all of the link.
    ours("encrypted-fixed", "encrypted", &["--rate", "97000000", "--datagram-bytes", DATAGRAM_BYTES]).schedule_only(),
    ours("tolerant-fixed", "encrypted", &["--rate", "97000000", "--tolerance", "256,32,3"]).schedule_only(),
    peer("quinn-cubic", "quinn", &["--congestion", "cubic"]),
    peer("quinn-bbr", "quinn", &["--congestion", "bbr"]),
    peer("s2n-quic", "s2n-quic", &[]),
    peer("tcp-cubic", "tcp", &["--congestion", "cubic"]),
    peer("tcp-bbr", "tcp", &["--congestion", "bbr"]),
    peer("udt", "udt", &[]),
    peer("srt-file", "srt", &[]),
    peer("srt-live-120", "srt", &["--latency-ms", "120"]).schedule_only(),
    peer("srt-live-240", "srt", &["--latency-ms", "240"]).schedule_only(),
];

/// Every loss, in the order of the table.
pub(super) const LOSSES: &[Loss] = &[
    Loss { name: "0", spec: "none" },
    Loss { name: "1e-4", spec: "random:1e-4" },
    Loss { name: "1e-3", spec: "random:1e-3" },
    Loss { name: "1e-2", spec: "random:1e-2" },
    Loss { name: "1e-1", spec: "random:1e-1" },
    Loss { name: "1e-2b8", spec: "gilbert:rate=1%,burst=8" },
];

/// Both, in the order of the tables.
pub(super) const WORKS: [Work; 2] = [Work::Schedule, Work::Bulk];

impl Work {
    /// As it is named on the command line and in the file.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Schedule => "schedule",
            Self::Bulk => "bulk",
        }
    }
}

impl Cell {
    /// The flags of the link.
    pub(super) fn link(&self) -> Vec<String> {
        let seed = self.seed.to_string();
        let own = ["--loss", self.loss.spec, "--loss-back", self.loss.spec, "--seed", &seed];
        LINK.iter().chain(&own).map(|&word| word.to_owned()).collect()
    }

    /// The flags of both ends.
    pub(super) fn flags(&self) -> Vec<String> {
        let work = match self.work {
            Work::Schedule => format!(
                "--workload schedule --segment-bytes {SEGMENT_BYTES} --count {SEGMENTS} --interval-us {INTERVAL_US} --warm-up {WARM_UP}"
            ),
            Work::Bulk => format!("--workload throughput --seconds {}", self.seconds),
        };
        work.split(' ').chain(self.contender.flags.iter().copied()).map(str::to_owned).collect()
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} at loss {}, seed {}", self.work.name(), self.contender.name, self.loss.name, self.seed)
    }
}

/// The measurements that were asked for; of all transports, workloads and losses where none is named.
pub(super) fn cells(only: &[String], losses: &[String], seeds: u64, seconds: u32) -> Result<Vec<Cell>> {
    let transports: Vec<&str> = CONTENDERS.iter().map(|contender| contender.name).collect();
    let works = WORKS.map(Work::name);
    if let Some(name) = only.iter().find(|name| !transports.contains(&name.as_str()) && !works.contains(&name.as_str())) {
        bail!("there is no transport or workload {name}; choose of {}, {}", transports.join(", "), works.join(", "));
    }
    let names: Vec<&str> = LOSSES.iter().map(|loss| loss.name).collect();
    if let Some(name) = losses.iter().find(|name| !names.contains(&name.as_str())) {
        bail!("there is no loss {name}; choose of {}", names.join(", "));
    }
    let among = |name: &str, known: &[&str]| {
        let mut named = only.iter().filter(|only| known.contains(&only.as_str())).peekable();
        named.peek().is_none() || named.any(|only| only == name)
    };
    let mut cells = Vec::new();
    for seed in 1..=seeds {
        for work in WORKS.into_iter().filter(|work| among(work.name(), &works)) {
            for loss in LOSSES.iter().filter(|loss| losses.is_empty() || losses.iter().any(|name| name == loss.name)) {
                let chosen = CONTENDERS.iter().filter(|contender| among(contender.name, &transports));
                let able = chosen.filter(|contender| work == Work::Schedule || contender.does_bulk);
                cells.extend(able.map(|contender| Cell { work, contender, loss, seed, seconds }));
            }
        }
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(only: &[&str], losses: &[&str]) -> Result<Vec<String>> {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        Ok(cells(&owned(only), &owned(losses), 2, 12)?.iter().map(Cell::to_string).collect())
    }

    #[test]
    fn what_is_not_named_is_not_narrowed() {
        let able = CONTENDERS.iter().filter(|contender| contender.does_bulk).count();
        assert_eq!(named(&[], &[]).unwrap().len(), 2 * LOSSES.len() * (CONTENDERS.len() + able));
        assert_eq!(named(&["bulk"], &["0"]).unwrap().len(), 2 * able);
        assert_eq!(
            named(&["udt", "bulk"], &["1e-2b8"]).unwrap(),
            ["bulk of udt at loss 1e-2b8, seed 1", "bulk of udt at loss 1e-2b8, seed 2"]
        );
    }

    #[test]
    fn unknown_names_are_refused_with_the_list() {
        assert!(named(&["ucp"], &[]).unwrap_err().to_string().contains("tcp-bbr"));
        assert!(named(&[], &["0.5"]).unwrap_err().to_string().contains("1e-2b8"));
    }

    #[test]
    fn the_load_is_eighty_megabits_a_second() {
        assert!((SEGMENT_BYTES as f64 * 8e6 / INTERVAL_US - 80e6).abs() < 1.0);
    }
}
