//! Several endpoints on one port, each for its own thread.
//!
//! Called by both interfaces. Invariant: a connection stays with one of them, even if its peer migrates.

use crate::{Config, Error};
use segstream_net::shards::bind_shards;
use segstream_net::socket::Socket;
use segstream_proto::config::Shard;
use std::net::SocketAddr;
use std::num::NonZeroU8;

/// Where the connection identifier begins in a datagram, and which byte of it names the shard.
const IDENTIFIER_AT: u32 = 1;
const SHARD_AT: u32 = 2;

/// The sockets of `count` endpoints on `address`, with the shard of each.
pub(crate) fn open(address: SocketAddr, config: &Config, count: NonZeroU8) -> Result<Vec<(Socket, Shard)>, Error> {
    let sockets = bind_shards(address, &config.socket(), count, IDENTIFIER_AT, SHARD_AT)?;
    Ok(sockets.into_iter().zip(Shard::all(count)).collect())
}
