//! Detection of competing flows: a queue that stands although this sender has given way.
//!
//! Called by delay mode for every exchange. Streams of this kind keep a short queue, and drain it every few seconds.
//! Four signs say that others do not:
//!
//! - *Standing*: above what streams of this kind keep, for six control times, while the way made would have drained it
//!   all. The first time the answer is a drain; a second time within some seconds is competition.
//! - *The base fell* by more than streams of this kind keep standing: what was taken for the path was others' queue. It
//!   counts as a first time.
//! - *Never empty* for seven seconds, which is longer than the drains are apart.
//! - *Starving*: a few datagrams a round trip, far below what was once served, at a queue.
//!
//! Invariant: a limited stream finds nothing.

use super::delay_mode::GAIN;
use super::readings::View;
use super::{Memory, law};
use segstream_base::{Duration, Instant};

/// How long the base delay may be out of sight.
const EMPTIED_EVERY: Duration = Duration::from_secs(7);
/// The queue is as good as empty below this part of the target, of which the time of a datagram counts as no more than
/// that of so many at the best service.
const EMPTY_PART: f64 = 0.4;
const EMPTY_DATAGRAMS: f64 = 5.0;
/// How long a base that fell is held against the path.
const FELL_COUNTS: Duration = Duration::from_secs(10);
/// How long a trial after competition lasts.
const TRIAL: Duration = Duration::from_secs(5);
/// How long a first time counts: control times, and seconds at least.
const SUSPECT_TAUS: f64 = 40.0;
const SUSPECT_LEAST: f64 = 2.0;
/// Control times a queue must stand, and a base must have been known before its fall means something.
const STANDING_TAUS: f64 = 6.0;
const KNOWN_TAUS: f64 = 20.0;
/// A queue that stands came at once when it was below the target so many control times before.
const SUDDEN_TAUS: f64 = 4.0;
/// Starving: below so many datagrams a round trip, below this part of the best service, for so many control times or
/// a second.
const STARVING_DATAGRAMS: f64 = 6.0;
const STARVING_PART: f64 = 0.25;
const STARVING_TAUS: f64 = 15.0;
/// Who had this part of the best service before had the path alone.
const FULL_SHARE: f64 = 0.6;

/// Noise looks like a queue: what stands is longer by so much of it.
const NOISES: f64 = 2.0;

/// What the queue says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Finding {
    /// Nothing unusual.
    Nothing,
    /// A queue stands: drain, and look again.
    Suspicion,
    /// Others fill the queue; the share before they came.
    Competition(f64),
}

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

/// The signs.
#[derive(Clone, Copy, Debug)]
pub(super) struct CompetingFlows {
    since: Instant,
    stand: Option<Stand>,
    /// Until when a first time counts, and the share before it.
    suspect: Option<(Instant, f64)>,
    /// Whether that was a stand that came at once.
    sudden: bool,
    /// When the queue was last below the target.
    low_at: Instant,
    emptied_at: Instant,
    fed_at: Instant,
    /// By how much the base fell, forgotten over ten control times.
    fell: f64,
}

impl CompetingFlows {
    pub(super) const fn new(now: Instant) -> Self {
        Self { since: now, stand: None, suspect: None, sudden: false, low_at: now, emptied_at: now, fed_at: now, fell: 0.0 }
    }

    /// For some seconds one sign is enough.
    pub(super) fn on_trial(share: f64, now: Instant) -> Self {
        Self { suspect: Some((now + TRIAL, share)), ..Self::new(now) }
    }

    /// Looks at an exchange of a stream served at `share` whose target delay is `target`.
    pub(super) fn look(&mut self, view: &View, share: f64, target: f64, draining: bool, memory: &Memory) -> Finding {
        self.note_fall(view, share);
        if self.is_starved(view, share, memory) || self.is_never_empty(view, share, target, memory) {
            return Finding::Competition(share);
        }
        if view.queue < target || view.limited {
            self.stand = None;
            self.low_at = view.now;
            return Finding::Nothing;
        }
        if draining {
            return Finding::Nothing;
        }
        self.look_at_stand(view, share)
    }

    /// Drops the suspicion if before it the path was ours alone and the queue came at once; returns whether it was so.
    pub(super) fn clear_if_path(&mut self, memory: &Memory) -> bool {
        let full = self.sudden && self.suspect.is_some_and(|(_, share)| share > FULL_SHARE * memory.service_most);
        if full {
            self.suspect = None;
        }
        full
    }

    fn note_fall(&mut self, view: &View, share: f64) {
        self.fell = (self.fell + view.base_fell) * (1.0 - (view.alpha / (10.0 * view.tau)).min(1.0));
        if self.fell > law::standing(view.tau) && view.now.since(self.since).as_secs_f64() > KNOWN_TAUS * view.tau {
            self.suspect = Some((view.now + FELL_COUNTS, share));
            self.sudden = false;
            self.fell = 0.0;
        }
    }

    fn is_starved(&mut self, view: &View, share: f64, memory: &Memory) -> bool {
        let few = share < STARVING_DATAGRAMS * view.datagram / (view.tau + view.queue);
        let starving = few && share < STARVING_PART * memory.service_most;
        if !starving || view.queue < 0.8 * law::scaled(share) || view.limited {
            self.fed_at = view.now;
        }
        view.now.since(self.fed_at).as_secs_f64() > (STARVING_TAUS * view.tau).max(1.0)
    }

    fn is_never_empty(&mut self, view: &View, share: f64, target: f64, memory: &Memory) -> bool {
        // Why: a share that others have cut down, whose target is long, must not make their queue look short.
        let most = law::scaled(share) + EMPTY_DATAGRAMS * view.datagram / memory.service_most.max(1.0);
        if view.newest < EMPTY_PART * target.min(most) || view.limited {
            self.emptied_at = view.now;
        }
        view.now.since(self.emptied_at) > EMPTIED_EVERY && view.queue > law::standing(view.tau) / 3.0 + NOISES * view.noise
    }

    fn look_at_stand(&mut self, view: &View, share: f64) -> Finding {
        let much = law::standing(view.tau).max(1.5 * law::scaled(share)) + 4.0 * view.datagram_time + NOISES * view.noise;
        if view.queue < much {
            return Finding::Nothing;
        }
        let sudden = view.now.since(self.low_at).as_secs_f64() < SUDDEN_TAUS * view.tau;
        let stand = self.stand.get_or_insert(Stand { since: view.now, drained: 0.0, peak: 0.0, share, sudden });
        stand.drained += view.alpha * GAIN * (view.queue - much / 2.0) / (view.tau + view.queue);
        stand.peak = stand.peak.max(view.queue);
        let waited = view.now.since(stand.since).as_secs_f64();
        if waited < STANDING_TAUS * view.tau || stand.drained < stand.peak + (view.tau / 4.0).max(0.01) {
            return Finding::Nothing;
        }
        let share = stand.share;
        self.sudden = stand.sudden;
        self.stand = None;
        match self.suspect {
            Some((until, before)) if view.now < until => Finding::Competition(before.max(share)),
            _ => {
                let counts = Duration::from_secs_f64((SUSPECT_TAUS * view.tau).max(SUSPECT_LEAST));
                self.suspect = Some((view.now + counts, share));
                Finding::Suspicion
            }
        }
    }
}
