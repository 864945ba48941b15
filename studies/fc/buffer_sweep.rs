//! A receiver's buffer smaller than its window: the points behind FC Figs. 17, 18 and 19.
//!
//! Called by the studies of the three figures. Curves are called `<who> <what> b<B>`, such as
//! `sstp-ideal soft-lazy b7`; x is the loss probability.
//!
//! Invariant: what two figures show of the same setting is the same scenario, so it is run once.
//! Source: FC 4.3.1 to 4.3.3.

use crate::black_box::{Who, random};
use crate::curves::{self, Look, Measure, SHADES};
use crate::standings::{self, Pair};
use segstream_lab::figure::{Axis, Curve, Figure, Line, Marker, Scale, TextTable};
use segstream_lab::measured::Measured;
use segstream_lab::point::PointResult;
use segstream_lab::scenario::Scenario;
use segstream_lab::standing::{Quality, Standing};
use segstream_lab::study::StudyPoint;
use segstream_path::LossSpec;
use segstream_schemes::sstp::{self, Acknowledgment, Discard, Repeats};

/// The window: 2.5 w_a = 35.8 segments.
pub(super) const WINDOW: u32 = 36;
/// The buffers in segments: 0.25, 0.5, 1 and 2.5 w_a, that is 3.6, 7.2, 14.3 and 35.8.
pub(super) const BUFFERS: [u32; 4] = [4, 7, 14, WINDOW];
/// Those smaller than the window.
pub(super) const SMALL_BUFFERS: [u32; 3] = [4, 7, 14];
/// The loss probabilities.
pub(super) const PROBABILITIES: [f64; 9] = [1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1];
/// Those the paper names.
pub(super) const DECADES: [f64; 5] = [1e-5, 1e-4, 1e-3, 1e-2, 1e-1];

/// What is measured at each buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    /// SSTP, ideal feedback, that grants no more than its buffer: W = B.
    Narrow,
    /// SSTP, ideal feedback, W = 36, hard ACK, which "discards any segments" (FC 4.3.1): decided at the end of each group.
    Hard,
    /// The same with soft ACK, whose algorithm is written for each packet, a discarded segment asked for when it comes to be the next.
    SoftLazy,
    /// The same with soft ACK, a discarded segment asked for at once.
    SoftEager,
    /// One of the three read otherwise.
    Read(Acknowledgment, Reading),
    /// SSTP with everything on, W = 36, hard ACK.
    FullHard,
    /// SSTP with everything on, soft ACK as `SoftLazy`.
    FullSoftLazy,
    /// The flagship, granting the same window with the same buffer.
    Segstream,
}

/// When it is decided what the buffer holds, and whether repeats interrupt a group: three readings of FC 4.3.1 and EC 4.2. The
/// fourth, by packet without pre-emption, gives what by group without it gives, but for soft ACK that asks at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// At each packet.
    Packet,
    /// At the end of each group.
    Group,
    /// The same, where repeats wait until a group has left.
    GroupWithoutPreemption,
}

/// Where a reading other than the usual stands beside it.
pub(super) const READ_OTHERWISE: [Setting; 6] = [
    Setting::Read(Acknowledgment::Hard, Reading::Packet),
    Setting::Read(Acknowledgment::Hard, Reading::GroupWithoutPreemption),
    Setting::Read(Acknowledgment::SoftLazy, Reading::Group),
    Setting::Read(Acknowledgment::SoftLazy, Reading::GroupWithoutPreemption),
    Setting::Read(Acknowledgment::SoftEager, Reading::Group),
    Setting::Read(Acknowledgment::SoftEager, Reading::GroupWithoutPreemption),
];

impl Setting {
    const fn who(self) -> Who {
        match self {
            Self::Narrow | Self::Hard | Self::SoftLazy | Self::SoftEager | Self::Read(..) => Who::SstpIdeal,
            Self::FullHard | Self::FullSoftLazy => Who::SstpFull,
            Self::Segstream => Who::Segstream,
        }
    }

