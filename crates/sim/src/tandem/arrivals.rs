//! The two arrival processes of XT 3.3, over slots: Bernoulli and interrupted Bernoulli.
//!
//! Called by [`super::Tandem`], once a slot.
//!
//! An interrupted Bernoulli process (IBP) is active or idle. From one slot to the next it stays active with probability
//! p and idle with probability q; an active slot has an arrival with probability alpha. With sigma = 2 - p - q its rate
//! is alpha (1 - q) / sigma, and the squared coefficient of variation of its interarrival times is
//! C^2 = 1 + alpha ((1 - p)(p + q) / sigma^2 - 1).
//!
//! Source: XT 3.3 and XT Figure 3; solved here for p and q, of which the paper gives the rate and C^2 only.
//!
//! Invariant: a process draws the same number of random numbers in every slot, so that its arrivals depend on its own
//! stream alone. It begins in its stationary state.

use segstream_base::random::Random;

/// How messages arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// In each slot with this probability, whatever happened before.
    Bernoulli {
        /// Messages a slot.
        rate: f64,
    },
    /// In bursts.
    Interrupted {
        /// Messages a slot.
        rate: f64,
        /// The squared coefficient of variation of the times between arrivals, C^2.
        scv: f64,
        /// The probability of an arrival in an active slot. The paper does not say; 1 is usual.
        alpha: f64,
    },
}

impl Arrivals {
    /// Messages a slot.
    pub const fn rate(&self) -> f64 {
        match *self {
            Self::Bernoulli { rate } | Self::Interrupted { rate, .. } => rate,
        }
    }

    /// The squared coefficient of variation of the times between arrivals.
    pub const fn scv(&self) -> f64 {
        match *self {
            Self::Bernoulli { rate } => 1.0 - rate,
            Self::Interrupted { scv, .. } => scv,
        }
    }

    /// The same process at another rate.
    #[must_use]
    pub const fn at_rate(self, rate: f64) -> Self {
        match self {
            Self::Bernoulli { .. } => Self::Bernoulli { rate },
            Self::Interrupted { scv, alpha, .. } => Self::Interrupted { rate, scv, alpha },
        }
    }
}

/// Why there is no such arrival process.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ArrivalsError {
    /// Not a rate.
    #[error("{rate} messages a slot cannot arrive; give a rate from 0 to 1")]
    Rate {
        /// What was given.
        rate: f64,
    },
    /// Active slots have too few arrivals, or there are no idle ones.
    #[error(
        "an interrupted process with a rate of {rate} messages a slot cannot have {alpha} of them in an active slot; give an alpha above the rate and at most 1, and a rate above 0"
    )]
    Alpha {
        /// The rate.
        rate: f64,
        /// What was given.
        alpha: f64,
    },
    /// No chain of two states has it.
    #[error(
        "no interrupted process with a rate of {rate} and an alpha of {alpha} has a squared coefficient of variation of {scv}; give at least {least:.6}"
    )]
    Variation {
        /// The rate.
        rate: f64,
        /// The probability of an arrival in an active slot.
        alpha: f64,
        /// What was given.
        scv: f64,
        /// What can be, at least.
        least: f64,
    },
}

/// The Markov chain of an interrupted Bernoulli process (XT Figure 3).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chain {
    /// From active to active.
    pub p: f64,
    /// From idle to idle.
    pub q: f64,
    /// An arrival in an active slot.
    pub alpha: f64,
}

impl Chain {
    /// The chain with a given rate and squared coefficient of variation.
    ///
    /// # Errors
    /// Says which of the values is invalid.
    pub fn solve(rate: f64, scv: f64, alpha: f64) -> Result<Self, ArrivalsError> {
        if !(0.0..=1.0).contains(&rate) {
            return Err(ArrivalsError::Rate { rate });
        }
        if !(rate > 0.0 && alpha > rate && alpha <= 1.0) {
            return Err(ArrivalsError::Alpha { rate, alpha });
        }
        // With the share a of active slots, 1 - p = (1 - a) sigma and 1 - q = a sigma; C^2 falls as sigma grows, and
        // sigma is largest when one of the two is 1.
        let active = rate / alpha;
        let sigma_max = 1.0 / active.max(1.0 - active);
        let least = 1.0 + alpha * ((1.0 - active) * (2.0 / sigma_max - 1.0) - 1.0);
        let sigma = 2.0 / (1.0 + (1.0 + (scv - 1.0) / alpha) / (1.0 - active));
        // Why the reserve: the least value itself must pass, whatever the rounding.
        let reserve = 1e-9 * least.abs().max(1.0);
        if !scv.is_finite() || scv < least - reserve {
            return Err(ArrivalsError::Variation { rate, alpha, scv, least });
        }
        let sigma = if scv < least + reserve { sigma.clamp(0.0, sigma_max) } else { sigma };
        Ok(Self { p: (1.0 - (1.0 - active) * sigma).max(0.0), q: (1.0 - active * sigma).max(0.0), alpha })
    }

    /// Arrivals a slot.
    pub fn rate(&self) -> f64 {
        self.alpha * (1.0 - self.q) / (2.0 - self.p - self.q)
    }

    /// The squared coefficient of variation of the times between arrivals.
    pub fn scv(&self) -> f64 {
        let sigma = 2.0 - self.p - self.q;
        1.0 + self.alpha * ((1.0 - self.p) * (self.p + self.q) / (sigma * sigma) - 1.0)
    }
}

/// A running arrival process.
#[derive(Clone, Debug)]
pub struct Process(State);

#[derive(Clone, Debug)]
enum State {
    Bernoulli { rate: f64 },
    Interrupted { chain: Chain, active: Option<bool> },
}

impl Process {
    /// A process that has not begun.
    ///
    /// # Errors
    /// Says why there is no such process.
    pub fn new(arrivals: Arrivals) -> Result<Self, ArrivalsError> {
        match arrivals {
            Arrivals::Bernoulli { rate } if (0.0..=1.0).contains(&rate) => Ok(Self(State::Bernoulli { rate })),
            Arrivals::Bernoulli { rate } => Err(ArrivalsError::Rate { rate }),
            Arrivals::Interrupted { rate, scv, alpha } => {
                Ok(Self(State::Interrupted { chain: Chain::solve(rate, scv, alpha)?, active: None }))
            }
        }
    }

    /// Whether something arrives in the next slot.
    #[inline]
    pub fn arrives(&mut self, random: &mut Random) -> bool {
        match &mut self.0 {
            State::Bernoulli { rate } => random.chance(*rate),
            State::Interrupted { chain, active } => {
                let stays = match *active {
                    Some(true) => chain.p,
                    Some(false) => 1.0 - chain.q,
                    None => chain.rate() / chain.alpha,
                };
                let now = random.chance(stays);
                *active = Some(now);
                // Both numbers are drawn whatever comes out.
                random.chance(chain.alpha) & now
            }
        }
    }
}
