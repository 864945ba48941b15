//! Whole endpoints with the encrypted session, in virtual time: what set-up survives, what a stranger cannot do, what
//! becomes of a peer that moves or crashes.

mod established;
mod key_log;
mod moved;
mod network;
mod reset;
mod setup;
mod strangers;
