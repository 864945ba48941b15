//! The closed forms of EC and FC for delay and throughput, as printed and as corrected; and one for HT, which prints none.
//!
//! Called by the studies, which draw the curves behind simulated points and report where the two differ.
//! `rounds` holds the delays and what retransmission costs, `throughput` the efficiency over the window,
//! `state_exchange` what limits HTPNET;
//! this file holds the operating point, the rate specification and the loss of a path with two states.
//!
//! The model behind all of them (EC 5.2, FC 4.2): the sender always has data, losses are independent with probability p,
//! and an acknowledgment always returns t_a after the last packet of a group, out of band and never lost.
//!
//! Source: EC 5.2 and FC 3.3, 3.4 and 4.2, which print the same formulas. The names F1 to F9 in the
//! documentation number them in the order in which EC needs them:
//! F1 t_p, t_s, t_a; F2 w_a; F3 g; F4 D_s; F5 D_r; F6 to F8 the three ranges of throughput; F9 the loss under bursts.
//!
//! Invariant: every function is total (a probability of 0 gives the limit, one of 1 or more gives an infinite delay or
//! no throughput, NaN gives NaN) and uses portable transcendental functions, so a curve has the same bytes everywhere.

mod rounds;
mod state_exchange;
mod throughput;

pub use rounds::{retransmission_probability, retransmissions_per_segment, rounds_mean, violation_probability};
pub use state_exchange::StateExchange;
pub use throughput::{Form, loss_in_segment, packets_actual, packets_ideal, throughput};

use serde::{Deserialize, Serialize};

/// An operating point: a path and how a scheme cuts its data. The papers evaluate at RTD 60 ms, l = 1024, s = 256.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// A: the average rate of data packets, in bit/s. Equal to the rate of the path when nothing throttles the sender.
    pub bandwidth_bps: f64,
    /// RTD: the round-trip delay without transmission times, in seconds.
    pub rtt_s: f64,
    /// l: the whole packet, in bytes.
    pub packet_bytes: u32,
    /// s: packets of a segment.
    pub segment_packets: u32,
}

impl Point {
    /// The point of the papers at a rate: RTD 60 ms, packets of 1024 bytes, 256 packets a segment.
    pub const fn of_the_papers(bandwidth_bps: f64) -> Self {
        Self { bandwidth_bps, rtt_s: 0.06, packet_bytes: 1024, segment_packets: 256 }
    }

    /// s as a number.
    pub(crate) fn segment(&self) -> f64 {
        f64::from(self.segment_packets)
    }

    /// F1, EC 5.2: t_p = 8 l / A, the transmission time of one packet in seconds.
    pub fn packet_time(&self) -> f64 {
        8.0 * f64::from(self.packet_bytes) / self.bandwidth_bps
    }

    /// F1, EC 5.2: t_s = s t_p, the transmission time of one segment in seconds.
    pub fn segment_time(&self) -> f64 {
        self.segment() * self.packet_time()
    }

    /// F1, EC 5.2: t_a = RTD + 3 t_p, from the last packet of a group leaving to its acknowledgment, in seconds.
    ///
    /// One packet time each for the packet, for its processing and for the acknowledgment.
    pub fn acknowledgment_time(&self) -> f64 {
        self.rtt_s + 3.0 * self.packet_time()
    }

    /// F2, FC 3.4: w_a = A t_a / (8 s l) = t_a / t_s, the segments that fit into one acknowledgment time.
    ///
    /// Limit: t_p is taken at the average rate A, as everywhere in the analysis; FC 3.4 alone takes the peak rate P.
    pub fn acknowledgment_window(&self) -> f64 {
        self.acknowledgment_time() / self.segment_time()
    }

    /// FC 3.4: the least window that keeps the sender busy without losses, 1 + w_a, in segments (not rounded).
    pub fn window_least(&self) -> f64 {
        1.0 + self.acknowledgment_window()
    }

    /// FC 4.3: the window that gives almost all throughput up to p = 1e-2, 2.5 w_a, in segments (not rounded).
    pub fn window_recommended(&self) -> f64 {
        2.5 * self.acknowledgment_window()
    }

    /// EC 5.3: how long a lost packet waits on average before SSTP asks for it: 3 t_p, in seconds.
    pub fn request_delay(&self) -> f64 {
        3.0 * self.packet_time()
    }
}

/// EC 5.3: how long a lost packet waits on average before a status every T_in asks for it: T_in / 2, in seconds.
///
/// EC holds 3 t_p below T_in / 2 = 2.5 ms in all its cases. With packets of 1024 bytes that is so above 9.8 Mbit/s.
pub fn status_request_delay(status_period_s: f64) -> f64 {
    status_period_s / 2.0
}

/// FC 3.3: the rate specification (P, F, L).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bursts {
    /// P: the peak rate within a burst, in bit/s.
    pub peak_bps: f64,
    /// F: bursts a second.
    pub per_second: f64,
    /// L: packets of a burst.
    pub packets: u32,
}

