//! HTTP for a few readers, on a thread of its own: what they ask is answered from memory.
//!
//! Started by `metrics_server`, once for each socket. It ends with the program.
//!
//! Invariant: what readers can cost is bounded: there are at most [`CONNECTIONS_MAX`] at a time, each for a while, and one that says nothing for
//! a shorter while. No error of a socket ends the server: if the process or the system has no file descriptor left, it goes on when there is one.

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many readers are connected at a time; others wait.
const CONNECTIONS_MAX: usize = 32;
/// So long a reader may say nothing before its connection is closed.
const SILENCE_MAX: Duration = Duration::from_secs(20);
/// So long a reader may stay connected. It is answered before it is disconnected, if it takes the answer within [`SILENCE_MAX`].
const CONNECTED_MAX: Duration = Duration::from_secs(600);
/// When accepting fails it is tried again after this time.
const RETRY: Duration = Duration::from_millis(100);

/// The answer to a request.
pub(crate) type Answer = Response<Full<Bytes>>;

/// Where a server listens.
#[derive(Debug)]
pub(crate) enum Listener {
    /// An address that others may reach.
    Address(std::net::TcpListener),
    /// A socket in the file system.
    Local(UnixListener),
}

impl Listener {
    /// Listens at an address.
    ///
    /// # Errors
    /// If the system does not give it.
    pub(crate) fn at(address: SocketAddr) -> io::Result<Self> {
        std::net::TcpListener::bind(address).map(Self::Address)
    }

    /// Listens at a socket in the file system.
    ///
    /// # Errors
    /// If the system cannot make it.
    pub(crate) fn local(path: &Path) -> io::Result<Self> {
        UnixListener::bind(path).map(Self::Local)
    }

    /// Its address, if it has one.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Address(listener) => listener.local_addr().ok(),
            Self::Local(_) => None,
        }
    }
}

/// Answers requests on a thread of its own, and calls `upkeep` each `upkeep_every`.
///
/// # Errors
/// If the system cannot start a thread, or has no file descriptor left.
pub(crate) fn start(
    listener: Listener,
    answer: impl Fn(&Request<Incoming>) -> Answer + Send + Sync + 'static,
    (upkeep_every, upkeep): (Duration, impl Fn() + Send + 'static),
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let accepting = {
        let _entered = runtime.enter();
        Accepting::of(listener)?
    };
    std::thread::Builder::new().name("metrics".to_owned()).spawn(move || {
        runtime.block_on(async {
            let mut period = tokio::time::interval(upkeep_every);
            let mut serving = pin!(accepting.serve(Arc::new(answer)));
            loop {
                tokio::select! {
                    _ = period.tick() => upkeep(),
                    () = &mut serving => return,
                }
            }
        });
    })?;
    Ok(())
}

/// A listener of the runtime.
enum Accepting {
    Address(tokio::net::TcpListener),
    Local(tokio::net::UnixListener),
}

impl Accepting {
    fn of(listener: Listener) -> io::Result<Self> {
        match listener {
            Listener::Address(listener) => {
                listener.set_nonblocking(true)?;
                tokio::net::TcpListener::from_std(listener).map(Self::Address)
            }
            Listener::Local(listener) => {
                listener.set_nonblocking(true)?;
                tokio::net::UnixListener::from_std(listener).map(Self::Local)
            }
        }
    }

    /// Accepts readers and answers them, for ever.
    async fn serve(self, answer: Arc<impl Fn(&Request<Incoming>) -> Answer + Send + Sync + 'static>) {
        let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        // The semaphore is never closed.
        while let Ok(place) = Arc::clone(&room).acquire_owned().await {
            let answer = Arc::clone(&answer);
            let accepted = match &self {
                Self::Address(listener) => listener.accept().await.map(|(reader, _)| tokio::spawn(converse(reader, answer, place))),
                Self::Local(listener) => listener.accept().await.map(|(reader, _)| tokio::spawn(converse(reader, answer, place))),
            };
            if accepted.is_err() {
                // Why no error ends the server: they pass (EMFILE, ENFILE, ENOBUFS), or are of one reader (ECONNABORTED).
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

/// Answers what one reader asks, whose place is free afterwards.
async fn converse(
    reader: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    answer: Arc<impl Fn(&Request<Incoming>) -> Answer>,
    _place: OwnedSemaphorePermit,
) {
    let service = service_fn(|request| {
        let answered = answer(&request);
        async { Ok::<Answer, Infallible>(answered) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(SILENCE_MAX);
    let mut connection = pin!(http.serve_connection(TokioIo::new(reader), service));
    tokio::select! {
        // A reader that has gone away, or speaks something else, needs no answer.
        _ = &mut connection => return,
        () = tokio::time::sleep(CONNECTED_MAX) => {}
    }
    connection.as_mut().graceful_shutdown();
    _ = tokio::time::timeout(SILENCE_MAX, connection).await;
}
