//! The scenarios with their targets.
//!
//! Called by [`super::run`]. Source: RFC 8867 and RFC 9743, as in `studies/flagship`, which has the same ones in virtual
//! time and longer.
//!
//! Invariant: moments are parts of the time that was asked for, so that a longer run is the same trial, slower.

use super::feeder::Application;
use super::trial::{Flow, Observed, TrialSetup};
use anyhow::Result;
use segstream_lab::statistics::jain;
use segstream_testbed::kernel_tcp;
use serde::Serialize;

/// The common link: 100 Mbit/s, 60 ms, and a queue of one bandwidth-delay product, which is the default.
const LINK: [&str; 4] = ["--bandwidth", "100mbit", "--rtt", "60ms"];
const LINK_BPS: f64 = 100e6;
/// Half of the round trip of [`step`], in seconds.
const STEP_WAY: f64 = 0.05;

/// A scenario.
pub(super) struct Scenario {
    pub(super) name: &'static str,
    pub(super) text: &'static str,
    pub(super) measure: fn(&TrialSetup) -> Result<Measured>,
}

/// What a scenario tells.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pub(super) numbers: Vec<Number>,
    /// What was not measured, and what makes numbers doubtful.
    pub(super) notes: Vec<String>,
}

/// A number, and its target if it has one.
#[derive(Debug, Serialize)]
pub(super) struct Number {
    pub(super) what: &'static str,
    pub(super) measured: f64,
    pub(super) target: Option<&'static str>,
    pub(super) met: Option<bool>,
}

/// All of them.
pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario { name: "alone", text: "one stream", measure: alone },
    Scenario { name: "four", text: "four streams, started one after the other", measure: four },
    Scenario { name: "cubic", text: "a stream that the kernel's CUBIC joins", measure: |setup| beside(setup, "cubic") },
    Scenario { name: "bbr", text: "a stream that the kernel's BBR joins", measure: |setup| beside(setup, "bbr") },
    Scenario { name: "loss", text: "a stream under random loss of 1e-2", measure: loss },
    Scenario { name: "step", text: "a stream on 10 Mbit/s that become 5", measure: step },
    Scenario { name: "policer", text: "a stream whose excess of 50 Mbit/s is dropped", measure: policer },
    Scenario { name: "pause", text: "an application with 50 Mbit/s that pauses", measure: pause },
];

impl Measured {
    /// Begins with what the link says of itself.
    fn of(observed: &Observed) -> Self {
        let mut measured = Self::default();
        if observed.link["kept_up"] != true {
            let late = &observed.link["lateness_ms_p999"];
            measured.notes.push(format!(
                "the link could not keep up (one packet of a thousand more than {:.1} ms late), so do not trust the numbers",
                late.as_f64().unwrap_or(f64::NAN)
            ));
        }
        measured
    }

    fn number(&mut self, what: &'static str, measured: f64, target: &'static str, met: bool) {
        self.numbers.push(Number { what, measured, target: Some(target), met: Some(met) });
    }

    /// A number without a target.
    fn aside(&mut self, what: &'static str, measured: f64) {
        self.numbers.push(Number { what, measured, target: None, met: None });
    }
}

impl Observed {
    fn queueing_ms(&self, which: &str) -> f64 {
        self.link["forward"][which].as_f64().unwrap_or(f64::NAN)
    }
}

fn greedy(start: f64) -> Flow {
    Flow::Stream { start, application: None }
}

fn alone(setup: &TrialSetup) -> Result<Measured> {
    let end = setup.seconds;
    let observed = setup.run("alone", &LINK, &[greedy(0.0)])?;
    let mut measured = Measured::of(&observed);
    let filled = observed.streams[0].bps(end / 3.0, end) / LINK_BPS;
    let mean = observed.queueing_ms("queueing_ms_mean");
    measured.number("part of the link, last two thirds", filled, ">= 0.95", filled >= 0.95);
    measured.number("queueing delay, mean (ms)", mean, "<= 10", mean <= 10.0);
    measured.aside("queueing delay, 95th percentile (ms)", observed.queueing_ms("queueing_ms_p95"));
    measured.aside("queueing delay, longest (ms)", observed.queueing_ms("queueing_ms_max"));
    Ok(measured)
}

