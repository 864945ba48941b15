//! What XT says of Figure 4.
//!
//! Called by the study.
//!
//! Invariant: a delay without a steady state is longer than any other.

use super::{FIVE, Finding, Measured, Part, RATES, READ_AT, READINGS, SIX, Who, delay};
use crate::xt::tandem::Reading;
use segstream_lab::figure::TextTable;

/// "Low" and "high" throughput, which the paper does not put a number to, in messages a slot.
const LOW: f64 = 0.06;
const HIGH: f64 = 0.11;
/// What two delays that are "almost the same" may differ by.
const ALMOST: f64 = 0.03;

fn of(measured: &Measured, who: Who) -> Option<Vec<f64>> {
    delay::row(measured, &who.name(), &RATES)
}

/// The delays of the six over the throughput.
fn six(measured: &Measured) -> Option<Vec<Vec<f64>>> {
    SIX.into_iter().map(|who| of(measured, who)).collect()
}

/// The place of the first throughput that is high.
fn high() -> usize {
    RATES.iter().position(|rate| *rate >= HIGH).unwrap_or(RATES.len())
}

/// Of those delays the least and the largest.
fn ends(delays: &[Vec<f64>], at: usize) -> (f64, f64) {
    let all = delays.iter().map(|row| row[at]);
    (all.clone().fold(f64::INFINITY, f64::min), all.fold(0.0, f64::max))
}

pub(super) fn the_same_at_low_throughput(measured: &Measured) -> Option<Finding> {
    let delays = six(measured)?;
    let low = RATES.iter().filter(|rate| **rate <= LOW).count();
    let spreads: Vec<f64> = (0..low).map(|at| ends(&delays, at)).map(|(least, most)| most / least - 1.0).collect();
    let most = spreads.iter().copied().fold(0.0, f64::max);
    let parts = [Part::point("at the lowest throughput", spreads[0] <= ALMOST), Part::also("up to 0.06", most <= ALMOST)];
    let ((first, first_most), (last, last_most)) = (ends(&delays, 0), ends(&delays, low - 1));
    let measured = format!(
        "{} to {} slots at 0.02 messages/slot, {} to {} at {LOW}; at most {:.1} % apart up to there",
        delay::text(first),
        delay::text(first_most),
        delay::text(last),
        delay::text(last_most),
        100.0 * most
    );
    Some(Finding::of(parts, measured))
}

pub(super) fn discarding_makes_senders_equal(measured: &Measured) -> Option<Finding> {
    let (mut same, mut runs) = (0, 0);
    for rate in RATES {
        let (gbn, sr) = (measured.tandem_at(&SIX[0].name(), rate)?, measured.tandem_at(&SIX[3].name(), rate)?);
        same += gbn.outcomes.iter().zip(&sr.outcomes).filter(|(gbn, sr)| gbn == sr).count();
        runs += gbn.outcomes.len();
    }
    let parts = [Part::point("in some runs", same > 0), Part::also("in every run", same == runs)];
    Some(Finding::of(parts, format!("every count the same in {same} of {runs} runs")))
}

