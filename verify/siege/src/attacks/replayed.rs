//! Every datagram of an honest connection sent again: reflected to its sender at once, and replayed afterwards, from the client's
//! address and from others.
//!
//! Called through [`super::ATTACKS`]. Source: RFC 9000 21.5 (request forgery), 8.1.4 (replay of tokens).
//!
//! Invariant: not a byte of what is sent differs from what was recorded.

use super::{Siege, tampered};
use crate::attacker::{Attacker, Tally};
use crate::outcome::{Bound, Outcome};
use crate::relay::Way;
use segstream_wire::Kind;
use std::time::Duration;

/// Segments of the honest transfer: a few round trips of everything.
const SEGMENTS: u64 = 20;
/// Bytes a set-up may be answered with: seven times (0.2, 0.4, 0.8, 1.6, 3.2 and 3.2 s apart, in 10 s) three datagrams of 1200.
const SETUP_ANSWER_BYTES: f64 = (7 * 3 * 1200) as f64;

/// Replays and reflections of a whole connection, its set-up above all.
///
/// # Errors
/// When the victim fails.
pub fn handshakes(siege: &Siege) -> anyhow::Result<Outcome> {
    let hosts = if siege.small { 4 } else { 64 };
    let watch = siege.watch_transfers(SEGMENTS)?;
    siege.progress("live: every datagram also back to its sender");
    let mut recorded = Vec::new();
    let (transfer, _, mut hands) = tampered(watch.address(), SEGMENTS, |hands, labels, way, datagram| {
        recorded.push((way, datagram.to_vec()));
        // Limit: whoever has seen a request can refuse it, and a client that is shown its own request refuses it. That
        // refusal is not shown to it.
        if labels.of(datagram) != Some(Kind::Reject.name()) {
            hands.forge(if way == Way::Up { Way::Down } else { Way::Up }, datagram);
        }
        true
    })?;
    siege.progress("afterwards: everything again, from the client's address");
    (hands.from_victim, hands.forged) = (Tally::default(), Tally::default());
    for (_, datagram) in &recorded {
        hands.forge(Way::Up, datagram);
    }
    siege.progress("afterwards: everything again, from other addresses");
    let mut attacker = Attacker::new(watch.address())?;
    for host in 0..hosts {
        for (_, datagram) in &recorded {
            attacker.send(Attacker::host(host), datagram)?;
        }
        attacker.hear(|_, _| ())?;
    }
    hands.hear_for(Duration::from_secs(if siege.small { 1 } else { 11 }));
    attacker.hear_for(Duration::from_millis(200), |_, _| ())?;
    let (to_others, to_client) = (attacker.answered, hands.from_victim);
    let tallies = (attacker.sent.plus(hands.forged), to_others.plus(to_client));
    let (mut outcome, before, after) = watch.end("replayed", tallies, format!("live: {transfer}"))?;
    // Why: the client has proved its address some seconds ago, so that its request begins one set-up again, which ends by itself;
    // whatever else is sent again gets at most an answer of its own length.
    let answered = outcome.sent.bytes as f64 + SETUP_ANSWER_BYTES;
    // Why: one set-up and a transfer of 400 kB, whose window may be held twice; nothing for replays.
    let common = outcome.common_bounds(1024.0 * 1024.0, answered);
    outcome.bounds.extend(common);
    outcome.bounds.push(Bound::most("bytes answered to others", to_others.bytes as f64, attacker.sent.bytes as f64));
    outcome.bounds.push(Bound::most("connections made", (after.connected - before.connected) as f64, 1.0));
    outcome.bounds.push(Bound::most("segments delivered", (after.segments_right - before.segments_right) as f64, SEGMENTS as f64));
    outcome.bounds.push(Bound::most("segments changed", after.segments_wrong as f64, 0.0));
    outcome.bounds.push(Bound::so("the transfer under reflection is well", transfer.is_well()));
    Ok(outcome)
}
