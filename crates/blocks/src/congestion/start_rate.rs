//! A rate that was known before anything was sent: of a live source, or of an earlier connection to the same peer.
//!
//! Called by controllers that reports move on. A connection that begins with ten packets needs several round trips until it carries
//! what its source makes; one that knows the rate begins with the window that the rate implies over the first round trip that is
//! measured. Until all of that is acknowledged the window is not validated: it does not grow, and a loss or a mark takes it back to half of
//! what has arrived.
//!
//! Invariant: in flight is at most the rate times the round trip, and ten packets; a window is taken back once.
//! Source: RFC 9959 3.3 to 3.5 (Careful Resume: phases Unvalidated, Validating, Safe Retreat). Its memory of earlier paths is the endpoint's.

use super::Report;
use super::window::{INITIAL, PacketUnits, Window};
use segstream_base::Bandwidth;

/// Of what has arrived, what is left by a retreat (Safe Retreat).
const RETREAT: f64 = 0.5;

#[derive(Clone, Copy, Debug, Default)]
pub(super) enum StartRate {
    /// None was known, or what was known has been proved or taken back.
    #[default]
    Past,
    /// No round trip is known yet.
    Known(Bandwidth),
    /// So many bytes must be acknowledged until the window is validated.
    Unvalidated(u64),
}

impl StartRate {
    pub(super) fn new(rate: Option<Bandwidth>) -> Self {
        rate.map_or(Self::Past, Self::Known)
    }

    /// The window to begin with, in packets, as soon as `units` know a round trip; then never again.
    pub(super) fn window(&mut self, units: &PacketUnits) -> Option<f64> {
        let (Self::Known(rate), Some(rtt)) = (*self, units.rtt_smoothed()) else { return None };
        let window = units.packets(1) * rate.bits_per_second() as f64 / 8.0 * rtt;
        *self = Self::Unvalidated((window * units.datagram() as f64) as u64);
        (window > INITIAL).then_some(window)
    }

    /// The same for a `window`, which is no smaller then.
    pub(super) fn begin(&mut self, window: &mut Window) {
        if let Some(size) = self.window(&window.units) {
            window.size = window.size.max(size);
        }
    }

    /// Whether the rate is in force and not proved.
    pub(super) const fn is_unvalidated(&self) -> bool {
        matches!(self, Self::Unvalidated(_))
    }

    /// A report has come; what of the window is left, in packets, if it was too much.
    pub(super) fn on_report(&mut self, units: &PacketUnits, report: &Report) -> Option<f64> {
        let Self::Unvalidated(bytes) = *self else { return None };
        if report.event.is_some() {
            *self = Self::Past;
            return Some((RETREAT * units.packets(report.delivered_total)).max(INITIAL));
        }
        if report.delivered_total >= bytes {
            *self = Self::Past;
        }
        None
    }
}
