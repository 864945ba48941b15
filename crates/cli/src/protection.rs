//! What protects a transfer on its way: the flags of both ends, our identity, and what `--insecure` means.
//!
//! Called by `send` and `recv` before they open a socket; whom each of them trusts is in `send/trust` and
//! `recv/admitting`.
//!
//! Invariant: a transfer is encrypted unless `--insecure` was given, and then it is said each time. No key comes from
//! anything but the system's entropy, a file or a one-time code.

use crate::given::Given;
use crate::usage;
use anyhow::{Context as _, Result};
use clap::Args;
use etcetera::BaseStrategy as _;
use segstream::{Authorities, Identity};
use std::path::PathBuf;

/// The folder of ours in the user's configuration directory.
const FOLDER: &str = "segstream";
/// The identity, unless another file is named.
const IDENTITY: &str = "identity.pem";

/// The flags of both ends, by the names of their fields, that mean something with encryption only.
const ENCRYPTED: &[&str] = &["identity", "certificate", "authority"];

/// The flags of both ends.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Protection")]
pub(crate) struct Protection {
    /// The private key of this end, PKCS#8 in PEM. The file is created with a new key if it does not exist [default:
    /// segstream/identity.pem in the user's configuration directory].
    #[arg(long, value_name = "FILE")]
    identity: Option<PathBuf>,
    /// The certificate chain of the private key in PEM, the key's own certificate first. Needed by a peer that uses --authority.
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
    /// Root certificates in PEM. `send` then accepts a receiver with a certificate for the host in ADDR, and `recv` serves
    /// every sender with a certificate.
    #[arg(long, value_name = "FILE")]
    authority: Option<PathBuf>,
    /// No encryption and no authentication, for laboratories: anyone on the path can read and change what is sent. Both ends
    /// must use it.
    #[arg(long)]
    insecure: bool,
}

impl Protection {
    /// Refuses what contradicts `--insecure`: the flags of both ends, and those of this one.
    ///
    /// # Errors
    /// Bad usage.
    pub(crate) fn check(given: &Given, of_this_end: &[&str]) -> Result<()> {
        given.contradiction("insecure", &[ENCRYPTED, of_this_end].concat(), "without encryption there are no keys")
    }

    /// Refuses another scheme unless it was said that it travels in the clear.
    ///
    /// # Errors
    /// Bad usage.
    pub(crate) fn check_scheme(&self, scheme: &str) -> Result<()> {
        if self.insecure {
            return Ok(());
        }
        Err(usage::bad(format!(
            "--scheme {scheme} has no encryption: anyone on the path can read and change what is sent. It is for laboratories; give --insecure \
             to confirm that, or leave --scheme out"
        )))
    }

    /// Whether the transfer is in the clear.
    pub(crate) const fn is_insecure(&self) -> bool {
        self.insecure
    }

    /// Says what a transfer in the clear is exposed to.
    pub(crate) fn tell(&self) {
        if self.insecure {
            eprintln!("insecure: no encryption and no authentication; anyone on the path can read and change what is sent");
        }
    }

    /// Our key and its certificates. When there was none yet one is made, and the sentence for people says so.
    pub(crate) fn identity(&self) -> Result<(Identity, Option<String>)> {
        let file = self.identity_file()?;
        let is_new = !file.exists();
        let identity = Identity::load_or_create(&file)?;
        let made = is_new.then(|| format!("a new identity was made in {}: {}", file.display(), identity.fingerprint()));
        let identity = match &self.certificate {
            Some(certificate) => identity.with_certificates(certificate)?,
            None => identity,
        };
        Ok((identity, made))
    }

    /// The file of our key.
    fn identity_file(&self) -> Result<PathBuf> {
        if let Some(file) = &self.identity {
            return Ok(file.clone());
        }
        let directories = etcetera::choose_base_strategy()
            .context("the user's configuration directory cannot be found; give a file for the private key with --identity")?;
        Ok(directories.config_dir().join(FOLDER).join(IDENTITY))
    }

    /// A file of ours in the directory of our key.
    pub(crate) fn beside_identity(&self, name: &str) -> Result<PathBuf> {
        Ok(self.identity_file()?.with_file_name(name))
    }

    /// Whose word counts for names, if anybody's.
    pub(crate) fn authorities(&self) -> Result<Option<Authorities>> {
        Ok(self.authority.as_deref().map(Authorities::load).transpose()?)
    }
}
