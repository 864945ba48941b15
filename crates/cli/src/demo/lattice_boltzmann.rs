//! A two-dimensional lattice-Boltzmann solver (D2Q9, one relaxation time), the application of the demonstration.
//!
//! Called by [`vortex_street`](super::vortex_street), which chooses the flow. The populations are kept as deviations
//! from rest, and the equilibrium is the incompressible one (He and Luo, J. Stat. Phys. 88, 1997), which needs no
//! division. The height is periodic; the width is periodic or open (inflow at column 0, zero gradient at the last).
//! Solid cells reflect what reaches them, so that a wall lies half-way between a solid and a fluid cell.
//!
//! The plain method is bound by memory. Here one sweep over the rows advances up to `HALO` steps at once: step `s`
//! follows step `s - 1` one row behind, in place, and only the populations that move towards higher rows are set aside
//! before their row is overwritten. The rows of a few steps stay in the cache. Each thread owns a band of rows with
//! `HALO` rows of its neighbours on both sides, exchanged between sweeps, and shares no memory with the others.
//!
//! Invariant: a cell goes through the same operations in the same order whatever the number of threads, without fused
//! or reordered arithmetic, so the fields are the same bits on one thread or many and on every platform.

use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// Steps of one sweep, and rows of the neighbours each band keeps on either side.
const HALO: usize = 8;
/// Where population `i` goes in one step: (columns, rows).
const VELOCITY: [(f32, f32); 9] =
    [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0), (1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0), (1.0, -1.0)];
/// The weights of the populations at rest.
const WEIGHT: [f32; 9] = [4.0 / 9.0, 1.0 / 9.0, 1.0 / 9.0, 1.0 / 9.0, 1.0 / 9.0, 1.0 / 36.0, 1.0 / 36.0, 1.0 / 36.0, 1.0 / 36.0];
/// The population that goes the other way.
const OPPOSITE: [usize; 9] = [0, 3, 4, 1, 2, 7, 8, 5, 6];
/// The populations that move towards higher rows.
const UPWARDS: [usize; 3] = [2, 5, 6];

/// The nine populations of one row of cells.
type Row<const WIDTH: usize> = [[f32; WIDTH]; 9];

/// What the flow meets at the first and the last column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Ends {
    /// The last column is next to the first.
    #[cfg_attr(not(test), expect(dead_code, reason = "periodic flows have closed forms, which the tests compare with"))]
    Periodic,
    /// Fluid enters at the first column at this speed (columns a step) and leaves at the last one.
    Open {
        /// Speed of the inflow, in columns a step; keep it below 0.2 (the speed of sound is 0.577).
        inflow: f32,
    },
}

/// The state of the fluid in one cell, from which the initial populations are made.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Fluid {
    /// Velocity along the row, in columns a step.
    pub along: f32,
    /// Velocity across the rows, in rows a step.
    pub across: f32,
    /// Density less its mean of one; three times the pressure.
    pub density: f32,
}

impl Fluid {
    /// The equilibrium populations, less the weights.
    fn populations(self) -> [f32; 9] {
        let speed_squared = self.along * self.along + self.across * self.across;
        std::array::from_fn(|i| {
            let towards = VELOCITY[i].0 * self.along + VELOCITY[i].1 * self.across;
            WEIGHT[i] * (self.density + 3.0 * towards + 4.5 * towards * towards - 1.5 * speed_squared)
        })
    }
}

/// What a lattice is made of, apart from its width.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    /// Rows.
    pub height: usize,
    /// Kinematic viscosity, in cells squared a step.
    pub viscosity: f32,
    /// The first and the last column.
    pub ends: Ends,
    /// For each row the runs of solid columns; rows beyond the end of the list have none.
    pub solid: Vec<Vec<Range<usize>>>,
}

/// A lattice of `WIDTH` columns.
#[derive(Debug)]
pub(crate) struct Lattice<const WIDTH: usize> {
    height: usize,
    bands: Vec<Band<WIDTH>>,
}

