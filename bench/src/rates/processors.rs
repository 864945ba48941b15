//! How busy the processors were during a run: `/proc/stat` (proc_stat(5)).
//!
//! Called by [`super::trial`].
//!
//! Why: `link` goes before the ends. Where the processors do not suffice the link may be on time and the ends are not, and then they
//! measure each other.
//!
//! Invariant: threads of a high nice value are not busy: `link` keeps the processors awake with such.

/// Processor time of all processors since the machine began, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProcessorTime {
    busy: u64,
    all: u64,
}

impl ProcessorTime {
    /// Until now; `None` where the system does not tell.
    pub(super) fn now() -> Option<Self> {
        Self::of(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    fn of(stat: &str) -> Option<Self> {
        let fields = stat.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> = fields.split_whitespace().take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
        let &[user, _nice, system, _idle, _wait, interrupts, soft_interrupts, _steal] = ticks.as_slice() else { return None };
        Some(Self { busy: user + system + interrupts + soft_interrupts, all: ticks.iter().sum() })
    }

    /// The part of the time since `earlier` in which they were busy.
    pub(super) fn busy_since(self, earlier: Self) -> f64 {
        self.busy.saturating_sub(earlier.busy) as f64 / self.all.saturating_sub(earlier.all).max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_nice_idle_or_stolen_is_not_busy() {
        let at = |line: &str| ProcessorTime::of(&format!("{line}\ncpu0 1 1 1 1 1 1 1 1 0 0\n")).unwrap();
        let earlier = at("cpu  100 50 20 900 3 1 2 4 0 0");
        let later = at("cpu  130 950 30 920 3 2 11 54 0 0");
        assert_eq!(later.busy_since(earlier), 50.0 / 1020.0);
        assert_eq!(ProcessorTime::of("intr 1 2 3"), None);
    }
}