fn four(setup: &TrialSetup) -> Result<Measured> {
    let end = setup.seconds;
    let flows = [0.0, 1.0, 2.0, 3.0].map(|number| greedy(number * end / 15.0));
    let observed = setup.run("four", &LINK, &flows)?;
    let mut measured = Measured::of(&observed);
    let got: Vec<f64> = observed.streams.iter().map(|stream| stream.bps(end * 2.0 / 3.0, end) / LINK_BPS).collect();
    let jain = jain(&got);
    measured.number("Jain's index, last third", jain, ">= 0.95", jain >= 0.95);
    measured.aside("part of the link, all four", got.iter().sum());
    measured.aside("queueing delay, mean (ms)", observed.queueing_ms("queueing_ms_mean"));
    measured.notes.push(format!("parts of the link in the order of their starts: {}", listed(&got)));
    Ok(measured)
}

fn beside(setup: &TrialSetup, congestion_control: &'static str) -> Result<Measured> {
    if !kernel_tcp::is_available(congestion_control) {
        let note = format!("not measured: this kernel has no {congestion_control}; load it with modprobe tcp_{congestion_control}");
        return Ok(Measured { notes: vec![note], ..Measured::default() });
    }
    let end = setup.seconds;
    let observed = setup.run(congestion_control, &LINK, &[greedy(0.0), Flow::Tcp { start: end / 5.0, congestion_control }])?;
    let mut measured = Measured::of(&observed);
    let share = observed.streams[0].bps(end / 2.0, end) / LINK_BPS;
    measured.number("part of the link, last half", share, "0.25 to 0.6", (0.25..=0.6).contains(&share));
    measured.aside("part of the link of the TCP", observed.tcps[0].bps(end / 2.0, end) / LINK_BPS);
    measured.aside("queueing delay, mean (ms)", observed.queueing_ms("queueing_ms_mean"));
    Ok(measured)
}

fn loss(setup: &TrialSetup) -> Result<Measured> {
    let end = setup.seconds;
    let flags = [&LINK[..], &["--loss", "1e-2", "--loss-at", "after"]].concat();
    let observed = setup.run("loss", &flags, &[greedy(0.0)])?;
    let mut measured = Measured::of(&observed);
    let filled = observed.streams[0].bps(end / 3.0, end) / LINK_BPS;
    // 0.95 of the 0.98 that a stream has without loss.
    measured.number("part of the link that arrives, last two thirds", filled, ">= 0.93", filled >= 0.93);
    measured.aside("queueing delay, mean (ms)", observed.queueing_ms("queueing_ms_mean"));
    Ok(measured)
}

fn step(setup: &TrialSetup) -> Result<Measured> {
    let (end, down) = (setup.seconds, (setup.seconds / 2.0).floor());
    let speed = format!("0s:10mbit,{down}s:5mbit");
    let observed = setup.run("step", &["--bandwidth", &speed, "--rtt", "100ms", "--queue", "625000"], &[greedy(0.0)])?;
    let mut measured = Measured::of(&observed);
    let waits: Vec<(f64, f64)> = observed.crossings.iter().map(|(at, took)| (at - down, (took - STEP_WAY) * 1e3)).collect();
    let peak = waits.iter().filter(|(at, _)| *at >= 0.0).map(|(_, wait)| *wait).fold(0.0, f64::max);
    measured.number("longest wait after the step (ms)", peak, "< 300", peak < 300.0);
    let means = means(&waits, (end - down).floor());
    let above = means.iter().position(|wait| *wait >= 20.0);
    let again =
        above.map(|above| means[above..].iter().position(|wait| *wait < 20.0).map_or(f64::INFINITY, |after| (above + after) as f64 * 0.1));
    let again = again.unwrap_or(0.0);
    measured.number("below 20 ms again after (s)", again, "<= 2", again <= 2.0);
    let later = means.iter().skip(20).fold(0.0, |most: f64, wait| most.max(*wait));
    measured.number("longest mean wait of 100 ms from 2 s on (ms)", later, "< 20", later < 20.0);
    measured.aside("part of the 5 Mbit/s from 2 s on", observed.streams[0].bps(down + 2.0, end) / 5e6);
    Ok(measured)
}