impl<const WIDTH: usize> Lattice<WIDTH> {
    /// A lattice in the initial state `fluid(column, row)`, at rest in solid cells, to be advanced by `threads` threads.
    ///
    /// # Panics
    /// When the height is below the eight rows that one sweep needs.
    pub(crate) fn new(setting: &Setting, threads: usize, fluid: impl Fn(usize, usize) -> Fluid + Sync) -> Self {
        let height = setting.height;
        assert!(height >= HALO, "a lattice needs at least {HALO} rows, not {height}");
        let count = threads.clamp(1, height / HALO);
        let bands = thread::scope(|scope| {
            let fluid = &fluid;
            let edge = |band: usize| band * height / count;
            let build = |band| scope.spawn(move || Band::new(setting, edge(band)..edge(band + 1), fluid));
            let building: Vec<_> = (0..count).map(build).collect();
            building.into_iter().map(|handle| handle.join().expect("building a band does not panic")).collect()
        });
        Self { height, bands }
    }

    /// Advances the flow by `steps` steps, one thread for each band.
    pub(crate) fn advance(&mut self, steps: usize) {
        let count = self.bands.len();
        let (mut to_next, mut from_previous): (Vec<_>, Vec<_>) = (0..count).map(|_| channel()).unzip();
        let (mut to_previous, mut from_next): (Vec<_>, Vec<_>) = (0..count).map(|_| channel()).unzip();
        // Each band holds the sending end of its own two channels and the receiving end of its neighbours'.
        from_previous.rotate_right(1);
        from_next.rotate_left(1);
        thread::scope(|scope| {
            for band in self.bands.iter_mut().rev() {
                let ends = (to_next.pop(), from_previous.pop(), to_previous.pop(), from_next.pop());
                let (Some(to_next), Some(from_previous), Some(to_previous), Some(from_next)) = ends else { return };
                let neighbours = Neighbours { to_next, from_previous, to_previous, from_next };
                scope.spawn(move || band.advance(steps, &neighbours));
            }
        });
    }

    /// The vorticity (change of the velocity across, along the row, less change of the velocity along, across the
    /// rows) of every cell, row by row, per step, in the form that `form` gives it. Solid cells have the value zero.
    pub(crate) fn vorticity<T: Copy + Default + Send>(&self, form: impl Fn(f32) -> T + Sync) -> Vec<T> {
        let mut field = vec![T::default(); WIDTH * self.height];
        thread::scope(|scope| {
            let (mut rest, form) = (field.as_mut_slice(), &form);
            for band in &self.bands {
                let (own, after) = rest.split_at_mut(WIDTH * band.own());
                rest = after;
                scope.spawn(move || band.vorticity(own, form));
            }
        });
        field
    }

    /// The velocity (along, across) of the cell at `column` and `row`, in cells a step; zero in a solid cell and
    /// outside the lattice.
    #[cfg(test)]
    fn velocity(&self, column: usize, row: usize) -> (f32, f32) {
        let mut first = 0;
        for band in &self.bands {
            if row < first + band.own() && column < WIDTH {
                let (along, across) = band.velocity(row - first + HALO);
                return (along[column], across[column]);
            }
            first += band.own();
        }
        (0.0, 0.0)
    }

    /// The mass of all cells, less one for each cell.
    #[cfg(test)]
    fn mass(&self) -> f64 {
        let own = self.bands.iter().flat_map(|band| &band.rows[HALO..HALO + band.own()]);
        own.flatten().flatten().map(|&population| f64::from(population)).sum()
    }
}

/// The ends of the channels between one band and those next to it.
struct Neighbours<const WIDTH: usize> {
    to_next: Sender<Vec<Row<WIDTH>>>,
    from_previous: Receiver<Vec<Row<WIDTH>>>,
    to_previous: Sender<Vec<Row<WIDTH>>>,
    from_next: Receiver<Vec<Row<WIDTH>>>,
}

/// The rows of one thread, with `HALO` rows of its neighbours before and after.
///
/// Invariant: between sweeps the rows of the neighbours are up to date.
#[derive(Debug)]
struct Band<const WIDTH: usize> {
    rows: Vec<Row<WIDTH>>,
    /// The solid columns of each of `rows`.
    solid: Vec<Vec<Range<usize>>>,
    ends: Ends,
    /// The inverse of the relaxation time.
    relaxation: f32,
    /// For each step of a sweep: the upward populations of the row before, as they were.
    aside: Vec<[[f32; WIDTH]; 3]>,
    /// The populations that reach the row at hand.
    arriving: Box<Row<WIDTH>>,
}

