//! What protects a transfer on its way, and what `--insecure` means.
//!
//! Called by `send` and `recv` before they open a socket.
//!
//! Invariant: nobody sends or receives in the clear without having been told.

use clap::Args;

/// The flag of both ends.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Protection {
    /// Transfers in the clear: anyone on the path can read and change what is sent. Both ends must agree; so far there
    /// is no other mode, and without this flag a warning says so.
    #[arg(long)]
    insecure: bool,
}

impl Protection {
    /// Says what the transfer is exposed to.
    pub(crate) fn tell(self) {
        if self.insecure {
            eprintln!("insecure: integrity check only, in the clear");
        } else {
            eprintln!(
                "warning: encryption does not exist yet: anyone on the path can read and change what is sent; give --insecure to say that you know"
            );
        }
    }
}
