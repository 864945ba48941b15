//! Which process this is: asked for with every segment, so it must not cost a system call.
//!
//! Called by whatever must not be touched in the child of a fork.
//!
//! Invariant: after `fork` returns in the child, the number is the child's. Limit: a child that was made without the C library's `fork` keeps
//! the parent's; no Python runs in such a one.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// The number of this process; 0 until it was asked for.
static CURRENT: AtomicU32 = AtomicU32::new(0);

/// The number of this process.
pub(crate) fn current() -> u32 {
    match CURRENT.load(Ordering::Relaxed) {
        0 => first(),
        pid => pid,
    }
}

#[cold]
fn first() -> u32 {
    static WATCHED: OnceLock<bool> = OnceLock::new();
    let pid = std::process::id();
    // SAFETY: the function does only what is allowed between a fork and the child's next step: a system call and a store.
    let watched = *WATCHED.get_or_init(|| unsafe { libc::pthread_atfork(None, None, Some(in_child)) } == 0);
    // Without memory to watch for forks, the system is asked each time.
    if watched {
        CURRENT.store(pid, Ordering::Relaxed);
    }
    pid
}

/// Called in the child, before `fork` returns there.
unsafe extern "C" fn in_child() {
    CURRENT.store(std::process::id(), Ordering::Relaxed);
}
