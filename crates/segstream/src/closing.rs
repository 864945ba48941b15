//! How an endpoint ends that is dropped while it has connections.
//!
//! Called by both interfaces, on the thread that drops. A connection on which nothing can be lost any more is closed
//! gracefully, as [`crate::blocking::Endpoint::close`] would; every other one is broken off, and its peer is told once.
//!
//! Invariant: it ends within [`CLOSE_TIMEOUT`] and twice [`FLUSH_TIMEOUT`], whatever peers do.

use crate::hub::Hub;
use segstream_base::Duration;
use segstream_net::driver::blocking::BlockingDriver;

/// How long a graceful close may take. Why so long: it takes a round trip, and a repetition or two where datagrams are lost.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);
/// How long what has been written may wait for room in the socket.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(100);
/// What the peer of a connection that is broken off is told.
const GONE: &str = "the application is gone";

/// Ends every connection of `hub`, whose socket `driver` has.
pub(crate) fn finish(hub: &mut Hub, driver: &mut BlockingDriver) {
    let clock = driver.clock();
    hub.absorb(clock.now(), |_, _| ());
    let closing = hub.close_settled(clock.now());
    hub.abort_others(clock.now(), &closing, GONE);
    flush(hub, driver);
    let end = clock.now() + CLOSE_TIMEOUT;
    while closing.iter().any(|id| hub.is_known(*id)) && clock.now() < end {
        // Why an error ends it: nothing more can be sent. The peer finds out when its idle timeout has passed.
        if driver.turn(hub, Some(end)).is_err() {
            return;
        }
        hub.absorb(clock.now(), |_, _| ());
    }
    if closing.iter().any(|id| hub.is_known(*id)) {
        hub.abort_others(clock.now(), &[], GONE);
        flush(hub, driver);
    }
}

/// Sends what is to be sent now, without waiting for any answer.
fn flush(hub: &mut Hub, driver: &mut BlockingDriver) {
    let clock = driver.clock();
    let mut until = clock.now();
    let end = until + FLUSH_TIMEOUT;
    // Why more than one turn: what was written before goes first, and may wait for room.
    while let Ok(turn) = driver.turn(hub, Some(until))
        && (turn.blocked || turn.more)
        && until < end
    {
        until = clock.now() + Duration::from_millis(1);
    }
}
