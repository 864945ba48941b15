//! The swarm: hosts, the routes between them and faults, in virtual time.
//!
//! Called by [`crate::runner`] for each seed. One loop: the network does the next thing that is due, the host it concerns is
//! settled by its applications, until nothing is due any more.
//!
//! Invariant: what happens depends on the seed alone.

use crate::addresses::Addresses;
use crate::event::{Event, Kept, Place};
use crate::fault::FaultKind;
use crate::host::Host;
use crate::hostile::Attacker;
use crate::observer::Observer;
use crate::plan::Plan;
use crate::side::{Scene, Side};
use crate::task::Task;
use crate::watch::Watch;
use anyhow::Context as _;
use segstream_base::random::Seed;
use segstream_base::{Duration, Instant};
use segstream_blocks::work;
use segstream_network::{Fault, HostConfig, HostId, Network, Parts, Reception, Step};
use segstream_proto::connection::{ConnectionEvent, Role};
use segstream_proto::endpoint::{ConnectionId, Endpoint};
use segstream_proto::session::Trust;

/// Datagrams that wait at the socket of a host that is not driven; further ones are dropped.
const SOCKET_MAX: usize = 200;
/// How long after the last fault everything must have ended, or so long after the last verdict: at five shipments a second of small units a
/// few segments take longer.
const TIMEOUT: Duration = Duration::from_secs(400);
/// What a connection may keep beyond what it has granted (spec 11.4).
const BESIDES_GRANTS: u64 = 1 << 20;
/// Memory is checked once in this many calls that settle a host.
const LOOK_EVERY: u64 = 8;

/// The swarm of a seed.
#[derive(Debug)]
pub(crate) struct Swarm {
    seed: Seed,
    plan: Plan,
    hosts: Vec<Host>,
    sides: Vec<Side>,
    network: Network<Endpoint, Observer, Task>,
    settled: u64,
}

impl Swarm {
    /// The swarm of `seed`, before anything has happened.
    pub(crate) fn new(seed: Seed, watch: impl FnOnce(bool) -> Watch) -> anyhow::Result<Self> {
        let plan = Plan::draw(seed);
        let hosts: anyhow::Result<Vec<Host>> = plan
            .hosts
            .iter()
            .enumerate()
            .map(|(number, host)| Host::new(number, host.clone(), (plan.encrypted, plan.turncoat == Some(number)), seed))
            .collect();
        let hosts = hosts.context("a host of the plan cannot be")?;
        let mut watch = watch(plan.peaceful);
        if plan.turncoat.is_some() {
            watch.check_bounds_only();
        }
        if watch.is_traced() {
            watch.note(format!("{} run of {} hosts", if plan.peaceful { "peaceful" } else { "troubled" }, hosts.len()));
            for host in &hosts {
                watch.note(format!("{} is {:?}", host.place(), host.plan));
            }
            for (from, to) in (0..hosts.len()).flat_map(|from| (0..hosts.len()).map(move |to| (from, to))).filter(|(from, to)| from != to) {
                watch.note(format!("from h{from} to h{to}: {:?}", plan.paths[from][to]));
            }
        }
        let network = Self::network(&plan, &hosts, seed, watch)?;
        Ok(Self { seed, plan, hosts, sides: Vec::new(), network, settled: 0 })
    }

    fn network(plan: &Plan, hosts: &[Host], seed: Seed, watch: Watch) -> anyhow::Result<Network<Endpoint, Observer, Task>> {
        let addresses = Addresses { ipv6: plan.ipv6, hosts: hosts.len() };
        let (attacker, attacked) = (Attacker::new(seed, hosts.len()), !plan.attacks.is_empty());
        let observer = Observer { watch, attacker, addresses, attacked, encrypted: plan.encrypted, forged: None, bytes: 0 };
        let mut network = Network::with_tasks(seed, observer);
        for host in hosts {
            let endpoint = host.endpoint().context("a host of the plan cannot be")?;
            let HostConfig { addresses, .. } = HostConfig::from(addresses.address(host.place()));
            let (clock, timers_first) = (host.plan.clock, host.plan.timers_first);
            network.add_host(endpoint, HostConfig { addresses, clock, timers_first, socket_datagrams: SOCKET_MAX });
        }
        for (from, paths) in plan.paths.iter().enumerate() {
            for (to, path) in paths.iter().enumerate() {
                network.route(HostId(from), HostId(to), path).context("a path of the plan cannot be")?;
            }
        }
        let event_queue = network.event_queue_mut();
        for (number, connect) in plan.connections.iter().enumerate() {
            event_queue.schedule(connect.at, Task::Connect(number));
        }
        for (number, fault) in plan.faults.iter().enumerate() {
            event_queue.schedule(fault.at, Task::Fault(number));
            event_queue.schedule(fault.over(), Task::Mend(number));
        }
        for at in &plan.attacks {
            event_queue.schedule(*at, Task::Attack);
        }
        Ok(network)
    }

