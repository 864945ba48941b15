//! An application that limits its stream, and pauses.
//!
//! Called by [`super::trial`] and by the matrix of rates, on a thread of its own.
//!
//! Invariant: what was not due is never written; what was due while the pipe was full is written when there is room.

use std::io::Write as _;
use std::process::ChildStdin;
use std::thread;
use std::time::{Duration, Instant};

/// How far apart it looks what is due.
const STEP: Duration = Duration::from_millis(2);

/// What an application has, by seconds on the clock of the trial.
#[derive(Clone, Debug)]
pub(crate) struct Application {
    /// Bit/s while it does not pause.
    pub(crate) bps: f64,
    /// From and to, in order.
    pub(crate) pauses: Vec<(f64, f64)>,
}

impl Application {
    /// Bytes it has had between two moments.
    fn due(&self, from: f64, to: f64) -> f64 {
        let paused = |(begin, end): &(f64, f64)| (end.min(to) - begin.max(from)).max(0.0);
        self.bps / 8.0 * (to - from - self.pauses.iter().map(paused).sum::<f64>()).max(0.0)
    }

    /// Writes what is due from now until `end`, then closes the pipe.
    pub(crate) fn feed(&self, mut pipe: ChildStdin, zero: Instant, end: f64) {
        let now = || zero.elapsed().as_secs_f64();
        let (begun, mut written) = (now(), 0);
        let zeros = vec![0; 64 << 10];
        while now() < end {
            let due = self.due(begun, now()) as usize;
            while written < due {
                let length = (due - written).min(zeros.len());
                if pipe.write_all(&zeros[..length]).is_err() {
                    return;
                }
                written += length;
            }
            thread::sleep(STEP);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_due_in_a_pause() {
        let application = Application { bps: 8e3, pauses: vec![(2.0, 4.0), (6.0, 6.5)] };
        let due = [(0.0, 1.0), (1.0, 3.0), (2.5, 3.5), (0.0, 10.0)].map(|(from, to)| application.due(from, to));
        assert_eq!(due, [1e3, 1e3, 0.0, 7.5e3]);
    }
}
