//! The settings of an endpoint, by name: the names of Rust's `Config` and builder, with the measure at the end.
//!
//! Called by C programs before `segstream_bind` and `segstream_listen`.
//!
//! Invariant: a new setting needs no new function, so that the interface stays as it is.

use crate::arguments::{self, Out};
use crate::failure::{Failure, guarded};
use crate::status::segstream_status::{self, *};
use segstream::recorder::{Recorder, Records};
use segstream::{Algorithm, Authorities, Bandwidth, Builder, Class, Coding, Config, DatagramSize, Fingerprint, KeyLog, Polling, Rate};
use std::ffi::c_char;
use std::path::Path;
use std::time::Duration;

/// The settings of an endpoint.
#[derive(Clone, Default)]
pub struct segstream_options {
    config: Config,
    identity_file: Option<String>,
    authorities: Option<Authorities>,
    key_log: Option<KeyLog>,
    records: Records,
    allowed: Vec<Fingerprint>,
    allow_anyone: bool,
    insecure: bool,
    background: bool,
}

impl segstream_options {
    /// A builder with these settings.
    pub(crate) fn builder<E>(&self, builder: Builder<E>, recorder: Option<Recorder>) -> Builder<E> {
        let mut builder = builder.config(self.config.clone());
        if let Some(recorder) = recorder {
            builder = builder.record(recorder);
        }
        if let Some(authorities) = &self.authorities {
            builder = builder.authorities(authorities.clone());
        }
        if let Some(key_log) = &self.key_log {
            builder = builder.key_log(key_log.clone());
        }
        if let Some(path) = &self.identity_file {
            builder = builder.identity_file(path);
        }
        if self.allow_anyone {
            builder = builder.allow_anyone();
        }
        if self.insecure {
            builder = builder.insecure();
        }
        self.allowed.iter().fold(builder, |builder, peer| builder.allow(*peer))
    }

    /// What writes the files that were asked for; `None` if none were.
    pub(crate) fn recorder(&self) -> Result<Option<Recorder>, Failure> {
        if self.records == Records::default() {
            return Ok(None);
        }
        let started = Recorder::start(&self.records);
        started.map(Some).map_err(|error| Failure::new(SEGSTREAM_SYSTEM, format!("qlog or loss_log cannot be written: {error}")))
    }

    /// Whether a thread shall drive the endpoint.
    pub(crate) const fn in_background(&self) -> bool {
        self.background
    }

    fn set_integer(&mut self, name: &str, value: u64) -> Result<(), Failure> {
        let config = &mut self.config;
        match name {
            "rate_bps" => config.rate = Rate::smooth(Bandwidth::from_bits_per_second(above_zero(name, value)?)),
            "datagram_bytes" => config.datagram_bytes = DatagramSize::Fixed(within(name, value, 1200, 65_507)? as usize),
            "class" => config.class = Class::new(within(name, value, 0, 7)? as u8).unwrap_or(Class::ALL),
            "careful_resume" => config.careful_resume = flag(name, value)?,
            "circuit_breaker" => config.circuit_breaker = flag(name, value)?,
            "unlimited" => config.unlimited = flag(name, value)?,
            "offload" => config.offload = flag(name, value)?,
            "confirms" => config.confirms = flag(name, value)?,
            "idle_timeout_ms" => config.idle_timeout = Duration::from_millis(within(name, value, 1000, u64::from(u32::MAX))?),
            "connect_timeout_ms" => config.connect_timeout = Duration::from_millis(within(name, value, 1, u64::from(u32::MAX))?),
            "streams" => config.streams = count(name, value)?,
            "stream_window_bytes" => config.stream_window_bytes = above_zero(name, value)?,
            "connection_window_bytes" => config.connection_window_bytes = above_zero(name, value)?,
            "memory_bytes" => config.memory_bytes = above_zero(name, value)?,
            "memory_bytes_per_peer" => config.memory_bytes_per_peer = above_zero(name, value)?,
            "connections" => config.connections = count(name, value)? as usize,
            "connections_per_peer" => config.connections_per_peer = count(name, value)? as usize,
            "setups" => config.setups = count(name, value)? as usize,
            "setups_per_host" => config.setups_per_host = count(name, value)? as usize,
            "handshakes_per_second" => config.handshakes_per_second = count(name, value)?,
            "reorder" => config.reorder = within(name, value, 0, 256)? as u32,
            "socket_buffer_bytes" => config.socket_buffer_bytes = within(name, value, 0, i32::MAX as u64)? as usize,
            "allow_anyone" => self.allow_anyone = flag(name, value)?,
            "insecure" => self.insecure = flag(name, value)?,
            "background" => self.background = flag(name, value)?,
            "identity_file" | "allow" | "congestion" | "coding" | "polling" | "authorities" | "key_log" | "qlog" | "loss_log" => {
                return Err(Failure::argument(format!("{name} is a text; use segstream_options_set_text")));
            }
            _ => return Err(unknown(name)),
        }
        Ok(())
    }

