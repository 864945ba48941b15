//! The shipment counter (EC 3.2): one per connection and direction, for everything that is sealed.
//!
//! Owned by the connection, lent to whichever half emits. Invariant: a number is given out once; it is
//! also the nonce of the seal.

use segstream_base::ShipmentNumber;

/// Counts shipments from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShipmentCounter {
    next: ShipmentNumber,
}

impl ShipmentCounter {
    /// The number the next shipment will have.
    pub const fn peek(&self) -> ShipmentNumber {
        self.next
    }

    /// Takes the next number.
    pub const fn take(&mut self) -> ShipmentNumber {
        let number = self.next;
        self.next = self.next.next();
        number
    }
}
