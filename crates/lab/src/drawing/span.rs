//! What an axis covers, where its ticks stand, and how they are labelled.
//!
//! Called by `svg` for both axes, by `html` for the range a figure opens with, and by `heat_map` for its colours.
//!
//! Invariant: `low < high`, both finite, both positive on a logarithmic axis.

use crate::drawing::notes::{Showing, points, showing};
use crate::figure::{Axis, Figure, Scale};

/// How far beyond the points an axis reaches, as a share of what they cover.
const MARGIN: f64 = 0.05;
/// A linear axis begins at zero when the lowest value is below this share of the highest.
const ZERO_SHARE: f64 = 0.35;
/// A logarithmic axis follows an interval down to this share of its point; what is below is cut at the edge.
const INTERVAL_SHARE: f64 = 0.05;
/// Fewer decades than this are labelled at 1, 2 and 5 and not at whole decades alone.
const FEW_DECADES: f64 = 1.6;
/// Fewer decades than this have ticks at even steps.
const PART_OF_A_DECADE: f64 = 0.7;

/// What an axis covers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span {
    pub low: f64,
    pub high: f64,
    pub scale: Scale,
}

/// A stroke at an axis, long with a label and short without.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub value: f64,
    pub label: Option<String>,
}

impl Span {
    /// What the horizontal axis of `figure` covers.
    pub(super) fn across(figure: &Figure) -> Self {
        let values = points(figure).filter(|point| showing(figure, point) != Showing::LeftOut).map(|point| point.x);
        Self::of(&figure.x, values)
    }

    /// What the vertical axis of `figure` covers, intervals included.
    pub(super) fn up(figure: &Figure) -> Self {
        let log = figure.y.scale == Scale::Log;
        let ends = points(figure).filter(|point| showing(figure, point) != Showing::LeftOut).flat_map(|point| {
            let (low, high) = point.interval.unwrap_or((point.y, point.y));
            let low = if log { low.max(point.y * INTERVAL_SHARE) } else { low };
            [point.y, low, high]
        });
        Self::of(&figure.y, ends)
    }

    /// What `axis` covers when these values are to be shown.
    pub(super) fn of(axis: &Axis, values: impl Iterator<Item = f64>) -> Self {
        let scale = axis.scale;
        let fits = |value: &f64| value.is_finite() && (scale == Scale::Linear || *value > 0.0);
        if let Some((low, high)) = axis.range.filter(|(low, high)| fits(low) && fits(high) && low < high) {
            return Self { low, high, scale };
        }
        let ends = values.filter(fits).fold(None, |ends: Option<(f64, f64)>, value| {
            Some(ends.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
        });
        let (low, high) = match (ends, scale) {
            (None, Scale::Linear) => (0.0, 1.0),
            (None, Scale::Log) => (0.1, 10.0),
            (Some(ends), Scale::Linear) => linear_ends(ends),
            (Some(ends), Scale::Log) => log_ends(ends),
        };
        Self { low, high, scale }
    }

    /// Where a value stands: 0 at the low end, 1 at the high end, less than any other below a logarithmic axis.
    pub(super) fn part(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log if value > 0.0 => libm::log10(value / self.low) / self.decades(),
            Scale::Log => f64::NEG_INFINITY,
        }
    }

    fn decades(&self) -> f64 {
        libm::log10(self.high / self.low)
    }

    /// The ticks from low to high, at most about `most` of them with a label.
    pub(super) fn ticks(&self, most: usize) -> Vec<Tick> {
        let mut ticks = match self.scale {
            Scale::Log if self.decades() >= PART_OF_A_DECADE => self.log_ticks(most),
            _ => self.even_ticks(most),
        };
        ticks.retain(|tick| (-1e-9..=1.0 + 1e-9).contains(&self.part(tick.value)));
        ticks
    }

