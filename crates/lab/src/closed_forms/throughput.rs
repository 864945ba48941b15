//! Throughput efficiency over the window: F3, F6, F7 and F8.
//!
//! Called through [`super`]. Efficiency is the share of packet times that carry a packet accepted for the first time.
//! The analysis follows one cycle from loss to loss: 1/g segments pass before a segment has a loss, then the sender
//! has W more in its window, and waits, resends and is released.
//!
//! Source: EC 5.2, FC 4.2 (steps 1 to 5 of the cycle).

use super::Point;
use super::rounds::any_of;
use serde::{Deserialize, Serialize};

/// Which form of F7, the throughput for windows between w_a + 1 and 2 w_a + 1.
///
/// With M = min(W - w_a, w_a (1 - p)) both papers print (w_a + M + 1/g) / (2 w_a + 1 + p + M + 1/g).
/// The M below the line is a misprint for p M, for three reasons:
///
/// 1. Continuity. At W = w_a + 1 (so M = 1) the numerator is that of F6, and the denominator of F6 is
///    2 w_a + 1 + p + 1/g. The printed F7 has this plus 1, so throughput would *fall* by a whole segment time in
///    the cycle as the window grows past w_a + 1. With p M it has this plus p, less than 0.2 % of throughput at p = 1e-2.
/// 2. The other end. Towards 2 w_a + 1 the printed form stays far below 1 - p, which F8 gives from there on.
/// 3. The text. By step 4 of the cycle in FC 4.2 the term is the time to resend what is lost of the segments sent during
///    the two waits; of M segments that is p M.
///
/// Limit: the corrected form still has a step of p segment times at w_a + 1, and the analysis leaves a step at 2 w_a + 1
/// too. The papers give no form without them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// As EC and FC print it: M in the denominator. For reports only.
    Printed,
    /// p M in the denominator.
    #[default]
    Corrected,
}

/// F3, EC 5.2: g = 1 - (1 - p)^s, the probability that a segment loses a packet; near s p for small p.
pub fn loss_in_segment(segment_packets: u32, p: f64) -> f64 {
    any_of(f64::from(segment_packets), p)
}

/// FC 4.2: N_actual = 1/g + W, the segments of one cycle of F6. Infinite without loss.
pub fn packets_actual(point: &Point, p: f64, window: f64) -> f64 {
    1.0 / loss_in_segment(point.segment_packets, p) + window
}

/// FC 4.2: N_ideal = 2 w_a + 1 + p + ((w_a + 1) / W) / g, the segments a cycle of F6 had room for. Infinite without loss.
pub fn packets_ideal(point: &Point, p: f64, window: f64) -> f64 {
    let w_a = point.acknowledgment_window();
    2.0 * w_a + 1.0 + p + (w_a + 1.0) / window / loss_in_segment(point.segment_packets, p)
}

