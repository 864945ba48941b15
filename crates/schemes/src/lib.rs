//! The papers' transports, one folder a scheme, all of one anatomy: packets, a sending half, a receiving half.
//!
//! Called by the laboratory, which registers each scheme, and through it by the simulator and by the
//! endpoint adapter over UDP.
//!
//! Beside the schemes stand the checksum and the frame that packets of several of them end in: `checksum`, `envelope`.
//!
//! Invariant: a scheme reads no clock, draws no entropy and knows no simulator; it stands on `base` and
//! `blocks` alone, and no scheme uses another but in its tests.

pub mod adaptive_ack;
mod checksum;
mod envelope;
pub mod htpnet;
pub mod snr;
pub mod sscop;
pub mod sstp;
pub mod tcp;
pub mod xtp;
