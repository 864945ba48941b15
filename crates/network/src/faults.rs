//! Executes and schedules faults.
//!
//! Part of [`Network`].

use crate::event::{Event, Middlebox};
use crate::event_queue::Due;
use crate::fault::Fault;
use crate::host::HostId;
use crate::network::Network;
use crate::route::Route;
use core::net::SocketAddr;
use segstream_base::endpoint::Endpoint;
use segstream_base::{Duration, Instant};

impl<E: Endpoint, M: Middlebox, T> Network<E, M, T> {
    /// Begins or ends a fault now. A fault of a route that does not exist does nothing.
    ///
    /// # Panics
    /// When a [`Fault::Rebind`] names an inside address that the host does not have, or an outside one that another has.
    pub fn fault(&mut self, fault: Fault) {
        let now = self.now;
        self.middlebox.observe(now, &Event::Fault(fault));
        match fault {
            Fault::Block { from, to } => self.with_route(from, to, |route| route.blocks += 1),
            Fault::Unblock { from, to } => self.with_route(from, to, |route| route.blocks = route.blocks.saturating_sub(1)),
            Fault::Burst { from, to, share, lasts } => self.with_route(from, to, |route| route.begin_burst(share, now + lasts)),
            Fault::Pause(host) => self.hosts[host.0].paused = true,
            Fault::Resume(host) => self.resume(host),
            Fault::Crash(host) => self.hosts[host.0].crash(),
            Fault::Rebind { host, inside, outside } => self.rebind(host, inside, outside),
        }
    }

    /// Schedules a fault for `at`.
    pub fn fault_at(&mut self, at: Instant, fault: Fault) {
        self.event_queue.schedule_due(at, Due::Fault(fault));
    }

    /// Between the hosts `one` and the hosts `other` nothing passes in either direction, from now on and for as long as `lasts`.
    pub fn partition(&mut self, one: &[HostId], other: &[HostId], lasts: Duration) {
        for (&a, &b) in one.iter().flat_map(|a| other.iter().map(move |b| (a, b))) {
            for (from, to) in [(a, b), (b, a)] {
                self.fault(Fault::Block { from, to });
                self.fault_at(self.now + lasts, Fault::Unblock { from, to });
            }
        }
    }

    /// Gives a host a new endpoint, which remembers nothing that the former one knew. What waits at the socket of a paused host
    /// waits on.
    pub fn restart(&mut self, host: HostId, endpoint: E) {
        self.hosts[host.0].endpoint = Some(endpoint);
        self.middlebox.observe(self.now, &Event::Restarted(host));
        self.touch(host);
    }

    fn with_route(&mut self, from: HostId, to: HostId, change: impl FnOnce(&mut Route)) {
        if let Some(route) = self.route_between(from, to) {
            change(route);
        }
    }

    /// The clock has jumped, and the socket is full.
    fn resume(&mut self, id: HostId) {
        let (now, host) = (self.now, &mut self.hosts[id.0]);
        if !core::mem::replace(&mut host.paused, false) {
            return;
        }
        if host.config.timers_first {
            host.wake(now);
        }
        for waiting in core::mem::take(&mut host.waiting) {
            self.hand_over(id, waiting);
        }
        self.hosts[id.0].wake(now);
        self.touch(id);
    }

    fn rebind(&mut self, id: HostId, inside: SocketAddr, outside: SocketAddr) {
        let host = &mut self.hosts[id.0];
        let at = host.config.addresses.iter().position(|address| *address == inside);
        let at = at.unwrap_or_else(|| panic!("{id} has no address {inside} to rebind"));
        let former = core::mem::replace(&mut host.outside[at], outside);
        self.addresses.remove(&former);
        let other = self.addresses.insert(outside, (id, at));
        assert!(other.is_none(), "the address {outside} is another host's, so that {inside} of {id} cannot be seen as it");
    }
}
