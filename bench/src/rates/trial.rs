//! One run: the link of a cell, the flows over it, and what was measured of them.
//!
//! Called by [`super::run`] for each run that the journal does not have.
//!
//! Invariant: the namespaces and all processes end with the run, also when it is interrupted.

use super::cells::{Cell, Kernel, Rule, Turn};
use super::iperf;
use super::journal::{Key, Run};
use super::path;
use super::processors::ProcessorTime;
use crate::arrivals::Arrivals;
use crate::shared::{self, feeder::Application};
use anyhow::{Context as _, Result, bail};
use rustix::process::Signal;
use segstream_base::random::Seed;
use segstream_blocks::congestion::auto;
use segstream_lab::statistics::jain;
use segstream_testbed::probe::Crossing;
use segstream_testbed::process::{Ended, Running};
use segstream_testbed::{Ends, Side, Testbed};
use serde_json::Value;
use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long after the other the later of two flows begins.
const APART: f64 = 2.0;
/// The port of the first iperf3.
const PORT: u16 = 5201;
/// How large the kernel may make the buffers of TCP: least, first, most. A new namespace has less.
const TCP_BUFFERS: [(&str, &str); 2] = [("ipv4/tcp_rmem", "4096 131072 67108864"), ("ipv4/tcp_wmem", "4096 16384 67108864")];
/// Below this part of the link a second is a starved one.
const STARVED: f64 = 0.2;
/// From this second on they count.
const STARVED_FROM: u32 = 2;
/// The part of the processors above which the ends may have waited for each other and not for the link. At 0.83 ours had what it has alone;
/// at 0.97 two of eight had a seventh less.
const BUSY_MOST: f64 = 0.9;
/// Above this rate a link must be on time with all but one packet of a thousand, below with all but one of a hundred.
/// Why: a host takes the processors for a few milliseconds each second or two. Slower flows carry the same with it and without; docs/PATHS.md
/// has the figures.
const FAST_MBIT: f64 = 50.0;

/// Who is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contender {
    Kernel(Kernel),
    Ours,
}

impl Contender {
    pub(super) const ALL: [Self; 3] = [Self::Kernel(Kernel::Cubic), Self::Kernel(Kernel::Bbr), Self::Ours];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Kernel(kernel) => kernel.name(),
            Self::Ours => "ours",
        }
    }
}

/// What all runs have in common.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) segstream: PathBuf,
    pub(super) interrupted: Arc<AtomicBool>,
}

/// How long it is until a slot of the schedule has lasted for `time`.
fn until(time: segstream_base::Duration, now: SystemTime) -> Duration {
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() % u128::from(auto::SLOT.as_nanos());
    Duration::from_nanos((auto::SLOT.as_nanos() + time.as_nanos() - now as u64) % auto::SLOT.as_nanos())
}

/// Flows of one kind that begin together.
struct Group {
    contender: Contender,
    count: usize,
    /// On the clock of the link, in seconds.
    start: f64,
    receivers: Vec<Running>,
    senders: Vec<Running>,
    /// When the senders were started.
    begun: f64,
}

/// What came of a group.
struct Carried {
    start: f64,
    flows: Vec<Arrivals>,
    in_time: Option<f64>,
}

