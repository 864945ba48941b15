//! Start-up: the rate grows by 70 % a control time until a queue grows or much is lost.
//!
//! Called first, and after an outage. A queue that begins is seen a round trip later; until then rate and queue grow on.
//! At a doubling the peak is a whole bandwidth-delay product, at 70 % it is three quarters of one. Loss ends it where it lasts
//! and cannot be ordinary: a policer that is met at such growth takes four packets of ten a round trip later.
//!
//! Invariant: the rate is never more than four times what was really sent.

use super::delay_mode::DelayMode;
use super::memory::ORDINARY_MOST;
use super::policed::Policed;
use super::readings::View;
use super::{Memory, Mode, law};

/// Datagrams a round trip at the beginning (RFC 6928).
const FIRST_DATAGRAMS: f64 = 10.0;
/// Growth of an exchange that covers a whole control time; at sixteen exchanges 1.033^16 = 1.69.
const GROWTH: f64 = 0.53;
/// A queue that ends it, and what part of the control time it is at least.
const QUEUE_LEAST: f64 = 0.0015;
const QUEUE_PART: f64 = 1.0 / 32.0;

/// The first rate: ten datagrams a round trip, or each 20 ms when that is longer.
pub(super) fn first_rate(datagram: f64, rtt: f64) -> f64 {
    FIRST_DATAGRAMS * datagram / rtt.max(law::TAU_LEAST)
}

/// Start-up has no state but the rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct StartUp;

impl StartUp {
    pub(super) fn step(self, view: &View, memory: &mut Memory) -> (f64, Option<Mode>) {
        let limit = (view.tau * QUEUE_PART).max(QUEUE_LEAST) + 1.5 * view.datagram / view.rate;
        if view.newest > limit {
            let service = view.service.unwrap_or(view.received).min(view.rate);
            let mut mode = DelayMode::new(service, view.now);
            let (rate, next) = mode.step(view, memory);
            return (rate, next.or(Some(Mode::Delay(Box::new(mode)))));
        }
        // A policer, or a queue of a few packets. Why lasting: of the first packets one lost is a tenth, and a burst is most. Why no
        // trial at less: a policer that is met at such growth soon takes more, and a trial costs a fifth of a second.
        if view.lasting_loss > ORDINARY_MOST {
            let mut mode = Policed::new(view);
            let (rate, next) = mode.step(view, memory);
            return (rate, next.or(Some(Mode::Policed(mode))));
        }
        // Why no more than was paced: what arrives at once, as after a pause of the receiver, is no rate of service.
        memory.note_service(view.now, view.received.min(view.rate));
        if view.limited {
            return (view.rate, None);
        }
        // Why: a rate that was not made use of must not grow (RFC 7661).
        let grown = view.rate * (1.0 + GROWTH * view.alpha.min(view.tau) / view.tau);
        (grown.min(view.rate.max(4.0 * view.sent)), None)
    }
}