    fn set_text(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        match name {
            "identity_file" => self.identity_file = Some(value.to_owned()),
            "allow" => self.allowed.push(value.parse().map_err(|wrong: FingerprintError| Failure::argument(wrong.to_string()))?),
            "congestion" => {
                let algorithm = Algorithm::offered(value).map_err(|wrong| Failure::argument(wrong.to_string()))?;
                self.config = self.config.clone().with_congestion(algorithm);
            }
            "coding" => {
                self.config.coding = value.parse::<Coding>().map_err(|wrong| Failure::argument(wrong.to_string()))?;
            }
            "authorities" => {
                let loaded = Authorities::load(Path::new(value));
                self.authorities = Some(loaded.map_err(|wrong| Failure::new(SEGSTREAM_IDENTITY, wrong.to_string()))?);
            }
            "key_log" => {
                let opened = KeyLog::open(Path::new(value));
                self.key_log = Some(opened.map_err(|error| Failure::new(SEGSTREAM_SYSTEM, format!("{value} cannot be opened: {error}")))?);
            }
            "qlog" => self.records.qlog = Some(value.into()),
            "loss_log" => self.records.loss_log = Some(value.into()),
            "polling" => {
                self.config.polling = match value {
                    "blocking" => Polling::Blocking,
                    "brief" => Polling::Brief,
                    "adaptive" => Polling::Adaptive,
                    _ => return Err(Failure::argument(format!("\"{value}\" is no polling; give blocking, brief or adaptive"))),
                }
            }
            _ => return Err(unknown(name)),
        }
        Ok(())
    }
}

/// Why a text is no fingerprint.
type FingerprintError = <Fingerprint as std::str::FromStr>::Err;

fn unknown(name: &str) -> Failure {
    Failure::argument(format!("there is no setting \"{name}\"; segstream.h lists them at segstream_options_set"))
}

fn within(name: &str, value: u64, least: u64, most: u64) -> Result<u64, Failure> {
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    Err(Failure::argument(format!("{name} cannot be {value}; give {least} to {most}")))
}

fn above_zero(name: &str, value: u64) -> Result<u64, Failure> {
    within(name, value, 1, u64::MAX)
}

fn count(name: &str, value: u64) -> Result<u32, Failure> {
    Ok(within(name, value, 0, u64::from(u32::MAX))? as u32)
}

fn flag(name: &str, value: u64) -> Result<bool, Failure> {
    Ok(within(name, value, 0, 1)? == 1)
}

/// Makes settings with the values that are usual: encrypted, congestion-controlled, serving nobody. Free them with
/// segstream_options_free(), which may be done as soon as the endpoint exists.
///
/// # Safety
///
/// `options` is NULL or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_options_new(options: *mut *mut segstream_options) -> segstream_status {
    guarded(|| {
        // Safety: as this function's caller promises.
        let out = unsafe { Out::new(options, "options") }?;
        out.set(Box::into_raw(Box::default()));
        Ok(())
    })
}

