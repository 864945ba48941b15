//! What the exchanges say, filtered: the queue, traffic intensity, the rate of service, loss.
//!
//! Called by the controller for every exchange. Source: HT 3.5, with `rho = beta / alpha` and the virtual service rate
//! `x / beta`. All filters are sums or minima over a part of the control time tau, so that a time stamp late by 1 ms
//! does little: the queue is the least of a quarter of tau, rates are sums over half of it.
//!
//! Invariant: no more than 192 samples and 256 rates are kept, and nothing is allocated once they are; of a connection that
//! is idle only a few of each.

use super::base_delay::BaseDelay;
use super::delivery_max::DeliveryMax;
use super::noise::Noise;
use super::remembered::Remembered;
use super::{Exchange, Memory, law};
use segstream_base::{Duration, Instant};
use std::collections::VecDeque;

/// Samples kept: four control times at sixteen a control time, or twelve where noise is longer than the control time.
const SAMPLES: usize = 192;
/// Rates kept: enough for the round trip with a long queue.
const RATES: usize = 256;
/// An exchange over so many control times, and a second at least, is a pause: nothing before it is looked at again.
const PAUSE: f64 = 8.0;
const PAUSE_LEAST: f64 = 1.0;
/// What is kept over a pause: the newest.
const KEPT: usize = 2;
/// A floor of the delay is taken over so many times the noise, so that it has a packet that was hardly held back.
const FLOOR_NOISES: f64 = 3.0;
/// A queue is what a floor has above the base beyond so many times the noise: floors vary too.
const MARGIN_NOISES: f64 = 1.5;
/// Noise below this part of the target is none.
const NOISE_LEAST: f64 = 0.15;
/// For so long after the last noise a delay may still be what it has left.
const NOISE_REMEMBERED: Duration = Duration::from_secs(30);
/// Service is what was served over the time of so many datagrams at least: of three, one more or less is a third.
const SERVICE_DATAGRAMS: f64 = 10.0;
/// Loss comes in bursts when fewer than this part of the exchanges have some that would have if each shipment were lost by itself. A policer,
/// which drops of each so many shipments one, makes more of them have some. Of so many shipments some are lost in any case.
const BURSTY: f64 = 0.6;
const SHIPMENTS_MOST: f64 = 1000.0;
/// Loss of up to 3 % is made up for in the rate of service: it may be random, and then says nothing of service.
const RANDOM_LOSS: f64 = 1.03;

/// One exchange, or a sum of several. Seconds and bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    alpha: f64,
    beta: f64,
    sent: f64,
    received: f64,
    shipments: f64,
    lost: f64,
    marked: f64,
    delay: i64,
    /// A queue stood at both ends of it.
    saturated: bool,
    limited: bool,
    /// The queue was short.
    calm: bool,
}

