//! How much processor time the programs that this one has started and awaited have used, with all that they have awaited.
//!
//! Called by `ci`. It says more of a step than the clock does: another program on the machine changes it little.

use std::time::Duration;

/// The time so far; `None` where the system does not tell it in `/proc` (Linux does).
pub(super) fn of_children() -> Option<Duration> {
    parse(&std::fs::read_to_string("/proc/self/stat").ok()?)
}

/// Reads fields 16 and 17 of `/proc/PID/stat`, cutime and cstime (proc(5)), in ticks of which Linux shows a hundred a second.
fn parse(stat: &str) -> Option<Duration> {
    // The second field is a program's name in brackets, which may have blanks and brackets in it.
    let (_, behind_name) = stat.rsplit_once(')')?;
    let mut fields = behind_name.split_whitespace().skip(13).map(str::parse::<u64>);
    let ticks = fields.next()?.ok()? + fields.next()?.ok()?;
    Some(Duration::from_millis(ticks * 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_awaited_children_are_read_whatever_the_program_is_called() {
        let stat = "42 (a) b (c) S 1 2 3 0 -1 4194304 10 20 30 40 500 600 700 800 20 0 1 0 9 9 9";
        assert_eq!(parse(stat), Some(Duration::from_secs(15)));
        assert_eq!(parse("nothing"), None);
    }
}
