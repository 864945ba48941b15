//! The transports, the losses and the workloads that are measured.
//!
//! Called by [`super::run`].
//!
//! Invariant: all seeds of a cell come last, so that a run that is ended has every transport with the first seeds.

use anyhow::{Result, bail};
use std::fmt;
use std::time::Duration;

/// The path without its loss: 100 Mbit/s, 60 ms, and a queue of one bandwidth-delay product, which is the default.
const LINK: [&str; 4] = ["--bandwidth", "100mbit", "--rtt", "60ms"];

/// Segments of 256 KiB due every 26.2144 ms are 80 Mbit/s.
const SEGMENTS: u64 = 600;
const WARM_UP: u64 = 100;
/// The same of `live`. What is left out is longer, since an automatic rate finds the capacity in about five seconds.
const SEGMENTS_LIVE: u64 = 450;
const WARM_UP_LIVE: u64 = 200;
const INTERVAL_US: f64 = 26214.4;
/// The same at 60 % of the link, for losses whose repair and for packet filters whose sums need the rest.
const INTERVAL_60_US: f64 = 34952.5;
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
    /// What is measured of it.
    works: &'static [Work],
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Segments that are due at fixed times.
    Schedule,
    /// As much as goes through.
    Bulk,
    /// Segments that are due at fixed times, to those who send redundancy and beside those who do not.
    Live,
}

/// Loss of packets, in both directions and before the bottleneck.
#[derive(Debug)]
pub(super) struct Loss {
    pub(super) name: &'static str,
    spec: &'static str,
    /// How far apart segments are due.
    interval_us: f64,
    /// What is measured under it.
    works: &'static [Work],
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
    Contender { name, is_ours: true, transport, flags, works: &[Work::Schedule, Work::Bulk] }
}

const fn peer(name: &'static str, transport: &'static str, flags: &'static [&'static str]) -> Contender {
    Contender { name, is_ours: false, transport, flags, works: &[Work::Schedule, Work::Bulk] }
}

impl Contender {
    const fn only(mut self, works: &'static [Work]) -> Self {
        self.works = works;
        self
    }
}

const SCHEDULE: &[Work] = &[Work::Schedule];
const LIVE: &[Work] = &[Work::Live];
const SCHEDULE_LIVE: &[Work] = &[Work::Schedule, Work::Live];
const ALL: &[Work] = &WORKS;

/// All transports, in the order of the table.
pub(super) const CONTENDERS: &[Contender] = &[
    ours("plain", "plain", &["--rate", "auto", "--datagram-bytes", DATAGRAM_BYTES]),
    ours("encrypted", "encrypted", &["--rate", "auto", "--datagram-bytes", DATAGRAM_BYTES]),
    // Of the 256 units of a segment 32 may be missing, never more than 3 in a row.
    ours("tolerant", "encrypted", &["--rate", "auto", "--tolerance", "256,32,3"]).only(SCHEDULE),
    // A rate that was agreed on beforehand: nearly all of the link.
    ours("encrypted-fixed", "encrypted", &["--rate", "97000000", "--datagram-bytes", DATAGRAM_BYTES]).only(SCHEDULE),
    ours("tolerant-fixed", "encrypted", &["--rate", "97000000", "--tolerance", "256,32,3"]).only(SCHEDULE),
    // Units of 1024 bytes, one in a datagram; 20 % is the most that may be sent ahead, and not what is sent.
    ours("exact-97", "encrypted", &["--rate", "97000000", "--tolerance", "reliable", "--coding", "off"]).only(LIVE),
    ours("hedged-97", "encrypted", &["--rate", "97000000", "--tolerance", "reliable", "--coding", "hedged"]).only(LIVE),
    ours("coded-97", "encrypted", &["--rate", "97000000", "--tolerance", "reliable", "--coding", AHEAD]).only(LIVE),
    ours("coded-auto", "encrypted", &["--rate", "auto", "--tolerance", "reliable", "--coding", AHEAD]).only(LIVE),
    ours("tolerant-exact-97", "encrypted", &["--rate", "97000000", "--tolerance", "256,32,3", "--coding", "off"]).only(LIVE),
    ours("tolerant-coded-97", "encrypted", &["--rate", "97000000", "--tolerance", "256,32,3", "--coding", AHEAD]).only(LIVE),
    ours("tolerant-coded-auto", "encrypted", &["--rate", "auto", "--tolerance", "256,32,3", "--coding", AHEAD]).only(LIVE),
    peer("quinn-cubic", "quinn", &["--congestion", "cubic"]),
    peer("quinn-bbr", "quinn", &["--congestion", "bbr"]).only(ALL),
    peer("s2n-quic", "s2n-quic", &[]),
    peer("tcp-cubic", "tcp", &["--congestion", "cubic"]).only(ALL),
    peer("tcp-bbr", "tcp", &["--congestion", "bbr"]).only(ALL),
    peer("udt", "udt", &[]),
    peer("srt-file", "srt", &[]),
    peer("srt-live-120", "srt", &["--latency-ms", "120"]).only(SCHEDULE_LIVE),
    peer("srt-live-240", "srt", &["--latency-ms", "240"]).only(SCHEDULE_LIVE),
    // The sums of rows of ten and columns of five are 30 % of the packets.
    peer("srt-filter-120", "srt", &["--latency-ms", "120", "--filter", "10,5"]).only(LIVE),
    peer("srt-filter-240", "srt", &["--latency-ms", "240", "--filter", "10,5"]).only(LIVE),
];

