//! The number of each connection in the process, by which metrics, qlogs and the log of losses name the same one.
//!
//! Kept by the endpoint state. Invariant: no two connections of the process have one number, whatever their endpoints.

use crate::ConnectionId;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of the next connection of the process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The numbers of an endpoint's connections.
#[derive(Debug, Default)]
pub(crate) struct ConnectionNumbers(BTreeMap<ConnectionId, u64>);

impl ConnectionNumbers {
    /// The number of a connection, which gets one with the first call.
    pub(crate) fn of(&mut self, id: ConnectionId) -> u64 {
        *self.0.entry(id).or_insert_with(|| NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// The connection is gone.
    pub(crate) fn forget(&mut self, id: ConnectionId) {
        self.0.remove(&id);
    }
}
