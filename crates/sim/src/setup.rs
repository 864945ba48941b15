//! What a run is made of besides the halves and their source.
//!
//! Called by whoever builds a [`crate::Simulation`].
//!
//! Invariant: [`Setup::default`] is two perfect paths, control in band, no check and no limit.

use segstream_base::Instant;
use segstream_path::PathConfig;

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
    /// Encode and decode every packet and deliver the decoded one. The results are the same; a packet that
    /// does not survive ends the run with [`crate::End::BadEncoding`]. Default: no.
    pub check: bool,
    /// Nothing happens after this instant. Default: no limit.
    pub until: Option<Instant>,
}
