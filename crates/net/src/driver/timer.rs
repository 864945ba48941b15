//! A timer for tasks that is more precise than the runtime's, which has a resolution of a millisecond.
//!
//! Called by the asynchronous driver. On Linux it is a timer of the kernel (timerfd_create(2)), in
//! nanoseconds and without slack; elsewhere the runtime's.
//!
//! Invariant: it never fires early. It may fire once more for an earlier time that was replaced.

use segstream_base::Instant;
use std::io;
use std::time::Duration;

/// Fires at one instant at a time.
#[derive(Debug)]
pub(super) struct Timer {
    armed_for: Option<Instant>,
    system: SystemTimer,
}

impl Timer {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { armed_for: None, system: SystemTimer::new()? })
    }

    /// Arms the timer: [`Timer::expired`] ends at `at` or before; `left` is the time until then.
    pub(super) fn arm(&mut self, at: Instant, left: Duration) -> io::Result<()> {
        // Why: most deadlines move later with every datagram. One spurious wake-up costs less than setting the timer each time.
        if self.armed_for.is_some_and(|armed| armed <= at) {
            return Ok(());
        }
        self.armed_for = Some(at);
        self.system.set(left.max(Duration::from_nanos(1)))
    }

    /// Ends when the timer fires; never while it is not armed. Cancel-safe.
    pub(super) async fn expired(&mut self) -> io::Result<()> {
        if self.armed_for.is_none() {
            return std::future::pending().await;
        }
        self.system.expired().await?;
        self.armed_for = None;
        Ok(())
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
#[derive(Debug)]
struct SystemTimer {
    descriptor: tokio::io::unix::AsyncFd<std::os::fd::OwnedFd>,
}

#[cfg(any(target_os = "linux", target_os = "android"))]
impl SystemTimer {
    fn new() -> io::Result<Self> {
        use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        Ok(Self { descriptor: super::tokio::watch(timer, tokio::io::Interest::READABLE)? })
    }

    fn set(&mut self, left: Duration) -> io::Result<()> {
        use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec, timerfd_settime};
        let it_value = Timespec {
            // Limit: 68 years.
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX).min(i64::from(i32::MAX)),
            tv_nsec: left.subsec_nanos().into(),
        };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        timerfd_settime(&self.descriptor, TimerfdTimerFlags::empty(), &Itimerspec { it_interval, it_value })?;
        Ok(())
    }

    async fn expired(&mut self) -> io::Result<()> {
        loop {
            let mut ready = self.descriptor.readable().await?;
            // Setting the timer discards an unread expiry; then this read would block.
            if let Ok(read) = ready.try_io(|timer| Ok(rustix::io::read(timer, &mut [0; 8])?)) {
                return read.map(|_| ());
            }
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[derive(Debug)]
struct SystemTimer {
    sleep: std::pin::Pin<Box<tokio::time::Sleep>>,
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
impl SystemTimer {
    fn new() -> io::Result<Self> {
        Ok(Self { sleep: Box::pin(tokio::time::sleep(Duration::ZERO)) })
    }

    fn set(&mut self, left: Duration) -> io::Result<()> {
        let now = tokio::time::Instant::now();
        let end = now.checked_add(left).unwrap_or(now + Duration::from_secs(3_600));
        self.sleep.as_mut().reset(end);
        Ok(())
    }

    async fn expired(&mut self) -> io::Result<()> {
        self.sleep.as_mut().await;
        Ok(())
    }
}
