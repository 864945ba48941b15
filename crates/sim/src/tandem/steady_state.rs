//! Whether a run has a steady state at all. Where it has none a mean delay says how long the run was, and nothing else.
//!
//! Called by [`super::TandemOutcome::unstable`]. The batches are public, for another rule.
//!
//! The backlog is the number of messages that have arrived and are not judged. A run is unstable when both hold:
//!
//! 1. its backlog at the end is above the largest of its second quarter;
//! 2. in its last quarter, less than 99 of 100 messages that arrived were judged: the backlog grew by more than 1 % of
//!    what was offered.
//!
//! Why these: a scheme that collapses once its queue is long may do so late in a run, and then mean backlogs have hardly
//! changed; what it leaves behind at the end has. The first condition keeps short runs, in which a burst is 1 % of a
//! quarter, from being called unstable for it. The first quarter is left out because a run may begin empty.
//!
//! Limit: an overload of less than 1 % passes. A stable run is called unstable when its last burst is its largest and is
//! more than 1 % of a quarter; so a run should have some thousands of messages in a quarter.

use super::outcome::Batch;

/// The share of the offered messages of the last quarter that may be unfinished: one in this many messages.
const LEFT_BEHIND: u64 = 100;

/// Whether a run with these batches, which are of equal length, never reached a steady state. Fewer than four batches
/// say nothing: then it is not.
pub fn is_unstable(batches: &[Batch]) -> bool {
    let quarter = batches.len() / 4;
    let Some((front, last)) = batches.len().checked_sub(quarter).and_then(|at| batches.split_at_checked(at)) else { return false };
    let (Some(before), Some(end)) = (front.last(), last.last()) else { return false };
    let second_max = front.iter().skip(quarter).take(quarter).map(|batch| batch.backlog_max).max().unwrap_or(0);
    let offered: u64 = last.iter().map(|batch| batch.messages_offered).sum();
    let grown = end.backlog_end.saturating_sub(before.backlog_end);
    end.backlog_end > second_max && grown.saturating_mul(LEFT_BEHIND) > offered
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 64 batches of 1000 slots with 100 messages each, and this backlog at the end of each.
    fn run(backlog: impl Fn(u64) -> u64) -> Vec<Batch> {
        let batch = |number| Batch {
            slots: 1000,
            messages_offered: 100,
            backlog_max: backlog(number).max(backlog(number.saturating_sub(1))),
            backlog_end: backlog(number),
            ..Batch::default()
        };
        (0..64).map(batch).collect()
    }

    #[test]
    fn a_backlog_that_grows_for_the_whole_run_is_unstable() {
        assert!(is_unstable(&run(|batch| 2 * batch)));
    }

    #[test]
    fn a_collapse_in_the_last_batches_is_unstable() {
        assert!(is_unstable(&run(|batch| 10 + 50 * batch.saturating_sub(62))));
    }

    #[test]
    fn a_backlog_that_goes_up_and_down_is_not() {
        assert!(!is_unstable(&run(|batch| 40 + 30 * (batch % 2))));
        // The largest of all bursts, in the middle, and the run is over it.
        assert!(!is_unstable(&run(|batch| if batch == 40 { 500 } else { 20 })));
        // Within the noise of the second quarter, although it is the largest of the last.
        assert!(!is_unstable(&run(|batch| if batch == 63 || batch == 20 { 500 } else { 20 })));
    }

    #[test]
    fn an_overload_below_one_in_a_hundred_passes() {
        assert!(!is_unstable(&run(|batch| batch)));
    }

    #[test]
    fn too_few_batches_say_nothing() {
        assert!(!is_unstable(&[]));
        assert!(!is_unstable(&run(|batch| batch * 100).split_off(61)));
    }
}
