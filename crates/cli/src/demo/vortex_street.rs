//! The pictures of the demonstration: vorticity slices of the flow past three cylinders.
//!
//! Called by the verb, which streams the slices. The [`Lattice`] computes the flow; this module says where the
//! cylinders stand, how the flow begins, and how vorticity becomes one byte a cell.
//!
//! From rest a cylinder takes tens of thousands of steps to shed. The flow therefore begins as potential flow round the
//! cylinders with a von Karman vortex street behind each, whose places and strengths are perturbed by the seed. That
//! street drifts away within the run; what takes its place at the cylinders is shed by them.
//!
//! Reynolds number 250, inflow 0.14 cells a step, cylinders 46 cells wide: shedding takes about 1600 steps, so a hundred
//! slices show more than one and a half periods, and a vortex moves 3 to 4 cells from slice to slice.
//!
//! Invariant: the bytes of a slice depend on the seed and its index alone.

use super::lattice_boltzmann::{Ends, Fluid, Lattice, Setting};
use super::picture::Slice;
use segstream_base::random::{Random, Seed};
use std::f32::consts::PI;
use std::ops::Range;

/// Columns and rows of the lattice and of a slice.
pub(crate) const SIDE: usize = 1024;
/// Steps of the solver from one slice to the next.
pub(crate) const STEPS_PER_SLICE: usize = 28;
/// The Reynolds number, by the diameter of a cylinder and the speed of the inflow.
pub(crate) const REYNOLDS: f32 = 250.0;
/// The vorticity, in inflow speeds a diameter, that becomes the byte 255; its negative becomes 1, and zero becomes 128.
/// Stronger vorticity, found only where the flow meets a cylinder, is cut off.
pub(crate) const FULL_SCALE: f32 = 4.5;

/// Speed of the inflow, in cells a step.
const INFLOW: f32 = 0.14;
/// Diameter of a cylinder, in cells.
const DIAMETER: f32 = 46.0;
/// The centres of the cylinders: (column, row).
const CYLINDERS: [(f32, f32); 3] = [(110.0, 170.0), (190.0, 512.0), (110.0, 854.0)];
/// From one vortex of a street to the next of the same sign, in diameters.
const SPACING: f32 = 4.3;
/// Between the two rows of a street, in diameters: 0.28 times the spacing is the stable street of von Karman.
const ROW_DISTANCE: f32 = 1.2;

/// One vortex of the initial field, with the velocity `circulation / (2 pi) x r / (r^2 + core^2)`.
struct Vortex {
    column: f32,
    row: f32,
    circulation: f32,
    core_squared: f32,
}

/// A flow that gives one slice after the other.
#[derive(Debug)]
pub(crate) struct VortexStreet(Lattice<SIDE>);

impl VortexStreet {
    /// The flow that belongs to `seed`, computed by `threads` threads.
    pub(crate) fn new(seed: Seed, threads: usize) -> Self {
        let viscosity = INFLOW * DIAMETER / REYNOLDS;
        let mut random = seed.stream("demo.vortex_street");
        let vortices: Vec<_> = CYLINDERS.iter().flat_map(|&centre| street(centre, viscosity, &mut random)).collect();
        let setting = Setting { height: SIDE, viscosity, ends: Ends::Open { inflow: INFLOW }, solid: solid() };
        Self(Lattice::new(&setting, threads, |column, row| initial(column as f32 + 0.5, row as f32 + 0.5, &vortices)))
    }

    /// Advances the flow by [`STEPS_PER_SLICE`] and gives its vorticity. Blue (below 128) is clockwise, as a person sees
    /// the picture with its first line on top, red counter-clockwise.
    pub(crate) fn next_slice(&mut self) -> Slice {
        self.0.advance(STEPS_PER_SLICE);
        let scale = -127.0 * DIAMETER / (FULL_SCALE * INFLOW);
        let bytes = self.0.vorticity(|vorticity| to_byte(vorticity * scale));
        Slice { width: SIDE, height: SIDE, bytes }
    }
}

/// The first `count` slices; `progress` is told how many are done after each.
pub(crate) fn slices(seed: Seed, count: usize, threads: usize, mut progress: impl FnMut(usize)) -> Vec<Slice> {
    let mut flow = VortexStreet::new(seed, threads);
    let next = |index: usize| {
        let slice = flow.next_slice();
        progress(index + 1);
        slice
    };
    (0..count).map(next).collect()
}

/// 128 and `value`, rounded, within 1 to 255; no number becomes 128.
fn to_byte(value: f32) -> u8 {
    if value.is_nan() { 128 } else { (128.5 + value.clamp(-127.0, 127.0)) as u8 }
}

