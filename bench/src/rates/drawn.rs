//! Cells that nobody has chosen: paths drawn from ranges by a seed, of every kind that the table has.
//!
//! Called by [`super::run`] with `--drawn`. A controller whose constants fit the cells of the table, and nothing else, shows it here.
//!
//! Invariant: the same number and seed give the same cells, and the first of more cells are those of fewer.

use super::cells::{BASE, Cell, FAIR, GOOD, HALF, Kernel, Rule, THIRD, Turn};
use super::segment_bytes;
use segstream_base::random::{Random, Seed};

/// The ranges, drawn from evenly by their logarithm: Mbit/s, round trips in milliseconds, products of queue.
const MBIT: (f64, f64) = (1.0, 200.0);
const RTT_MS: (f64, f64) = (10.0, 200.0);
const QUEUE_BDP: (f64, f64) = (0.25, 4.0);
/// Jitter and aggregation in milliseconds, and loss in per cent.
const JITTER_MS: (f64, f64) = (2.0, 40.0);
const WIFI_MS: (f64, f64) = (2.0, 20.0);
const AGGREGATE_MS: (f64, f64) = (1.0, 12.0);
const LOSS_PERCENT: (f64, f64) = (0.1, 5.0);
const BURST: (f64, f64) = (2.0, 20.0);
/// How many flows share, and what is left of a bandwidth that changes.
const FLOWS: (f64, f64) = (2.0, 16.0);
const LEFT: (f64, f64) = (0.1, 0.7);
/// A policer lets through this part of the link.
const POLICED: (f64, f64) = (0.1, 0.7);
/// What a live source has of the link, and its deadline in round trips behind a full queue: two of them, and some time to find out.
const LIVE: (f64, f64) = (0.05, 0.45);
const LIVE_ROUND_TRIPS: f64 = 2.5;

/// What a kind of cell is called, and what it adds to a plain path.
type Kind = (&'static str, fn(Cell, &mut Draw) -> Cell);
const KINDS: &[Kind] = &[
    ("alone", |cell, _| cell),
    ("jitter", |cell, draw| draw.jitter(cell)),
    ("wifi", |cell, draw| draw.wifi(cell)),
    ("aggregate", |cell, draw| Cell { flags: draw.flag("--aggregate", AGGREGATE_MS, "ms"), ..cell }),
    ("loss", |cell, draw| draw.loss(cell)),
    ("jitter-loss", |cell, draw| {
        let cell = draw.jitter(cell);
        draw.loss(cell)
    }),
    ("policer", |cell, draw| {
        let part = draw.within(POLICED);
        let mbit = round(cell.mbit * part);
        Cell { flags: kept(["--policer", kept(format!("{:.0}kbit", mbit * 1e3))]), ..cell }
    }),
    ("managed", |cell, draw| draw.managed(cell)),
    ("beside-cubic", |cell, draw| Cell { beside: Some((Kernel::Cubic, draw.turn())), met: HALF, ..cell }),
    ("beside-bbr", |cell, _| Cell { beside: Some((Kernel::Bbr, Turn::Second)), met: THIRD, ..cell }),
    ("beside-managed", |cell, draw| Cell { beside: Some((Kernel::Cubic, Turn::Second)), met: Rule::LeavesCubic, ..draw.managed(cell) }),
    ("ours", |cell, draw| Cell { count: draw.within(FLOWS).round() as usize, met: FAIR, ..cell }),
    ("changes", |cell, draw| {
        let low = round(cell.mbit * draw.within(LEFT));
        Cell { changes: kept([(0.0, cell.mbit), (5.0, low), (10.0, cell.mbit)]), met: Rule::Recovers, ..cell }
    }),
    ("live", |cell, draw| {
        let mbit = round(cell.mbit * draw.within(LIVE));
        let live = |deadline_ms| Cell { met: Rule::InTime { mbit, deadline_ms, on_off_s: 5, min: 0.99 }, ..cell };
        let time_ms = |bytes: u64| bytes as f64 * 8.0 / (cell.mbit * 1e3);
        let deadline_ms = LIVE_ROUND_TRIPS * (cell.rtt_ms + time_ms(cell.queue_bytes())) + 2.0 * time_ms(segment_bytes(&live(0)));
        Cell { beside: Some((Kernel::Cubic, draw.turn())), ..live(deadline_ms.round() as u32) }
    }),
];
/// The first so many kinds draw by their number among themselves. Why: the cells of a kind are the same, whatever kinds come after it.
const NUMBERED_ALIKE: usize = 13;

/// So many cells, of each kind in turn.
pub(super) fn cells(count: usize, seed: Seed) -> &'static [Cell] {
    let all = (0..count).map(|number| {
        let (kind, add) = KINDS[number % KINDS.len()];
        let (round_of, place) = (number / KINDS.len(), number % KINDS.len());
        let name = if place < NUMBERED_ALIKE { (round_of * NUMBERED_ALIKE + place).to_string() } else { format!("{kind}-{round_of}") };
        let mut draw = Draw(seed.child(&name).stream("cell"));
        let path = Cell {
            name: kept(format!("{kind}-{}", round_of + 1)),
            mbit: round(draw.within(MBIT)),
            rtt_ms: round(draw.within(RTT_MS)),
            queue_bdp: round(draw.within(QUEUE_BDP)),
            met: GOOD,
            ..BASE
        };
        add(path, &mut draw)
    });
    kept(all.collect::<Vec<_>>())
}

