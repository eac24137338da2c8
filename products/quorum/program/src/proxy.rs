//! The proxy: accepts clients, with TLS or without, and carries their requests out on a quorum.

use std::time::{Duration, Instant};

use tokio_rustls::TlsAcceptor;

use crate::config::Config;
use crate::link::Store;
use crate::message::{Message, op};
use crate::quorum::Quorum;
use crate::server;

/// How long a client may take for its TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Serves until the process ends.
pub async fn serve(config: Config, acceptor: Option<TlsAcceptor>) -> anyhow::Result<()> {
    let connect = |address: &_| Store::connect(*address, config.connections_per_store, config.store_timeout());
    let quorum: &'static Quorum = Box::leak(Box::new(Quorum::new(config.stores.iter().map(connect).collect())));
    let listener = server::listen(config.listen)?;
    match acceptor {
        None => server::accept(listener, |stream| server::messages(stream, |request| handle(quorum, request))).await,
        Some(acceptor) => server::accept(listener, |stream| secured(acceptor.clone(), stream, quorum)).await,
    }
    Ok(())
}

async fn secured(acceptor: TlsAcceptor, stream: tokio::net::TcpStream, quorum: &Quorum) {
    if let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
        server::messages(stream, |request| handle(quorum, request)).await;
    }
}

async fn handle(quorum: &Quorum, request: Message) -> Message {
    let start = Instant::now();
    let mut response = quorum.carry_out(request).await;
    if response.opcode != op::NOP {
        response.meta.handling = (start.elapsed().as_millis() as u32).max(1);
    }
    response
}
