//! Fills the holes of a slice from the lines around them, as a viewer does that tolerates them.
//!
//! Called by the verb before it scores and shows a slice. A line is a unit, so the holes of a segment are the missing
//! lines of its slice. Between two received lines a missing one is interpolated linearly; before the first and after the
//! last received line the nearest one is copied; when nothing was received the slice is mid-grey.
//!
//! Invariant: a received line is never changed, and what a missing line held before has no influence.

use super::picture::Slice;

/// The byte shown when no line at all was received: zero vorticity, mid-grey.
pub(crate) const MID_GREY: u8 = 128;

/// Fills the lines in `holes`, in any order; numbers beyond the last line are ignored.
pub(crate) fn conceal(slice: &mut Slice, holes: &[usize]) {
    let mut received = vec![true; slice.height];
    for &hole in holes {
        if let Some(present) = received.get_mut(hole) {
            *present = false;
        }
    }
    if !received.contains(&true) {
        slice.bytes.fill(MID_GREY);
        return;
    }
    let width = slice.width;
    let mut line = 0;
    while line < slice.height {
        if received[line] {
            line += 1;
            continue;
        }
        let end = received[line..].iter().position(|&present| present).map_or(slice.height, |run| line + run);
        fill(&mut slice.bytes, width, line..end, end < slice.height);
        line = end;
    }
}

/// Fills one run of missing lines from the line before it, if there is one, and the line after it, if `followed`.
fn fill(bytes: &mut [u8], width: usize, run: std::ops::Range<usize>, followed: bool) {
    let span = run.len() + 1;
    for line in run.clone() {
        for column in 0..width {
            let before = run.start.checked_sub(1).map(|above| usize::from(bytes[above * width + column]));
            let after = followed.then(|| usize::from(bytes[run.end * width + column]));
            let distance = line + 1 - run.start;
            let value = match (before, after) {
                (Some(before), Some(after)) => (before * (span - distance) + after * distance + span / 2) / span,
                (Some(nearest), None) | (None, Some(nearest)) => nearest,
                (None, None) => usize::from(MID_GREY),
            };
            bytes[line * width + column] = value as u8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segstream_base::random::Seed;

    /// One column; each line holds the value given.
    fn column(values: &[u8]) -> Slice {
        Slice { width: 1, height: values.len(), bytes: values.to_vec() }
    }

    fn concealed(values: &[u8], holes: &[usize]) -> Vec<u8> {
        let mut slice = column(values);
        conceal(&mut slice, holes);
        slice.bytes
    }

    #[test]
    fn a_run_between_two_lines_is_a_straight_line() {
        assert_eq!(concealed(&[10, 0, 0, 0, 50], &[3, 1, 2]), [10, 20, 30, 40, 50]);
        assert_eq!(concealed(&[50, 9, 9, 20], &[1, 2]), [50, 40, 30, 20]);
        assert_eq!(concealed(&[255, 0, 255], &[1]), [255, 255, 255]);
    }

    #[test]
    fn the_edges_copy_the_nearest_line() {
        assert_eq!(concealed(&[0, 0, 7, 9, 0], &[0, 1, 4]), [7, 7, 7, 9, 9]);
    }

    #[test]
    fn nothing_received_is_mid_grey_and_no_hole_changes_nothing() {
        assert_eq!(concealed(&[1, 2, 3], &[0, 1, 2]), [MID_GREY; 3]);
        assert_eq!(concealed(&[1, 2, 3], &[]), [1, 2, 3]);
        assert_eq!(concealed(&[1, 2, 3], &[3, usize::MAX]), [1, 2, 3]);
        assert_eq!(concealed(&[], &[0]), [0; 0]);
    }

    #[test]
    fn received_lines_stay_and_filled_ones_lie_between_their_neighbours() {
        let mut random = Seed(11).stream("conceal");
        for _ in 0..300 {
            let (width, height) = (1 + random.below(3) as usize, 1 + random.below(20) as usize);
            let bytes: Vec<u8> = (0..width * height).map(|_| random.bits() as u8).collect();
            let holes: Vec<usize> = (0..height).filter(|_| random.chance(0.4)).collect();
            let mut shown = Slice { width, height, bytes: bytes.clone() };
            conceal(&mut shown, &holes);
            let mut scrambled = Slice { width, height, bytes: bytes.clone() };
            for &hole in &holes {
                scrambled.bytes[hole * width..(hole + 1) * width].fill(random.bits() as u8);
            }
            conceal(&mut scrambled, &holes);
            assert_eq!(shown, scrambled, "what a missing line held does not matter");
            let received: Vec<usize> = (0..height).filter(|line| !holes.contains(line)).collect();
            for x in 0..width {
                let (of_sent, of_shown) = (|line: usize| bytes[line * width + x], |line: usize| shown.bytes[line * width + x]);
                assert!(received.iter().all(|&line| of_sent(line) == of_shown(line)));
                for &hole in holes.iter().filter(|_| !received.is_empty()) {
                    let near = [received.iter().rfind(|&&line| line < hole), received.iter().find(|&&line| line > hole)];
                    let near: Vec<u8> = near.into_iter().flatten().map(|&line| of_sent(line)).collect();
                    assert!(near.iter().min() <= Some(&of_shown(hole)) && near.iter().max() >= Some(&of_shown(hole)));
                }
            }
        }
    }
}