/// Throughput efficiency for a window of `window` segments (F6, F7, F8; EC 5.2, FC 4.2).
///
/// | window | efficiency |
/// |---|---|
/// | W <= 1 | F8: t_s / D_s |
/// | 1 < W <= w_a + 1 | F6: (1/g + W) / (2 w_a + 1 + p + ((w_a + 1) / W) / g) |
/// | w_a + 1 < W < 2 w_a + 1 | F7, see [`Form`] |
/// | from 2 w_a + 1 | F8: 1 - p |
///
/// Fractions are widened by g, so that p = 0 gives the limits W / (w_a + 1) and 1 without a special case.
///
/// Limit: the papers hold the analysis good up to p = 1e-2. Where w_a (1 - p) < 1 (below about 30 Mbit/s at the papers'
/// point) M is below 1 already at w_a + 1 and F7 starts lower than F6 ends. At p >= 1 the result is 0.
pub fn throughput(point: &Point, p: f64, window: f64, form: Form) -> f64 {
    if p >= 1.0 {
        return 0.0;
    }
    let w_a = point.acknowledgment_window();
    let g = loss_in_segment(point.segment_packets, p);
    if window <= 1.0 {
        return point.segment_time() / point.sender_delay(p);
    }
    if window <= w_a + 1.0 {
        return (1.0 + g * window) / (g * (2.0 * w_a + 1.0 + p) + (w_a + 1.0) / window);
    }
    if window >= 2.0 * w_a + 1.0 {
        return 1.0 - p;
    }
    let new = (window - w_a).min(w_a * (1.0 - p));
    let resent = match form {
        Form::Printed => new,
        Form::Corrected => p * new,
    };
    (1.0 + g * (w_a + new)) / (1.0 + g * (2.0 * w_a + 1.0 + p + resent))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Efficiencies of an independent simulation of 4e6 packets with ideal feedback, and both forms of the analysis:
    /// (Mbit/s, p, W, simulated, printed, corrected).
    const TABLE: [(f64, f64, f64, f64, f64, f64); 36] = [
        (100.0, 1e-4, 2.0, 0.5018, 0.4986, 0.4986),
        (100.0, 1e-4, 3.0, 0.7404, 0.7362, 0.7362),
        (100.0, 1e-4, 4.0, 0.9415, 0.9184, 0.9407),
        (100.0, 1e-4, 5.0, 0.9630, 0.9200, 0.9623),
        (100.0, 1e-4, 6.0, 0.9843, 0.9213, 0.9784),
        (100.0, 1e-4, 7.0, 0.9998, 0.9999, 0.9999),
        (100.0, 1e-3, 2.0, 0.4163, 0.4195, 0.4195),
        (100.0, 1e-3, 3.0, 0.5874, 0.5960, 0.5960),
        (100.0, 1e-3, 4.0, 0.7317, 0.6850, 0.7541),
        (100.0, 1e-3, 5.0, 0.8289, 0.7087, 0.8435),
        (100.0, 1e-3, 6.0, 0.9262, 0.7241, 0.9099),
        (100.0, 1e-3, 7.0, 0.9985, 0.9990, 0.9990),
        (100.0, 1e-2, 2.0, 0.2986, 0.3482, 0.3482),
        (100.0, 1e-2, 3.0, 0.4410, 0.5007, 0.5007),
        (100.0, 1e-2, 4.0, 0.5798, 0.5669, 0.6475),
        (100.0, 1e-2, 5.0, 0.7135, 0.6104, 0.7739),
        (100.0, 1e-2, 6.0, 0.8431, 0.6365, 0.8643),
        (100.0, 1e-2, 7.0, 0.9388, 0.9900, 0.9900),
        (500.0, 1e-4, 7.0, 0.4151, 0.4007, 0.4007),
        (500.0, 1e-4, 15.0, 0.7866, 0.7791, 0.7791),
        (500.0, 1e-4, 16.0, 0.8101, 0.7839, 0.8030),
        (500.0, 1e-4, 21.0, 0.8795, 0.7981, 0.8752),
        (500.0, 1e-4, 29.0, 0.9906, 0.8166, 0.9855),
        (500.0, 1e-4, 36.0, 0.9994, 0.9999, 0.9999),
        (500.0, 1e-3, 7.0, 0.2975, 0.2906, 0.2906),
        (500.0, 1e-3, 15.0, 0.5553, 0.5688, 0.5688),
        (500.0, 1e-3, 16.0, 0.5857, 0.5715, 0.5997),
        (500.0, 1e-3, 21.0, 0.7356, 0.6240, 0.7463),
        (500.0, 1e-3, 29.0, 0.9765, 0.6833, 0.9698),
        (500.0, 1e-3, 36.0, 0.9959, 0.9990, 0.9990),
        (500.0, 1e-2, 7.0, 0.2282, 0.2525, 0.2525),
        (500.0, 1e-2, 15.0, 0.4638, 0.5230, 0.5230),
        (500.0, 1e-2, 16.0, 0.4905, 0.5271, 0.5557),
        (500.0, 1e-2, 21.0, 0.6292, 0.5903, 0.7171),
        (500.0, 1e-2, 29.0, 0.8042, 0.6586, 0.9581),
        (500.0, 1e-2, 36.0, 0.8934, 0.9900, 0.9900),
    ];

    #[test]
    fn both_forms_give_the_efficiencies_of_the_table() {
        for (rate, p, window, _, printed, corrected) in TABLE {
            let point = Point::of_the_papers(rate * 1e6);
            let found = (throughput(&point, p, window, Form::Printed), throughput(&point, p, window, Form::Corrected));
            assert!((found.0 - printed).abs() < 5.1e-5 && (found.1 - corrected).abs() < 5.1e-5, "{rate} {p} {window}: {found:?}");
        }
    }

    #[test]
    fn only_the_corrected_form_lies_above_the_simulation_or_close_to_it() {
        let (mut points, mut printed_below, mut corrected_below, mut worst) = (0, 0, 0, 0.0f64);
        for (rate, p, window, simulated, _, _) in TABLE {
            let point = Point::of_the_papers(rate * 1e6);
            let w_a = point.acknowledgment_window();
            if window > w_a + 1.0 && window < 2.0 * w_a + 1.0 {
                points += 1;
                printed_below += u32::from(throughput(&point, p, window, Form::Printed) < simulated - 0.004);
                let corrected = throughput(&point, p, window, Form::Corrected);
                corrected_below += u32::from(corrected < simulated - 0.004);
                worst = worst.max(1.0 - corrected / simulated);
            }
        }
        assert_eq!((points, printed_below, corrected_below), (18, 17, 6));
        assert!(worst < 0.018, "{worst}");
    }

    #[test]
    fn printed_jumps_where_the_window_passes_w_a_plus_one_and_corrected_does_not() {
        for (rate, p, before, printed_after) in [
            (100e6, 1e-4, 0.9380, 0.9181),
            (100e6, 1e-3, 0.7428, 0.6818),
            (100e6, 1e-2, 0.6322, 0.5607),
            (500e6, 1e-4, 0.7931, 0.7818),
            (500e6, 1e-3, 0.5796, 0.5631),
            (500e6, 1e-2, 0.5337, 0.5169),
        ] {
            let point = Point::of_the_papers(rate);
            let edge = point.acknowledgment_window() + 1.0;
            let f6 = throughput(&point, p, edge, Form::Corrected);
            let printed = throughput(&point, p, edge + 1e-9, Form::Printed);
            let corrected = throughput(&point, p, edge + 1e-9, Form::Corrected);
            assert!((f6 - before).abs() < 5.1e-5 && (printed - printed_after).abs() < 5.1e-5);
            // The printed denominator is larger by one segment time, the corrected one by p of it.
            let room = packets_ideal(&point, p, edge);
            assert!((f6 / printed - 1.0 - 1.0 / room).abs() < 1e-6, "{printed}");
            assert!((f6 / corrected - 1.0 - p / room).abs() < 1e-6, "{corrected}");
            assert!((f6 - corrected) * 50.0 < f6 - printed, "p is at most 1e-2: {corrected} and {printed}");
        }
    }

    #[test]
    fn a_larger_window_never_lowers_the_corrected_throughput_by_more_than_its_step_of_p() {
        for (rate, p) in [(100e6, 1e-3), (500e6, 1e-2), (500e6, 1e-4)] {
            let point = Point::of_the_papers(rate);
            let allowed = p / (2.0 * point.acknowledgment_window() + 1.0);
            let falls = |form| {
                let curve: Vec<f64> = (10..500).map(|tenths| throughput(&point, p, f64::from(tenths) / 10.0, form)).collect();
                curve.windows(2).any(|pair| pair[1] < pair[0] - allowed)
            };
            assert!(!falls(Form::Corrected), "{rate} {p}");
            assert!(falls(Form::Printed), "{rate} {p}");
        }
    }

    #[test]
    fn the_other_end_is_far_from_the_limit_in_the_printed_form_only() {
        let point = Point::of_the_papers(500e6);
        let edge = 2.0 * point.acknowledgment_window() + 1.0;
        assert!((throughput(&point, 1e-2, edge - 1e-9, Form::Printed) - 0.6586).abs() < 5.1e-5);
        assert!((throughput(&point, 1e-2, edge - 1e-9, Form::Corrected) - 0.9581).abs() < 5.1e-5);
        assert_eq!(throughput(&point, 1e-2, edge, Form::Corrected), 0.99);
    }

    #[test]
    fn without_loss_the_limits_hold() {
        for rate in [100e6, 500e6] {
            let point = Point::of_the_papers(rate);
            let w_a = point.acknowledgment_window();
            for p in [0.0, 1e-12] {
                for window in [1.2, w_a / 2.0, w_a + 1.0] {
                    let found = throughput(&point, p, window, Form::Corrected);
                    assert!((found * (w_a + 1.0) / window - 1.0).abs() < 1e-6, "{found} at {window}");
                }
                assert!((throughput(&point, p, w_a + 2.0, Form::Corrected) - 1.0).abs() < 1e-3);
                // F8 at W = 1 meets F6: one segment in every t_s + t_a.
                assert!((throughput(&point, p, 1.0, Form::Corrected) - 1.0 / (1.0 + w_a)).abs() < 1e-9);
            }
            assert_eq!(throughput(&point, 1.0, 5.0, Form::Corrected), 0.0);
            assert!((loss_in_segment(256, 1e-9) / 256e-9 - 1.0).abs() < 1e-6);
        }
    }

    #[test]
    fn the_cycle_of_f6_is_its_quotient() {
        let point = Point::of_the_papers(500e6);
        let quotient = packets_actual(&point, 1e-3, 7.0) / packets_ideal(&point, 1e-3, 7.0);
        assert!((quotient - throughput(&point, 1e-3, 7.0, Form::Corrected)).abs() < 1e-12);
    }
}
