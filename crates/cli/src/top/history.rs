//! What was scraped, over time: for each connection its present values, the last values of its rates, and a strip of verdicts for each
//! stream.
//!
//! Called after each scrape; read by the view. Invariant: a series has at most [`KEPT`] values, and what is not in the newest scrape of its
//! source is gone.

use super::scrape::{Sample, Source};
use segstream::metrics::{CONNECTION_LOSS, CONNECTION_RECEIVED, CONNECTION_SENT, PUBLICATIONS, STREAM_SEGMENTS};
use std::collections::{BTreeMap, VecDeque};

/// How many values of a series are kept.
pub(super) const KEPT: usize = 240;

/// The outcome of the segments of one period: the worst verdict among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Slot {
    /// No segment was judged.
    Nothing,
    Complete,
    WithinTolerance,
    Expired,
    Unknown,
}

impl Slot {
    const WITH_VERDICT: [(Self, &'static str); 4] =
        [(Self::Complete, "complete"), (Self::WithinTolerance, "within_tolerance"), (Self::Expired, "expired"), (Self::Unknown, "unknown")];
}

/// A stream: by its direction, `sent` or `received`, and its number.
pub(super) type StreamKey = (String, u64);

/// The verdicts of a stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Strip {
    /// Segments with each verdict so far.
    pub(super) counts: [u64; 4],
    pub(super) slots: VecDeque<Slot>,
}

/// One connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Connection {
    pub(super) peer: String,
    /// The present values, by the names of the metrics.
    pub(super) now: BTreeMap<String, f64>,
    pub(super) phase: Option<String>,
    /// Bits per second in both directions together.
    pub(super) rate_bps: VecDeque<f64>,
    pub(super) rtt_ms: VecDeque<f64>,
    pub(super) loss: VecDeque<f64>,
    pub(super) streams: BTreeMap<StreamKey, Strip>,
}

impl Connection {
    /// A present value.
    pub(super) fn value(&self, metric: &str) -> Option<f64> {
        self.now.get(metric).copied()
    }

    pub(super) fn sent_bps(&self) -> f64 {
        8.0 * self.value(CONNECTION_SENT).unwrap_or(0.0)
    }

    pub(super) fn received_bps(&self) -> f64 {
        8.0 * self.value(CONNECTION_RECEIVED).unwrap_or(0.0)
    }

    /// The stream with the most verdicts.
    pub(super) fn busiest_stream(&self) -> Option<&Strip> {
        self.streams.values().max_by_key(|strip| strip.counts.iter().sum::<u64>())
    }

    /// A period has passed, or has been the first that is seen of its process: then its verdicts are of all the time before.
    fn add_period(&mut self, counts: &BTreeMap<StreamKey, [u64; 4]>, is_first: bool) {
        let rate = self.sent_bps() + self.received_bps();
        add(&mut self.rate_bps, rate);
        let rtt = self.value("segstream_rtt_smoothed_seconds").unwrap_or(0.0) * 1e3;
        add(&mut self.rtt_ms, rtt);
        let loss = self.value(CONNECTION_LOSS).unwrap_or(0.0);
        add(&mut self.loss, loss);
        for (key, counts) in counts {
            let strip = self.streams.entry(key.clone()).or_default();
            if is_first {
                strip.counts = *counts;
                continue;
            }
            let grown = counts.iter().zip(strip.counts).map(|(now, before)| now.saturating_sub(before));
            let worst = Slot::WITH_VERDICT.iter().zip(grown).filter(|(_, grown)| *grown > 0).map(|((slot, _), _)| *slot).max();
            strip.counts = *counts;
            add(&mut strip.slots, worst.unwrap_or(Slot::Nothing));
        }
    }
}

fn add<T>(series: &mut VecDeque<T>, value: T) {
    if series.len() >= KEPT {
        series.pop_front();
    }
    series.push_back(value);
}

/// All sources and their connections.
#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) connections: BTreeMap<(Source, u64), Connection>,
    /// The number of the last publication of each source that has answered.
    published: BTreeMap<Source, Option<f64>>,
    /// Sources that did not answer, and why.
    pub(super) failures: BTreeMap<Source, String>,
}

