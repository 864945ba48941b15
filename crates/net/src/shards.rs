//! Several sockets on one port, each with the connections of one shard.
//!
//! Called by the facade, for an endpoint in each of several threads. The kernel steers a datagram to a socket by the connection
//! identifier in it, whatever its source address. A datagram without a connection identifier goes to the socket that the kernel
//! chooses by its hash of the addresses, so that repetitions of one peer reach the same socket.
//!
//! Invariant: the sockets are bound in the order of their shards, because the kernel numbers them in that order. A datagram goes to
//! exactly one of them.
//!
//! Source: socket(7), `SO_REUSEPORT` and `SO_ATTACH_REUSEPORT_CBPF`; the instructions are those of McCanne and Jacobson,
//! "The BSD Packet Filter" (1993).
//!
//! Limit: Linux only. Elsewhere there is one socket only.

use crate::bind::{SocketConfig, SocketError};
use crate::socket::Socket;
use std::net::SocketAddr;
use std::num::NonZeroU8;

/// Binds `count` sockets to `address`. A datagram with a connection identifier goes to the socket whose number is the byte at
/// `shard_at`, modulo `count`. It has none if the four bytes from `identifier_at` on are zero.
///
/// # Errors
/// As for one socket.
pub fn bind_shards(
    address: SocketAddr,
    config: &SocketConfig,
    count: NonZeroU8,
    identifier_at: u32,
    shard_at: u32,
) -> Result<Vec<Socket>, SocketError> {
    let config = SocketConfig { share_port: count.get() > 1, ..*config };
    let first = Socket::bind(address, &config)?;
    let local = first.local_addr();
    if count.get() > 1 {
        let steer = |source| SocketError::System { address: local, step: "steer datagrams to shards", source };
        // Why before the others are bound: no datagram may reach the wrong shard in between.
        steer_by_identifier(&first, count, identifier_at, shard_at).map_err(steer)?;
    }
    let mut sockets = vec![first];
    for _ in 1..count.get() {
        sockets.push(Socket::bind(local, &config)?);
    }
    Ok(sockets)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn steer_by_identifier(socket: &Socket, count: NonZeroU8, identifier_at: u32, shard_at: u32) -> std::io::Result<()> {
    use nix::libc::{BPF_A, BPF_ABS, BPF_ALU, BPF_B, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_MOD, BPF_RET, BPF_W, sock_filter, sock_fprog};
    use nix::sys::socket::{setsockopt, sockopt};
    let step = |code: u32, jt: u8, jf: u8, k: u32| sock_filter { code: code as u16, jt, jf, k };
    // Why a socket number that does not exist: the kernel then chooses by its hash.
    let by_hash = u32::MAX;
    let mut program = [
        step(BPF_LD | BPF_W | BPF_ABS, 0, 0, identifier_at),
        step(BPF_JMP | BPF_JEQ | BPF_K, 3, 0, 0),
        step(BPF_LD | BPF_B | BPF_ABS, 0, 0, shard_at),
        step(BPF_ALU | BPF_MOD | BPF_K, 0, 0, count.get().into()),
        step(BPF_RET | BPF_A, 0, 0, 0),
        step(BPF_RET | BPF_K, 0, 0, by_hash),
    ];
    let program = sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    Ok(setsockopt(socket, sockopt::AttachReusePortCbpf, &program)?)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn steer_by_identifier(_: &Socket, _: NonZeroU8, _: u32, _: u32) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}
