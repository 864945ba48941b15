//! The papers' mechanisms, one a file. A block names no protocol and owns no clock, socket or thread.
//!
//! What may be missing:
//! - [`accounting`]: the partial check of a segment and what it asks for again (EC 4.2).
//! - [`bitmap`]: which units of a segment are here.
//! - [`ranges`]: sets of numbers as sorted ranges, and the holes of a segment.
//! - [`interleave`]: the order in which the units of a segment leave.
//!
//! What was lost:
//! - [`loss_detector`]: gaps in shipment numbers with a re-sequencing distance (EC 3.2).
//! - [`rtt`]: the round trip, smoothed and as a windowed minimum.
//! - [`sync_table`]: sent packets bound to state exchanges, and the FIFO search for lost ones (HT 4).
//! - [`traffic_intensity`]: whether a queue on the path grows, from the gaps of periodic packets (HT 3.5).
//!
//! When something may leave:
//! - [`window`]: the segment window of sender and receiver (FC 3.4).
//! - [`burst`]: burst rate control below the window (FC 3.3).
//! - [`congestion`]: the rate a shared network lets a sender have, from exchanges of state (HT 3.5, PTIF).
//! - [`report_budget`]: how soon a report may follow others (AA Table 1).
//! - [`report_period`]: a status period for error-free and one for error phases (AA 2).
//! - [`timer`]: a table of named timers: "why did I wake?".
//!
//! Called by the protocol's halves and by the papers' schemes.
//!
//! Invariant: after warming up, no method that runs for every packet allocates.

#![forbid(unsafe_code)]

pub mod accounting;
pub mod bitmap;
pub mod burst;
pub mod congestion;
pub mod interleave;
pub mod loss_detector;
pub mod ranges;
pub mod recount;
pub mod report_budget;
pub mod report_period;
pub mod rtt;
pub mod sync_table;
pub mod timer;
pub mod traffic_intensity;
pub mod window;

pub use accounting::{Accounting, Checker};
pub use bitmap::Bitmap;
pub use burst::{Pacer, RateSpec, RateSpecError};
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
