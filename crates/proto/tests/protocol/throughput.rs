//! A reliable stream fills its rate whatever the random loss, over 60 ms with the default window.

use crate::pair::{Setup, at_ms};
use segstream_wire::Contract;

/// Bytes of an IPv4 packet with one full unit: 28 of IP and UDP, header and seal, part header, unit.
const RATE: f64 = 100e6;

fn goodput_share(loss: f64, segment_bytes: u64) -> f64 {
    let mut pair = Setup::new(&[Contract::default()]).loss(loss, loss).build();
    let seconds = 20;
    pair.offer(0, (RATE / 8.0 * (seconds + 2) as f64 / segment_bytes as f64) as usize, segment_bytes);
    pair.run_to(at_ms(seconds * 1000));
    // What the rate carries: whole IP packets with one unit each, less everything that is not payload.
    let packet_bytes = 1024.0 + 41.0 + 17.0;
    let carried = RATE / 8.0 / packet_bytes * seconds as f64;
    pair.delivered_units as f64 / carried
}

#[test]
fn goodput_is_what_the_path_lets_through() {
    for segment_bytes in [16 * 1024, 1024 * 1024] {
        for loss in [0.0, 1e-3, 1e-2, 1e-1] {
            let share = goodput_share(loss, segment_bytes);
            assert!(share >= 0.96 * (1.0 - loss), "segments of {segment_bytes} at loss {loss}: {share:.4}");
            assert!(share <= 1.0, "{share}: the measure is wrong");
        }
    }
}
