//! A path: what is found out about the way between an address of ours and one of the peer's.
//!
//! Used by the connection, which has one, and by the endpoint for what it answers without one.

use core::net::SocketAddr;
use segstream_base::endpoint::{Arrival, Local};

/// The addresses of both ends of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Addresses {
    /// The peer's.
    pub(crate) remote: SocketAddr,
    /// Ours, by which the peer knows us: the one it sent to. Any for whoever began: the system chooses by its routes, and the
    /// peer follows.
    pub(crate) local: Local,
}

impl Addresses {
    /// Of a path that begins here.
    pub(crate) const fn to(remote: SocketAddr) -> Self {
        Self { remote, local: Local::ANY }
    }

    /// Of the path back, by which an arrival is answered.
    pub(crate) const fn back(arrival: &Arrival) -> Self {
        Self { remote: arrival.from, local: arrival.to }
    }

    /// After the peer has proved that it is where `new` says.
    pub(crate) fn migrated(self, new: Self) -> Self {
        // Why not both: an address of ours that the system has chosen may be gone when it chooses anew.
        Self { local: if self.local == Local::ANY { Local::ANY } else { new.local }, ..new }
    }
}