/// What a mode sees at one exchange. Times in seconds, rates in bytes a second.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(test, derive(Default))]
pub(super) struct View {
    pub(super) now: Instant,
    /// When the state packet left, how long ago that is, and the mean rate paced at since.
    pub(super) sent_at: Instant,
    pub(super) lag: f64,
    pub(super) paced: f64,
    /// The slot of the schedule of drains.
    pub(super) slot: u64,
    /// What this exchange covers at either end, and the shipments sent and bytes received in it.
    pub(super) alpha: f64,
    pub(super) beta: f64,
    pub(super) shipments: f64,
    pub(super) arrived: f64,
    /// The round trip without a queue; control time, which is that but not below [`law::TAU_LEAST`].
    pub(super) rtt: f64,
    pub(super) tau: f64,
    /// Queueing delay: the least of a quarter of tau, and of the last two exchanges.
    pub(super) queue: f64,
    pub(super) newest: f64,
    /// The longer of the queues at both ends of the newest exchange, in seconds.
    pub(super) longer: f64,
    /// How far the delay varies by itself, and the most that it did of late.
    pub(super) noise: f64,
    pub(super) noise_before: f64,
    /// The largest delivery rate of the last ten rounds, and how long a round is.
    pub(super) best: f64,
    pub(super) round: f64,
    /// Whether a queue stands.
    pub(super) saturated: bool,
    /// The rate at which what we send is served while a queue stands: our share of the bottleneck.
    pub(super) service: Option<f64>,
    /// beta / alpha, sent and received a second, over half of tau.
    pub(super) rho: f64,
    pub(super) sent: f64,
    pub(super) received: f64,
    /// Received a second over tau.
    pub(super) received_over_tau: f64,
    /// Whether something was lost in this exchange, and whether something was marked; fractions lost and marked over tau, and what is lost
    /// without a break at the least.
    pub(super) has_lost: bool,
    pub(super) has_marked: bool,
    pub(super) loss: f64,
    pub(super) lasting_loss: f64,
    pub(super) marks: f64,
    /// What was lost while the queue was short.
    pub(super) calm_loss: CalmLoss,
    /// The application, not the path, was the limit.
    pub(super) limited: bool,
    /// It was in some exchange of the last two tau.
    pub(super) pauses: bool,
    /// The rate paced at now.
    pub(super) rate: f64,
    /// The size of a full packet, and its time at the highest rate of service seen.
    pub(super) datagram: f64,
    pub(super) datagram_time: f64,
}

/// What was lost while the queue was short.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(test, derive(Default))]
pub(super) struct CalmLoss {
    /// The fraction over two tau, whether so much was lost that it means something, and whether that comes in bursts.
    pub(super) fraction: f64,
    pub(super) is_significant: bool,
    pub(super) is_bursty: bool,
    /// The least fraction of the last two, and of the last four halves of a tau: loss in bursts leaves one out now and then.
    pub(super) least_of_two: f64,
    pub(super) least_of_four: f64,
}

/// The filter.
#[derive(Clone, Debug)]
pub(super) struct Readings {
    samples: VecDeque<Sample>,
    base: BaseDelay,
    noise: Noise,
    best: DeliveryMax,
    /// Since when which rate was paced at, newest last.
    paced: VecDeque<(Instant, f64)>,
    was_saturated: bool,
    is_noisy: bool,
    noise_most: Remembered,
    queue: f64,
    rho: f64,
    delivery: f64,
}

/// What the filter must know to read an exchange.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context<'a> {
    pub(super) rtt: f64,
    pub(super) rate: f64,
    pub(super) datagram: f64,
    pub(super) memory: &'a Memory,
    /// The slot of the schedule of drains.
    pub(super) slot: u64,
    /// Others keep the queue full: the base delay is held.
    pub(super) hold_base: bool,
}

impl Readings {
    pub(super) fn new() -> Self {
        Self {
            samples: VecDeque::new(),
            base: BaseDelay::default(),
            noise: Noise::default(),
            best: DeliveryMax::default(),
            paced: VecDeque::new(),
            was_saturated: false,
            is_noisy: false,
            noise_most: Remembered::default(),
            queue: 0.0,
            rho: 1.0,
            delivery: 0.0,
        }
    }

