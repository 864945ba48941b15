//! A victim without limits of set-up, which the suite must find.
//!
//! Called by [`crate::victim`]. The protocol's endpoint on the library's socket and driver, as in the library itself,
//! with the limits that no application can change out of the way.
//!
//! Invariant: it differs from the library's endpoint in limits alone; what it receives it throws away.

use crate::asks::{Asks, say};
use crate::messages::{Ask, Hello, Report};
use crate::spent::Spent;
use crate::victim::{Settings, any};
use segstream::{Clock, Duration, Identity};
use segstream_net::bind::SocketConfig;
use segstream_net::driver::DriverConfig;
use segstream_net::driver::blocking::BlockingDriver;
use segstream_net::socket::Socket;
use segstream_proto::config::Config;
use segstream_proto::connection::ConnectionEvent;
use segstream_proto::endpoint::Endpoint;
use segstream_secure::Tls;
use std::collections::BTreeSet;

pub(crate) fn run(settings: &Settings) -> anyhow::Result<()> {
    let identity = Identity::generate()?;
    let (admission, key) = (settings.admission(), identity.fingerprint().to_string());
    let tls = Tls::new(identity, admission.clone(), None)?;
    let config = Config {
        accept: true,
        connections: usize::MAX,
        setups: usize::MAX,
        setups_per_host: usize::MAX,
        handshakes_per_second: u32::MAX,
        connect_timeout: Duration::from_secs(settings.connect_timeout),
        ..Config::default()
    };
    let mut endpoint = Endpoint::with_protection(config, Box::new(tls))?;
    let clock = Clock::start();
    let mut driver = BlockingDriver::new(Socket::bind(any(), &SocketConfig::default())?, clock, DriverConfig::default())?;
    let asks = Asks::listen(driver.waker());
    say(&Hello { address: driver.socket().local_addr(), key })?;
    let (mut report, mut over) = (Report::default(), BTreeSet::new());
    loop {
        while let Some(ask) = asks.next() {
            match ask {
                Ask::End => return Ok(()),
                Ask::Admit(key) => admission.allow(key.parse()?),
                Ask::Report | Ask::SendTo(_) => {}
            }
            say(&Report { spent: Spent::read(), strays: endpoint.strays.into(), ..report.clone() })?;
        }
        driver.turn(&mut endpoint, Some(clock.now() + Duration::from_millis(500)))?;
        while let Some((id, event)) = endpoint.poll_event() {
            match event {
                ConnectionEvent::Connected => report.connected += 1,
                ConnectionEvent::Readable(stream) => {
                    while endpoint.connection_mut(id).and_then(|connection| connection.recv(clock.now(), stream)).is_some() {}
                }
                ConnectionEvent::Closed(_) => _ = over.insert(id),
                _ => {}
            }
        }
        over.retain(|&id| {
            endpoint.forget(id);
            endpoint.connection(id).is_some()
        });
    }
}
