//! Makes sockets as the drivers need them: close-on-exec, no delay for TCP, and source addresses on request.
//!
//! The drivers call it, and the origin makes its listeners here. It does not know how a driver waits.

use std::io;
use std::mem::size_of;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::{Address, Listener};

/// How long to wait before accepting again after descriptors or memory ran out, nanoseconds.
pub(crate) const ACCEPT_PAUSE: u64 = 10_000_000;

/// ip(7); `libc` lacks it.
const IP_LOCAL_PORT_RANGE: libc::c_int = 51;

/// Whether accepting failed because descriptors or memory ran out: the connection still waits, and will for a while.
pub(crate) fn is_out_of_resources(error: i32) -> bool {
    // ENOSPC: the limit of epoll watches.
    matches!(error, libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM | libc::ENOSPC)
}

/// A socket address in the kernel's form.
#[derive(Clone, Copy)]
pub(crate) struct RawAddr {
    storage: Storage,
    len: libc::socklen_t,
}

#[derive(Clone, Copy)]
#[repr(C)]
union Storage {
    v4: libc::sockaddr_in,
    v6: libc::sockaddr_in6,
    unix: libc::sockaddr_un,
}

impl RawAddr {
    /// # Errors
    /// When the path of a Unix socket is too long for the kernel's form, or contains a zero byte.
    pub(crate) fn new(addr: &Address) -> io::Result<RawAddr> {
        match addr {
            Address::Tcp(addr) => Ok(RawAddr::tcp(addr)),
            Address::Unix(path) => RawAddr::unix(path),
        }
    }

    pub(crate) fn unix(path: &Path) -> io::Result<RawAddr> {
        let path = path.as_os_str().as_bytes();
        let is_abstract = is_abstract(path);
        let mut unix = libc::sockaddr_un { sun_family: libc::AF_UNIX as libc::sa_family_t, sun_path: [0; 108] };
        // One byte is left for the terminating zero. An empty path would name no file, and an empty name any socket.
        if path.len() <= usize::from(is_abstract) || path.len() >= unix.sun_path.len() || path.contains(&0) {
            return Err(io::Error::from(io::ErrorKind::InvalidFilename));
        }
        for (to, &from) in unix.sun_path.iter_mut().zip(path) {
            *to = from as libc::c_char;
        }
        // A zero begins an abstract name, which ends with the length of the address.
        if is_abstract {
            unix.sun_path[0] = 0;
        }
        let len = std::mem::offset_of!(libc::sockaddr_un, sun_path) + path.len() + usize::from(!is_abstract);
        Ok(RawAddr { storage: Storage { unix }, len: len as libc::socklen_t })
    }

    pub(crate) fn tcp(addr: &SocketAddr) -> RawAddr {
        match addr {
            SocketAddr::V4(v4) => RawAddr {
                storage: Storage {
                    v4: libc::sockaddr_in {
                        sin_family: libc::AF_INET as libc::sa_family_t,
                        sin_port: v4.port().to_be(),
                        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(v4.ip().octets()) },
                        sin_zero: [0; 8],
                    },
                },
                len: size_of::<libc::sockaddr_in>() as libc::socklen_t,
            },
            SocketAddr::V6(v6) => RawAddr {
                storage: Storage {
                    v6: libc::sockaddr_in6 {
                        sin6_family: libc::AF_INET6 as libc::sa_family_t,
                        sin6_port: v6.port().to_be(),
                        sin6_flowinfo: v6.flowinfo(),
                        sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                        sin6_scope_id: v6.scope_id(),
                    },
                },
                len: size_of::<libc::sockaddr_in6>() as libc::socklen_t,
            },
        }
    }

    pub(crate) fn as_ptr(&self) -> *const libc::sockaddr {
        (&raw const self.storage).cast()
    }

    pub(crate) fn len(&self) -> libc::socklen_t {
        self.len
    }
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

fn set_option(fd: RawFd, level: i32, name: i32, value: i32) -> io::Result<()> {
    // SAFETY: the option value is a live int, and its size is given.
    check(unsafe { libc::setsockopt(fd, level, name, (&raw const value).cast(), size_of::<i32>() as libc::socklen_t) })
        .map(drop)
}

