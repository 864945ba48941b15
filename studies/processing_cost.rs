//! What a packet costs the two halves here: the one measurement behind EC Table 2 and FC Table 1.
//!
//! Called by `ec/table2` and `fc/table1`, whose tables are the same: `points: Vec::new`, `figures: |_| Vec::new()`,
//! `tables: |_| processing_cost::tables()`. Each table measures anew; nothing of it is compared with an expected value.
//!
//! Invariant: times are of this machine and are called so; nothing is judged by them.
//! Source: EC 6, Table 2; FC 5, Table 1.

use crate::black_box::{Who, random};
use segstream_lab::cost::{self, Cost};
use segstream_lab::figure::{TextTable, digits};
use segstream_path::LossSpec;

/// New packets of a run: enough for the window to turn over ten times.
const PACKETS: u64 = 100_000;

/// The papers' numbers beside those of this machine.
pub fn tables() -> Vec<TextTable> {
    let mut rows = vec![
        row("SSTP in the SunOS 4.0.3 kernel, 1992", "not stated", [("273 us", "30"), ("310 us", "26")]),
        row("TCP/IP there, as the papers quote it", "not stated", [("", "22"), ("", "22")]),
    ];
    for who in [Who::SstpFull, Who::Snr, Who::Segstream] {
        for (loss, name) in [(LossSpec::None, "none"), (random(1e-3), "1e-3")] {
            rows.push(measured(who, &loss, name));
        }
    }
    let columns = ["", "loss", "sending", "Mbit/s", "receiving", "Mbit/s"].map(str::to_owned).to_vec();
    vec![TextTable { title: "Processing delay of a packet, and the rate it would allow".to_owned(), columns, rows }]
}

fn measured(who: Who, loss: &LossSpec, name: &str) -> Vec<String> {
    let scenario = who.over(loss).with(|it| it.workload.packets = PACKETS);
    let label = format!("{} here, state machine alone", who.label());
    match cost::measure(&scenario) {
        Ok(Cost { send_ns, receive_ns, .. }) => {
            let side = |ns: f64| (format!("{ns:.0} ns"), digits(rate_mbit(scenario.workload.packet_bytes, ns).round()));
            let (send, receive) = (side(send_ns), side(receive_ns));
            row(&label, name, [(&send.0, &send.1), (&receive.0, &receive.1)])
        }
        Err(error) => row(&label, name, [(&error.to_string(), ""), ("", "")]),
    }
}

fn row(who: &str, loss: &str, sides: [(&str, &str); 2]) -> Vec<String> {
    let [(send, send_rate), (receive, receive_rate)] = sides;
    [who, loss, send, send_rate, receive, receive_rate].map(str::to_owned).to_vec()
}

/// 8 l over the delay, in Mbit/s, as the papers derive it.
pub fn rate_mbit(packet_bytes: u32, ns: f64) -> f64 {
    f64::from(packet_bytes) * 8.0 / ns * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rates_of_the_papers_follow_from_their_delays() {
        assert_eq!(rate_mbit(1024, 273e3).round(), 30.0);
        assert_eq!(rate_mbit(1024, 310e3).round(), 26.0);
    }
}
