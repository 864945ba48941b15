//! The settings of an endpoint, with the names of the library and the command.
//!
//! Made by `segstream/_settings.py`, used when an endpoint is opened. Numbers and switches come by name, so that a new one is a line here
//! and a line there.
//!
//! Invariant: as in the library, everything is encrypted and no peer is served unless the caller says otherwise.

use crate::admission::{Admission, fingerprint};
use crate::contract::seconds;
use crate::errors::Fault;
use pyo3::prelude::*;
use segstream::recorder::{Recorder, Records};
use segstream::{Algorithm, Authorities, Bandwidth, Builder, Class, Config, DatagramSize, Endpoint, KeyLog, Rate};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

/// The settings of an endpoint.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Settings<'py> {
    identity: Option<PathBuf>,
    allow: Vec<String>,
    admission: Option<Bound<'py, Admission>>,
    authorities: Option<PathBuf>,
    key_log: Option<PathBuf>,
    qlog: Option<PathBuf>,
    loss_log: Option<PathBuf>,
    rate: RateArgument,
    congestion: Option<String>,
    coding: Option<String>,
    times: Vec<(String, f64)>,
    numbers: Vec<(String, u64)>,
    switches: Vec<(String, bool)>,
}

/// `auto`, `unpaced`, or a rate in bit/s.
#[derive(FromPyObject)]
pub(crate) enum RateArgument {
    Fixed(f64),
    Word(String),
}

impl RateArgument {
    /// The rate, under this congestion controller if it is controlled.
    pub(crate) fn read(self, congestion: Option<&str>) -> Result<Rate, Fault> {
        let wrong = |given: String| Fault::Usage(format!("rate={given} is no rate; give bit/s above 0, 'auto' or 'unpaced'"));
        let rate = match self {
            Self::Fixed(rate) if rate.is_finite() && rate >= 1.0 => Rate::smooth(Bandwidth::from_bits_per_second(rate as u64)),
            Self::Fixed(rate) => return Err(wrong(rate.to_string())),
            Self::Word(word) if word == "auto" => Rate::AUTO,
            Self::Word(word) if word == "unpaced" => Rate::Unpaced,
            Self::Word(word) => return Err(wrong(format!("'{word}'"))),
        };
        match congestion {
            None => Ok(rate),
            Some(_) if !rate.is_auto() => Err(Fault::Usage("a congestion controller needs rate='auto'".to_owned())),
            Some(name) => Ok(rate.under(Algorithm::offered(name).map_err(|error| Fault::Usage(error.to_string()))?)),
        }
    }
}

/// A host and a port.
pub(crate) fn address(text: &str) -> Result<SocketAddr, Fault> {
    let refused = |why: String| Fault::Usage(format!("'{text}' is no address ({why}); give HOST:PORT as in 127.0.0.1:9000"));
    let mut found = text.to_socket_addrs().map_err(|error| refused(error.to_string()))?;
    found.next().ok_or_else(|| refused("the name has no address".to_owned()))
}

/// Root certificates in a file.
pub(crate) fn authorities(path: &std::path::Path) -> Result<Authorities, Fault> {
    Authorities::load(path).map_err(|error| Fault::Usage(error.to_string()))
}

fn within(name: &str, value: u64, least: u64, most: u64) -> Result<u64, Fault> {
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    Err(Fault::Usage(format!("{name}={value} is not possible; give {least} to {most}")))
}

fn unknown(name: &str) -> Fault {
    Fault::Usage(format!("there is no setting '{name}'; the documentation lists them"))
}

