//! Sockets of datagrams as the kernel's drivers need them: many datagrams with each system call.
//!
//! Linux takes up to 64 datagrams of one size to one peer in one call, and segments them below its stack (GSO, `UDP_SEGMENT`). It hands
//! over what has come from one peer in the same way (GRO, `UDP_GRO`), and `recvmmsg` takes several such trains. Where either is missing
//! datagrams go one by one; [`DatagramCounts`] shows it. This module does not know how a driver waits, nor what a datagram says.

use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::net::{self, AddressFamily, SocketAddrAny, SocketFlags, SocketType, sockopt};

use crate::Conn;
use crate::slots::{Flag, Slots};
use crate::socket::{check, errno};

/// udp(7), which `libc` has for some targets alone.
const SOL_UDP: libc::c_int = 17;
const UDP_SEGMENT: libc::c_int = 103;
const UDP_GRO: libc::c_int = 104;

/// Bytes that a socket's buffers ask for, each way; the kernel caps them (`net.core.rmem_max`, `wmem_max`).
const BUFFER: usize = 8 << 20;

/// Trains that one call takes at most, each with room for the longest.
const TRAINS: usize = 8;

/// Room for the control messages of one train: the segments' size.
const CONTROL: usize = 64;

/// Datagrams that came together from one peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagrams<'a> {
    /// The peer.
    pub from: SocketAddr,
    /// All of them.
    pub bytes: &'a [u8],
    /// Bytes of each; the last may be shorter. Never 0.
    pub segment: usize,
}

impl<'a> Datagrams<'a> {
    /// The most datagrams that one call sends.
    pub const MOST: usize = 64;

    /// The most bytes that one call sends: what fits a packet of IPv4.
    pub const MOST_BYTES: usize = 65_507;

    /// Each datagram.
    pub fn each(self) -> impl Iterator<Item = &'a [u8]> {
        self.bytes.chunks(self.segment)
    }
}

/// What sockets of datagrams have done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DatagramCounts {
    /// Datagrams received.
    pub received: u64,
    /// Trains of them: each came from the network stack as one.
    pub received_trains: u64,
    /// System calls that received some.
    pub receive_calls: u64,
    /// Datagrams sent.
    pub sent: u64,
    /// System calls for them.
    pub send_calls: u64,
    /// Datagrams that the kernel had no room for, and that were lost so.
    pub refused: u64,
}

/// What a layer that makes connections of datagrams has counted of their paths, over all connections so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PathCounts {
    /// Connections that were made.
    pub connections: u64,
    /// Packets sent.
    pub sent: u64,
    /// Packets that did not arrive, as far as the layer knows.
    pub lost: u64,
    /// How often congestion control went back.
    pub congestion_events: u64,
    /// The last estimates of the round-trip time, summed over connections, nanoseconds.
    pub rtt_ns: u64,
    /// The largest datagram that the path takes, of any connection, bytes.
    pub mtu: u16,
    /// Streams that waited because the peer allowed no more, and for how long together and at most, nanoseconds.
    pub waited: u64,
    /// See [`PathCounts::waited`].
    pub waited_ns: u64,
    /// See [`PathCounts::waited`].
    pub longest_wait_ns: u64,
}

/// Makes a bound socket of datagrams for [`crate::Driver::listen`]; `reuseport`: several threads share the address, and each peer (address
/// and port) belongs to one of them.
///
/// # Errors
/// When the kernel refuses the socket or the address.
pub fn datagram_socket(addr: SocketAddr, reuseport: bool) -> io::Result<UdpSocket> {
    let fd = new_socket(&addr)?;
    if reuseport {
        sockopt::set_socket_reuseport(&fd, true)?;
    }
    net::bind(&fd, &addr)?;
    Ok(UdpSocket::from(fd))
}

/// Makes a socket for one peer.
pub(crate) fn connected_socket(to: SocketAddr, from: Option<IpAddr>) -> io::Result<OwnedFd> {
    let fd = new_socket(&to)?;
    if let Some(from) = from.filter(|from| !from.is_unspecified()) {
        net::bind(&fd, &SocketAddr::new(from, 0))?;
    }
    net::connect(&fd, &to)?;
    Ok(fd)
}

fn new_socket(addr: &SocketAddr) -> io::Result<OwnedFd> {
    let family = if addr.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let fd = net::socket_with(family, SocketType::DGRAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)?;
    // As much as may be had: more than the cap is for privileged processes alone.
    let _ = sockopt::set_socket_recv_buffer_size_force(&fd, BUFFER)
        .or_else(|_| sockopt::set_socket_recv_buffer_size(&fd, BUFFER));
    let _ = sockopt::set_socket_send_buffer_size_force(&fd, BUFFER)
        .or_else(|_| sockopt::set_socket_send_buffer_size(&fd, BUFFER));
    // Datagrams are not fragmented: QUIC looks for the path's MTU by itself.
    let (level, name, value) = match addr {
        SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE),
        SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE),
    };
    let _ = set_at(fd.as_raw_fd(), level, name, value);
    // Without it each datagram comes alone.
    let _ = set(fd.as_raw_fd(), UDP_GRO, 1);
    Ok(fd)
}

