//! What the handles and the background task share, and who is woken by what.
//!
//! Called by every handle through [`Line`], and by the driver after every turn. Tasks wait for *bells*: one for each
//! stream in each direction, one for each connection, one for the endpoint.
//!
//! Invariant: a task that found nothing to do is woken by the next change that could give it something; when the
//! background task ends, for whatever reason, every bell rings and nobody waits again.

use crate::hub::Hub;
use crate::inbox::News;
use crate::{ConnectionId, Error, Timestamp, closing};
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
pub(super) type Bell = Arc<Notify>;

/// The bells of one connection.
#[derive(Debug, Default)]
struct Bells {
    connection: Bell,
    sending: BTreeMap<u32, Bell>,
    receiving: BTreeMap<u32, Bell>,
}

impl Bells {
    fn ring(&self, news: News) {
        match news {
            News::Connection => self.connection.notify_waiters(),
            News::Sending(stream) => self.sending.get(&stream).into_iter().for_each(|bell| bell.notify_waiters()),
            News::Receiving(stream) => self.receiving.get(&stream).into_iter().for_each(|bell| bell.notify_waiters()),
            News::All => {
                self.connection.notify_waiters();
                self.sending.values().chain(self.receiving.values()).for_each(|bell| bell.notify_waiters());
            }
        }
    }
}

/// The endpoint behind the lock.
#[derive(Debug)]
pub(super) struct Switchboard {
    pub(super) hub: Hub,
    bells: BTreeMap<ConnectionId, Bells>,
    /// Rings for the endpoint as a whole.
    pub(super) door: Bell,
    /// The application has closed the endpoint.
    pub(super) closed: bool,
    /// No handle of the endpoint is left.
    unowned: bool,
    /// Why nothing is driven any more.
    failure: Option<(io::ErrorKind, String)>,
}

impl Switchboard {
    pub(super) fn new(hub: Hub) -> Self {
        Self { hub, bells: BTreeMap::new(), door: Bell::default(), closed: false, unowned: false, failure: None }
    }

    /// The bell for `news` of a connection.
    pub(super) fn bell(&mut self, id: ConnectionId, news: News) -> Bell {
        let bells = self.bells.entry(id).or_default();
        Arc::clone(match news {
            News::Sending(stream) => bells.sending.entry(stream).or_default(),
            News::Receiving(stream) => bells.receiving.entry(stream).or_default(),
            News::Connection | News::All => &bells.connection,
        })
    }

    /// Wakes who waits for `news` of a connection.
    pub(super) fn ring(&self, id: ConnectionId, news: News) {
        if let Some(bells) = self.bells.get(&id) {
            bells.ring(news);
        }
    }

    /// Nobody waits for this stream of ours any more.
    pub(super) fn drop_sending(&mut self, id: ConnectionId, stream: u32) {
        self.bells.entry(id).and_modify(|bells| _ = bells.sending.remove(&stream));
    }

    /// Nobody waits for this stream of the peer any more.
    pub(super) fn drop_receiving(&mut self, id: ConnectionId, stream: u32) {
        self.bells.entry(id).and_modify(|bells| _ = bells.receiving.remove(&stream));
    }

