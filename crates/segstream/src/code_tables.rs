//! The tables of the erasure code, built by a thread of their own once a connection may need them.
//!
//! Called for every connection that was set up. A process builds them once; without this whoever codes first would, while its segment
//! waits: the sender's first repair units, or the receiver's first restored segment.
//!
//! Invariant: no thread is started unless both ends of a connection can handle repair units, and never a second one.

use std::sync::Once;
use std::thread;

/// Has the tables built, unless somebody has already. Returns at once.
pub(crate) fn prepare() {
    static BEGUN: Once = Once::new();
    // Why ignored: where no thread can be started, the first segment that is coded builds them.
    BEGUN.call_once(|| drop(thread::Builder::new().name("segstream-code".to_owned()).spawn(segstream_proto::coding::build_tables)));
}

#[cfg(test)]
mod tests {
    use crate::blocking::Endpoint;
    use crate::{Coding, Config};
    use segstream_proto::coding::are_tables_built;
    use std::net::{Ipv4Addr, SocketAddr};
    use std::thread;
    use std::time::{Duration, Instant};

    /// Two ends connect and part; one of them does with repair units what is said.
    fn connect(coding: Coding) {
        let patience = Some(Duration::from_secs(20));
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut server = Endpoint::builder().allow_anyone().insecure().listen(any).unwrap();
        let peer = server.peer();
        let accepting = thread::spawn(move || {
            let id = server.accept(patience).unwrap();
            server.connection(id).closed(patience).unwrap();
        });
        let mut client = Endpoint::builder().config(Config { coding, ..Config::default() }).insecure().bind(any).unwrap();
        let id = client.connect(peer, vec![crate::Contract::default()]).unwrap();
        client.connection(id).close(0, "done").unwrap();
        accepting.join().unwrap();
    }

    /// The only test of this program that connects, so that nobody else has them built.
    #[test]
    fn tables_are_built_once_a_connection_may_need_them_and_not_before() {
        connect(Coding::Off);
        thread::sleep(Duration::from_millis(100));
        assert!(!are_tables_built());
        connect(Coding::Hedged);
        let begun = Instant::now();
        while !are_tables_built() {
            assert!(begun.elapsed() < Duration::from_secs(20), "nobody has built them");
            thread::sleep(Duration::from_millis(1));
        }
    }
}
