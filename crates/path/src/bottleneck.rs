//! The bottleneck: packets serialised at a bandwidth behind one queue.
//!
//! Called by [`crate::Path`] once for each packet that reaches the queue.
//!
//! The departure of a packet follows from the one before it (the recursion of Lindley, Proc. Camb. Phil.
//! Soc. 48, 1952): it starts when it has arrived and the link is free, and leaves when its last bit has.
//! Packets whose transmission has begun are removed when the queue is next used, so an idle link costs nothing and no event is
//! needed to empty the queue. Changes of the bandwidth are known ahead; in an outage no packet is dequeued.
//!
//! A packet that CoDel drops occupies the queue until it would have been dequeued, and is not transmitted; the next packet starts
//! at that instant. A packet that PIE or RED drops is not enqueued.
//!
//! Invariant: departures never go backward, and a back-to-back train of packets leaves in exactly the
//! time its bits take, to the nanosecond, however long it is.
//!
//! Invariant: the packet being transmitted has left the queue and does not count against its limit.

use crate::aqm::Aqm;
use crate::codel::{CoDel, Decision};
use crate::config::PathConfig;
use crate::pie::Pie;
use crate::red::Red;
use crate::spec_error::SpecError;
use crate::transmitter::Transmitter;
use segstream_base::quantity::Remainder;
use segstream_base::random::Seed;
use segstream_base::{Bandwidth, Bytes, Duration, Instant};
use std::collections::VecDeque;

/// The capacity of the queue, without the packet that is being transmitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// This many bytes. A packet that would exceed them is dropped.
    Bytes(Bytes),
    /// This many packets, whatever their length.
    Packets(u64),
}

impl QueueLimit {
    /// No limit. The queue takes 16 bytes of memory for each queued packet.
    pub const UNLIMITED: Self = Self::Packets(u64::MAX);
}

/// A queued packet: when its transmission begins, and its length.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    starts: Instant,
    bytes: Bytes,
}

/// The decision of the bottleneck about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossing {
    /// It is sent.
    Sent {
        /// When its last bit leaves.
        departure: Instant,
        /// Its queueing delay: until its transmission starts.
        queued: Duration,
        /// Whether it leaves marked.
        marked: bool,
    },
    /// The queue is full.
    Full,
    /// The AQM drops it.
    Dropped {
        /// Its queueing delay until then.
        queued: Duration,
    },
}

/// A link of limited bandwidth with its queue.
#[derive(Clone, Debug)]
pub struct Bottleneck {
    transmitter: Transmitter,
    limit: QueueLimit,
    waiting: VecDeque<Waiting>,
    waiting_bytes: Bytes,
    /// Why boxed: a drop-tail queue pays one comparison for it.
    management: Option<Box<Management>>,
}

/// What drops or marks packets before the queue is full.
#[derive(Clone, Debug)]
struct Management {
    pie: Option<Pie>,
    red: Option<Red>,
    codel: Option<CoDel>,
    mark_above: Option<Duration>,
}

impl Bottleneck {
    /// The idle link that `config` describes; `None` when the bandwidth is unlimited. `seed` and `direction` name the random
    /// stream of its management.
    ///
    /// # Errors
    /// A bandwidth of zero, an invalid AQM, or an AQM without a bandwidth.
    pub fn new(config: &PathConfig, seed: Seed, direction: &str) -> Result<Option<Self>, SpecError> {
        check_management(config)?;
        if config.aqm.is_scheduled() {
            return Err(SpecError::QueueDecidesLate(config.aqm.to_string()));
        }
        let Some(transmitter) = Transmitter::of(config)? else { return Ok(None) };
        Ok(Some(Self {
            transmitter,
            limit: config.queue,
            waiting: VecDeque::new(),
            waiting_bytes: Bytes::ZERO,
            management: Management::new(config, seed, direction).map(Box::new),
        }))
    }

