//! The swarm: hosts, the ways between them, what goes wrong, in virtual time.
//!
//! Called by [`crate::runner`] for each seed. One loop: time jumps to the next thing that is due, the hosts it concerns
//! are driven and settled, until nothing is due any more.
//!
//! Invariant: what happens depends on the seed alone.

use crate::agenda::{Agenda, Task};
use crate::event::{Event, Kept, Place};
use crate::fault::Trouble;
use crate::host::Host;
use crate::hostile::{Attacker, kind};
use crate::network::{Arriving, Leaving, Network};
use crate::plan::Plan;
use crate::side::{Scene, Side};
use crate::watch::Watch;
use anyhow::Context as _;
use segstream_base::endpoint::{Ecn, Endpoint as _};
use segstream_base::random::Seed;
use segstream_base::{Duration, Instant};
use segstream_proto::connection::{ConnectionEvent, Role};
use segstream_proto::endpoint::ConnectionId;
use segstream_proto::session::{Plain, Trust};

/// Datagrams asked for at a time.
const BATCH: usize = 16;
/// How long after the last fault everything must have ended.
const PATIENCE: Duration = Duration::from_secs(400);
/// What is kept is looked at each so many times a host was settled.
const LOOK_EVERY: u64 = 8;

/// The swarm of a seed.
#[derive(Debug)]
pub(crate) struct Swarm {
    seed: Seed,
    pub(crate) now: Instant,
    plan: Plan,
    hosts: Vec<Host>,
    sides: Vec<Side>,
    network: Network,
    agenda: Agenda,
    attacker: Attacker,
    pub(crate) watch: Watch,
    settled: u64,
    /// A buffer for datagrams.
    out: Vec<u8>,
}

impl Swarm {
    /// The swarm of `seed`, before anything has happened.
    pub(crate) fn new(seed: Seed, watch: impl FnOnce(bool) -> Watch) -> anyhow::Result<Self> {
        let plan = Plan::draw(seed);
        let network = Network::new(&plan.paths, plan.ipv6, seed).context("a path of the plan cannot be")?;
        let hosts: anyhow::Result<Vec<Host>> =
            plan.hosts.iter().enumerate().map(|(number, host)| Host::new(number, host.clone(), plan.encrypted, seed)).collect();
        let hosts = hosts.context("a host of the plan cannot be")?;
        let mut agenda = Agenda::default();
        for (number, connect) in plan.connections.iter().enumerate() {
            agenda.plan(connect.at, Task::Connect(number));
        }
        for (number, fault) in plan.faults.iter().enumerate() {
            agenda.plan(fault.at, Task::Fault(number));
            agenda.plan(fault.over(), Task::Mend(number));
        }
        for at in &plan.attacks {
            agenda.plan(*at, Task::Attack);
        }
        let mut watch = watch(plan.peaceful);
        if watch.is_traced() {
            watch.note(format!("{} run of {} hosts", if plan.peaceful { "peaceful" } else { "troubled" }, hosts.len()));
            for host in &hosts {
                watch.note(format!("{} is {:?}", host.place(), host.plan));
            }
            for (from, to) in (0..hosts.len()).flat_map(|from| (0..hosts.len()).map(move |to| (from, to))).filter(|(from, to)| from != to) {
                watch.note(format!("from h{from} to h{to}: {:?}", plan.paths[from][to]));
            }
        }
        let attacker = Attacker::new(seed, hosts.len());
        let (sides, out) = (Vec::new(), Vec::new());
        Ok(Self { seed, now: Instant::ZERO, plan, hosts, sides, network, agenda, attacker, watch, settled: 0, out })
    }

    /// Lets everything happen.
    pub(crate) fn run(&mut self) {
        let limit = self.plan.calm + PATIENCE;
        while let Some(next) = self.next().filter(|next| *next <= limit) {
            self.now = self.now.max(next);
            self.watch.step(self.now);
            while let Some(task) = self.agenda.due(self.now) {
                self.perform(task);
            }
            for number in 0..self.hosts.len() {
                if self.hosts[number].next_wake().is_some_and(|at| at <= self.now) {
                    self.hosts[number].wake(self.now);
                    self.settle(number);
                }
            }
            if self.watch.has_failed() {
                return;
            }
        }
        let left = |host: &Host| {
            let connections = host.endpoint.as_ref().map_or(0, |endpoint| endpoint.connections().count());
            (host.number, connections, host.deadline.is_some())
        };
        let left = self.hosts.iter().map(left).collect();
        self.watch.tell(Event::Over(left));
    }