    fn even_ticks(&self, most: usize) -> Vec<Tick> {
        let rough = (self.high - self.low) / most.max(1) as f64;
        let mut power = libm::floor(libm::log10(rough));
        let mantissa = [1.0, 2.0, 5.0].into_iter().find(|&mantissa| mantissa * ten_to(power) >= rough * (1.0 - 1e-9));
        let mantissa = mantissa.unwrap_or_else(|| {
            power += 1.0;
            1.0
        });
        let parts = if mantissa == 2.0 { 4 } else { 5 };
        let step = mantissa * ten_to(power) / f64::from(parts);
        let first = libm::ceil(self.low / step - 1e-6);
        let count = (libm::floor(self.high / step + 1e-6) - first).clamp(0.0, 1000.0) as u32;
        let style = NumberStyle { largest: self.low.abs().max(self.high.abs()), power };
        let tick = |index: u32| {
            let steps = first + f64::from(index);
            let value = steps * step;
            Tick { value, label: (steps % f64::from(parts) == 0.0).then(|| style.label(value)) }
        };
        (0..=count).map(tick).collect()
    }

    fn log_ticks(&self, most: usize) -> Vec<Tick> {
        let (first, last) = (libm::floor(libm::log10(self.low)) as i32, libm::ceil(libm::log10(self.high)) as i32);
        let few = self.decades() < FEW_DECADES;
        let stride = ((last - first) as usize).div_ceil(most.max(1)).max(1) as i32;
        let mut ticks = Vec::new();
        for power in first..=last {
            for digit in 1..=9_u32 {
                let value = f64::from(digit) * ten_to(f64::from(power));
                let label = match digit {
                    1 | 2 | 5 if few => Some(plain_or_power(value, digit, power)),
                    1 if power.rem_euclid(stride) == 0 => Some(power_of_ten(power)),
                    _ => None,
                };
                if digit == 1 || stride == 1 {
                    ticks.push(Tick { value, label });
                }
            }
        }
        ticks
    }
}

/// The ends of a linear axis around what its points cover.
fn linear_ends((low, high): (f64, f64)) -> (f64, f64) {
    let covered = high - low;
    // Values that differ by rounding alone are the same value.
    if covered <= high.abs().max(low.abs()) * 1e-12 {
        let around = if low == 0.0 { 1.0 } else { low.abs() * 0.1 };
        return (low - around, high + around);
    }
    if !covered.is_finite() {
        return (low / 2.0, high / 2.0);
    }
    let margin = covered * MARGIN;
    let from_zero = low >= 0.0 && low < high * ZERO_SHARE;
    let to_zero = high <= 0.0 && -high < -low * ZERO_SHARE;
    (if from_zero { 0.0 } else { low - margin }, if to_zero { 0.0 } else { high + margin })
}

/// The ends of a logarithmic axis around what its points cover.
fn log_ends((low, high): (f64, f64)) -> (f64, f64) {
    let decades = libm::log10(high / low);
    let margin = if decades < 1e-9 { 0.5 } else { decades.min(300.0) * MARGIN };
    ((low / ten_to(margin)).max(f64::MIN_POSITIVE), (high * ten_to(margin)).min(f64::MAX))
}

fn ten_to(power: f64) -> f64 {
    libm::pow(10.0, power)
}

/// How the numbers of one linear axis are written.
struct NumberStyle {
    /// The largest size of a number on the axis.
    largest: f64,
    /// The power of ten of a step between labels.
    power: f64,
}

impl NumberStyle {
    /// A label: `0.25`, `12 000`, or `2.5×10⁶` when all numbers of the axis are large or small.
    fn label(&self, value: f64) -> String {
        let decimals = (-self.power).max(0.0);
        if value.abs() < ten_to(self.power) * 1e-6 {
            return "0".to_owned();
        }
        if self.largest < 1e6 && decimals <= 4.0 {
            return grouped(&format!("{value:.0$}", decimals as usize));
        }
        let power = libm::floor(libm::log10(self.largest) + 1e-9);
        let decimals = (power - self.power).clamp(0.0, 15.0) as usize;
        format!("{}\u{d7}{}", grouped(&format!("{:.decimals$}", value / ten_to(power))), power_of_ten(power as i32))
    }
}

/// With a true minus sign, and thin spaces between thousands when there are more than four digits.
fn grouped(number: &str) -> String {
    let (sign, digits) = number.strip_prefix('-').map_or(("", number), |digits| ("\u{2212}", digits));
    let (whole, rest) = digits.find('.').map_or((digits, ""), |at| digits.split_at(at));
    let mut text = String::from(sign);
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && whole.len() > 4 && (whole.len() - at) % 3 == 0 {
            text.push('\u{2009}');
        }
        text.push(digit);
    }
    text + rest
}