    /// Takes an exchange in; nothing when it covers no time.
    pub(super) fn take(&mut self, now: Instant, exchange: &Exchange, context: Context<'_>) -> Option<View> {
        if exchange.alpha.is_zero() {
            return None;
        }
        let tau = context.rtt.max(law::TAU_LEAST);
        let noise = self.read_noise(now, exchange, tau, context);
        self.is_noisy = noise > 0.0;
        let noise_before = self.noise_before(now, noise);
        let before = self.queue;
        let base = self.read_queue(now, exchange, tau, noise, context.hold_base);
        self.keep(exchange, law::target(context.rate, context.datagram), before);

        let (whole, half) = (self.sum(tau, |_| true), self.sum(tau / 2.0, |_| true));
        let (lag, paced) = self.paced_since(now, exchange.sent_at);
        let ordinary_loss = context.memory.ordinary_loss(now);
        self.note_delivery(exchange, (whole, tau), noise, ordinary_loss);
        if exchange.alpha.as_secs_f64() >= (PAUSE * tau).max(PAUSE_LEAST) {
            self.forget_before_pause(exchange.sent_at);
        }
        self.rho = half.beta / half.alpha.max(1e-9);
        let span = if noise > 0.0 { self.sum((tau / 2.0).max(FLOOR_NOISES * noise), |_| true) } else { half };
        self.delivery = span.received / span.beta.max(1e-9);
        Some(View {
            now,
            sent_at: exchange.sent_at,
            lag,
            paced,
            slot: context.slot,
            alpha: exchange.alpha.as_secs_f64(),
            beta: exchange.beta.as_secs_f64(),
            shipments: exchange.shipments as f64,
            arrived: exchange.received_bytes as f64,
            rtt: context.rtt,
            tau,
            queue: self.queue,
            newest: if noise > 0.0 { self.queue } else { self.newest(base) },
            longer: self.longer(base),
            noise,
            noise_before,
            best: self.best.get(),
            round: self.round(tau, noise),
            saturated: self.was_saturated,
            service: self.service((tau / 2.0).max(SERVICE_DATAGRAMS * context.datagram / context.rate), noise, ordinary_loss),
            rho: self.rho,
            sent: span.sent / span.alpha.max(1e-9),
            received: self.delivery,
            received_over_tau: whole.received / whole.beta.max(1e-9),
            has_lost: exchange.lost > 0,
            has_marked: exchange.marked > 0,
            loss: whole.lost / whole.shipments.max(1.0),
            lasting_loss: self.least_loss(tau, 2, |_| true).min(surely_lost(&whole)),
            marks: whole.marked / whole.shipments.max(1.0),
            calm_loss: self.calm_loss(tau),
            limited: exchange.limited.is_some(),
            pauses: self.recent(2.0 * tau).any(|sample| sample.limited),
            rate: context.rate,
            datagram: context.datagram,
            datagram_time: context.memory.datagram_time(context.datagram),
        })
    }

    /// Reads the queue; returns the base delay.
    fn read_queue(&mut self, now: Instant, exchange: &Exchange, tau: f64, noise: f64, hold_base: bool) -> i64 {
        let window = (tau / 4.0).max(FLOOR_NOISES * noise);
        let floor = self.recent(window).map(|sample| sample.delay).chain([exchange.delay]).min().unwrap_or(exchange.delay);
        // Why a floor: of single samples the least of ten seconds is far below what noise adds even in the best of times.
        let least = if noise > 0.0 { floor } else { exchange.delay };
        let base = self.base.on_delay(now, least, hold_base);
        self.queue = (floor.saturating_sub(base) as f64 * 1e-9 - MARGIN_NOISES * noise).max(0.0);
        base
    }

    /// From now on this rate is paced at.
    pub(super) fn note_rate(&mut self, now: Instant, rate: f64) {
        if self.paced.len() == RATES {
            self.paced.pop_front();
        }
        self.paced.push_back((now, rate));
    }

    /// The path has become longer: the base delay is found anew.
    pub(super) fn forget_base(&mut self) {
        self.base.clear();
    }

    /// The base delay was found too low, by so many seconds.
    pub(super) fn raise_base(&mut self, now: Instant, rise: f64) {
        self.base.raise(now, (rise * 1e9) as i64);
    }

    /// The delay fell by so many seconds without a queue as the cause.
    pub(super) fn note_fall(&mut self, now: Instant, fall: f64) {
        self.noise.on_fall(now, fall);
    }

    /// The delay fell because others' queue did.
    pub(super) fn forget_falls(&mut self) {
        self.noise.forget_falls();
    }

    /// The largest delivery rate; 0 before the first exchange.
    pub(super) fn best(&self) -> f64 {
        self.best.get()
    }

    /// The noise, where there is noise.
    pub(super) fn noise(&self) -> Option<f64> {
        self.is_noisy.then(|| self.noise.get())
    }

