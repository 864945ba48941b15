//! The endpoint under attack, in a process of its own: it serves the configured peers, and checks what it receives.
//!
//! Started by [`crate::process`] as `segstream-siege victim`. The endpoint that applications use, with its own limits, or
//! with those of set-up taken away, which shows that the suite finds a missing limit.
//!
//! Invariant: everything a peer sends is received, checked and counted; nothing is kept but counters.

use crate::messages::{Hello, Report, Request};
use crate::pattern::pattern;
use crate::requests::{Requests, say};
use crate::resource_usage::ResourceUsage;
use segstream::blocking::Endpoint;
use segstream::{Admission, Config, ConnectionEvent, ConnectionId, Contract, Identity, InterleaveChoice, Timestamp};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// Units of one byte of the large segment that it sends, and small segments.
pub(crate) const LARGE_UNITS: u32 = 1 << 18;
pub(crate) const SMALL_SEGMENTS: u32 = 16_384;

/// How the victim is set.
#[derive(Clone, Debug, clap::Args)]
#[command(args_override_self = true)]
pub struct Settings {
    /// Everyone is served.
    #[arg(long)]
    pub anyone: bool,
    /// The most connections.
    #[arg(long, default_value_t = Config::default().connections)]
    pub connections: usize,
    /// How long a connection is tried, in seconds.
    #[arg(long, default_value_t = 10)]
    pub connect_timeout: u64,
    /// Whether it sends too: on each connection a large segment of small units, and many small ones.
    #[arg(long)]
    pub talks: bool,
    /// Whether the limits of set-up are taken away.
    #[arg(long)]
    pub unlimited_setups: bool,
}

impl Settings {
    pub(crate) fn admission(&self) -> Admission {
        if self.anyone { Admission::anyone() } else { Admission::nobody() }
    }
}

/// Any port of this machine.
pub(crate) fn any() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

/// Serves until it is asked to end.
///
/// # Errors
/// What the library says.
pub fn run(settings: &Settings) -> anyhow::Result<()> {
    let admission = settings.admission();
    let identity = Identity::generate()?;
    let key = identity.fingerprint().to_string();
    let connect_timeout = Duration::from_secs(settings.connect_timeout);
    let config = Config { connections: settings.connections, connect_timeout, ..Config::default() };
    let config = if settings.unlimited_setups {
        let (setups, setups_per_host) = (usize::MAX, usize::MAX);
        Config { connections: usize::MAX, setups, setups_per_host, handshakes_per_second: u32::MAX, ..config }
    } else {
        config
    };
    let endpoint = Endpoint::builder().config(config).identity(identity).admission(admission.clone()).listen(any())?;
    let requests = Requests::listen(endpoint.waker());
    say(&Hello { address: endpoint.local_addr(), key })?;
    let mut victim = Victim { endpoint, here: BTreeSet::new(), report: Report::default(), talks: settings.talks };
    loop {
        while let Some(request) = requests.next() {
            match request {
                Request::End => return Ok(()),
                Request::Admit(key) => admission.allow(key.parse()?),
                Request::Report | Request::SendTo(_) => {}
            }
            say(&victim.report())?;
        }
        if let Some((id, event)) = victim.endpoint.wait(Some(Duration::from_millis(500)))? {
            victim.hear(id, &event);
        }
    }
}

struct Victim {
    endpoint: Endpoint,
    here: BTreeSet<ConnectionId>,
    report: Report,
    talks: bool,
}

impl Victim {
    fn hear(&mut self, id: ConnectionId, event: &ConnectionEvent) {
        match event {
            ConnectionEvent::Connected => {
                self.here.insert(id);
                self.report.connected += 1;
                if self.talks {
                    self.talk(id);
                }
            }
            ConnectionEvent::Readable(stream) => {
                while let Some(received) = self.endpoint.connection(id).try_recv(*stream) {
                    if received.bytes == pattern(received.segment.0, received.bytes.len()) {
                        self.report.segments_right += 1;
                        self.report.bytes_right += received.bytes.len() as u64;
                    } else {
                        self.report.segments_wrong += 1;
                    }
                }
            }
            ConnectionEvent::Closed(_) => {
                self.report = self.with(self.report.clone(), id);
                self.here.remove(&id);
                self.endpoint.release(id);
            }
            _ => {}
        }
    }

    /// Sends what a hostile receiver can ask for again and again.
    fn talk(&mut self, id: ConnectionId) {
        let mut connection = self.endpoint.connection(id);
        let large = Contract {
            unit_bytes: 1,
            window_units: LARGE_UNITS,
            window_segments: 16,
            interleave: InterleaveChoice::Off,
            ..Contract::default()
        };
        let small = Contract { unit_bytes: 1, window_units: SMALL_SEGMENTS, window_segments: SMALL_SEGMENTS, ..Contract::default() };
        let (Ok(large), Ok(small)) = (connection.open_stream(large), connection.open_stream(small)) else { return };
        // Why ignored: what does not fit is not sent, and the attack goes on with what is.
        let _ = connection.try_send(large, vec![0; LARGE_UNITS as usize].into(), Timestamp::ZERO, None);
        for _ in 0..SMALL_SEGMENTS {
            let _ = connection.try_send(small, vec![0; 1].into(), Timestamp::ZERO, None);
        }
    }

    /// The report with the counters of a connection.
    fn with(&mut self, mut report: Report, id: ConnectionId) -> Report {
        if let Ok(statistics) = self.endpoint.connection(id).statistics() {
            report.authentication_failures += statistics.authentication_failures;
            report.duplicates += statistics.shipments_duplicate;
            report.malformed += statistics.shipments_malformed;
        }
        report
    }

    fn report(&mut self) -> Report {
        let mut report = self.report.clone();
        for id in self.here.clone() {
            report = self.with(report, id);
        }
        Report { spent: ResourceUsage::read(), unmatched: self.endpoint.unmatched(), connections: self.here.len() as u64, ..report }
    }
}
