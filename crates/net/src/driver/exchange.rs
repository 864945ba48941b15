//! One turn without sleeping: all that has arrived goes in, the time goes in, all that is to be sent goes out.
//!
//! Called by both drivers, which differ in how they reach the socket ([`DatagramIo`]), how they reach the
//! endpoint ([`Access`]), and how they sleep.
//!
//! Invariant: what an endpoint has written is handed to the kernel, in order, or counted as dropped by the
//! socket; a full send buffer loses nothing. A turn is bounded, whatever peers send.

use super::{DriverConfig, Turn};
use crate::clock::Clock;
use crate::receive::ReceiveBatch;
use crate::socket::{SEND_BYTES_MAX, SendOutcome};
use segstream_base::endpoint::{Deadline, Endpoint, Transmit};
use segstream_base::{Duration, Instant};
use std::io;
use std::sync::{Mutex, PoisonError};

/// The datagram size assumed before the first is known: what an Ethernet frame carries.
const FIRST_DATAGRAM_BYTES: usize = 1_472;

/// Why: a system call that finds nothing costs as much as one that does, and little comes in so short a time.
const POLL_AGAIN_AFTER: Duration = Duration::from_micros(20);

/// How long a driver that cannot send leaves an expired timer alone.
const BLOCKED_PAUSE: Duration = Duration::from_millis(1);

/// Until when to sleep after `turn`; `None` when only a datagram, room or the application can end it.
pub(super) fn sleep_end(turn: &Turn, deadline: Option<Deadline>, now: Instant) -> Option<Instant> {
    let at = deadline?.at;
    // Why: a deadline for sending stays expired as long as nothing can be sent. Room ends the sleep as well.
    Some(if turn.blocked { at.max(now + BLOCKED_PAUSE) } else { at })
}

/// How a driver reaches its socket.
pub(super) trait DatagramIo {
    /// Whether a later wait tells of datagrams that are left lying, so that the socket need not be found empty.
    const TELLS_AGAIN: bool;

    /// See [`Socket::receive`](crate::socket::Socket::receive). May exchange the batch for another.
    fn receive(&mut self, batch: &mut Box<ReceiveBatch>) -> io::Result<usize>;

    /// As [`DatagramIo::receive`], but perhaps only what comes first: the cheapest call when nothing has arrived.
    fn poll(&mut self, batch: &mut Box<ReceiveBatch>) -> io::Result<usize> {
        self.receive(batch)
    }

    /// Sends what `datagrams` holds from `from` on; see [`Socket::send`](crate::socket::Socket::send). May exchange the buffer for another when all is
    /// taken.
    fn send(&mut self, transmit: &Transmit, datagrams: &mut Vec<u8>, from: usize) -> SendOutcome;

    /// See [`Socket::datagrams_per_send`](crate::socket::Socket::datagrams_per_send).
    fn datagrams_per_send(&self) -> usize;
}

/// How a driver reaches its endpoint.
pub(super) trait Access<E> {
    /// Whether others have the endpoint between our calls and tell it later times than ours.
    const SHARED: bool;

    /// Calls `call` with the endpoint.
    fn with<R>(&mut self, call: impl FnOnce(&mut E) -> R) -> R;
}

impl<E> Access<E> for &mut E {
    const SHARED: bool = false;

    fn with<R>(&mut self, call: impl FnOnce(&mut E) -> R) -> R {
        call(self)
    }
}

impl<E> Access<E> for &Mutex<E> {
    const SHARED: bool = true;