    /// What was sampled does not describe the path any more.
    pub(super) fn forget_samples(&mut self) {
        self.samples.clear();
        self.was_saturated = false;
    }

    /// The last exchange, which left at `sent_at`, covers a pause.
    fn forget_before_pause(&mut self, sent_at: Instant) {
        self.samples.drain(..self.samples.len().saturating_sub(2));
        // No later exchange leaves before this one.
        while self.paced.get(1).is_some_and(|(since, _)| *since <= sent_at) {
            self.paced.pop_front();
        }
        self.samples.shrink_to(KEPT);
        self.paced.shrink_to(KEPT);
    }

    /// How long an echo may take before its lack means something.
    pub(super) fn patience(&self, rtt: Option<Duration>) -> f64 {
        let rtt = rtt.map_or(law::RTT_GUESSED, Duration::as_secs_f64);
        (3.0 * rtt).max(0.1) + self.queue
    }

    pub(super) const fn rho(&self) -> f64 {
        self.rho
    }

    pub(super) const fn queue(&self) -> f64 {
        self.queue
    }

    pub(super) const fn delivery(&self) -> f64 {
        self.delivery
    }

    /// Reads the noise. While others keep the queue full it stays as it was: what they do is none.
    fn read_noise(&mut self, now: Instant, exchange: &Exchange, tau: f64, context: Context<'_>) -> f64 {
        // Why: what is little beside the target does no harm, and of many streams the queue varies by as much.
        let least = NOISE_LEAST * law::target(context.rate, context.datagram);
        let was = self.noise.get();
        // Why none while a long queue stands: others who stop for a moment make what we send arrive ahead.
        let stands = was == 0.0 && self.queue > tau / 2.0;
        if !context.hold_base && !stands {
            let (sent, received) = (exchange.sent_bytes as f64, exchange.received_bytes as f64);
            let share = self.best.get().max(sent / exchange.alpha.as_secs_f64());
            self.noise.on_arrivals(now, tau, received, exchange.beta.as_secs_f64(), share, least);
            if was == 0.0 && self.noise.get() > 0.0 {
                self.forget_base();
            }
        }
        self.noise.get()
    }

    /// The most noise since the last was seen without a pause of [`NOISE_REMEMBERED`].
    fn noise_before(&mut self, now: Instant, noise: f64) -> f64 {
        let most = self.noise_most.get(now, NOISE_REMEMBERED).max(noise);
        if noise > 0.0 {
            self.noise_most.learn(now, most);
        }
        most
    }

    /// Takes a sample of the delivery rate: what arrived in a round over the longer of the times in which it was sent and arrived.
    /// `whole` is the sum over `tau`.
    fn note_delivery(&mut self, exchange: &Exchange, (whole, tau): (Sample, f64), noise: f64, ordinary_loss: f64) {
        let longer = FLOOR_NOISES * noise;
        let span = if longer > tau { self.sum(longer, |_| true) } else { whole };
        if span.alpha <= tau / 2.0 {
            return;
        }
        let arrived = (span.received / (1.0 - ordinary_loss)).min(span.sent);
        let round = self.round(tau, noise);
        let rate = arrived / span.alpha.max(span.beta).max(1e-9);
        self.best.on_sample(rate, exchange.alpha.as_secs_f64(), round, exchange.limited.is_some());
    }

    /// A round trip with its queue, and long enough to see beyond the noise.
    fn round(&self, tau: f64, noise: f64) -> f64 {
        (tau + self.queue).max(FLOOR_NOISES * noise)
    }