pub(super) fn smallest_and_largest(measured: &Measured) -> Option<Finding> {
    let delays = six(measured)?;
    let places = high()..RATES.len();
    let smallest = places.clone().filter(|at| delays[5][*at] <= ends(&delays, *at).0).count();
    let largest = places.clone().filter(|at| delays[0][*at] >= ends(&delays, *at).1 && delays[3][*at] >= ends(&delays, *at).1).count();
    let mut others = Vec::new();
    let mut everywhere = true;
    for reading in &READINGS[1..] {
        let (least, most) = ends_by_reading(measured, reading)?;
        everywhere &= least == places.len() && most == places.len();
        others.push(format!("{} {least} and {most}", reading.name));
    }
    let parts = [
        Part::point("2.3 the smallest at most throughputs", 2 * smallest > places.len()),
        Part::also("2.3 the smallest at all, and 1.1 and 2.1 the largest", smallest == places.len() && largest == places.len()),
        Part::also("so whatever is first at LINK1, and with its room of 10", everywhere),
    ];
    let tail = |at: usize| delay::list(&delays[at][places.clone()]);
    let measured = format!(
        "from {HIGH} to 0.15 messages/slot: 2.3 {}; 2.2 {}; 1.2 {}; 1.3 {}; 1.1 and 2.1 {}. 2.3 is the smallest at {smallest} of {} \
         throughputs, 1.1 and 2.1 are the largest at {largest}; {}",
        tail(5),
        tail(4),
        tail(1),
        tail(2),
        tail(0),
        places.len(),
        others.join(", ")
    );
    Some(Finding::of(parts, measured).because("None: the backlog grows for as long as the run lasts."))
}

pub(super) fn crossing(measured: &Measured) -> Option<Finding> {
    let (late, early) = (of(measured, SIX[1])?, of(measured, SIX[2])?);
    let worse = |at: usize| early[at] > late[at] || early[at].is_infinite();
    let beyond = (0..RATES.len()).rev().take_while(|at| worse(*at)).count();
    let from = RATES.len() - beyond;
    // Below it: nowhere worse by more than a per cent, and better somewhere.
    let never_worse = (0..from).all(|at| early[at] <= 1.01 * late[at]);
    let better = (0..from).filter(|at| early[*at] < late[*at]).count();
    let parts = [Part::point("worse beyond a crossing", beyond > 0), Part::also("better below it", never_worse && better > 0)];
    let crossed = RATES.get(from).map_or_else(|| "never".to_owned(), |rate| format!("from {rate:.2} messages/slot on"));
    let tail = from.saturating_sub(3)..RATES.len();
    let measured = format!(
        "1.3 is worse than 1.2 {crossed}, and better at {better} of the {from} throughputs below; from {:.2} on: 1.3 {}, 1.2 {}",
        RATES[tail.start.min(RATES.len() - 1)],
        delay::list(&early[tail.clone()]),
        delay::list(&late[tail])
    );
    Some(Finding::of(parts, measured))
}

pub(super) fn selective_is_better(measured: &Measured) -> Option<Finding> {
    let (mut all, mut never_worse, mut told) = (true, true, Vec::new());
    for (selective, back) in [(SIX[4], SIX[1]), (SIX[5], SIX[2])] {
        let (ours, theirs) = (of(measured, selective)?, of(measured, back)?);
        let better = (high()..RATES.len()).filter(|at| ours[*at] < theirs[*at]).count();
        all &= better == RATES.len() - high();
        never_worse &= ours.iter().zip(&theirs).all(|(ours, theirs)| *ours <= (1.0 + ALMOST) * theirs);
        told.push(format!(
            "{} is better than {} at {better} of {} throughputs from {HIGH} on ({} against {} at 0.14)",
            selective.number(),
            back.number(),
            RATES.len() - high(),
            delay::text(ours[RATES.len() - 2]),
            delay::text(theirs[RATES.len() - 2])
        ));
    }
    let parts = [Part::point("better at high throughput", all), Part::also("nowhere more than 3 % worse", never_worse)];
    let below = if never_worse { "at none more than 3 % worse" } else { "at some more than 3 % worse" };
    Some(Finding::of(parts, format!("{}; {below}", told.join("; "))))
}

