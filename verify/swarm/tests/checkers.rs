//! The checkers can fail: each is shown a run in which something was broken on purpose.

use segstream_base::halves::Verdict;
use segstream_base::{Duration, Instant, Run, UnitIndex};
use segstream_proto::error::CloseReason;
use segstream_swarm::event::{Event, Kept, Place};
use segstream_swarm::runner::run_tapped;
use segstream_wire::Kind;
use segstream_wire::contract::Order;

/// Breaks what happens in the first of many seeds in which it can be broken, and tells which checker has objected and why.
/// `change` gives `None` for what it leaves alone, else what happens instead; it is asked until it has changed something.
fn broken(change: fn(&Event) -> Option<Vec<Event>>) -> (&'static str, String) {
    for seed in 0..400 {
        let mut done = false;
        let tap = move |_: Instant, event: Event| match change(&event).filter(|_| !done) {
            None => vec![event],
            Some(instead) => {
                done = true;
                instead
            }
        };
        if let Some(failure) = run_tapped(seed, Box::new(tap)).failure {
            return (failure.checker, failure.what);
        }
    }
    panic!("no checker has objected");
}

/// As [`broken`], and asserts which checker it is and what its sentence contains.
fn is_noticed(checker: &str, sentence: &str, change: fn(&Event) -> Option<Vec<Event>>) {
    let (by, what) = broken(change);
    assert_eq!(by, checker, "{what}");
    assert!(what.contains(sentence), "{what}");
}

#[test]
fn a_flipped_byte_is_noticed() {
    is_noticed("promise", "is not what was submitted", |event| match event {
        Event::Delivered(delivered) if delivered.verdict == Verdict::Complete && !delivered.bytes.is_empty() => {
            let mut delivered = delivered.clone();
            let middle = delivered.bytes.len() / 2;
            delivered.bytes[middle] ^= 1;
            Some(vec![Event::Delivered(delivered)])
        }
        _ => None,
    });
}

#[test]
fn a_hole_that_is_not_told_is_noticed() {
    is_noticed("promise", "", |event| match event {
        Event::Delivered(delivered) if !delivered.holes.is_empty() && delivered.verdict == Verdict::WithinTolerance => {
            let mut delivered = delivered.clone();
            delivered.holes.clear();
            delivered.verdict = Verdict::Complete;
            Some(vec![Event::Delivered(delivered)])
        }
        _ => None,
    });
}

#[test]
fn a_promise_that_was_not_kept_is_noticed() {
    is_noticed("promise", "does not tolerate", |event| match event {
        Event::Delivered(delivered) if delivered.verdict == Verdict::Expired && !delivered.holes.is_empty() => {
            let mut delivered = delivered.clone();
            delivered.verdict = Verdict::WithinTolerance;
            Some(vec![Event::Delivered(delivered)])
        }
        _ => None,
    });
}

#[test]
fn a_segment_that_expires_for_no_reason_is_noticed() {
    is_noticed("promise", "expired", |event| match event {
        Event::Delivered(delivered) if delivered.verdict == Verdict::Complete && !delivered.bytes.is_empty() => {
            let mut delivered = delivered.clone();
            delivered.verdict = Verdict::Expired;
            Some(vec![Event::Delivered(delivered)])
        }
        _ => None,
    });
}

#[test]
fn ends_that_do_not_agree_are_noticed() {
    is_noticed("promise", "the sender was told", |event| match event {
        Event::Told { name, verdict: Verdict::Complete, .. } => Some(vec![Event::Told {
            name: *name,
            verdict: Verdict::WithinTolerance,
            holes: Run::single(UnitIndex(0)).into_iter().collect(),
        }]),
        _ => None,
    });
}

#[test]
fn a_segment_that_was_judged_but_never_handed_over_is_noticed() {
    let (checker, what) = broken(|event| matches!(event, Event::Delivered(_)).then(Vec::new));
    assert!(["promise", "order"].contains(&checker), "{what}");
}

#[test]
fn segments_handed_over_twice_or_in_the_wrong_order_are_noticed() {
    let (checker, what) = broken(|event| matches!(event, Event::Delivered(_)).then(|| vec![event.clone(), event.clone()]));
    assert!(["promise", "order"].contains(&checker) && what.contains("twice"), "{what}");
    is_noticed("order", "was due", |event| match event {
        Event::Offered { at, name, order: Order::AsAccepted } => Some(vec![Event::Offered { at: *at, name: *name, order: Order::InOrder }]),
        _ => None,
    });
}

