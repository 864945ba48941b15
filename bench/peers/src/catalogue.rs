//! The transports: their versions, whether they encrypt, and with which settings they are measured.
//!
//! Called by [`crate::end`]; printed by `end --list`.
//!
//! Invariant: every transport that was ever compared with is listed, available or not, and why not.

use crate::foreign::{self, Foreign};
use anyhow::{Result, anyhow};
use serde::Serialize;
use std::io::Write as _;

/// A transport.
#[derive(Debug)]
pub(crate) struct Transport {
    pub(crate) name: &'static str,
    encrypts: bool,
    settings: &'static str,
    /// Its version where it is a crate, or comes with one.
    version: &'static str,
    /// Its program where it is one.
    pub(crate) foreign: Option<&'static Foreign>,
    /// Why this program cannot measure it; empty if it can.
    pub(crate) why_not: &'static str,
}

const RUST: Transport = Transport { name: "", encrypts: false, settings: "", version: "", foreign: None, why_not: "" };

/// The version of Aeron that the crates of rusteron bring along.
const AERON: &str = "1.54.0";
/// What has to be done for Aeron.
const WITHOUT_AERON: &str = "this was built without it: run bench/peers/install.sh --aeron, which says what it needs, then build again with \
                             --features aeron";

const TRANSPORTS: &[Transport] = &[
    Transport {
        name: "tcp",
        settings: "TCP_NODELAY, buffers sized by the kernel up to the system's tcp_rmem and tcp_wmem, --congestion cubic or bbr, segments \
                   with a length before them on one connection",
        ..RUST
    },
    Transport {
        name: "quinn",
        encrypts: true,
        settings: "rustls with ring, AES-128-GCM, windows of 16 MiB a stream and 32 MiB a connection, socket buffers of 4 MiB, MTU \
                   discovery to 1452, --congestion cubic (its default) or bbr, one thread, a stream for each segment with older ones first",
        version: "0.11.12",
        ..RUST
    },
    Transport {
        name: "s2n-quic",
        encrypts: true,
        settings: "s2n-tls, windows of 16 MiB a stream and 32 MiB a connection, send buffer and socket buffers of 16 MiB and 4 MiB, MTU \
                   discovery to 1500, --congestion cubic (its default) or bbr, one thread, a stream for each segment without priorities",
        version: "1.91.0",
        ..RUST
    },
    Transport {
        name: "kcp",
        settings: "stream mode, nodelay (1, 10, 2, 1), which has no congestion control, windows of 1024 packets, datagrams of 1200 bytes, \
                   socket buffers of 4 MiB",
        version: "0.5.3",
        ..RUST
    },
    Transport {
        name: "srt",
        settings: "file mode as a stream, and with messages for segments; live mode with --latency-ms: packets of 1456 bytes, no limit of \
                   bandwidth, a packet filter with --filter; flow window of 65536 packets, buffers of 48 MB, UDP buffers of 4 MiB",
        foreign: Some(&foreign::SRT),
        ..RUST
    },
    Transport {
        name: "srt-aes",
        encrypts: true,
        settings: "as srt, with a passphrase and AES-128 in counter mode, which does not authenticate",
        foreign: Some(&foreign::SRT_AES),
        ..RUST
    },
    Transport {
        name: "udt",
        settings: "a stream, and messages without expiry or order for segments; flow window of 100000 packets, buffers of 100 MB, UDP \
                   buffers of 4 MiB, packets of 1500 bytes",
        foreign: Some(&foreign::UDT),
        ..RUST
    },
    Transport {
        name: "enet",
        settings: "reliable packets on one channel, its default window of 64 KiB, throttle kept open, at most 4 MiB queued",
        foreign: Some(&foreign::ENET),
        ..RUST
    },
    Transport {
        name: "aeron",
        settings: "Aeron's C client and C media driver, a driver in the process of each end on one thread (SHARED) that backs off when idle \
                   or, with --spin, yields; two UDP channels, terms of 64 MiB made beforehand, socket buffers of 4 MiB, --window-bytes \
                   (4 MiB), datagrams of 1408 bytes, 16 a system call, 256 repetitions at once, no congestion control (its default). On \
                   two processors each end's client and driver share a core, where Aeron wants a core for each that it may spin on: it \
                   is not at home here",
        version: AERON,
        why_not: if cfg!(feature = "aeron") { "" } else { WITHOUT_AERON },
        ..RUST
    },
];

/// A line of the list.
#[derive(Debug, Serialize)]
struct Listed {
    name: &'static str,
    version: String,
    encrypts: bool,
    settings: &'static str,
    available: bool,
    why: String,
}

/// The transport of this name.
pub(crate) fn find(name: &str) -> Result<&'static Transport> {
    let names: Vec<&str> = TRANSPORTS.iter().map(|transport| transport.name).collect();
    let found = TRANSPORTS.iter().find(|transport| transport.name == name);
    found.ok_or_else(|| anyhow!("there is no transport {name}; choose one of {}", names.join(", ")))
}

/// Prints the list.
pub(crate) fn print(json: bool) -> Result<()> {
    let listed: Vec<Listed> = TRANSPORTS.iter().map(Transport::listed).collect();
    let mut out = std::io::stdout().lock();
    if json {
        serde_json::to_writer(&mut out, &listed)?;
        return Ok(writeln!(out)?);
    }
    for Listed { name, version, encrypts, settings, available, why } in listed {
        let encrypts = if encrypts { ", encrypts" } else { "" };
        let what = if available { settings } else { &why };
        writeln!(out, "{name} {version}{encrypts}\n    {what}")?;
    }
    Ok(())
}

impl Transport {
    fn listed(&self) -> Listed {
        let version = match self.foreign {
            _ if !self.why_not.is_empty() => Err(anyhow!(self.why_not)),
            Some(foreign) => foreign.version(),
            None if self.version.is_empty() => Ok(kernel()),
            None => Ok(self.version.to_owned()),
        };
        let (available, why) = (version.is_ok(), version.as_ref().err().map(|error| format!("{error:#}")).unwrap_or_default());
        let Self { name, encrypts, settings, .. } = *self;
        Listed { name, version: version.unwrap_or_default(), encrypts, settings, available, why }
    }
}

fn kernel() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{} {}", std::env::consts::OS, release.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_told_are_versions_built() {
        let manifest = include_str!("../Cargo.toml");
        // Aeron's is not its crates' version, and asked for below.
        for transport in TRANSPORTS.iter().filter(|transport| !["", AERON].contains(&transport.version)) {
            let line = manifest.lines().find(|line| line.starts_with(&format!("{} = ", transport.name))).unwrap();
            assert!(line.contains(&format!("\"={}\"", transport.version)), "{line}");
        }
        #[cfg(feature = "aeron")]
        assert_eq!(rusteron_client::Aeron::version_text(), AERON);
    }
}