impl History {
    /// The samples of a source have come.
    pub(super) fn on_samples(&mut self, source: &Source, samples: &[Sample]) {
        self.failures.remove(source);
        // Why: a source publishes once a second, whoever asks how often; a period is what lies between two publications.
        let publication = samples.iter().find(|sample| sample.name == PUBLICATIONS).map(|sample| sample.value);
        let before = self.published.insert(source.clone(), publication);
        if publication.is_some() && before == Some(publication) {
            return;
        }
        // A process that publishes on demand has nothing to tell when it is asked first.
        let is_first = before.is_none_or(|before| before.is_none() && publication.is_some());
        let mut newest: BTreeMap<u64, Connection> = BTreeMap::new();
        let mut verdicts: BTreeMap<u64, BTreeMap<StreamKey, [u64; 4]>> = BTreeMap::new();
        for sample in samples {
            let Some(number) = sample.label("connection").and_then(|number| number.parse().ok()) else { continue };
            let connection = newest.entry(number).or_default();
            connection.peer = sample.label("peer").unwrap_or_default().to_owned();
            if sample.name == STREAM_SEGMENTS {
                count(verdicts.entry(number).or_default(), sample);
            } else if sample.name == "segstream_controller_phase" {
                connection.phase = sample.label("value").filter(|_| sample.value > 0.0).map(str::to_owned).or(connection.phase.take());
            } else {
                connection.now.insert(sample.name.clone(), sample.value);
            }
        }
        self.connections.retain(|(of, number), _| of != source || newest.contains_key(number));
        for (number, found) in newest {
            let connection = self.connections.entry((source.clone(), number)).or_default();
            (connection.peer, connection.now, connection.phase) = (found.peer, found.now, found.phase);
            connection.add_period(verdicts.get(&number).unwrap_or(&BTreeMap::new()), is_first);
        }
    }

    /// A source has not answered.
    pub(super) fn on_failure(&mut self, source: &Source, why: String) {
        self.forget(source);
        self.failures.insert(source.clone(), why);
    }

    /// A source is gone.
    pub(super) fn forget(&mut self, source: &Source) {
        self.connections.retain(|(of, _), _| of != source);
        self.published.remove(source);
        self.failures.remove(source);
    }
}

/// Takes a count of verdicts from a sample.
fn count(streams: &mut BTreeMap<StreamKey, [u64; 4]>, sample: &Sample) {
    let stream = sample.label("stream").and_then(|stream| stream.parse().ok());
    let verdict = sample.label("verdict").and_then(|name| Slot::WITH_VERDICT.iter().position(|(_, known)| *known == name));
    if let (Some(direction), Some(stream), Some(place)) = (sample.label("direction"), stream, verdict) {
        streams.entry((direction.to_owned(), stream)).or_default()[place] = sample.value as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdicts(publication: u64, complete: u64, expired: u64) -> Vec<Sample> {
        let of = |verdict: &str, count: u64| Sample {
            name: STREAM_SEGMENTS.to_owned(),
            labels: [("connection", "7"), ("peer", "p"), ("stream", "0"), ("direction", "sent"), ("verdict", verdict)]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            value: count as f64,
        };
        let number = Sample { name: PUBLICATIONS.to_owned(), labels: BTreeMap::new(), value: publication as f64 };
        vec![number, of("complete", complete), of("expired", expired)]
    }

    #[test]
    fn a_slot_is_the_worst_verdict_of_its_period_and_what_is_not_told_any_more_is_gone() {
        let (mut history, source) = (History::default(), Source::Address(([127, 0, 0, 1], 9).into()));
        // The second and the third are one publication; what was before the first is no period.
        for (publication, complete, expired) in [(1, 50, 3), (2, 55, 3), (2, 55, 3), (3, 59, 4), (4, 59, 4), (5, 62, 4)] {
            history.on_samples(&source, &verdicts(publication, complete, expired));
        }
        let strip = history.connections[&(source.clone(), 7)].busiest_stream().unwrap();
        assert_eq!((strip.counts[0], strip.counts[2]), (62, 4));
        assert_eq!(strip.slots, [Slot::Complete, Slot::Expired, Slot::Nothing, Slot::Complete]);
        for publication in 0..2 * KEPT as u64 {
            history.on_samples(&source, &verdicts(100 + publication, 70, 4));
        }
        assert_eq!(history.connections[&(source.clone(), 7)].rate_bps.len(), KEPT);
        history.on_samples(&source, &[]);
        assert!(history.connections.is_empty());
    }
}
