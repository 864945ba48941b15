//! The counters of a socket: datagrams sent and received, drops, and ICMP errors.
//!
//! Called by [`crate::socket::Socket`], which counts; read by statistics, to find out why nothing arrives.
//!
//! Invariant: counters never decrease, and every datagram that the network or the system refuses is counted.

use std::sync::atomic::{AtomicU64, Ordering};

/// The counters of one socket since it was bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketCounters {
    /// Datagrams received.
    pub datagrams_received: u64,
    /// Their payload, in bytes.
    pub bytes_received: u64,
    /// System calls that received at least one datagram.
    pub receive_calls: u64,
    /// Datagrams accepted by the kernel.
    pub datagrams_sent: u64,
    /// Their payload, in bytes.
    pub bytes_sent: u64,
    /// System calls that sent at least one datagram.
    pub send_calls: u64,
    /// How often the send buffer was full.
    pub send_blocked: u64,
    /// Datagrams that were dropped on sending, for any reason.
    pub datagrams_dropped: u64,
    /// ICMP errors saying that a destination is unreachable, for any reason.
    pub unreachable: u64,
    /// Of them those saying that no program listens on the port (ICMP port unreachable, `ECONNREFUSED`).
    pub refused: u64,
    /// ICMP errors saying that a datagram exceeds the path MTU.
    pub too_big: u64,
    /// All other ICMP errors.
    pub other_errors: u64,
    /// How often segmentation offload failed and datagrams were sent one by one.
    pub offload_failures: u64,
}

/// The live counters, shared by all threads that use the socket.
#[derive(Debug, Default)]
pub(crate) struct LiveCounters {
    pub(crate) datagrams_received: Count,
    pub(crate) bytes_received: Count,
    pub(crate) receive_calls: Count,
    pub(crate) datagrams_sent: Count,
    pub(crate) bytes_sent: Count,
    pub(crate) send_calls: Count,
    pub(crate) send_blocked: Count,
    pub(crate) datagrams_dropped: Count,
    pub(crate) unreachable: Count,
    pub(crate) refused: Count,
    pub(crate) too_big: Count,
    pub(crate) other_errors: Count,
    pub(crate) offload_failures: Count,
}

/// One counter. Relaxed: it orders no other memory access.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, more: usize) {
        self.0.fetch_add(more as u64, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl LiveCounters {
    pub(crate) fn snapshot(&self) -> SocketCounters {
        SocketCounters {
            datagrams_received: self.datagrams_received.get(),
            bytes_received: self.bytes_received.get(),
            receive_calls: self.receive_calls.get(),
            datagrams_sent: self.datagrams_sent.get(),
            bytes_sent: self.bytes_sent.get(),
            send_calls: self.send_calls.get(),
            send_blocked: self.send_blocked.get(),
            datagrams_dropped: self.datagrams_dropped.get(),
            unreachable: self.unreachable.get(),
            refused: self.refused.get(),
            too_big: self.too_big.get(),
            other_errors: self.other_errors.get(),
            offload_failures: self.offload_failures.get(),
        }
    }
}
