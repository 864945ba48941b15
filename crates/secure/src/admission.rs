//! Whom a responder serves.
//!
//! The command or the library's user fills it, also at run time. Sessions check it twice: when the peer has proved its key, and at the
//! end of the handshake, which admits the peer.
//!
//! Invariant: a key that is allowed once is admitted once, by the first handshake that completes. No key has more connections at a time than
//! one may have.

use crate::{Authorities, Fingerprint, Identity, IdentityError, OneTimeCode};
use core::fmt;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Whom a responder serves. Clones share one list.
#[derive(Clone, Default)]
pub struct Admission(Arc<Mutex<List>>);

#[derive(Default)]
struct List {
    anyone: bool,
    keys: BTreeSet<Fingerprint>,
    once: BTreeSet<Fingerprint>,
    authorities: Vec<Authorities>,
    /// The most connections of one key at a time, if there is a limit.
    connections_per_peer: Option<usize>,
    /// The connections of each key that there are.
    places: BTreeMap<Fingerprint, usize>,
}

/// Why a peer is not admitted at the end of its handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The key was allowed once, and another connection has used it.
    UsedUp,
    /// The key has so many connections, and may have no more.
    Full(usize),
}

/// The place of an admitted connection, which it keeps until it is gone.
pub(crate) struct Place {
    admission: Admission,
    key: Fingerprint,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut list = self.admission.list();
        if let Some(count) = list.places.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                list.places.remove(&self.key);
            }
        }
    }
}

impl Admission {
    /// Serves no peer until one is allowed.
    pub fn nobody() -> Self {
        Self::default()
    }

    /// Serves every peer. Each still authenticates itself by a key, so fingerprints identify peers.
    pub fn anyone() -> Self {
        Self(Arc::new(Mutex::new(List { anyone: true, ..List::default() })))
    }

    /// Serves the holder of this key from now on.
    pub fn allow(&self, key: Fingerprint) {
        self.list().keys.insert(key);
    }

    /// Serves one connection of a peer that knows this code. Returns the key that is derived from the code.
    ///
    /// # Errors
    /// As [`Identity::of_code`].
    pub fn allow_once(&self, code: &OneTimeCode) -> Result<Fingerprint, IdentityError> {
        let key = Identity::of_code(code)?.fingerprint();
        self.list().once.insert(key);
        Ok(key)
    }

    /// Serves every peer that one of these authorities has certified for client authentication.
    pub fn allow_certified(&self, authorities: Authorities) {
        self.list().authorities.push(authorities);
    }

    /// Whether the holder of this key would be admitted now. Does not use up a key that is allowed once.
    pub(crate) fn would_admit(&self, key: Fingerprint, certified: bool) -> bool {
        let list = self.list();
        list.anyone || certified || list.keys.contains(&key) || list.once.contains(&key)
    }

    /// Whether nobody at all would be admitted now.
    pub(crate) fn serves_nobody(&self) -> bool {
        let list = self.list();
        !list.anyone && list.keys.is_empty() && list.once.is_empty() && list.authorities.is_empty()
    }

    /// The holder of one key has so many connections at most.
    pub(crate) fn set_connections_per_peer(&self, most: usize) {
        self.list().connections_per_peer = Some(most);
    }

    /// Admits the holder of this key, or not. Uses up a key that is allowed once, unless the holder is allowed in another way too.
    pub(crate) fn admit(&self, key: Fingerprint, certified: bool) -> Result<Place, Refused> {
        let mut list = self.list();
        let count = list.places.get(&key).copied().unwrap_or(0);
        if list.connections_per_peer.is_some_and(|most| count >= most) {
            return Err(Refused::Full(count));
        }
        if !(list.anyone || certified || list.keys.contains(&key) || list.once.remove(&key)) {
            return Err(Refused::UsedUp);
        }
        list.places.insert(key, count + 1);
        Ok(Place { admission: self.clone(), key })
    }

    /// The trusted authorities.
    pub(crate) fn authorities(&self) -> Vec<Authorities> {
        self.list().authorities.clone()
    }

    fn list(&self) -> MutexGuard<'_, List> {
        // Why poisoning is ignored: no change of the list can be left half done.
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
