//! Two hosts: `serve` starts receivers when it is asked to, `run` asks and starts the senders.
//!
//! Called by the verb. Both talk over a connection of this protocol, encrypted, with a one-time code; what is measured goes
//! between processes of its own, on ports of its own.
//!
//! Invariant: a server starts nothing but ends of its own catalogue, with the flags of a [`Job`] that it has read itself.

use super::child::{End, Role};
use super::end::job::Job;
use super::end::line::{Known, Listening, Outcome};
use super::measurement::{Processors, Sample};
use super::transport::{Catalogue, Transport};
use crate::address;
use crate::code_argument::{CodeArguments, VARIABLE};
use crate::interruption::{Interruption, Shutdown, ShutdownArgument, ShutdownStage};
use crate::metrics_server::MetricsArgument;
use crate::usage;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use segstream::blocking::Endpoint;
use segstream::{Admission, ConnectionId, Contract, Error, Fingerprint, Identity, OneTimeCode, Peer, Received, StreamId};
use segstream_base::Duration;
use segstream_lab::machine::Machine;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

/// How long the network is served between two looks at a child.
const LOOK: Duration = Duration::from_millis(20);

/// Serves measurements from another host until it is interrupted.
///
/// It prints the command for the other host. The measurements use free UDP ports, and free TCP ports for transports over
/// TCP; a firewall between the two hosts must let them through.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  segstream bench serve --listen 0.0.0.0:4433")]
pub(super) struct ServeArguments {
    /// The address to listen on; port 0 selects a free port. The receivers use the same IP address.
    #[arg(long, value_name = "ADDR", value_parser = address::numeric, default_value = "0.0.0.0:0", alias = "bind")]
    listen: SocketAddr,
    /// The path of the program segstream-peers [default: the directory of this program, then PATH].
    #[arg(long, value_name = "PATH")]
    peers: Option<PathBuf>,
    /// Does not pin the ends to processors.
    #[arg(long)]
    no_pin: bool,
    #[command(flatten)]
    metrics: MetricsArgument,
    #[command(flatten)]
    shutdown: ShutdownArgument,
}

/// Whom `run` goes to.
#[derive(Debug, Args)]
pub(super) struct ServerArguments {
    /// The address of `segstream bench serve`.
    #[arg(value_name = "HOST:PORT")]
    address: String,
    /// The fingerprint that it prints.
    #[arg(long, value_name = "FINGERPRINT")]
    peer: Fingerprint,
    #[command(flatten)]
    code: CodeArguments,
}

/// What the server says first.
#[derive(Debug, Serialize, Deserialize)]
struct Greeting {
    version: String,
    machine: Machine,
    transports: Vec<Known>,
}

/// Starts a receiver.
#[derive(Debug, Serialize, Deserialize)]
struct Request {
    transport: String,
    job: Job,
}

/// What became of it: where it listens, then its result; or a sentence.
type Answer<T> = std::result::Result<T, String>;

/// Runs `serve`.
pub(super) fn serve(arguments: &ServeArguments) -> Result<ExitCode> {
    let catalogue = Catalogue::ask(arguments.peers.as_deref(), true)?;
    let (identity, admission) = (Identity::generate()?, Admission::nobody());
    let fingerprint = identity.fingerprint();
    let (builder, metrics) = arguments.metrics.serve(Endpoint::builder().identity(identity).admission(admission.clone()))?;
    let mut endpoint = builder.listen(arguments.listen)?;
    let interruption = Interruption::listen_for_shutdown(endpoint.waker(), metrics.shutdown.clone())?;
    let mut shutdown = Shutdown::of(&interruption, arguments.shutdown);
    let address = endpoint.local_addr();
    eprintln!("listening on {address}");
    if let Some(told) = &metrics.told {
        eprintln!("{told}");
    }
    let place = address::destination(address);
    let processors = Processors::choose(!arguments.no_pin);
    while !interruption.is_asked() && shutdown.at(endpoint.clock().now()) == ShutdownStage::No {
        let code = OneTimeCode::generate()?;
        admission.allow_once(&code)?;
        eprintln!("to measure: {VARIABLE}={code} segstream bench run {place} --peer {fingerprint} --code");
        let id = match endpoint.accept(None) {
            Ok(id) => id,
            Err(Error::Woken) => break,
            Err(error) => return Err(error.into()),
        };
        let mut session =
            Session { endpoint: &mut endpoint, id, answers: StreamId::FIRST, interruption: &interruption, shutdown: &mut shutdown };
        match session.serve(&catalogue, arguments.listen, processors) {
            Ok(measurements) => eprintln!("{measurements} measurements served"),
            Err(_) if interruption.is_asked() => {}
            Err(error) => eprintln!("segstream: {error:#}"),
        }
        endpoint.release(id);
    }
    Ok(ExitCode::SUCCESS)
}

