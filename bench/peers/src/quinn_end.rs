//! QUIC by quinn.
//!
//! Called by [`crate::end`]. Settings: windows of 16 MiB for a stream and 32 MiB for the connection, socket buffers of
//! 4 MiB, and for `schedule` a higher priority for older streams. The size of datagrams is discovered unless it is given.

use crate::certificate::{self, NAME};
use crate::options::{Congestion, Options, Side};
use crate::outcome::{self, Outcome};
use crate::quic::{self, Connection, Receiver, SOCKET_BUFFER_BYTES, STREAM_WINDOW_BYTES, STREAMS_MAX, Sender, WINDOW_BYTES};
use anyhow::{Context as _, Result};
use bytes::Bytes;
use quinn::congestion::{BbrConfig, CubicConfig};
use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use quinn::{ClientConfig, Endpoint, EndpointConfig, RecvStream, SendStream, ServerConfig, TokioRuntime, TransportConfig, VarInt};
use socket2::SockRef;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use tokio::task::LocalSet;

struct Quinn(quinn::Connection);

/// One side of a workload.
pub(crate) fn run(options: &Options) -> Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        match options.side {
            Side::Serve => serve(options).await,
            Side::Run => connect(options).await,
        }
    })
}

async fn serve(options: &Options) -> Result<Outcome> {
    let made = certificate::make()?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let mut config = ServerConfig::with_single_cert(vec![made.cert.der().clone()], key.into())?;
    config.transport_config(transport(options));
    let endpoint = endpoint(options.bind, Some(config))?;
    outcome::listening(endpoint.local_addr()?, &certificate::trust(&made))?;
    let connection = endpoint.accept().await.context("the socket is closed")?.await?;
    quic::run(&mut Quinn(connection), options).await
}

async fn connect(options: &Options) -> Result<Outcome> {
    let peer = options.peer()?;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(certificate::der(&options.trust)?)).context("--trust is no certificate")?;
    let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
    config.transport_config(transport(options));
    let any = if peer.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let endpoint = endpoint(any.parse()?, None)?;
    let connection = endpoint.connect_with(config, peer, NAME)?.await?;
    quic::run(&mut Quinn(connection), options).await
}

fn endpoint(bind: SocketAddr, config: Option<ServerConfig>) -> Result<Endpoint> {
    let socket = UdpSocket::bind(bind).with_context(|| format!("{bind} cannot be bound"))?;
    let sized = SockRef::from(&socket);
    sized.set_recv_buffer_size(SOCKET_BUFFER_BYTES)?;
    sized.set_send_buffer_size(SOCKET_BUFFER_BYTES)?;
    Ok(Endpoint::new(EndpointConfig::default(), config, socket, Arc::new(TokioRuntime))?)
}

fn transport(options: &Options) -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    config
        .stream_receive_window(STREAM_WINDOW_BYTES.into())
        .receive_window(WINDOW_BYTES.into())
        .send_window(STREAM_WINDOW_BYTES.into())
        .max_concurrent_uni_streams(STREAMS_MAX.into());
    match options.congestion {
        Congestion::Cubic => config.congestion_controller_factory(Arc::new(CubicConfig::default())),
        Congestion::Bbr => config.congestion_controller_factory(Arc::new(BbrConfig::default())),
    };
    if let Some(bytes) = options.datagram_bytes {
        config.initial_mtu(bytes).mtu_discovery_config(None);
    }
    Arc::new(config)
}

impl Connection for Quinn {
    type Sender = SendStream;
    type Receiver = RecvStream;

    async fn open(&mut self) -> Result<(SendStream, RecvStream)> {
        Ok(self.0.open_bi().await?)
    }

    async fn accept(&mut self) -> Result<(SendStream, RecvStream)> {
        Ok(self.0.accept_bi().await?)
    }

    async fn open_one_way(&mut self) -> Result<SendStream> {
        Ok(self.0.open_uni().await?)
    }

    async fn accept_one_way(&mut self) -> Result<RecvStream> {
        Ok(self.0.accept_uni().await?)
    }

    fn close(&self) {
        self.0.close(VarInt::from_u32(0), b"done");
    }

    fn wire_bytes(&self) -> Option<u64> {
        Some(self.0.stats().udp_tx.bytes)
    }
}

impl Sender for SendStream {
    async fn send(&mut self, bytes: Bytes) -> Result<()> {
        Ok(self.write_chunk(bytes).await?)
    }

    fn finish(&mut self) -> Result<()> {
        Ok(Self::finish(self)?)
    }

    fn give_number(&mut self, number: u64) -> Result<()> {
        Ok(self.set_priority(-i32::try_from(number)?)?)
    }
}

impl Receiver for RecvStream {
    async fn receive(&mut self) -> Result<Option<Bytes>> {
        Ok(self.read_chunk(usize::MAX, true).await?.map(|chunk| chunk.bytes))
    }
}
