//! Forwarding of datagrams: out of an endpoint, past the middlebox, over a route, into a socket.
//!
//! Part of [`Network`]. Limit: datagrams that arrive at the same instant are handed over one by one, never as a GRO batch.

use crate::event::{Datagram, Event, Fate, Middlebox, Reception, Ruling};
use crate::event_queue::{Due, Flight};
use crate::host::{HostId, Waiting};
use crate::network::Network;
use crate::route::{Carried, Route};
use core::net::SocketAddr;
use segstream_base::Instant;
use segstream_base::endpoint::{Arrival, Ecn, Endpoint, Local};

impl<E: Endpoint, M: Middlebox, T> Network<E, M, T> {
    /// Asks the endpoint of a host once for datagrams and sends them on their way; false when it has none, or the host is paused or
    /// crashed. For callers that do something between two batches; [`Network::settle`] sends all.
    pub fn transmit(&mut self, id: HostId) -> bool {
        let (now, host) = (self.now, &mut self.hosts[id.0]);
        let local = host.local(now);
        let Some(endpoint) = host.endpoint.as_mut().filter(|_| !host.paused) else { return false };
        let mut out = core::mem::take(&mut self.out);
        out.clear();
        let transmit = endpoint.poll_transmit(local, self.datagrams_per_transmit, &mut out);
        if let Some(transmit) = transmit {
            let from = host.source(transmit.from.address, transmit.to);
            for bytes in out.chunks_mut(transmit.datagram_bytes.max(1)) {
                self.depart(id, from, transmit.to, transmit.ecn, bytes);
            }
        }
        self.out = out;
        transmit.is_some()
    }

    fn depart(&mut self, host: HostId, from: Option<SocketAddr>, to: SocketAddr, ecn: Option<Ecn>, bytes: &mut [u8]) {
        let now = self.now;
        let Some(from) = from else {
            let from = self.hosts[host.0].outside[0];
            return self.middlebox.observe(now, &Event::Sent { host, from, to, bytes, ecn, fate: Fate::Unreachable });
        };
        let ruling = self.middlebox.decide(now, &mut Datagram { host, from, to, ecn, bytes });
        let flight = |bytes| Flight { from, to, ecn: if ruling == Ruling::Mark { Some(Ecn::CongestionExperienced) } else { ecn }, bytes };
        let fate = match ruling {
            Ruling::Drop => Fate::Filtered,
            Ruling::Pass | Ruling::Mark => self.send(host, flight, bytes),
            Ruling::Duplicate => match (self.send(host, flight, bytes), self.send(host, flight, bytes)) {
                (Fate::Arrives { at, .. }, Fate::Arrives { at: copy, damaged, .. }) => Fate::Arrives { at, copy: Some(copy), damaged },
                (first @ Fate::Arrives { .. }, _) => first,
                (_, second) => second,
            },
        };
        self.middlebox.observe(now, &Event::Sent { host, from, to, bytes, ecn, fate });
    }

    /// Sends a datagram over the route to whoever has its destination's address now.
    fn send(&mut self, host: HostId, flight: impl Fn(Vec<u8>) -> Flight, payload: &[u8]) -> Fate {
        let now = self.now;
        let head = flight(Vec::new());
        let Some(route) = self.route_to(host, head.to) else { return Fate::Unreachable };
        let markable = matches!(head.ecn, Some(Ecn::Ect0 | Ecn::Ect1));
        let Carried { fate, marked, flipped } = route.carry(now, payload.len(), markable);
        if let Fate::Arrives { at, copy, .. } = fate {
            // Why the copy first: what arrives at the same time arrives in this order.
            for at in copy.into_iter().chain([at]) {
                let mut bytes = self.spare.pop().unwrap_or_default();
                bytes.clear();
                bytes.extend_from_slice(payload);
                if let Some(byte) = flipped.and_then(|bit| bytes.get_mut(bit / 8)) {
                    *byte ^= 0x80 >> (flipped.unwrap_or_default() % 8);
                }
                let mut flight = flight(bytes);
                if marked {
                    flight.ecn = Some(Ecn::CongestionExperienced);
                }
                self.event_queue.schedule_due(at, Due::Arrive(flight));
            }
        }
        fate
    }

    /// The route from a host to an address.
    fn route_to(&mut self, from: HostId, address: SocketAddr) -> Option<&mut Route> {
        let (to, _) = *self.addresses.get(&address)?;
        self.route_between(from, to)
    }

    /// The route from one host to another; the one that is laid everywhere, if it was not laid on its own.
    pub(crate) fn route_between(&mut self, from: HostId, to: HostId) -> Option<&mut Route> {
        let route = &mut self.routes[from.0][to.0];
        if route.is_none() {
            let config = self.route_else.as_ref()?;
            // Why no error: the same configuration was valid when it was set.
            *route = Route::new(config, self.seed, from, to, 0).ok();
        }
        route.as_mut()
    }

    /// A datagram is at its destination. The host whose endpoint was handed it.
    pub(crate) fn arrive(&mut self, flight: Flight) -> Option<HostId> {
        let Flight { from, to, ecn, bytes } = flight;
        let Some(&(host, at)) = self.addresses.get(&to) else {
            self.middlebox.observe(self.now, &Event::Undelivered { from, to, bytes: &bytes });
            self.spare.push(bytes);
            return None;
        };
        let to = self.hosts[host.0].config.addresses[at];
        let waiting = Waiting { received: self.now, from, to, ecn, bytes };
        (self.bring(host, waiting) == Reception::Handled).then_some(host)
    }

    /// Brings a datagram to a host without a route, as an attacker can who knows how to write any source address. It comes to the
    /// host's first address of the family of `from`.
    ///
    /// # Panics
    /// When the host has no address of this family.
    pub fn inject(&mut self, host: HostId, from: SocketAddr, bytes: &[u8]) -> Reception {
        let to = self.hosts[host.0].config.addresses.iter().find(|address| address.is_ipv4() == from.is_ipv4());
        let to = *to.unwrap_or_else(|| panic!("{host} has no address of the family of {from}"));
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(bytes);
        self.bring(host, Waiting { received: self.now, from, to, ecn: None, bytes: buffer })
    }

    fn bring(&mut self, id: HostId, datagram: Waiting) -> Reception {
        let host = &mut self.hosts[id.0];
        let reception = match (&host.endpoint, host.paused) {
            (None, _) => Reception::Down,
            (Some(_), false) => Reception::Handled,
            (Some(_), true) if host.waiting.len() < host.config.socket_datagrams => Reception::Buffered,
            (Some(_), true) => Reception::Overflown,
        };
        let Waiting { from, to, ecn, .. } = datagram;
        self.middlebox.observe(self.now, &Event::Arrived { host: id, from, to, bytes: &datagram.bytes, ecn, reception });
        match reception {
            Reception::Handled => self.hand_over(id, datagram),
            Reception::Buffered => host.waiting.push(datagram),
            Reception::Overflown | Reception::Down => self.spare.push(datagram.bytes),
        }
        reception
    }

    pub(crate) fn hand_over(&mut self, id: HostId, datagram: Waiting) {
        let Waiting { received, from, to, ecn, mut bytes } = datagram;
        let to = Local { address: Some(to.ip()), interface: None };
        self.touch(id);
        let host = &mut self.hosts[id.0];
        let (now, received): (Instant, Instant) = (host.local(self.now), host.local(received));
        if let Some(endpoint) = &mut host.endpoint {
            endpoint.handle_datagram(now, Arrival { from, to, ecn, received }, &mut bytes);
        }
        self.spare.push(bytes);
    }
}
