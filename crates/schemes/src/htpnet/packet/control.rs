//! The five packets of set-up and release: CR, CC, RJ, DR, DC (HT 3.2).
//!
//! Called by the codec of the packets and by the connection machine, which is the same on both sides; so are the packets.
//! HT names them and what is negotiated, and gives no fields: these are ours.
//!
//! Invariant: a reason that is not known is refused, as is any other value without a meaning.

use super::{CC, CR, DC, DR, Pairs, RJ};
use crate::htpnet::Class;
use segstream_base::codec::{DecodeError, DecodeErrorKind, Reader, Writer};

/// What is negotiated (HT 3.2): in a CR what is offered, in a CC what holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The class: what both sides have.
    pub class: Class,
    /// The gap between packets in microseconds, 0 for none: the larger one.
    pub rate: u16,
    /// Buffers of the receiver in packets: the smaller number.
    pub credit: u16,
    /// Pairs of RANGE: the smaller number.
    pub pairs: Pairs,
}

/// Why a connection is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// See the message.
    #[error("the connection identifier is in use with other terms; choose another one, or release the connection first")]
    InUse,
    /// See the message.
    #[error("the receiver insists on control functions that the offered class does not have; offer a higher class")]
    Class,
    /// See the message.
    #[error("flow control is asked for but one side has no buffers; give it some, or choose a class without flow control")]
    NoBuffers,
    /// See the message. Never on a wire.
    #[error("the peer does not answer; check that it listens and that packets of both directions pass")]
    Silent,
}

impl Reason {
    const fn number(self) -> u8 {
        match self {
            Self::InUse => 1,
            Self::Class => 2,
            Self::NoBuffers => 3,
            Self::Silent => 4,
        }
    }
}

/// Which step of the release a DC is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The answer to a DR.
    Answer,
    /// The answer to that, after which the peer forgets the connection.
    Last,
}

/// What a DR says: everything was sent, and how much that was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// LSEQ: the largest number sent; 65535 for none.
    pub lseq: u16,
    /// How many segments there were.
    pub segments: u32,
}

/// A packet of set-up or release; either side may send any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// CR: asks for a connection.
    Request {
        /// CI.
        connection: u8,
        /// What is offered.
        terms: Terms,
    },
    /// CC: grants it.
    Confirm {
        /// CI.
        connection: u8,
        /// What holds.
        terms: Terms,
    },
    /// RJ: refuses it.
    Reject {
        /// CI.
        connection: u8,
        /// Why.
        reason: Reason,
    },
    /// DR: asks for the release.
    Release {
        /// CI.
        connection: u8,
        /// How much was sent.
        release: Release,
    },
    /// DC: confirms it.
    Released {
        /// CI.
        connection: u8,
        /// Which of the two.
        step: Step,
    },
}

impl Control {
    /// CI.
    pub const fn connection(&self) -> u8 {
        match self {
            Self::Request { connection, .. }
            | Self::Confirm { connection, .. }
            | Self::Reject { connection, .. }
            | Self::Release { connection, .. }
            | Self::Released { connection, .. } => *connection,
        }
    }

    /// Its length.
    pub const fn bytes(&self) -> usize {
        match self {
            Self::Request { .. } | Self::Confirm { .. } | Self::Release { .. } => 10,
            Self::Reject { .. } | Self::Released { .. } => 5,
        }
    }

    pub(super) fn encode(&self, out: &mut Writer<'_>) {
        out.u8(self.connection());
        match self {
            Self::Request { terms, .. } => terms.encode(CR, out),
            Self::Confirm { terms, .. } => terms.encode(CC, out),
            Self::Reject { reason, .. } => {
                out.u8(RJ);
                out.u8(reason.number());
            }
            Self::Release { release, .. } => {
                out.u8(DR);
                out.u16(release.lseq);
                out.u32(release.segments);
            }
            Self::Released { step, .. } => {
                out.u8(DC);
                out.u8(u8::from(*step == Step::Last));
            }
        }
    }

    pub(super) fn decode(connection: u8, kind: u8, fields: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let control = match kind {
            CR => Self::Request { connection, terms: Terms::decode(fields)? },
            CC => Self::Confirm { connection, terms: Terms::decode(fields)? },
            DR => Self::Release { connection, release: Release { lseq: fields.u16("LSEQ")?, segments: fields.u32("SEGMENTS")? } },
            DC => Self::Released { connection, step: one_of(fields, "STEP", &[(0, Step::Answer), (1, Step::Last)])? },
            RJ => {
                let reasons = [Reason::InUse, Reason::Class, Reason::NoBuffers];
                let numbered = reasons.map(|reason| (reason.number(), reason));
                Self::Reject { connection, reason: one_of(fields, "REASON", &numbered)? }
            }
            _ => return Err(fields.error("TI", DecodeErrorKind::UnknownType(u64::from(kind)))),
        };
        fields.finish("packet")?;
        Ok(control)
    }
}

impl Terms {
    fn encode(&self, kind: u8, out: &mut Writer<'_>) {
        out.u8(kind);
        out.u8(self.class.number());
        out.u16(self.rate);
        out.u16(self.credit);
        out.u8(self.pairs.count() as u8);
    }

    fn decode(fields: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let class = fields.u8("CLASS")?;
        let Some(class) = Class::new(class) else {
            return Err(fields.error("CLASS", DecodeErrorKind::OutOfRange(u64::from(class))));
        };
        let (rate, credit) = (fields.u16("RATE")?, fields.u16("CREDIT")?);
        let pairs = one_of(fields, "PAIRS", &[(4, Pairs::Four), (8, Pairs::Eight)])?;
        Ok(Self { class, rate, credit, pairs })
    }
}

/// A byte that has to be one of some values.
fn one_of<T: Copy>(fields: &mut Reader<'_>, field: &'static str, values: &[(u8, T)]) -> Result<T, DecodeError> {
    let byte = fields.u8(field)?;
    let known = values.iter().find(|(value, _)| *value == byte);
    known.map(|(_, meaning)| *meaning).ok_or_else(|| fields.error(field, DecodeErrorKind::OutOfRange(u64::from(byte))))
}
