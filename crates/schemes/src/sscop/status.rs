//! The content of a STAT or a USTAT, once it was checked.
//!
//! Called by the sender, before it acts on any of it.
//!
//! A number that lies ahead of all that was sent cannot come from a receiver of what was sent: that is a protocol error
//! (Q.2110 table 5: R, S and T). A number that lies behind what is known comes from a datagram that was overtaken or
//! duplicated on the path, which does not happen in the sequence-preserving network that Q.2110 is written for: it is old,
//! and what it says of SDs that are still in flight holds.
//!
//! Invariant: what passes names nothing below N(R) and nothing from VT(S) on, in ascending order.

use super::pdu::expand;
use core::fmt;
use core::ops::Range;

/// Why a PDU of the receiver cannot be true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProtocolError {
    /// N(PS) is the number of no POLL (R).
    PollNumber(u64),
    /// N(R) lies behind VT(S) (S, T).
    ReceiveNumber(u64),
    /// The list does not ascend, or leaves what lies between N(R) and VT(S) (S, T).
    List(u64),
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PollNumber(number) => write!(f, "N(PS) {number} was never polled"),
            Self::ReceiveNumber(number) => write!(f, "N(R) {number} was never sent"),
            Self::List(number) => write!(f, "the list element {number} is out of order or was never sent"),
        }
    }
}

/// What the sender knows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) vt_a: u64,
    pub(super) vt_s: u64,
    pub(super) vt_pa: u64,
    pub(super) vt_ps: u64,
}

/// The numbers of a STAT or USTAT, rebuilt. Its list is read with [`gaps`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Status {
    pub(super) n_r: u64,
    pub(super) n_mr: u64,
}

impl Known {
    /// N(PS) of a STAT; `None` when a later poll is answered already.
    pub(super) fn poll(&self, n_ps: u32) -> Result<Option<u64>, ProtocolError> {
        let n_ps = expand(n_ps, self.vt_pa);
        if n_ps > self.vt_ps {
            return Err(ProtocolError::PollNumber(n_ps));
        }
        Ok(Some(n_ps).filter(|n_ps| *n_ps >= self.vt_pa))
    }

    /// The other numbers, when they are possible. The list may name SDs up to `end`, exclusive at the last gap's end.
    pub(super) fn status(&self, list: &[u32], n_mr: u32, n_r: u32, end: u64) -> Result<Status, ProtocolError> {
        let n_r = expand(n_r, self.vt_a);
        if n_r > self.vt_s {
            return Err(ProtocolError::ReceiveNumber(n_r));
        }
        let mut least = n_r;
        for element in list.iter().map(|element| expand(*element, self.vt_a)) {
            if element < least || element > end {
                return Err(ProtocolError::List(element));
            }
            least = element + 1;
        }
        Ok(Status { n_r, n_mr: expand(n_mr, self.vt_a) })
    }

    /// The gaps that a list names: from each odd element to the even one behind it, as far as they are not acknowledged.
    pub(super) fn gaps<'a>(&self, list: &'a [u32]) -> impl Iterator<Item = Range<u64>> + use<'a> {
        let vt_a = self.vt_a;
        let pairs = list.chunks_exact(2).filter_map(|pair| <[u32; 2]>::try_from(pair).ok());
        pairs.map(move |[start, end]| expand(start, vt_a).max(vt_a)..expand(end, vt_a))
    }
}
