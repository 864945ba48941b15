//! The picture of a heat map: which cells and marks are drawn, that numbers can be read, and that texts stay texts.

use super::*;
use crate::figure::Axis;
use crate::heat_map::Side;

fn map(columns: usize, rows: usize, cell: impl Fn(usize, usize) -> Option<f64>) -> HeatMap {
    let numbers: Vec<f64> = (0..columns).map(|at| at as f64).collect();
    let sides = (Side::numbers("across", &numbers), Side::names("up", (0..rows).map(|row| format!("row {row}"))));
    HeatMap::of(("made-up", "Made up"), sides, Axis { label: "delay (ms)".into(), scale: Scale::Linear, range: None }, cell)
}

fn hints(drawn: &str) -> usize {
    drawn.matches("<title>").count()
}

#[test]
fn every_number_can_be_read_on_its_colour() {
    for at in 0..=1000 {
        let ground = of_scale(f64::from(at) / 1000.0);
        assert!(contrast(ground, readable(ground)) >= 4.5, "{at}: {ground:?}");
    }
    for paper in [Paper::White, Paper::Dark] {
        let [sheet, ink, soft, ground] = paper.colours();
        for (letters, on) in [(ink, sheet), (soft, sheet), (soft, ground)] {
            assert!(contrast(letters, on) >= 4.5, "{paper:?}: {letters:?} on {on:?}");
        }
    }
}

#[test]
fn the_scale_grows_lighter_all_the_way() {
    let lightness: Vec<f64> = (0..=100).map(|at| luminance(of_scale(f64::from(at) / 100.0))).collect();
    assert!(lightness.windows(2).all(|pair| pair[0] < pair[1]), "{lightness:?}");
    assert_eq!((of_scale(-1.0), of_scale(f64::NAN), of_scale(2.0)), (of_scale(0.0), of_scale(0.0), of_scale(1.0)));
}

#[test]
fn every_cell_has_its_place_and_a_missing_one_says_so() {
    let made = map(4, 3, |column, row| match (column, row) {
        (0, 0) => None,
        (1, 0) => Some(f64::NAN),
        _ => Some((10 * row + column) as f64 + 0.25),
    });
    let drawn = heat_map_svg(&made, Paper::White);
    assert_eq!((hints(&drawn), drawn.matches(": missing</title>").count()), (12, 2));
    assert!(drawn.contains(MISSING) && drawn.contains("23.2") && !drawn.contains("NaN"));
    assert!(!heat_map_svg(&map(2, 2, |_, _| Some(1.0)), Paper::White).contains(MISSING));
}

#[test]
fn a_mark_is_outlined_and_named_in_the_legend() {
    let made = map(3, 3, |column, row| Some((3 * row + column) as f64));
    let outlines = |made: &HeatMap| heat_map_svg(made, Paper::White).matches("stroke-width=\"40\"").count();
    assert_eq!(outlines(&made), 0);
    let marked = made.marking_lowest("shortest delay").marking_highest("longest delay");
    assert_eq!(outlines(&marked), 2 + 2, "each at its cell and in the legend");
    assert!(heat_map_svg(&marked, Paper::White).contains("across: 0\nup: row 0\ndelay (ms): 0\nshortest delay</title>"));
    let mut outside = marked;
    outside.marks[0].column = 99;
    assert_eq!(outlines(&outside), 1 + 2);
}

#[test]
fn names_go_down_and_numbers_go_up() {
    let mut made = map(1, 3, |_, row| Some(row as f64));
    let top_of = |made: &HeatMap, row: usize| Sheet::of(made, Paper::White).cell(0, row).0.1;
    assert!(top_of(&made, 0) < top_of(&made, 2));
    made.y = Side::numbers("up", &[1.0, 2.0, 3.0]);
    assert!(top_of(&made, 0) > top_of(&made, 2));
}

#[test]
fn the_sheet_grows_until_a_number_fits_into_its_cell() {
    let (few, many) = (map(3, 2, |_, _| Some(12345.0)), map(40, 30, |_, _| Some(12345.0)));
    assert_eq!(Sheet::of(&few, Paper::White).width, SHEET);
    let sheet = Sheet::of(&many, Paper::White);
    let (low, high) = sheet.cell(0, 0);
    assert!(sheet.width > SHEET && high.0 - low.0 >= width("12345", WORD.0));
    assert!(sheet.bar.right < sheet.width && sheet.frame.bottom < sheet.height);
}

#[test]
fn what_is_beyond_the_colours_is_said() {
    let mut made = map(2, 2, |column, row| Some((2 * row + column) as f64));
    let said = |made: &HeatMap| Sheet::of(made, Paper::White).notes;
    assert!(said(&made).is_empty());
    made.value.range = Some((1.0, 2.0));
    assert_eq!(said(&made).len(), 1);
    (made.value.range, made.value.scale) = (None, Scale::Log);
    assert!(said(&made)[0].starts_with("zero or less"));
}

#[test]
fn texts_are_escaped_and_the_same_map_is_the_same_bytes() {
    let mut made = map(1, 1, |_, _| Some(1.0)).marking_lowest("</svg><script>");
    made.title = "</svg><script>&\u{1}".into();
    (made.x.label, made.value.label) = (made.title.clone(), made.title.clone());
    for paper in [Paper::White, Paper::Dark] {
        let drawn = heat_map_svg(&made, paper);
        assert!(!drawn.contains("<script") && !drawn.contains('\u{1}') && drawn.matches("</svg>").count() == 1);
        assert_eq!(drawn, heat_map_svg(&made.clone(), paper));
    }
    assert_ne!(heat_map_svg(&made, Paper::White), heat_map_svg(&made, Paper::Dark));
}

#[test]
fn a_map_of_nothing_is_drawn() {
    for (columns, rows) in [(0, 0), (0, 3), (3, 0)] {
        let drawn = heat_map_svg(&map(columns, rows, |_, _| Some(1.0)).marking_lowest("best"), Paper::White);
        assert!(drawn.trim_end().ends_with("</svg>") && !drawn.contains("NaN"));
    }
}

#[test]
fn numbers_have_three_digits_that_count() {
    let cases = [(94.26, "94.3"), (0.9965, "0.997"), (9.996, "10.0"), (0.04123, "0.0412"), (12_345.6, "12346"), (3.0, "3"), (0.0, "0")];
    for (value, text) in cases.into_iter().chain([(1.23e-5, "1.2e\u{2212}5"), (-2.5, "\u{2212}2.50"), (5e6, "5.0e6")]) {
        assert_eq!(short(value), text);
    }
}