    fn next(&self) -> Option<Instant> {
        self.hosts.iter().filter_map(Host::next_wake).chain(self.agenda.next()).min()
    }

    fn perform(&mut self, task: Task) {
        match task {
            Task::Arrive(arriving) => self.arrive(arriving),
            Task::Connect(number) => self.connect(number),
            Task::Stream { side, stream } => self.with_side(side, Task::Stream { side, stream }, |side, scene| side.go_on(scene, stream)),
            Task::Act { side, act } => self.with_side(side, Task::Act { side, act }, |side, scene| side.act(scene, act)),
            Task::Fault(number) => self.trouble(number),
            Task::Mend(number) => self.mend(number),
            Task::Attack => {
                if let Some((arriving, what)) = self.attacker.attack() {
                    self.watch.note(what);
                    self.arrive(arriving);
                }
            }
        }
    }

    fn arrive(&mut self, arriving: Arriving) {
        let Arriving { to, from, genuine, hostile, .. } = arriving;
        let (bytes, kind) = (arriving.datagram.len() as u64, kind(&arriving.datagram, self.plan.encrypted));
        let address = self.network.address(from);
        if self.hosts[to].arrive(self.now, address, arriving) {
            self.watch.tell(Event::Arrived { host: to, from, kind, bytes, genuine, hostile });
            self.settle(to);
        }
    }

    fn connect(&mut self, number: usize) {
        let connect = self.plan.connections[number];
        let address = self.network.address(Place::Host(connect.to));
        let (side_number, host) = (self.sides.len() as u32, &mut self.hosts[connect.from]);
        if host.paused.is_some() || host.endpoint.is_none() {
            return;
        }
        let plan = self.plan.side(self.seed, side_number, Role::Initiator);
        let mut side = Side::new(side_number, host.number, host.life, plan);
        let contracts = side.first_contracts();
        let local = host.clock(self.now);
        // Refused when it has as many connections as it may.
        let Some(Ok(id)) = host.endpoint.as_mut().map(|endpoint| endpoint.connect(local, address, &Trust::Anyone, contracts)) else {
            return;
        };
        self.appear(id, side, Place::Host(connect.to), Role::Initiator);
        if let Some(side) = self.sides.last() {
            side.begin(self.now, &mut self.agenda, &mut self.watch);
        }
        self.settle(connect.from);
    }

    fn appear(&mut self, id: ConnectionId, side: Side, peer: Place, role: Role) {
        let host = &mut self.hosts[side.host];
        let (connect_timeout, idle_timeout) = host.patience();
        host.sides.insert(id, side.number);
        self.watch.tell(Event::Appeared { side: side.number, host: side.host, peer, role, connect_timeout, idle_timeout });
        self.sides.push(side);
    }

