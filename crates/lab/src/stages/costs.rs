//! What each stage costs a packet, and which calls of it are charged.
//!
//! Made by studies and by [`super::measure`]; read by the model.
//!
//! Costs are of a data packet. A call is charged for the data packets it is about: Tx2 and Rx2, which speak of whole
//! exchanges, for as many as the exchange has. What control costs is in these, so control by itself is free.
//!
//! Invariant: a data packet that is sent once is charged once at every stage.

use super::process::{HOST_IN, HOST_OUT, NETWORK, NODE_RX, NODE_TX, PTIF, RX1, RX2, STAGES, TX1, TX2};
use segstream_base::Duration;
use segstream_base::stage::StageId;
use segstream_schemes::htpnet::{Forward, Message};
use segstream_sim::stages::Work;

/// What each stage costs a data packet, by the number of the stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageCosts(pub [Duration; STAGES]);

impl StageCosts {
    /// The magnitudes of HT's computers. HT gives 2,400 packets a second on one and 12,000 on eight: 417 us a packet,
    /// 83 us for the slowest process. The division is ours: Tx1 and Rx1 80 us, Tx2 and Rx2 55, hosts 25 each,
    /// the network 3 times 32; 416 us in all. HT has no congestion avoidance in this experiment.
    pub fn paper() -> Self {
        let mut costs = [Duration::ZERO; STAGES];
        let micros = [
            (HOST_IN, 25),
            (TX1, 80),
            (TX2, 55),
            (NODE_TX, 32),
            (NETWORK, 32),
            (NODE_RX, 32),
            (RX1, 80),
            (RX2, 55),
            (PTIF, 0),
            (HOST_OUT, 25),
        ];
        for (stage, micros) in micros {
            costs[stage.0] = Duration::from_micros(micros);
        }
        Self(costs)
    }

    /// All stages together.
    pub fn sum(&self) -> Duration {
        self.0.iter().fold(Duration::ZERO, |sum, cost| sum + *cost)
    }
}

/// Tells how many data packets a call is about.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Charge {
    /// Data packets that Rx2 has been told of.
    reported: u64,
}

impl Charge {
    /// Data packets that `work` of `stage` is about and no call before was.
    pub(super) fn packets(&mut self, stage: StageId, work: Work<'_, Message>) -> u64 {
        match (stage, work) {
            (HOST_IN | TX1, Work::Timer)
            | (NODE_TX | NETWORK | NODE_RX | RX1, Work::Message(Message::Forward { packet: Forward::Data(_), .. }))
            | (HOST_OUT, Work::Message(Message::Deliver { .. })) => 1,
            (TX2, Work::Message(Message::Sent(log))) => log.packets.len() as u64,
            (RX2, Work::Message(Message::Status(status))) => {
                let received = status.next + u64::from(status.bitmap.count_ones());
                let new = received.saturating_sub(self.reported);
                self.reported += new;
                new
            }
            _ => 0,
        }
    }
}