/// Repair units ahead of any request.
const AHEAD: &str = "auto:latency=80ms,budget=20%";

const fn loss(name: &'static str, spec: &'static str, works: &'static [Work]) -> Loss {
    Loss { name, spec, interval_us: INTERVAL_US, works }
}

/// Every loss, in the order of the table.
pub(super) const LOSSES: &[Loss] = &[
    loss("0", "none", ALL),
    loss("1e-4", "random:1e-4", &[Work::Schedule, Work::Bulk]),
    loss("1e-3", "random:1e-3", ALL),
    loss("1e-2", "random:1e-2", ALL),
    loss("1e-1", "random:1e-1", ALL),
    loss("1e-2b8", "gilbert:rate=1%,burst=8", ALL),
    Loss { interval_us: INTERVAL_60_US, ..loss("1e-2@60", "random:1e-2", LIVE) },
    Loss { interval_us: INTERVAL_60_US, ..loss("1e-1@60", "random:1e-1", LIVE) },
    Loss { interval_us: INTERVAL_60_US, ..loss("1e-2b8@60", "gilbert:rate=1%,burst=8", LIVE) },
];

/// All, in the order of the tables.
pub(super) const WORKS: [Work; 3] = [Work::Schedule, Work::Bulk, Work::Live];

impl Work {
    /// As it is named on the command line and in the file.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Schedule => "schedule",
            Self::Bulk => "bulk",
            Self::Live => "live",
        }
    }

    /// How many segments there are.
    pub(super) const fn segments(self) -> u64 {
        match self {
            Self::Schedule | Self::Bulk => SEGMENTS,
            Self::Live => SEGMENTS_LIVE,
        }
    }

    /// How many segments are left out at first.
    pub(super) const fn warm_up(self) -> u64 {
        match self {
            Self::Schedule | Self::Bulk => WARM_UP,
            Self::Live => WARM_UP_LIVE,
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

    /// How long it takes if nothing is late.
    pub(super) fn time(&self) -> Duration {
        match self.work {
            Work::Schedule | Work::Live => Duration::from_secs_f64(self.work.segments() as f64 * self.loss.interval_us / 1e6),
            Work::Bulk => Duration::from_secs(u64::from(self.seconds)),
        }
    }

    /// The flags of both ends.
    pub(super) fn flags(&self) -> Vec<String> {
        let work = match self.work {
            Work::Schedule | Work::Live => format!(
                "--workload schedule --segment-bytes {SEGMENT_BYTES} --count {} --interval-us {} --warm-up {}",
                self.work.segments(),
                self.loss.interval_us,
                self.work.warm_up()
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
            let of_work = LOSSES.iter().filter(|loss| loss.works.contains(&work));
            for loss in of_work.filter(|loss| losses.is_empty() || losses.iter().any(|name| name == loss.name)) {
                let chosen = CONTENDERS.iter().filter(|contender| among(contender.name, &transports));
                let able = chosen.filter(|contender| contender.works.contains(&work));
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
        let of = |work| {
            let contenders = CONTENDERS.iter().filter(|contender| contender.works.contains(&work)).count();
            (contenders, contenders * LOSSES.iter().filter(|loss| loss.works.contains(&work)).count())
        };
        let all: usize = WORKS.iter().map(|&work| of(work).1).sum();
        assert_eq!(named(&[], &[]).unwrap().len(), 2 * all);
        assert_eq!(named(&["bulk"], &["0"]).unwrap().len(), 2 * of(Work::Bulk).0);
        assert_eq!(named(&["srt-filter-120"], &["1e-1@60"]).unwrap()[0], "live of srt-filter-120 at loss 1e-1@60, seed 1");
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