/// `200` for numbers people read at a glance, else `2×10⁻⁵`.
fn plain_or_power(value: f64, digit: u32, power: i32) -> String {
    match power {
        0..=5 => grouped(&format!("{value:.0}")),
        -3..=-1 => format!("{value:.0$}", power.unsigned_abs() as usize),
        _ if digit == 1 => power_of_ten(power),
        _ => format!("{digit}\u{d7}{}", power_of_ten(power)),
    }
}

/// `10⁻⁵`.
fn power_of_ten(power: i32) -> String {
    const RAISED: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let raised = |letter: char| letter.to_digit(10).map_or('⁻', |digit| RAISED[digit as usize]);
    format!("10{}", power.to_string().chars().map(raised).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(low: f64, high: f64, scale: Scale) -> Span {
        Span { low, high, scale }
    }

    fn labels(span: &Span, most: usize) -> Vec<String> {
        span.ticks(most).into_iter().filter_map(|tick| tick.label).collect()
    }

    fn covering(values: &[f64], scale: Scale) -> Span {
        Span::of(&Axis { label: String::new(), scale, range: None }, values.iter().copied())
    }

    #[test]
    fn decades_are_labelled_as_raised_powers_with_short_strokes_between() {
        let axis = span(1e-6, 1e-2, Scale::Log);
        assert_eq!(labels(&axis, 8), ["10⁻⁶", "10⁻⁵", "10⁻⁴", "10⁻³", "10⁻²"]);
        assert_eq!(axis.ticks(8).len(), 4 * 9 + 1);
        assert_eq!(labels(&span(1e-12, 1e12, Scale::Log), 8).len(), 9);
    }

    #[test]
    fn a_short_logarithmic_axis_has_labels_too() {
        assert_eq!(labels(&span(60.0, 400.0, Scale::Log), 8), ["100", "200"]);
        assert_eq!(labels(&span(60.0, 100.0, Scale::Log), 5), ["60", "70", "80", "90", "100"]);
        assert_eq!(labels(&span(2e-5, 3e-4, Scale::Log), 5), ["2×10⁻⁵", "5×10⁻⁵", "10⁻⁴", "2×10⁻⁴"]);
    }

    #[test]
    fn even_steps_are_labelled_with_the_decimals_they_need() {
        assert_eq!(labels(&span(0.99, 1.0, Scale::Linear), 5), ["0.990", "0.992", "0.994", "0.996", "0.998", "1.000"]);
        assert_eq!(labels(&span(-10.0, 10.0, Scale::Linear), 4), ["\u{2212}10", "\u{2212}5", "0", "5", "10"]);
        assert_eq!(labels(&span(0.0, 40_000.0, Scale::Linear), 2), ["0", "20\u{2009}000", "40\u{2009}000"]);
        assert_eq!(labels(&span(0.0, 2e7, Scale::Linear), 2), ["0", "1×10⁷", "2×10⁷"]);
        assert_eq!(labels(&span(0.0, 1e-6, Scale::Linear), 2), ["0", "0.5×10⁻⁶", "1.0×10⁻⁶"]);
    }

    #[test]
    fn an_axis_of_nothing_of_one_value_or_of_a_nonsense_range_still_has_two_ends() {
        for scale in [Scale::Linear, Scale::Log] {
            for values in [&[][..], &[5.0], &[0.0], &[-3.0, -3.0], &[f64::NAN, f64::INFINITY], &[1e-300, 1e300], &[f64::MIN, f64::MAX]] {
                let axis = covering(values, scale);
                assert!(axis.low < axis.high && axis.low.is_finite() && axis.high.is_finite(), "{values:?} {axis:?}");
                assert!(axis.ticks(6).len() < 2000);
            }
            let backwards = Axis { label: String::new(), scale, range: Some((2.0, 1.0)) };
            assert!(Span::of(&backwards, [3.0].into_iter()).high > 2.0);
        }
    }

    #[test]
    fn an_axis_begins_at_zero_only_when_its_values_come_near() {
        assert_eq!(covering(&[1.0, 10.0], Scale::Linear).low, 0.0);
        assert!(covering(&[9.0, 10.0], Scale::Linear).low > 8.0);
    }
}
