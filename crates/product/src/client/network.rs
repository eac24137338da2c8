//! What weir's own requests go over: the sockets of this machine, or those of a simulated world. This module does not know what is sent.

use std::fmt::Debug;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use weir_host::{Clock, SystemClock};

/// Makes connections.
pub trait Network: Debug + Send + Sync {
    /// The clock of all time limits.
    fn clock(&self) -> Arc<dyn Clock>;

    /// Whether its sockets are this machine's, so that there are those of UDP, too.
    fn is_kernel(&self) -> bool {
        false
    }

    /// Connects.
    ///
    /// # Errors
    /// Why there is no connection, within the time.
    fn connect(&self, addr: SocketAddr, within: Duration) -> io::Result<Box<dyn Socket>>;
}

/// A connection. Reading and writing never wait.
pub trait Socket: Debug + Read + Send + Write {
    /// Waits until one of these is possible, or the connection has failed, and says which to try.
    fn wait(&self, wanted: Readiness, within: Duration) -> Readiness;
}

/// What a connection can do without waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readiness {
    /// Read bytes, the end of the stream, or why it failed.
    pub read: bool,
    /// Write bytes.
    pub write: bool,
}

/// This machine's sockets.
#[derive(Debug)]
pub(super) struct Kernel;

impl Network for Kernel {
    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(SystemClock)
    }

    fn is_kernel(&self) -> bool {
        true
    }

    fn connect(&self, addr: SocketAddr, within: Duration) -> io::Result<Box<dyn Socket>> {
        let socket = TcpStream::connect_timeout(&addr, within)?;
        // A head and its body may leave in two pieces; the second must not wait for the first's acknowledgement.
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        Ok(Box::new(socket))
    }
}

impl Socket for TcpStream {
    fn wait(&self, wanted: Readiness, within: Duration) -> Readiness {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, wanted.read);
        flags.set(PollFlags::OUT, wanted.write);
        let mut fds = [PollFd::from_borrowed_fd(self.as_fd(), flags)];
        let timeout = Timespec::try_from(within).ok();
        // A signal only makes the wait shorter.
        let _ = poll(&mut fds, timeout.as_ref());
        let failed = PollFlags::HUP | PollFlags::ERR;
        let is = |flag| fds[0].revents().intersects(flag | failed);
        Readiness { read: wanted.read && is(PollFlags::IN), write: wanted.write && is(PollFlags::OUT) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use weir_model::At;
    use weir_model::suite::{Protocol, Request, Tls};

    use super::*;
    use crate::client::WireProtocol;
    use crate::http::Http;
    use crate::tls::RunTls;

    /// A world with one server, whose response comes after so much time. Time passes where somebody waits.
    #[derive(Debug, Clone)]
    struct World {
        now: Arc<Mutex<Duration>>,
        responds_after: Duration,
    }

    #[derive(Debug)]
    struct Wire {
        world: World,
        due: Option<Duration>,
        left: &'static [u8],
    }

    impl Clock for World {
        fn now(&self) -> At {
            At { mono_ns: self.now.lock().expect("not poisoned").as_nanos() as u64, unix_ns: 0 }
        }

        fn sleep(&self, time: Duration) {
            *self.now.lock().expect("not poisoned") += time;
        }
    }

    impl Network for World {
        fn clock(&self) -> Arc<dyn Clock> {
            Arc::new(self.clone())
        }

        fn connect(&self, _addr: SocketAddr, _within: Duration) -> io::Result<Box<dyn Socket>> {
            let left = b"HTTP/1.1 204 No Content\r\n\r\n";
            Ok(Box::new(Wire { world: self.clone(), due: None, left }))
        }
    }

    impl Read for Wire {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.left.read(into)
        }
    }

    impl Write for Wire {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.due = Some(Duration::from_nanos(self.world.now().mono_ns) + self.world.responds_after);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Socket for Wire {
        fn wait(&self, wanted: Readiness, within: Duration) -> Readiness {
            let now = Duration::from_nanos(self.world.now().mono_ns);
            let until = self.due.map_or(Duration::MAX, |due| due.saturating_sub(now));
            if !wanted.write {
                self.world.sleep(until.min(within));
            }
            Readiness { read: !wanted.write && until <= within, write: wanted.write }
        }
    }

    #[test]
    fn requests_go_over_another_network_in_its_time() {
        let seconds = Duration::from_secs;
        for (responds_after, found) in [(1, Ok(204)), (3, Err("nothing came for 2.0 s".to_owned()))] {
            let world = World { now: Arc::default(), responds_after: seconds(responds_after) };
            let wire_protocol = WireProtocol { network: Some(Arc::new(world.clone())), ..WireProtocol::default() };
            let http = Http::with_protocol(SocketAddr::from(([10, 0, 0, 1], 80)), seconds(2), &wire_protocol);
            let response = http.send(&Request::get("/_weir/ready"));
            assert_eq!(response.as_ref().map(|response| response.status).map_err(Clone::clone), found);
            assert_eq!(world.now().mono_ns, seconds(responds_after.min(2)).as_nanos() as u64);
            assert!(response.is_err() || response.is_ok_and(|response| response.took == seconds(1)));
        }
    }

    #[test]
    fn silence_ends_in_time_whatever_the_protocol() {
        let run = RunTls::new(Tls::default()).expect("a certificate");
        let timeout = Duration::from_millis(200);
        for protocol in Protocol::all().filter(|protocol| !protocol.is_keyvalue() && !protocol.is_quic()) {
            let world = World { now: Arc::default(), responds_after: Duration::from_secs(60) };
            let wire_protocol = run.wire_protocol(protocol).expect("session");
            let wire_protocol = WireProtocol { network: Some(Arc::new(world.clone())), ..wire_protocol };
            let http = Http::with_protocol(SocketAddr::from(([10, 0, 0, 1], 80)), timeout, &wire_protocol);
            let error = http.get("/").expect_err("silence");
            assert!(error.contains("nothing came for 0.2 s"), "{protocol:?}: {error}");
            assert_eq!(world.now().mono_ns, timeout.as_nanos() as u64, "{protocol:?}");
        }
    }
}