/// A connection of a server to whoever measures.
struct Session<'a> {
    endpoint: &'a mut Endpoint,
    id: ConnectionId,
    /// The stream of the answers.
    answers: StreamId,
    interruption: &'a Interruption,
    shutdown: &'a mut Shutdown,
}

impl Session<'_> {
    /// The next request. After SIGTERM whoever measures may go on for a time, and nobody else comes.
    fn request(&mut self) -> Result<Option<Received>> {
        loop {
            let now = self.endpoint.clock().now();
            let timeout = match self.shutdown.at(now) {
                ShutdownStage::No => None,
                ShutdownStage::Over => bail!("the measurements were not over when the server had to end"),
                ShutdownStage::Until(until) => Some(until.since(now).into()),
                ShutdownStage::Begins => {
                    self.endpoint.stop_accepting();
                    eprintln!("{}", self.shutdown.sentence());
                    continue;
                }
            };
            match self.endpoint.connection(self.id).recv(StreamId(0), timeout) {
                Err(Error::Woken | Error::TimedOut) if !self.interruption.is_asked() => {}
                received => return Ok(received?),
            }
        }
    }

    /// Serves requests until the connection ends; how many there were.
    fn serve(&mut self, catalogue: &Catalogue, bind: SocketAddr, processors: Processors) -> Result<u64> {
        self.answers = self.endpoint.connection(self.id).open_stream(Contract::default())?;
        let transports = catalogue.available().map(|transport| transport.known.clone()).collect();
        self.say(&Greeting { version: env!("CARGO_PKG_VERSION").to_owned(), machine: Machine::here(), transports })?;
        let mut served = 0;
        while let Some(segment) = self.request()? {
            let request: Request =
                serde_json::from_slice(&segment.bytes).context("a request cannot be decoded; use the same version on both hosts")?;
            let name = &request.transport;
            let Some(transport) = catalogue.available().find(|transport| transport.known.name == *name) else {
                self.say(&Answer::<Listening>::Err(format!("this host cannot measure {name}")))?;
                continue;
            };
            let role = Role::Serve { bind: SocketAddr::new(bind.ip(), 0) };
            let started = End::start(&transport.program, name, role, &request.job, processors.serve);
            let listening = started.and_then(|end| end.listening().map(|listening| (end, listening)));
            match listening {
                Ok((end, listening)) => {
                    self.say(&Answer::Ok(listening))?;
                    let outcome = self.outcome(&end)?;
                    self.say(&outcome)?;
                    served += 1;
                }
                Err(error) => self.say(&Answer::<Listening>::Err(format!("{error:#}")))?,
            }
        }
        Ok(served)
    }

    /// The result of `end`, with the network served until it comes.
    fn outcome(&mut self, end: &End) -> Result<Answer<Outcome>> {
        loop {
            if let Some(outcome) = end.poll_outcome() {
                return Ok(outcome.map_err(|error| format!("{error:#}")));
            }
            match self.endpoint.connection(self.id).closed(Some(LOOK.into())) {
                Ok(reason) => bail!("the measuring host has disconnected: {reason}"),
                Err(Error::TimedOut) => {}
                Err(Error::Woken) if !self.interruption.is_asked() => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn say(&mut self, value: &impl Serialize) -> Result<()> {
        self.endpoint.connection(self.id).send(self.answers, serde_json::to_vec(value)?.into())?;
        Ok(())
    }
}

/// The connection to a server.
#[derive(Debug)]
pub(super) struct Control {
    endpoint: Endpoint,
    id: ConnectionId,
    answers: StreamId,
    remote: SocketAddr,
    greeting: Greeting,
}

impl Control {
    /// Goes to the server.
    pub(super) fn connect(server: &ServerArguments) -> Result<Self> {
        let remote = address::of_host(&server.address)?;
        let code = server
            .code
            .read(false)?
            .ok_or_else(|| usage::bad("give the one-time code of `segstream bench serve` with --code or --code-file"))?;
        let mut endpoint = Endpoint::builder().identity(Identity::of_code(&code)?).bind(super::end::any_port(remote))?;
        let met = meet(&mut endpoint, (remote, server.peer).into());
        let (id, answers, greeting) = met.with_context(|| {
            format!("{} refuses the handshake; give --peer and --code as `segstream bench serve` prints them now", server.address)
        })?;
        let version = &greeting.version;
        if version != env!("CARGO_PKG_VERSION") {
            bail!("the server has version {version}, this is {}; use the same on both hosts", env!("CARGO_PKG_VERSION"));
        }
        Ok(Self { endpoint, id, answers, remote, greeting })
    }

    /// The server's machine.
    pub(super) const fn machine(&self) -> &Machine {
        &self.greeting.machine
    }

    /// Whether the server can measure it too.
    pub(super) fn has(&self, transport: &str) -> bool {
        self.greeting.transports.iter().any(|known| known.name == transport)
    }

    /// Measures once, the receiver there and the sender here.
    pub(super) fn measure(&mut self, transport: &Transport, job: &Job, processors: Processors) -> Result<Sample> {
        let name = &transport.known.name;
        let request = serde_json::to_vec(&Request { transport: name.clone(), job: job.clone() })?;
        self.endpoint.connection(self.id).send(StreamId(0), request.into())?;
        let listening: Listening = self.answer()?;
        let connect = SocketAddr::new(self.remote.ip(), listening.listening.port());
        let role = Role::Run { connect, trust: &listening.trust };
        let sender = End::start(&transport.program, name, role, job, processors.run)?;
        let run = loop {
            if let Some(outcome) = sender.poll_outcome() {
                break outcome;
            }
            match self.endpoint.connection(self.id).closed(Some(LOOK.into())) {
                Ok(reason) => bail!("the server has disconnected: {reason}"),
                Err(Error::TimedOut) => {}
                Err(error) => return Err(error.into()),
            }
        };
        Ok(Sample { serve: self.answer()?, run: run? })
    }

    /// Says goodbye, so that the server can serve the next.
    pub(super) fn close(mut self) -> Result<()> {
        self.endpoint.connection(self.id).close(0, "done")?;
        Ok(self.endpoint.close()?)
    }

    fn answer<T: DeserializeOwned>(&mut self) -> Result<T> {
        let answer: Answer<T> = read(&mut self.endpoint, self.id, self.answers)?;
        answer.map_err(|sentence| anyhow::anyhow!("on the server: {sentence}"))
    }
}

/// Connects, and hears what the server says first, on which stream.
fn meet(endpoint: &mut Endpoint, server: Peer) -> Result<(ConnectionId, StreamId, Greeting)> {
    let id = endpoint.connect(server, vec![Contract::default()])?;
    let answers = endpoint.connection(id).accept_stream(None)?.context("the server has ended")?;
    Ok((id, answers, read(endpoint, id, answers)?))
}

/// The next thing that the server says.
fn read<T: DeserializeOwned>(endpoint: &mut Endpoint, id: ConnectionId, stream: StreamId) -> Result<T> {
    let segment = endpoint.connection(id).recv(stream, None)?.context("the server has ended")?;
    serde_json::from_slice(&segment.bytes).context("the answer of the server cannot be decoded; use the same version on both hosts")
}