impl Bursts {
    /// FC 3.3: A = 8 F L l, the average rate in bit/s.
    pub fn average_bps(&self, packet_bytes: u32) -> f64 {
        8.0 * self.per_second * f64::from(self.packets) * f64::from(packet_bytes)
    }

    /// FC 3.3: the most bursts a second that fit below the peak rate, P / (8 L l).
    pub fn per_second_max(&self, packet_bytes: u32) -> f64 {
        self.peak_bps / (8.0 * f64::from(self.packets) * f64::from(packet_bytes))
    }
}

/// FC 3.4: W_1 = (F_1 / F) W_0, the window after the burst rate has changed from F to F_1 for long, in segments.
pub fn throttled_window(window: f64, bursts_before: f64, bursts_after: f64) -> f64 {
    bursts_after / bursts_before * window
}

/// FC 3.3: the burst length that leaves room for what a segment resends on average, L = s + ceil(s p / (1 - p)).
pub fn burst_packets(segment_packets: u32, p: f64) -> f64 {
    f64::from(segment_packets) + libm::ceil(retransmissions_per_segment(segment_packets, p))
}

/// F9, EC 5.3: the loss probability over a path with two states, p_b d_b / (d_g + d_b).
///
/// `bad_loss` is p_b, `bad_s` and `good_s` the mean durations of the two states in seconds; the good state loses nothing.
pub fn effective_loss(bad_loss: f64, bad_s: f64, good_s: f64) -> f64 {
    bad_loss * bad_s / (good_s + bad_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(value: f64, wanted: f64, tolerance: f64) {
        assert!((value - wanted).abs() <= tolerance, "{value} instead of {wanted}");
    }

    #[test]
    fn the_times_of_a_point_are_those_of_the_papers() {
        let slow = Point::of_the_papers(100e6);
        near(slow.rtt_s / slow.packet_time(), 732.4, 0.05);
        near(slow.request_delay() * 1e3, 0.2458, 5e-5);
        for (bandwidth, wanted) in [(10e6, 0.298), (100e6, 2.873), (500e6, 14.317), (1e9, 28.622)] {
            near(Point::of_the_papers(bandwidth).acknowledgment_window(), wanted, 5e-4);
        }
        let fast = Point::of_the_papers(500e6);
        near(fast.segment_time(), 256.0 * 8192.0 / 500e6, 1e-15);
        near(fast.acknowledgment_time(), 0.06 + 3.0 * 8192.0 / 500e6, 1e-15);
        near(libm::ceil(fast.window_recommended()), 36.0, 0.0);
        near(libm::ceil(fast.window_least()), 16.0, 0.0);
        // 273 us and 310 us for 1024 bytes: the two rates of the measured implementation.
        near(8192.0 / 273e-6 / 1e6, 30.0, 0.05);
        near(8192.0 / 310e-6 / 1e6, 26.4, 0.05);
    }

    #[test]
    fn sstp_asks_sooner_than_a_status_every_5_ms_above_9_8_megabit() {
        let status = status_request_delay(0.005);
        near(status, 0.0025, 1e-18);
        near(Point::of_the_papers(10e6).request_delay() * 1e3, 2.4576, 1e-9);
        for bandwidth in [10e6, 100e6, 500e6, 1e9] {
            assert!(Point::of_the_papers(bandwidth).request_delay() < status);
        }
        assert!(Point::of_the_papers(9.8e6).request_delay() > status);
    }

    #[test]
    fn a_rate_specification_gives_its_average_and_stays_below_its_peak() {
        let bursts = Bursts { peak_bps: 150e6, per_second: 50.0, packets: 256 };
        near(bursts.average_bps(1024) / 1e6, 104.86, 0.005);
        near(bursts.per_second_max(1024), 71.53, 0.005);
        // At its most bursts a second the average is the peak.
        let full = Bursts { per_second: bursts.per_second_max(1024), ..bursts };
        near(full.average_bps(1024), 150e6, 1e-6);
        near(throttled_window(36.0, 50.0, 25.0), 18.0, 1e-12);
        near(throttled_window(throttled_window(36.0, 50.0, 25.0), 25.0, 50.0), 36.0, 1e-12);
        near(burst_packets(256, 1e-3), 257.0, 0.0);
        near(burst_packets(256, 1e-2), 259.0, 0.0);
    }

    #[test]
    fn bursts_of_loss_have_the_effective_loss_of_the_legends() {
        for (bad_s, wanted) in [(0.015, 9.174e-6), (0.06, 3.571e-5), (0.12, 6.897e-5), (0.18, 1e-4)] {
            near(effective_loss(1e-3, bad_s, 1.62), wanted, 5e-9);
        }
        near(effective_loss(1.0, 0.18, 1.62), 0.1, 1e-15);
    }
}
