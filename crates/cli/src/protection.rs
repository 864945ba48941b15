//! How a transfer is protected: the flags of both ends, our identity, and what `--insecure` means.
//!
//! Called by `send` and `recv` before they open a socket; which peers each of them trusts is in `send/trust` and
//! `recv/sender_admission`.
//!
//! Invariant: a transfer is encrypted unless `--insecure` was given, and then it is said each time. No key comes from
//! anything but the system's entropy, a file or a one-time code.

use crate::explicit_flags::ExplicitFlags;
use crate::usage;
use anyhow::{Context as _, Result};
use clap::Args;
use etcetera::BaseStrategy as _;
use segstream::{Authorities, Builder, Identity, KeyLog};
use std::path::{Path, PathBuf};

/// The folder of ours in the user's configuration directory.
const FOLDER: &str = "segstream";
/// The identity, unless another file is named.
const IDENTITY: &str = "identity.pem";

/// The peers met before, unless another file is named.
pub(crate) const KNOWN_PEERS: &str = "known_peers";
/// The senders that were paired with, unless another file is named.
pub(crate) const KNOWN_SENDERS: &str = "known_senders";

/// The variable of the environment that names a key log, as with browsers (draft-ietf-tls-keylogfile).
const KEY_LOG_VARIABLE: &str = "SSLKEYLOGFILE";

/// The flags of both ends, by the names of their fields, that mean something with encryption only.
const ENCRYPTED: &[&str] = &["identity", "certificate", "authority", "key_log", "key_log_env"];

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
    /// Appends the secrets of the connections to this file (the format of SSLKEYLOGFILE), so that Wireshark can show what a
    /// capture of them contains. Whoever has the file can read the transfer.
    #[arg(long, value_name = "FILE")]
    key_log: Option<PathBuf>,
    /// Appends the secrets to the file that SSLKEYLOGFILE of the environment names. Release builds look at the variable only with this flag;
    /// builds with debug assertions always do, and say so.
    #[arg(long, conflicts_with = "key_log")]
    key_log_env: bool,
    /// No encryption and no authentication, for laboratories: anyone on the path can read and change what is sent. Both ends
    /// must use it.
    #[arg(long)]
    insecure: bool,
}

/// The file of our key: the one that was named, or that of the user.
pub(crate) fn identity_file(named: Option<&Path>) -> Result<PathBuf> {
    if let Some(file) = named {
        return Ok(file.to_owned());
    }
    let directories = etcetera::choose_base_strategy()
        .context("the user's configuration directory cannot be found; give a file for the private key with --identity")?;
    Ok(directories.config_dir().join(FOLDER).join(IDENTITY))
}

impl Protection {
    /// Refuses what contradicts `--insecure`: the flags of both ends, and those of this one.
    ///
    /// # Errors
    /// Bad usage.
    pub(crate) fn check(explicit: &ExplicitFlags, of_this_end: &[&str]) -> Result<()> {
        explicit.contradiction("insecure", &[ENCRYPTED, of_this_end].concat(), "without encryption there are no keys")
    }

    /// Refuses another scheme without `--insecure`: it has no encryption.
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

    /// Our key and its certificates. Generates a key if there was none, and then returns a message that says so.
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
        identity_file(self.identity.as_deref())
    }

    /// A file of ours in the directory of our key.
    pub(crate) fn beside_identity(&self, name: &str) -> Result<PathBuf> {
        Ok(self.identity_file()?.with_file_name(name))
    }

    /// The builder with the key log, if one was named.
    pub(crate) fn with_key_log<E>(&self, builder: Builder<E>) -> Result<Builder<E>> {
        let variable = std::env::var_os(KEY_LOG_VARIABLE).filter(|file| !file.is_empty()).map(PathBuf::from);
        if self.key_log_env && variable.is_none() {
            return Err(usage::bad(format!("--key-log-env needs the variable {KEY_LOG_VARIABLE}, which is not set; give --key-log FILE")));
        }
        let Some(file) = self.key_log_file(cfg!(debug_assertions), variable) else { return Ok(builder) };
        let log = KeyLog::open(&file).with_context(|| format!("the key log {} cannot be opened", file.display()))?;
        eprintln!("key log: whoever has {} can read this transfer", file.display());
        Ok(builder.key_log(log))
    }

    /// The file for secrets, of a debug build or not, where the environment names `variable`.
    // Why not always: whoever sets a variable of the environment would read transfers of programs that never agreed to it.
    fn key_log_file(&self, is_debug: bool, variable: Option<PathBuf>) -> Option<PathBuf> {
        self.key_log.clone().or(variable.filter(|_| self.key_log_env || is_debug))
    }

    /// The authorities whose certificates are accepted, if any were named.
    pub(crate) fn authorities(&self) -> Result<Option<Authorities>> {
        Ok(self.authority.as_deref().map(Authorities::load).transpose()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_build_looks_at_the_environment_only_when_asked() {
        let protection = |key_log: Option<&str>, key_log_env| Protection {
            identity: None,
            certificate: None,
            authority: None,
            key_log: key_log.map(PathBuf::from),
            key_log_env,
            insecure: false,
        };
        let of = |protection: Protection, is_debug| protection.key_log_file(is_debug, Some("variable".into()));
        assert_eq!(of(protection(None, false), false), None);
        assert_eq!(of(protection(None, true), false), Some("variable".into()));
        assert_eq!(of(protection(None, false), true), Some("variable".into()));
        assert_eq!(of(protection(Some("named"), false), true), Some("named".into()));
        assert_eq!(protection(None, true).key_log_file(true, None), None);
    }
}
