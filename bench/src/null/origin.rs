//! The origin of the floor: it sends one fixed response for every received chunk that ends a request head.
//!
//! It reads no path, method or header. A request must not have a body, and pipelined requests that arrive in one chunk
//! get one response.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsRawFd;

use io_uring::{opcode, squeue, types};
use rustix::net::sockopt;

use super::{Event, Operation, Turns, receive, send};

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
        let listener = TcpListener::bind(at)?;
        // Connections have it from their listener.
        sockopt::set_tcp_nodelay(&listener, true)?;
        // Again, with a longer queue.
        rustix::net::listen(&listener, 16 * 1024)?;
        Ok(Origin { listener, response: response(size) })
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
        let mut turns = Turns::new(4_096, BUFFERS, BUFFER)?;
        turns.ring.submitter().register_files_sparse(SLOTS)?;
        turns.queue.push(accept(&self.listener));
        let handle = |queue: &mut Vec<squeue::Entry>, event: Event<'_>| {
            match event {
                Event::Received(number, bytes) if bytes.ends_with(b"\r\n\r\n") => {
                    queue.push(send(&self.response, number));
                }
                // The peer closed, or reset.
                Event::Other(Operation::Receive, number, ..) => queue.push(close(number)),
                Event::Other(Operation::Accept, _, slot, more) => {
                    if slot >= 0 {
                        queue.push(receive(slot as u32));
                    }
                    if !more {
                        queue.push(accept(&self.listener));
                    }
                }
                // A send that fails: the receive fails too, and closes.
                _ => {}
            }
            Ok(())
        };
        loop {
            // SAFETY: the response outlives the ring's use of it.
            unsafe { turns.turn(handle) }?;
        }
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

fn close(slot: u32) -> squeue::Entry {
    opcode::Close::new(types::Fixed(slot))
        .build()
        .flags(squeue::Flags::SKIP_SUCCESS)
        .user_data(Operation::Close.token(slot))
}
