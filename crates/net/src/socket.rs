//! Makes sockets as the drivers need them: close-on-exec, no delay for TCP, and source addresses on request.
//!
//! The drivers call it, and the origin makes its listeners here. It does not know how a driver waits.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType, sockopt};

use crate::{Address, Listener};

/// How long to wait before accepting again after descriptors or memory ran out, nanoseconds.
pub(crate) const ACCEPT_PAUSE: u64 = 10_000_000;

/// ip(7); `libc` lacks it.
const IP_LOCAL_PORT_RANGE: libc::c_int = 51;

/// Bytes of the path of a Unix socket.
const LONGEST_PATH: usize = 107;

/// Whether accepting failed because descriptors or memory ran out: the connection still waits, and will for a while.
pub(crate) fn is_out_of_resources(error: i32) -> bool {
    // ENOSPC: the limit of epoll watches.
    matches!(error, libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM | libc::ENOSPC)
}

/// Limits on how much the kernel holds of the bytes that a peer sends, so that it is no more than at a slow client of the internet. By
/// default the kernel chooses, and over loopback it holds megabytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SocketLimits {
    /// The receive buffer, bytes; the kernel takes about twice as much memory for it.
    pub receive_buffer: Option<u32>,
    /// The largest segment that the peer is to send, bytes. Its send buffer grows with it, too.
    pub segment: Option<u32>,
}

impl SocketLimits {
    fn set(self, fd: &OwnedFd) -> io::Result<()> {
        if let Some(bytes) = self.receive_buffer {
            sockopt::set_socket_recv_buffer_size(fd, bytes as usize)?;
        }
        self.segment.map_or(Ok(()), |bytes| set_option(fd, libc::IPPROTO_TCP, libc::TCP_MAXSEG, bytes as i32))
    }
}

/// An address in the kernel's form.
///
/// # Errors
/// When the path of a Unix socket is too long for the kernel's form, or contains a zero byte.
pub(crate) fn raw_addr(addr: &Address) -> io::Result<SocketAddrAny> {
    match addr {
        Address::Tcp(addr) => Ok((*addr).into()),
        Address::Unix(path) => Ok(unix_addr(path)?.into()),
    }
}

pub(crate) fn unix_addr(path: &Path) -> io::Result<SocketAddrUnix> {
    let path = path.as_os_str().as_bytes();
    let name = path.strip_prefix(b"@");
    // One byte is left for the terminating zero. An empty path would name no file, and an empty name any socket.
    if name.unwrap_or(path).is_empty() || path.len() > LONGEST_PATH || path.contains(&0) {
        return Err(io::Error::from(io::ErrorKind::InvalidFilename));
    }
    Ok(name.map_or_else(|| SocketAddrUnix::new(path), SocketAddrUnix::new_abstract_name)?)
}

/// Returns whether the path of a Unix socket is the name of an abstract one.
pub(crate) fn is_abstract(path: &[u8]) -> bool {
    path.starts_with(b"@")
}

/// The number of a network interface, which is the zone of an IPv6 address; `None` where there is no such interface.
pub fn interface_index(name: &str) -> Option<u32> {
    let name = std::ffi::CString::new(name).ok()?;
    // SAFETY: the name lives during the call and ends with a zero.
    Some(unsafe { libc::if_nametoindex(name.as_ptr()) }).filter(|index| *index != 0)
}

/// Turns a C return value into a result.
pub(crate) fn check(returned: libc::c_int) -> io::Result<libc::c_int> {
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(returned) }
}

/// The number of this thread's last error.
pub(crate) fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Borrows the descriptor of a driver's slot.
pub(crate) fn borrow<'a>(fd: RawFd) -> BorrowedFd<'a> {
    // SAFETY: the slot's descriptor is open; a wrong one gives an error and nothing else.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

/// An option that `rustix` lacks.
fn set_option(fd: &OwnedFd, level: i32, name: i32, value: i32) -> io::Result<()> {
    let (value, size) = ((&raw const value).cast(), size_of::<i32>() as libc::socklen_t);
    // SAFETY: the option value is a live int, and its size is given.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, value, size) }).map(drop)
}

fn tcp_socket(addr: &SocketAddr, nonblocking: bool) -> io::Result<OwnedFd> {
    stream_socket(if addr.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 }, nonblocking)
}

