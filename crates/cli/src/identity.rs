//! `segstream identity`: our own key, and the keys of known peers.
//!
//! Called from the command line. The files are those that `send` and `recv` use.
//!
//! Invariant: no private key is shown, and none is changed: a key is made when there is none, and forgetting concerns peers only.

use crate::protection::{KNOWN_PEERS, identity_file};
use crate::{json, usage};
use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand};
use segstream::{Fingerprint, Identity, KnownPeers};
use serde::Serialize;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

/// Shows the fingerprint of this user's key, and the known peers. Makes a key if there is none.
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
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Forgets the key of a known peer, so that the next connection to it needs --peer again.
    Forget {
        /// The address as it is listed.
        #[arg(value_name = "HOST:PORT")]
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
}

/// A known peer in the JSON object.
#[derive(Debug, Serialize)]
struct Peer {
    address: String,
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
    let known = arguments.files.known_peers()?;
    let made = !file.exists();
    let fingerprint = Identity::load_or_create(&file)?.fingerprint();
    let peer = |(address, key): (&str, Fingerprint)| Peer { address: address.to_owned(), fingerprint: key.to_string() };
    let summary = Summary { fingerprint: fingerprint.to_string(), file, made, known_peers: known.iter().map(peer).collect() };
    if arguments.json {
        return json::print(&summary);
    }
    let was = if made { "made in" } else { "in" };
    eprintln!("the private key is {was} {}", summary.file.display());
    let mut out = io::stdout().lock();
    let mut line = |text: String| writeln!(out, "{text}").context("standard output cannot be written");
    line(summary.fingerprint)?;
    summary.known_peers.iter().try_for_each(|Peer { address, fingerprint }| line(format!("{address} {fingerprint}")))
}

fn forget(files: &Files, address: &str) -> Result<()> {
    let mut known = files.known_peers()?;
    match known.forget(address)? {
        Some(key) => eprintln!("the key {key} of {address} is forgotten"),
        None if known.iter().next().is_none() => bail!("no peer is known, so none can be forgotten"),
        None => {
            let all: Vec<&str> = known.iter().map(|(address, _)| address).collect();
            return Err(usage::bad(format!("{address} is not known; known are {}", all.join(", "))));
        }
    }
    Ok(())
}

impl Files {
    fn known_peers(&self) -> Result<KnownPeers> {
        let file = match &self.known_peers {
            Some(file) => file.clone(),
            None => identity_file(self.identity.as_deref())?.with_file_name(KNOWN_PEERS),
        };
        Ok(KnownPeers::load(&file)?)
    }
}
