//! Addresses as they are written on the command line: `127.0.0.1:9000`, `[::1]:9000`, `[fe80::1%eth0]:9000`, `host:9000`.
//!
//! Called by the parser of every verb, and by those that send to a host by its name.
//!
//! Invariant: what is no address is refused with the part that is wrong and with what to write. No name is looked up for a
//! text that cannot be `host:port`.

use crate::usage;
use anyhow::{Context as _, Result};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs as _, UdpSocket};

/// An address in numbers, to listen on or to relay to: `127.0.0.1:9000`, `[::1]:9000`, `[fe80::1%eth0]:9000`.
pub(crate) fn numeric(text: &str) -> Result<SocketAddr, String> {
    let refused = |wrong: String| format!("{wrong}; write an IP address with a port in numbers, such as 127.0.0.1:9000 or [::1]:9000");
    let (host, port) = split(text).map_err(|refusal| refusal.instead.unwrap_or_else(|| refused(refusal.wrong)))?;
    match host {
        Host::Ip(ip) => Ok(SocketAddr::new(ip, port)),
        Host::Scoped(host) => scoped(host, port).ok_or_else(|| refused(format!("{text:?} names no network interface of this machine"))),
        Host::Name(host) => Err(refused(format!("{text:?} is not an IP address with a port: {host:?} is a name"))),
    }
}

/// The address of a host by number or name, to send to.
///
/// # Errors
/// Bad usage for what is no address, a failure for a name that has none.
pub(crate) fn of_host(text: &str) -> Result<SocketAddr> {
    let refused = |wrong: String| usage::bad(format!("{wrong}; write host:port, such as 192.0.2.1:4433 or [2001:db8::1]:4433"));
    let (host, port) = split(text).map_err(|refusal| refusal.instead.map_or_else(|| refused(refusal.wrong), usage::bad))?;
    if port == 0 {
        return Err(refused(format!("nothing can be sent to port 0 of {text:?}")));
    }
    let remote = match host {
        Host::Ip(ip) => SocketAddr::new(ip, port),
        Host::Scoped(host) => scoped(host, port).ok_or_else(|| refused(format!("{text:?} names no network interface of this machine")))?,
        Host::Name(host) => {
            let mut found = (host, port).to_socket_addrs().with_context(|| format!("the host name {host} cannot be resolved; check it"))?;
            found.next().with_context(|| format!("the host name {host} has no address"))?
        }
    };
    if remote.ip().is_unspecified() {
        return Err(usage::bad(format!("nothing can be sent to {remote}; name the address of a host")));
    }
    if let SocketAddr::V6(link_local) = remote
        && link_local.ip().is_unicast_link_local()
        && link_local.scope_id() == 0
    {
        return Err(usage::bad(format!(
            "{} is a link-local address and needs the interface it is reached through; write it as in [{}%eth0]:{port}",
            link_local.ip(),
            link_local.ip()
        )));
    }
    Ok(remote)
}

/// The address of a socket that listens, as it is written to reach it. A wildcard is no destination: the user replaces HOST.
pub(crate) fn destination(listening: SocketAddr) -> String {
    if listening.ip().is_unspecified() { format!("HOST:{}", listening.port()) } else { listening.to_string() }
}

