//! One direction of a path in virtual time: delay, loss, duplication, reordering, all seeded.

use segstream_base::random::{Random, Seed};
use segstream_base::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};

/// What the path does to shipments. Everything is off by default.
#[derive(Clone, Debug)]
pub struct Habits {
    /// One-way delay.
    pub delay: Duration,
    /// Up to so much more, evenly spread; overtaking is possible.
    pub jitter: Duration,
    /// The chance that a shipment is lost.
    pub loss: f64,
    /// The chance that it comes twice.
    pub duplicate: f64,
    /// The chance that it comes late, and by how many positions.
    pub late: f64,
    /// See `late`.
    pub late_by: u32,
    /// Lost by their place in the order of departure, counted from 0.
    pub lost: BTreeSet<u64>,
    /// Everything that departs in one of these spans is lost.
    pub outages: Vec<(Instant, Instant)>,
}

impl Habits {
    /// A path that only takes time.
    pub fn delay(delay: Duration) -> Self {
        Self { delay, jitter: Duration::ZERO, loss: 0.0, duplicate: 0.0, late: 0.0, late_by: 0, lost: BTreeSet::new(), outages: Vec::new() }
    }
}

/// A shipment that waits until so many later ones have gone by.
#[derive(Debug)]
struct Held {
    key: (Instant, u64),
    passing: u32,
}

/// One direction.
#[derive(Debug)]
pub struct Path<P> {
    pub habits: Habits,
    /// Drop the next so many, whatever the habits say.
    pub drop_next: u32,
    /// Duplicate the next so many.
    pub duplicate_next: u32,
    /// Delay the next so many by so many positions.
    pub late_next: (u32, u32),
    random: Random,
    on_way: BTreeMap<(Instant, u64), P>,
    held: Vec<Held>,
    order: u64,
    /// Shipments that have departed.
    pub departed: u64,
}

impl<P: Clone> Path<P> {
    pub fn new(habits: Habits, seed: Seed, name: &str) -> Self {
        Self {
            habits,
            drop_next: 0,
            duplicate_next: 0,
            late_next: (0, 0),
            random: seed.stream(name),
            on_way: BTreeMap::new(),
            held: Vec::new(),
            order: 0,
            departed: 0,
        }
    }

    /// Sends a shipment; false when the path loses it.
    pub fn send(&mut self, now: Instant, packet: P) -> bool {
        let place = self.departed;
        self.departed += 1;
        // Every draw is made every time, so that one habit does not shift another's numbers.
        let (lost, twice) = (self.random.chance(self.habits.loss), self.random.chance(self.habits.duplicate));
        let (late, jitter) = (self.random.chance(self.habits.late), self.random.below(self.habits.jitter.as_nanos()));
        let out = self.habits.outages.iter().any(|&(from, to)| from <= now && now < to);
        if lost || out || self.habits.lost.contains(&place) || take_one(&mut self.drop_next) {
            return false;
        }
        let at = now + self.habits.delay + Duration::from_nanos(jitter);
        self.pass_held(at);
        if twice || take_one(&mut self.duplicate_next) {
            self.insert(at + Duration::from_micros(300), packet.clone());
        }
        let by = match self.late_next {
            (0, _) => {
                if late {
                    self.habits.late_by
                } else {
                    0
                }
            }
            (ref mut left, by) => {
                *left -= 1;
                by
            }
        };
        if by > 0 {
            // When nothing follows, it comes all the same.
            let key = self.insert(at + Duration::from_millis(40), packet);
            self.held.push(Held { key, passing: by });
        } else {
            self.insert(at, packet);
        }
        true
    }

    /// A shipment goes by at `at`: those that have waited for enough of them follow it.
    fn pass_held(&mut self, at: Instant) {
        for mut held in core::mem::take(&mut self.held) {
            if !self.on_way.contains_key(&held.key) {
                continue;
            }
            held.passing -= 1;
            if held.passing > 0 {
                self.held.push(held);
            } else if let Some(packet) = self.on_way.remove(&held.key) {
                self.insert(at + Duration::from_nanos(1), packet);
            }
        }
    }

    fn insert(&mut self, at: Instant, packet: P) -> (Instant, u64) {
        self.order += 1;
        self.on_way.insert((at, self.order), packet);
        (at, self.order)
    }

    /// When the next shipment arrives.
    pub fn next_arrival(&self) -> Option<Instant> {
        self.on_way.first_key_value().map(|(key, _)| key.0)
    }

    /// The next shipment that has arrived by `now`.
    pub fn arrive(&mut self, now: Instant) -> Option<P> {
        let first = self.on_way.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }
}

fn take_one(count: &mut u32) -> bool {
    let any = *count > 0;
    *count -= u32::from(any);
    any
}