    /// The time of the swarm.
    pub(crate) const fn now(&self) -> Instant {
        self.network.now()
    }

    /// Everything that was seen, once the run is over.
    pub(crate) fn into_watch(self) -> Watch {
        self.network.into_middlebox().watch
    }

    const fn watch(&mut self) -> &mut Watch {
        &mut self.network.middlebox_mut().watch
    }

    /// Lets everything happen.
    pub(crate) fn run(&mut self) {
        let calm = self.plan.calm;
        let mut limit = calm + TIMEOUT;
        loop {
            self.run_until(limit);
            let told_at = self.watch().told_at().unwrap_or_default();
            if self.watch().has_failed() || told_at + TIMEOUT <= limit {
                break;
            }
            limit = told_at + TIMEOUT;
        }
        let left = |host: &Host| {
            let connections = self.network.get(host.id()).map_or(0, |endpoint| endpoint.connections().count());
            (host.number, connections, self.network.deadline(host.id()).is_some())
        };
        let left = self.hosts.iter().map(left).collect();
        self.watch().tell(Event::Over(left));
    }

    /// Lets everything happen that happens by `limit`, or until a check fails.
    fn run_until(&mut self, limit: Instant) {
        while let (Some(step), steps) = work::counted(|| self.network.step(limit)) {
            let is_turn = !self.resumes(&step);
            let ((), more) = work::counted(|| match step {
                Step::Arrived(host) | Step::Woken(host) => self.settle(host.0),
                Step::Task(task) => self.perform(task),
            });
            let bytes = core::mem::take(&mut self.network.middlebox_mut().bytes);
            self.watch().tell(Event::Worked { steps: steps + more, bytes, is_turn });
            if self.watch().has_failed() {
                return;
            }
        }
    }

    /// Whether a host that was not driven takes all that waits at its socket in this step, a turn for each datagram.
    fn resumes(&self, step: &Step<Task>) -> bool {
        matches!(step, Step::Task(Task::Mend(number)) if matches!(self.plan.faults[*number].kind, FaultKind::Pause { .. }))
    }

    fn perform(&mut self, task: Task) {
        match task {
            Task::Connect(number) => self.connect(number),
            Task::Stream { side, stream } => self.with_side(side, Task::Stream { side, stream }, |side, scene| side.go_on(scene, stream)),
            Task::Act { side, act } => self.with_side(side, Task::Act { side, act }, |side, scene| side.act(scene, act)),
            Task::Fault(number) => self.trouble(number),
            Task::Mend(number) => self.mend(number),
            Task::Attack => self.attack(),
        }
    }

    fn attack(&mut self) {
        let observer = self.network.middlebox_mut();
        let Some((forged, what)) = observer.attacker.attack() else { return };
        observer.watch.note(what);
        observer.forged = Some(forged.genuine);
        let (to, from) = (HostId(forged.to), observer.addresses.address(forged.from));
        let reception = self.network.inject(to, from, &forged.datagram);
        self.network.middlebox_mut().forged = None;
        if reception == Reception::Handled {
            self.settle(forged.to);
        }
    }

