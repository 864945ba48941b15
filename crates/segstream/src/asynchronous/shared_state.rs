//! The state that the handles and the background task share, and the notifications of waiting tasks.
//!
//! Called by every handle of the application through [`Handle`], and by the driver after every turn. A task waits for a
//! [`Notify`]: there is one for each stream in each direction, one for each connection, one for the endpoint.
//!
//! Invariant: a waiting task is notified of every change that it could wait for. When the background task ends, for any reason, all
//! tasks are notified and no task waits again.

use crate::connection_state::EventScope;
use crate::endpoint_state::EndpointState;
use crate::{ConnectionId, Error, StreamId, Timestamp, closing};
use segstream_base::endpoint::{Arrival, Deadline, Endpoint, Transmit};
use segstream_net::clock::Clock;
use segstream_net::driver::blocking::BlockingDriver;
use segstream_net::driver::tokio::{AsyncDriver, Flow, Shared};
use segstream_net::driver::{DriverConfig, Turn};
use segstream_net::socket::Socket;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::task::Poll;
use tokio::sync::Notify;

/// What a task can wait for.
pub(super) type SharedNotify = Arc<Notify>;

/// The notifies of one connection.
#[derive(Debug, Default)]
struct Notifies {
    connection: SharedNotify,
    sending: BTreeMap<StreamId, SharedNotify>,
    receiving: BTreeMap<StreamId, SharedNotify>,
}

impl Notifies {
    fn notify(&self, scope: EventScope) {
        match scope {
            EventScope::Connection => self.connection.notify_waiters(),
            EventScope::Sending(stream) => self.sending.get(&stream).into_iter().for_each(|notify| notify.notify_waiters()),
            EventScope::Receiving(stream) => self.receiving.get(&stream).into_iter().for_each(|notify| notify.notify_waiters()),
            EventScope::All => {
                self.connection.notify_waiters();
                self.sending.values().chain(self.receiving.values()).for_each(|notify| notify.notify_waiters());
            }
        }
    }
}

/// The endpoint behind the lock.
#[derive(Debug)]
pub(super) struct SharedState {
    pub(super) endpoint_state: EndpointState,
    notifies: BTreeMap<ConnectionId, Notifies>,
    /// For events of the endpoint as a whole.
    pub(super) endpoint_notify: SharedNotify,
    /// The application has closed the endpoint.
    pub(super) closed: bool,
    /// Whether the last handle of the endpoint was dropped.
    unowned: bool,
    /// Why the background task has ended.
    failure: Option<(io::ErrorKind, String)>,
}

impl SharedState {
    pub(super) fn new(endpoint_state: EndpointState) -> Self {
        Self {
            endpoint_state,
            notifies: BTreeMap::new(),
            endpoint_notify: SharedNotify::default(),
            closed: false,
            unowned: false,
            failure: None,
        }
    }

    /// The notify for `scope` of a connection.
    pub(super) fn notify_for(&mut self, id: ConnectionId, scope: EventScope) -> SharedNotify {
        let notifies = self.notifies.entry(id).or_default();
        Arc::clone(match scope {
            EventScope::Sending(stream) => notifies.sending.entry(stream).or_default(),
            EventScope::Receiving(stream) => notifies.receiving.entry(stream).or_default(),
            EventScope::Connection | EventScope::All => &notifies.connection,
        })
    }

    /// Wakes the tasks that wait for `scope` of a connection.
    pub(super) fn notify(&self, id: ConnectionId, scope: EventScope) {
        if let Some(notifies) = self.notifies.get(&id) {
            notifies.notify(scope);
        }
    }

    /// The last handle of this stream of ours was dropped.
    pub(super) fn drop_sending(&mut self, id: ConnectionId, stream: StreamId) {
        self.notifies.entry(id).and_modify(|notifies| _ = notifies.sending.remove(&stream));
    }

    /// The handle of this stream of the peer was dropped.
    pub(super) fn drop_receiving(&mut self, id: ConnectionId, stream: StreamId) {
        self.notifies.entry(id).and_modify(|notifies| _ = notifies.receiving.remove(&stream));
    }

    /// The last handle of the connection was dropped.
    pub(super) fn release(&mut self, now: Timestamp, id: ConnectionId) {
        self.notifies.remove(&id);
        self.endpoint_state.release(now, id);
    }

    /// The last handle of the endpoint was dropped: no connection will be accepted.
    pub(super) fn release_endpoint(&mut self, now: Timestamp) {
        self.unowned = true;
        self.endpoint_state.stop_accepting(now);
    }

    /// An error if the endpoint is closed or its background task has ended.
    pub(super) fn check_open(&self) -> Result<(), Error> {
        match &self.failure {
            Some(failure) => Err(system(failure)),
            None if self.closed => Err(Error::EndpointClosed),
            None => Ok(()),
        }
    }

    /// After a turn of the driver: processes events, and wakes the tasks that wait for them.
    fn on_turn(&mut self, now: Timestamp) -> Flow {
        let (notifies, endpoint_notify) = (&self.notifies, &self.endpoint_notify);
        let mut changed = self.endpoint_state.process_events(now, |id, scope| match notifies.get(&id) {
            Some(notifies) => notifies.notify(scope),
            None => endpoint_notify.notify_waiters(),
        });
        if self.unowned {
            changed |= self.endpoint_state.stop_accepting(now);
        }
        if self.closed && self.endpoint_state.all_drained() {
            self.endpoint_notify.notify_waiters();
        }
        match changed {
            _ if self.unowned && self.endpoint_state.is_empty() => Flow::Stop,
            true => Flow::Again,
            false => Flow::Sleep,
        }
    }