fn tcp_socket(addr: &SocketAddr, nonblocking: bool) -> io::Result<OwnedFd> {
    let family = match addr {
        SocketAddr::V4(_) => libc::AF_INET,
        SocketAddr::V6(_) => libc::AF_INET6,
    };
    stream_socket(family, nonblocking)
}

/// A stream socket of a family, close-on-exec.
pub(crate) fn stream_socket(family: i32, nonblocking: bool) -> io::Result<OwnedFd> {
    let mut kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    if nonblocking {
        kind |= libc::SOCK_NONBLOCK;
    }
    // SAFETY: no pointers are passed.
    let fd = check(unsafe { libc::socket(family, kind, 0) })?;
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn bind(fd: RawFd, addr: &SocketAddr) -> io::Result<()> {
    let raw = RawAddr::tcp(addr);
    // SAFETY: the address lives during the call and its length is its own.
    check(unsafe { libc::bind(fd, raw.as_ptr(), raw.len()) }).map(drop)
}

/// Makes a socket for a connection to `to`: a TCP socket with `TCP_NODELAY`, bound to `from` when given, or a Unix
/// socket, which has neither.
///
/// With a source address the port is chosen only when connecting (`IP_BIND_ADDRESS_NO_PORT`), so that one
/// source port can serve several destinations. With the unspecified address nothing is bound, and all ports are tried alike.
pub(crate) fn client_socket(to: &Address, from: Option<IpAddr>, nonblocking: bool) -> io::Result<OwnedFd> {
    let Address::Tcp(to) = to else {
        return stream_socket(libc::AF_UNIX, nonblocking);
    };
    let fd = tcp_socket(to, nonblocking)?;
    no_delay(fd.as_raw_fd())?;
    if from.is_some_and(|ip| ip.is_unspecified()) {
        try_every_port(fd.as_raw_fd());
    } else if let Some(ip) = from {
        set_option(fd.as_raw_fd(), libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)?;
        bind(fd.as_raw_fd(), &SocketAddr::new(ip, 0))?;
    }
    Ok(fd)
}

/// Makes the kernel look for a free port among all, and not first among every second one. As long as few are taken that is no
/// better; beyond half of them each connection would search all of the taken half in vain. Linux does so from 6.8 on for sockets
/// that have a range of their own, here the system's (ip(7), `IP_LOCAL_PORT_RANGE`). Others find their port more slowly.
fn try_every_port(fd: RawFd) {
    let _ = set_option(fd, libc::IPPROTO_IP, IP_LOCAL_PORT_RANGE, (u32::from(u16::MAX) << 16) as i32);
}

/// Prepares a listener for a driver: it is non-blocking, and accepted sockets inherit `TCP_NODELAY`.
pub(crate) fn prepare_listener(listener: &Listener) -> io::Result<()> {
    match listener {
        Listener::Tcp(listener) => {
            listener.set_nonblocking(true)?;
            no_delay(listener.as_raw_fd())
        }
        Listener::Unix(listener) => listener.set_nonblocking(true),
    }
}

/// Switches Nagle's algorithm off.
pub(crate) fn no_delay(fd: RawFd) -> io::Result<()> {
    set_option(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)
}

/// Makes the next close of the socket a reset: `SO_LINGER` with zero seconds.
pub(crate) fn linger_zero(fd: RawFd) {
    // SAFETY: the caller's descriptor is open; a wrong one gives an error and nothing else.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    // A socket that refuses the option still gets closed, with FIN instead of RST.
    let _ = rustix::net::sockopt::set_socket_linger(fd, Some(std::time::Duration::ZERO));
}

/// The socket's pending error as a number, zero when there is none.
pub(crate) fn take_error(fd: RawFd) -> i32 {
    let mut value: i32 = 0;
    let mut len = size_of::<i32>() as libc::socklen_t;
    // SAFETY: both pointers are to live values of the size given.
    let got = unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_ERROR, (&raw mut value).cast(), &raw mut len) };
    if got < 0 { errno() } else { value }
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
    let raw = fd.as_raw_fd();
    set_option(raw, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
    if reuseport {
        set_option(raw, libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)?;
    }
    no_delay(raw)?;
    bind(raw, &addr)?;
    // SAFETY: no pointers are passed.
    check(unsafe { libc::listen(raw, i32::try_from(backlog).unwrap_or(i32::MAX)) })?;
    Ok(TcpListener::from(fd))
}
