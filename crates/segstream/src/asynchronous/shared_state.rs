//! What the handles and the background task share, and who is woken by what.
//!
//! Called by every handle of the application through [`Handle`], and by the driver after every turn. A task waits for a
//! [`Notify`]: there is one for each stream in each direction, one for each connection, one for the endpoint.
//!
//! Invariant: a task that found nothing to do is notified of the next change that could give it something; when the
//! background task ends, for whatever reason, everybody is notified and nobody waits again.

use crate::hub::Hub;
use crate::inbox::News;
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
    fn notify(&self, news: News) {
        match news {
            News::Connection => self.connection.notify_waiters(),
            News::Sending(stream) => self.sending.get(&stream).into_iter().for_each(|notify| notify.notify_waiters()),
            News::Receiving(stream) => self.receiving.get(&stream).into_iter().for_each(|notify| notify.notify_waiters()),
            News::All => {
                self.connection.notify_waiters();
                self.sending.values().chain(self.receiving.values()).for_each(|notify| notify.notify_waiters());
            }
        }
    }
}

/// The endpoint behind the lock.
#[derive(Debug)]
pub(super) struct SharedState {
    pub(super) hub: Hub,
    notifies: BTreeMap<ConnectionId, Notifies>,
    /// Notified for the endpoint as a whole.
    pub(super) endpoint_notify: SharedNotify,
    /// The application has closed the endpoint.
    pub(super) closed: bool,
    /// No handle of the endpoint is left.
    unowned: bool,
    /// Why nothing is driven any more.
    failure: Option<(io::ErrorKind, String)>,
}

impl SharedState {
    pub(super) fn new(hub: Hub) -> Self {
        Self { hub, notifies: BTreeMap::new(), endpoint_notify: SharedNotify::default(), closed: false, unowned: false, failure: None }
    }

    /// The notify for `news` of a connection.
    pub(super) fn notify_for(&mut self, id: ConnectionId, news: News) -> SharedNotify {
        let notifies = self.notifies.entry(id).or_default();
        Arc::clone(match news {
            News::Sending(stream) => notifies.sending.entry(stream).or_default(),
            News::Receiving(stream) => notifies.receiving.entry(stream).or_default(),
            News::Connection | News::All => &notifies.connection,
        })
    }

    /// Wakes who waits for `news` of a connection.
    pub(super) fn notify(&self, id: ConnectionId, news: News) {
        if let Some(notifies) = self.notifies.get(&id) {
            notifies.notify(news);
        }
    }

    /// Nobody waits for this stream of ours any more.
    pub(super) fn drop_sending(&mut self, id: ConnectionId, stream: StreamId) {
        self.notifies.entry(id).and_modify(|notifies| _ = notifies.sending.remove(&stream));
    }

    /// Nobody waits for this stream of the peer any more.
    pub(super) fn drop_receiving(&mut self, id: ConnectionId, stream: StreamId) {
        self.notifies.entry(id).and_modify(|notifies| _ = notifies.receiving.remove(&stream));
    }

    /// No handle of the connection is left.
    pub(super) fn release(&mut self, now: Timestamp, id: ConnectionId) {
        self.notifies.remove(&id);
        self.hub.release(now, id);
    }

    /// No handle of the endpoint is left: nobody will accept what comes.
    pub(super) fn disown(&mut self, now: Timestamp) {
        self.unowned = true;
        self.hub.stop_accepting(now);
    }

    /// Why nothing can be begun any more, if so.
    pub(super) fn check_open(&self) -> Result<(), Error> {
        match &self.failure {
            Some(failure) => Err(system(failure)),
            None if self.closed => Err(Error::EndpointClosed),
            None => Ok(()),
        }
    }

    /// After a turn of the driver: hears what has happened, and wakes who waits for it.
    fn on_turn(&mut self, now: Timestamp) -> Flow {
        let (notifies, endpoint_notify) = (&self.notifies, &self.endpoint_notify);
        let mut changed = self.hub.absorb(now, |id, news| match notifies.get(&id) {
            Some(notifies) => notifies.notify(news),
            None => endpoint_notify.notify_waiters(),
        });
        if self.unowned {
            changed |= self.hub.stop_accepting(now);
        }
        if self.closed && self.hub.is_quiet() {
            self.endpoint_notify.notify_waiters();
        }
        match changed {
            _ if self.unowned && self.hub.is_empty() => Flow::Stop,
            true => Flow::Again,
            false => Flow::Sleep,
        }
    }

