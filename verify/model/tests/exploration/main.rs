//! The explorations, one instance a file. One program, so that one is linked.

mod broken;
mod close;
mod lifetime;
mod moved;
mod reclass;
mod setup;
mod window;
