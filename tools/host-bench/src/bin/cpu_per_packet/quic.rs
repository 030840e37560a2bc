//! QUIC by quinn: one stream of one connection, encrypted as QUIC always is.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use quinn::{
    ClientConfig, Endpoint, EndpointConfig, ServerConfig, TokioRuntime, TransportConfig, VarInt,
};
use socket2::SockRef;
use tokio::runtime::Builder;
use tokio::time::timeout;

use crate::netns::Net;
use crate::{CHUNK, DATAGRAM, LIMIT, PORT, SOCKET_BUFFER, Segments, Times, both, expect_all};

/// Sends `bytes` over a stream.
pub(crate) fn transfer(net: &Net, bytes: u64, segments: Segments) -> io::Result<Times> {
    let to = SocketAddr::from((net.hosts[1].ip, PORT));
    let server_socket = net.hosts[1].within(|| bind(to))?;
    let client_socket = net.hosts[0].within(|| bind(SocketAddr::from((net.hosts[0].ip, PORT))))?;
    let (client, server) = configs(segments)?;
    let send = || {
        run(async {
            let mut endpoint = open(None, client_socket)?;
            endpoint.set_default_client_config(client);
            let connection = endpoint.connect(to, NAME).map_err(io::Error::other)?.await?;
            let mut stream = connection.open_uni().await?;
            let (chunk, mut left) = ([1; CHUNK], bytes);
            while left > 0 {
                let len = left.min(CHUNK as u64);
                stream.write_all(&chunk[..len as usize]).await?;
                left -= len;
            }
            stream.finish().map_err(io::Error::other)?;
            // Until the receiver has acknowledged everything.
            stream.stopped().await.map_err(io::Error::other)?;
            connection.close(VarInt::from_u32(0), b"");
            endpoint.wait_idle().await;
            Ok(())
        })
    };
    let receive = || {
        run(async {
            let endpoint = open(Some(server), server_socket)?;
            let incoming = endpoint.accept().await.ok_or_else(|| io::Error::other("closed"))?;
            let connection = incoming.await?;
            let (mut stream, mut got) = (connection.accept_uni().await?, 0);
            while let Some(chunk) = stream.read_chunk(usize::MAX, true).await? {
                got += chunk.bytes.len() as u64;
            }
            connection.closed().await;
            expect_all(bytes, got)
        })
    };
    both(net, send, receive)
}

/// Runs a future on this thread alone.
fn run(future: impl Future<Output = io::Result<()>>) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async { timeout(LIMIT, future).await.map_err(io::Error::other)? })
}

fn open(server: Option<ServerConfig>, socket: UdpSocket) -> io::Result<Endpoint> {
    Endpoint::new(EndpointConfig::default(), server, socket, Arc::new(TokioRuntime))
}

fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(address)?;
    SockRef::from(&socket).set_recv_buffer_size(SOCKET_BUFFER)?;
    SockRef::from(&socket).set_send_buffer_size(SOCKET_BUFFER)?;
    Ok(socket)
}

/// Name in the certificate.
const NAME: &str = "receiver";

fn configs(segments: Segments) -> io::Result<(ClientConfig, ServerConfig)> {
    let certified = rcgen::generate_simple_self_signed([NAME.to_owned()]);
    let certified = certified.map_err(io::Error::other)?;
    let certificate = CertificateDer::from(certified.cert);
    let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let mut transport = TransportConfig::default();
    // All packets are full from the beginning.
    transport.initial_mtu(DATAGRAM as u16).mtu_discovery_config(None);
    transport.enable_segmentation_offload(segments == Segments::Joined);
    let transport = Arc::new(transport);
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).map_err(io::Error::other)?;
    let client = ClientConfig::with_root_certificates(Arc::new(roots));
    let mut client = client.map_err(io::Error::other)?;
    client.transport_config(Arc::clone(&transport));
    let server = ServerConfig::with_single_cert(vec![certificate], key.into());
    let mut server = server.map_err(io::Error::other)?;
    server.transport_config(transport);
    Ok((client, server))
}