/// The mean wait in every whole 100 ms up to `end`; what has no packet is left out.
fn means(waits: &[(f64, f64)], end: f64) -> Vec<f64> {
    let mean = |interval: usize| {
        let (from, to) = (interval as f64 * 0.1, (interval + 1) as f64 * 0.1);
        let inside: Vec<f64> = waits.iter().filter(|(at, _)| (from..to).contains(at)).map(|(_, wait)| *wait).collect();
        (!inside.is_empty()).then(|| inside.iter().sum::<f64>() / inside.len() as f64)
    };
    (0..(end * 10.0) as usize).filter_map(mean).collect()
}

fn policer(setup: &TrialSetup) -> Result<Measured> {
    const RATE_BPS: f64 = 50e6;
    let end = setup.seconds;
    let flags = [&LINK[..], &["--policer", "50mbit"]].concat();
    let observed = setup.run("policer", &flags, &[greedy(0.0)])?;
    let mut measured = Measured::of(&observed);
    let stream = &observed.streams[0];
    let seconds = (2..end as u32).map(f64::from);
    let least = seconds.map(|from| stream.bps(from, from + 1.0) / RATE_BPS).fold(f64::INFINITY, f64::min);
    measured.number("least part of the policer's rate in a second from 2 s on", least, ">= 0.5", least >= 0.5);
    let lost = stream.lost_part(2.0, end);
    measured.number("part of packets dropped from 2 s on", lost, "<= 0.02", lost <= 0.02);
    measured.aside("mean part of the policer's rate from 2 s on", stream.bps(2.0, end) / RATE_BPS);
    Ok(measured)
}

fn pause(setup: &TrialSetup) -> Result<Measured> {
    const RATE_BPS: f64 = 50e6;
    let end = setup.seconds;
    let pauses = [(end / 3.0, end * 0.5), (end * 0.75, end * 0.75 + 0.5)];
    let application = Application { bps: RATE_BPS, pauses: pauses.to_vec() };
    let observed = setup.run("pause", &LINK, &[Flow::Stream { start: 0.0, application: Some(application) }])?;
    let mut measured = Measured::of(&observed);
    let stream = &observed.streams[0];
    let spans = [(1.5, pauses[0].0), (pauses[0].1 + 0.5, pauses[1].0), (pauses[1].1 + 0.5, end)];
    let kept = spans.map(|(from, to)| stream.delivered_bps(from, to - 0.1) / RATE_BPS).into_iter().fold(f64::INFINITY, f64::min);
    measured.number("least part of what the application has that arrives", kept, ">= 0.99", kept >= 0.99);
    // Before the first pause it has what it wants, headers included.
    let whole = stream.bps(1.5, pauses[0].0);
    for (what, from, to) in [
        ("after the long pause 0.9 of it from then on after (s)", pauses[0].1, pauses[1].0),
        ("after the short pause 0.9 of it from then on after (s)", pauses[1].1, end - 0.2),
    ] {
        let count = ((to - from) * 10.0) as usize;
        let part = |interval: usize| stream.bps(from + interval as f64 * 0.1, from + (interval + 1) as f64 * 0.1) / whole;
        let settled = (0..count).rev().find(|interval| part(*interval) < 0.9).map_or(0, |last| last + 1) as f64 * 0.1;
        // Two round trips and the one-way delay, in whole intervals.
        measured.number(what, settled, "<= 0.2", settled <= 0.2 + 1e-9);
    }
    measured.aside("queueing delay, mean (ms)", observed.queueing_ms("queueing_ms_mean"));
    Ok(measured)
}

fn listed(values: &[f64]) -> String {
    let values: Vec<String> = values.iter().map(|value| format!("{value:.3}")).collect();
    values.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_of_whole_intervals_after_the_step() {
        let waits = [(-0.05, 99.0), (0.01, 10.0), (0.06, 20.0), (0.25, 5.0), (0.31, 7.0)];
        assert_eq!(means(&waits, 0.35), [15.0, 5.0]);
    }
}
