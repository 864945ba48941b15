//! Tests of the laboratory, one behaviour a file. One program, so that one is linked.

mod analysis;
mod controllers;
mod end_systems;
mod live;
mod live_sources;
mod modules;
mod offered_controllers;
mod rates;
mod reproducible;
mod shared;
mod sscop_dissector;
mod tandem;
