//! The adapter around a pair of halves small enough to see through, in virtual time and over the link emulator.

mod over_link;
mod stop_and_wait;
mod virtual_time;
