//! The four tolerances of EC Figs. 11 and 12, and the scenarios and curves that go with them.
//!
//! Called by `fig11`, `fig12` and `table1`. The paper names the two ends and "one loss"; (256,5,5) is chosen after its
//! example (1024,5,1).
//!
//! Invariant: SSTP with ideal feedback counts tolerated losses as the paper writes it (`paper-literal`) where nothing
//! else is said; everything else, SSTP in full mode included, keeps the promise (`strict-all`). A tolerance of none
//! or of all has no accounting, so that its scenarios are those of the other figures.
//! Source: EC 3.1, 4.2, 5.3.

use crate::black_box::{Who, tolerance};
use crate::curves::{Look, SHADES};
use segstream_blocks::Accounting;
use segstream_lab::figure::Line;
use segstream_lab::scenario::Scenario;
use segstream_path::LossSpec;
use segstream_schemes::sstp;

/// (E, B) of the four, growing; W is 256.
pub(super) const FOUR: [(u32, u32); 4] = [(0, 0), (1, 1), (5, 5), (256, 256)];
/// No loss is tolerated.
pub(super) const NONE: (u32, u32) = FOUR[0];
/// One loss of a segment.
pub(super) const ONE: (u32, u32) = FOUR[1];
/// Five of a segment, in a run or not.
pub(super) const FIVE: (u32, u32) = FOUR[2];
/// Every loss.
pub(super) const ANY: (u32, u32) = FOUR[3];

/// The name of the curve of `who` at a tolerance: `sstp-full 256,1,1`.
pub(super) fn curve(who: Who, (errors, burst): (u32, u32)) -> String {
    format!("{} 256,{errors},{burst}", who.name())
}

/// The same in a legend.
pub(super) fn label(who: Who, (errors, burst): (u32, u32)) -> String {
    format!("{} (256,{errors},{burst})", who.label())
}

/// The accounting of `who` where nothing else is said.
pub(super) fn usual_accounting(who: Who) -> Accounting {
    if who == Who::SstpIdeal { Accounting::PaperLiteral } else { Accounting::StrictAll }
}

/// The scenario of `who` at a tolerance.
pub(super) fn scenario(who: Who, (errors, burst): (u32, u32), accounting: Accounting, loss: &LossSpec) -> Scenario {
    let tolerance = tolerance(errors, burst);
    let accounting = if tolerance.is_partial() { accounting } else { Accounting::StrictAll };
    who.over(loss).with(|it| it.workload.tolerance = tolerance).with_settings(|it: &mut sstp::Settings| it.accounting = accounting)
}

/// How the curve of `who` at a tolerance looks: the colour tells the tolerance, the sign tells who.
pub(super) fn look(who: Who, wanted: (u32, u32)) -> Look {
    let at = FOUR.iter().position(|one| *one == wanted).unwrap_or(0);
    let line = if who == Who::Segstream { Line::Dashed } else { Line::Solid };
    Look { colour: SHADES[at], marker: who.marker(), line }
}
