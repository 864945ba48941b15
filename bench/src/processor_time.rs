//! The clock that measurements are made with.
//!
//! Called by those that time the state machines and the wire format.
//!
//! Invariant: it never runs backwards on one thread, where the system lends its clock of processor time.

/// Nanoseconds of processor time this thread has used, so that other work on the machine is not counted; the
/// time of day where the system does not tell.
pub(crate) fn processor_time() -> f64 {
    #[cfg(target_os = "linux")]
    {
        use nix::time::{ClockId, clock_gettime};
        let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
        time.map_or(f64::NAN, |time| time.tv_sec() as f64 * 1e9 + time.tv_nsec() as f64)
    }
    #[cfg(not(target_os = "linux"))]
    {
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0.0, |since| since.as_nanos() as f64)
    }
}
