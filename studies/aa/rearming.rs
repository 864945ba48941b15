//! When the receiver's timer is set anew: the readings of what AA leaves open, beside the usual one.
//!
//! Called by the studies whose claims may hang on it.
//!
//! Invariant: a reading changes nothing but that.
//! Source: AA 2 and the words on AA Figure 2; the page that would decide it is lost.

use segstream_base::Duration;
use segstream_lab::scenario::Scenario;
use segstream_schemes::adaptive_ack::{Rearming, Settings};

/// Every reading but the usual one, `phase`, in which a gap sets the timer when nothing else is missing.
pub(super) const OTHERS: [Rearming; 4] = [Rearming::First, Rearming::Gap, Rearming::Expiry, Rearming::Recovery];

/// What the figures say of it among their parameters.
pub(super) const PARAMETER: (&str, &str) = (
    "the timer is set anew",
    "when an error phase begins (inferred from the words on AA Figure 2); the findings say what comes out otherwise: only by a gap while \
     the period is T_normal (first), by each gap (gap), never before it has run out (expiry), also when all is recovered (recovery)",
);

/// The scenario of adaptive acknowledgment with these periods in milliseconds, read so.
pub(super) fn read(scenario: Scenario, (t_normal, t_error): (u64, u64), rearming: Rearming) -> Scenario {
    let ms = Duration::from_millis;
    scenario.with(|it| it.scheme = Settings { t_normal: ms(t_normal), t_error: ms(t_error), rearming, ..Settings::default() }.into())
}
