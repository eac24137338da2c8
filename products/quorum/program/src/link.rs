//! The proxy's connections to one store. Requests share them, and are matched to responses by number.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};

use crate::message::Message;

/// Requests that wait to be written to one connection; one more is refused.
const QUEUE: usize = 16 * 1024;
/// Between two attempts to connect.
const RETRY: Duration = Duration::from_millis(100);
const GATHER: usize = 64 * 1024;

/// A store, as the proxy sees it.
#[derive(Debug)]
pub struct Store {
    connections: Vec<Connection>,
    next: AtomicUsize,
    timeout: Duration,
}

#[derive(Debug)]
struct Connection {
    queue: mpsc::Sender<Message>,
    shared: Arc<Shared>,
    next: AtomicU32,
}

/// What requests and their connection's task share.
#[derive(Debug, Default)]
struct Shared {
    is_up: AtomicBool,
    /// Who waits for which response.
    waiting: Mutex<HashMap<u32, oneshot::Sender<Message>>>,
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, HashMap<u32, oneshot::Sender<Message>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store {
    /// Connects to a store, now and whenever a connection ends.
    pub fn connect(address: SocketAddr, connections: usize, timeout: Duration) -> Store {
        let connections = (0..connections.max(1))
            .map(|_| {
                let (queue, requests) = mpsc::channel(QUEUE);
                let shared = Arc::default();
                tokio::spawn(keep_connected(address, requests, Arc::clone(&shared)));
                Connection { queue, shared, next: AtomicU32::new(1) }
            })
            .collect();
        Store { connections, next: AtomicUsize::new(0), timeout }
    }

    /// Asks, and waits for the response; `None`: there is none in time, or no connection.
    pub async fn ask(&self, mut request: Message) -> Option<Message> {
        let turn = self.next.fetch_add(1, Ordering::Relaxed) % self.connections.len();
        let connection = &self.connections[turn];
        if !connection.shared.is_up.load(Ordering::Acquire) {
            return None;
        }
        request.opaque = connection.next.fetch_add(1, Ordering::Relaxed);
        let opaque = request.opaque;
        let (sender, response) = oneshot::channel();
        connection.shared.waiting().insert(opaque, sender);
        let response = match connection.queue.try_send(request) {
            Ok(()) => tokio::time::timeout(self.timeout, response).await.ok().and_then(Result::ok),
            Err(_) => None,
        };
        if response.is_none() {
            connection.shared.waiting().remove(&opaque);
        }
        response
    }
}

async fn keep_connected(address: SocketAddr, mut requests: mpsc::Receiver<Message>, shared: Arc<Shared>) {
    while !requests.is_closed() {
        if let Ok(stream) = TcpStream::connect(address).await {
            let _ = stream.set_nodelay(true);
            let (read, write) = stream.into_split();
            shared.is_up.store(true, Ordering::Release);
            tokio::select! {
                () = send(write, &mut requests) => {}
                () = receive(read, &shared) => {}
            }
            shared.is_up.store(false, Ordering::Release);
        } else {
            tokio::time::sleep(RETRY).await;
        }
        // What was sent or queued has no response any more.
        while requests.try_recv().is_ok() {}
        shared.waiting().clear();
    }
}

async fn send(mut stream: impl AsyncWriteExt + Unpin, requests: &mut mpsc::Receiver<Message>) {
    let mut output = BytesMut::new();
    while let Some(request) = requests.recv().await {
        request.encode(&mut output);
        while output.len() < GATHER
            && let Ok(request) = requests.try_recv()
        {
            request.encode(&mut output);
        }
        if stream.write_all_buf(&mut output).await.is_err() {
            return;
        }
    }
}

async fn receive(mut stream: impl AsyncReadExt + Unpin, shared: &Shared) {
    let mut input = BytesMut::new();
    while let Ok(1..) = stream.read_buf(&mut input).await {
        loop {
            match Message::take(&mut input) {
                Ok(Some(response)) => {
                    if let Some(sender) = shared.waiting().remove(&response.opaque) {
                        let _ = sender.send(response);
                    }
                }
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
}