impl Setup {
    /// Makes a run, over a recorded link if the cell has a `trace`. What goes wrong at a flow makes it void.
    pub(super) fn run(&self, cell: &Cell, trace: Option<&str>, key: &Key, contender: Contender) -> Result<Run> {
        let flags = path::flags(cell, key.seed, trace, contender);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        // Why: what becomes of a flow in its first seconds depends on when the next drain is. Runs that begin at once would all tell the same.
        self.sleep_until(Instant::now(), until(key.time_of_day(), SystemTime::now()).as_secs_f64())?;
        let testbed = Testbed::side_by_side(&self.segstream, &flags)?;
        for side in [Side::A, Side::B] {
            TCP_BUFFERS.iter().for_each(|(setting, value)| testbed.set(side, setting, value));
            testbed.set(side, "ipv4/tcp_ecn", if cell.ecn { "1" } else { "0" });
        }
        let begun = ProcessorTime::now();
        let (ends, zero, stop) = (testbed.ends(), testbed.opened(), AtomicBool::new(false));
        let (carried, crossings) = thread::scope(|scope| {
            let probe = (cell.met == Rule::Recovers).then(|| scope.spawn(|| ends.probe(&stop)));
            let carried = self.play(cell, key, contender, ends, zero);
            stop.store(true, Ordering::Relaxed);
            let crossings = probe.map(|probe| probe.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            (carried, crossings.unwrap_or_default())
        });
        let link = testbed.end().json();
        self.go_on()?;
        let busy = ProcessorTime::now().zip(begun).map_or(0.0, |(now, begun)| now.busy_since(begun));
        let run = of_link(key, cell.mbit, &link, busy);
        Ok(match carried {
            Ok([measured, other]) => {
                let waits: Vec<(f64, f64)> = crossings.into_iter().map(|crossing| wait(&crossing, zero, cell.rtt_ms)).collect();
                evaluate(run, cell, measured.as_ref(), other.as_ref(), &waits)
            }
            Err(error) => Run { void: Some(format!("{error:#}")), ..run },
        })
    }

    fn go_on(&self) -> Result<()> {
        if self.interrupted.load(Ordering::Relaxed) {
            bail!("interrupted; the same command goes on with what is missing");
        }
        Ok(())
    }

    fn sleep_until(&self, zero: Instant, seconds: f64) -> Result<()> {
        let end = zero + Duration::from_secs_f64(seconds);
        while Instant::now() < end {
            self.go_on()?;
            thread::sleep(end.saturating_duration_since(Instant::now()).min(Duration::from_millis(50)));
        }
        Ok(())
    }

    /// Lets all flows run: the measured group, and the other if there is one.
    fn play(&self, cell: &Cell, key: &Key, contender: Contender, ends: &Ends, zero: Instant) -> Result<[Option<Carried>; 2]> {
        let mut groups = groups(cell, contender);
        for (at, group) in groups.iter_mut().enumerate() {
            group.receivers = self.receivers(group, ends, PORT + at as u16)?;
        }
        let end = groups.iter().map(|group| group.start).fold(0.0, f64::max) + f64::from(key.seconds);
        let mut order: Vec<usize> = (0..groups.len()).collect();
        order.sort_by(|one, two| groups[*one].start.total_cmp(&groups[*two].start));
        for at in order {
            self.sleep_until(zero, groups[at].start)?;
            groups[at].begun = zero.elapsed().as_secs_f64();
            groups[at].senders = self.senders(cell, &mut groups[at], (ends, zero), PORT + at as u16, key, end)?;
        }
        self.sleep_until(zero, end)?;
        let carried: Vec<Carried> = groups.into_iter().map(|group| collect(group, zero, cell)).collect::<Result<_>>()?;
        let mut carried = carried.into_iter();
        Ok([carried.next(), carried.next()])
    }

    /// Starts our sender with what a live source has until `end`.
    fn live(&self, ends: &Ends, flags: &[&str], source: &Application, zero: Instant, end: f64) -> Running {
        let mut sender = ends.start(Side::A, &self.segstream, flags, Stdio::piped());
        if let Some(pipe) = sender.take_input() {
            let source = source.clone();
            thread::spawn(move || source.feed(pipe, zero, end));
        }
        sender
    }

    fn receivers(&self, group: &Group, ends: &Ends, port: u16) -> Result<Vec<Running>> {
        if group.contender != Contender::Ours {
            return Ok(vec![iperf::receiver(ends, port)?]);
        }
        let listen = format!("{}:0", ends.address(Side::B));
        // Why rarer with many: each line takes time from the link.
        let interval = if group.count > 8 { "250ms" } else { "50ms" };
        let flags = ["recv", "--listen", &listen, "--insecure", "--stats", interval];
        Ok((0..group.count).map(|_| ends.start(Side::B, &self.segstream, &flags, Stdio::null())).collect())
    }

    fn senders(
        &self,
        cell: &Cell,
        group: &mut Group,
        (ends, zero): (&Ends, Instant),
        port: u16,
        key: &Key,
        end: f64,
    ) -> Result<Vec<Running>> {
        if let Contender::Kernel(kernel) = group.contender {
            return Ok(vec![iperf::sender(ends, port, kernel.name(), group.count, end - group.start)]);
        }
        let addresses: Vec<String> = group.receivers.iter_mut().map(|receiver| receiver.listening().to_string()).collect();
        if let Rule::InTime { mbit, deadline_ms, on_off_s, .. } = cell.met {
            let source = Application { bps: mbit * 1e6, pauses: pauses(group.start, end, f64::from(on_off_s)) };
            let (rate, lifetime) = (format!("auto:start={mbit}mbit"), format!("{deadline_ms}ms"));
            let live = ["--json", "--drop-oldest", "--lifetime", &lifetime];
            return Ok(addresses
                .iter()
                .map(|to| self.live(ends, &[&ours(to, &rate, key)[..], &live].concat(), &source, zero, end))
                .collect());
        }
        let mut random = Seed(key.seed).stream("clocks");
        let started = addresses.iter().map(|to| {
            let ahead = format!("{}ms", if cell.unsynchronised { random.below(1001) } else { 0 });
            let zeros = File::open("/dev/zero").context("/dev/zero cannot be read, which is what is sent")?;
            let mut flags = ours(to, "auto", key).to_vec();
            if cell.unsynchronised {
                flags.extend(["--clock-ahead", &ahead]);
            }
            Ok(ends.start(Side::A, &self.segstream, &flags, Stdio::from(zeros)))
        });
        started.collect()
    }
}

/// The flags of our sender.
fn ours<'a>(to: &'a str, rate: &'a str, key: &'a Key) -> [&'a str; 10] {
    ["send", to, "-", "--rate", rate, "--insecure", "--congestion", &key.congestion, "--segment-bytes", &key.segment]
}

