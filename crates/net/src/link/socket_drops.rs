//! How many datagrams the kernel has dropped because a socket's receive buffer was full.
//!
//! Called by the relay when it ends and when a client is evicted.
//!
//! Source: the last column of `/proc/net/udp` and `/proc/net/udp6` (proc_net(5)), the socket's row found by
//! its inode.
//!
//! Invariant: a number is returned only if the system reports one. Limit: Linux.

use crate::socket::Socket;
use std::fs;
use std::os::fd::AsRawFd;

/// The drops of `socket` since it was opened; `None` if the system does not report them.
pub(super) fn dropped(socket: &Socket) -> Option<u64> {
    let link = fs::read_link(format!("/proc/self/fd/{}", socket.as_raw_fd())).ok()?;
    let inode = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned();
    ["/proc/thread-self/net/udp", "/proc/thread-self/net/udp6"]
        .into_iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .find_map(|table| drops_of(&inode, &table))
}

/// The drops in the row of `inode`.
fn drops_of(inode: &str, table: &str) -> Option<u64> {
    table
        .lines()
        .skip(1)
        .map(|row| row.split_whitespace().collect::<Vec<_>>())
        .find_map(|columns| if columns.get(9) == Some(&inode) { columns.last()?.parse().ok() } else { None })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
  313: 0100007F:1388 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 4711 2 0000000000000000 0
  314: 0100007F:1389 00000000:0000 07 00000000:00000A00 00:00000000 00000000  1000        0 4712 2 0000000000000000 99
";

    #[test]
    fn the_row_of_the_inode_tells_the_drops() {
        assert_eq!(drops_of("4712", TABLE), Some(99));
        assert_eq!(drops_of("4711", TABLE), Some(0));
        assert_eq!(drops_of("1000", TABLE), None);
        assert_eq!(drops_of("4712", "nothing\nof the kind\n"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_socket_that_overflows_is_seen() {
        let config = crate::bind::SocketConfig { receive_buffer_bytes: 4096, ..Default::default() };
        let socket = Socket::bind("127.0.0.1:0".parse().unwrap(), &config).unwrap();
        assert_eq!(dropped(&socket), Some(0));
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..1000 {
            sender.send_to(&[0; 1000], socket.local_addr()).unwrap();
        }
        assert!(dropped(&socket).is_some_and(|drops| drops > 900));
    }
}