    fn connect(&mut self, number: usize) {
        let connect = self.plan.connections[number];
        let address = self.network.middlebox().addresses.address(Place::Host(connect.to));
        let (side_number, host) = (self.sides.len() as u32, &self.hosts[connect.from]);
        if host.paused.is_some() || self.network.get(host.id()).is_none() {
            return;
        }
        let plan = self.plan.side(self.seed, side_number, Role::Initiator);
        let mut side = Side::new(side_number, host.number, host.life, plan);
        let contracts = side.first_contracts();
        let Parts { endpoint, local, .. } = self.network.parts(host.id());
        // Refused when it has as many connections as it may.
        let Some(Ok(id)) = endpoint.map(|endpoint| endpoint.connect(local, address, &Trust::Anyone, contracts)) else {
            return;
        };
        self.appear(id, side, Place::Host(connect.to), Role::Initiator);
        if let Some(side) = self.sides.last() {
            let Parts { now, event_queue, middlebox, .. } = self.network.parts(HostId(side.host));
            side.begin(now, event_queue, &mut middlebox.watch);
        }
        self.settle(connect.from);
    }

    fn appear(&mut self, id: ConnectionId, side: Side, peer: Place, role: Role) {
        let host = &mut self.hosts[side.host];
        let (connect_timeout, idle_timeout) = host.patience();
        host.sides.insert(id, side.number);
        self.watch().tell(Event::Appeared { side: side.number, host: side.host, peer, role, connect_timeout, idle_timeout });
        self.sides.push(side);
    }

