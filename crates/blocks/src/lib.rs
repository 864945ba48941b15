//! The papers' mechanisms, one a file. A block names no protocol and owns no clock, socket or thread.
//!
//! What may be missing:
//! - [`accounting`]: the partial check of a segment and what it requests again (EC 4.2).
//! - [`bitmap`]: which units of a segment are here.
//! - [`ranges`]: sets of numbers as sorted ranges, and the holes of a segment.
//! - [`interleave`]: the order in which the units of a segment leave.
//!
//! What was lost:
//! - [`loss_detector`]: gaps in shipment numbers with a reordering threshold (EC 3.2).
//! - [`two_state_loss`]: a loss process fitted to losses and their runs, and how many units to send so that enough arrive;
//!   [`loss_history`]: what was lost in the last seconds.
//! - [`fence`]: which units a code has to protect so that a tolerance holds, and how many repair units that takes.
//! - [`histogram`]: counts of values by buckets.
//! - [`rtt`]: the round trip, smoothed and as a windowed minimum.
//! - [`sync_table`]: sent packets bound to state exchanges, and the FIFO search for lost ones (HT 4).
//! - [`traffic_intensity`]: whether a queue on the path grows, from the gaps of periodic packets (HT 3.5).
//!
//! When something may be sent:
//! - [`user`]: a user who takes segments slower for a while (FC 3.4).
//! - [`window`]: the segment window of sender and receiver (FC 3.4).
//! - [`burst`]: burst rate control below the window (FC 3.3).
//! - [`congestion`]: congestion controllers.
//! - [`report_budget`]: a rate limiter of reports (AA Table 1).
//! - [`report_period`]: a status period for error-free and one for error phases (AA 2).
//! - [`timer`]: a table of named timers.
//!
//! Called by the protocol's halves and by the papers' schemes.
//!
//! Invariant: after warming up, no method that runs for every packet allocates.

#![forbid(unsafe_code)]

pub mod accounting;
pub mod bitmap;
pub mod burst;
pub mod congestion;
pub mod fence;
pub mod histogram;
pub mod interleave;
pub mod loss_detector;
pub mod loss_history;
pub mod lost_units;
pub mod ranges;
pub mod rare_queue;
pub mod recount;
pub mod report_budget;
pub mod report_period;
pub mod rtt;
pub mod sync_table;
pub mod timer;
pub mod traffic_intensity;
pub mod two_state_loss;
pub mod user;
pub mod window;
pub mod work;

pub use accounting::{Accounting, Checker};
pub use bitmap::Bitmap;
pub use burst::{Pacer, RateSpec, RateSpecError};
pub use histogram::Histogram;
pub use interleave::{Interleave, SendingOrder};
pub use loss_detector::{Arrival, LossDetector};
pub use ranges::RangeSet;
pub use report_budget::ReportBudget;
pub use report_period::ReportPeriod;
pub use rtt::Rtt;
pub use sync_table::{Search, SyncTable, UnknownSearch};
pub use timer::{TimerKey, TimerTable};
pub use traffic_intensity::TrafficIntensity;
pub use window::{ReceiveWindow, SendWindow};
