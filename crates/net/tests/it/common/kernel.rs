//! The kernel's network: plain blocking sockets and threads around a driver.

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType, sockopt};
use weir_net::{
    Address, Driver, Handler, Listener, UnixSocket, Wake, Waker, datagram_socket, listen_socket, listen_unix,
    raise_descriptor_limit,
};

use super::{Act, LONG, Network, Peer, Place, Played};

/// A driver of the kernel's and how to make it.
pub struct Kernel<D> {
    make: fn() -> io::Result<D>,
    /// Their files are removed with them.
    unix: RefCell<Vec<UnixSocket>>,
}

impl<D> Kernel<D> {
    pub fn new(make: fn() -> io::Result<D>) -> Kernel<D> {
        raise_descriptor_limit();
        Kernel { make, unix: RefCell::default() }
    }

    /// A path of its own.
    pub fn path() -> std::path::PathBuf {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        std::env::temp_dir().join(format!("weir-net-{}-{number}.sock", std::process::id()))
    }
}

/// A TCP stream, or a Unix stream, for which reads and writes are the same calls. `None`: it is closed.
pub struct KernelPeer(Option<TcpStream>);

impl KernelPeer {
    fn new(socket: impl Into<OwnedFd>) -> KernelPeer {
        let stream = TcpStream::from(socket.into());
        stream.set_read_timeout(Some(Duration::from_nanos(LONG))).unwrap();
        KernelPeer(Some(stream))
    }
}

impl Peer for KernelPeer {
    fn other_address(&self) -> SocketAddr {
        self.0.as_ref().unwrap().peer_addr().unwrap()
    }

    fn act(&mut self, act: Act) -> io::Result<Vec<u8>> {
        let stream = self.0.as_mut().unwrap();
        let mut read = Vec::new();
        match act {
            Act::Write(bytes) => stream.write_all(&bytes)?,
            Act::Flood(bytes) => loop {
                stream.write_all(&bytes)?;
            },
            Act::Read(count) => {
                read.resize(count, 0);
                stream.read_exact(&mut read)?;
            }
            Act::ReadToEnd => drop(stream.read_to_end(&mut read)?),
            Act::Wait => drop(stream.peek(&mut [0])?),
            Act::ShutDown => stream.shutdown(Shutdown::Write)?,
            Act::Close => self.0 = None,
            Act::Reset => {
                sockopt::set_socket_linger(stream, Some(Duration::ZERO))?;
                self.0 = None;
            }
            Act::Pause(nanos) => std::thread::sleep(Duration::from_nanos(nanos)),
        }
        Ok(read)
    }
}

/// A driver on its own thread.
pub struct Server {
    stop: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
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

impl<D: Driver<Listener = Listener, Waker = Waker> + 'static> Network for Kernel<D> {
    type Driver = D;
    type Peer = KernelPeer;
    type PeerListener = Listener;
    type Server = Server;
    type Script = JoinHandle<Played<KernelPeer>>;

    fn driver(&self) -> D {
        (self.make)().unwrap()
    }

    fn listener(&self, place: Place) -> (Listener, Address) {
        match place {
            Place::Tcp => {
                // A port that was asked for by number, as an origin's: the kernel takes any other from a socket that stops listening.
                let free: TcpListener = listen_socket("127.0.0.1:0".parse().unwrap(), 1, true).unwrap();
                let address = free.local_addr().unwrap();
                let listener: TcpListener = listen_socket(address, 4096, true).unwrap();
                (listener.into(), address.into())
            }
            Place::Datagrams => {
                let socket = datagram_socket("127.0.0.1:0".parse().unwrap(), false).unwrap();
                let address = socket.local_addr().unwrap();
                (socket.into(), address.into())
            }
            Place::Unix(backlog) => {
                let path = Kernel::<D>::path();
                let socket = listen_unix(&path, backlog).unwrap();
                let listener = socket.listener().unwrap();
                self.unix.borrow_mut().push(socket);
                (listener.into(), path.into())
            }
        }
    }

    fn peer_listener(&self, place: Place) -> (Listener, Address) {
        self.listener(place)
    }

    fn try_accept(&self, listener: &Listener) -> Option<KernelPeer> {
        match rustix::net::accept(listener) {
            Ok(socket) => Some(KernelPeer::new(socket)),
            Err(rustix::io::Errno::AGAIN) => None,
            Err(error) => panic!("{error}"),
        }
    }

    fn try_connect(&self, to: &Address) -> io::Result<KernelPeer> {
        match to {
            Address::Tcp(to) => TcpStream::connect(to).map(KernelPeer::new),
            Address::Unix(path) => UnixStream::connect(path).map(KernelPeer::new),
        }
    }

    fn connect_small(&self, to: &Address) -> KernelPeer {
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        sockopt::set_socket_recv_buffer_size(&socket, 4096).unwrap();
        rustix::net::connect(&socket, &to.tcp().unwrap()).unwrap();
        KernelPeer::new(socket)
    }

    fn serve(&self, mut handler: impl Handler + Send + 'static) -> (Server, Address) {
        let (listener, address) = self.listener(Place::Tcp);
        let stop = Arc::new(AtomicBool::new(false));
        let (make, stopped) = (self.make, stop.clone());
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let mut driver = make().unwrap();
            driver.listen(listener).unwrap();
            tell.send(driver.waker()).unwrap();
            while !stopped.load(Ordering::Acquire) {
                driver.poll(&mut handler, None).unwrap();
            }
        });
        (Server { stop, waker: told.recv().unwrap(), thread: Some(thread) }, address)
    }

    fn play(&self, mut peer: KernelPeer, acts: Vec<Act>) -> Self::Script {
        std::thread::spawn(move || {
            let mut read = Vec::new();
            let error = acts.into_iter().try_for_each(|act| peer.act(act).map(|more| read.extend(more))).err();
            Played { peer, read, error }
        })
    }

    fn is_over(&self, script: &Self::Script) -> bool {
        script.is_finished()
    }

    fn join(&self, script: Self::Script) -> Played<KernelPeer> {
        script.join().unwrap()
    }

    fn pause(&self, nanos: u64) {
        std::thread::sleep(Duration::from_nanos(nanos));
    }

    fn later(&self, nanos: u64, call: impl FnOnce() + Send + 'static) {
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_nanos(nanos));
            call();
        });
    }

    fn unlink(&self, address: &Address) {
        self.unix.borrow_mut().retain(|socket| *address != Address::unix(socket.path()));
    }
}