/// The columns inside a cylinder, for each row.
fn solid() -> Vec<Vec<Range<usize>>> {
    let chord = |row: usize, (centre, height): (f32, f32)| {
        let off = row as f32 + 0.5 - height;
        let half_squared = DIAMETER * DIAMETER / 4.0 - off * off;
        (half_squared > 0.0).then(|| (centre - half_squared.sqrt()).round() as usize..(centre + half_squared.sqrt()).round() as usize)
    };
    (0..SIDE).map(|row| CYLINDERS.iter().filter_map(|&cylinder| chord(row, cylinder)).collect()).collect()
}

/// The vortices behind the cylinder at `centre`, alternately of one sign and the other, an even number of them.
fn street((column, row): (f32, f32), viscosity: f32, random: &mut Random) -> Vec<Vortex> {
    let mut off_by = |share: f32| share * (2.0 * random.unit() as f32 - 1.0);
    let mut sign = if off_by(1.0) < 0.0 { -1.0 } else { 1.0 };
    let mut distance = (1.1 + off_by(0.2)) * DIAMETER;
    let mut vortices = Vec::new();
    while column + distance < SIDE as f32 + SPACING * DIAMETER || vortices.len() % 2 == 1 {
        // A vortex forms near the axis, moves outwards over three diameters and spreads by viscosity as it ages.
        let outwards = (distance / (3.0 * DIAMETER)).min(1.0);
        let age = distance / (0.85 * INFLOW);
        vortices.push(Vortex {
            column: column + distance + off_by(0.2) * DIAMETER,
            row: row - sign * outwards * ROW_DISTANCE / 2.0 * DIAMETER + off_by(0.08) * DIAMETER,
            circulation: sign * (2.6 + off_by(0.26)) * INFLOW * DIAMETER,
            core_squared: 0.14 * DIAMETER * DIAMETER + 4.0 * viscosity * age,
        });
        sign = -sign;
        distance += SPACING / 2.0 * DIAMETER;
    }
    vortices
}

/// The fluid at a place when the run begins: potential flow past each cylinder, and the vortices with their images one
/// height above and below, since the height is periodic.
fn initial(column: f32, row: f32, vortices: &[Vortex]) -> Fluid {
    let mut fluid = Fluid { along: INFLOW, across: 0.0, density: 0.0 };
    for (centre, height) in CYLINDERS {
        let (dx, dy) = (column - centre, row - height);
        let square = (dx * dx + dy * dy).max(DIAMETER * DIAMETER / 4.0);
        let dipole = INFLOW * DIAMETER * DIAMETER / 4.0 / (square * square);
        fluid.along -= dipole * (dx * dx - dy * dy);
        fluid.across -= dipole * 2.0 * dx * dy;
    }
    for vortex in vortices {
        let dx = column - vortex.column;
        for image in [-1.0, 0.0, 1.0] {
            let dy = row - (vortex.row + image * SIDE as f32);
            let inverse = 1.0 / (dx * dx + dy * dy + vortex.core_squared);
            let turn = vortex.circulation / (2.0 * PI);
            fluid.along -= turn * inverse * dy;
            fluid.across += turn * inverse * dx;
            // The pressure in a vortex balances its own rotation; without it the run begins with a bang.
            fluid.density -= 1.5 * turn * turn * inverse;
        }
    }
    fluid
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_symmetric_about_zero_and_cut_off() {
        assert_eq!([0.0, 0.6, -0.6, 127.0, -127.0, 1e9, -1e9, f32::NAN].map(to_byte), [128, 129, 127, 255, 1, 255, 1, 128]);
    }

    #[test]
    fn a_street_alternates_and_has_no_net_circulation_but_its_perturbation() {
        let vortices = street(CYLINDERS[0], 0.02, &mut Seed(5).stream("test"));
        assert!(vortices.len() >= 8 && vortices.len().is_multiple_of(2));
        assert!(vortices.windows(2).all(|pair| pair[0].circulation * pair[1].circulation < 0.0));
        let other = street(CYLINDERS[0], 0.02, &mut Seed(6).stream("test"));
        assert_ne!(vortices[0].column, other[0].column);
    }

    #[test]
    fn the_solid_cells_cover_three_discs() {
        let cells: usize = solid().iter().flatten().map(ExactSizeIterator::len).sum();
        let discs = 3.0 * f64::from(PI * DIAMETER * DIAMETER / 4.0);
        assert!((cells as f64 / discs - 1.0).abs() < 0.02, "{cells} cells, {discs}");
    }

    #[test]
    fn the_first_slice_shows_both_signs_and_calm_inside_the_cylinders() {
        let mut flow = VortexStreet::new(Seed(1), 2);
        let slice = flow.next_slice();
        assert_eq!(slice.bytes.len(), SIDE * SIDE);
        let share = |wanted: fn(&u8) -> bool| slice.bytes.iter().filter(|byte| wanted(byte)).count() as f64 / slice.bytes.len() as f64;
        assert!(share(|&byte| byte < 118) > 0.01 && share(|&byte| byte > 138) > 0.01);
        assert_eq!(slice.bytes[512 * SIDE + 190], 128);
    }
}