    /// Takes a packet that arrives at `now`, which must not go backward. A `markable` one may be marked instead
    /// of dropped.
    #[inline]
    pub fn accept(&mut self, now: Instant, bytes: Bytes, markable: bool) -> Crossing {
        self.forget_started(now);
        if let Some(management) = &mut self.management {
            management.arrive(now, &self.transmitter, self.waiting.len() as u64);
        }
        let starts = self.transmitter.start(now);
        // Why: empty packets would otherwise be queued without a limit.
        let counted = bytes.max(Bytes::new(1));
        if starts > now && !self.has_room(counted) {
            if let Some(management) = &mut self.management {
                management.queue_was_full();
            }
            return Crossing::Full;
        }
        let entered = self.management.as_mut().map_or(Decision::Send, |management| management.admit(self.waiting_bytes, markable));
        if entered == Decision::Drop {
            return Crossing::Dropped { queued: Duration::ZERO };
        }
        if starts > now {
            self.waiting.push_back(Waiting { starts, bytes: counted });
            self.waiting_bytes += counted;
        }
        let queued = starts.since(now);
        let marked = match &mut self.management {
            None => false,
            Some(management) => match management.decide(starts, queued, self.transmitter.rate(), markable) {
                Decision::Send => entered == Decision::Mark,
                Decision::Mark => true,
                Decision::Drop => return Crossing::Dropped { queued },
            },
        };
        Crossing::Sent { departure: self.transmitter.send(bytes), queued, marked }
    }

    /// When the link will have sent everything it has accepted.
    pub const fn free_at(&self) -> Instant {
        self.transmitter.free_at()
    }

    /// The bytes in the queue at `now`.
    pub fn waiting_bytes(&mut self, now: Instant) -> Bytes {
        self.forget_started(now);
        self.waiting_bytes
    }

    /// The packets in the queue at `now`.
    pub fn waiting_packets(&mut self, now: Instant) -> u64 {
        self.forget_started(now);
        self.waiting.len() as u64
    }

    fn has_room(&self, bytes: Bytes) -> bool {
        match self.limit {
            QueueLimit::Bytes(limit) => self.waiting_bytes + bytes <= limit,
            QueueLimit::Packets(limit) => (self.waiting.len() as u64) < limit,
        }
    }

    #[inline]
    fn forget_started(&mut self, now: Instant) {
        while let Some(front) = self.waiting.front()
            && front.starts <= now
        {
            self.waiting_bytes = self.waiting_bytes - front.bytes;
            self.waiting.pop_front();
        }
    }
}

impl Management {
    /// The largest packet; CoDel allows a slow link the transmission time of one.
    const MTU: Bytes = Bytes::new(1500);

    /// `None` when nothing is to be done.
    fn new(config: &PathConfig, seed: Seed, direction: &str) -> Option<Self> {
        let (mut pie, mut red, mut codel) = (None, None, None);
        match config.aqm {
            Aqm::CoDel { target, interval } => codel = Some(CoDel::new(target, interval)),
            Aqm::Pie { target, update, burst } => pie = Some(Pie::new(target, update, burst, seed, direction)),
            Aqm::Red { min_th, max_th, max_p_ppm, weight_ppm } => {
                red = Some(Red::new(min_th, max_th, max_p_ppm, weight_ppm, seed, direction));
            }
            Aqm::DropTail | Aqm::FqCoDel { .. } | Aqm::DualPi2 { .. } => {}
        }
        let any = pie.is_some() || red.is_some() || codel.is_some() || config.mark_above.is_some();
        any.then_some(Self { pie, red, codel, mark_above: config.mark_above })
    }

    /// A packet arrives at `now`, the first since the one before it, and finds `waiting` packets in the queue.
    fn arrive(&mut self, now: Instant, transmitter: &Transmitter, waiting: u64) {
        let free_at = transmitter.free_at();
        if let Some(pie) = &mut self.pie {
            pie.update_until(now, free_at);
        }
        if let Some(red) = &mut self.red {
            let packet = transmitter.rate().transmit_time(Self::MTU, &mut Remainder::default());
            red.arrive(waiting, now.since(free_at).as_nanos() / packet.as_nanos().max(1));
        }
    }

    /// A packet has found no room.
    fn queue_was_full(&mut self) {
        if let Some(pie) = &mut self.pie {
            pie.queue_was_full();
        }
        if let Some(red) = &mut self.red {
            red.queue_was_full();
        }
    }