    /// The background task ends.
    fn stop(&mut self, now: Timestamp, cause: &io::Error) {
        self.failure = Some((cause.kind(), cause.to_string()));
        self.endpoint_state.abort_others(now, &[], "the endpoint is no longer driven");
        self.endpoint_state.process_events(now, |_, _| ());
        self.endpoint_notify.notify_waiters();
        self.notifies.values().for_each(|notifies| notifies.notify(EventScope::All));
    }
}

fn system((kind, text): &(io::ErrorKind, String)) -> Error {
    Error::System(io::Error::new(*kind, text.clone()))
}

/// A handle of the shared state.
#[derive(Clone, Debug)]
pub(super) struct Handle {
    shared: Arc<Shared<SharedState>>,
    pub(super) clock: Clock,
}

impl Handle {
    /// Drives `state` in the background, on the present runtime.
    pub(super) fn open(state: SharedState, driver: AsyncDriver) -> Self {
        let clock = driver.clock();
        let handle = Self { shared: Arc::new(Shared::new(state)), clock };
        let (shared, driven) = (Arc::clone(&handle.shared), DriverGuard { handle: handle.clone(), socket: Arc::clone(driver.socket()) });
        tokio::spawn(async move {
            let hook = move |state: &mut SharedState, _: &Turn| state.on_turn(clock.now());
            if let Err(error) = driver.run(shared, hook).await {
                driven.stop(&error);
            }
        });
        handle
    }

    /// Reads from the state.
    pub(super) fn read<R>(&self, call: impl FnOnce(&mut SharedState) -> R) -> R {
        call(&mut self.shared.lock())
    }

    /// Changes the state; the background task then sends what is necessary.
    pub(super) fn change<R>(&self, call: impl FnOnce(&mut SharedState, Timestamp) -> R) -> R {
        let result = {
            let mut state = self.shared.lock();
            let now = self.clock.now();
            call(&mut state, now)
        };
        self.shared.changed();
        result
    }

    /// Waits until `ready` returns a value; calls it again after every notification. Cancel safe: `ready` returns its value only when
    /// the future completes.
    pub(super) async fn wait_for<T>(
        &self,
        notify: &Notify,
        mut ready: impl FnMut(&mut SharedState, Timestamp) -> Poll<Result<T, Error>>,
    ) -> Result<T, Error> {
        // Why: a loop of calls that do not wait would starve the background task.
        tokio::task::consume_budget().await;
        loop {
            // Why before the check: a notification between the check and the wait would be lost.
            let notified = notify.notified();
            if let Some(result) = self.poll_once(&mut ready) {
                return result;
            }
            notified.await;
        }
    }

    fn poll_once<T>(&self, ready: &mut impl FnMut(&mut SharedState, Timestamp) -> Poll<Result<T, Error>>) -> Option<Result<T, Error>> {
        let mut state = self.shared.lock();
        let now = self.clock.now();
        let result = match (ready(&mut state, now), &state.failure) {
            (Poll::Ready(Ok(value)), _) => Ok(value),
            (Poll::Ready(Err(_)) | Poll::Pending, Some(failure)) => Err(system(failure)),
            (Poll::Ready(Err(error)), None) => Err(error),
            (Poll::Pending, None) => return None,
        };
        drop(state);
        self.shared.changed();
        Some(result)
    }
}

/// Its destructor ends every wait when the background task ends: the runtime may be shut down at any await.
#[derive(Debug)]
struct DriverGuard {
    handle: Handle,
    socket: Arc<Socket>,
}

impl DriverGuard {
    /// The system has failed: no peer can be notified.
    fn stop(&self, cause: &io::Error) {
        let mut state = self.handle.shared.lock();
        if state.failure.is_none() {
            state.stop(self.handle.clock.now(), cause);
        }
    }
}

impl Drop for DriverGuard {
    fn drop(&mut self) {
        let mut state = self.handle.shared.lock();
        if state.failure.is_some() {
            return;
        }
        // Why on this thread: no other task of the runtime will run any more.
        if !state.endpoint_state.is_empty()
            && let Ok(mut driver) = BlockingDriver::new(Arc::clone(&self.socket), self.handle.clock, DriverConfig::default())
        {
            closing::finish(&mut state.endpoint_state, &mut driver);
        }
        let cause = io::Error::other("the tokio runtime that drove the endpoint has been shut down");
        state.stop(self.handle.clock.now(), &cause);
    }
}

impl Endpoint for SharedState {
    fn handle_datagram(&mut self, now: Timestamp, arrival: Arrival, datagram: &mut [u8]) {
        self.endpoint_state.handle_datagram(now, arrival, datagram);
    }

    fn handle_batch(&mut self, now: Timestamp, arrival: Arrival, datagrams: &mut [u8], datagram_bytes: usize) {
        self.endpoint_state.handle_batch(now, arrival, datagrams, datagram_bytes);
    }

    fn poll_transmit(&mut self, now: Timestamp, max_datagrams: usize, out: &mut Vec<u8>) -> Option<Transmit> {
        self.endpoint_state.poll_transmit(now, max_datagrams, out)
    }

    fn poll_deadline(&self) -> Option<Deadline> {
        self.endpoint_state.poll_deadline()
    }

    fn handle_timeout(&mut self, now: Timestamp) {
        self.endpoint_state.handle_timeout(now);
    }
}
