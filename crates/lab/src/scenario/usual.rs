//! What is usual where nothing else is said: the setting of the paper that a scheme is from.
//!
//! Called by the flags of `segstream sim` and by the bindings of Python.
//!
//! Invariant: every family of schemes has one setting; what a paper does not state is as everywhere.

use crate::registry::Scheme;
use crate::scenario::{BlackBox, Workload};
use segstream_base::{Bandwidth, Duration};
use segstream_path::LossSpec;
use segstream_schemes::transport::UsualPoint;

/// The usual setting of a scheme.
#[derive(Clone, Debug)]
pub struct Usual {
    /// Round-trip time.
    pub rtt: Duration,
    /// Bandwidth of each direction.
    pub bandwidth: Bandwidth,
    /// Bandwidth from receiver to sender; `None` for the same.
    pub bandwidth_back: Option<Bandwidth>,
    /// Packets of a segment.
    pub segment_packets: u32,
    /// The window in segments.
    pub window: u32,
    /// Processor time of a packet at the sender.
    pub service: Duration,
    /// What a packet, and each byte of it, costs either end.
    pub work: (Duration, Duration),
    /// Loss of control packets; `None` for that of data.
    pub control_loss: Option<LossSpec>,
}

impl Usual {
    /// The usual setting of `scheme`.
    pub fn of(scheme: &Scheme) -> Self {
        match scheme.usual_point {
            UsualPoint::LongPath => Self::of_scenario(),
            UsualPoint::ProcessorBound => Self::limited_by_processors(),
            UsualPoint::AtmCluster => Self::atm_cluster(),
        }
    }

    /// EC 5, and the default where no paper states a value.
    fn of_scenario() -> Self {
        let (black_box, workload) = (BlackBox::default(), Workload::default());
        Self {
            rtt: black_box.rtt,
            bandwidth: black_box.bandwidth,
            bandwidth_back: black_box.bandwidth_back,
            segment_packets: workload.segment_packets,
            window: workload.window,
            service: black_box.service,
            work: black_box.work,
            control_loss: black_box.control_loss,
        }
    }

    /// HTPNET and the TCP it is compared with (HT 6, HT 7).
    fn limited_by_processors() -> Self {
        Self {
            // So fast that the link is no limit: a packet takes less than a tenth of a microsecond.
            bandwidth: Bandwidth::from_megabits_per_second(100_000),
            segment_packets: 1,
            window: 256,
            // The slowest of HT's processes at the 12,000 packets a second it reports.
            service: Duration::from_micros(83),
            ..Self::of_scenario()
        }
    }

    /// Adaptive acknowledgment and the SSCOP it is compared with (AA Table 1). That loss concerns data alone is not
    /// stated there.
    fn atm_cluster() -> Self {
        Self {
            rtt: Duration::ZERO,
            bandwidth: Bandwidth::from_megabits_per_second(100),
            bandwidth_back: Some(Bandwidth::from_megabits_per_second(10)),
            segment_packets: 1,
            window: 400,
            work: (Duration::from_micros(70), Duration::from_nanos(50)),
            control_loss: Some(LossSpec::None),
            ..Self::of_scenario()
        }
    }
}
