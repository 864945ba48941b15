//! `segstream identity`: our own key, and the keys of known peers.
//!
//! Called from the command line. The files are those that `send` and `recv` use.
//!
//! Invariant: no private key is shown, and none is changed: a key is made when there is none, and forgetting concerns peers only.

use crate::protection::{KNOWN_PEERS, KNOWN_SENDERS, identity_file};
use crate::{json, usage};
use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand};
use segstream::{Fingerprint, Identity, KnownPeers};
use serde::Serialize;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Shows the fingerprint of this user's key, the known receivers, and the senders that are remembered. Makes a key if there is none.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:\n  segstream identity\n  segstream identity forget 192.0.2.1:4433\n\n\
                        To admit this user, the other end gives the fingerprint: segstream recv --allow FINGERPRINT.")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    task: Option<Task>,
    #[command(flatten)]
    files: Files,
    /// Prints one JSON object on standard output.
    #[arg(long)]
    json: bool,
}

/// Where the keys are.
#[derive(Debug, Args)]
struct Files {
    /// The private key, PKCS#8 in PEM [default: segstream/identity.pem in the user's configuration directory].
    #[arg(long, value_name = "FILE")]
    identity: Option<PathBuf>,
    /// The file of known peers [default: known_peers in the directory of the identity].
    #[arg(long, value_name = "FILE")]
    known_peers: Option<PathBuf>,
    /// The file of remembered senders [default: known_senders in the directory of the identity].
    #[arg(long, value_name = "FILE")]
    known_senders: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Forgets a known receiver, so that the next connection to it needs --peer again, or a remembered sender, which then needs a code again.
    Forget {
        /// The address of the receiver, or the name of the sender, as it is listed.
        #[arg(value_name = "HOST:PORT|NAME")]
        address: String,
        #[command(flatten)]
        files: Files,
    },
}

/// The JSON object.
#[derive(Debug, Serialize)]
struct Summary {
    fingerprint: String,
    file: PathBuf,
    made: bool,
    known_peers: Vec<Peer>,
    known_senders: Vec<Sender>,
}

/// A known peer in the JSON object.
#[derive(Debug, Serialize)]
struct Peer {
    address: String,
    fingerprint: String,
}

/// A remembered sender in the JSON object.
#[derive(Debug, Serialize)]
struct Sender {
    name: String,
    fingerprint: String,
}

/// Runs the verb.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    match &arguments.task {
        None => show(arguments)?,
        Some(Task::Forget { address, files }) => forget(files, address)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn show(arguments: &Arguments) -> Result<()> {
    let file = identity_file(arguments.files.identity.as_deref())?;
    let (known, senders) = (arguments.files.known_peers()?, arguments.files.known_senders()?);
    let made = !file.exists();
    let fingerprint = Identity::load_or_create(&file)?.fingerprint();
    let peer = |(address, key): (&str, Fingerprint)| Peer { address: address.to_owned(), fingerprint: key.to_string() };
    let sender = |(name, key): (&str, Fingerprint)| Sender { name: name.to_owned(), fingerprint: key.to_string() };
    let summary = Summary {
        fingerprint: fingerprint.to_string(),
        file,
        made,
        known_peers: known.iter().map(peer).collect(),
        known_senders: senders.iter().map(sender).collect(),
    };
    if arguments.json {
        return json::print(&summary);
    }
    let was = if made { "made in" } else { "in" };
    eprintln!("the private key is {was} {}", summary.file.display());
    let mut out = io::stdout().lock();
    let mut line = |text: String| writeln!(out, "{text}").context("standard output cannot be written");
    line(summary.fingerprint)?;
    summary.known_peers.iter().try_for_each(|Peer { address, fingerprint }| line(format!("{address} {fingerprint}")))?;
    summary.known_senders.iter().try_for_each(|Sender { name, fingerprint }| line(format!("sender {name} {fingerprint}")))
}

fn forget(files: &Files, address: &str) -> Result<()> {
    let (mut known, mut senders) = (files.known_peers()?, files.known_senders()?);
    // A receiver has a port behind a colon, which no name of a sender has.
    let forgotten = match known.forget(address)? {
        Some(key) => Some(key),
        None => senders.forget(address)?,
    };
    if let Some(key) = forgotten {
        eprintln!("the key {key} of {address} is forgotten");
        return Ok(());
    }
    let all: Vec<&str> = known.iter().chain(senders.iter()).map(|(address, _)| address).collect();
    if all.is_empty() {
        bail!("no peer is known, so none can be forgotten");
    }
    Err(usage::bad(format!("{address} is not known; known are {}", all.join(", "))))
}

impl Files {
    fn known_peers(&self) -> Result<KnownPeers> {
        self.load(self.known_peers.as_deref(), KNOWN_PEERS)
    }

    fn known_senders(&self) -> Result<KnownPeers> {
        self.load(self.known_senders.as_deref(), KNOWN_SENDERS)
    }

    fn load(&self, named: Option<&Path>, name: &str) -> Result<KnownPeers> {
        let file = match named {
            Some(file) => file.to_owned(),
            None => identity_file(self.identity.as_deref())?.with_file_name(name),
        };
        Ok(KnownPeers::load(&file)?)
    }
}
