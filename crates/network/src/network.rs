//! The network itself: hosts, the routes between them, and the clock.
//!
//! Used by tests of whole endpoints. Forwarding is in `traffic`, faults in `faults`.
//!
//! Invariant: what happens depends on the seed and on the calls alone.

use crate::event::{Event, Middlebox};
use crate::event_queue::{Due, EventQueue};
use crate::host::{Host, HostConfig, HostId};
use crate::route::Route;
use core::convert::Infallible;
use core::net::SocketAddr;
use core::ops::{Index, IndexMut};
use segstream_base::Instant;
use segstream_base::endpoint::Endpoint;
use segstream_base::random::Seed;
use segstream_path::{PathConfig, PathCounters, SpecError};
use std::collections::BTreeMap;

/// Steps at one instant that cannot be progress any more.
const STEPS_AT_ONCE_MAX: u64 = 1_000_000;

/// What [`Network::step`] has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<T> {
    /// An endpoint was handed a datagram.
    Arrived(HostId),
    /// An endpoint was called because its deadline has come.
    Woken(HostId),
    /// A task that the application has scheduled is due.
    Task(T),
}

impl<T> Step<T> {
    /// The host whose endpoint was called.
    pub const fn host(&self) -> Option<HostId> {
        match self {
            Self::Arrived(host) | Self::Woken(host) => Some(*host),
            Self::Task(_) => None,
        }
    }
}

/// What an application at a host can use.
#[derive(Debug)]
pub struct Parts<'a, E, M, T> {
    /// The host's endpoint, unless the host is crashed.
    pub endpoint: Option<&'a mut E>,
    /// What the network's clock shows.
    pub now: Instant,
    /// What the host's clock shows.
    pub local: Instant,
    /// The event queue, for tasks.
    pub event_queue: &'a mut EventQueue<T>,
    /// The middlebox.
    pub middlebox: &'a mut M,
}

/// Hosts with an endpoint each, the routes between them, and a clock that moves only when nothing is left to do.
///
/// `M` sees every datagram ([`Middlebox`]), `T` is what the application plans for later ([`EventQueue::schedule`]).
///
/// `network[host]` is the endpoint of a host. Whoever calls an endpoint passes [`Network::local_time`] as its time. Afterwards the
/// network drains it: at the next [`Network::step`], or at once by [`Network::settle`].
#[derive(Debug)]
pub struct Network<E, M = (), T = Infallible> {
    pub(crate) seed: Seed,
    pub(crate) now: Instant,
    pub(crate) hosts: Vec<Host<E>>,
    /// By outside address: the host, and which of its addresses it is.
    pub(crate) addresses: BTreeMap<SocketAddr, (HostId, usize)>,
    /// From one host to another.
    pub(crate) routes: Vec<Vec<Option<Route>>>,
    pub(crate) route_else: Option<PathConfig>,
    pub(crate) event_queue: EventQueue<T>,
    pub(crate) middlebox: M,
    pub(crate) datagrams_per_transmit: usize,
    receives_in_batches: bool,
    /// Hosts whose endpoint may have changed, in the order in which it did.
    pub(crate) touched: Vec<HostId>,
    /// Which hosts were asked in this round whether their deadline has come; `None` while tasks and arrivals are carried out.
    asked: Option<usize>,
    steps_at_once: u64,
    /// A buffer for what leaves, and buffers for what is in flight.
    pub(crate) out: Vec<u8>,
    pub(crate) spare: Vec<Vec<u8>>,
}

impl<E: Endpoint> Network<E> {
    /// A network without a host. The seed decides what the paths do.
    pub fn new(seed: Seed) -> Self {
        Self::with_tasks(seed, ())
    }
}

impl<E: Endpoint, M: Middlebox> Network<E, M> {
    /// A network without a host whose datagrams pass a middlebox.
    pub fn with_middlebox(seed: Seed, middlebox: M) -> Self {
        Self::with_tasks(seed, middlebox)
    }
}