    /// No handle of the connection is left.
    pub(super) fn release(&mut self, now: Timestamp, id: ConnectionId) {
        self.bells.remove(&id);
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
        let (bells, door) = (&self.bells, &self.door);
        let mut changed = self.hub.absorb(now, |id, news| match bells.get(&id) {
            Some(bells) => bells.ring(news),
            None => door.notify_waiters(),
        });
        if self.unowned {
            changed |= self.hub.stop_accepting(now);
        }
        if self.closed && self.hub.is_quiet() {
            self.door.notify_waiters();
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
        self.door.notify_waiters();
        self.bells.values().for_each(|bells| bells.ring(News::All));
    }
}

fn system((kind, text): &(io::ErrorKind, String)) -> Error {
    Error::System(io::Error::new(*kind, text.clone()))
}

/// How a handle reaches the switchboard.
#[derive(Clone, Debug)]
pub(super) struct Line {
    shared: Arc<Shared<Switchboard>>,
    pub(super) clock: Clock,
}

impl Line {
    /// Drives `board` in the background, on the present runtime.
    pub(super) fn open(board: Switchboard, driver: AsyncDriver) -> Self {
        let clock = driver.clock();
        let line = Self { shared: Arc::new(Shared::new(board)), clock };
        let (shared, driven) = (Arc::clone(&line.shared), Driven { line: line.clone(), socket: Arc::clone(driver.socket()) });
        tokio::spawn(async move {
            let hook = move |board: &mut Switchboard, _: &Turn| board.on_turn(clock.now());
            if let Err(error) = driver.run(shared, hook).await {
                driven.stop(&error);
            }
        });
        line
    }

    /// Looks something up.
    pub(super) fn look<R>(&self, call: impl FnOnce(&mut Switchboard) -> R) -> R {
        call(&mut self.shared.lock())
    }

    /// Changes something; the background task sends what is to be sent for it.
    pub(super) fn change<R>(&self, call: impl FnOnce(&mut Switchboard, Timestamp) -> R) -> R {
        let result = {
            let mut board = self.shared.lock();
            let now = self.clock.now();
            call(&mut board, now)
        };
        self.shared.changed();
        result
    }

    /// Waits until `ready` gives a value, looking again whenever `bell` rings. Nothing is lost when the future is
    /// dropped: `ready` has given its value only when the future is done.
    pub(super) async fn wait_for<T>(
        &self,
        bell: &Notify,
        mut ready: impl FnMut(&mut Switchboard, Timestamp) -> Poll<Result<T, Error>>,
    ) -> Result<T, Error> {
        // Why: a loop of calls that need not wait would keep the background task from its turn.
        tokio::task::consume_budget().await;
        loop {
            // Why before looking: a ring between looking and waiting would be missed.
            let rung = bell.notified();
            if let Some(result) = self.poll_once(&mut ready) {
                return result;
            }
            rung.await;
        }
    }

    fn poll_once<T>(&self, ready: &mut impl FnMut(&mut Switchboard, Timestamp) -> Poll<Result<T, Error>>) -> Option<Result<T, Error>> {
        let mut board = self.shared.lock();
        let now = self.clock.now();
        let result = match (ready(&mut board, now), &board.failure) {
            (Poll::Ready(Ok(value)), _) => Ok(value),
            (Poll::Ready(Err(_)) | Poll::Pending, Some(failure)) => Err(system(failure)),
            (Poll::Ready(Err(error)), None) => Err(error),
            (Poll::Pending, None) => return None,
        };
        drop(board);
        self.shared.changed();
        Some(result)
    }
}

/// Ends every wait when the background task ends: the runtime may be shut down at any await.
#[derive(Debug)]
struct Driven {
    line: Line,
    socket: Arc<Socket>,
}

impl Driven {
    /// The system has failed: no connection can be told.
    fn stop(&self, cause: &io::Error) {
        let mut board = self.line.shared.lock();
        if board.failure.is_none() {
            board.stop(self.line.clock.now(), cause);
        }
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        let mut board = self.line.shared.lock();
        if board.failure.is_some() {
            return;
        }
        // Why on this thread: nothing else of the runtime will run any more.
        if !board.hub.is_empty()
            && let Ok(mut driver) = BlockingDriver::new(Arc::clone(&self.socket), self.line.clock, DriverConfig::default())
        {
            closing::finish(&mut board.hub, &mut driver);
        }
        let cause = io::Error::other("the tokio runtime that drove the endpoint has been shut down");
        board.stop(self.line.clock.now(), &cause);
    }
}

impl Endpoint for Switchboard {
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
