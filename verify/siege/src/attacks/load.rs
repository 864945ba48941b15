//! 20,000 hostile datagrams a second at a listener that also carries a live encrypted transfer of 100 Mbit/s.
//!
//! Called through [`super::ATTACKS`]. A third each are random, changed copies of the transfer's own shipments, and right
//! beginnings with wrong ends, well-formed requests among them. The rate with the attack is compared with the rate
//! without it in the same run, before and after.
//!
//! Invariant: the attacker answers nothing, so that its requests stay requests.

use super::Siege;
use crate::attacker::Attacker;
use crate::forge::{self, noise, place};
use crate::messages::{Report, Request};
use crate::outcome::{Bound, Outcome};
use crate::process::Process;
use segstream_base::random::{Random, Seed};
use segstream_wire::handshake;
use segstream_wire::header::HEADER_BYTES;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Hostile datagrams in a second.
const PACE: u32 = 20_000;
/// With fewer it would be no load.
const DATAGRAMS_MIN: f64 = 1000.0;
/// The rate of the transfer.
const MEGABITS: u64 = 100;

/// The load.
///
/// # Errors
/// When the victim or the sender fail.
pub fn beside_a_transfer(siege: &Siege) -> anyhow::Result<Outcome> {
    let mut victim = siege.process(&["victim"])?;
    let mut sender = Process::start(&siege.program, &["sender".to_owned(), "--megabits".to_owned(), MEGABITS.to_string()])?;
    victim.ask(&Request::Admit(sender.key().to_owned()))?;
    sender.ask(&Request::SendTo(victim.address()))?;
    let quiet_seconds = if siege.small { 3 } else { (siege.seconds / 2).clamp(5, 30) };
    std::thread::sleep(Duration::from_secs(2));
    siege.progress(&format!("{quiet_seconds} s without the attack"));
    let mut quiet = rates(siege, &mut victim, quiet_seconds)?;
    let mut hostile = Hostile::new(&mut sender, Attacker::new(victim.address())?.with_pace(PACE), victim.address())?;
    let before = victim.report()?;
    siege.progress(&format!("{} s with {PACE} hostile datagrams a second", siege.seconds));
    let stop = AtomicBool::new(false);
    let (loud, hostile, seconds) = std::thread::scope(|scope| {
        let (began, stop) = (Instant::now(), &stop);
        let attacking = scope.spawn(move || hostile.attack(stop).map(|()| hostile));
        let loud = rates(siege, &mut victim, siege.seconds);
        stop.store(true, Ordering::Relaxed);
        let seconds = began.elapsed().as_secs_f64();
        let hostile = attacking.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        anyhow::Ok((loud?, hostile, seconds))
    })?;
    let after = victim.report()?;
    siege.progress(&format!("{quiet_seconds} s without the attack"));
    quiet.extend(rates(siege, &mut victim, quiet_seconds)?);
    let sent = sender.finish()?;
    let received = victim.report()?;
    victim.end()?;

    let (quiet, loud) = (median(quiet), median(loud));
    let attacker = hostile.attacker;
    let effect =
        format!("{quiet:.1} Mbit/s without, {loud:.1} with; {} segments complete, {} not", sent.verdicts_complete, sent.verdicts_other);
    let mut outcome = Outcome {
        attack: "load",
        sent: attacker.sent,
        answered: attacker.answered,
        memory_growth_bytes: after.spent.growth_bytes(&before.spent),
        cpu_seconds: after.spent.cpu_seconds - before.spent.cpu_seconds,
        effect,
        bounds: Vec::new(),
    };
    outcome.bounds = bounds(&outcome, &sent, &received);
    // Why 0.9: the kernel may drop some on a busy machine.
    let heard = after.heard_of_strangers() - before.heard_of_strangers();
    outcome.bounds.push(Bound::least("hostile datagrams heard", heard as f64, 0.9 * outcome.sent.datagrams as f64));
    if !siege.small {
        outcome.bounds.push(Bound::least("rate, of that without the attack", loud / quiet, 0.95));
        // Why not on a small scale: other work on the machine may slow the attacker.
        let pace = outcome.sent.datagrams as f64 / seconds;
        outcome.bounds.push(Bound::least("hostile datagrams a second", pace, 0.9 * f64::from(PACE)));
    }
    Ok(outcome)
}