/// When a source that begins at `from` is off: as long as it was on before.
fn pauses(from: f64, to: f64, on: f64) -> Vec<(f64, f64)> {
    (0..).map(|turn| from + on * f64::from(2 * turn + 1)).take_while(|off| *off < to).map(|off| (off, off + on)).collect()
}

/// The part of the segments that our sender, which has ended, knows to be complete in time.
fn in_time(sender: &Ended) -> Result<f64> {
    let report: Value = serde_json::from_slice(&sender.stdout).context("the live sender has said nothing")?;
    let of = |verdict: &str| report["verdicts"][verdict].as_f64().unwrap_or(0.0);
    let segments = ["complete", "within_tolerance", "expired", "unknown"].map(of).iter().sum::<f64>();
    if segments == 0.0 {
        bail!("the live sender has sent nothing: {}", report["error"]);
    }
    Ok(of("complete") / segments)
}

fn groups(cell: &Cell, contender: Contender) -> Vec<Group> {
    let lead = cell.lead();
    let group = |contender, count, start| Group { contender, count, start, receivers: Vec::new(), senders: Vec::new(), begun: start };
    match cell.beside {
        None => vec![group(contender, cell.count, lead)],
        Some((other, turn)) => {
            let (own, others) = match turn {
                Turn::First => (lead, lead + APART),
                Turn::Second => (lead + APART, lead),
                Turn::Same => (lead, lead),
            };
            vec![group(contender, cell.count, own), group(Contender::Kernel(other), 1, others)]
        }
    }
}

/// Ends a group's processes; what they carried.
fn collect(group: Group, zero: Instant, cell: &Cell) -> Result<Carried> {
    let Group { contender, count, start, receivers, senders, begun } = group;
    let mut of_segments = None;
    let flows: Vec<Arrivals> = if contender == Contender::Ours {
        let live = matches!(cell.met, Rule::InTime { .. });
        // Why a live one is not interrupted: its pipe has ended, and what it waits for are verdicts.
        senders.iter().filter(|_| !live).for_each(|sender| sender.signal(Signal::INT));
        for sender in senders {
            let ended = sender.end();
            of_segments = if live { Some(in_time(&ended)?) } else { None };
        }
        let ended: Vec<Ended> = receivers.into_iter().map(Running::interrupt).collect();
        ended.iter().map(|ended| Arrivals::of(&ended.said, zero)).collect()
    } else {
        let complaint = senders.into_iter().map(Running::end).find(|sender| sender.code != Some(0));
        if let Some(sender) = complaint {
            bail!("{}", iperf::complaint(&sender.stdout));
        }
        let ended = receivers.into_iter().map(Running::end).next().context("there was no receiver")?;
        // Its own connection takes about two round trips before the test begins.
        let begun = begun + 2.0 * cell.rtt_ms / 1e3;
        iperf::parse(&ended.stdout)?.iter().map(|intervals| Arrivals::of_tcp(begun, intervals)).collect()
    };
    if flows.len() != count {
        bail!("{} of {count} flows of {} were measured", flows.len(), contender.name());
    }
    Ok(Carried { start, flows, in_time: of_segments })
}

/// When a probe left, in seconds, and how long it waited, in milliseconds.
fn wait(crossing: &Crossing, zero: Instant, rtt_ms: f64) -> (f64, f64) {
    (crossing.left.duration_since(zero).as_secs_f64(), crossing.took.as_secs_f64() * 1e3 - rtt_ms / 2.0)
}

