//! A scenario as text: one line of JSON.
//!
//! Called by [`Scenario::canonical`] and [`Scenario::from_canonical`].
//!
//! Black box and workload stand in [`Record`]; the settings of the schemes stand where their descriptions say, so a new one is
//! not named here.
//!
//! Invariant: what is as by default and came to be after the first version is left out, so that a text once written goes on
//! to mean the same.

use super::hop::HopRecord;
use super::{BlackBox, Scenario, ScenarioError, Workload};
use crate::registry::{self, SchemeConfig};
use segstream_base::Tolerance;
use segstream_base::{Bandwidth, Duration, Instant};
use segstream_blocks::user::Slowdown;
use segstream_schemes::setting::{About, Kind, Place, Value};
use segstream_schemes::transport::Bursts;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Map;

/// The order of the text. Why written down: texts of all versions are compared byte for byte. What is not named stands behind.
const ORDER: [&str; 31] = [
    "scheme",
    "rtt_ns",
    "bandwidth_bps",
    "packet_bytes",
    "segment_packets",
    "window_segments",
    "buffer_segments",
    "ack",
    "tolerance",
    "accounting",
    "loss",
    "loss_back",
    "feedback",
    "reorder",
    "status_period_ns",
    "packets",
    "control_loss",
    "queue_packets",
    "offered_per_second",
    "costs_ns",
    "htpnet",
    "tcp",
    "snr_slips",
    "bandwidth_back_bps",
    "work_ns",
    "adaptive_ack",
    "sscop",
    "hop",
    "hop_back",
    "bursts",
    "slowdown_ns",
];

/// Black box and workload in base measures.
#[derive(Serialize, Deserialize)]
struct Record {
    scheme: String,
    rtt_ns: u64,
    bandwidth_bps: u64,
    packet_bytes: u32,
    segment_packets: u32,
    window_segments: u32,
    buffer_segments: Option<u32>,
    tolerance: (u32, u32, u32),
    loss: String,
    loss_back: String,
    feedback: String,
    packets: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    control_loss: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    queue_packets: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    offered_per_second: Option<u32>,
    /// Service, a slot, a timer operation, a timer passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    costs_ns: Option<[u64; 4]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bandwidth_back_bps: Option<u64>,
    /// A packet, a byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    work_ns: Option<[u64; 2]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hop: Option<HopRecord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hop_back: Option<HopRecord>,
    /// F, L.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bursts: Option<(u32, u32)>,
    /// From, until, what a segment takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    slowdown_ns: Option<[u64; 3]>,
    /// What schemes are told of their own.
    #[serde(flatten)]
    settings: Map<String, serde_json::Value>,
}

/// What stands under a name.
enum Field {
    Value(serde_json::Value),
    Section(Fields),
}

/// Names in their order.
struct Fields(Vec<(String, Field)>);

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, field)| (name, field)))
    }
}

impl Serialize for Field {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Value(value) => value.serialize(serializer),
            Self::Section(fields) => fields.serialize(serializer),
        }
    }
}

/// The text of `scenario`.
pub(super) fn write(scenario: &Scenario) -> String {
    let mut fields = settings(&scenario.scheme);
    if let Ok(serde_json::Value::Object(common)) = serde_json::to_value(Record::from(scenario)) {
        fields.extend(common.into_iter().map(|(name, value)| (name, Field::Value(value))));
    }
    fields.sort_by_key(|(name, _)| ORDER.iter().position(|known| known == name).unwrap_or(ORDER.len()));
    // A record of numbers and short texts always has a JSON form.
    serde_json::to_string(&Fields(fields)).unwrap_or_default()
}

/// The settings of the scheme, and those that stand there whatever the scheme.
fn settings(config: &SchemeConfig) -> Vec<(String, Field)> {
    let scheme = config.scheme();
    let (own, default) = (config.settings(), scheme.config());
    let mut fields = Vec::new();
    for (about, by_default) in registry::settings() {
        let value = own.iter().find(|(other, _)| other.flag == about.flag).map_or(&by_default, |(_, value)| value);
        let stands = match about.place {
            Place::Always => true,
            Place::UnlessDefault => *value != by_default,
            Place::Section => false,
        };
        if stands {
            fields.push((about.record.to_owned(), Field::Value(to_json(value))));
        }
    }
    if *config != default {
        let in_section = own.iter().filter(|(about, _)| about.place == Place::Section);
        let section: Vec<_> = in_section.map(|(about, value)| (about.record.to_owned(), Field::Value(to_json(value)))).collect();
        if !section.is_empty() {
            fields.push((scheme.section(), Field::Section(Fields(section))));
        }
    }
    fields
}

/// The scenario that `text` says.
pub(super) fn read(text: &str) -> Result<Scenario, ScenarioError> {
    let mut record: Record = serde_json::from_str(text).map_err(unreadable)?;
    let scheme = registry::find(&record.scheme).ok_or_else(|| ScenarioError::UnknownScheme(record.scheme.clone()))?;
    let settings = std::mem::take(&mut record.settings);
    let mut config = scheme.config();
    for (name, value) in settings {
        if name == scheme.section() {
            let serde_json::Value::Object(section) = value else { return Err(unreadable(format!("\"{name}\" is no section"))) };
            for (name, value) in section {
                let own = config.settings().into_iter().find(|(about, _)| about.place == Place::Section && about.record == name);
                let (about, _) = own.ok_or_else(|| unreadable(format!("unknown field `{name}`")))?;
                config.set(about.flag, from_json(about, &value)?)?;
            }
            continue;
        }
        let known = registry::settings().into_iter().find(|(about, _)| about.place != Place::Section && about.record == name);
        let Some((about, by_default)) = known else { return Err(unknown(&name, scheme)) };
        let value = from_json(about, &value)?;
        if !config.set(about.flag, value.clone())? && value != by_default {
            return Err(ScenarioError::NotApplicable { setting: about.flag, scheme: scheme.key });
        }
    }
    record.scenario(config)
}