/// What must hold on every machine, with the last words of sender and victim.
fn bounds(outcome: &Outcome, sent: &Report, received: &Report) -> Vec<Bound> {
    // Why 16 MiB: nothing is kept for unknown peers; the transfer's own window of 16 MiB may fill while the victim is late.
    let [memory, answered] = outcome.common_bounds((16 << 20) as f64, outcome.sent.bytes as f64);
    let (judged, delivered) = (sent.verdicts_complete as f64, received.segments_right as f64);
    vec![
        memory,
        answered,
        Bound::least("hostile datagrams", outcome.sent.datagrams as f64, DATAGRAMS_MIN),
        Bound::most("verdicts that are not complete", sent.verdicts_other as f64, 0.0),
        Bound::most("segments changed", received.segments_wrong as f64, 0.0),
        Bound::least("segments delivered of those judged complete", delivered, judged),
        Bound::so("the transfer is closed in order", sent.ended.iter().all(|ended| ended.starts_with("closed by this end"))),
    ]
}

/// What the victim takes in, second by second, in Mbit/s of content.
fn rates(siege: &Siege, victim: &mut Process, seconds: u64) -> anyhow::Result<Vec<f64>> {
    let mut rates = Vec::new();
    let (mut at, mut had) = (Instant::now(), victim.report()?.bytes_right);
    for second in 1..=seconds {
        std::thread::sleep(Duration::from_secs(1));
        let (now, has) = (Instant::now(), victim.report()?.bytes_right);
        rates.push((has - had) as f64 * 8e-6 / (now - at).as_secs_f64());
        (at, had) = (now, has);
        if second % 30 == 0 {
            siege.progress(&format!("{second} s: {:.1} Mbit/s", rates[rates.len() - 1]));
        }
    }
    Ok(rates)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

struct Hostile {
    attacker: Attacker,
    random: Random,
    /// Real shipments of the live transfer.
    samples: Vec<Vec<u8>>,
    request: handshake::Request,
}

impl Hostile {
    fn new(sender: &mut Process, attacker: Attacker, victim: std::net::SocketAddr) -> anyhow::Result<Self> {
        let mut samples = sender.report()?.samples;
        let request = forge::request(victim)?;
        samples.push(forge::datagram_of(&request));
        Ok(Self { attacker, random: Seed(1).stream("load"), samples, request })
    }

    fn attack(&mut self, stop: &AtomicBool) -> anyhow::Result<()> {
        while !stop.load(Ordering::Relaxed) {
            for kind in 0..48 {
                let datagram = match kind % 3 {
                    0 => self.random_one(),
                    1 => self.changed(),
                    _ => self.begun_well(),
                };
                let host = Attacker::host(self.random.below(1 << 20) as u32);
                self.attacker.send(host, &datagram)?;
            }
            self.attacker.hear(|_, _| ())?;
        }
        self.attacker.hear_for(Duration::from_millis(200), |_, _| ())?;
        Ok(())
    }

    fn random_one(&mut self) -> Vec<u8> {
        let length = place(&mut self.random, 1472);
        noise(&mut self.random, length)
    }

    fn sample(&mut self) -> Vec<u8> {
        let at = place(&mut self.random, self.samples.len());
        self.samples[at].clone()
    }

    /// A real one with one to four bytes changed, and sometimes cut.
    fn changed(&mut self) -> Vec<u8> {
        let mut datagram = self.sample();
        for _ in 0..=self.random.below(4) {
            let at = place(&mut self.random, datagram.len());
            datagram[at] ^= 1 << self.random.below(8);
        }
        if self.random.chance(0.25) {
            datagram.truncate(place(&mut self.random, datagram.len()));
        }
        datagram
    }

    /// A forged request, or the header of a real shipment with something else behind it.
    fn begun_well(&mut self) -> Vec<u8> {
        if self.random.chance(0.5) {
            let request = handshake::Request { request: self.random.bits(), connection: self.random.bits() as u32, ..self.request.clone() };
            return forge::datagram_of(&request);
        }
        let mut datagram = self.sample();
        datagram.truncate(HEADER_BYTES);
        let length = place(&mut self.random, 1200);
        datagram.extend(noise(&mut self.random, length));
        datagram
    }
}