    /// Nothing will be driven any more.
    fn stop(&mut self, now: Timestamp, cause: &io::Error) {
        self.failure = Some((cause.kind(), cause.to_string()));
        self.hub.abort_others(now, &[], "the endpoint is no longer driven");
        self.hub.absorb(now, |_, _| ());
        self.endpoint_notify.notify_waiters();
        self.notifies.values().for_each(|notifies| notifies.notify(News::All));
    }
}

fn system((kind, text): &(io::ErrorKind, String)) -> Error {
    Error::System(io::Error::new(*kind, text.clone()))
}

/// How a handle reaches the shared_state.
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
        let (shared, driven) = (Arc::clone(&handle.shared), Driven { handle: handle.clone(), socket: Arc::clone(driver.socket()) });
        tokio::spawn(async move {
            let hook = move |state: &mut SharedState, _: &Turn| state.on_turn(clock.now());
            if let Err(error) = driver.run(shared, hook).await {
                driven.stop(&error);
            }
        });
        handle
    }

    /// Looks something up.
    pub(super) fn look<R>(&self, call: impl FnOnce(&mut SharedState) -> R) -> R {
        call(&mut self.shared.lock())
    }

    /// Changes something; the background task sends what is to be sent for it.
    pub(super) fn change<R>(&self, call: impl FnOnce(&mut SharedState, Timestamp) -> R) -> R {
        let result = {
            let mut state = self.shared.lock();
            let now = self.clock.now();
            call(&mut state, now)
        };
        self.shared.changed();
        result
    }

    /// Waits until `ready` gives a value, looking again whenever `notify` notifies. Nothing is lost when the future is
    /// dropped: `ready` has given its value only when the future is done.
    pub(super) async fn wait_for<T>(
        &self,
        notify: &Notify,
        mut ready: impl FnMut(&mut SharedState, Timestamp) -> Poll<Result<T, Error>>,
    ) -> Result<T, Error> {
        // Why: a loop of calls that need not wait would keep the background task from its turn.
        tokio::task::consume_budget().await;
        loop {
            // Why before looking: a ring between looking and waiting would be missed.
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

/// Ends every wait when the background task ends: the runtime may be shut down at any await.
#[derive(Debug)]
struct Driven {
    handle: Handle,
    socket: Arc<Socket>,
}

impl Driven {
    /// The system has failed: no connection can be told.
    fn stop(&self, cause: &io::Error) {
        let mut state = self.handle.shared.lock();
        if state.failure.is_none() {
            state.stop(self.handle.clock.now(), cause);
        }
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        let mut state = self.handle.shared.lock();
        if state.failure.is_some() {
            return;
        }
        // Why on this thread: nothing else of the runtime will run any more.
        if !state.hub.is_empty()
            && let Ok(mut driver) = BlockingDriver::new(Arc::clone(&self.socket), self.handle.clock, DriverConfig::default())
        {
            closing::finish(&mut state.hub, &mut driver);
        }
        let cause = io::Error::other("the tokio runtime that drove the endpoint has been shut down");
        state.stop(self.handle.clock.now(), &cause);
    }
}

impl Endpoint for SharedState {
    fn handle_datagram(&mut self, now: Timestamp, arrival: Arrival, datagram: &mut [u8]) {
        self.hub.handle_datagram(now, arrival, datagram);
    }

    fn handle_batch(&mut self, now: Timestamp, arrival: Arrival, datagrams: &mut [u8], datagram_bytes: usize) {
        self.hub.handle_batch(now, arrival, datagrams, datagram_bytes);
    }

    fn poll_transmit(&mut self, now: Timestamp, max_datagrams: usize, out: &mut Vec<u8>) -> Option<Transmit> {
        self.hub.poll_transmit(now, max_datagrams, out)
    }

    fn poll_deadline(&self) -> Option<Deadline> {
        self.hub.poll_deadline()
    }

    fn handle_timeout(&mut self, now: Timestamp) {
        self.hub.handle_timeout(now);
    }
}
