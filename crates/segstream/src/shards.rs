//! Several endpoints on one port, for a thread each.
//!
//! Called by both interfaces. Invariant: all of them show the same key and serve the same peers, and a connection belongs
//! to one of them as long as it lives, wherever its peer moves.

use crate::{Config, Credentials, Error, Security};
use segstream_net::shards::bind_shards;
use segstream_net::socket::Socket;
use segstream_proto::config::Shard;
use segstream_secure::Identity;
use std::net::SocketAddr;
use std::num::NonZeroU8;

/// Where the connection identifier begins in a datagram, and which byte of it names the shard.
const IDENTIFIER_AT: u32 = 1;
const SHARD_AT: u32 = 2;

/// The sockets of `count` endpoints on `address` with the shard of each, and the configuration they all have.
pub(crate) fn open(address: SocketAddr, config: Config, count: NonZeroU8) -> Result<(Vec<(Socket, Shard)>, Config), Error> {
    let config = Config { security: with_one_identity(config.security)?, ..config };
    let sockets = bind_shards(address, &config.socket(), count, IDENTIFIER_AT, SHARD_AT)?;
    Ok((sockets.into_iter().zip(Shard::all(count)).collect(), config))
}

/// A fresh identity is made once, not by each endpoint.
fn with_one_identity(security: Security) -> Result<Security, Error> {
    match security {
        Security::Encrypted(credentials) if credentials.identity.is_none() => {
            Ok(Security::Encrypted(Credentials { identity: Some(Identity::generate()?), ..credentials }))
        }
        other => Ok(other),
    }
}