#[test]
fn an_end_that_comes_too_soon_is_noticed() {
    is_noticed("order", "has ended with", |event| match event {
        Event::Ended { at, name, segments } if *segments > 0 => Some(vec![Event::Ended { at: *at, name: *name, segments: segments - 1 }]),
        _ => None,
    });
}

#[test]
fn a_verdict_that_is_dropped_or_told_twice_is_noticed() {
    is_noticed("progress", "have no verdict", |event| matches!(event, Event::Told { .. }).then(Vec::new));
    let (checker, what) = broken(|event| matches!(event, Event::Told { .. }).then(|| vec![event.clone(), event.clone()]));
    assert!(["promise", "progress"].contains(&checker) && what.contains("twice"), "{what}");
}

#[test]
fn a_connection_that_never_ends_is_noticed() {
    is_noticed("progress", "has not ended", |event| matches!(event, Event::Closed { .. }).then(Vec::new));
}

#[test]
fn time_that_stands_still_is_noticed() {
    is_noticed("progress", "time stands still", |event| matches!(event, Event::Step).then(|| vec![Event::Step; 30_000]));
}

#[test]
fn an_end_that_nothing_excuses_is_noticed() {
    is_noticed("progress", "nothing was wrong", |event| match event {
        Event::Closed { side, reason: CloseReason::ClosedHere } => {
            Some(vec![Event::Closed { side: *side, reason: CloseReason::AbortedHere }])
        }
        _ => None,
    });
}

#[test]
fn a_peer_that_is_mourned_too_late_is_noticed() {
    is_noticed("progress", "after a silence", |event| match event {
        // Its patience, as the checker is told, is shorter than it is.
        Event::Appeared { side, host, peer, role, .. } => Some(vec![Event::Appeared {
            side: *side,
            host: *host,
            peer: *peer,
            role: *role,
            connect_timeout: Duration::ZERO,
            idle_timeout: Duration::ZERO,
        }]),
        _ => None,
    });
}

#[test]
fn an_unknown_verdict_after_a_graceful_end_is_noticed() {
    is_noticed("progress", "is unknown", |event| match event {
        Event::Told { name, holes, .. } => Some(vec![Event::Told { name: *name, verdict: Verdict::Unknown, holes: holes.clone() }]),
        _ => None,
    });
}

#[test]
fn what_is_kept_beyond_the_grant_or_beyond_the_end_is_noticed() {
    is_noticed("memory", "of 0 granted", |event| match event {
        Event::Kept(kept) if kept.receiving.0 > 0 => Some(vec![Event::Kept(Kept { receiving: (kept.receiving.0, 0), ..*kept })]),
        _ => None,
    });
    is_noticed("memory", "to send", |event| match event {
        Event::Kept(kept) => Some(vec![Event::Kept(Kept { sending: (kept.sending.1 + 1, kept.sending.1), ..*kept })]),
        _ => None,
    });
    is_noticed("memory", "connections", |event| match event {
        Event::Over(_) => Some(vec![Event::Over(vec![(0, 1, false)])]),
        _ => None,
    });
}

#[test]
fn work_beyond_the_turn_or_beyond_the_bytes_is_noticed() {
    is_noticed("work", "a turn takes", |event| match event {
        Event::Worked { bytes, .. } => Some(vec![Event::Worked { steps: 20_001, bytes: *bytes, is_turn: true }]),
        _ => None,
    });
    is_noticed("work", "bytes have caused", |event| match event {
        Event::Worked { bytes, .. } => Some(vec![Event::Worked { steps: 20_000, bytes: *bytes / 100, is_turn: true }; 50]),
        _ => None,
    });
}

#[test]
fn a_flood_to_an_address_that_never_proved_itself_is_noticed() {
    is_noticed("amplification", "nothing proved it", |event| match event {
        Event::Arrived { host, from: Place::Elsewhere(port), kind: Some(Kind::Request), bytes, .. } => Some(vec![Event::Arrived {
            host: *host,
            from: Place::Elsewhere(*port),
            kind: Some(Kind::Request),
            // A request fills its datagram; a cookie has 43 bytes.
            bytes: bytes / 100,
            genuine: false,
            hostile: true,
        }]),
        _ => None,
    });
}
