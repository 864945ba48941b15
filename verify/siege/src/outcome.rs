//! The cost of an attack, and the bounds that it must keep; as a table and as JSON.
//!
//! Filled by the attacks, printed by the command, asserted by the tests.
//!
//! Invariant: a bound is a number that was fixed before the attack.

use crate::attacker::Tally;
use serde::Serialize;
use std::fmt;

/// One bound.
#[derive(Clone, Debug, Serialize)]
pub struct Bound {
    /// What is bounded.
    pub what: &'static str,
    /// What it was.
    pub measured: f64,
    /// What it may be.
    pub limit: f64,
    /// Whether the limit is the least it may be, and not the most.
    pub at_least: bool,
    /// Whether it was within.
    pub held: bool,
}

impl Bound {
    /// `measured` may be `limit` at most.
    pub fn most(what: &'static str, measured: f64, limit: f64) -> Self {
        Self { what, measured, limit, at_least: false, held: measured <= limit }
    }

    /// `measured` may be `limit` at least.
    pub fn least(what: &'static str, measured: f64, limit: f64) -> Self {
        Self { what, measured, limit, at_least: true, held: measured >= limit }
    }

    /// It must be so.
    pub fn so(what: &'static str, is: bool) -> Self {
        Self::least(what, f64::from(u8::from(is)), 1.0)
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, held) = (if self.at_least { ">=" } else { "<=" }, if self.held { "" } else { "  BROKEN" });
        write!(f, "{}: {} {sign} {}{held}", self.what, short(self.measured), short(self.limit))
    }
}

fn short(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.3}") }
}

/// What an attack has cost.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The attack.
    pub attack: &'static str,
    /// What the attacker has sent.
    pub sent: Tally,
    /// What was answered to it.
    pub answered: Tally,
    /// How much more memory the victim held at the end.
    pub memory_growth_bytes: u64,
    /// Time on processors that the victim has taken meanwhile.
    pub cpu_seconds: f64,
    /// The fate of honest connections.
    pub effect: String,
    /// What had to hold.
    pub bounds: Vec<Bound>,
}

impl Outcome {
    /// Bytes answered for each byte sent.
    pub fn amplification(&self) -> f64 {
        self.answered.bytes as f64 / (self.sent.bytes as f64).max(1.0)
    }

    /// Whether every bound was kept to.
    pub fn held(&self) -> bool {
        self.bounds.iter().all(|bound| bound.held)
    }

    /// The head of the table.
    pub fn head() -> String {
        format!(
            "{:<20} {:>9} {:>9} {:>9} {:>7} {:>9} {:>7}  {:<5} {}",
            "attack", "sent", "sent kB", "answ. kB", "amplif.", "memory kB", "CPU s", "held", "honest connections"
        )
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<20} {:>9} {:>9} {:>9} {:>7.3} {:>9} {:>7.3}  {:<5} {}",
            self.attack,
            self.sent.datagrams,
            self.sent.bytes / 1000,
            self.answered.bytes / 1000,
            self.amplification(),
            self.memory_growth_bytes / 1000,
            self.cpu_seconds,
            if self.held() { "yes" } else { "NO" },
            self.effect
        )?;
        self.bounds.iter().try_for_each(|bound| write!(f, "\n    {bound}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_broken_on_its_far_side_and_breaks_the_outcome() {
        assert!(Bound::most("", 2.0, 2.0).held && !Bound::most("", 2.1, 2.0).held);
        assert!(Bound::least("", 2.0, 2.0).held && !Bound::least("", 1.9, 2.0).held);
        let none = Tally::default();
        let bounds = vec![Bound::so("", true), Bound::so("", false)];
        let (attack, effect) = ("", String::new());
        let outcome = Outcome { attack, sent: none, answered: none, memory_growth_bytes: 0, cpu_seconds: 0.0, effect, bounds };
        assert!(!outcome.held());
    }
}
