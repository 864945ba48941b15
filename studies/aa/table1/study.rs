//! AA Table 1: the parameters, and what follows from them.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: nothing is lost here; what a packet costs is computed from the table and beside it measured.
//! Source: AA 3.2.1, Table 1.

use super::efficiency;
use super::end_system::{ACK_BYTES, ACK_CHANNEL, BEST_PAIR, DATA_BYTES, DATA_CHANNEL, WINDOW, WORK, Who};
use super::intervals::SHORTENED;
use segstream_base::Bandwidth;
use segstream_lab::figure::TextTable;
use segstream_lab::measured::Measured;
use segstream_lab::study::{Study, StudyPoint};
use segstream_path::LossSpec;

/// The study.
pub(super) static STUDY: Study = Study {
    id: "aa/table1",
    title: "The parameters, and throughput without errors",
    source: "AA 3.2.1, Table 1",
    summary: "What a packet takes of a processor and of its channel. The processor is the slower of the two, and both work at the same \
              time: a DATA packet each 121.2 us, 8,251 packets/s, which is the throughput without errors that all efficiencies are parts \
              of. A window of 400 takes 48.5 ms; were processor and channel to take turns, it would take 81 ms, and the best T_normal \
              would not be the 40 ms that the text names.\n\n\
              Without loss each comes as near to it as its acknowledgments let it: an ACK takes 71.6 us of both processors.",
    parameters: &[
        ("DATA, ACK", "1024 and 32 bytes (stated; taken for whole packets)"),
        ("end systems", "70 us a packet and 0.05 us a byte, at both ends, for data and acknowledgments (stated)"),
        ("channels", "DATA 100 Mbit/s, ACK 10 Mbit/s (stated); the adapters of 155 Mbit/s play no part"),
        ("propagation", "none (stated: about 0)"),
        ("order of work", "acknowledgments go before data, at both ends (chosen: not stated)"),
        ("lower layer", "takes up to 4 packets that wait for the channel (chosen: the text has queues of no stated length)"),
    ],
    points,
    shortened: SHORTENED,
    tables,
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

const EVERYONE: [Who; 4] = [Who::AdaptiveAck(BEST_PAIR.0, BEST_PAIR.1), Who::Sscop(10), Who::Sscop(40), Who::Segstream];

fn points() -> Vec<StudyPoint> {
    let at = |who: Who| StudyPoint { curve: who.label(), x: f64::from(WINDOW), scenario: who.over(WINDOW, &LossSpec::None) };
    EVERYONE.map(at).to_vec()
}

fn tables(points: &Measured) -> Vec<TextTable> {
    let work_us = |bytes: u32| (WORK.0.as_secs_f64() + WORK.1.as_secs_f64() * f64::from(bytes)) * 1e6;
    let channel_us = |bytes: u32, channel: Bandwidth| f64::from(bytes) * 8e6 / channel.bits_per_second() as f64;
    let row = |name: &str, bytes: u32, channel: Bandwidth| {
        let (work, wire) = (work_us(bytes), channel_us(bytes, channel));
        vec![name.to_owned(), bytes.to_string(), format!("{work:.1}"), format!("{wire:.2}"), format!("{:.0}", 1e6 / work.max(wire))]
    };
    let costs = ["", "bytes", "processor (us)", "channel (us)", "packets/s"].map(str::to_owned).to_vec();
    let without_loss = EVERYONE.into_iter().filter_map(|who| {
        let result = points.at(&who.label(), f64::from(WINDOW))?;
        let per_second = efficiency::of(result).mean / result.scenario.reference_time_s();
        let told = efficiency::feedback_per_1000(result);
        Some(vec![who.label(), format!("{:.4}", efficiency::of(result).mean), format!("{per_second:.0}"), format!("{told:.2}")])
    });
    let columns = ["", "throughput efficiency", "packets/s", "feedback packets for 1000 of data"].map(str::to_owned).to_vec();
    vec![
        TextTable {
            title: "What a packet takes".to_owned(),
            columns: costs,
            rows: vec![row("DATA", DATA_BYTES, DATA_CHANNEL), row("ACK", ACK_BYTES, ACK_CHANNEL)],
        },
        TextTable { title: "Without loss, window 400".to_owned(), columns, rows: without_loss.collect() },
    ]
}