/// A stream socket of a family, close-on-exec.
pub(crate) fn stream_socket(family: AddressFamily, nonblocking: bool) -> io::Result<OwnedFd> {
    let flags = if nonblocking { SocketFlags::NONBLOCK } else { SocketFlags::empty() };
    Ok(net::socket_with(family, SocketType::STREAM, flags | SocketFlags::CLOEXEC, None)?)
}

/// Makes a socket for a connection to `to`: a TCP socket with `TCP_NODELAY`, bound to `from` when given, or a Unix
/// socket, which has neither.
///
/// With a source address the port is chosen only when connecting (`IP_BIND_ADDRESS_NO_PORT`), so that one
/// source port can serve several destinations. With the unspecified address nothing is bound, and all ports are tried alike.
pub(crate) fn client_socket(
    to: &Address,
    from: Option<IpAddr>,
    limits: SocketLimits,
    nonblocking: bool,
) -> io::Result<OwnedFd> {
    let Address::Tcp(to) = to else {
        return stream_socket(AddressFamily::UNIX, nonblocking);
    };
    let fd = tcp_socket(to, nonblocking)?;
    sockopt::set_tcp_nodelay(&fd, true)?;
    limits.set(&fd)?;
    if from.is_some_and(|ip| ip.is_unspecified()) {
        try_every_port(&fd);
    } else if let Some(ip) = from {
        set_option(&fd, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)?;
        net::bind(&fd, &SocketAddr::new(ip, 0))?;
    }
    Ok(fd)
}

/// Makes the kernel look for a free port among all, and not first among every second one. As long as few are taken that is no
/// better; beyond half of them each connection would search all of the taken half in vain. Linux does so from 6.8 on for sockets
/// that have a range of their own, here the system's (ip(7), `IP_LOCAL_PORT_RANGE`). Others find their port more slowly.
fn try_every_port(fd: &OwnedFd) {
    let _ = set_option(fd, libc::IPPROTO_IP, IP_LOCAL_PORT_RANGE, (u32::from(u16::MAX) << 16) as i32);
}

/// Prepares a listener for a driver: it is non-blocking, and accepted sockets inherit `TCP_NODELAY`.
pub(crate) fn prepare_listener(listener: &Listener) -> io::Result<()> {
    match listener {
        Listener::Tcp(listener) => {
            listener.set_nonblocking(true)?;
            Ok(sockopt::set_tcp_nodelay(listener, true)?)
        }
        Listener::Unix(listener) => listener.set_nonblocking(true),
        Listener::Udp(socket) => socket.set_nonblocking(true),
    }
}

/// Makes the next close of the socket a reset: `SO_LINGER` with zero seconds.
pub(crate) fn linger_zero(fd: RawFd) {
    // A socket that refuses the option still gets closed, with FIN instead of RST.
    let _ = sockopt::set_socket_linger(borrow(fd), Some(Duration::ZERO));
}

/// The socket's pending error as a number, zero when there is none.
pub(crate) fn take_error(fd: RawFd) -> i32 {
    sockopt::socket_error(borrow(fd)).and_then(|pending| pending).map_or_else(Errno::raw_os_error, |()| 0)
}

/// The accept queue of a listener that accepts again, in connections; the kernel caps it.
const BACKLOG_AGAIN: i32 = 65_535;

/// A bound socket stops listening, so that the kernel refuses connections, or listens again.
pub(crate) fn refuse(listener: &Listener, refuse: bool) -> io::Result<()> {
    if refuse {
        net::shutdown(listener, net::Shutdown::Read)?
    } else {
        net::listen(listener, BACKLOG_AGAIN)?
    }
    Ok(())
}

/// Makes a listening socket for [`crate::Driver::listen`]: non-blocking, `SO_REUSEADDR`, `TCP_NODELAY` (which
/// accepted sockets inherit), and `SO_REUSEPORT` when several threads are to share the address.
///
/// `backlog` is the requested length of the accept queue, in connections; the kernel caps it at `net.core.somaxconn`.
///
/// # Errors
/// When the kernel refuses the socket, the address or an option.
pub fn listen_socket(addr: SocketAddr, backlog: u32, reuseport: bool) -> io::Result<TcpListener> {
    let fd = tcp_socket(&addr, true)?;
    sockopt::set_socket_reuseaddr(&fd, true)?;
    if reuseport {
        sockopt::set_socket_reuseport(&fd, true)?;
    }
    sockopt::set_tcp_nodelay(&fd, true)?;
    net::bind(&fd, &addr)?;
    net::listen(&fd, i32::try_from(backlog).unwrap_or(i32::MAX))?;
    Ok(TcpListener::from(fd))
}
