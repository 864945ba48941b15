//! Statistics of simulation results: what may be said of a number that came out of a random run.
//!
//! Called by the runner and the studies.
//!
//! | question | module |
//! |---|---|
//! | mean over replications | `interval` |
//! | mean of one long run | `warm_up`, then `batch_means` |
//! | ratio of two sums, such as packets over time | `ratio` |
//! | quantile, or the largest of n delays | `order` |
//! | one scheme against another under the same losses | `paired` |
//! | how long to run | `stopping` |
//! | does a set of z-scores fit a closed form | `normality` |
//! | mean and variance without keeping the values | `summary` |
//! | how equally flows share | `fairness` |
//!
//! Invariant: every function depends on its arguments alone and sums in their order, so the same values in the same
//! order give the same bytes on any number of threads.
//!
//! Limit: quantiles and p-values of Student's t and chi-square come from a library that uses the logarithms of the platform, so
//! the last digits of a half-width may differ between platforms. Means, counts and order statistics do not.
//!
//! Limit: every interval is for one point. Of twenty points with 95 % intervals one is expected to miss; a statement about
//! all points at once needs [`Confidence::shared`].

pub mod batch_means;
pub mod estimate;
pub mod fairness;
pub mod interval;
pub mod normality;
pub mod order;
pub mod paired;
pub mod ratio;
pub mod stopping;
pub mod summary;
pub mod warm_up;

#[cfg(test)]
mod drawn;

pub use batch_means::{BatchMeans, Batches};
pub use estimate::{Confidence, Estimate, StatisticsError};
pub use fairness::jain;
pub use interval::{over_replications, t_interval, z_score};
pub use normality::Normality;
pub use order::{Largest, Maximum, OrderError, Quantile};
pub use paired::Paired;
pub use stopping::{Decision, Progress, StoppingRule};
pub use summary::Summary;
pub use warm_up::WarmUp;
