//! The ten stages of an experiment: five of the protocol, two hosts, three of the network.
//!
//! Made by `model` and `measured`, which run them.
//!
//! HT 5 has ten processes too, six at the transmitter and four at the receiver, and names four of them: Tx1, Tx2, Rx1 and
//! Rx2. Ours are those, congestion avoidance and the hosts, which HT draws, and the network in three, as HT gives it
//! three processors.
//!
//! Invariant: stages are numbered as in [`STAGE_NAMES`], wherever they run.

use super::StagesError;
use super::host::{Contents, HostIn, HostOut};
use super::network::{Between, Node};
use segstream_base::Instant;
use segstream_base::random::Seed;
use segstream_base::stage::{Stage, StageId};
use segstream_net::staged::{PacketStore, Stop};
use segstream_path::{Path, PathConfig};
use segstream_schemes::htpnet::{self, Config, Ends, Message};
use std::sync::Arc;

/// How many stages there are.
pub const STAGES: usize = 10;
/// Their names, by number.
pub const STAGE_NAMES: [&str; STAGES] =
    ["host in", "Tx1", "Tx2", "PTIF", "Rx1", "Rx2", "network at Tx", "network", "network at Rx", "host out"];

pub(super) const HOST_IN: StageId = StageId(0);
pub(super) const TX1: StageId = StageId(1);
pub(super) const TX2: StageId = StageId(2);
pub(super) const PTIF: StageId = StageId(3);
pub(super) const RX1: StageId = StageId(4);
pub(super) const RX2: StageId = StageId(5);
pub(super) const NODE_TX: StageId = StageId(6);
pub(super) const NETWORK: StageId = StageId(7);
pub(super) const NODE_RX: StageId = StageId(8);
pub(super) const HOST_OUT: StageId = StageId(9);

/// The way of the data, each of the other processes behind those that tell it most.
pub(super) const FLOW: [StageId; STAGES] = [HOST_IN, TX1, NODE_TX, NETWORK, NODE_RX, RX1, HOST_OUT, RX2, PTIF, TX2];

/// Slots beyond those of the sending host, for packets that wait for the receiving one.
const SLOTS_RECEIVING: u32 = 1024;
/// Packets that wait at Tx1 beyond its window.
const AHEAD: u32 = 64;

/// One of the stages.
pub(super) enum Process {
    Protocol(Box<dyn Stage<Message = Message> + Send>),
    HostIn(HostIn),
    Node(Node),
    Between(Box<Between>),
    HostOut(HostOut),
}

/// What the stages of an experiment are made with, wherever they run.
pub(super) struct Assembly<'a> {
    pub(super) config: &'a Config,
    pub(super) packets: u32,
    /// Packets before the steady state.
    pub(super) warm: u32,
    pub(super) forward: PathConfig,
    pub(super) back: PathConfig,
    pub(super) seed: Seed,
}

impl Assembly<'_> {
    /// The stages, by number; the last sets `stop` when it has everything.
    pub(super) fn stages(&self, stop: &Stop) -> Result<Vec<Process>, StagesError> {
        let config = self.config;
        let ends = Ends { host_in: HOST_IN, network_forward: NODE_TX, network_back: NODE_RX, host_out: HOST_OUT };
        let pipeline = htpnet::pipeline(config, Instant::ZERO, TX1, ends)?;
        let payload_bytes = config.payload_bytes();
        let ahead_max = config.window + AHEAD;
        let store = Arc::new(PacketStore::new(ahead_max + SLOTS_RECEIVING, payload_bytes));
        let contents = Arc::new(Contents::new(payload_bytes));
        let forward = Path::new(&self.forward, self.seed, "forward")?;
        let back = Path::new(&self.back, self.seed, "back")?;
        let [.., name_tx, _, name_rx, _] = STAGE_NAMES;
        let mut stages = vec![Process::HostIn(HostIn::new(Arc::clone(&store), Arc::clone(&contents), TX1, self.packets, ahead_max))];
        stages.extend(pipeline.stages.into_iter().map(Process::Protocol));
        stages.push(Process::Node(Node { name: name_tx, forward: NETWORK, back: TX2, enters: Some(Arc::clone(&store)), data: 0 }));
        stages.push(Process::Between(Box::new(Between::new(Arc::clone(&store), (forward, NODE_RX), (back, NODE_TX)))));
        stages.push(Process::Node(Node { name: name_rx, forward: RX1, back: NETWORK, enters: None, data: 0 }));
        stages.push(Process::HostOut(HostOut::new(store, contents, RX1, self.packets, self.warm, stop.clone())));
        Ok(stages)
    }
}

/// What the hosts and the network of an experiment that has run tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) delivered: u32,
    pub(super) wrong: u32,
    pub(super) span_ns: u64,
    pub(super) data_sent: u64,
    pub(super) data_lost: u64,
}

/// Asks the stages what they have seen.
pub(super) fn told(stages: &[Process]) -> Told {
    let mut told = Told::default();
    for stage in stages {
        match stage {
            Process::HostOut(host) => {
                told.delivered = host.delivered();
                told.wrong = host.wrong();
                told.span_ns = host.span().as_nanos();
            }
            Process::Node(node) => told.data_sent += node.data,
            Process::Between(network) => told.data_lost += network.data_lost(),
            Process::HostIn(_) | Process::Protocol(_) => {}
        }
    }
    told
}

impl Stage for Process {
    type Message = Message;

    fn name(&self) -> &'static str {
        let [host_in, .., network, _, host_out] = STAGE_NAMES;
        match self {
            Self::Protocol(stage) => stage.name(),
            Self::HostIn(_) => host_in,
            Self::Node(node) => node.name,
            Self::Between(_) => network,
            Self::HostOut(_) => host_out,
        }
    }

    #[inline]
    fn handle(&mut self, now: Instant, message: Message, out: &mut Vec<(StageId, Message)>) {
        match self {
            Self::Protocol(stage) => stage.handle(now, message, out),
            Self::HostIn(host) => host.handle(&message),
            Self::Node(node) => node.handle(message, out),
            Self::Between(network) => network.handle(now, message, out),
            Self::HostOut(host) => host.handle(now, &message, out),
        }
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Protocol(stage) => stage.poll_timeout(),
            Self::HostIn(host) => host.poll_timeout(),
            Self::Between(network) => network.poll_timeout(),
            Self::Node(_) | Self::HostOut(_) => None,
        }
    }

    #[inline]
    fn handle_timeout(&mut self, now: Instant, out: &mut Vec<(StageId, Message)>) {
        match self {
            Self::Protocol(stage) => stage.handle_timeout(now, out),
            Self::HostIn(host) => host.handle_timeout(now, out),
            Self::Between(network) => network.handle_timeout(now, out),
            Self::Node(_) | Self::HostOut(_) => {}
        }
    }
}