/// A name that is no setting of the scheme: a section of another, or nothing that is known.
fn unknown(name: &str, scheme: &registry::Scheme) -> ScenarioError {
    let other = registry::SCHEMES.iter().find(|other| other.section() == name);
    match other.and_then(|other| other.settings().first().map(|(about, _)| about.flag)) {
        Some(setting) => ScenarioError::NotApplicable { setting, scheme: scheme.key },
        None => unreadable(format!("unknown field `{name}`")),
    }
}

fn to_json(value: &Value) -> serde_json::Value {
    match value {
        Value::None => serde_json::Value::Null,
        Value::Count(count) => (*count).into(),
        Value::Time(time) => time.as_nanos().into(),
        Value::Is(is) => (*is).into(),
        Value::Word(word) => word.as_str().into(),
    }
}

fn from_json(about: &About, json: &serde_json::Value) -> Result<Value, ScenarioError> {
    let value = match (about.kind, json) {
        (_, serde_json::Value::Null) => Some(Value::None),
        (Kind::Count { .. }, json) => json.as_u64().map(Value::Count),
        (Kind::Time { .. }, json) => json.as_u64().map(|nanos| Value::Time(Duration::from_nanos(nanos))),
        (Kind::Word { .. }, json) => json.as_str().map(|word| Value::Word(word.to_owned())),
        (Kind::Switch { .. }, json) => json.as_bool().map(Value::Is),
    };
    value.ok_or_else(|| unreadable(format!("{json} is not what \"{}\" can be", about.record)))
}

impl From<&Scenario> for Record {
    fn from(scenario: &Scenario) -> Self {
        let (black_box, workload) = (&scenario.black_box, &scenario.workload);
        let tolerance = workload.tolerance;
        let costs = [black_box.service, black_box.search_cost, black_box.timer_cost.0, black_box.timer_cost.1].map(Duration::as_nanos);
        Self {
            scheme: scenario.scheme.key().to_owned(),
            rtt_ns: black_box.rtt.as_nanos(),
            bandwidth_bps: black_box.bandwidth.bits_per_second(),
            packet_bytes: workload.packet_bytes,
            segment_packets: workload.segment_packets,
            window_segments: workload.window,
            buffer_segments: workload.buffer,
            tolerance: (tolerance.window(), tolerance.errors(), tolerance.burst()),
            loss: black_box.loss.to_string(),
            loss_back: black_box.loss_back.to_string(),
            feedback: black_box.feedback.to_string(),
            packets: workload.packets,
            control_loss: black_box.control_loss.as_ref().map(ToString::to_string),
            queue_packets: black_box.queue_packets,
            offered_per_second: workload.offered,
            costs_ns: (costs != [0; 4]).then_some(costs),
            bandwidth_back_bps: black_box.bandwidth_back.map(Bandwidth::bits_per_second),
            work_ns: black_box.end_system().map(|system| [system.packet.as_nanos(), system.byte.as_nanos()]),
            hop: HopRecord::of(&black_box.hop),
            hop_back: HopRecord::of(&black_box.hop_back),
            bursts: workload.bursts.map(|bursts| (bursts.per_second, bursts.packets)),
            slowdown_ns: workload.slowdown.map(|slow| [slow.from.as_nanos(), slow.until.as_nanos(), slow.takes.as_nanos()]),
            settings: Map::new(),
        }
    }
}

impl Record {
    /// The scenario of the record and a scheme.
    fn scenario(self, scheme: SchemeConfig) -> Result<Scenario, ScenarioError> {
        let (window, errors, burst) = self.tolerance;
        let [packet, byte] = self.work_ns.unwrap_or_default().map(Duration::from_nanos);
        let [service, search_cost, timer, timer_passed] = self.costs_ns.unwrap_or_default().map(Duration::from_nanos);
        let black_box = BlackBox {
            rtt: Duration::from_nanos(self.rtt_ns),
            bandwidth: Bandwidth::from_bits_per_second(self.bandwidth_bps),
            bandwidth_back: self.bandwidth_back_bps.map(Bandwidth::from_bits_per_second),
            loss: parsed(&self.loss)?,
            loss_back: parsed(&self.loss_back)?,
            control_loss: self.control_loss.as_deref().map(parsed).transpose()?,
            queue_packets: self.queue_packets,
            hop: self.hop.map_or_else(|| Ok(Default::default()), HopRecord::hop)?,
            hop_back: self.hop_back.map_or_else(|| Ok(Default::default()), HopRecord::hop)?,
            feedback: parsed(&self.feedback)?,
            service,
            search_cost,
            timer_cost: (timer, timer_passed),
            work: (packet, byte),
        };
        let workload = Workload {
            packet_bytes: self.packet_bytes,
            segment_packets: self.segment_packets,
            window: self.window_segments,
            buffer: self.buffer_segments,
            tolerance: Tolerance::new(window, errors, burst).map_err(unreadable)?,
            offered: self.offered_per_second,
            bursts: self.bursts.map(|(per_second, packets)| Bursts { per_second, packets }),
            slowdown: self.slowdown_ns.map(|[from, until, takes]| Slowdown {
                from: Instant::from_nanos(from),
                until: Instant::from_nanos(until),
                takes: Duration::from_nanos(takes),
            }),
            packets: self.packets,
        };
        Ok(Scenario { black_box, workload, scheme })
    }
}

fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, ScenarioError> {
    text.parse().map_err(unreadable)
}

fn unreadable(error: impl std::fmt::Display) -> ScenarioError {
    ScenarioError::Unreadable(error.to_string())
}
