//! The laboratory: experiments as values.
//!
//! Called by the studies and by the command line. The one library that sees every scheme and the flagship.
//!
//! Data flows one way. A module uses those of the lines above its own and none beside or below; the test `modules` of this
//! crate reads this drawing and the sources, and refuses anything else.
//!
//! ```text order
//! statistics  closed_forms  machine      numbers: intervals, the analysis of the papers, which machine this is
//! figure                                 a picture as a value
//! heat_map  standing                     a picture of two parameters; where the flagship stands beside others
//! report                                 pictures, tables and verdicts together
//! drawing                                SVG, CSV and the report page of them
//! flagship                               ours as a scheme
//! registry                               every scheme with its look and its settings
//! scenario                               black box, workload and scheme; its text; its pair of halves
//! outcome                                what a run gives
//! meter                                  watches a run
//! plan                                   how long and how often
//! shard                                  which part of a sweep is this process's
//! experiment                             what can be run, stored and looked up: a trait
//! store                                  never twice
//! runner                                 in parallel
//! run                                    a scenario as an experiment
//! point  cost  live                      its replications joined; its cost on this machine; over real sockets
//! shared  tandem  stages                 the other kinds: flows on one link, finite queues, processes on processors
//! measured                               the results of all kinds, by curve and place
//! claim                                  what a paper says, as code
//! study                                  a figure of a paper: points, pictures, claims
//! ```
//!
//! Invariant: a result depends on its scenario and its seed alone, on any number of threads.

pub mod claim;
pub mod closed_forms;
pub mod cost;
pub mod drawing;
pub mod experiment;
pub mod figure;
pub mod flagship;
pub mod heat_map;
pub mod live;
pub mod machine;
pub mod measured;
mod meter;
pub mod outcome;
pub mod plan;
pub mod point;
pub mod registry;
pub mod report;
pub mod run;
pub mod runner;
pub mod scenario;
pub mod shard;
pub mod shared;
pub mod stages;
pub mod standing;
pub mod statistics;
pub mod store;
pub mod study;
pub mod tandem;