/// The kind in the name of a drawn cell.
pub(super) fn kind(name: &str) -> &str {
    name.rsplit_once('-').map_or(name, |(kind, _)| kind)
}

/// What stays until the program ends, as the rows of the table do.
fn kept<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

/// Two digits are enough, and can be written down.
fn round(value: f64) -> f64 {
    let unit = 10f64.powf(value.log10().floor() - 1.0);
    let rounded = (value / unit).round() * unit;
    // Why once more: the product of two digits and a power of ten need not be the nearest number to what is written.
    format!("{rounded:.4}").parse().unwrap_or(rounded)
}

struct Draw(Random);

impl Draw {
    /// A number of a range, evenly by its logarithm.
    fn within(&mut self, (least, most): (f64, f64)) -> f64 {
        least * (most / least).powf(self.0.unit())
    }

    fn flag(&mut self, name: &'static str, range: (f64, f64), unit: &str) -> &'static [&'static str] {
        let value = self.within(range).round();
        kept([name, kept(format!("{value}{unit}"))])
    }

    fn jitter(&mut self, cell: Cell) -> Cell {
        let ms = self.within(JITTER_MS).round();
        Cell { jitter: Some((kept(format!("{ms}ms")), ms)), ..cell }
    }

    fn wifi(&mut self, cell: Cell) -> Cell {
        let ms = self.within(WIFI_MS).round();
        Cell { jitter: Some((kept(format!("wifi:{ms}ms")), ms)), ..cell }
    }

    /// Each packet by itself, or in bursts.
    fn loss(&mut self, cell: Cell) -> Cell {
        let percent = round(self.within(LOSS_PERCENT));
        let burst = self.within(BURST).round();
        let text = if self.0.chance(0.5) { format!("random:{percent}%") } else { format!("gilbert:rate={percent}%,burst={burst}") };
        Cell { loss: kept(text), ..cell }
    }

    fn managed(&mut self, cell: Cell) -> Cell {
        let aqm = ["codel", "fq-codel", "pie"][self.0.below(3) as usize];
        Cell { aqm, ecn: self.0.chance(0.5), ..cell }
    }

    fn turn(&mut self) -> Turn {
        [Turn::First, Turn::Second, Turn::Same][self.0.below(3) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::super::virtual_time;
    use super::*;

    #[test]
    fn the_first_of_more_cells_are_those_of_fewer_and_every_kind_can_be_run() {
        let text = |cells: &[Cell]| cells.iter().map(|cell| format!("{cell:?}")).collect::<Vec<_>>();
        let (few, many) = (cells(KINDS.len(), Seed(1)), cells(10 * KINDS.len(), Seed(1)));
        assert_eq!(text(few), text(&many[..few.len()]));
        assert_ne!(text(few), text(cells(few.len(), Seed(2))));
        for cell in many {
            let tcp = virtual_time::tcp(Kernel::Cubic, cell);
            virtual_time::scenario(cell, &tcp, 30).unwrap().check().unwrap();
            assert!(KINDS.iter().any(|(name, _)| *name == kind(cell.name)), "{}", cell.name);
        }
    }

    #[test]
    fn numbers_have_two_digits() {
        assert_eq!([1.0, 12.34, 0.256, 199.0].map(round), [1.0, 12.0, 0.26, 200.0]);
    }
}
