//! The papers' transports, one folder a scheme, all of one anatomy: packets, a sending half, a receiving half.
//!
//! Called by the laboratory, which registers each scheme, and through it by the simulator and by the
//! endpoint adapter over UDP.
//!
//! [`cross_traffic`] is no scheme of the papers: it is what a path is shared with.
//!
//! - `transport`: what a scheme says about itself, and how its halves are made; `setting`: one setting, described once.
//!
//! Beside the schemes stands what several of them have in common:
//!
//! - `checksum`, `envelope`: the checksum, and the frame that packets end in.
//! - `numbered_packet`: data with a number and a place in its segment, and the end of the stream.
//! - `unsent`, `transmission_buffer`: segments cut into such packets, kept until they are acknowledged.
//! - `in_order`: such packets put in order again, and the segments that are whole.
//! - `new_rate`: a rate that is changed while data flows.
//! - `encoded`, `link`: what their tests have in common: packets as bytes, a pair of halves over a link.
//!
//! Invariant: a scheme reads no clock, draws no entropy and knows no simulator; it stands on `base` and
//! `blocks` alone, and no scheme uses another but in its tests.

pub mod adaptive_ack;
mod checksum;
pub mod cross_traffic;
#[cfg(test)]
mod encoded;
mod envelope;
pub mod htpnet;
mod in_order;
#[cfg(test)]
mod link;
mod new_rate;
mod numbered_packet;
pub mod setting;
pub mod snr;
pub mod sscop;
pub mod sstp;
pub mod tcp;
mod transmission_buffer;
pub mod transport;
mod unsent;
pub mod xtp;
