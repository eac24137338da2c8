//! What the tests share: handlers that echo or record, and a thread that runs one.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use weir_net::{Conn, Driver, Event, Handler, Io, Waker, listen_socket};

/// Far more than anything here takes; only a hang reaches it.
pub const LONG: Duration = Duration::from_secs(60);

/// A listening socket on a free port.
pub fn listener() -> (TcpListener, SocketAddr) {
    let listener = listen_socket("127.0.0.1:0".parse().unwrap(), 4096, false).unwrap();
    let addr = listener.local_addr().unwrap();
    (listener, addr)
}

/// Runs turns until `done` says so.
pub fn run_until<D: Driver, H: Handler>(
    driver: &mut D,
    handler: &mut H,
    mut done: impl FnMut(&mut H, &D) -> bool,
) {
    let end = Instant::now() + LONG;
    while !done(handler, driver) {
        assert!(Instant::now() < end, "it hangs");
        driver
            .turn(handler, Some(Instant::now() + Duration::from_millis(20)))
            .unwrap();
    }
}

/// Sends back what comes, and closes when the peer has sent its last.
#[derive(Debug, Default)]
pub struct Echo;

impl Handler for Echo {
    fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, event: Event<'_>) {
        match event {
            Event::Data(bytes) => io.send(conn, bytes),
            Event::Eof => io.close(conn),
            Event::Accepted | Event::Connected | Event::Sent | Event::Failed(_) => {}
        }
    }
}

/// A driver on its own thread, listening, until dropped.
pub struct Server {
    pub addr: SocketAddr,
    stop: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub fn start<D: Driver + 'static, H: Handler>(
        make: fn() -> io::Result<D>,
        handler: impl FnOnce() -> H + Send + 'static,
    ) -> Server {
        let (listener, addr) = listener();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let mut driver = make().unwrap();
            driver.listen(listener).unwrap();
            tell.send(driver.waker()).unwrap();
            let mut handler = handler();
            while !stopped.load(Ordering::Acquire) {
                driver.turn(&mut handler, None).unwrap();
            }
        });
        Server {
            addr,
            stop,
            waker: told.recv().unwrap(),
            thread: Some(thread),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.waker.wake();
        let ended = self.thread.take().unwrap().join();
        if !std::thread::panicking() {
            ended.unwrap();
        }
    }
}
