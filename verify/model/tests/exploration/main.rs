//! The explorations, one instance a file. One program, so that one is linked.

mod broken;
mod class_change;
mod close;
mod coded;
mod lifetime;
mod migration;
mod setup;
mod window;
