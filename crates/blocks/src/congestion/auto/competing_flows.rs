//! Detection of competing flows: a queue that stands although this sender has given way.
//!
//! Called by delay mode for every exchange. Streams of this kind keep a short queue and drain it together. A queue *stands* when it
//! is above what they keep, for six control times, while the way made would have drained it all. It raises a *suspicion*, which is
//! answered by a drain, and remembers the share from before. What others have is told by the drains of the schedule, whose answer
//! all of this kind see alike, and by that drain where the queue is longer than any of this kind: [`super::drain`].
//!
//! Invariant: a limited stream finds nothing.

use super::delay_mode::GAIN;
use super::view::View;
use super::{Memory, law};
use segstream_base::{Duration, Instant};

/// How long a suspicion counts: control times, and seconds at least, which is two slots of the schedule.
const SUSPECT_TAUS: f64 = 40.0;
const SUSPECT_LEAST: f64 = 6.0;
/// How long the share before a trial is remembered.
const TRIAL: Duration = Duration::from_secs(5);
/// Control times a queue must stand.
const STANDING_TAUS: f64 = 6.0;
/// A queue that stands came at once when it was below the target so many control times before.
const SUDDEN_TAUS: f64 = 4.0;
/// What was seen of the queue in the mode's first second is its start.
const SETTLED: Duration = Duration::from_secs(1);
/// Who had this part of the best service before had the path alone.
const FULL_SHARE: f64 = 0.6;
/// Noise looks like a queue: what stands is longer by so much of it.
const NOISES: f64 = 2.0;

/// A queue above what streams of this kind keep.
#[derive(Clone, Copy, Debug)]
struct Stand {
    since: Instant,
    /// How much of a queue the way made would have drained, and the longest seen.
    drained: f64,
    peak: f64,
    share: f64,
    /// It came at once, as the delay of a longer path does, and others' queue does not.
    sudden: bool,
}

/// That others may be there.
#[derive(Clone, Copy, Debug)]
struct Suspicion {
    until: Instant,
    /// The share before it, in bytes a second.
    share: f64,
    /// Whether the queue came at once.
    sudden: bool,
}

/// The signs.
#[derive(Clone, Copy, Debug)]
pub(super) struct CompetingFlows {
    stand: Option<Stand>,
    suspicion: Option<Suspicion>,
    /// When the queue was last below the target, if it ever was.
    low_at: Option<Instant>,
    /// When delay mode began.
    began_at: Instant,
}

impl CompetingFlows {
    pub(super) const fn new(now: Instant) -> Self {
        Self { stand: None, suspicion: None, low_at: None, began_at: now }
    }

    /// After competition at `share`, which counts if it comes back soon.
    pub(super) fn on_trial(share: f64, now: Instant) -> Self {
        Self { suspicion: Some(Suspicion { until: now + TRIAL, share, sudden: false }), ..Self::new(now) }
    }

    /// Looks at an exchange of a stream served at `share` whose target delay is `target`; returns whether to drain.
    pub(super) fn look(&mut self, view: &View, share: f64, target: f64, draining: bool) -> bool {
        if view.delay.queue < target || view.limited {
            self.stand = None;
            // Why not at once: a start-up that others fill the queue of ends so too.
            if view.now.since(self.began_at) >= SETTLED {
                self.low_at = Some(view.now);
            }
            return false;
        }
        !draining && self.look_at_stand(view, share)
    }

    /// The share before others came, as far as that is known; `share` is that of now.
    pub(super) fn share_before(&self, now: Instant, share: f64) -> f64 {
        self.suspicion.filter(|suspicion| now < suspicion.until).map_or(share, |suspicion| suspicion.share.max(share))
    }

    /// Whether others are suspected.
    pub(super) fn suspects(&self, now: Instant) -> bool {
        self.suspicion.is_some_and(|suspicion| now < suspicion.until)
    }

    /// Drops the suspicion if before it the path was ours alone and the queue came at once; returns whether it was so.
    pub(super) fn clear_if_path(&mut self, memory: &Memory) -> bool {
        let is_path = |it: &Suspicion| it.sudden && it.share > FULL_SHARE * memory.service_most;
        self.suspicion.take_if(|suspicion| is_path(suspicion)).is_some()
    }

    fn look_at_stand(&mut self, view: &View, share: f64) -> bool {
        let much = law::standing(view.tau).max(1.5 * law::scaled(share)) + 4.0 * view.datagram_time + NOISES * view.delay.noise;
        if view.delay.queue < much {
            return false;
        }
        let sudden = self.low_at.is_some_and(|at| view.now.since(at).as_secs_f64() < SUDDEN_TAUS * view.tau);
        let stand = self.stand.get_or_insert(Stand { since: view.now, drained: 0.0, peak: 0.0, share, sudden });
        stand.drained += view.exchange.alpha * GAIN * (view.delay.queue - much / 2.0) / (view.tau + view.delay.queue);
        stand.peak = stand.peak.max(view.delay.queue);
        let waited = view.now.since(stand.since).as_secs_f64();
        if waited < STANDING_TAUS * view.tau || stand.drained < stand.peak + (view.tau / 4.0).max(0.01) {
            return false;
        }
        let Stand { share, sudden, .. } = *stand;
        self.stand = None;
        match &mut self.suspicion {
            Some(suspicion) if view.now < suspicion.until => {
                suspicion.share = suspicion.share.max(share);
                suspicion.sudden = sudden;
                false
            }
            _ => {
                let counts = Duration::from_secs_f64((SUSPECT_TAUS * view.tau).max(SUSPECT_LEAST));
                self.suspicion = Some(Suspicion { until: view.now + counts, share, sudden });
                true
            }
        }
    }
}
