//! What both halves of SSCOP must agree on: the parameters of Q.2110 7.6 and 7.7, and the size of a PDU.
//!
//! Called by the code that constructs the halves.
//!
//! Invariant: a configuration that passes [`Config::check`] makes halves that can transfer.

use super::packet::{Feedback, Forward};
use segstream_base::{Bandwidth, Bytes, Duration};
use segstream_blocks::{RateSpec, RateSpecError};

/// What both halves must agree on.
///
/// The default has the values in brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The longest SD, trailer included, in bytes (1024). Its payload is padded to a multiple of four.
    pub packet_bytes: u32,
    /// The credit: the receiver takes SDs up to this many behind the first that is missing (400).
    pub window: u32,
    /// The rate at which packets leave: that of the line (100 Mbit/s).
    pub rate: RateSpec,
    /// The round trip of the path (0). Only the check of Timer_NO-RESPONSE uses it.
    pub rtt: Duration,
    /// Timer_POLL: from one POLL to the next while data is in flight or waits (40 ms, as AA 4).
    pub timer_poll: Duration,
    /// MaxPD: how many SDs leave before a POLL follows whatever the timer says; `None` (the default) has no such limit.
    pub max_pd: Option<u32>,
    /// MaxSTAT: the list elements of one STAT (67). A longer list is cut, as is one that would exceed `packet_bytes`.
    pub max_stat: u32,
    /// MaxCC: how often a BGN leaves before the attempt counts as failed (4).
    pub max_cc: u32,
    /// Timer_CC: from one BGN, or END, to the next while there is no answer (1 s).
    pub timer_cc: Duration,
    /// Timer_KEEP-ALIVE: from one POLL to the next when nothing is in flight and none was answered yet (2 s).
    pub timer_keep_alive: Duration,
    /// Timer_NO-RESPONSE: how long polls may go unanswered before the connection is set up anew (7 s).
    pub timer_no_response: Duration,
    /// Timer_IDLE: from the answer of a POLL to the next POLL when nothing is in flight (15 s).
    pub timer_idle: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            packet_bytes: 1024,
            window: 400,
            rate: RateSpec::smooth(Bandwidth::from_megabits_per_second(100)),
            rtt: Duration::ZERO,
            timer_poll: Duration::from_millis(40),
            max_pd: None,
            max_stat: 67,
            max_cc: 4,
            timer_cc: Duration::from_secs(1),
            timer_keep_alive: Duration::from_secs(2),
            timer_no_response: Duration::from_secs(7),
            timer_idle: Duration::from_secs(15),
        }
    }
}

/// Why a configuration cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// An SD has no room for payload, a STAT none for a list, or they fit no datagram.
    #[error("a packet of {0} bytes is not possible; choose {min} to {max} bytes", min = Config::PACKET_BYTES_MIN, max = u16::MAX)]
    PacketBytes(u32),
    /// There is no credit, or more than 24-bit numbers can tell apart.
    #[error("a window of {0} packets is not possible; choose 1 to {max} packets", max = Config::WINDOW_MAX)]
    Window(u32),
    /// POLLs without end.
    #[error("a poll after every {0} packets is not possible; choose 1 or more, or none for no such limit")]
    MaxPd(u32),
    /// A list that is cut there can name no gap.
    #[error("a status of {0} list elements names no gap; choose {min} or more", min = Config::MAX_STAT_MIN)]
    MaxStat(u32),
    /// A connection would never be asked for.
    #[error("a connection that is asked for {0} times is never set up; choose 1 or more")]
    MaxCc(u32),
    /// A timer of 0 would ring without end.
    #[error("{0} is 0, so it would ring without end; give it a length")]
    TimerZero(&'static str),
    /// The peer would count as dead before it could answer.
    #[error("Timer_NO-RESPONSE of {given} counts the peer as dead before it can answer; give it more than {needed}")]
    NoResponse {
        /// What was given.
        given: Duration,
        /// The longer of Timer_POLL and Timer_KEEP-ALIVE, and a round trip.
        needed: Duration,
    },
    /// The rate cannot carry packets.
    #[error(transparent)]
    Rate(#[from] RateSpecError),
}

impl Config {
    /// The longest window: what lies behind a number and what lies ahead of it must differ in 24 bits.
    pub const WINDOW_MAX: u32 = (1 << 22) - 1;
    /// The shortest list: a gap and the start of the next.
    pub const MAX_STAT_MIN: u32 = 3;
    /// The shortest packet: a STAT with the shortest list.
    pub const PACKET_BYTES_MIN: u32 = Feedback::STAT_BYTES + 4 * Self::MAX_STAT_MIN;

    /// Whether halves can be made of it.
    ///
    /// # Errors
    /// The first value that is out of range.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.packet_bytes < Self::PACKET_BYTES_MIN || self.packet_bytes > u32::from(u16::MAX) {
            return Err(ConfigError::PacketBytes(self.packet_bytes));
        }
        if self.window == 0 || self.window > Self::WINDOW_MAX {
            return Err(ConfigError::Window(self.window));
        }
        if let Some(max_pd) = self.max_pd.filter(|max_pd| *max_pd == 0) {
            return Err(ConfigError::MaxPd(max_pd));
        }
        if self.max_stat < Self::MAX_STAT_MIN {
            return Err(ConfigError::MaxStat(self.max_stat));
        }
        if self.max_cc == 0 {
            return Err(ConfigError::MaxCc(self.max_cc));
        }
        self.check_timers()?;
        Ok(self.rate.check(Bytes::new(u64::from(self.packet_bytes)))?)
    }

    fn check_timers(&self) -> Result<(), ConfigError> {
        let timers = [
            ("Timer_POLL", self.timer_poll),
            ("Timer_CC", self.timer_cc),
            ("Timer_KEEP-ALIVE", self.timer_keep_alive),
            ("Timer_NO-RESPONSE", self.timer_no_response),
            ("Timer_IDLE", self.timer_idle),
        ];
        if let Some((name, _)) = timers.into_iter().find(|timer| timer.1.is_zero()) {
            return Err(ConfigError::TimerZero(name));
        }
        let needed = self.timer_poll.max(self.timer_keep_alive) + self.rtt;
        if self.timer_no_response <= needed {
            return Err(ConfigError::NoResponse { given: self.timer_no_response, needed });
        }
        Ok(())
    }

    /// The payload of the longest SD in bytes.
    pub fn payload_bytes(&self) -> u32 {
        (self.packet_bytes & !3).saturating_sub(Forward::OVERHEAD_BYTES)
    }

    /// The longest list of a STAT. It is odd: a list is cut behind the start of a gap, and continues with the same gap.
    pub(super) fn list_max(&self) -> usize {
        let fits = self.packet_bytes.saturating_sub(Feedback::STAT_BYTES) / 4;
        let most = self.max_stat.min(fits).max(Self::MAX_STAT_MIN);
        (most - u32::from(most.is_multiple_of(2))) as usize
    }
}
