//! Path MTU discovery: sends probes of the datagram size and processes their results.
//!
//! Called by the connection when data waits to leave, and when a report or a response arrives. [`PmtuSearch`] chooses the sizes.

use super::Connection;
use crate::config::DATAGRAM_BYTES_MIN;
use crate::path::Path;
use crate::path::pmtu::{Bounds, PmtuSearch};
use segstream_base::Instant;
use segstream_wire::Kind;
use segstream_wire::header::HEADER_BYTES;

impl Connection {
    /// The bytes of a data shipment around its parts.
    fn around(&self) -> usize {
        HEADER_BYTES + self.protection.session.seal_bytes()
    }

    /// The bytes of parts that fit the smallest datagram, which is used when no larger one gets through.
    pub(super) fn unit_bytes_max(&self) -> usize {
        DATAGRAM_BYTES_MIN - self.around()
    }

    /// The datagrams that data leaves in at present, at most.
    pub fn datagram_bytes(&self) -> usize {
        self.send.data_bytes() + self.around()
    }

    /// The largest datagram the path is known to carry, or that is allowed when the size is fixed. At low rates smaller ones
    /// are in use: [`Connection::datagram_bytes`].
    pub fn path_datagram_bytes(&self) -> usize {
        self.send.path.pmtu.search.as_ref().map_or(self.send.path.pmtu.control_bytes, PmtuSearch::size)
    }

    /// Writes a probe if one should leave, which is then alone in its batch.
    pub(super) fn write_probe(&mut self, now: Instant, out: &mut Vec<u8>) -> bool {
        let around = self.around();
        if self.send.path.pmtu.search.is_none() || !self.send.can_send_data(now) {
            return false;
        }
        let bounds = Bounds {
            rate_cap: self.send.rate_capped_bytes().saturating_add(around),
            rate: self.send.rate(),
            round_trip: self.send.round_trip(),
        };
        let size_due = self.send.path.pmtu.search.as_mut().and_then(|search| search.next_probe(now, &bounds));
        self.use_found_size();
        let Path { pmtu, validation, addresses, .. } = &mut self.send.path;
        let (Some(size), Some(search)) = (size_due, &mut pmtu.search) else { return false };
        let number = self.protection.counter.take();
        let token = search.on_sent(now, size, number, || validation.random());
        let bytes = size as u64 + addresses.ip_udp_header_bytes();
        self.write_sized(Kind::Challenge, number, size, out, |body| {
            body.u64(token);
            // The padding is zero.
            body.reserve(size - around - 8);
        });
        self.send.on_probe_sent(now, number, bytes);
        true
    }

    /// A response has come from the peer's address: whether it answers a probe.
    pub(super) fn on_probe_answered(&mut self, now: Instant, token: u64) {
        let Some(search) = &mut self.send.path.pmtu.search else { return };
        if let Some(number) = search.on_response(now, token) {
            self.send.on_probe_arrived(number);
        }
        self.use_found_size();
    }

    /// A report has come.
    pub(super) fn detect_lost_probe(&mut self, now: Instant) {
        let data_lost = self.send.has_retransmissions();
        let Path { pmtu, echo, reordering_threshold, .. } = &mut self.send.path;
        let Some(search) = &mut pmtu.search else { return };
        if data_lost {
            search.on_loss();
        }
        if let Some(echo) = *echo {
            search.on_echo(now, echo, *reordering_threshold);
        }
        self.use_found_size();
    }

    /// Data leaves in datagrams of the size that was found, as far as the rate allows.
    pub(super) fn use_found_size(&mut self) {
        if let Some(search) = &self.send.path.pmtu.search {
            self.send.set_pmtu_body_bytes(search.size() - self.around());
        }
    }
}
