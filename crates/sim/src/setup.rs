//! The configuration of a run besides the halves and their source.
//!
//! Called by whoever builds a [`crate::Simulation`].
//!
//! Invariant: [`Setup::default`] is two perfect paths, control in band, no check and no limit.

use crate::end_system::EndSystem;
use crate::processor::SenderCost;
use segstream_base::Instant;
use segstream_path::{LossSpec, PathConfig};

/// How control travels: every packet that carries no units ([`segstream_base::halves::Packet::is_data`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Control {
    /// Like data: through loss, queue and bottleneck.
    #[default]
    InBand,
    /// Apart from data, in both directions: never lost, never queued, without bandwidth (EC, FC: ideal
    /// feedback). A control packet that leaves at `now` arrives at `max(now, free_at) + delay`, where
    /// `free_at` is when the bottleneck has sent the data in front of it; so it comes right behind that data,
    /// and after it at equal times. Jitter moves it along with that data; reordered data it overtakes.
    OutOfBand,
}

/// The paths between the halves, and how to run.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Setup {
    /// From sender to receiver.
    pub forward: PathConfig,
    /// From receiver to sender.
    pub back: PathConfig,
    /// How control travels. Default: in band.
    pub control: Control,
    /// Which packets in band are lost that carry no units, in each direction by draws of its own. Then the losses of
    /// [`Setup::forward`] and [`Setup::back`] concern data alone, and each of the processes counts its own packets.
    /// Default: control is lost as data is.
    pub control_loss: Option<LossSpec>,
    /// What the sending half's work costs on its processor (HT). Default: its work takes no time.
    pub sender_cost: Option<SenderCost>,
    /// What the work of both ends costs on a processor each; then [`Setup::sender_cost`] is not looked at. Default: work
    /// takes no time.
    pub end_systems: Option<EndSystem>,
    /// Encode and decode every packet and deliver the decoded one. The results are the same; a packet that
    /// does not survive ends the run with [`crate::End::BadEncoding`]. Default: no.
    pub check: bool,
    /// Nothing happens after this instant. Default: no limit.
    pub until: Option<Instant>,
}