    /// The decision about a packet before it is enqueued behind `waiting` bytes.
    fn admit(&mut self, waiting: Bytes, markable: bool) -> Decision {
        match (&mut self.pie, &mut self.red) {
            (Some(pie), _) => pie.decide(waiting, markable),
            (None, Some(red)) => red.decide(markable),
            (None, None) => Decision::Send,
        }
    }

    /// The decision about a packet that is dequeued at `starts`, after a queueing delay of `queued`, at `rate`.
    fn decide(&mut self, starts: Instant, queued: Duration, rate: Bandwidth, markable: bool) -> Decision {
        let decision = self.codel.as_mut().map_or(Decision::Send, |codel| {
            let mtu_time = rate.transmit_time(Self::MTU, &mut Remainder::default());
            codel.decide(starts, queued, mtu_time, markable)
        });
        let waited_long = markable && self.mark_above.is_some_and(|limit| queued > limit);
        if decision == Decision::Send && waited_long { Decision::Mark } else { decision }
    }
}

/// Checks the AQM and the marking of `config`.
///
/// # Errors
/// As [`Aqm::check`], or an AQM or marking without a bandwidth.
pub(crate) fn check_management(config: &PathConfig) -> Result<(), SpecError> {
    config.aqm.check()?;
    let unlimited = config.bandwidth.is_none() && config.trace.is_none() && config.opportunities.is_none();
    match config.mark_above {
        _ if !unlimited => Ok(()),
        _ if config.aqm != Aqm::DropTail => Err(SpecError::NothingToManage("management of the queue")),
        Some(_) => Err(SpecError::NothingToManage("marking of packets that wait")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(bits: u64, limit: QueueLimit) -> Bottleneck {
        let config = PathConfig { bandwidth: Some(Bandwidth::from_bits_per_second(bits)), queue: limit, ..PathConfig::default() };
        Bottleneck::new(&config, Seed(1), "forward").unwrap().unwrap()
    }

    /// When a packet leaves that cannot be marked, if it does.
    fn accept(link: &mut Bottleneck, now: Instant, bytes: Bytes) -> Option<Instant> {
        match link.accept(now, bytes, false) {
            Crossing::Sent { departure, .. } => Some(departure),
            Crossing::Full | Crossing::Dropped { .. } => None,
        }
    }

    #[test]
    fn a_train_without_gaps_leaves_to_the_nanosecond() {
        // 333,333,333 bit/s: no packet takes a whole number of nanoseconds.
        let mut link = link(333_333_333, QueueLimit::UNLIMITED);
        for count in 1..=100_000u128 {
            let exact = count * 1052 * 8 * 1_000_000_000 / 333_333_333;
            assert_eq!(accept(&mut link, Instant::ZERO, Bytes::new(1052)), Some(Instant::from_nanos(exact as u64)));
        }
    }

    #[test]
    fn an_idle_link_starts_at_once_and_keeps_no_remainder() {
        let mut link = link(333_333_333, QueueLimit::UNLIMITED);
        let alone = 1052 * 8 * 1_000_000_000u64 / 333_333_333;
        for start in (0..1000u64).map(|i| i * 1_000_000) {
            assert_eq!(accept(&mut link, Instant::from_nanos(start), Bytes::new(1052)), Some(Instant::from_nanos(start + alone)));
        }
    }

    #[test]
    fn the_queue_drops_exactly_when_its_bytes_would_be_exceeded() {
        // 8 Mbit/s: 1000 bytes take 1 ms. The first is on the link, three more fill 3000 bytes.
        let mut link = link(8_000_000, QueueLimit::Bytes(Bytes::new(3000)));
        for count in 1..=4 {
            assert_eq!(accept(&mut link, Instant::ZERO, Bytes::new(1000)), Some(Instant::from_nanos(count * 1_000_000)));
        }
        assert_eq!(link.waiting_bytes(Instant::ZERO), Bytes::new(3000));
        assert_eq!(accept(&mut link, Instant::ZERO, Bytes::new(1)), None);
        // One nanosecond before the second packet starts nothing has changed; when it starts, it makes room.
        assert_eq!(accept(&mut link, Instant::from_nanos(999_999), Bytes::new(1)), None);
        assert_eq!(accept(&mut link, Instant::from_nanos(1_000_000), Bytes::new(1001)), None);
        assert_eq!(accept(&mut link, Instant::from_nanos(1_000_000), Bytes::new(1000)), Some(Instant::from_nanos(5_000_000)));
        assert_eq!(link.waiting_packets(Instant::from_nanos(1_000_000)), 3);
    }

    #[test]
    fn a_queue_in_packets_counts_packets_whatever_their_length() {
        let mut link = link(8_000_000, QueueLimit::Packets(2));
        assert!(accept(&mut link, Instant::ZERO, Bytes::new(1500)).is_some());
        assert!(accept(&mut link, Instant::ZERO, Bytes::new(1500)).is_some());
        assert!(accept(&mut link, Instant::ZERO, Bytes::new(1)).is_some());
        assert_eq!(accept(&mut link, Instant::ZERO, Bytes::new(1)), None);
    }

    #[test]
    fn a_queue_of_nothing_is_a_pure_loss_system() {
        let mut link = link(8_000_000, QueueLimit::Bytes(Bytes::ZERO));
        assert!(accept(&mut link, Instant::ZERO, Bytes::new(1000)).is_some());
        assert_eq!(accept(&mut link, Instant::from_nanos(999_999), Bytes::new(1000)), None);
        assert!(accept(&mut link, Instant::from_nanos(1_000_000), Bytes::new(1000)).is_some());
    }

    #[test]
    fn empty_packets_cannot_fill_the_memory() {
        let mut link = link(1, QueueLimit::Bytes(Bytes::new(10)));
        let accepted = (0..1000).filter(|_| {
            accept(&mut link, Instant::ZERO, Bytes::new(0)).is_some() || accept(&mut link, Instant::ZERO, Bytes::new(1)).is_none()
        });
        assert!(accepted.count() > 0);
        assert!(link.waiting_packets(Instant::ZERO) <= 10);
    }

    #[test]
    fn a_link_that_lets_nothing_pass_is_refused_and_so_is_management_of_nothing() {
        let refused = |config: PathConfig| Bottleneck::new(&config, Seed(1), "forward").map(|_| ()).unwrap_err();
        let default = PathConfig::default;
        assert_eq!(refused(PathConfig { bandwidth: Some(Bandwidth::ZERO), ..default() }), SpecError::ZeroBandwidth);
        assert!(matches!(refused(PathConfig { aqm: Aqm::CODEL, ..default() }), SpecError::NothingToManage(_)));
        assert!(matches!(refused(PathConfig { mark_above: Some(Duration::ZERO), ..default() }), SpecError::NothingToManage(_)));
        let restless = Aqm::CoDel { target: Duration::ZERO, interval: Aqm::INTERVAL };
        assert!(matches!(refused(PathConfig { aqm: restless, ..default() }), SpecError::AqmNeverRests { .. }));
        assert!(Bottleneck::new(&default(), Seed(1), "forward").is_ok_and(|link| link.is_none()));
    }

    #[test]
    fn nothing_is_taken_from_the_queue_in_an_outage() {
        let trace = "0s:8mbit,2ms:0bit,5ms:8mbit".parse().unwrap();
        let config = PathConfig { trace, queue: QueueLimit::Packets(2), ..PathConfig::default() };
        let mut link = Bottleneck::new(&config, Seed(1), "forward").unwrap().unwrap();
        let sent = |departure: u64, queued| Crossing::Sent {
            departure: Instant::from_nanos(departure * 1_000_000),
            queued: Duration::from_millis(queued),
            marked: false,
        };
        let mut accept = |millis: u64| link.accept(Instant::from_nanos(millis * 1_000_000), Bytes::new(1000), false);
        assert_eq!([accept(1), accept(2), accept(3), accept(4)], [sent(2, 0), sent(6, 3), sent(7, 3), Crossing::Full]);
        assert_eq!(accept(5), sent(8, 2));
        assert_eq!(link.waiting_packets(Instant::from_nanos(5_999_999)), 2);
    }
}