    /// Lets the application of a side do something; later, if its host is not driven, and never, if it is gone.
    fn with_side(&mut self, number: u32, task: Task, act: impl FnOnce(&mut Side, &mut Scene<'_>)) {
        let Some(side) = self.sides.get_mut(number as usize) else { return };
        let host = &self.hosts[side.host];
        if side.life != host.life || side.closed {
            return;
        }
        if let Some(until) = host.paused {
            self.network.event_queue_mut().schedule(until, task);
            return;
        }
        let Some((id, _)) = host.sides.iter().find(|(_, side)| **side == number) else { return };
        let (host, clock) = (side.host, host.plan.clock);
        let Parts { endpoint, now, local, event_queue, middlebox } = self.network.parts(HostId(host));
        if let Some(connection) = endpoint.and_then(|endpoint| endpoint.connection_mut(*id)) {
            act(side, &mut Scene { now, local, clock, connection, event_queue, watch: &mut middlebox.watch });
            self.settle(host);
        }
    }

    fn trouble(&mut self, number: usize) {
        let fault = self.plan.faults[number];
        self.watch().tell(Event::Fault(format!("{} for {}", fault.kind, fault.lasts)));
        match fault.kind {
            FaultKind::Crash { host, .. } if self.network.get(HostId(host)).is_some() => {
                self.network.fault(Fault::Crash(HostId(host)));
                self.hosts[host].sides.clear();
                self.watch().tell(Event::Crashed(host));
            }
            FaultKind::Crash { .. } => {}
            FaultKind::Pause { host } => {
                let until = self.hosts[host].paused.unwrap_or_default().max(fault.over());
                self.hosts[host].paused = Some(until);
                self.network.fault(Fault::Pause(HostId(host)));
            }
            FaultKind::Deaf { host } => self.hosts[host].deaf += 1,
            FaultKind::Block { from, to } => self.network.fault(Fault::Block { from: HostId(from), to: HostId(to) }),
        }
    }

    fn mend(&mut self, number: usize) {
        match self.plan.faults[number].kind {
            FaultKind::Crash { for_good: true, .. } => {}
            FaultKind::Crash { host, .. } => {
                self.watch().tell(Event::Fault(format!("h{host} starts again")));
                self.restart(host);
            }
            FaultKind::Pause { host } if self.hosts[host].paused.is_some_and(|until| until <= self.now()) => {
                self.watch().tell(Event::Resumed(host));
                self.hosts[host].paused = None;
                self.network.fault(Fault::Resume(HostId(host)));
                if self.hosts[host].deaf == 0 {
                    self.take(host, true);
                }
                self.settle(host);
            }
            FaultKind::Pause { .. } => {}
            FaultKind::Deaf { host } => {
                self.hosts[host].deaf -= 1;
                if self.hosts[host].deaf == 0 && self.hosts[host].paused.is_none() {
                    self.take(host, true);
                }
                self.settle(host);
            }
            FaultKind::Block { from, to } => self.network.fault(Fault::Unblock { from: HostId(from), to: HostId(to) }),
        }
    }

    /// A host starts again, if it is crashed, and remembers nothing.
    fn restart(&mut self, number: usize) {
        let host = &mut self.hosts[number];
        if self.network.get(host.id()).is_none() {
            host.life += 1;
            // Why no error: the same configuration was good the first time.
            if let Ok(endpoint) = host.endpoint() {
                self.network.restart(host.id(), endpoint);
            }
        }
    }

    /// Drives a host until it has nothing more to do or say.
    fn settle(&mut self, number: usize) {
        if self.hosts[number].paused.is_some() {
            return;
        }
        loop {
            let told = self.tell_events(number);
            let left = self.network.transmit(HostId(number));
            if !(told || left) || self.watch().has_failed() {
                break;
            }
            let now = self.now();
            self.watch().step(now);
        }
        self.clear_away(number);
        self.network.ask_deadline(HostId(number));
        self.settled += 1;
        if self.settled.is_multiple_of(LOOK_EVERY) {
            self.look(number);
        }
    }

    /// Brings what the connections tell to their applications. Whether there was anything.
    fn tell_events(&mut self, number: usize) -> bool {
        let mut any = false;
        while let Some((id, event)) = self.network.parts(HostId(number)).endpoint.and_then(Endpoint::poll_event) {
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
        let (host, clock, takes) = (HostId(number), self.hosts[number].plan.clock, self.hosts[number].deaf == 0);
        let Parts { endpoint, now, local, event_queue, middlebox } = self.network.parts(host);
        let Some(connection) = endpoint.and_then(|endpoint| endpoint.connection_mut(id)) else { return };
        let connected = event == ConnectionEvent::Connected && connection.role() == Role::Responder;
        let side = &mut self.sides[side as usize];
        side.on_event(&mut Scene { now, local, clock, connection, event_queue, watch: &mut middlebox.watch }, event, takes);
        if connected {
            side.plan_ending(now, self.network.event_queue_mut());
        }
    }

    /// A connection that a peer has asked for appears. Its number.
    fn answer(&mut self, number: usize, id: ConnectionId) -> u32 {
        let (host, side) = (&self.hosts[number], self.sides.len() as u32);
        let connection = self.network.get(host.id()).and_then(|endpoint| endpoint.connection(id));
        let addresses = self.network.middlebox().addresses;
        let peer = connection.map_or(Place::Elsewhere(0), |connection| addresses.place(connection.remote()));
        let plan = self.plan.side(self.seed, side, Role::Responder);
        self.appear(id, Side::new(side, number, host.life, plan), peer, Role::Responder);
        side
    }

    /// Lets the applications of a host take everything there is: of all connections, or of those that have ended.
    fn take(&mut self, number: usize, all: bool) {
        let host = &self.hosts[number];
        let clock = host.plan.clock;
        let Parts { endpoint: Some(endpoint), now, local, event_queue, middlebox } = self.network.parts(host.id()) else { return };
        for (&id, &number) in &host.sides {
            let side = &mut self.sides[number as usize];
            if let Some(connection) = endpoint.connection_mut(id).filter(|_| all || side.closed) {
                side.take_all(&mut Scene { now, local, clock, connection, event_queue, watch: &mut middlebox.watch });
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
        let Parts { endpoint: Some(endpoint), middlebox, .. } = self.network.parts(host.id()) else { return };
        host.sides.retain(|&id, &mut side| {
            if sides[side as usize].closed {
                endpoint.release(id);
            }
            let known = endpoint.connection(id).is_some();
            if !known {
                middlebox.watch.tell(Event::Forgotten(side));
            }
            known
        });
    }

    /// Looks at what a host keeps.
    fn look(&mut self, number: usize) {
        let host = &self.hosts[number];
        let (Some(endpoint), mut told) = (self.network.get(host.id()), Vec::new()) else { return };
        let (count, most) = (endpoint.connections().count(), host.plan.config.connections);
        told.push(Event::Connections { host: number, count, most });
        for (&id, &number) in &host.sides {
            let (Some(connection), side) = (endpoint.connection(id), &self.sides[number as usize]) else { continue };
            let (sending, _) = connection.kept_bytes();
            let (receiving, granted) = connection.kept_and_granted_bytes();
            let kept = Kept { side: number, sending: (sending, side.sending_most()), receiving: (receiving, granted + BESIDES_GRANTS) };
            told.push(Event::Kept(kept));
        }
        told.into_iter().for_each(|event| self.watch().tell(event));
    }
}