/// Whether this machine has a route to `remote`. Nothing is sent: a connected UDP socket is looked up in the routing table.
///
/// # Errors
/// Says what the system answered.
pub(crate) fn check_route(remote: SocketAddr) -> Result<()> {
    let any: SocketAddr = if remote.is_ipv4() { ([0; 4], 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() };
    let probe = UdpSocket::bind(any).and_then(|socket| socket.connect(remote));
    probe.with_context(|| format!("this machine has no route to {remote}; check the address and the network connection"))
}

/// The host of an address.
enum Host<'a> {
    Ip(IpAddr),
    /// An IPv6 address with its interface, `fe80::1%eth0`.
    Scoped(&'a str),
    Name(&'a str),
}

/// Why a text is no address.
struct Refusal {
    /// What is wrong with it.
    wrong: String,
    /// The whole sentence, where what was meant is known.
    instead: Option<String>,
}

impl From<String> for Refusal {
    fn from(wrong: String) -> Self {
        Self { wrong, instead: None }
    }
}

/// Host and port of `text`, or what is wrong with it.
fn split(text: &str) -> Result<(Host<'_>, u16), Refusal> {
    let meant = |sentence| Refusal { wrong: String::new(), instead: Some(sentence) };
    if let Some((scheme, rest)) = text.split_once("://") {
        let has_port = rest.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let port = if has_port { "" } else { ":4433" };
        return Err(meant(format!("{text:?} is a URI of another protocol ({scheme}); write host:port alone, such as {rest}{port}")));
    }
    if text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).is_some_and(is_ipv6) {
        return Err(meant(format!("{text:?} has no port; write it behind the brackets, as in {text}:4433")));
    }
    if is_ipv6(text) {
        return Err(meant(format!("{text:?} is an IPv6 address without a port; write it in brackets, with a port: [{text}]:4433")));
    }
    let (host, port) = text.rsplit_once(':').ok_or_else(|| Refusal::from(format!("{text:?} is not an address with a port")))?;
    let port = port.parse().map_err(|_| match port.bytes().all(|digit| digit.is_ascii_digit()) && !port.is_empty() {
        true => Refusal::from(format!("the port {port} of {text:?} is above 65535")),
        false => Refusal::from(format!("{text:?} has no port: {port:?} is not a number")),
    })?;
    let in_brackets = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let host = match in_brackets {
        Some(host) if !is_ipv6(host) => return Err(format!("{host:?} in the brackets of {text:?} is not an IPv6 address").into()),
        Some(host) => host.parse().map_or(Host::Scoped(host), |ip| Host::Ip(IpAddr::V6(ip))),
        None if host.is_empty() => return Err(format!("{text:?} has no host").into()),
        None if host.contains(':') => return Err(format!("{text:?} has more than one colon, and an IPv6 address needs brackets").into()),
        None => host.parse().map_or(Host::Name(host), |ip| Host::Ip(IpAddr::V4(ip))),
    };
    Ok((host, port))
}

/// Whether `text` is an IPv6 address, with or without an interface behind it.
fn is_ipv6(text: &str) -> bool {
    let address = text.split_once('%').map_or(text, |(address, interface)| if interface.is_empty() { "" } else { address });
    address.parse::<Ipv6Addr>().is_ok()
}

/// The address of `host`, an IPv6 address with its interface by name or number. The system knows the interfaces.
fn scoped(host: &str, port: u16) -> Option<SocketAddr> {
    (host, port).to_socket_addrs().ok()?.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_port() {
        assert!(numeric("127.0.0.1:9000").is_ok() && numeric("[::1]:9000").is_ok());
        for text in ["", "127.0.0.1", ":9000", "localhost:9000", "127.0.0.1:80000"] {
            assert!(numeric(text).expect_err(text).contains("such as 127.0.0.1:9000"));
        }
        // What was meant is known, so the hint is of that address.
        assert!(numeric("::1").unwrap_err().contains("with a port: [::1]:4433"));
    }

    #[test]
    fn a_link_local_address_keeps_its_interface() {
        assert_eq!(numeric("[fe80::1%3]:9000").map(|address| address.to_string()), Ok("[fe80::1%3]:9000".to_owned()));
        assert!(numeric("[fe80::1%no-such-interface]:9000").unwrap_err().contains("no network interface"));
        assert!(of_host("[fe80::1]:9000").unwrap_err().to_string().contains("[fe80::1%eth0]:9000"));
    }

    #[test]
    fn the_part_that_is_wrong_is_named() {
        for (text, part) in [
            ("::1", "[::1]:4433"),
            ("fe80::1%lo", "[fe80::1%lo]:4433"),
            ("2001:db8::1:9000", "[2001:db8::1:9000]:4433"),
            ("[::1]", "has no port; write it behind the brackets, as in [::1]:4433"),
            ("http://host", "write host:port alone, such as host:4433"),
            ("srt://192.0.2.1:9000", "a URI of another protocol (srt); write host:port alone, such as 192.0.2.1:9000"),
            ("192.0.2.1:99999", "99999 of \"192.0.2.1:99999\" is above 65535"),
            ("192.0.2.1:http", "\"http\" is not a number"),
            ("192.0.2.1", "not an address with a port"),
            ("[192.0.2.1]:9000", "not an IPv6 address"),
            ("a:b:9000", "more than one colon"),
            (":9000", "has no host"),
        ] {
            let sentence = of_host(text).expect_err(text).to_string();
            assert!(sentence.contains(part) && sentence.contains("; write "), "{sentence}");
        }
    }
}