fn set_number(config: &mut Config, name: &str, value: u64) -> Result<(), Fault> {
    let count = |name, value| within(name, value, 0, u64::from(u32::MAX)).map(|value| value as u32);
    match name {
        "class_" => config.class = Class::new(within(name, value, 0, 7)? as u8).unwrap_or(Class::ALL),
        "datagram_bytes" => config.datagram_bytes = DatagramSize::Fixed(within(name, value, 1200, 65_507)? as usize),
        "streams_max" => config.streams = count(name, value)?,
        "stream_window_bytes" => config.stream_window_bytes = within(name, value, 1, u64::MAX)?,
        "connection_window_bytes" => config.connection_window_bytes = within(name, value, 1, u64::MAX)?,
        "memory_bytes" => config.memory_bytes = within(name, value, 1, u64::MAX)?,
        "memory_bytes_per_peer" => config.memory_bytes_per_peer = within(name, value, 1, u64::MAX)?,
        "connections" => config.connections = count(name, value)? as usize,
        "connections_per_peer" => config.connections_per_peer = count(name, value)? as usize,
        "setups" => config.setups = count(name, value)? as usize,
        "setups_per_host" => config.setups_per_host = count(name, value)? as usize,
        "handshakes_per_second" => config.handshakes_per_second = count(name, value)?,
        "reorder" => config.reorder = within(name, value, 0, 256)? as u32,
        "socket_buffer_bytes" => config.socket_buffer_bytes = within(name, value, 0, i32::MAX as u64)? as usize,
        _ => return Err(unknown(name)),
    }
    Ok(())
}

fn switch_of<'c>(config: &'c mut Config, name: &str) -> Option<&'c mut bool> {
    Some(match name {
        "unlimited" => &mut config.unlimited,
        "careful_resume" => &mut config.careful_resume,
        "circuit_breaker" => &mut config.circuit_breaker,
        "confirms" => &mut config.confirms,
        "offload" => &mut config.offload,
        _ => return None,
    })
}

impl Settings<'_> {
    /// As a builder of the library, and the recorder if files are to be written.
    pub(crate) fn builder(self) -> Result<(Builder<Endpoint>, Option<Recorder>), Fault> {
        let mut config = Config { rate: self.rate.read(self.congestion.as_deref())?, ..Config::default() };
        if let Some(coding) = self.coding {
            config.coding = coding.parse().map_err(|error: segstream::ParseCodingError| Fault::Usage(error.to_string()))?;
        }
        for (name, value) in self.times {
            match name.as_str() {
                "idle_timeout" => config.idle_timeout = seconds(&name, value)?,
                "connect_timeout" => config.connect_timeout = seconds(&name, value)?,
                _ => return Err(unknown(&name)),
            }
        }
        self.numbers.iter().try_for_each(|(name, value)| set_number(&mut config, name, *value))?;
        let mut builder = Endpoint::builder();
        for (name, on) in self.switches {
            builder = match name.as_str() {
                "allow_anyone" if on => builder.allow_anyone(),
                "insecure" if on => builder.insecure(),
                "allow_anyone" | "insecure" => builder,
                _ => {
                    *switch_of(&mut config, &name).ok_or_else(|| unknown(&name))? = on;
                    builder
                }
            };
        }
        builder = builder.config(config);
        if let Some(admission) = self.admission {
            if !self.allow.is_empty() {
                return Err(Fault::Usage("give allow or admission; an admission has a method allow".to_owned()));
            }
            builder = builder.admission(admission.get().shared().clone());
        }
        for peer in &self.allow {
            builder = builder.allow(fingerprint(peer)?);
        }
        if let Some(path) = self.identity {
            builder = builder.identity_file(path);
        }
        if let Some(path) = self.authorities {
            builder = builder.authorities(authorities(&path)?);
        }
        if let Some(path) = self.key_log {
            builder = builder.key_log(KeyLog::open(&path).map_err(|error| Fault::Library(error.into()))?);
        }
        let recorder = recorder(self.qlog, self.loss_log)?;
        Ok(match &recorder {
            Some(recorder) => (builder.record(recorder.clone()), Some(recorder.clone())),
            None => (builder, None),
        })
    }
}

fn recorder(qlog: Option<PathBuf>, loss_log: Option<PathBuf>) -> Result<Option<Recorder>, Fault> {
    if qlog.is_none() && loss_log.is_none() {
        return Ok(None);
    }
    let mut records = Records::default();
    (records.qlog, records.loss_log) = (qlog, loss_log);
    Recorder::start(&records).map(Some).map_err(|error| Fault::Library(error.into()))
}