    /// Keeps the exchange as a sample. A queue above a quarter of the target stands; `before` was the queue at its beginning.
    fn keep(&mut self, exchange: &Exchange, target: f64, before: f64) {
        let saturated = self.queue > target / 4.0;
        // Why: a pause of the sender takes as much off the queue as it lasts, so a queue at both ends of a longer one, as where the states
        // between were lost, says nothing.
        let stood = self.was_saturated && exchange.limited_for.as_secs_f64() < before.min(self.queue);
        if self.samples.len() == SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(Sample {
            alpha: exchange.alpha.as_secs_f64(),
            beta: exchange.beta.as_secs_f64(),
            sent: exchange.sent_bytes as f64,
            received: exchange.received_bytes as f64,
            shipments: exchange.shipments as f64,
            lost: exchange.lost as f64,
            marked: exchange.marked as f64,
            delay: exchange.delay,
            saturated: saturated && stood,
            limited: exchange.limited.is_some(),
            calm: self.queue < 2.0 * target,
        });
        self.was_saturated = saturated;
    }

    /// The newest samples, back to `span` before the newest.
    fn recent(&self, span: f64) -> impl Iterator<Item = &Sample> {
        let mut covered = 0.0;
        self.samples.iter().rev().take_while(move |sample| {
            let within = covered < span;
            covered += sample.alpha;
            within
        })
    }

    fn sum(&self, span: f64, which: impl Fn(&Sample) -> bool) -> Sample {
        let mut sum = Sample::default();
        for sample in self.recent(span).filter(|sample| which(sample)) {
            sum.alpha += sample.alpha;
            sum.beta += sample.beta;
            sum.sent += sample.sent;
            sum.received += sample.received;
            sum.shipments += sample.shipments;
            sum.lost += sample.lost;
            sum.marked += sample.marked;
        }
        sum
    }

    /// What was lost while the queue was short.
    fn calm_loss(&self, tau: f64) -> CalmLoss {
        let is_calm = |sample: &Sample| sample.calm;
        let sum = self.sum(2.0 * tau, is_calm);
        let (fraction, is_significant) = (sum.lost / sum.shipments.max(1.0), is_significant(&sum));
        CalmLoss {
            fraction,
            is_significant,
            is_bursty: is_significant && is_bursty(self.recent(2.0 * tau).filter(|sample| is_calm(sample)), fraction),
            least_of_two: self.least_loss(tau, 2, is_calm),
            least_of_four: self.least_loss(tau, 4, is_calm),
        }
    }

    /// The least fraction lost in the newest halves of a tau, of which it takes so many; zero when there are fewer.
    fn least_loss(&self, tau: f64, halves: u32, which: impl Fn(&Sample) -> bool) -> f64 {
        let (mut least, mut missing, mut half) = (f64::INFINITY, halves, Sample::default());
        // Why twice as far: an exchange ends a half late, by as much as itself.
        for sample in self.recent(tau * f64::from(halves)).filter(|sample| which(sample)) {
            half.alpha += sample.alpha;
            half.shipments += sample.shipments;
            half.lost += sample.lost;
            if half.alpha >= tau / 2.0 {
                least = least.min(half.lost / half.shipments.max(1.0));
                missing -= 1;
                if missing == 0 {
                    return least;
                }
                half = Sample::default();
            }
        }
        0.0
    }

    /// What was sent over the time it took to arrive (HT 3.5), where a queue stood. Of loss, so much as is ordinary or
    /// may be random is not held against the path.
    fn service(&self, span: f64, noise: f64, ordinary_loss: f64) -> Option<f64> {
        let sum = self.sum(span.max(2.0 * FLOOR_NOISES * noise), |sample| sample.saturated && !sample.limited);
        let enough = sum.beta > (span / 4.0).max(FLOOR_NOISES * noise) && sum.received > 0.0;
        enough.then(|| sum.sent.min(sum.received * RANDOM_LOSS / (1.0 - ordinary_loss)) / sum.beta)
    }

    /// How long ago `sent_at` is, and the mean rate paced at since then.
    fn paced_since(&self, now: Instant, sent_at: Instant) -> (f64, f64) {
        let (mut bytes, mut until) = (0.0, now);
        for &(since, rate) in self.paced.iter().rev() {
            let from = since.max(sent_at);
            bytes += until.since(from).as_secs_f64() * rate;
            until = from;
            if since <= sent_at {
                break;
            }
        }
        let lag = now.since(sent_at).as_secs_f64();
        (lag, bytes / lag.max(1e-9))
    }

