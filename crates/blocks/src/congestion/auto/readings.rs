//! What the exchanges say, filtered: the queue, traffic intensity, the rate of service, loss.
//!
//! Called by the controller for every exchange. Source: HT 3.5, with `rho = beta / alpha` and the virtual service rate
//! `x / beta`. All filters are sums or minima over a part of the control time tau, so that a time stamp late by 1 ms
//! does little: the queue is the least of a quarter of tau, rates are sums over half of it.
//!
//! Invariant: what is kept is bounded by `samples` and `paced_rates`, and little of a connection that is idle.

use super::base_delay::BaseDelay;
use super::calm_loss::{CalmLoss, least_loss, surely_lost};
use super::delivery_max::DeliveryMax;
use super::noise::Noise;
use super::paced_rates::PacedRates;
use super::remembered::Remembered;
use super::samples::{Sample, Samples};
use super::view::{Covered, Delay, Delivery, Loss, View};
use super::{Exchange, Memory, law};
use segstream_base::{Duration, Instant};

/// An exchange over so many control times, and a second at least, is a pause: nothing before it is looked at again.
const PAUSE: f64 = 8.0;
const PAUSE_LEAST: f64 = 1.0;
/// A floor of the delay is taken over so many times the noise, so that it has a packet that was hardly held back.
const FLOOR_NOISES: f64 = 3.0;
/// A queue is what a floor has above the base beyond so many times the noise: floors vary too.
const MARGIN_NOISES: f64 = 1.5;
/// Noise below this part of the target is none.
const NOISE_LEAST: f64 = 0.15;
/// For so long after the last noise a delay may still be what it has left.
const NOISE_REMEMBERED: Duration = Duration::from_secs(30);
/// Of noise that there was of late at most this part of the control time counts as left, so that the queue stays short.
const NOISE_LEFT_PART: f64 = 1.0 / 8.0;
/// It must have been there for so many seconds: what others do to the delay as they begin is taken for noise for two.
const NOISE_LASTS: f64 = 2.5;
/// Service is what was served over the time of so many datagrams at least: of three, one more or less is a third.
const SERVICE_DATAGRAMS: f64 = 10.0;
/// Loss of up to 3 % is made up for in the rate of service: it may be random, and then says nothing of service.
const RANDOM_LOSS: f64 = 1.03;

/// The filter.
#[derive(Clone, Debug)]
pub(super) struct Readings {
    samples: Samples,
    base: BaseDelay,
    noise: Noise,
    best: DeliveryMax,
    paced: PacedRates,
    was_saturated: bool,
    is_noisy: bool,
    noise_most: Remembered,
    /// For how many seconds there was noise since the last pause of [`NOISE_REMEMBERED`].
    noisy_for: f64,
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
            samples: Samples::default(),
            base: BaseDelay::default(),
            noise: Noise::default(),
            best: DeliveryMax::default(),
            paced: PacedRates::default(),
            was_saturated: false,
            is_noisy: false,
            noise_most: Remembered::default(),
            noisy_for: 0.0,
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