    const fn what(self) -> &'static str {
        match self {
            Self::Narrow => " w=b",
            Self::Hard => " hard by group",
            Self::FullHard => " hard",
            Self::Read(Acknowledgment::Hard, Reading::Packet) => " hard by packet",
            Self::Read(Acknowledgment::Hard, Reading::Group) => " hard by group again",
            Self::Read(Acknowledgment::Hard, Reading::GroupWithoutPreemption) => " hard by group, repeats wait",
            Self::Read(Acknowledgment::SoftLazy, Reading::Packet) => " soft-lazy by packet again",
            Self::Read(Acknowledgment::SoftLazy, Reading::Group) => " soft-lazy by group",
            Self::Read(Acknowledgment::SoftLazy, Reading::GroupWithoutPreemption) => " soft-lazy by group, repeats wait",
            Self::Read(Acknowledgment::SoftEager, Reading::Packet) => " soft-eager by packet again",
            Self::Read(Acknowledgment::SoftEager, Reading::Group) => " soft-eager by group",
            Self::Read(Acknowledgment::SoftEager, Reading::GroupWithoutPreemption) => " soft-eager by group, repeats wait",
            Self::SoftLazy | Self::FullSoftLazy => " soft-lazy",
            Self::SoftEager => " soft-eager",
            Self::Segstream => "",
        }
    }

    /// How it is called in a legend.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Narrow => "W = B",
            Self::Hard => "hard ACK",
            Self::SoftLazy => "soft ACK",
            Self::SoftEager => "soft ACK, asks at once",
            Self::Read(..) => self.what().trim_ascii_start(),
            Self::FullHard => "SSTP full, hard ACK",
            Self::FullSoftLazy => "SSTP full, soft ACK",
            Self::Segstream => "Segstream",
        }
    }

    /// The name of its curve at a buffer.
    pub(super) fn curve(self, buffer: u32) -> String {
        format!("{}{} b{buffer}", self.who().name(), self.what())
    }

    /// What is run.
    pub(super) fn scenario(self, buffer: u32, loss: &LossSpec) -> Scenario {
        let (ack, reading) = self.read();
        let window = if self == Self::Narrow { buffer } else { WINDOW };
        // A buffer of the whole window is left out, so that it is the scenario of every other figure.
        let buffer = (buffer < window).then_some(buffer);
        let discard = if reading == Reading::Packet || buffer.is_none() { Discard::Packet } else { Discard::Group };
        let repeats = if reading == Reading::GroupWithoutPreemption { Repeats::Wait } else { Repeats::Preempt };
        self.who()
            .over(loss)
            .with(|it| {
                it.workload.window = window;
                it.workload.buffer = buffer;
            })
            .with_settings(|it: &mut sstp::Settings| (it.ack, it.discard, it.repeats) = (ack, discard, repeats))
    }

    /// The acknowledgment, and how it is read.
    const fn read(self) -> (Acknowledgment, Reading) {
        match self {
            Self::SoftLazy | Self::FullSoftLazy => (Acknowledgment::SoftLazy, Reading::Packet),
            Self::SoftEager => (Acknowledgment::SoftEager, Reading::Packet),
            Self::Hard => (Acknowledgment::Hard, Reading::Group),
            Self::Narrow | Self::FullHard | Self::Segstream => (Acknowledgment::Hard, Reading::Packet),
            Self::Read(ack, reading) => (ack, reading),
        }
    }

    /// Its points.
    pub(super) fn points(self, buffers: &[u32], probabilities: &[f64]) -> Vec<StudyPoint> {
        let at = |buffer: u32, p: f64| StudyPoint { curve: self.curve(buffer), x: p, scenario: self.scenario(buffer, &random(p)) };
        buffers.iter().flat_map(|buffer| probabilities.iter().map(move |p| at(*buffer, *p))).collect()
    }

    /// Its result.
    pub(super) fn at(self, points: &Measured, buffer: u32, p: f64) -> Option<&PointResult> {
        points.at(&self.curve(buffer), p)
    }

    /// Its throughput efficiency.
    pub(super) fn efficiency(self, points: &Measured, buffer: u32, p: f64) -> Option<f64> {
        Some(self.at(points, buffer, p)?.throughput_efficiency().mean)
    }

    /// Its largest delay in milliseconds.
    pub(super) fn delay_ms_max(self, points: &Measured, buffer: u32, p: f64) -> Option<f64> {
        Some(self.at(points, buffer, p)?.delay_ms_max().value)
    }

    /// Its curves, one a buffer, the colour telling the buffer.
    pub(super) fn curves(self, points: &Measured, buffers: &[u32], measure: Measure, marker: Marker, line: Line) -> Vec<Curve> {
        let curve = |buffer: &u32| {
            let shade = BUFFERS.iter().position(|other| other == buffer).unwrap_or_default();
            let look = Look { colour: SHADES[shade % SHADES.len()], marker, line };
            curves::measured(points, &self.curve(*buffer), &format!("{}, B = {buffer}", self.label()), measure, look)
        };
        buffers.iter().map(curve).collect()
    }
}

/// The points that all three figures have: hard ACK, SSTP with everything on, and the flagship.
pub(super) fn common() -> Vec<StudyPoint> {
    [Setting::Hard, Setting::FullHard, Setting::Segstream].iter().flat_map(|setting| setting.points(&BUFFERS, &PROBABILITIES)).collect()
}

/// The flagship beside SSTP with everything on and the same buffer, with hard ACK.
pub(super) fn standings(points: &Measured, quality: Quality) -> Vec<Standing> {
    let pairs = BUFFERS.map(|buffer| Pair {
        ours: Setting::Segstream.curve(buffer),
        theirs: Setting::FullHard.curve(buffer),
        curve: format!("B = {buffer}, p"),
    });
    let value = if quality == Quality::Throughput { standings::efficiency } else { standings::delay_max };
    standings::of(points, "SSTP, full, hard ACK", quality, &pairs, value)
}

