//! Who stands in a figure, and over which tandem.
//!
//! Called by the studies of this folder.
//!
//! Invariant: all meet the same stations, messages and external packets; who transfers, its window and the arrivals are what
//! differs, unless a study says otherwise.
//! Source: XT Table 3, XT Figure 2, XT 3.2.

use crate::curves::Look;
use segstream_lab::figure::{Line, Marker};
use segstream_lab::tandem::{Arrivals, TandemConfig, TandemScenario, TandemScheme, Tie};
use segstream_schemes::xtp::ReceiverStrategy::{Discard, StoreAggressive, StoreConservative};
use segstream_schemes::xtp::SenderStrategy::{GoBackN, Handshake, HandshakeGoBackN, SelectiveRepeat};
use segstream_schemes::xtp::{ReceiverStrategy, SenderStrategy};

/// Who transfers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Who {
    /// XTP.
    Xtp(SenderStrategy, ReceiverStrategy),
    /// The flagship, with its contracted rate in packets a slot; `None` where the server of XTP1 sets the pace.
    Segstream(Option<f64>),
}

/// The six schemes of XT Table 3, 1.1 to 2.3.
pub(super) const SIX: [Who; 6] = [
    Who::Xtp(GoBackN, Discard),
    Who::Xtp(GoBackN, StoreConservative),
    Who::Xtp(GoBackN, StoreAggressive),
    Who::Xtp(SelectiveRepeat, Discard),
    Who::Xtp(SelectiveRepeat, StoreConservative),
    Who::Xtp(SelectiveRepeat, StoreAggressive),
];
/// Those of XT Table 4, where 1.1 and 2.1 are one.
pub(super) const FIVE: [Who; 5] = [SIX[0], SIX[1], SIX[2], SIX[4], SIX[5]];
/// Retransmission after a synchronising handshake alone, which XT Table 1 has as cases 1.1 and 1.2 and the paper leaves out.
pub(super) const HANDSHAKES: [Who; 4] = [
    Who::Xtp(Handshake, StoreConservative),
    Who::Xtp(Handshake, StoreAggressive),
    Who::Xtp(HandshakeGoBackN, StoreConservative),
    Who::Xtp(HandshakeGoBackN, StoreAggressive),
];
/// What XT leaves open at LINK1, read in another way than usual.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    /// Its name in tables, and before a curve's name.
    pub(super) name: &'static str,
    /// Which of two packets that arrive in one slot is first.
    pub(super) tie: Tie,
    /// How many packets fit: XT 3.2 says 10, which may be those that wait, or all.
    pub(super) room: u32,
}

/// The usual reading, and every other one of tie and room.
pub(super) const READINGS: [Reading; 6] = [
    Reading { name: "external first, room 13", tie: Tie::ExternalFirst, room: 13 },
    Reading { name: "user first, room 13", tie: Tie::UserFirst, room: 13 },
    Reading { name: "drawn, room 13", tie: Tie::Drawn, room: 13 },
    Reading { name: "external first, room 10", tie: Tie::ExternalFirst, room: 10 },
    Reading { name: "user first, room 10", tie: Tie::UserFirst, room: 10 },
    Reading { name: "drawn, room 10", tie: Tie::Drawn, room: 10 },
];

impl Reading {
    /// The name of a curve.
    pub(super) fn curve(self, who: Who) -> String {
        format!("{}, {}", self.name, who.name())
    }

    /// The scenario read so.
    pub(super) fn over(self, usual: &TandemScenario) -> TandemScenario {
        let mut read = usual.clone();
        (read.tandem.tie, read.tandem.link1_room) = (self.tie, self.room);
        read
    }
}

/// The flagship, unpaced.
pub(super) const SEGSTREAM: Who = Who::Segstream(None);
/// The window of XT 3.2, in packets.
pub(super) const WINDOW: u32 = 60;
/// The user throughput of XT Table 4, in messages a slot.
pub(super) const THROUGHPUT: f64 = 0.12;

impl Who {
    /// Its name in tables of points.
    pub(super) fn name(self) -> String {
        match self {
            Self::Segstream(None) => "segstream".to_owned(),
            Self::Segstream(Some(rate)) => format!("segstream {rate} packets/slot"),
            Self::Xtp(..) => format!("xtp {}", self.number()),
        }
    }