/// Frees settings.
///
/// # Safety
///
/// `options` is NULL, or comes from segstream_options_new() and was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_options_free(options: *mut segstream_options) {
    let _ = guarded(|| {
        if !options.is_null() {
            // Safety: it came from a box, and the caller promises that it is freed once.
            drop(unsafe { Box::from_raw(options) });
        }
        Ok(())
    });
}

/// Sets a number. The names, what they count, and what they are otherwise:
///
/// ```text
/// rate_bps                a fixed rate in bit/s of whole IP packets        congestion-controlled
/// datagram_bytes          1200 to 65507                                    found on the path
/// class                   error control 4, flow control 2, rate control 1  7
/// careful_resume          0 or 1                                           1
/// circuit_breaker         0 or 1                                           1
/// unlimited               0 or 1: allow classes 0 and 4                    0
/// offload                 0 or 1: GSO and GRO                              1
/// idle_timeout_ms         at least 1000                                    10000
/// connect_timeout_ms      at least 1                                       10000
/// streams                 live streams of a peer on one connection         256
/// confirms                0 or 1: this end confirms what it receives       0
/// stream_window_bytes     the largest receive buffer of one stream         64 MiB
/// connection_window_bytes  those of one connection together                256 MiB
/// memory_bytes            what all peers together are granted              8 GiB
/// memory_bytes_per_peer   what the connections of one key are granted      4 GiB
/// connections             of this endpoint                                 1024
/// connections_per_peer    of those that peers begin                        256
/// setups                  of peers that are not authenticated yet          256
/// setups_per_host         of those from one address                        16
/// handshakes_per_second   that peers can start                             500
/// reorder                 the first reordering threshold, 0 to 256         3
/// socket_buffer_bytes     of the system's buffers, each                    8 MiB
/// allow_anyone            0 or 1: serve every peer                         0
/// insecure                0 or 1: plain mode, for laboratories             0
/// background              0 or 1: a thread of the library drives it        0
/// ```
///
/// # Safety
///
/// `options` comes from segstream_options_new(), is not freed, and is in no other call; `name` is a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_options_set(options: *mut segstream_options, name: *const c_char, value: u64) -> segstream_status {
    guarded(|| {
        // Safety: as this function's caller promises.
        let (options, name) = unsafe { (mutable(options)?, arguments::text(name, "name")?) };
        options.set_integer(name, value)
    })
}

/// Sets a text. The names:
///
/// ```text
/// identity_file   the file with this end's key (PKCS#8 in PEM), which is made if it is not there    a fresh key
/// allow           the fingerprint of a peer to serve, SHA256:...; add others by further calls         nobody
/// congestion      auto, reno, cubic, bbr or prague                                                  auto
/// coding          repair units: off, hedged or auto:latency=80ms,budget=10%                         hedged
/// authorities     a file of root certificates (PEM), for peers trusted by name                      none
/// key_log         a file for the secrets of connections: whoever has it can read them               none
/// qlog            a folder for a qlog of each connection, complete when the endpoint is freed       none
/// loss_log        a new file for the losses of the peers' streams, complete as qlog                 none
/// polling         blocking, brief or adaptive                                                       brief
/// ```
///
/// # Safety
///
/// `options` comes from segstream_options_new(), is not freed, and is in no other call; `name` and `value` are texts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_options_set_text(
    options: *mut segstream_options,
    name: *const c_char,
    value: *const c_char,
) -> segstream_status {
    guarded(|| {
        // Safety: as this function's caller promises.
        let (options, name, value) = unsafe { (mutable(options)?, arguments::text(name, "name")?, arguments::text(value, "value")?) };
        options.set_text(name, value)
    })
}

/// The settings behind a pointer.
///
/// # Safety
///
/// `options` is NULL, or valid and in no other call.
unsafe fn mutable<'a>(options: *mut segstream_options) -> Result<&'a mut segstream_options, Failure> {
    // Safety: as this function's caller promises.
    unsafe { options.as_mut() }.ok_or_else(|| Failure::argument("options is NULL; segstream_options_new makes some"))
}
