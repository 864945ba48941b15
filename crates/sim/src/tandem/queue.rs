//! A finite queue in front of one server with a fixed service time, in slots (XT Figure 2: LINK1, LINK2, XTP2).
//!
//! Called by [`super::Tandem`] once a slot, and by tests, which compare it with the exact solution of its Markov chain.
//!
//! First come, first served. The packet in service takes room until it leaves. Service begins in the slot in which the
//! server is free and somebody is there, so a packet that finds the queue empty leaves one service later.
//!
//! Invariant: there are never more packets than there is room. A packet that finds no room is dropped and counted.

use std::collections::VecDeque;

/// What comes first when one packet leaves a queue in the slot in which another arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Order {
    /// The one that leaves, so the other finds its room.
    #[default]
    DeparturesFirst,
    /// The one that arrives, so it is dropped when the queue was full.
    ArrivalsFirst,
}

/// Which of two packets that arrive at LINK1 in one slot is first, and so has the last room.
///
/// It matters more than it seems to. XTP1 and LINK1 take two slots each, so that the packets of a burst arrive in step
/// with those that leave. In a full queue a packet that is first then always finds the room that has just been left, and
/// one that is second shares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Tie {
    /// That of the halves.
    UserFirst,
    /// That of the external traffic.
    #[default]
    ExternalFirst,
    /// One or the other, by a draw.
    Drawn,
}

/// What stands in a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Customer<P> {
    /// A packet of the halves.
    User(P),
    /// A packet of the halves that the link has corrupted. LINK2 finds out when it has served it.
    Corrupted,
    /// A packet of the external traffic.
    External,
}

/// Packets of the halves and of the external traffic, counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Split {
    /// Packets of the halves, corrupted ones among them.
    pub user: u64,
    /// Packets of the external traffic.
    pub external: u64,
}

impl Split {
    fn count<P>(&mut self, customer: &Customer<P>) {
        match customer {
            Customer::User(_) | Customer::Corrupted => self.user += 1,
            Customer::External => self.external += 1,
        }
    }

    /// Both together.
    pub const fn total(&self) -> u64 {
        self.user + self.external
    }
}

/// What a queue was like over the measured slots.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct QueueOutcome {
    /// Packets that came, dropped ones among them.
    pub arrived: Split,
    /// Packets that found no room.
    pub dropped: Split,
    /// In how many slots this many packets were there, the one in service among them, from none to as many as there is room
    /// for. Seen when all of a slot has happened.
    pub occupancy_slots: Vec<u64>,
}

impl QueueOutcome {
    /// The mean number of packets that were there; not a number without slots.
    pub fn packets_mean(&self) -> f64 {
        let slots: u64 = self.occupancy_slots.iter().sum();
        let packets: u64 = self.occupancy_slots.iter().zip(0u64..).map(|(slots, packets)| slots * packets).sum();
        packets as f64 / slots as f64
    }
}

/// The queue and its server.
#[derive(Clone, Debug)]
pub struct Queue<P> {
    ring: VecDeque<Customer<P>>,
    room: usize,
    service_slots: u64,
    order: Order,
    /// When the first packet leaves; `u64::MAX` while nobody is served.
    done_at: u64,
    /// The first slot that the occupancy does not count yet. As many as now were there in all slots from it on.
    since: u64,
    outcome: QueueOutcome,
}

impl<P> Queue<P> {
    /// An empty queue with room for `room` packets, the one in service among them.
    pub fn new(room: u32, service_slots: u32, order: Order) -> Self {
        let room = room as usize;
        Self {
            ring: VecDeque::with_capacity(room),
            room,
            service_slots: u64::from(service_slots),
            order,
            done_at: u64::MAX,
            since: 0,
            outcome: QueueOutcome { occupancy_slots: vec![0; room + 1], ..QueueOutcome::default() },
        }
    }

    /// All that happens in `slot`: what arrives, in this order, and what leaves, in the order of the queue. To be called for
    /// every slot, or at least for those in which something arrives or leaves.
    #[inline(always)]
    pub fn pass(&mut self, slot: u64, first: Option<Customer<P>>, second: Option<Customer<P>>) -> Option<Customer<P>> {
        // Why: in most slots nothing happens in most queues.
        if first.is_none() && second.is_none() && self.done_at != slot {
            return None;
        }
        self.change(slot, first, second)
    }

    fn change(&mut self, slot: u64, first: Option<Customer<P>>, second: Option<Customer<P>>) -> Option<Customer<P>> {
        self.count_until(slot);
        let mut leaves = None;
        if self.order == Order::DeparturesFirst && self.done_at == slot {
            leaves = self.depart();
        }
        for customer in [first, second].into_iter().flatten() {
            self.arrive(customer);
        }
        if self.order == Order::ArrivalsFirst && self.done_at == slot {
            leaves = self.depart();
        }
        if self.done_at == u64::MAX && !self.ring.is_empty() {
            self.done_at = slot + self.service_slots;
        }
        leaves
    }

    /// How many packets are there, the one in service among them.
    pub fn len(&self) -> usize {
        self.ring.len()
    }

    /// Whether nobody is there.
    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// How many sound packets of the halves are there, the one in service among them.
    pub fn user_len(&self) -> usize {
        self.ring.iter().filter(|customer| matches!(customer, Customer::User(_))).count()
    }

    /// What the queue was like in the slots before `slot`, since the start or the last [`Queue::restart`].
    pub fn outcome(&mut self, slot: u64) -> &QueueOutcome {
        self.count_until(slot);
        &self.outcome
    }

    /// Forgets what the queue was like before `slot`. Who is there stays.
    pub fn restart(&mut self, slot: u64) {
        self.since = slot;
        (self.outcome.arrived, self.outcome.dropped) = (Split::default(), Split::default());
        self.outcome.occupancy_slots.fill(0);
    }

    #[inline]
    fn count_until(&mut self, slot: u64) {
        if let Some(slots) = self.outcome.occupancy_slots.get_mut(self.ring.len()) {
            *slots += slot.saturating_sub(self.since);
        }
        self.since = slot;
    }

    #[inline]
    fn depart(&mut self) -> Option<Customer<P>> {
        self.done_at = u64::MAX;
        self.ring.pop_front()
    }

    #[inline]
    fn arrive(&mut self, customer: Customer<P>) {
        self.outcome.arrived.count(&customer);
        if self.ring.len() < self.room {
            self.ring.push_back(customer);
        } else {
            self.outcome.dropped.count(&customer);
        }
    }
}