/// The points of the readings that are not the usual ones.
pub(super) fn otherwise() -> Vec<StudyPoint> {
    READ_OTHERWISE.iter().flat_map(|setting| setting.points(&SMALL_BUFFERS, &DECADES)).collect()
}

/// Every reading at a buffer of 0.5 w_a: the colour tells the acknowledgment, the line the reading.
pub(super) fn figure_of_readings(id: &str, points: &Measured, measure: Measure) -> Figure {
    const BUFFER: u32 = 7;
    let all = [Setting::Hard, Setting::SoftLazy, Setting::SoftEager].into_iter().chain(READ_OTHERWISE);
    let curves = all.map(|setting| {
        let (ack, reading) = setting.read();
        let (colour, marker) = match ack {
            Acknowledgment::Hard => (SHADES[0], Marker::Circle),
            Acknowledgment::SoftLazy => (SHADES[1], Marker::Square),
            Acknowledgment::SoftEager => (SHADES[2], Marker::Triangle),
        };
        let line = match reading {
            Reading::Packet => Line::Dotted,
            Reading::Group => Line::Solid,
            Reading::GroupWithoutPreemption => Line::Dashed,
        };
        let how = setting.what().trim_ascii_start();
        curves::measured(points, &setting.curve(BUFFER), how, measure, Look { colour, marker, line })
    });
    figure(id, "Discard by packet (dotted) or by group, repeats that wait (dashed); B = 7, window 36", measure, curves.collect())
}

/// What every reading gives at each buffer, by `of`, over the decades.
pub(super) fn table_of_readings(title: &str, of: impl Fn(Setting, u32, f64) -> Option<String>) -> TextTable {
    let all = [Setting::Hard, Setting::SoftLazy, Setting::SoftEager].into_iter().chain(READ_OTHERWISE);
    let row = |setting: Setting| {
        let cell = |p: f64| SMALL_BUFFERS.map(|buffer| of(setting, buffer, p).unwrap_or_default()).join(" / ");
        std::iter::once(setting.what().trim_ascii_start().to_owned()).chain(DECADES.map(cell)).collect()
    };
    let columns = std::iter::once("B = 4 / 7 / 14".to_owned()).chain(DECADES.map(|p| format!("{p:e}"))).collect();
    TextTable { title: title.to_owned(), columns, rows: all.map(row).collect() }
}

/// The points of hard against soft ACK, Figs. 18 and 19.
pub(super) fn hard_and_soft() -> Vec<StudyPoint> {
    let soft = [Setting::SoftLazy.points(&BUFFERS, &PROBABILITIES), Setting::SoftEager.points(&SMALL_BUFFERS, &DECADES)];
    [common(), soft.concat(), otherwise()].concat()
}

/// Hard ACK as lines, both forms of soft ACK as signs.
pub(super) fn figure_of_soft(id: &str, points: &Measured, measure: Measure) -> Figure {
    let curves = [
        Setting::Hard.curves(points, &BUFFERS, measure, Marker::None, Line::Solid),
        Setting::SoftLazy.curves(points, &BUFFERS, measure, Marker::Square, Line::None),
        Setting::SoftEager.curves(points, &SMALL_BUFFERS, measure, Marker::Triangle, Line::None),
    ];
    figure(id, "Hard ACK (lines) and soft ACK (signs), window 36, ideal feedback", measure, curves.concat())
}

/// Everything on, and the flagship, at the same buffers.
pub(super) fn figure_of_full(id: &str, points: &Measured, measure: Measure) -> Figure {
    let curves = [
        Setting::Hard.curves(points, &BUFFERS, measure, Marker::None, Line::Solid),
        Setting::FullHard.curves(points, &BUFFERS, measure, Marker::Diamond, Line::Dotted),
        Setting::Segstream.curves(points, &BUFFERS, measure, Marker::Circle, Line::Dashed),
    ];
    figure(id, "With control on the path: SSTP with hard ACK, and Segstream, at the same buffers", measure, curves.concat())
}

/// A picture over the loss probability.
pub(super) fn figure(id: &str, title: &str, measure: Measure, curves: Vec<Curve>) -> Figure {
    let (scale, range) = match measure {
        Measure::ThroughputEfficiency => (Scale::Linear, Some((0.0, 1.0))),
        Measure::DelayMean | Measure::DelayMax => (Scale::Log, None),
    };
    Figure {
        id: id.to_owned(),
        title: title.to_owned(),
        x: Axis { label: "packet loss probability".to_owned(), scale: Scale::Log, range: None },
        y: Axis { label: measure.label().to_owned(), scale, range },
        curves,
    }
}

/// Values of several buffers in a row, for people: `0.547 / 0.588 / 0.940`.
pub(super) fn listed(values: &[f64], digits: usize) -> String {
    values.iter().map(|value| format!("{value:.digits$}")).collect::<Vec<_>>().join(" / ")
}

/// What `of` gives at each of the small buffers.
pub(super) fn over_buffers(of: impl Fn(u32) -> Option<f64>) -> Option<Vec<f64>> {
    SMALL_BUFFERS.iter().map(|buffer| of(*buffer)).collect()
}
