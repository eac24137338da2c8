//! The origin: one fixed answer to every piece of bytes that ends a head.
//!
//! It reads no path, no method and no header. A request must not have a body, and pipelined requests that come in
//! one piece get one answer.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsRawFd;

use io_uring::{IoUring, cqueue, opcode, squeue, types};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with, sockopt};

use super::buffers::{self, Buffers};
use super::{Kind, ring};

/// Connections at most: places in the ring's table of sockets.
const PLACES: u32 = 16 * 1024;

/// Requests are short; one takes one buffer.
const BUFFER: usize = 2_048;
const BUFFERS: u16 = 1_024;

/// An origin that listens.
#[derive(Debug)]
pub struct Origin {
    listener: TcpListener,
    answer: Vec<u8>,
}

impl Origin {
    /// Listens on `at` (port 0: a free one); answers will have `size` bytes of body.
    ///
    /// # Errors
    /// When the address cannot be had.
    pub fn new(at: SocketAddr, size: usize) -> io::Result<Origin> {
        let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        // Connections have it from their listener.
        sockopt::set_tcp_nodelay(&socket, true)?;
        bind(&socket, &at)?;
        listen(&socket, 16 * 1024)?;
        Ok(Origin { listener: TcpListener::from(socket), answer: answer(size) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.listener.local_addr().expect("a listening socket has an address")
    }

    /// Serves until the process ends.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn serve(&self) -> io::Result<()> {
        let ring = ring::make(4_096)?;
        ring.submitter().register_files_sparse(PLACES)?;
        let buffers = Buffers::new(&ring, BUFFERS, BUFFER)?;
        Serving { ring, buffers, origin: self, queue: Vec::new() }.run()
    }
}

struct Serving<'a> {
    // Before the buffers: the kernel lets go of them first.
    ring: IoUring,
    buffers: Buffers,
    origin: &'a Origin,
    /// Operations for the next turn, reused.
    queue: Vec<squeue::Entry>,
}

impl Serving<'_> {
    fn run(&mut self) -> io::Result<()> {
        self.queue.push(accept(&self.origin.listener));
        loop {
            for entry in self.queue.drain(..) {
                // SAFETY: the answer and the buffers outlive the ring's use of them.
                unsafe { ring::push(&mut self.ring, &entry) }?;
            }
            match self.ring.submit_and_wait(1) {
                Err(error) if !matches!(error.raw_os_error(), Some(libc::EINTR | libc::EBUSY)) => return Err(error),
                _ => {}
            }
            self.take()?;
        }
    }

    fn take(&mut self) -> io::Result<()> {
        for done in self.ring.completion() {
            let (kind, number) = Kind::of(done.user_data());
            let more = cqueue::more(done.flags());
            match (kind, done.result()) {
                (Kind::Receive, count @ 1..) => {
                    if let Some(buffer) = cqueue::buffer_select(done.flags()) {
                        if self.buffers.ends_head(buffer, count as usize) {
                            self.queue.push(send(&self.origin.answer, number));
                        }
                        self.buffers.give(buffer);
                    }
                    if !more {
                        self.queue.push(receive(number));
                    }
                }
                (Kind::Receive, error) if error == -libc::ENOBUFS => self.queue.push(receive(number)),
                // The peer closed, or reset.
                (Kind::Receive, _) => self.queue.push(close(number)),
                (Kind::Accept, place) => {
                    if place >= 0 {
                        self.queue.push(receive(place as u32));
                    }
                    if !more {
                        self.queue.push(accept(&self.origin.listener));
                    }
                }
                // A send that fails: the receive tells too, and closes.
                _ => {}
            }
        }
        self.buffers.publish();
        Ok(())
    }
}

/// Head lines as weir's origin sends them, so that as many bytes go over the wire.
fn answer(size: usize) -> Vec<u8> {
    let mut answer =
        format!("HTTP/1.1 200 OK\r\nServer: null-origin\r\nContent-Type: application/octet-stream\r\nContent-Length: {size}\r\n\r\n")
            .into_bytes();
    answer.resize(answer.len() + size, b'x');
    answer
}

fn accept(listener: &TcpListener) -> squeue::Entry {
    opcode::AcceptMulti::new(types::Fd(listener.as_raw_fd()))
        .allocate_file_index(true)
        .build()
        .user_data(Kind::Accept.token(0))
}

fn receive(place: u32) -> squeue::Entry {
    opcode::RecvMulti::new(types::Fixed(place), buffers::GROUP).build().user_data(Kind::Receive.token(place))
}

fn send(answer: &[u8], place: u32) -> squeue::Entry {
    opcode::Send::new(types::Fixed(place), answer.as_ptr(), answer.len() as u32)
        .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL)
        .build()
        .flags(squeue::Flags::SKIP_SUCCESS)
        .user_data(Kind::Send.token(place))
}

fn close(place: u32) -> squeue::Entry {
    opcode::Close::new(types::Fixed(place))
        .build()
        .flags(squeue::Flags::SKIP_SUCCESS)
        .user_data(Kind::Close.token(place))
}
