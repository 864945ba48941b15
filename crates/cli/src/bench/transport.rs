//! The transports that can be measured: those of this program, and those of `segstream-peers` where it is.
//!
//! Called by the verb before anything is measured, and by the server of [`super::remote`].
//!
//! Invariant: a transport that is named can be started, or the command line is refused.

use super::end;
use super::end::line::Known;
use crate::usage;
use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The program of the other transports.
const PEERS: &str = "segstream-peers";
/// How it is made.
const BUILD_PEERS: &str = "cargo build --release --manifest-path bench/peers/Cargo.toml";
/// What it can know, by name; which of them it was built with it says itself.
const PEER_NAMES: &[&str] = &["quinn", "s2n-quic", "tcp", "srt", "srt-aes", "udt", "kcp", "enet", "aeron"];

/// A program that has ends.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) file: PathBuf,
    /// What stands before `end` on its command line.
    pub(super) words: Vec<&'static str>,
}

impl Program {
    /// Whether it is this command, which knows flags that only our ends have.
    pub(super) fn is_ours(&self) -> bool {
        !self.words.is_empty()
    }
}

/// A transport, and the program that has its ends.
#[derive(Clone, Debug)]
pub(super) struct Transport {
    pub(super) known: Known,
    pub(super) program: Program,
}

/// What can be measured on this machine.
#[derive(Debug)]
pub(super) struct Catalogue {
    ours: Vec<Transport>,
    /// Of the peers' program; `None` where there is none.
    peers: Option<Vec<Transport>>,
}

impl Catalogue {
    /// Asks the programs: this one, and the peers' at `peers`, beside this one or on PATH. The latter only if `with_peers`.
    pub(super) fn ask(peers: Option<&Path>, with_peers: bool) -> Result<Self> {
        let own = std::env::current_exe().context("this program cannot find itself")?;
        let program = Program { file: own.clone(), words: vec!["bench"] };
        let ours = end::list().into_iter().map(|known| Transport { known, program: program.clone() }).collect();
        let found = if with_peers { peers.map(Path::to_owned).or_else(|| find_peers(&own)) } else { None };
        Ok(Self { ours, peers: found.as_deref().map(ask).transpose()? })
    }

    /// Everything that can be measured here.
    pub(super) fn available(&self) -> impl Iterator<Item = &Transport> {
        self.ours.iter().chain(self.peers.iter().flatten()).filter(|transport| transport.known.available)
    }

    /// One of ours.
    pub(super) fn our(&self, name: &str) -> Result<Transport> {
        self.available().find(|transport| transport.known.name == name).cloned().with_context(|| format!("there is no transport {name}"))
    }

    /// Those to compare with, as `--against` names them.
    pub(super) fn against(&self, names: &[String]) -> Result<Vec<Transport>> {
        let mut chosen: Vec<Transport> = Vec::new();
        for name in names {
            let found = if name == "all" {
                self.available().filter(|transport| !is_chosen_by_protection(&transport.known.name)).cloned().collect()
            } else {
                vec![self.named(name)?]
            };
            for transport in found {
                if !chosen.iter().any(|before| before.known.name == transport.known.name) {
                    chosen.push(transport);
                }
            }
        }
        Ok(chosen)
    }

    fn named(&self, name: &str) -> Result<Transport> {
        if is_chosen_by_protection(name) {
            return Err(usage::bad(format!("{name} is measured anyway unless --protection leaves it out; name others with --against")));
        }
        let found = self.ours.iter().chain(self.peers.iter().flatten()).find(|transport| transport.known.name == name);
        match found {
            Some(transport) if transport.known.available => Ok(transport.clone()),
            Some(Transport { known, program }) => {
                let why = known.why.as_deref().unwrap_or("it was built without");
                bail!("{} cannot measure {name}: {why}", program.file.display())
            }
            None if self.peers.is_none() && PEER_NAMES.contains(&name) => {
                bail!(
                    "the program {PEERS}, which measures {name}, is neither beside this one nor on PATH; build it with `{BUILD_PEERS}` and name it with --peers"
                )
            }
            None => Err(usage::bad(format!("there is no transport \"{name}\"; choose of {}, or all", self.names()))),
        }
    }

    fn names(&self) -> String {
        let peers = match &self.peers {
            Some(peers) => peers.iter().map(|transport| transport.known.name.clone()).collect(),
            None => PEER_NAMES.iter().map(|&name| name.to_owned()).collect::<Vec<_>>(),
        };
        ["raw".to_owned()].into_iter().chain(peers).collect::<Vec<_>>().join(", ")
    }
}

fn is_chosen_by_protection(name: &str) -> bool {
    name == "plain" || name == "encrypted"
}

/// The peers' program beside `own`, or on PATH.
fn find_peers(own: &Path) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = own.parent().map(Path::to_owned).into_iter().chain(std::env::split_paths(&path));
    folders.map(|folder| folder.join(PEERS)).find(|file| file.is_file())
}

/// What the program at `file` can be an end of.
fn ask(file: &Path) -> Result<Vec<Transport>> {
    let asked = Command::new(file).args(["end", "--list", "--json"]).stderr(Stdio::inherit()).output();
    let answer = asked.with_context(|| format!("{} cannot be started; build it with `{BUILD_PEERS}`", file.display()))?;
    let known: Vec<Known> =
        serde_json::from_slice(&answer.stdout).with_context(|| format!("{} does not say what it can measure", file.display()))?;
    let program = Program { file: file.to_owned(), words: Vec::new() };
    Ok(known.into_iter().map(|known| Transport { known, program: program.clone() }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalogue(peers: Option<Vec<(&str, bool)>>) -> Catalogue {
        let program = Program { file: PathBuf::from("p"), words: Vec::new() };
        let transport = |(name, available): (&str, bool)| {
            let name = name.to_owned();
            let known =
                Known { name, version: "1".into(), encrypts: true, settings: String::new(), available, why: Some("no library".into()) };
            Transport { known, program: program.clone() }
        };
        let ours = [("plain", true), ("encrypted", true), ("raw", true)].map(transport).to_vec();
        Catalogue { ours, peers: peers.map(|peers| peers.into_iter().map(transport).collect()) }
    }

    fn names(chosen: &[Transport]) -> Vec<&str> {
        chosen.iter().map(|transport| transport.known.name.as_str()).collect()
    }

    #[test]
    fn all_are_those_that_are_there_and_nobody_is_measured_twice() {
        let all = catalogue(Some(vec![("quinn", true), ("udt", false)]));
        let chosen = all.against(&["quinn".to_owned(), "all".to_owned()]).unwrap();
        assert_eq!(names(&chosen), ["quinn", "raw"]);
        assert_eq!(names(&catalogue(None).against(&["all".to_owned()]).unwrap()), ["raw"]);
    }

    #[test]
    fn a_transport_that_is_not_there_is_refused_with_what_it_lacks() {
        for (catalogue, name, sentence) in [
            (catalogue(None), "quinn", "cargo build --release"),
            (catalogue(Some(vec![("udt", false)])), "udt", "no library"),
            (catalogue(Some(vec![("udt", true)])), "quinn", "choose of raw, udt, or all"),
            (catalogue(None), "quick", "choose of raw, quinn"),
            (catalogue(None), "plain", "--protection"),
        ] {
            let error = catalogue.against(&[name.to_owned()]).unwrap_err();
            assert!(error.to_string().contains(sentence), "{error}");
        }
    }
}