    fn with<R>(&mut self, call: impl FnOnce(&mut E) -> R) -> R {
        // Why: a panic of the application leaves an endpoint that is still an endpoint.
        call(&mut self.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The buffers of a driver, and what could not be sent yet.
#[derive(Debug)]
pub(super) struct Exchange {
    clock: Clock,
    config: DriverConfig,
    batch: Box<ReceiveBatch>,
    outgoing: Vec<u8>,
    pending: Option<Pending>,
    /// The sizes of the last datagrams, the newest last.
    datagram_bytes: [usize; 2],
    polled: Option<Poll>,
    /// The last reading of the clock, if nothing has taken time since.
    present: Option<Instant>,
}

/// When the socket was polled last, and whether it was found empty.
#[derive(Clone, Copy, Debug)]
struct Poll {
    at: Instant,
    empty: bool,
}

/// Datagrams in `outgoing` that the kernel has not taken, from `from` on.
#[derive(Clone, Copy, Debug)]
struct Pending {
    transmit: Transmit,
    from: usize,
}

impl Exchange {
    pub(super) fn new(clock: Clock, config: DriverConfig) -> Self {
        Self {
            clock,
            config,
            batch: Box::new(ReceiveBatch::new(clock)),
            outgoing: Vec::with_capacity(SEND_BYTES_MAX),
            pending: None,
            datagram_bytes: [FIRST_DATAGRAM_BYTES; 2],
            polled: None,
            present: None,
        }
    }

    pub(super) fn clock(&self) -> Clock {
        self.clock
    }

    /// The present, read again only where time has passed since the last reading: in a system call, or between turns.
    pub(super) fn now(&mut self) -> Instant {
        let clock = self.clock;
        *self.present.get_or_insert_with(|| clock.now())
    }

    /// The caller has done something else, or has slept.
    pub(super) fn time_has_passed(&mut self) {
        self.present = None;
    }

    /// Calls `call` with the endpoint and the present.
    fn tell<E, A: Access<E>, R>(&mut self, access: &mut A, call: impl FnOnce(&mut Self, &mut E, Instant) -> R) -> R {
        access.with(|endpoint| {
            // Why: others who had it meanwhile may have told it a later time.
            if A::SHARED {
                self.time_has_passed();
            }
            let now = self.now();
            call(self, endpoint, now)
        })
    }

    /// Whether the socket was polled a moment ago, and found empty if that is what `empty` asks.
    pub(super) fn has_just_polled(&self, now: Instant, empty: bool) -> bool {
        self.polled.is_some_and(|poll| now.since(poll.at) < POLL_AGAIN_AFTER && (poll.empty || !empty))
    }

    /// One turn, which receives datagrams only if `receive`.
    pub(super) fn work<E: Endpoint>(&mut self, io: &mut impl DatagramIo, access: &mut impl Access<E>, receive: bool) -> io::Result<Turn> {
        let mut turn = Turn::default();
        if receive {
            self.receive(io, access, &mut turn)?;
        }
        turn.timer = self.tell(access, |_, endpoint: &mut E, now| {
            let due = endpoint.poll_deadline().filter(|deadline| deadline.at <= now)?;
            endpoint.handle_timeout(now);
            Some(due.timer)
        });
        self.transmit(io, access, &mut turn);
        turn.at = self.now();
        Ok(turn)
    }

    fn receive<E: Endpoint, I: DatagramIo>(&mut self, io: &mut I, access: &mut impl Access<E>, turn: &mut Turn) -> io::Result<()> {
        for _ in 0..self.config.receives_per_turn.max(1) {
            let count = io.receive(&mut self.batch)?;
            self.time_has_passed();
            self.hand_over(count, access);
            turn.received += count;
            if self.batch.is_drained() || (I::TELLS_AGAIN && !self.batch.is_full()) {
                if count == 0 {
                    self.polled = Some(Poll { at: self.now(), empty: true });
                }
                return Ok(());
            }
        }
        turn.more = true;
        Ok(())
    }

    /// Polls once and hands over what that finds: nothing else of a turn. How many datagrams that were.
    pub(super) fn poll_once<E: Endpoint>(&mut self, io: &mut impl DatagramIo, access: &mut impl Access<E>) -> io::Result<usize> {
        let count = io.poll(&mut self.batch)?;
        self.time_has_passed();
        self.hand_over(count, access);
        Ok(count)
    }

    /// Hands over the datagrams of the batch, of which there are `count`.
    fn hand_over<E: Endpoint>(&mut self, count: usize, access: &mut impl Access<E>) {
        if count > 0 {
            self.tell(access, |this, endpoint: &mut E, now| {
                for (arrival, gro) in this.batch.gro_batches() {
                    endpoint.handle_batch(now, arrival, gro.bytes, gro.datagram_bytes);
                }
                this.polled = Some(Poll { at: now, empty: false });
            });
        }
    }

    fn transmit<E: Endpoint>(&mut self, io: &mut impl DatagramIo, access: &mut impl Access<E>, turn: &mut Turn) {
        for _ in 0..self.config.sends_per_turn.max(1) {
            let Some(pending) = self.pending.take().or_else(|| self.poll_transmit(io, access)) else {
                return;
            };
            let left_bytes = self.outgoing.len().saturating_sub(pending.from);
            let size = pending.transmit.datagram_bytes.max(1);
            let outcome = io.send(&pending.transmit, &mut self.outgoing, pending.from);
            self.time_has_passed();
            match outcome {
                SendOutcome::Sent | SendOutcome::Dropped { .. } => turn.sent += left_bytes.div_ceil(size),
                SendOutcome::WouldBlock { taken_bytes } => {
                    turn.sent += taken_bytes.div_ceil(size);
                    turn.blocked = true;
                    self.pending = Some(Pending { from: pending.from + taken_bytes, ..pending });
                    return;
                }
            }
        }
        turn.more = true;
    }

    fn poll_transmit<E: Endpoint>(&mut self, io: &mut impl DatagramIo, access: &mut impl Access<E>) -> Option<Pending> {
        // Why: a GSO batch that exceeds one packet would take a second system call for its small rest. Why of two: between GSO batches of
        // large datagrams a small one leaves alone now and then.
        let [before, last] = self.datagram_bytes;
        let fitting = SEND_BYTES_MAX / before.max(last);
        let count_max = io.datagrams_per_send().min(self.config.datagrams_per_send).min(fitting).max(1);
        self.outgoing.clear();
        let transmit = self.tell(access, |this, endpoint: &mut E, now| endpoint.poll_transmit(now, count_max, &mut this.outgoing))?;
        self.datagram_bytes = [last, transmit.datagram_bytes.clamp(1, SEND_BYTES_MAX)];
        Some(Pending { transmit, from: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segstream_base::endpoint::{Arrival, Local};
    use std::cell::{Cell, RefCell};

    /// Takes `room` datagrams, then blocks.
    struct Narrow {
        room: Cell<usize>,
        taken: RefCell<Vec<u8>>,
    }

    impl DatagramIo for Narrow {
        const TELLS_AGAIN: bool = false;

        fn receive(&mut self, batch: &mut Box<ReceiveBatch>) -> io::Result<usize> {
            batch.set_drained();
            Ok(0)
        }

        fn send(&mut self, transmit: &Transmit, datagrams: &mut Vec<u8>, from: usize) -> SendOutcome {
            let datagrams = &datagrams[from..];
            let fitting = datagrams.len().min(self.room.get() * transmit.datagram_bytes);
            self.taken.borrow_mut().extend_from_slice(&datagrams[..fitting]);
            self.room.set(self.room.get() - fitting.div_ceil(transmit.datagram_bytes));
            if fitting < datagrams.len() { SendOutcome::WouldBlock { taken_bytes: fitting } } else { SendOutcome::Sent }
        }

        fn datagrams_per_send(&self) -> usize {
            4
        }
    }

    /// Sends the numbers below `end`, a byte each.
    struct Counter {
        next: u8,
        end: u8,
        most_asked: usize,
    }

    impl Endpoint for Counter {
        fn handle_datagram(&mut self, _: Instant, _: Arrival, _: &mut [u8]) {}

        fn poll_transmit(&mut self, _: Instant, max_datagrams: usize, out: &mut Vec<u8>) -> Option<Transmit> {
            self.most_asked = self.most_asked.max(max_datagrams);
            let before = out.len();
            while self.next < self.end && out.len() - before < max_datagrams {
                out.push(self.next);
                self.next += 1;
            }
            let to = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
            (out.len() > before).then_some(Transmit { to, from: Local::ANY, datagram_bytes: 1, ecn: None })
        }

        fn poll_deadline(&self) -> Option<Deadline> {
            None
        }

        fn handle_timeout(&mut self, _: Instant) {}
    }

    #[test]
    fn a_full_send_buffer_loses_and_reorders_nothing() {
        let mut exchange = Exchange::new(Clock::start(), DriverConfig::default());
        let mut counter = Counter { next: 0, end: 101, most_asked: 0 };
        let mut io = Narrow { room: Cell::new(0), taken: RefCell::default() };
        let (mut blocked, mut sent) = (0, 0);
        while sent < 101 {
            io.room.set(3);
            let turn = exchange.work(&mut io, &mut &mut counter, true).expect("this socket has no errors");
            blocked += usize::from(turn.blocked);
            sent += turn.sent;
            assert!(turn.is_busy());
        }
        assert_eq!(*io.taken.borrow(), (0..101).collect::<Vec<u8>>());
        assert!(blocked > 20);
        assert_eq!(counter.most_asked, 4, "the endpoint was asked for more than one call can send");
    }

    #[test]
    fn an_expired_deadline_does_not_keep_a_driver_awake_that_cannot_send() {
        let now = Instant::from_nanos(5_000_000);
        let deadline = Some(Deadline { at: Instant::ZERO, timer: "pacing" });
        let stuck = Turn { blocked: true, timer: Some("pacing"), ..Turn::default() };
        assert!(!stuck.is_busy());
        assert_eq!(sleep_end(&stuck, deadline, now), Some(now + BLOCKED_PAUSE));

        let free = Turn { timer: Some("pacing"), ..Turn::default() };
        assert!(free.is_busy());
        assert_eq!(sleep_end(&free, deadline, now), Some(Instant::ZERO));
    }

    /// Sends `left` datagrams, and notes every time it is told; each takes it so long that the clock shows another time.
    struct Diary {
        clock: Clock,
        left: usize,
        told: Vec<Instant>,
    }

    impl Endpoint for Diary {
        fn handle_datagram(&mut self, now: Instant, _: Arrival, _: &mut [u8]) {
            self.told.push(now);
        }

        fn poll_transmit(&mut self, now: Instant, _: usize, out: &mut Vec<u8>) -> Option<Transmit> {
            self.told.push(now);
            while self.clock.now() <= now {}
            self.left = self.left.checked_sub(1)?;
            out.push(7);
            Some(Transmit { to: ([127, 0, 0, 1], 1).into(), from: Local::ANY, datagram_bytes: 1, ecn: None })
        }

        fn poll_deadline(&self) -> Option<Deadline> {
            Some(Deadline { at: Instant::ZERO, timer: "always" })
        }

        fn handle_timeout(&mut self, now: Instant) {
            self.told.push(now);
        }
    }

    #[test]
    fn an_endpoint_is_told_times_in_order_and_one_anew_for_each_system_call() {
        let clock = Clock::start();
        let mut exchange = Exchange::new(clock, DriverConfig::default());
        let mut diary = Diary { clock, left: 3, told: Vec::new() };
        let mut io = Narrow { room: Cell::new(10), taken: RefCell::default() };
        for left in [3, 2] {
            diary.left = left;
            let began = clock.now();
            exchange.time_has_passed();
            let turn = exchange.work(&mut io, &mut &mut diary, false).expect("this socket has no errors");
            assert!(diary.told.is_sorted() && diary.told.iter().all(|told| *told <= turn.at) && turn.at <= clock.now());
            // The timer and the first datagram share a reading; nothing has taken time between them.
            let told = core::mem::take(&mut diary.told);
            assert_eq!((told.len(), told[0]), (left + 2, told[1]));
            assert!(told[0] >= began && told.windows(2).skip(1).all(|two| two[0] < two[1]), "{told:?}");
        }
    }

    #[test]
    fn a_turn_is_bounded_however_much_there_is_to_send() {
        let config = DriverConfig { sends_per_turn: 5, ..DriverConfig::default() };
        let mut exchange = Exchange::new(Clock::start(), config);
        let mut counter = Counter { next: 0, end: 200, most_asked: 0 };
        let mut io = Narrow { room: Cell::new(1_000), taken: RefCell::default() };
        let turn = exchange.work(&mut io, &mut &mut counter, true).expect("this socket has no errors");
        assert_eq!((turn.sent, turn.more), (20, true));
    }
}
