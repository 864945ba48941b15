//! The link between the stations, and the delay of control (XT 3.2).
//!
//! Called by [`super::Tandem`] once a slot.
//!
//! Invariant: what enters first leaves first.

use super::queue::Customer;
use std::collections::VecDeque;

/// A link that sends one packet after the other and corrupts some.
///
/// Limit: what waits for the link to be free has room without end. With the defaults nothing waits, because LINK1 takes
/// two slots to serve a packet and the link one to send it.
#[derive(Clone, Debug)]
pub(super) struct Link<P> {
    transmission_slots: u64,
    propagation_slots: u64,
    free_at: u64,
    in_flight: VecDeque<(u64, Customer<P>)>,
    /// Packets of the halves that were corrupted.
    pub(super) corrupted: u64,
}

impl<P> Link<P> {
    pub(super) fn new(transmission_slots: u32, propagation_slots: u32) -> Self {
        let (transmission_slots, propagation_slots) = (u64::from(transmission_slots), u64::from(propagation_slots));
        Self { transmission_slots, propagation_slots, free_at: 0, in_flight: VecDeque::with_capacity(64), corrupted: 0 }
    }

    /// A packet enters in `slot`; `noise` corrupts it.
    #[inline]
    pub(super) fn enter(&mut self, slot: u64, customer: Customer<P>, noise: bool) {
        self.free_at = self.free_at.max(slot) + self.transmission_slots;
        let customer = match customer {
            Customer::User(_) if noise => {
                self.corrupted += 1;
                Customer::Corrupted
            }
            customer => customer,
        };
        self.in_flight.push_back((self.free_at + self.propagation_slots, customer));
    }

    /// The packet that has crossed the link in `slot`.
    #[inline]
    pub(super) fn leave(&mut self, slot: u64) -> Option<Customer<P>> {
        take_due(&mut self.in_flight, slot)
    }

    /// Sound packets of the halves that are in flight.
    pub(super) fn user_len(&self) -> usize {
        self.in_flight.iter().filter(|(_, customer)| matches!(customer, Customer::User(_))).count()
    }
}

/// Control in flight in one direction: a fixed delay, no loss, no queue.
#[derive(Clone, Debug)]
pub(super) struct ControlLine<P> {
    delay_slots: u64,
    in_flight: VecDeque<(u64, P)>,
    /// Packets that were sent.
    pub(super) sent: u64,
}

impl<P> ControlLine<P> {
    pub(super) fn new(delay_slots: u32) -> Self {
        Self { delay_slots: u64::from(delay_slots), in_flight: VecDeque::with_capacity(64), sent: 0 }
    }

    pub(super) fn enter(&mut self, slot: u64, packet: P) {
        self.sent += 1;
        self.in_flight.push_back((slot + self.delay_slots, packet));
    }

    /// The next packet that is there in `slot`; to be asked for until there is none.
    #[inline]
    pub(super) fn leave(&mut self, slot: u64) -> Option<P> {
        take_due(&mut self.in_flight, slot)
    }
}

#[inline]
fn take_due<T>(in_flight: &mut VecDeque<(u64, T)>, slot: u64) -> Option<T> {
    if in_flight.front()?.0 > slot {
        return None;
    }
    in_flight.pop_front().map(|(_, item)| item)
}
