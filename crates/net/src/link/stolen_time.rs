//! How long the host of a virtual machine kept its processors from running although they had work ("steal").
//!
//! Called by the emulation when it begins and when it reports. A relay that is late on a machine whose host took its processor is late
//! for a reason that no priority in the machine can change.
//!
//! Source: the eighth number of the line `cpu` in `/proc/stat` (proc(5)): all processors together, in hundredths of a second.
//!
//! Invariant: a time is returned only if the system reports one. Limit: Linux.

use segstream_base::Duration;

/// What one count stands for. Why no question to the system: `USER_HZ` is 100 wherever Linux runs Rust.
const TICK: Duration = Duration::from_millis(10);

/// The time since the machine started; `None` if the system does not report it.
pub(super) fn stolen() -> Option<Duration> {
    parse(&std::fs::read_to_string("/proc/stat").ok()?)
}

fn parse(stat: &str) -> Option<Duration> {
    let sum = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: u64 = sum.split_whitespace().nth(7)?.parse().ok()?;
    Some(TICK * ticks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_eighth_number_of_all_processors_is_the_time_that_the_host_took() {
        let stat = "cpu  1847303 798281 252534 335174 9516 0 4398 15760 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n";
        assert_eq!(parse(stat), Some(Duration::from_millis(157_600)));
        assert_eq!(parse("cpu  1 2 3 4\n"), None);
        assert_eq!(parse("intr 5\n"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn linux_reports_it_and_it_never_falls() {
        let before = stolen().unwrap();
        assert!(stolen().unwrap() >= before);
    }
}
