//! QUIC by s2n-quic.
//!
//! Called by [`crate::end`]. Settings: windows of 16 MiB for a stream and 32 MiB for the connection, send buffers of 16 MiB,
//! socket buffers of 4 MiB. The size of datagrams is discovered unless it is given.
//!
//! Limit: it knows no priorities of streams, so segments of `schedule` share what there is.

use crate::certificate::{self, NAME};
use crate::options::{Congestion, Options, Side};
use crate::outcome::{self, Outcome};
use crate::quic::{self, Connection, Receiver, SOCKET_BUFFER_BYTES, STREAM_WINDOW_BYTES, STREAMS_MAX, Sender, WINDOW_BYTES};
use anyhow::{Context as _, Result};
use bytes::Bytes;
use s2n_quic::client::Connect;
use s2n_quic::connection::{Handle, StreamAcceptor};
use s2n_quic::provider::congestion_controller::{Bbr, Cubic};
use s2n_quic::provider::io;
use s2n_quic::provider::limits::Limits;
use s2n_quic::stream::{ReceiveStream, SendStream};
use s2n_quic::{Client, Server};
use std::net::SocketAddr;
use tokio::task::LocalSet;

struct S2n {
    handle: Handle,
    streams: StreamAcceptor,
}

/// One side of a workload.
pub(crate) fn run(options: &Options) -> Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        let connection = match options.side {
            Side::Serve => serve(options).await?,
            Side::Run => connect(options).await?,
        };
        let (handle, streams) = connection.split();
        quic::run(&mut S2n { handle, streams }, options).await
    })
}

async fn serve(options: &Options) -> Result<s2n_quic::Connection> {
    let made = certificate::make()?;
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let builder = Server::builder().with_tls((certificate.as_str(), key.as_str()))?;
    let builder = builder.with_io(sockets(options.bind, options)?)?.with_limits(limits()?)?;
    let mut server = match options.congestion {
        Congestion::Cubic => builder.with_congestion_controller(Cubic::default())?.start()?,
        Congestion::Bbr => builder.with_congestion_controller(Bbr::default())?.start()?,
    };
    outcome::listening(server.local_addr()?, &certificate::trust(&made))?;
    server.accept().await.context("the socket is closed")
}

async fn connect(options: &Options) -> Result<s2n_quic::Connection> {
    let peer = options.peer()?;
    let trusted = certificate::pem(&certificate::der(&options.trust)?);
    let any = if peer.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let builder = Client::builder().with_tls(trusted.as_str())?;
    let builder = builder.with_io(sockets(any.parse()?, options)?)?.with_limits(limits()?)?;
    let client = match options.congestion {
        Congestion::Cubic => builder.with_congestion_controller(Cubic::default())?.start()?,
        Congestion::Bbr => builder.with_congestion_controller(Bbr::default())?.start()?,
    };
    Ok(client.connect(Connect::new(peer).with_server_name(NAME)).await?)
}

fn sockets(bind: SocketAddr, options: &Options) -> Result<io::Default> {
    let builder = io::Default::builder()
        .with_receive_address(bind)?
        .with_recv_buffer_size(SOCKET_BUFFER_BYTES)?
        .with_send_buffer_size(SOCKET_BUFFER_BYTES)?;
    let builder = match options.datagram_bytes {
        // It counts the headers of IPv4 and UDP.
        Some(bytes) => builder.with_initial_mtu(bytes + 28)?.with_max_mtu(bytes + 28)?,
        None => builder,
    };
    Ok(builder.build()?)
}

fn limits() -> Result<Limits> {
    let (stream, connection, streams) = (u64::from(STREAM_WINDOW_BYTES), u64::from(WINDOW_BYTES), u64::from(STREAMS_MAX));
    Ok(Limits::new()
        .with_data_window(connection)?
        .with_bidirectional_local_data_window(stream)?
        .with_bidirectional_remote_data_window(stream)?
        .with_unidirectional_data_window(stream)?
        .with_max_send_buffer_size(STREAM_WINDOW_BYTES)?
        .with_max_open_remote_unidirectional_streams(streams)?
        .with_max_open_local_unidirectional_streams(streams)?)
}

impl Connection for S2n {
    type Sender = SendStream;
    type Receiver = ReceiveStream;

    async fn open(&mut self) -> Result<(SendStream, ReceiveStream)> {
        let (receiver, sender) = self.handle.open_bidirectional_stream().await?.split();
        Ok((sender, receiver))
    }

    async fn accept(&mut self) -> Result<(SendStream, ReceiveStream)> {
        let (receiver, sender) = self.streams.accept_bidirectional_stream().await?.context("the connection has ended")?.split();
        Ok((sender, receiver))
    }

    async fn open_one_way(&mut self) -> Result<SendStream> {
        Ok(self.handle.open_send_stream().await?)
    }

    async fn accept_one_way(&mut self) -> Result<ReceiveStream> {
        self.streams.accept_receive_stream().await?.context("the connection has ended")
    }

    fn close(&self) {
        self.handle.close(0_u32.into());
    }

    fn wire_bytes(&self) -> Option<u64> {
        None
    }
}

impl Sender for SendStream {
    async fn send(&mut self, bytes: Bytes) -> Result<()> {
        Ok(Self::send(self, bytes).await?)
    }

    fn finish(&mut self) -> Result<()> {
        Ok(Self::finish(self)?)
    }

    fn give_number(&mut self, _: u64) -> Result<()> {
        Ok(())
    }
}

impl Receiver for ReceiveStream {
    async fn receive(&mut self) -> Result<Option<Bytes>> {
        Ok(Self::receive(self).await?)
    }
}