        let (whole, half) = (self.samples.sum(tau, |_| true), self.samples.sum(tau / 2.0, |_| true));
        let covered = self.covered(now, exchange);
        let ordinary_loss = context.memory.ordinary_loss(now);
        self.note_delivery(exchange, (whole, tau), noise, ordinary_loss);
        self.forget_before_pause(exchange, tau);
        self.rho = half.beta / half.alpha.max(1e-9);
        let span = if noise > 0.0 { self.samples.sum((tau / 2.0).max(FLOOR_NOISES * noise), |_| true) } else { half };
        self.delivery = span.received / span.beta.max(1e-9);
        Some(View {
            now,
            slot: context.slot,
            exchange: covered,
            rtt: context.rtt,
            tau,
            delay: Delay {
                queue: self.queue,
                newest: if noise > 0.0 { self.queue } else { above(base, self.samples.ends().min()) },
                longer: above(base, self.samples.ends().max()),
                saturated: self.was_saturated,
                noise,
                noise_before,
                noise_left: self.noise_left(noise, noise_before, tau, exchange.alpha.as_secs_f64()),
            },
            delivery: Delivery {
                best: self.best.get(),
                round: self.round(tau, noise),
                service: self.service((tau / 2.0).max(SERVICE_DATAGRAMS * context.datagram / context.rate), noise, ordinary_loss),
                rho: self.rho,
                sent: span.sent / span.alpha.max(1e-9),
                received: self.delivery,
                received_over_tau: whole.received / whole.beta.max(1e-9),
            },
            loss: Loss {
                has_lost: exchange.lost > 0,
                has_marked: exchange.marked > 0,
                fraction: whole.lost / whole.shipments.max(1.0),
                marks: whole.marked / whole.shipments.max(1.0),
                lasting: least_loss(&self.samples, tau, 2, |_| true).min(surely_lost(&whole)),
                calm: CalmLoss::of(&self.samples, tau),
            },
            limited: exchange.limited.is_some(),
            pauses: self.samples.recent(2.0 * tau).any(|sample| sample.limited),
            rate: context.rate,
            datagram: context.datagram,
            datagram_time: context.memory.datagram_time(context.datagram),
        })
    }

    fn covered(&self, now: Instant, exchange: &Exchange) -> Covered {
        let (lag, paced) = self.paced.since(now, exchange.sent_at);
        Covered {
            sent_at: exchange.sent_at,
            lag,
            paced,
            alpha: exchange.alpha.as_secs_f64(),
            beta: exchange.beta.as_secs_f64(),
            shipments: exchange.shipments as f64,
            arrived: exchange.received_bytes as f64,
        }
    }

    /// Forgets what was before a pause that the exchange covers, if it covers one.
    fn forget_before_pause(&mut self, exchange: &Exchange, tau: f64) {
        if exchange.alpha.as_secs_f64() >= (PAUSE * tau).max(PAUSE_LEAST) {
            self.samples.forget_before_pause();
            self.paced.forget_before(exchange.sent_at);
        }
    }

    /// Reads the queue; returns the base delay.
    fn read_queue(&mut self, now: Instant, exchange: &Exchange, tau: f64, noise: f64, hold_base: bool) -> i64 {
        let window = (tau / 4.0).max(FLOOR_NOISES * noise);
        let floor = self.samples.recent(window).map(|sample| sample.delay).chain([exchange.delay]).min().unwrap_or(exchange.delay);
        // Why a floor: of single samples the least of ten seconds is far below what noise adds even in the best of times.
        let least = if noise > 0.0 { floor } else { exchange.delay };
        let base = self.base.on_delay(now, least, hold_base);
        self.queue = (floor.saturating_sub(base) as f64 * 1e-9 - MARGIN_NOISES * noise).max(0.0);
        base
    }

    /// From now on this rate is paced at.
    pub(super) fn note_rate(&mut self, now: Instant, rate: f64) {
        self.paced.push(now, rate);
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

    /// How much of the queue may be what `noise_before` has left beyond `noise`. `alpha` is the time that the exchange covers.
    ///
    /// Why: jitter that keeps the order varies the less the denser packets are sent, and is not seen any more at last. It still adds more
    /// than the target to the lowest delay, and the rate would be held at the one whose target that is.
    fn noise_left(&mut self, noise: f64, noise_before: f64, tau: f64, alpha: f64) -> f64 {
        if noise > 0.0 {
            self.noisy_for += alpha;
        } else if noise_before == 0.0 {
            self.noisy_for = 0.0;
        }
        if self.noisy_for > NOISE_LASTS { (noise_before - noise).clamp(0.0, NOISE_LEFT_PART * tau) } else { 0.0 }
    }

    /// Takes a sample of the delivery rate: what arrived in a round over the longer of the times in which it was sent and arrived.
    /// `whole` is the sum over `tau`.
    fn note_delivery(&mut self, exchange: &Exchange, (whole, tau): (Sample, f64), noise: f64, ordinary_loss: f64) {
        let longer = FLOOR_NOISES * noise;
        let span = if longer > tau { self.samples.sum(longer, |_| true) } else { whole };
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
        self.samples.push(Sample {
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

    /// What was sent over the time it took to arrive (HT 3.5), where a queue stood. Of loss, so much as is ordinary or
    /// may be random is not held against the path.
    fn service(&self, span: f64, noise: f64, ordinary_loss: f64) -> Option<f64> {
        let sum = self.samples.sum(span.max(2.0 * FLOOR_NOISES * noise), |sample| sample.saturated && !sample.limited);
        let enough = sum.beta > (span / 4.0).max(FLOOR_NOISES * noise) && sum.received > 0.0;
        enough.then(|| sum.sent.min(sum.received * RANDOM_LOSS / (1.0 - ordinary_loss)) / sum.beta)
    }
}

/// A delay above the base, in seconds.
fn above(base: i64, delay: Option<i64>) -> f64 {
    delay.unwrap_or(base).saturating_sub(base) as f64 * 1e-9
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Readings at which a queue of 10 ms stood.
    fn queued() -> Readings {
        Readings { queue: 0.01, was_saturated: true, ..Readings::new() }
    }

    #[test]
    fn noise_that_lasted_leaves_as_much_as_there_was_more_of_it_but_an_eighth_of_the_control_time_at_most() {
        let after = |noisy_s: f64| {
            let mut readings = Readings::new();
            (0..(noisy_s * 100.0) as u32).for_each(|_| assert!(readings.noise_left(0.004, 0.004, 0.04, 0.01) == 0.0));
            readings
        };
        assert_eq!(after(2.0).noise_left(0.0, 0.004, 0.04, 0.01), 0.0, "what others do as they begin");
        let left = |noise: f64, before: f64, tau: f64| after(3.0).noise_left(noise, before, tau, 0.01);
        assert_eq!((left(0.0, 0.004, 0.04), left(0.001, 0.004, 0.04), left(0.0, 0.009, 0.04)), (0.004, 0.003, 0.005));
        let mut forgotten = after(3.0);
        assert_eq!((forgotten.noise_left(0.0, 0.0, 0.04, 0.01), forgotten.noise_left(0.001, 0.004, 0.04, 0.01)), (0.0, 0.0));
    }

    #[test]
    fn a_queue_stood_all_the_time_unless_the_sender_paused_for_longer() {
        let exchange = |paused_ms| Exchange { limited_for: Duration::from_millis(paused_ms), ..Exchange::default() };
        for (paused_ms, before, stood) in [(0, 0.01, true), (9, 0.01, true), (11, 0.01, false), (5, 0.004, false)] {
            let mut readings = queued();
            readings.keep(&exchange(paused_ms), 0.003, before);
            assert_eq!(
                readings.samples.recent(1.0).next().map(|sample| sample.saturated),
                Some(stood),
                "{paused_ms} ms of a queue of {before} s"
            );
        }
    }
}