    fn longer(&self, base: i64) -> f64 {
        let delay = self.samples.iter().rev().take(2).map(|sample| sample.delay).max().unwrap_or(base);
        delay.saturating_sub(base) as f64 * 1e-9
    }

    fn newest(&self, base: i64) -> f64 {
        let delay = self.samples.iter().rev().take(2).map(|sample| sample.delay).min().unwrap_or(base);
        delay.saturating_sub(base) as f64 * 1e-9
    }
}

/// The fraction lost if chance has added two standard deviations to it.
fn surely_lost(sum: &Sample) -> f64 {
    (sum.lost - 2.0 * sum.lost.sqrt()).max(0.0) / sum.shipments.max(1.0)
}

/// Whether a fraction lost means something: its uncertainty is a quarter of it, or less when it is large.
fn is_significant(sum: &Sample) -> bool {
    sum.lost >= 20.0 || (sum.lost >= 8.0 && sum.lost > 0.2 * sum.shipments)
}

/// Whether the `fraction` that is lost in these samples, newest first, comes in bursts: in far fewer of those since the first with loss than if
/// each shipment were lost by itself.
fn is_bursty<'a>(samples: impl Iterator<Item = &'a Sample>, fraction: f64) -> bool {
    let (mut with_loss, mut expected, mut expected_since) = (0.0, 0.0, 0.0);
    for sample in samples {
        expected += 1.0 - (1.0 - fraction).powi(sample.shipments.min(SHIPMENTS_MOST) as i32);
        if sample.lost > 0.0 {
            with_loss += 1.0;
            // Why: of a policer that has just been met, what was before says nothing.
            expected_since = expected;
        }
    }
    with_loss < BURSTY * expected_since
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(shipments: f64, lost: f64) -> Sample {
        Sample { shipments, lost, ..Sample::default() }
    }

    /// Whether the loss of these samples, oldest first, comes in bursts.
    fn has_bursts(samples: impl DoubleEndedIterator<Item = Sample>) -> bool {
        let newest_first: Vec<_> = samples.rev().collect();
        let sum = |of: fn(&Sample) -> f64| newest_first.iter().map(of).sum::<f64>();
        is_bursty(newest_first.iter(), sum(|sample| sample.lost) / sum(|sample| sample.shipments))
    }

    #[test]
    fn loss_in_bursts_is_told_from_that_of_a_policer() {
        // 5 %: eight of every four exchanges of 40, or two of each.
        let burst = |exchange: u32| if exchange.is_multiple_of(4) { 8.0 } else { 0.0 };
        assert!(has_bursts((0..32).map(|exchange| sample(40.0, burst(exchange)))));
        assert!(!has_bursts((0..32).map(|_| sample(40.0, 2.0))));
        // Of a policer that was met in the middle, and on a slow path, where an exchange covers three shipments.
        assert!(!has_bursts((0..32).map(|exchange| sample(40.0, if exchange < 16 { 0.0 } else { 4.0 }))));
        assert!(!has_bursts((0..53).map(|exchange| sample(3.0, if exchange % 7 == 3 { 1.0 } else { 0.0 }))));
    }

    /// Readings at which a queue of 10 ms stood.
    fn queued() -> Readings {
        Readings { queue: 0.01, was_saturated: true, ..Readings::new() }
    }

    #[test]
    fn a_queue_stood_all_the_time_unless_the_sender_paused_for_longer() {
        let exchange = |paused_ms| Exchange { limited_for: Duration::from_millis(paused_ms), ..Exchange::default() };
        for (paused_ms, before, stood) in [(0, 0.01, true), (9, 0.01, true), (11, 0.01, false), (5, 0.004, false)] {
            let mut readings = queued();
            readings.keep(&exchange(paused_ms), 0.003, before);
            assert_eq!(readings.samples.back().map(|sample| sample.saturated), Some(stood), "{paused_ms} ms of a queue of {before} s");
        }
    }
}
