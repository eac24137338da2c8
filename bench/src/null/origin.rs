//! The origin of the floor: it sends one fixed response for every received chunk that ends a request head. Called by
//! the program `null`.
//!
//! It reads no path, method or header. A request must not have a body, and pipelined requests that arrive in one chunk
//! get one response.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsRawFd;

use io_uring::{IoUring, cqueue, opcode, squeue, types};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with, sockopt};

use super::Operation;
use super::buffers::{self, Buffers};

/// Connections at most: slots in the ring's table of sockets.
const SLOTS: u32 = 16 * 1024;

/// Requests are short; one takes one buffer.
const BUFFER: usize = 2_048;
const BUFFERS: u16 = 1_024;

/// An origin that listens.
#[derive(Debug)]
pub struct Origin {
    listener: TcpListener,
    response: Vec<u8>,
}

impl Origin {
    /// Listens on `at` (port 0: a free one); responses will have `size` bytes of body.
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
        Ok(Origin { listener: TcpListener::from(socket), response: response(size) })
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
        let ring = super::new_ring(4_096)?;
        ring.submitter().register_files_sparse(SLOTS)?;
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
            // SAFETY: the response and the buffers outlive the ring's use of them.
            unsafe { super::submit(&mut self.ring, &mut self.queue) }?;
            self.handle()?;
        }
    }

    fn handle(&mut self) -> io::Result<()> {
        for completion in self.ring.completion() {
            let (operation, number) = Operation::of(completion.user_data());
            let more = cqueue::more(completion.flags());
            match (operation, completion.result()) {
                (Operation::Receive, count @ 1..) => {
                    if let Some(buffer) = cqueue::buffer_select(completion.flags()) {
                        if self.buffers.ends_head(buffer, count as usize) {
                            self.queue.push(send(&self.origin.response, number));
                        }
                        self.buffers.give_back(buffer);
                    }
                    if !more {
                        self.queue.push(receive(number));
                    }
                }
                (Operation::Receive, error) if error == -libc::ENOBUFS => self.queue.push(receive(number)),
                // The peer closed, or reset.
                (Operation::Receive, _) => self.queue.push(close(number)),
                (Operation::Accept, slot) => {
                    if slot >= 0 {
                        self.queue.push(receive(slot as u32));
                    }
                    if !more {
                        self.queue.push(accept(&self.origin.listener));
                    }
                }
                // A send that fails: the receive fails too, and closes.
                _ => {}
            }
        }
        self.buffers.publish();
        Ok(())
    }
}

/// Head lines as weir's origin sends them, so that as many bytes go over the wire.
fn response(size: usize) -> Vec<u8> {
    let mut response =
        format!("HTTP/1.1 200 OK\r\nServer: null-origin\r\nContent-Type: application/octet-stream\r\nContent-Length: {size}\r\n\r\n")
            .into_bytes();
    response.resize(response.len() + size, b'x');
    response
}

fn accept(listener: &TcpListener) -> squeue::Entry {
    opcode::AcceptMulti::new(types::Fd(listener.as_raw_fd()))
        .allocate_file_index(true)
        .build()
        .user_data(Operation::Accept.token(0))
}

fn receive(slot: u32) -> squeue::Entry {
    opcode::RecvMulti::new(types::Fixed(slot), buffers::GROUP).build().user_data(Operation::Receive.token(slot))
}

fn send(response: &[u8], slot: u32) -> squeue::Entry {
    opcode::Send::new(types::Fixed(slot), response.as_ptr(), response.len() as u32)
        .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL)
        .build()
        .flags(squeue::Flags::SKIP_SUCCESS)
        .user_data(Operation::Send.token(slot))
}

fn close(slot: u32) -> squeue::Entry {
    opcode::Close::new(types::Fixed(slot))
        .build()
        .flags(squeue::Flags::SKIP_SUCCESS)
        .user_data(Operation::Close.token(slot))
}