impl<E: Endpoint, M: Middlebox, T> Network<E, M, T> {
    /// As [`Network::with_middlebox`], with applications that plan tasks of the type `T`.
    pub fn with_tasks(seed: Seed, middlebox: M) -> Self {
        Self {
            seed,
            now: Instant::ZERO,
            hosts: Vec::new(),
            addresses: BTreeMap::new(),
            routes: Vec::new(),
            route_else: None,
            event_queue: EventQueue::new(),
            middlebox,
            datagrams_per_transmit: 16,
            receives_in_batches: false,
            touched: Vec::new(),
            asked: Some(usize::MAX),
            steps_at_once: 0,
            out: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Adds a host: an endpoint behind a socket with these addresses.
    ///
    /// # Panics
    /// When the host has no address, or one that another host has.
    pub fn add_host(&mut self, endpoint: E, config: impl Into<HostConfig>) -> HostId {
        let (id, config) = (HostId(self.hosts.len()), config.into());
        assert!(!config.addresses.is_empty(), "{id} needs an address");
        for (at, &address) in config.addresses.iter().enumerate() {
            let other = self.addresses.insert(address, (id, at));
            assert!(other.is_none(), "two hosts, or one twice, are to have the address {address}");
        }
        self.hosts.push(Host::new(endpoint, config));
        self.routes.iter_mut().for_each(|routes| routes.push(None));
        self.routes.push((0..self.hosts.len()).map(|_| None).collect());
        self.touch(id);
        id
    }

    /// Sets the route from one host to another, in this direction. It replaces the former one and its faults; datagrams in flight on
    /// that one arrive.
    ///
    /// # Errors
    /// When the path is invalid.
    pub fn route(&mut self, from: HostId, to: HostId, config: &PathConfig) -> Result<(), SpecError> {
        let replaced = self.routes[from.0][to.0].as_ref().map_or(0, |route| route.generation + 1);
        self.routes[from.0][to.0] = Some(Route::new(config, self.seed, from, to, replaced)?);
        Ok(())
    }

    /// Sets the same route in both directions.
    ///
    /// # Errors
    /// When the path is invalid.
    pub fn link(&mut self, a: HostId, b: HostId, config: &PathConfig) -> Result<(), SpecError> {
        self.route(a, b, config)?;
        self.route(b, a, config)
    }

    /// The path of every route that was not set by itself, also between hosts that are added later. Without it they do not reach each
    /// other.
    ///
    /// # Errors
    /// When the path is invalid.
    pub fn route_everywhere(&mut self, config: &PathConfig) -> Result<(), SpecError> {
        Route::new(config, self.seed, HostId(0), HostId(0), 0)?;
        self.route_else = Some(config.clone());
        Ok(())
    }

    /// What the path from one host to another has done; all zero when nothing has passed it.
    pub fn counters(&self, from: HostId, to: HostId) -> PathCounters {
        self.routes[from.0][to.0].as_ref().map_or_else(PathCounters::default, Route::counters)
    }

    /// How many datagrams an endpoint is asked for at a time (`max_datagrams` of [`Endpoint::poll_transmit`]). Default: 16.
    pub const fn set_datagrams_per_transmit(&mut self, datagrams: usize) {
        self.datagrams_per_transmit = datagrams;
    }

    /// Whether all datagrams of one instant are handed over before the endpoints that got them are drained, as by a driver that
    /// receives in batches. Default: no; an endpoint is drained after each datagram.
    pub const fn set_receives_in_batches(&mut self, batches: bool) {
        self.receives_in_batches = batches;
    }

    /// What the network's clock shows.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// What the clock of a host shows.
    pub fn local_time(&self, host: HostId) -> Instant {
        self.hosts[host.0].local(self.now)
    }

    /// The endpoint of a host, unless the host is crashed. See [`IndexMut`] for changing it.
    pub fn get(&self, host: HostId) -> Option<&E> {
        self.hosts[host.0].endpoint.as_ref()
    }

    /// Hosts, in the order in which they were added.
    pub fn hosts(&self) -> impl Iterator<Item = HostId> + use<E, M, T> {
        (0..self.hosts.len()).map(HostId)
    }

    /// The host at an address, as routers see it.
    pub fn host_at(&self, address: SocketAddr) -> Option<HostId> {
        self.addresses.get(&address).map(|(host, _)| *host)
    }

    /// When the endpoint of a host wants to be called, on the network's clock; `None` also while the host is paused or crashed.
    pub fn deadline(&self, host: HostId) -> Option<Instant> {
        self.hosts[host.0].next_wake().map(|deadline| deadline.at)
    }

    /// The middlebox.
    pub const fn middlebox(&self) -> &M {
        &self.middlebox
    }

    /// The middlebox, to be changed.
    pub const fn middlebox_mut(&mut self) -> &mut M {
        &mut self.middlebox
    }

    /// The middlebox, once the run is over.
    pub fn into_middlebox(self) -> M {
        self.middlebox
    }

    /// The event queue, for tasks.
    pub const fn event_queue_mut(&mut self) -> &mut EventQueue<T> {
        &mut self.event_queue
    }

    /// What an application at a host can use. The endpoint is drained afterwards, as after any call.
    pub fn parts(&mut self, host: HostId) -> Parts<'_, E, M, T> {
        self.touch(host);
        let (now, place) = (self.now, &mut self.hosts[host.0]);
        let local = place.local(now);
        Parts { endpoint: place.endpoint.as_mut(), now, local, event_queue: &mut self.event_queue, middlebox: &mut self.middlebox }
    }

    pub(crate) fn touch(&mut self, host: HostId) {
        if !core::mem::replace(&mut self.hosts[host.0].touched, true) {
            self.touched.push(host);
        }
    }

    /// Drains the endpoint of a host: everything leaves that may leave now. Nothing leaves a paused host.
    pub fn settle(&mut self, host: HostId) {
        while self.transmit(host) {}
        self.ask_deadline(host);
    }

    /// Drains the endpoints that were called since they were last drained.
    pub fn settle_all(&mut self) {
        let mut at = 0;
        while let Some(&host) = self.touched.get(at) {
            at += 1;
            if self.hosts[host.0].touched {
                self.settle(host);
            }
        }
        self.touched.clear();
    }

    /// Asks the endpoint of a host again when it wants to be called. For callers that drain it by [`Network::transmit`] on their own;
    /// [`Network::settle`] does it.
    pub fn ask_deadline(&mut self, host: HostId) {
        self.hosts[host.0].ask_deadline();
    }

    /// Runs the next event that is due at `limit` or before, and returns what it was; `None` when there is none. First the endpoints that were
    /// called are drained. Then tasks and arrivals come before deadlines of the same instant, and the clock moves when neither is
    /// left. What an endpoint wants to send in answer leaves after the caller has had its turn, with the next call.
    ///
    /// # Panics
    /// When time stands still: an endpoint whose deadline does not move, or endpoints that answer each other without delay forever.
    pub fn step(&mut self, limit: Instant) -> Option<Step<T>> {
        let in_batch = self.receives_in_batches && self.asked.is_none() && self.event_queue.next().is_some_and(|at| at <= self.now);
        if !in_batch {
            self.settle_all();
        }
        loop {
            while self.asked.is_none() {
                match self.event_queue.due(self.now) {
                    None => {
                        self.asked = Some(0);
                        self.settle_all();
                    }
                    Some(Due::Task(task)) => return self.stepped(Step::Task(task)),
                    Some(Due::Fault(fault)) => {
                        self.fault(fault);
                        self.settle_all();
                    }
                    Some(Due::Arrive(flight)) => {
                        if let Some(host) = self.arrive(flight) {
                            return self.stepped(Step::Arrived(host));
                        }
                    }
                }
            }
            while let Some(host) = self.asked.filter(|&host| host < self.hosts.len()) {
                self.asked = Some(host + 1);
                if self.wake_if_due(HostId(host)) {
                    return self.stepped(Step::Woken(HostId(host)));
                }
            }
            let wakes = self.hosts.iter().filter_map(|host| host.next_wake().map(|deadline| deadline.at));
            let next = wakes.chain(self.event_queue.next()).min()?.max(self.now);
            if next > limit {
                return None;
            }
            self.steps_at_once = if next > self.now { 0 } else { self.steps_at_once };
            (self.now, self.asked) = (next, None);
            self.middlebox.observe(next, &Event::Clock);
        }
    }

    fn stepped(&mut self, step: Step<T>) -> Option<Step<T>> {
        self.steps_at_once += 1;
        let wants = || self.hosts.iter().map(|host| host.deadline).collect::<Vec<_>>();
        assert!(self.steps_at_once < STEPS_AT_ONCE_MAX, "time stands still at {}; the hosts' deadlines are {:?}", self.now, wants());
        Some(step)
    }

    fn wake_if_due(&mut self, id: HostId) -> bool {
        let (now, host) = (self.now, &mut self.hosts[id.0]);
        let Some(deadline) = host.next_wake().filter(|deadline| deadline.at <= now) else { return false };
        self.middlebox.observe(now, &Event::Woken { host: id, timer: deadline.timer });
        host.wake(now);
        self.touch(id);
        true
    }

    /// Runs all events up to `end` and calls `application` after each step; then the clock shows `end`.
    ///
    /// # Panics
    /// As [`Network::step`].
    pub fn drive(&mut self, end: Instant, mut application: impl FnMut(&mut Self, Step<T>)) {
        while let Some(step) = self.step(end) {
            application(self, step);
        }
        self.advance_to(end);
    }

    /// Moves the clock to `to`, unless it shows more already. What was due before and was not done by [`Network::step`] happens late.
    pub fn advance_to(&mut self, to: Instant) {
        self.now = self.now.max(to);
    }

    /// Runs all events up to `end`, for endpoints that need no application; then the clock shows `end`.
    ///
    /// # Panics
    /// As [`Network::step`].
    pub fn run_until(&mut self, end: Instant) {
        self.drive(end, |_, _| {});
    }
}

impl<E, M, T> Index<HostId> for Network<E, M, T> {
    type Output = E;

    /// The endpoint of a host.
    ///
    /// # Panics
    /// When the host is crashed.
    fn index(&self, host: HostId) -> &E {
        self.hosts[host.0].endpoint.as_ref().unwrap_or_else(|| panic!("{host} is crashed and has no endpoint"))
    }
}

impl<E: Endpoint, M: Middlebox, T> IndexMut<HostId> for Network<E, M, T> {
    /// The endpoint of a host, to be called by its application.
    ///
    /// # Panics
    /// When the host is crashed.
    fn index_mut(&mut self, host: HostId) -> &mut E {
        self.parts(host).endpoint.unwrap_or_else(|| panic!("{host} is crashed and has no endpoint"))
    }
}