impl<const WIDTH: usize> Band<WIDTH> {
    fn new(setting: &Setting, own: Range<usize>, fluid: &impl Fn(usize, usize) -> Fluid) -> Self {
        let height = setting.height;
        let place = |index: usize| (own.start + height + index - HALO) % height;
        let count = own.len() + 2 * HALO;
        let solid: Vec<_> = (0..count).map(|index| setting.solid.get(place(index)).cloned().unwrap_or_default()).collect();
        let mut rows = vec![[[0.0; WIDTH]; 9]; count];
        for (index, row) in rows.iter_mut().enumerate() {
            for column in (0..WIDTH).filter(|column| !solid[index].iter().any(|run| run.contains(column))) {
                for (target, value) in row.iter_mut().zip(fluid(column, place(index)).populations()) {
                    target[column] = value;
                }
            }
        }
        Self {
            rows,
            solid,
            ends: setting.ends,
            relaxation: 1.0 / (3.0 * setting.viscosity + 0.5),
            aside: vec![[[0.0; WIDTH]; 3]; HALO],
            arriving: Box::new([[0.0; WIDTH]; 9]),
        }
    }

    /// The number of rows this band answers for.
    fn own(&self) -> usize {
        self.rows.len() - 2 * HALO
    }

    fn advance(&mut self, steps: usize, neighbours: &Neighbours<WIDTH>) {
        let mut left = steps;
        while left > 0 {
            let now = left.min(HALO);
            self.sweep(now);
            left -= now;
            let own = self.own();
            let sent = (
                neighbours.to_previous.send(self.rows[HALO..2 * HALO].to_vec()),
                neighbours.to_next.send(self.rows[own..own + HALO].to_vec()),
            );
            let received = (neighbours.from_previous.recv(), neighbours.from_next.recv());
            let ((Ok(()), Ok(())), (Ok(before), Ok(after))) = (sent, received) else {
                return; // a neighbour has panicked; the scope reports it
            };
            self.rows[..HALO].copy_from_slice(&before);
            self.rows[own + HALO..].copy_from_slice(&after);
        }
    }

    /// Advances the band by `steps` steps, at most `HALO`. Each step leaves one row more out of date at either end.
    fn sweep(&mut self, steps: usize) {
        let count = self.rows.len();
        for front in 1..count + steps {
            for step in 0..steps.min(front) {
                let row = front - step;
                if row > step && row + step + 1 < count {
                    self.update(step, row);
                }
            }
        }
    }

    /// Moves the populations that reach `row` into it and lets them collide.
    fn update(&mut self, step: usize, row: usize) {
        if row == step + 1 {
            // The first row of this step: nothing has been set aside yet, and the row before is still as it was.
            self.aside[step] = UPWARDS.map(|i| self.rows[row - 1][i]);
        }
        let (before, after) = self.rows.split_at_mut(row + 1);
        let (Some(here), Some(above)) = (before.last_mut(), after.first()) else { return };
        let (arriving, aside) = (&mut *self.arriving, &mut self.aside[step]);
        arriving[0] = here[0];
        move_right(&mut arriving[1], &here[1]);
        move_left(&mut arriving[3], &here[3]);
        arriving[2] = aside[0];
        move_right(&mut arriving[5], &aside[1]);
        move_left(&mut arriving[6], &aside[2]);
        arriving[4] = above[4];
        move_left(&mut arriving[7], &above[7]);
        move_right(&mut arriving[8], &above[8]);
        for (kept, i) in aside.iter_mut().zip(UPWARDS) {
            kept.copy_from_slice(&here[i]);
        }
        collide(arriving, here, self.relaxation);
        for run in &self.solid[row] {
            for (target, opposite) in here.iter_mut().zip(OPPOSITE) {
                target[run.clone()].copy_from_slice(&arriving[opposite][run.clone()]);
            }
        }
        if let Ends::Open { inflow } = self.ends {
            let entering = Fluid { along: inflow, ..Fluid::default() }.populations();
            for (target, value) in here.iter_mut().zip(entering) {
                target[0] = value;
                target[WIDTH - 1] = target[WIDTH - 2];
            }
        }
    }

