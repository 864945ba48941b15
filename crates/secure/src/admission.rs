//! Whom a responder serves.
//!
//! Filled by the command or the library's user, while it runs too; asked by sessions: at the peer's proof whether it
//! may enter at all, and at the end of the handshake to let it in.
//!
//! Invariant: a place given once is taken once, by a handshake that completes, however many hope for it meanwhile.

use crate::{Authorities, Fingerprint, Identity, IdentityError, OneTimeCode};
use core::fmt;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Whom a responder serves. Clones share one list: what is allowed through one is allowed through all.
#[derive(Clone, Default)]
pub struct Admission(Arc<Mutex<List>>);

#[derive(Default)]
struct List {
    anyone: bool,
    keys: BTreeSet<Fingerprint>,
    once: BTreeSet<Fingerprint>,
    authorities: Vec<Authorities>,
}

impl Admission {
    /// Serves nobody, until somebody is allowed.
    pub fn nobody() -> Self {
        Self::default()
    }

    /// Serves whoever has a key, that is everybody. Their fingerprints still tell them apart.
    pub fn anyone() -> Self {
        Self(Arc::new(Mutex::new(List { anyone: true, ..List::default() })))
    }

    /// Serves the holder of this key from now on.
    pub fn allow(&self, key: Fingerprint) {
        self.list().keys.insert(key);
    }

    /// Serves one connection of whoever knows this code: of the holder of the key that is returned.
    ///
    /// # Errors
    /// As [`Identity::of_code`].
    pub fn allow_once(&self, code: &OneTimeCode) -> Result<Fingerprint, IdentityError> {
        let key = Identity::of_code(code)?.fingerprint();
        self.list().once.insert(key);
        Ok(key)
    }

    /// Serves whoever one of these authorities has certified for this use.
    pub fn allow_certified(&self, authorities: Authorities) {
        self.list().authorities.push(authorities);
    }

    /// Whether the holder of this key can be let in as things stand. Takes no place.
    pub(crate) fn would_admit(&self, key: Fingerprint, certified: bool) -> bool {
        let list = self.list();
        list.anyone || certified || list.keys.contains(&key) || list.once.contains(&key)
    }

    /// Lets the holder of this key in, or not. Takes the place of one who is allowed once and not otherwise.
    pub(crate) fn admit(&self, key: Fingerprint, certified: bool) -> bool {
        let mut list = self.list();
        list.anyone || certified || list.keys.contains(&key) || list.once.remove(&key)
    }

    /// The authorities whose word counts.
    pub(crate) fn authorities(&self) -> Vec<Authorities> {
        self.list().authorities.clone()
    }

    fn list(&self) -> MutexGuard<'_, List> {
        // No change of the list can be left half done, so one that panicked elsewhere leaves it whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = self.list();
        f.debug_struct("Admission")
            .field("anyone", &list.anyone)
            .field("keys", &list.keys)
            .field("once", &list.once)
            .field("authorities", &list.authorities.len())
            .finish()
    }
}