fn set(fd: RawFd, name: i32, value: i32) -> io::Result<()> {
    set_at(fd, SOL_UDP, name, value)
}

fn set_at(fd: RawFd, level: i32, name: i32, value: i32) -> io::Result<()> {
    let (value, size) = ((&raw const value).cast(), size_of::<i32>() as libc::socklen_t);
    // SAFETY: the option value is a live int, and its size is given.
    check(unsafe { libc::setsockopt(fd, level, name, value, size) }).map(drop)
}

/// Whether the kernel knows `UDP_SEGMENT` (Linux 4.18).
fn can_segment(fd: RawFd) -> bool {
    set(fd, UDP_SEGMENT, 0).is_ok()
}

/// An address as the kernel writes it.
fn address(raw: &libc::sockaddr_storage) -> Option<SocketAddr> {
    match i32::from(raw.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says that it is this structure, for which the storage has room.
            let raw = unsafe { &*std::ptr::from_ref(raw).cast::<libc::sockaddr_in>() };
            Some(SocketAddr::from((raw.sin_addr.s_addr.to_ne_bytes(), u16::from_be(raw.sin_port))))
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let raw = unsafe { &*std::ptr::from_ref(raw).cast::<libc::sockaddr_in6>() };
            Some(SocketAddr::from((raw.sin6_addr.s6_addr, u16::from_be(raw.sin6_port))))
        }
        _ => None,
    }
}

/// What one system call has received.
struct Train {
    address: libc::sockaddr_storage,
    slice: libc::iovec,
    control: Control,
}

/// Aligned as control messages are.
#[repr(C, align(8))]
struct Control([u8; CONTROL]);

/// The memory that a driver's sockets receive into, in turn: half a MiB.
pub(crate) struct Receiver {
    buffer: Vec<u8>,
    trains: [Train; TRAINS],
    headers: [libc::mmsghdr; TRAINS],
}

/// Room for the longest train.
const ROOM: usize = 1 << 16;

impl Receiver {
    fn new() -> Box<Receiver> {
        // SAFETY: all-zero is a valid value of both: null pointers, zero lengths, no family.
        let (trains, headers) = unsafe { (MaybeUninit::zeroed().assume_init(), MaybeUninit::zeroed().assume_init()) };
        Box::new(Receiver { buffer: vec![0; TRAINS * ROOM], trains, headers })
    }

    /// Receives what has come, in one system call. Returns how many trains, for [`Receiver::train`], and whether there may be more.
    ///
    /// # Errors
    /// The kernel's number.
    pub(crate) fn receive(&mut self, fd: RawFd) -> Result<(usize, bool), i32> {
        let rooms = self.buffer.chunks_exact_mut(ROOM);
        for ((header, train), room) in self.headers.iter_mut().zip(&mut self.trains).zip(rooms) {
            train.slice = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: ROOM };
            let header = &mut header.msg_hdr;
            header.msg_name = (&raw mut train.address).cast();
            header.msg_namelen = size_of::<libc::sockaddr_storage>() as u32;
            header.msg_iov = &raw mut train.slice;
            header.msg_iovlen = 1;
            header.msg_control = train.control.0.as_mut_ptr().cast();
            header.msg_controllen = CONTROL as _;
        }
        let (headers, flags) = (self.headers.as_mut_ptr(), libc::MSG_DONTWAIT as _);
        // SAFETY: the headers and all that they point to live during the call, with the sizes given.
        let got = unsafe { libc::recvmmsg(fd, headers, TRAINS as u32, flags, std::ptr::null_mut()) };
        usize::try_from(got).map(|got| (got, got == TRAINS)).map_err(|_| errno())
    }

    /// One of the trains of the last call; `None`: it is of no use.
    pub(crate) fn train(&self, index: usize) -> Option<Datagrams<'_>> {
        let header = &self.headers[index];
        let length = header.msg_len as usize;
        let from = address(&self.trains[index].address)?;
        let segment = segment_size(&header.msg_hdr).filter(|size| *size > 0).unwrap_or(length);
        (length > 0).then(|| Datagrams { from, bytes: &self.buffer[index * ROOM..][..length], segment })
    }
}

/// Datagrams of one size to be sent; `to`: where the socket has not a single peer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outbound<'a> {
    pub(crate) to: Option<SocketAddr>,
    pub(crate) bytes: &'a [u8],
    pub(crate) segment: usize,
}