pub(super) fn discarding_is_much_worse(measured: &Measured) -> Option<Finding> {
    let (discards, stores) = (of(measured, SIX[0])?, of(measured, SIX[2])?);
    let much = (high()..RATES.len()).all(|at| discards[at] > 1.2 * stores[at]);
    let again = |who: Who, rate: f64| {
        let sum = |count| delay::total(measured, &who.name(), rate, count).map(|of| of as f64);
        Some(1e3 * sum(|outcome| outcome.packets_retransmitted)? / sum(|outcome| outcome.messages_delivered)?)
    };
    // Where both have a steady state; and the throughput of Table 4.
    let steady = RATES.iter().zip(&discards).filter(|(_, delay)| delay.is_finite()).map(|(rate, _)| *rate).next_back()?;
    let (ours, theirs) = (again(SIX[0], steady)?, again(SIX[2], steady)?);
    let (ours_later, theirs_later) = (again(SIX[0], 0.12)?, again(SIX[2], 0.12)?);
    let as_many = |ours: f64, theirs: f64| (0.8..=1.25).contains(&(ours / theirs));
    let parts = [
        Part::point("much worse", much),
        // Why a point: the sentence is that they are worse in spite of it.
        Part::point("as many sent again where they are", as_many(ours_later, theirs_later)),
        Part::also("as many sent again where both have a steady state", as_many(ours, theirs)),
    ];
    let from = RATES.iter().find(|rate| **rate > steady).copied().unwrap_or(steady);
    let measured = format!(
        "1.1 has no steady state from {from:.2} messages/slot on, 1.3 has one at {} of {} throughputs; sent again for each thousand \
         messages: {ours:.1} (1.1) and {theirs:.1} (1.3) at {steady:.2}, {ours_later:.0} and {theirs_later:.0} at 0.12",
        stores.iter().filter(|delay| delay.is_finite()).count(),
        RATES.len()
    );
    Some(Finding::of(parts, measured).because(
        "Where both have a steady state a loss costs about as many packets; without one, 1.1 repairs what its own repairs have \
         dropped.",
    ))
}

/// At how many high throughputs 2.3 is the smallest of the five, and 1.1 the largest, in a reading of LINK1.
fn ends_by_reading(measured: &Measured, reading: &Reading) -> Option<(usize, usize)> {
    let high = &READ_AT[1..];
    let delays: Vec<Vec<f64>> = FIVE.into_iter().map(|who| delay::row(measured, &reading.curve(who), high)).collect::<Option<_>>()?;
    let count = |is: &dyn Fn(usize, (f64, f64)) -> bool| (0..high.len()).filter(|at| is(*at, ends(&delays, *at))).count();
    Some((count(&|at, (least, _)| delays[4][at] <= least), count(&|at, (_, most)| delays[0][at] >= most)))
}

/// What hangs on which packet is first at LINK1 and on its room: XT-C3 and XT-C6 by reading.
pub(super) fn by_reading(measured: &Measured) -> TextTable {
    let row = |reading: &Reading| -> Option<Vec<String>> {
        let (least, most) = ends_by_reading(measured, reading)?;
        let mut row = vec![reading.name.to_owned(), format!("{least} and {most} of {}", READ_AT.len() - 1)];
        for rate in [0.08, 0.12] {
            let again = |who: Who| {
                let sum = |count| delay::total(measured, &reading.curve(who), rate, count).map(|of| of as f64);
                Some(1e3 * sum(|outcome| outcome.packets_retransmitted)? / sum(|outcome| outcome.messages_delivered)?.max(1.0))
            };
            let delays = delay::at(measured, &reading.curve(FIVE[0]), rate).zip(delay::at(measured, &reading.curve(FIVE[2]), rate))?;
            row.push(format!("{} and {}", delay::text(delays.0), delay::text(delays.1)));
            row.push(format!("{:.1} and {:.1}", again(FIVE[0])?, again(FIVE[2])?));
        }
        Some(row)
    };
    let columns = [
        "at LINK1",
        "XT-C3: 2.3 smallest and 1.1 largest, from 0.11 on",
        "XT-C6: delay of 1.1 and 1.3 at 0.08",
        "sent again for 1000 messages",
        "delay at 0.12",
        "sent again",
    ];
    TextTable {
        title: "What hangs on which packet is first at LINK1, and on its room".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: READINGS.iter().filter_map(row).collect(),
    }
}
