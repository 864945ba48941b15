//! The laboratory: experiments as values.
//!
//! Called by the studies and by the command line. The one library that sees every scheme and the flagship.
//!
//! - `registry`: every scheme with its look and its constructor; `flagship` makes ours one among them;
//! - `scenario`: one scheme over one black box, as a value; `run` simulates it, `meter` watches, `outcome`
//!   is what comes of it;
//! - `live`: the same scheme over real sockets;
//! - `stages`: HTPNET, process by process, on threads and on modelled processors;
//! - `shared`: several parties over one link, as values; `tandem`: error control over finite queues; `experiment`: what
//!   they have in common;
//! - `plan`, `runner`, `store`: how often, in parallel, and never twice; `point` joins the replications;
//! - `cost`: what a packet costs each half on this machine; `machine`: which machine that is;
//! - `statistics`: intervals, batch means, order statistics, warm-up, sequential stopping;
//! - `closed_forms`: the analysis of the papers, as printed and corrected;
//! - `study`, `claim`: a figure of a paper as points, pictures and claims;
//! - `figure`, `heat_map`: a picture as a value; `drawing` makes SVG and the report page of it.
//!
//! Invariant: a result depends on its scenario and its seed alone, on any number of threads.

pub mod claim;
pub mod closed_forms;
pub mod cost;
pub mod drawing;
pub mod experiment;
pub mod figure;
mod flagship;
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
pub mod shared;
pub mod stages;
pub mod statistics;
pub mod store;
pub mod study;
pub mod tandem;
