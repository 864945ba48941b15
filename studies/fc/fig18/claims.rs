//! The claims on Fig. 18.
//!
//! Called by the study and its table.
//!
//! Invariant: as `segstream_lab::claim`.
//! Source: FC 4.3.3.

use super::super::buffer_sweep::{DECADES, PROBABILITIES, SMALL_BUFFERS, Setting, WINDOW, listed, over_buffers};
use super::one_loss_curve;
use segstream_lab::claim::{Finding, Judgement};
use segstream_lab::measured::Measured;

pub(super) fn same_at_full_buffer(points: &Measured) -> Option<Finding> {
    let mut differing = 0;
    for p in PROBABILITIES {
        let (hard, soft) = (Setting::Hard.at(points, WINDOW, p)?, Setting::SoftLazy.at(points, WINDOW, p)?);
        differing += u32::from(hard.outcomes != soft.outcomes);
    }
    let measured = format!("{} of {} points give the same counts and delays to the last digit", 9 - differing, PROBABILITIES.len());
    Some(Finding::new(if differing == 0 { Judgement::Agrees } else { Judgement::DoesNotAgree }, measured))
}

pub(super) fn collapse(points: &Measured) -> Option<Finding> {
    // 36 to 14, 14 to 7, 7 to 4, summed over the decades.
    let mut drops = [0.0; 3];
    let mut parts = Vec::new();
    for p in DECADES {
        let soft = |buffer: u32| Setting::SoftLazy.efficiency(points, buffer, p);
        let values = [soft(WINDOW)?, soft(14)?, soft(7)?, soft(4)?];
        for (drop, step) in drops.iter_mut().zip(values.windows(2)) {
            *drop += (step[0] - step[1]) / DECADES.len() as f64;
        }
        parts.push(format!("{} at {p:e}", listed(&values, 3)));
    }
    let collapses = Setting::SoftLazy.efficiency(points, 7, 1e-4)? < 0.5 * Setting::Hard.efficiency(points, 7, 1e-4)?;
    let judgement = match (collapses, drops[1] > drops[0] && drops[1] > drops[2]) {
        (true, true) => Judgement::Agrees,
        (true, false) => Judgement::ShapeOnly,
        (false, _) => Judgement::DoesNotAgree,
    };
    let measured = format!("soft ACK at B = 36 / 14 / 7 / 4: {}; mean drop of a step {}", parts.join(", "), listed(&drops, 3));
    let finding = Finding::new(judgement, measured);
    Some(if judgement == Judgement::ShapeOnly {
        finding.because(
            "It collapses, but with the largest step to w_a rather than to 0.5 w_a. At w_a and small p throughput stays near 0.88, 0.49 \
             or 0.13 for thousands of segments until another loss moves it, so what a run gives there depends on the few losses it \
             meets, and shorter runs can have the largest step at 0.5 w_a. At p = 1e-3 long runs have collapsed at w_a already.",
        )
    } else {
        finding
    })
}

pub(super) fn difference(points: &Measured) -> Option<Finding> {
    // Significant is taken as hard ACK being a quarter better.
    const SIGNIFICANT: f64 = 1.25;
    let mut parts = Vec::new();
    let mut significant_until: f64 = 0.0;
    let mut last = Vec::new();
    for p in DECADES {
        let ratios =
            over_buffers(|buffer| Some(Setting::Hard.efficiency(points, buffer, p)? / Setting::SoftLazy.efficiency(points, buffer, p)?))?;
        // The smaller two: at 1 w_a soft ACK has room for a rare loss.
        if ratios[..2].iter().all(|ratio| *ratio >= SIGNIFICANT) {
            significant_until = p;
        }
        parts.push(format!("{} at {p:e}", listed(&ratios, 2)));
        last = ratios;
    }
    let equal_at_last = last.iter().all(|ratio| (1.0 / SIGNIFICANT..SIGNIFICANT).contains(ratio));
    let judgement = match (significant_until >= 1e-2, equal_at_last, significant_until >= 1e-3) {
        (true, true, _) => Judgement::Agrees,
        (false, true, true) => Judgement::ShapeOnly,
        _ => Judgement::DoesNotAgree,
    };
    let measured = format!("hard over soft at B = {}: {}", listed(&SMALL_BUFFERS.map(f64::from), 0), parts.join(", "));
    let finding = Finding::new(judgement, measured);
    Some(if judgement == Judgement::ShapeOnly {
        finding.because(
            "The difference vanishes as the text says, but a decade earlier. What collapses is a segment that was acknowledged and \
             discarded; at p = 1e-2 nine of ten segments come incomplete at first and are asked for like those of hard ACK.",
        )
    } else {
        finding
    })
}

pub(super) fn lasting_state(points: &Measured) -> Option<Finding> {
    let of = |setting: Setting| over_buffers(|buffer| efficiency_long_after(points, setting, buffer));
    let (hard, lazy, eager) = (of(Setting::Hard)?, of(Setting::SoftLazy)?, of(Setting::SoftEager)?);
    let judgement = match lazy.iter().filter(|left| **left < 0.5).count() {
        0 => Judgement::DoesNotAgree,
        _ => Judgement::Agrees,
    };
    let measured = format!(
        "efficiency of the last quarter of the run at B = 4 / 7 / 14: soft ACK {}; soft ACK that asks at once {}; hard ACK {}",
        listed(&lazy, 3),
        listed(&eager, 3),
        listed(&hard, 3)
    );
    Some(Finding::new(judgement, measured).because(
        "What hard ACK is left with below 1 is a hole that goes round in the window: a segment discarded for want of room leaves the same \
         gap a round trip later.",
    ))
}

/// The throughput efficiency of the last quarter of the one-loss run, by batches of segments.
pub(super) fn efficiency_long_after(points: &Measured, setting: Setting, buffer: u32) -> Option<f64> {
    let result = points.at(&one_loss_curve(setting), f64::from(buffer))?;
    let packet_time = result.scenario.packet_time_s();
    let batches = result.outcomes.iter().flat_map(|outcome| &outcome.batches[outcome.batches.len() * 3 / 4..]);
    let (packets, span_ns) = batches.fold((0, 0), |(packets, span), batch| (packets + batch.packets, span + batch.span_ns));
    (span_ns > 0).then(|| packets as f64 * packet_time / (span_ns as f64 * 1e-9))
}