/// What the sockets of a driver share.
#[derive(Default)]
pub(crate) struct DatagramIo {
    /// `None`: nothing was received yet, or it is in use.
    receiver: Option<Box<Receiver>>,
    /// Whether the kernel segments; `None`: not known yet.
    segments: Option<bool>,
    pub(crate) counts: DatagramCounts,
}

impl std::fmt::Debug for DatagramIo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DatagramIo").field("counts", &self.counts).finish_non_exhaustive()
    }
}

impl DatagramIo {
    /// The memory to receive into, until it is given back.
    pub(crate) fn take_receiver(&mut self) -> Box<Receiver> {
        self.receiver.take().unwrap_or_else(Receiver::new)
    }

    pub(crate) fn give_back(&mut self, receiver: Box<Receiver>) {
        self.receiver = Some(receiver);
    }

    /// A train was received.
    pub(crate) fn count(&mut self, train: &Datagrams<'_>) {
        self.counts.received_trains += 1;
        self.counts.received += train.bytes.len().div_ceil(train.segment) as u64;
    }

    /// Sends datagrams on a driver's socket. An error of the socket's only peer is kept with the socket, which then is one of `failed`.
    pub(crate) fn send_on(&mut self, slots: &mut Slots, failed: &mut Vec<Conn>, conn: Conn, sent: Outbound<'_>) {
        let Some(slot) = slots.open_mut(conn).filter(|slot| slot.is(Flag::Datagrams)) else { return };
        if let Err(error) = self.send(slot.fd, sent)
            && sent.to.is_none()
        {
            slot.error = error as u16;
            failed.push(conn);
        }
    }

    /// Sends datagrams.
    ///
    /// # Errors
    /// The kernel's number, if it says something of the socket or the peer. What it has no room for is counted.
    fn send(&mut self, fd: RawFd, Outbound { to, bytes, segment }: Outbound<'_>) -> Result<(), i32> {
        let segment = segment.max(1);
        let segments = *self.segments.get_or_insert_with(|| can_segment(fd));
        let to = to.map(SocketAddrAny::from);
        if segments || bytes.len() <= segment {
            return self.send_once(fd, to.as_ref(), bytes, segment);
        }
        bytes.chunks(segment).try_for_each(|one| self.send_once(fd, to.as_ref(), one, segment))
    }

    fn send_once(&mut self, fd: RawFd, to: Option<&SocketAddrAny>, bytes: &[u8], segment: usize) -> Result<(), i32> {
        let count = bytes.len().div_ceil(segment) as u64;
        let mut slice = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        let mut control = Control([0; CONTROL]);
        // SAFETY: all-zero is a valid header.
        let mut header: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
        header.msg_iov = &raw mut slice;
        header.msg_iovlen = 1;
        if let Some(to) = to {
            header.msg_name = to.as_ptr().cast_mut().cast();
            header.msg_namelen = to.addr_len();
        }
        if count > 1 {
            // SAFETY: a size, and no memory.
            let (length, space) = unsafe { (libc::CMSG_LEN(2), libc::CMSG_SPACE(2)) };
            header.msg_control = control.0.as_mut_ptr().cast();
            header.msg_controllen = space as _;
            // SAFETY: the control buffer is aligned, and larger than the space of one message with two bytes.
            unsafe {
                let message = &mut *libc::CMSG_FIRSTHDR(&raw const header);
                message.cmsg_level = SOL_UDP;
                message.cmsg_type = UDP_SEGMENT;
                message.cmsg_len = length as _;
                libc::CMSG_DATA(message).cast::<u16>().write_unaligned(segment as u16);
            }
        }
        loop {
            // SAFETY: the header and all that it points to live during the call; the kernel writes to none of it.
            let sent = unsafe { libc::sendmsg(fd, &raw const header, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT) };
            self.counts.send_calls += 1;
            if sent >= 0 {
                self.counts.sent += count;
                return Ok(());
            }
            match errno() {
                libc::EINTR => {}
                // Larger than the path takes: QUIC's probe finds out so.
                libc::EAGAIN | libc::ENOBUFS | libc::EMSGSIZE => {
                    self.counts.refused += count;
                    return Ok(());
                }
                error => {
                    self.counts.refused += count;
                    return Err(error);
                }
            }
        }
    }
}

/// The size of a train's datagrams, if the kernel says it.
fn segment_size(header: &libc::msghdr) -> Option<usize> {
    // SAFETY: the kernel has written the control messages, and their length.
    let mut message = unsafe { libc::CMSG_FIRSTHDR(header) };
    while !message.is_null() {
        // SAFETY: not null, so inside the control buffer.
        let one = unsafe { &*message };
        if one.cmsg_level == SOL_UDP && one.cmsg_type == UDP_GRO {
            // SAFETY: this message has an int.
            return Some(unsafe { libc::CMSG_DATA(message).cast::<i32>().read_unaligned() } as usize);
        }
        // SAFETY: both are of the same header.
        message = unsafe { libc::CMSG_NXTHDR(header, message) };
    }
    None
}
