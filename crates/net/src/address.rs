//! Addresses of connections and listeners: TCP or a Unix stream socket.
//!
//! Drivers, the load and the origin use these types. This module does not know drivers.

use std::fmt;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The address that a connection goes to. It is cheap to clone, and connecting to it allocates nothing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Address {
    /// Host and port.
    Tcp(SocketAddr),
    /// The path of a Unix stream socket: at most 107 bytes, which `connect` checks. One that begins with `@` is the name of an
    /// abstract socket, which has no file (unix(7)).
    Unix(Arc<Path>),
}

impl Address {
    /// The address of the Unix stream socket at `path`.
    pub fn unix(path: impl AsRef<Path>) -> Address {
        Address::Unix(path.as_ref().into())
    }

    /// Returns host and port, or `None` for a Unix socket.
    pub fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Address::Tcp(addr) => Some(*addr),
            Address::Unix(_) => None,
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(addr: SocketAddr) -> Address {
        Address::Tcp(addr)
    }
}

impl From<PathBuf> for Address {
    fn from(path: PathBuf) -> Address {
        Address::Unix(path.into())
    }
}

/// `127.0.0.1:8080`, `unix:/run/it.sock` or `unix:@name`.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(addr) => addr.fmt(f),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A bound socket for [`crate::Driver::listen`].
#[derive(Debug)]
pub enum Listener {
    /// See [`crate::listen_socket`].
    Tcp(TcpListener),
    /// See [`crate::listen_unix`].
    Unix(UnixListener),
    /// See [`crate::datagram_socket`].
    Udp(UdpSocket),
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Listener {
        Listener::Tcp(listener)
    }
}

impl From<UdpSocket> for Listener {
    fn from(socket: UdpSocket) -> Listener {
        Listener::Udp(socket)
    }
}

impl From<UnixListener> for Listener {
    fn from(listener: UnixListener) -> Listener {
        Listener::Unix(listener)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Tcp(listener) => listener.as_fd(),
            Listener::Unix(listener) => listener.as_fd(),
            Listener::Udp(socket) => socket.as_fd(),
        }
    }
}

impl AsRawFd for Listener {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl From<Listener> for OwnedFd {
    fn from(listener: Listener) -> OwnedFd {
        match listener {
            Listener::Tcp(listener) => listener.into(),
            Listener::Unix(listener) => listener.into(),
            Listener::Udp(socket) => socket.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_displayed() {
        let tcp = Address::from(SocketAddr::from(([127, 0, 0, 1], 80)));
        assert_eq!(tcp.to_string(), "127.0.0.1:80");
        assert_eq!(tcp.tcp(), Some(SocketAddr::from(([127, 0, 0, 1], 80))));
        let unix = Address::unix("/run/it.sock");
        assert_eq!((unix.to_string().as_str(), unix.tcp()), ("unix:/run/it.sock", None));
        assert_eq!(unix, Address::from(PathBuf::from("/run/it.sock")));
    }
}