    /// Lets the application of a side do something; later, if its host is not driven, and never, if it is gone.
    fn with_side(&mut self, number: u32, task: Task, act: impl FnOnce(&mut Side, &mut Scene<'_>)) {
        let Some(side) = self.sides.get_mut(number as usize) else { return };
        let host = &mut self.hosts[side.host];
        if side.life != host.life || side.closed {
            return;
        }
        if let Some(until) = host.paused {
            self.agenda.plan(until, task);
            return;
        }
        let (local, clock) = (host.clock(self.now), host.plan.clock);
        let id = host.sides.iter().find(|(_, side)| **side == number).map(|(id, _)| *id);
        let endpoint = host.endpoint.as_mut().zip(id);
        let Some(connection) = endpoint.and_then(|(endpoint, id)| endpoint.connection_mut(id)) else { return };
        act(side, &mut Scene { now: self.now, local, clock, connection, agenda: &mut self.agenda, watch: &mut self.watch });
        let host = side.host;
        self.settle(host);
    }

    fn trouble(&mut self, number: usize) {
        let fault = self.plan.faults[number];
        self.watch.tell(Event::Fault(format!("{} for {}", fault.trouble, fault.lasts)));
        match fault.trouble {
            Trouble::Crash { host, .. } if self.hosts[host].endpoint.is_some() => {
                self.hosts[host].crash();
                self.watch.tell(Event::Crashed(host));
            }
            Trouble::Crash { .. } => {}
            Trouble::Pause { host } => {
                let until = self.hosts[host].paused.unwrap_or_default().max(fault.over());
                self.hosts[host].paused = Some(until);
            }
            Trouble::Deaf { host } => self.hosts[host].deaf += 1,
            Trouble::Block { from, to } => self.network.block(from, to, true),
        }
    }

    fn mend(&mut self, number: usize) {
        match self.plan.faults[number].trouble {
            Trouble::Crash { for_good: true, .. } => {}
            Trouble::Crash { host, .. } => {
                self.watch.tell(Event::Fault(format!("h{host} starts again")));
                self.hosts[host].restart();
            }
            Trouble::Pause { host } if self.hosts[host].paused.is_some_and(|until| until <= self.now) => {
                self.watch.tell(Event::Resumed(host));
                self.hosts[host].resume(self.now);
                if self.hosts[host].deaf == 0 {
                    self.take(host, true);
                }
                self.settle(host);
            }
            Trouble::Pause { .. } => {}
            Trouble::Deaf { host } => {
                self.hosts[host].deaf -= 1;
                if self.hosts[host].deaf == 0 && self.hosts[host].paused.is_none() {
                    self.take(host, true);
                }
                self.settle(host);
            }
            Trouble::Block { from, to } => self.network.block(from, to, false),
        }
    }

    /// Drives a host until it has nothing more to do or say.
    fn settle(&mut self, number: usize) {
        if self.hosts[number].paused.is_some() {
            return;
        }
        loop {
            let told = self.tell_events(number);
            let left = self.transmit(number);
            if !(told || left) || self.watch.has_failed() {
                break;
            }
            self.watch.step(self.now);
        }
        self.clear_away(number);
        self.hosts[number].ask_deadline();
        self.settled += 1;
        if self.settled.is_multiple_of(LOOK_EVERY) {
            self.look(number);
        }
    }

    /// Brings what the connections tell to their applications. Whether there was anything.
    fn tell_events(&mut self, number: usize) -> bool {
        let mut any = false;
        while let Some((id, event)) = self.hosts[number].endpoint.as_mut().and_then(|endpoint| endpoint.poll_event()) {
            any = true;
            let side = match self.hosts[number].sides.get(&id) {
                Some(side) => *side,
                None => self.answer(number, id),
            };
            self.tell_event(number, id, side, event);
        }
        any
    }

    fn tell_event(&mut self, number: usize, id: ConnectionId, side: u32, event: ConnectionEvent) {
        let host = &mut self.hosts[number];
        let (local, clock, takes) = (host.clock(self.now), host.plan.clock, host.deaf == 0);
        let Some(connection) = host.endpoint.as_mut().and_then(|endpoint| endpoint.connection_mut(id)) else { return };
        let mut scene = Scene { now: self.now, local, clock, connection, agenda: &mut self.agenda, watch: &mut self.watch };
        let connected = event == ConnectionEvent::Connected && scene.connection.role() == Role::Responder;
        let side = &mut self.sides[side as usize];
        side.on_event(&mut scene, event, takes);
        if connected {
            side.plan_ending(self.now, &mut self.agenda);
        }
    }

    /// A connection that a peer has asked for appears. Its number.
    fn answer(&mut self, number: usize, id: ConnectionId) -> u32 {
        let (host, side) = (&self.hosts[number], self.sides.len() as u32);
        let connection = host.endpoint.as_ref().and_then(|endpoint| endpoint.connection(id));
        let peer = connection.map_or(Place::Elsewhere(0), |connection| self.network.place(connection.remote()));
        let plan = self.plan.side(self.seed, side, Role::Responder);
        self.appear(id, Side::new(side, number, host.life, plan), peer, Role::Responder);
        side
    }

    /// Lets a batch of datagrams leave. Whether there was one.
    fn transmit(&mut self, number: usize) -> bool {
        let host = &mut self.hosts[number];
        let local = host.clock(self.now);
        self.out.clear();
        let Some(endpoint) = &mut host.endpoint else { return false };
        let Some(transmit) = endpoint.poll_transmit(local, BATCH, &mut self.out) else { return false };
        let to = self.network.place(transmit.to);
        let markable = transmit.ecn == Some(Ecn::Ect0);
        for datagram in self.out.chunks(transmit.datagram_bytes.max(1)) {
            if !self.plan.attacks.is_empty() {
                self.attacker.see(number, to, datagram);
            }
            let fate = self.network.send(self.now, Leaving { from: number, to, datagram, markable }, &mut self.agenda);
            // Keys are fresh in each run, and so are the bytes they seal.
            let content = if self.plan.encrypted { 0 } else { u32::from_be_bytes(Plain::checksum(0, datagram)) };
            self.watch.tell(Event::Sent {
                host: number,
                to,
                kind: kind(datagram, self.plan.encrypted),
                bytes: datagram.len() as u64,
                content,
                fate,
            });
        }
        true
    }

    /// Lets the applications of a host take everything there is: of all connections, or of those that have ended.
    fn take(&mut self, number: usize, all: bool) {
        let host = &mut self.hosts[number];
        let (local, clock) = (host.clock(self.now), host.plan.clock);
        let Some(endpoint) = &mut host.endpoint else { return };
        for (&id, &number) in &host.sides {
            let side = &mut self.sides[number as usize];
            if let Some(connection) = endpoint.connection_mut(id).filter(|_| all || side.closed) {
                let mut scene = Scene { now: self.now, local, clock, connection, agenda: &mut self.agenda, watch: &mut self.watch };
                side.take_all(&mut scene);
            }
        }
    }

    /// Takes what is left of connections that have ended, and forgets them.
    fn clear_away(&mut self, number: usize) {
        if self.hosts[number].deaf > 0 || !self.hosts[number].sides.values().any(|&side| self.sides[side as usize].closed) {
            return;
        }
        self.take(number, false);
        let (host, sides) = (&mut self.hosts[number], &self.sides);
        let Some(endpoint) = &mut host.endpoint else { return };
        let watch = &mut self.watch;
        host.sides.retain(|&id, &mut side| {
            if sides[side as usize].closed {
                endpoint.forget(id);
            }
            let known = endpoint.connection(id).is_some();
            if !known {
                watch.tell(Event::Forgotten(side));
            }
            known
        });
    }

    /// Looks at what a host keeps.
    fn look(&mut self, number: usize) {
        let host = &self.hosts[number];
        let Some(endpoint) = &host.endpoint else { return };
        let (count, most) = (endpoint.connections().count(), host.plan.config.connections);
        self.watch.tell(Event::Connections { host: number, count, most });
        for (&id, &number) in &host.sides {
            let (Some(connection), side) = (endpoint.connection(id), &self.sides[number as usize]) else { continue };
            let granted = side.incoming.iter().filter_map(|(stream, name)| {
                let contract = connection.receiving_contract(*stream)?;
                let sender = self.sides.get(name.side as usize)?;
                let window = u64::from(contract.window_units) * u64::from(contract.unit_bytes);
                // A buffer that grows step by step has up to twice the room it needs, and eight bytes at least. And when
                // flow control comes on, the segment that is waited for gets a window of its own.
                let spare = window + 8 * u64::from(contract.window_units.min(contract.window_segments));
                let twice = sender.opens_segments(name.stream) || sender.plan.change.is_some();
                Some(window + if twice { spare } else { 0 })
            });
            let (sending, receiving) = connection.kept_bytes();
            let kept = Kept { side: number, sending: (sending, side.sending_most()), receiving: (receiving, granted.sum()) };
            self.watch.tell(Event::Kept(kept));
        }
    }
}
