//! Established TCP sockets, asked of the kernel (sock_diag(7)).
//!
//! It lists no sockets that wait to be forgotten (`TIME_WAIT`). After a load with a connection for each request there are 100,000 of them.
//! `/proc/net/tcp` has a line for each: reading them took 0.3 to 2 s beside workers of the real-time class. It does not know who holds a
//! socket.

use std::io;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with};

/// Kinds of messages (linux/netlink.h and linux/sock_diag.h).
const ERROR: u16 = 2;
const DONE: u16 = 3;
const BY_FAMILY: u16 = 20;

/// A request (1) for all that match (0x300).
const REQUEST_ALL: u16 = 0x301;

const TCP: u8 = 6;
const ESTABLISHED: u32 = 1 << 1;

/// Bytes of a header, and of a request with it.
const HEADER: usize = 16;
const REQUEST: usize = 72;

/// An established socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Established {
    pub local_port: u16,
    pub remote_port: u16,
    pub inode: u64,
}

/// Calls `wants_more` with each established socket, until it says no.
///
/// # Errors
/// Where the kernel does not answer: it is built without this.
pub(crate) fn list(mut wants_more: impl FnMut(Established) -> bool) -> io::Result<()> {
    for family in [AddressFamily::INET, AddressFamily::INET6] {
        if !list_family(family, &mut wants_more)? {
            break;
        }
    }
    Ok(())
}

fn list_family(family: AddressFamily, wants_more: &mut impl FnMut(Established) -> bool) -> io::Result<bool> {
    let kind = SocketType::RAW;
    let socket = socket_with(AddressFamily::NETLINK, kind, SocketFlags::CLOEXEC, Some(netlink::SOCK_DIAG))?;
    send(&socket, &request(family), SendFlags::empty())?;
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let (_, length) = recv(&socket, &mut buffer[..], RecvFlags::empty())?;
        let mut input = &buffer[..length.min(buffer.len())];
        if input.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        while let Some(message) = next(&mut input) {
            match message? {
                Message::Socket(socket) if !wants_more(socket) => return Ok(false),
                Message::Socket(_) | Message::Other => {}
                Message::Done => return Ok(true),
            }
        }
    }
}

/// `struct nlmsghdr` and `struct inet_diag_req_v2`.
fn request(family: AddressFamily) -> [u8; REQUEST] {
    let mut request = [0; REQUEST];
    request[..4].copy_from_slice(&(REQUEST as u32).to_ne_bytes());
    request[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
    request[6..8].copy_from_slice(&REQUEST_ALL.to_ne_bytes());
    request[HEADER] = family.as_raw() as u8;
    request[HEADER + 1] = TCP;
    request[HEADER + 4..HEADER + 8].copy_from_slice(&ESTABLISHED.to_ne_bytes());
    request
}

#[derive(Debug, PartialEq, Eq)]
enum Message {
    Socket(Established),
    Done,
    Other,
}

/// The next message; `None`: there is no whole one.
fn next(input: &mut &[u8]) -> Option<io::Result<Message>> {
    let length = u32::from_ne_bytes(*input.first_chunk()?) as usize;
    let kind = u16::from_ne_bytes(*input.get(4..)?.first_chunk()?);
    let payload = input.get(HEADER..length)?;
    *input = input.get(length.next_multiple_of(4)..).unwrap_or_default();
    Some(match kind {
        DONE => Ok(Message::Done),
        ERROR => {
            let error = payload.first_chunk().map_or(0, |code| i32::from_ne_bytes(*code));
            Err(io::Error::from_raw_os_error(error.saturating_neg()))
        }
        BY_FAMILY => Ok(established(payload).map_or(Message::Other, Message::Socket)),
        _ => Ok(Message::Other),
    })
}

/// `struct inet_diag_msg`.
fn established(payload: &[u8]) -> Option<Established> {
    let port = |at: usize| Some(u16::from_be_bytes(*payload.get(at..)?.first_chunk()?));
    let inode = u32::from_ne_bytes(*payload.get(68..)?.first_chunk()?).into();
    Some(Established { local_port: port(4)?, remote_port: port(6)?, inode })
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd as _;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_connection_has_two_sockets_and_one_that_is_over_has_none() {
        for host in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(host) else { continue };
            let port = listener.local_addr().expect("bound").port();
            let client = TcpStream::connect(listener.local_addr().expect("bound")).expect("connects");
            let (accepted, _) = listener.accept().expect("accepts");
            let inode = |stream: &TcpStream| {
                let link = std::fs::read_link(format!("/proc/self/fd/{}", stream.as_raw_fd())).expect("a socket");
                link.to_string_lossy().trim_matches(|c: char| !c.is_ascii_digit()).parse::<u64>().expect("an inode")
            };
            let found = || {
                let mut found = Vec::new();
                list(|one| {
                    found.extend((one.local_port == port || one.remote_port == port).then_some(one));
                    true
                })
                .expect("the kernel answers");
                found.sort_by_key(|one| one.local_port != port);
                found
            };
            let other = client.local_addr().expect("bound").port();
            let wanted = [
                Established { local_port: port, remote_port: other, inode: inode(&accepted) },
                Established { local_port: other, remote_port: port, inode: inode(&client) },
            ];
            assert_eq!(found(), wanted, "{host}");
            drop((client, accepted));
            assert_eq!(found(), [], "{host}: TIME_WAIT is none");
        }
    }

    #[test]
    fn an_error_of_the_kernel_is_told() {
        let mut message = [0; 20];
        message[..4].copy_from_slice(&20_u32.to_ne_bytes());
        message[4..6].copy_from_slice(&ERROR.to_ne_bytes());
        message[16..].copy_from_slice(&(-2_i32).to_ne_bytes());
        let mut input = &message[..];
        let error = next(&mut input).expect("a message").expect_err("an error");
        assert_eq!((error.kind(), input), (io::ErrorKind::NotFound, &[][..]));
    }

    proptest! {
        #[test]
        fn any_bytes_end(bytes in proptest::collection::vec(any::<u8>(), 0..400), length in 0_u32..200, kind in 0_u16..24) {
            let mut message = [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), &bytes].concat();
            message.truncate(400);
            let mut input = &message[..];
            // A message takes its header at least.
            for _ in 0..=message.len() / HEADER {
                if next(&mut input).is_none() {
                    return Ok(());
                }
            }
            prop_assert!(false, "it does not end");
        }
    }
}
