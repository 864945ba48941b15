//! The papers' transports, one folder a scheme, all of one anatomy: packets, a sending half, a receiving half.
//!
//! Called by the laboratory, which registers each scheme, and through it by the simulator and by the
//! endpoint adapter over UDP.
//!
//! Invariant: a scheme reads no clock, draws no entropy and knows no simulator; it stands on `base` and
//! `blocks` alone, and no scheme uses another but in its tests.

pub mod htpnet;
pub mod snr;
pub mod sstp;
pub mod tcp;
