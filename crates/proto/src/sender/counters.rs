//! What a sending half counts, in all and for each stream.
//!
//! Counted by the half where it happens; read by the connection and its application.
//!
//! Invariant: no counter ever decreases.

/// Counters of a sending half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounters {
    /// Units sent, new and again.
    pub units_sent: u64,
    /// Units sent again.
    pub units_retransmitted: u64,
    /// Data shipments sent.
    pub data_shipments: u64,
    /// State shipments sent.
    pub state_shipments: u64,
    /// Payload bytes sent, new and again.
    pub payload_bytes: u64,
    /// Segments given up because their lifetime had passed.
    pub segments_skipped: u64,
    /// Segments of which any unit was sent again, or a repair unit.
    pub segments_repaired: u64,
    /// Segments that the receiver's application has confirmed.
    pub segments_durable: u64,
    /// Repair units sent, asked for and ahead.
    pub repair_units_sent: u64,
    /// Of them, those ahead.
    pub repair_units_ahead: u64,
}

/// Counters of one outgoing stream; those of all streams add up to the half's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamCounters {
    /// Units sent, new and again.
    pub units_sent: u64,
    /// Units sent again.
    pub units_retransmitted: u64,
    /// Segments of which any unit was sent again, or a repair unit.
    pub segments_repaired: u64,
    /// Repair units sent, asked for and ahead.
    pub repair_units_sent: u64,
    /// Of them, those ahead.
    pub repair_units_ahead: u64,
}