    /// Its number in XT Table 3; with a handshake `H`, or `HG` where the sender goes back, and that of the receiver.
    pub(super) fn number(self) -> &'static str {
        match self {
            Self::Xtp(GoBackN, Discard) => "1.1",
            Self::Xtp(GoBackN, StoreConservative) => "1.2",
            Self::Xtp(GoBackN, StoreAggressive) => "1.3",
            Self::Xtp(SelectiveRepeat, Discard) => "2.1",
            Self::Xtp(SelectiveRepeat, StoreConservative) => "2.2",
            Self::Xtp(SelectiveRepeat, StoreAggressive) => "2.3",
            Self::Xtp(Handshake, Discard) => "H.1",
            Self::Xtp(Handshake, StoreConservative) => "H.2",
            Self::Xtp(Handshake, StoreAggressive) => "H.3",
            Self::Xtp(HandshakeGoBackN, Discard) => "HG.1",
            Self::Xtp(HandshakeGoBackN, StoreConservative) => "HG.2",
            Self::Xtp(HandshakeGoBackN, StoreAggressive) => "HG.3",
            Self::Segstream(_) => "Segstream",
        }
    }

    /// Its name in a legend.
    pub(super) fn label(self) -> String {
        match self {
            Self::Segstream(None) => "Segstream".to_owned(),
            Self::Segstream(Some(rate)) => format!("Segstream, at most {rate} packets/slot"),
            Self::Xtp(sender, receiver) => {
                let sender = match sender {
                    GoBackN => "GBN",
                    SelectiveRepeat => "SR",
                    Handshake => "SR after a handshake",
                    HandshakeGoBackN => "GBN after a handshake",
                };
                let receiver = match receiver {
                    Discard => "discard",
                    StoreConservative => "store, conservative",
                    StoreAggressive => "store, aggressive",
                };
                format!("{} {sender}, {receiver}", self.number())
            }
        }
    }

    /// How it looks: the colour is the receiver's, the line is the sender's.
    pub(super) fn look(self) -> Look {
        let (colour, marker, line) = match self {
            Self::Xtp(GoBackN, Discard) => ("#000000", Marker::Square, Line::Dashed),
            Self::Xtp(GoBackN, StoreConservative) => ("#d55e00", Marker::Triangle, Line::Dashed),
            Self::Xtp(GoBackN, StoreAggressive) => ("#009e73", Marker::Diamond, Line::Dashed),
            Self::Xtp(SelectiveRepeat, Discard) => ("#000000", Marker::Cross, Line::Solid),
            Self::Xtp(SelectiveRepeat, StoreConservative) => ("#d55e00", Marker::Plus, Line::Solid),
            Self::Xtp(SelectiveRepeat, StoreAggressive) => ("#009e73", Marker::Hexagon, Line::Solid),
            Self::Xtp(Handshake, StoreConservative) => ("#d55e00", Marker::Star, Line::Dotted),
            Self::Xtp(Handshake, _) => ("#009e73", Marker::Star, Line::Dotted),
            Self::Xtp(HandshakeGoBackN, StoreConservative) => ("#cc79a7", Marker::Square, Line::Dotted),
            Self::Xtp(HandshakeGoBackN, _) => ("#000000", Marker::Square, Line::Dotted),
            Self::Segstream(None) => ("#0072b2", Marker::Circle, Line::Solid),
            Self::Segstream(Some(_)) => ("#56b4e9", Marker::Circle, Line::Dashed),
        };
        Look { colour, marker, line }
    }

    /// Whose halves these are.
    pub(super) const fn scheme(self) -> TandemScheme {
        match self {
            Self::Xtp(sender, receiver) => TandemScheme::xtp(sender, receiver),
            Self::Segstream(rate) => TandemScheme::Segstream { rate },
        }
    }

    /// Over the tandem of XT 3.2 with a window of `window` packets.
    pub(super) fn over(self, window: u32, arrivals: Arrivals) -> TandemScenario {
        TandemScenario { scheme: self.scheme(), window, tandem: TandemConfig { arrivals, ..TandemConfig::default() } }
    }
}

/// Bernoulli arrivals of this many messages a slot.
pub(super) const fn bernoulli(rate: f64) -> Arrivals {
    Arrivals::Bernoulli { rate }
}

/// Interrupted Bernoulli arrivals of this many messages a slot, C^2 = 10 (XT 4, Figure 5).
pub(super) const fn interrupted(rate: f64) -> Arrivals {
    Arrivals::Interrupted { rate, scv: 10.0, alpha: 1.0 }
}
