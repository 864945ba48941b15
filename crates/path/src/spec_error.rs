//! Errors in the description of a path, as sentences that name the value.
//!
//! Called by everything here that parses text or checks a configuration.
//!
//! Invariant: every error carries the value that was refused and says what is accepted instead.

use segstream_base::{Bytes, Duration};

/// Why a description of a path was refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// The text is not a probability.
    #[error("the {what} \"{text}\" is not a probability; write a number from 0 to 1 such as 1e-3, or a percentage such as 0.1%")]
    NotAProbability {
        /// What the probability is of.
        what: &'static str,
        /// The text.
        text: String,
    },
    /// The text is not a span of time with its unit.
    #[error("the {what} \"{text}\" is not a duration; write a number with a suffix (ns, us, ms or s), such as 180ms")]
    NotASpan {
        /// What the span is of.
        what: &'static str,
        /// The text.
        text: String,
    },
    /// The text is not a number of the kind that is wanted.
    #[error("the {what} \"{text}\" is not a number that fits; write one such as 5")]
    NotANumber {
        /// What the number is of.
        what: &'static str,
        /// The text.
        text: String,
    },
    /// The text is not a bandwidth with its measure.
    #[error("the {what} \"{text}\" is not a bandwidth; write a number with a suffix (bit, kbit, mbit or gbit), such as 10mbit")]
    NotABandwidth {
        /// What the bandwidth is of.
        what: &'static str,
        /// The text.
        text: String,
    },
    /// The text is not a size in bytes.
    #[error(
        "the {what} \"{text}\" is not a size; write a number of bytes, or a number with a suffix ({units}), such as 64KiB",
        units = Bytes::UNITS
    )]
    NotASize {
        /// What the size is of.
        what: &'static str,
        /// The text.
        text: String,
    },
    /// No loss process has this name.
    #[error(
        "\"{0}\" is not a loss process; write none, a probability such as 1e-3 or 0.1%, random:1e-3, \
                 bursty:good=1620ms,bad=180ms,loss=1e-3, gilbert:rate=1%,burst=4, or list:5,17,18"
    )]
    UnknownLoss(String),
    /// No queue management has this name.
    #[error(
        "\"{0}\" is not an algorithm of queue management; write droptail, codel, pie, red, fq-codel or dualpi2, or one with settings such as \
                 codel:target=5ms,interval=100ms"
    )]
    UnknownAqm(String),
    /// CoDel's target is zero or its interval shorter than the target.
    #[error(
        "CoDel with a target of {target} and an interval of {interval} would never come to rest; give a target above 0 and an interval \
                 that is not shorter"
    )]
    AqmNeverRests {
        /// The target.
        target: Duration,
        /// The interval.
        interval: Duration,
    },
    /// A setting of a queue management is out of its range.
    #[error("the queue management \"{aqm}\" is not possible; give {what}")]
    AqmImpossible {
        /// What is possible.
        what: &'static str,
        /// The management.
        aqm: String,
    },
    /// A path that answers at once cannot have a queue that decides later.
    #[error(
        "the queue \"{0}\" decides when the link takes a packet, which is later than this path must answer; choose droptail, codel or pie \
                 here"
    )]
    QueueDecidesLate(String),
    /// Queue management needs a bandwidth to wait for.
    #[error("{0} is asked for on a path of unlimited bandwidth, where nothing waits; give a bandwidth or a trace of it")]
    NothingToManage(&'static str),
    /// A policer lets nothing pass.
    #[error("the policer \"{0}\" lets nothing pass; give a rate and a burst above 0, such as 10mbit,64KiB")]
    PolicerPassesNothing(String),
    /// A trace is not written as one.
    #[error(
        "\"{0}\" is not a trace of bandwidths; write instants and bandwidths such as 0s:10mbit,5s:5mbit, \
                 with repeat=20s at the end to start again, or none"
    )]
    NotATrace(String),
    /// A trace has a period but no bandwidth.
    #[error("the trace has no bandwidth in it; write instants and bandwidths such as 0s:10mbit,5s:5mbit")]
    EmptyTrace,
    /// A trace says nothing of the time before this.
    #[error("the trace begins at {0}; it must say what the bandwidth is from 0s on")]
    TraceStartsLate(Duration),
    /// A piece of a trace does not begin after the one before it.
    #[error("the trace has {0} behind an instant that is not earlier; write its instants in order, each once")]
    TraceOutOfOrder(Duration),
    /// A trace repeats before its last piece begins.
    #[error("the trace repeats after {period} but its last bandwidth begins at {last}; choose a period beyond that")]
    TraceRepeatsEarly {
        /// The period.
        period: Duration,
        /// Where the last piece begins.
        last: Duration,
    },
    /// A trace ends with nothing that ever passes.
    #[error("the trace lets nothing pass at last; end it with a bandwidth above 0, or repeat one that has such a bandwidth")]
    TraceEndsClosed,
    /// The bandwidth changes in two ways at once.
    #[error("the bandwidth follows a trace of bandwidths and a recorded one at once; give one of them")]
    TwoTraces,
    /// A line of a recorded trace is no time.
    #[error("line {number} of the trace is \"{text}\", which is not a time in whole milliseconds; write one such as 12 on each line")]
    NotAnOpportunity {
        /// The line, counted from 1.
        number: u64,
        /// What stands in it.
        text: String,
    },
    /// The times of a recorded trace go backward.
    #[error("line {number} of the trace is {millis}, which is before the {before} above it; write the times in order")]
    OpportunityOutOfOrder {
        /// The line, counted from 1.
        number: u64,
        /// Its time.
        millis: u32,
        /// The time above.
        before: u32,
    },
    /// A recorded trace is longer than can be kept.
    #[error("the trace is too long: line {number} is beyond {most} delivery opportunities; shorten it, for it starts again at its end")]
    TooManyOpportunities {
        /// The line, counted from 1.
        number: u64,
        /// How many can be kept.
        most: usize,
    },
    /// A recorded trace lets nothing pass.
    #[error("the trace has no delivery opportunity after 0 ms; write on each line a time in milliseconds at which 1500 bytes may leave")]
    NoOpportunity,
    /// A jitter is not written as one.
    #[error(
        "\"{0}\" is not a jitter; write none, the largest additional delay such as 10ms, or wifi with the mean additional delay such as wifi:12ms"
    )]
    NotAJitter(String),
    /// The mean of the wireless hop is out of its range.
    #[error("a wifi jitter with a mean of {0} is not possible; give a mean from 1us to 10s, such as wifi:12ms")]
    WifiMean(Duration),
    /// Steps of the delay are not written as such.
    #[error("\"{0}\" is not a list of delays; write instants and delays such as 0s:20ms,10s:60ms, or none")]
    NotDelaySteps(String),
    /// Steps of the delay say nothing of the time before this.
    #[error("the list of delays begins at {0}; it must say what the delay is from 0s on")]
    DelayStartsLate(Duration),
    /// A step of the delay does not begin after the one before it.
    #[error("the list of delays has {0} behind an instant that is not earlier; write its instants in order, each once")]
    DelayOutOfOrder(Duration),
    /// A reordering is not written as one.
    #[error(
        "\"{0}\" is not a reordering; write none, or the share of packets that are late and by how much, such as 1%:distance=5 or 1%:delay=10ms"
    )]
    NotAReordering(String),
    /// A loss process or reordering has no such key, or the key has no value.
    #[error("{of} has no setting \"{text}\"; it takes {keys}, each as key=value")]
    UnknownKey {
        /// The loss process or impairment.
        of: &'static str,
        /// The text that was found.
        text: String,
        /// The keys it has.
        keys: &'static str,
    },
    /// A key is given twice.
    #[error("{of} is given {key} twice; give it once")]
    RepeatedKey {
        /// The loss process or impairment.
        of: &'static str,
        /// The key.
        key: &'static str,
    },
    /// A key that has no default is missing.
    #[error("{of} lacks {key}; add it as {key}=value")]
    MissingKey {
        /// The loss process or impairment.
        of: &'static str,
        /// The key.
        key: &'static str,
    },
    /// A list of lost packets names none.
    #[error("the list names no packet; write the packets to lose, counted from 0, such as list:5,17,18, or write none")]
    EmptyList,
    /// Every packet would be lost.
    #[error("the loss \"{0}\" would lose every packet; choose a mean loss below 1")]
    CertainLoss(String),
    /// A dwell is too short to be simulated.
    #[error("the {state} state lasts {dwell}; it must last at least 1us")]
    DwellTooShort {
        /// `good` or `bad`.
        state: &'static str,
        /// The mean dwell asked for.
        dwell: Duration,
    },
    /// A mean burst is shorter than one packet, or not finite.
    #[error("a burst of {0} packets is not possible; the mean burst is a number of at least 1")]
    BurstTooShort(f64),
    /// Bursts this short cannot give this loss.
    #[error(
        "a mean loss of {rate} cannot come from bursts of {burst} packets, which would have to follow one another without a gap; \
                 lower the rate or lengthen the burst"
    )]
    TooManyBursts {
        /// The mean loss asked for.
        rate: f64,
        /// The mean burst asked for, in packets.
        burst: f64,
    },
    /// Nothing would ever pass.
    #[error("a bandwidth of 0 bit/s lets nothing pass; give a bandwidth above 0 or none for an unlimited one")]
    ZeroBandwidth,
    /// A distance or an extra delay of zero reorders nothing.
    #[error("the reordering \"{0}\" moves no packet; give a distance of at least 1 or a delay above 0")]
    ReorderByNothing(String),
    /// Packets would have to be overtaken more often than there are packets to overtake them.
    #[error(
        "a share of {share} of the packets cannot each be overtaken by {distance} others that are not held back themselves; \
                 the share times (distance + 1) must not exceed 1"
    )]
    ReorderTooOften {
        /// The share of packets to hold back.
        share: f64,
        /// By how many packets each is to be overtaken.
        distance: u32,
    },
}
