//! Counters of the stages of a model.
//!
//! Made by [`super::StageModel`]; read by laboratories and tests.
//!
//! Invariant: a call is counted when its service begins.

use segstream_base::Duration;

/// What one stage did on its processor. A link's calls are not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageTally {
    /// Its name.
    pub name: &'static str,
    /// Messages it took.
    pub messages: u64,
    /// How often its timer was due.
    pub timeouts: u64,
    /// How long its calls occupied the processor.
    pub busy: Duration,
    /// How long its calls waited for the processor.
    pub waited: Duration,
}

impl StageTally {
    pub(super) const fn new(name: &'static str) -> Self {
        Self { name, messages: 0, timeouts: 0, busy: Duration::ZERO, waited: Duration::ZERO }
    }

    pub(super) fn note(&mut self, is_message: bool, cost: Duration, waited: Duration) {
        self.messages += u64::from(is_message);
        self.timeouts += u64::from(!is_message);
        self.busy += cost;
        self.waited += waited;
    }

    /// The mean wait of a call in seconds; not a number when there was none.
    pub fn waited_s_mean(&self) -> f64 {
        self.waited.as_secs_f64() / (self.messages + self.timeouts) as f64
    }
}
