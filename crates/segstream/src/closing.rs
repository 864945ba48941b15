//! Closes the connections of an endpoint that is dropped.
//!
//! Called by both interfaces, on the thread that drops. A connection on which every stream has ended and every segment is judged is
//! closed gracefully, as by [`crate::blocking::Endpoint::close`]; every other one is aborted, and its peer is notified once.
//!
//! Invariant: it ends within [`CLOSE_TIMEOUT`] and twice [`FLUSH_TIMEOUT`], whatever peers do.

use crate::endpoint_state::EndpointState;
use segstream_base::Duration;
use segstream_net::driver::blocking::BlockingDriver;

/// The timeout of a graceful close. Why so long: it takes a round trip, and one or two retransmissions if datagrams are lost.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);
/// How long written datagrams may wait for room in the send buffer of the socket.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(100);
/// The reason that the peer of an aborted connection gets.
const ABORT_DETAIL: &str = "the application is gone";

/// Ends every connection of `endpoint_state`, whose socket `driver` has.
pub(crate) fn finish(endpoint_state: &mut EndpointState, driver: &mut BlockingDriver) {
    let clock = driver.clock();
    endpoint_state.process_events(clock.now(), |_, _| ());
    let closing = endpoint_state.close_settled(clock.now());
    endpoint_state.abort_others(clock.now(), &closing, ABORT_DETAIL);
    flush(endpoint_state, driver);
    let end = clock.now() + CLOSE_TIMEOUT;
    while closing.iter().any(|id| endpoint_state.is_known(*id)) && clock.now() < end {
        // Why an error ends it: nothing more can be sent. The peer's idle timeout then ends the connection there.
        if driver.turn(endpoint_state, Some(end)).is_err() {
            return;
        }
        endpoint_state.process_events(clock.now(), |_, _| ());
    }
    if closing.iter().any(|id| endpoint_state.is_known(*id)) {
        endpoint_state.abort_others(clock.now(), &[], ABORT_DETAIL);
        flush(endpoint_state, driver);
    }
}

/// Sends what is pending now, without waiting for an answer.
fn flush(endpoint_state: &mut EndpointState, driver: &mut BlockingDriver) {
    let clock = driver.clock();
    let mut until = clock.now();
    let end = until + FLUSH_TIMEOUT;
    // Why more than one turn: datagrams that were written before leave first, and may wait for room.
    while let Ok(turn) = driver.turn(endpoint_state, Some(until))
        && (turn.blocked || turn.more)
        && until < end
    {
        until = clock.now() + Duration::from_millis(1);
    }
}
