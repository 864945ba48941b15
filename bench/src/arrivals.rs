//! Arrivals over time: of Segstream from the lines that `recv --stats` prints, of TCP from what its receiver read.
//!
//! Called by the trials of `shared` and `rates` when a receiver has ended; read by what judges them.
//!
//! Invariant: times are seconds by the clock of the trial, counted from when its link opened.

use segstream_testbed::process::Said;
use serde::Deserialize;
use std::time::Instant;

/// IPv4 and UDP in front of a datagram: the link counts whole packets.
const HEADER_BYTES: u64 = 28;

/// TCP's payload in a full packet: 20 bytes of IPv4, 20 of TCP and 12 of its time stamps are not.
pub(crate) const TCP_PAYLOAD: f64 = 1448.0 / 1500.0;

/// The arrivals of one flow.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    samples: Vec<Sample>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    at: f64,
    /// Whole packets, in bytes.
    packet_bytes: f64,
    /// Bytes of the application, handed over.
    delivered: f64,
    /// Packets received.
    received: f64,
    /// Packets declared lost.
    lost: f64,
}

/// What is needed of a line.
#[derive(Deserialize)]
struct Line {
    seconds: f64,
    bytes: u64,
    bytes_received: u64,
    shipments_received: u64,
    shipments_detected_lost: u64,
}

impl Arrivals {
    /// From what a receiver said, for a trial that began at `zero`.
    pub(crate) fn of(said: &[Said], zero: Instant) -> Self {
        let lines = said.iter().filter_map(|said| Some((said.at, serde_json::from_str::<Line>(&said.line).ok()?)));
        let lines: Vec<(Instant, Line)> = lines.collect();
        // Why the least: the others also say how long it took until a line was read.
        let begun = lines.iter().map(|(at, line)| at.duration_since(zero).as_secs_f64() - line.seconds).fold(f64::INFINITY, f64::min);
        let sample = |(_, line): &(Instant, Line)| Sample {
            at: begun + line.seconds,
            packet_bytes: (line.bytes_received + HEADER_BYTES * line.shipments_received) as f64,
            delivered: line.bytes as f64,
            received: line.shipments_received as f64,
            lost: line.shipments_detected_lost as f64,
        };
        let first = Sample { at: begun, ..Sample::default() };
        Self { samples: std::iter::once(first).filter(|_| !lines.is_empty()).chain(lines.iter().map(sample)).collect() }
    }

    /// Of a TCP that began at `begun`: the bytes that its receiver read in each interval, and the end of that since it began.
    pub(crate) fn of_tcp(begun: f64, intervals: &[(f64, f64)]) -> Self {
        let mut sample = Sample { at: begun, ..Sample::default() };
        let next = |(end, bytes): &(f64, f64)| {
            sample = Sample {
                at: begun + end,
                packet_bytes: sample.packet_bytes + bytes / TCP_PAYLOAD,
                delivered: sample.delivered + bytes,
                ..sample
            };
            sample
        };
        let first = Sample { at: begun, ..Sample::default() };
        Self { samples: std::iter::once(first).chain(intervals.iter().map(next)).collect() }
    }

    /// The mean rate of whole packets, in bit/s.
    pub(crate) fn bps(&self, from: f64, to: f64) -> f64 {
        8.0 * self.between(from, to, |sample| sample.packet_bytes) / (to - from)
    }

    /// The mean rate of the application's bytes, in bit/s.
    pub(crate) fn delivered_bps(&self, from: f64, to: f64) -> f64 {
        8.0 * self.between(from, to, |sample| sample.delivered) / (to - from)
    }

    /// The part of packets that was declared lost.
    pub(crate) fn lost_part(&self, from: f64, to: f64) -> f64 {
        let lost = self.between(from, to, |sample| sample.lost);
        lost / (lost + self.between(from, to, |sample| sample.received)).max(1.0)
    }

    fn between(&self, from: f64, to: f64, count: fn(&Sample) -> f64) -> f64 {
        self.at(to, count) - self.at(from, count)
    }

    /// A count at a moment, on the straight line between the samples beside it.
    fn at(&self, at: f64, count: fn(&Sample) -> f64) -> f64 {
        let next = self.samples.partition_point(|sample| sample.at < at);
        match (next.checked_sub(1).and_then(|before| self.samples.get(before)), self.samples.get(next)) {
            (Some(before), Some(after)) => {
                let part = (at - before.at) / (after.at - before.at);
                count(before) + part * (count(after) - count(before))
            }
            (Some(last), None) => count(last),
            (None, _) => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_rate_counts_whole_packets_by_the_receivers_own_clock() {
        let zero = Instant::now();
        let said = |late: u64, seconds: f64, packets: u64| Said {
            at: zero + Duration::from_millis(1000 + late) + Duration::from_secs_f64(seconds),
            line: format!(
                r#"{{"seconds":{seconds},"bytes":0,"bytes_received":{},"shipments_received":{packets},"shipments_detected_lost":1}}"#,
                packets * 972
            ),
        };
        let noise = Said { at: zero, line: "listening on 10.77.0.2:1".to_owned() };
        let arrivals = Arrivals::of(&[noise, said(30, 1.0, 100), said(0, 2.0, 300)], zero);
        assert!((arrivals.bps(2.0, 3.0) - 1.6e6).abs() < 1.0);
        assert!((arrivals.bps(1.0, 2.5) - 8e5 * 2.0 / 1.5).abs() < 1.0);
        assert!((arrivals.lost_part(0.0, 9.0) - 1.0 / 301.0).abs() < 1e-9);
    }

    #[test]
    fn what_tcp_reads_is_counted_with_its_headers_where_whole_packets_are() {
        let arrivals = Arrivals::of_tcp(2.0, &[(1.0, 1448.0), (2.0, 2896.0)]);
        assert!((arrivals.delivered_bps(2.0, 4.0) - 4344.0 * 4.0).abs() < 1e-6);
        assert!((arrivals.bps(3.0, 4.0) - 24_000.0).abs() < 1e-6);
        assert_eq!(arrivals.bps(0.0, 2.0), 0.0);
    }
}