    /// The velocity along and across in one of the band's rows, zero in solid cells.
    fn velocity(&self, row: usize) -> ([f32; WIDTH], [f32; WIDTH]) {
        let g = &self.rows[row];
        let mut along = [0.0; WIDTH];
        let mut across = [0.0; WIDTH];
        for x in 0..WIDTH {
            along[x] = (g[1][x] - g[3][x]) + (g[5][x] - g[7][x]) + (g[8][x] - g[6][x]);
            across[x] = (g[2][x] - g[4][x]) + (g[5][x] - g[7][x]) - (g[8][x] - g[6][x]);
        }
        for run in &self.solid[row] {
            along[run.clone()].fill(0.0);
            across[run.clone()].fill(0.0);
        }
        (along, across)
    }

    /// Writes the vorticity of the own rows, by central differences.
    fn vorticity<T>(&self, field: &mut [T], form: impl Fn(f32) -> T) {
        let mut before = self.velocity(HALO - 1).0;
        let (mut along, mut across) = self.velocity(HALO);
        for (index, target) in field.chunks_exact_mut(WIDTH).enumerate() {
            let after = self.velocity(HALO + index + 1);
            let mut line = [0.0; WIDTH];
            for x in 1..WIDTH - 1 {
                line[x] = 0.5 * ((across[x + 1] - across[x - 1]) - (after.0[x] - before[x]));
            }
            line[0] = line[1];
            line[WIDTH - 1] = line[WIDTH - 2];
            for run in &self.solid[HALO + index] {
                line[run.clone()].fill(0.0);
            }
            for (target, vorticity) in target.iter_mut().zip(line) {
                *target = form(vorticity);
            }
            before = along;
            (along, across) = after;
        }
    }
}

/// Copies a row moved by one column towards higher columns; the last value goes to the first column.
fn move_right<const WIDTH: usize>(target: &mut [f32; WIDTH], source: &[f32; WIDTH]) {
    target[1..].copy_from_slice(&source[..WIDTH - 1]);
    target[0] = source[WIDTH - 1];
}

/// Copies a row moved by one column towards lower columns; the first value goes to the last column.
fn move_left<const WIDTH: usize>(target: &mut [f32; WIDTH], source: &[f32; WIDTH]) {
    target[..WIDTH - 1].copy_from_slice(&source[1..]);
    target[WIDTH - 1] = source[0];
}

