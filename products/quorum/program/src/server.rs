//! Accepting connections, and the messages of one: requests come in, responses go out in any order. Proxy and store
//! both serve this way.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use bytes::BytesMut;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::message::Message;

/// Requests of one connection that are carried out at once; further ones wait in the kernel.
const CONCURRENT: usize = 1024;
/// Responses are gathered up to so many bytes before they are written.
const GATHER: usize = 64 * 1024;

/// Connections that wait in the kernel until they are accepted; the kernel has a limit of its own.
const BACKLOG: u32 = 65_535;

/// Begins to listen.
pub fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listen = || {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    };
    listen().with_context(|| format!("listening on {address}"))
}

/// Accepts connections and gives each to `serve`, for ever.
pub async fn accept<F, S>(listener: TcpListener, serve: S)
where
    F: Future<Output = ()> + Send + 'static,
    S: Fn(TcpStream) -> F,
{
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let _ = stream.set_nodelay(true);
                tokio::spawn(serve(stream));
            }
            // Descriptors ran out, or the peer has gone: others may still come.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// Serves one connection until it ends.
pub async fn messages<F, H>(mut stream: impl AsyncRead + AsyncWrite + Unpin, handle: H)
where
    F: Future<Output = Message>,
    H: Fn(Message) -> F,
{
    let (mut input, mut output) = (BytesMut::new(), BytesMut::new());
    let mut running = FuturesUnordered::new();
    loop {
        while running.len() < CONCURRENT {
            match Message::take(&mut input) {
                Ok(Some(request)) => running.push(handle(request)),
                Ok(None) => break,
                Err(_) => return,
            }
        }
        // What can be answered at once is answered together.
        while output.len() < GATHER
            && let Some(Some(response)) = futures_util::FutureExt::now_or_never(running.next())
        {
            response.encode(&mut output);
        }
        if !output.is_empty() {
            // TLS keeps what the socket did not take at once, until it is told to go on.
            if stream.write_all_buf(&mut output).await.is_err() || stream.flush().await.is_err() {
                return;
            }
            continue;
        }
        if input.is_empty() && running.is_empty() {
            // An idle connection keeps no memory.
            input = BytesMut::new();
        }
        tokio::select! {
            read = stream.read_buf(&mut input), if running.len() < CONCURRENT => {
                if !matches!(read, Ok(1..)) {
                    return;
                }
            }
            Some(response) = running.next(), if !running.is_empty() => response.encode(&mut output),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{BufStream, duplex};

    use super::*;
    use crate::message::{op, status};

    #[tokio::test]
    async fn a_response_leaves_a_stream_that_keeps_it() {
        let (mut client, server) = duplex(1024);
        let kept = BufStream::new(server);
        tokio::spawn(messages(kept, |request| async move { request.response(status::OK) }));
        let mut bytes = BytesMut::new();
        Message { opcode: op::NOP, ..Message::default() }.encode(&mut bytes);
        client.write_all(&bytes).await.unwrap();
        bytes.clear();
        let read = tokio::time::timeout(Duration::from_secs(5), client.read_buf(&mut bytes));
        assert!(read.await.expect("a response").unwrap() > 0);
    }
}