/// What the link says of itself.
fn of_link(key: &Key, mbit: f64, link: &Value, busy: f64) -> Run {
    let forward = |name: &str| link["forward"][name].as_f64().unwrap_or(0.0);
    let dropped = ["packets_dropped_queue", "packets_dropped_aqm", "packets_dropped_policer"].map(forward).iter().sum::<f64>();
    let late = |name: &str| link[name].as_f64().unwrap_or(f64::INFINITY);
    let (quantile, lateness) = if mbit > FAST_MBIT { ("p99.9", late("lateness_ms_p999")) } else { ("p99", late("lateness_ms_p99")) };
    // Not `kept_up`, which holds a slow link to p99.9 too.
    let count = |count: &Value| count.as_u64().unwrap_or(0);
    let unread = count(&link["datagrams_dropped_receive_buffer"]);
    let unsent = count(&link["forward"]["datagrams_dropped"]) + count(&link["back"]["datagrams_dropped"]);
    let void = if lateness > 1.0 {
        let stolen = link["stolen_ms"].as_f64().map_or_else(String::new, |ms| format!(", and the machine's host took {ms:.0} ms"));
        Some(format!("the link was {lateness:.2} ms late at {quantile}{stolen}"))
    } else if unread + unsent > 0 {
        Some(format!("the link did not keep up ({unread} packets dropped before it read them, {unsent} that it could not send)"))
    } else {
        (busy > BUSY_MOST).then(|| format!("the machine was busy: {:.0} % of its processors", 100.0 * busy))
    };
    Run {
        key: key.clone(),
        lateness_ms_p999: late("lateness_ms_p999"),
        queue_ms_p95: forward("queueing_ms_p95"),
        dropped: dropped / forward("packets_entered").max(1.0),
        void,
        load: shared::load(),
        ..Run::default()
    }
}

/// What the flows carried, by the cell.
fn evaluate(run: Run, cell: &Cell, measured: Option<&Carried>, other: Option<&Carried>, waits: &[(f64, f64)]) -> Run {
    let (lead, seconds) = (cell.lead(), run.key.seconds);
    let Some(Carried { start, flows, in_time }) = measured else { return run };
    let joined = other.map_or(*start, |other| other.start.max(*start));
    let (from, to) = (joined + cell.seconds.map_or(0.0, |(_, from)| f64::from(from)), joined + f64::from(seconds));
    let link_bps = cell.mbit * 1e6;
    let whole = |from: f64, to: f64| flows.iter().map(|flow| flow.bps(from, to)).sum::<f64>();
    let starved = (STARVED_FROM..seconds).map(|at| joined + f64::from(at)).filter(|at| whole(*at, at + 1.0) < STARVED * link_bps);
    let last = cell.changes.last().map(|(at, _)| lead + at);
    Run {
        goodput_bps: flows.iter().map(|flow| flow.delivered_bps(from, to)).sum(),
        filled: whole(from, to) / link_bps,
        other_bps: other.map(|other| other.flows.iter().map(|flow| flow.delivered_bps(from, to)).sum()),
        starved_seconds: starved.count() as u32,
        jain: (flows.len() > 1).then(|| jain(&flows.iter().map(|flow| flow.bps(from, to)).collect::<Vec<_>>())),
        in_time: *in_time,
        again_after_s: last.map(|last| again_after(last, to, |from, to| whole(from, to) / link_bps)),
        wait_ms_max: cell.changes.get(1).map(|(at, mbit)| {
            // In an outage everything waits for its end; what leaves after it need not.
            let from = if *mbit > 0.0 { lead + at } else { last.unwrap_or(lead + at) };
            waits.iter().filter(|(left, _)| *left >= from).map(|(_, wait)| *wait).fold(0.0, f64::max)
        }),
        ..run
    }
}

/// How long after `last` half a second begins in which 0.9 of the link is used; the rest of the run if none does.
pub(super) fn again_after(last: f64, end: f64, filled: impl Fn(f64, f64) -> f64) -> f64 {
    let steps = (0..).map(|step| f64::from(step) * 0.1).take_while(|after| last + after + 0.5 <= end);
    let mut full = steps.filter(|after| filled(last + after, last + after + 0.5) >= 0.9);
    full.next().unwrap_or(end - last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_waits_for_its_moment_of_the_slot_and_never_for_longer_than_one() {
        let waits =
            |time_ms, now_ms| until(segstream_base::Duration::from_millis(time_ms), UNIX_EPOCH + Duration::from_millis(now_ms)).as_millis();
        for (time_ms, now_ms, wait_ms) in [(1200, 3000, 1200), (1200, 4200, 0), (1200, 4201, 2999), (0, 0, 0), (2999, 5998, 1)] {
            assert_eq!(waits(time_ms, now_ms), wait_ms, "{time_ms} ms at {now_ms} ms");
        }
    }
}