/// Relaxes the populations of one row towards their equilibrium.
// Why: a plain loop over arrays of a known length is what the compiler turns into vector instructions.
fn collide<const WIDTH: usize>(arriving: &Row<WIDTH>, row: &mut Row<WIDTH>, relaxation: f32) {
    let [p0, p1, p2, p3, p4, p5, p6, p7, p8] = arriving;
    let [r0, r1, r2, r3, r4, r5, r6, r7, r8] = row;
    let keep = 1.0 - relaxation;
    for x in 0..WIDTH {
        let [g0, g1, g2, g3, g4, g5, g6, g7, g8] = [p0[x], p1[x], p2[x], p3[x], p4[x], p5[x], p6[x], p7[x], p8[x]];
        let density = ((g0 + g1) + (g2 + g3)) + ((g4 + g5) + (g6 + g7)) + g8;
        let (rising, falling) = (g5 - g7, g8 - g6);
        let along = (g1 - g3) + (rising + falling);
        let across = (g2 - g4) + (rising - falling);
        let base = (density - (along * along + across * across) * 1.5) * relaxation;
        // The equilibrium of a population and of its opposite, whose odd terms differ in sign.
        let pair = |weight: f32, towards: f32| {
            let even = (base + towards * towards * (4.5 * relaxation)) * weight;
            let odd = towards * (3.0 * relaxation * weight);
            (even + odd, even - odd)
        };
        r0[x] = g0 * keep + base * (4.0 / 9.0);
        let (there, back) = pair(1.0 / 9.0, along);
        r1[x] = g1 * keep + there;
        r3[x] = g3 * keep + back;
        let (there, back) = pair(1.0 / 9.0, across);
        r2[x] = g2 * keep + there;
        r4[x] = g4 * keep + back;
        let (there, back) = pair(1.0 / 36.0, along + across);
        r5[x] = g5 * keep + there;
        r7[x] = g7 * keep + back;
        let (there, back) = pair(1.0 / 36.0, along - across);
        r8[x] = g8 * keep + there;
        r6[x] = g6 * keep + back;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A lattice of 64 columns with a solid block, periodic both ways, and a flow with structure in both directions.
    fn small(threads: usize) -> Lattice<64> {
        let mut solid = vec![Vec::new(); 48];
        solid[20..28].fill(vec![10..18, 40..43]);
        let setting = Setting { height: 48, viscosity: 0.02, ends: Ends::Periodic, solid };
        Lattice::new(&setting, threads, |column, row| Fluid {
            along: 0.05 + 0.001 * (row % 7) as f32,
            across: 0.01 * ((column * row) % 5) as f32,
            density: 0.002 * (column % 3) as f32,
        })
    }

    #[test]
    fn mass_is_conserved_by_collision_streaming_and_walls() {
        let mut lattice = small(1);
        let before = lattice.mass();
        lattice.advance(203);
        // 3072 cells of about one each; single precision loses less than one part in a million.
        assert!((lattice.mass() - before).abs() < 3072.0 * 1e-6, "{before} {}", lattice.mass());
    }

    #[test]
    fn the_fields_are_the_same_bits_on_any_number_of_threads() {
        let fields: Vec<Vec<u32>> = [1, 2, 3, 5, 100]
            .map(|threads| {
                let mut lattice = small(threads);
                lattice.advance(21);
                lattice.advance(8);
                lattice.vorticity(f32::to_bits)
            })
            .to_vec();
        assert!(fields[0].iter().any(|&bits| bits != 0));
        assert!(fields.windows(2).all(|pair| pair[0] == pair[1]));
    }

    #[test]
    fn many_steps_in_one_sweep_are_the_same_steps_one_by_one() {
        let (mut together, mut single) = (small(2), small(2));
        together.advance(13);
        (0..13).for_each(|_| single.advance(1));
        assert_eq!(together.vorticity(f32::to_bits), single.vorticity(f32::to_bits));
    }

    #[test]
    fn a_shear_wave_decays_with_the_viscosity_it_was_given() {
        let viscosity = 0.05;
        let setting = Setting { height: 64, viscosity, ends: Ends::Periodic, solid: Vec::new() };
        let wave_number = 2.0 * std::f32::consts::PI / 64.0;
        let along = |row: usize| 0.05 * (wave_number * row as f32).sin();
        let mut lattice: Lattice<16> = Lattice::new(&setting, 2, |_, row| Fluid { along: along(row), ..Fluid::default() });
        lattice.advance(400);
        let expected = along(16) * (-viscosity * wave_number * wave_number * 400.0).exp();
        assert!((lattice.velocity(5, 16).0 / expected - 1.0).abs() < 0.01, "{:?} {expected}", lattice.velocity(5, 16));
    }

    #[test]
    fn vorticity_is_that_of_the_velocity() {
        let setting = Setting { height: 64, viscosity: 0.05, ends: Ends::Periodic, solid: Vec::new() };
        // Velocity across that grows along the row: counter-clockwise in mathematical axes, 0.001 a step.
        let lattice: Lattice<32> = Lattice::new(&setting, 1, |column, _| Fluid { across: 0.001 * column as f32, ..Fluid::default() });
        assert!((lattice.vorticity(|vorticity| vorticity)[10 * 32 + 7] - 0.001).abs() < 1e-6);
    }

    #[test]
    fn a_block_in_a_stream_sheds_vortices_of_alternating_sign() {
        let mut solid = vec![Vec::new(); 80];
        solid[34..46].iter_mut().for_each(|row| row.push(24..36));
        let setting = Setting { height: 80, viscosity: 0.012, ends: Ends::Open { inflow: 0.12 }, solid };
        let mut lattice: Lattice<128> = Lattice::new(&setting, 2, |column, row| Fluid {
            along: 0.12,
            // A push to one side behind the block starts the oscillation early.
            across: if (40..60).contains(&column) && (30..50).contains(&row) { 0.05 } else { 0.0 },
            density: 0.0,
        });
        // The push has left the lattice after 128 / 0.12 steps, about 1100.
        lattice.advance(2500);
        let mut across = Vec::new();
        for _ in 0..60 {
            lattice.advance(50);
            across.push(lattice.velocity(60, 40).1);
        }
        let changes = across.windows(2).filter(|pair| pair[0] * pair[1] < 0.0).count();
        let strongest = across.iter().fold(0.0f32, |most, value| most.max(value.abs()));
        assert!(changes >= 4 && strongest > 0.02, "{changes} changes of sign, strongest {strongest}");
    }
}
