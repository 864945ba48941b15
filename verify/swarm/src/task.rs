//! Scheduled tasks of applications, faults and the attacker.
//!
//! Scheduled by the swarm and by applications in the event queue of the network, which returns it when it is due.

/// Something that is due.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Task {
    /// An application asks for a connection: number in the plan.
    Connect(usize),
    /// An application continues a stream.
    Stream {
        /// Which side.
        side: u32,
        /// Which of its streams, in the order of the plan.
        stream: usize,
    },
    /// An application closes, breaks off or changes something.
    Act {
        /// Which side.
        side: u32,
        /// What it does.
        act: Act,
    },
    /// A fault begins: number in the plan.
    Fault(usize),
    /// The fault is over.
    Mend(usize),
    /// A hostile datagram arrives.
    Attack,
}

/// What an application does besides sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// Asks for a graceful end.
    Close,
    /// Breaks off.
    Abort,
    /// Asks for the next class and rate of its plan.
    Reconfigure,
}
