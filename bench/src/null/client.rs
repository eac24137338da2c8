//! The client: a closed loop over N connections that counts bytes.
//!
//! It asks once, learns how long the answer is, and takes every further answer to be as long. The only clock is a
//! timer in the ring that ends the run.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Duration;

use io_uring::{IoUring, cqueue, opcode, squeue, types};

use super::buffers::{self, Buffers};
use super::{Kind, ring};

/// What to do.
#[derive(Debug, Clone)]
pub struct Order {
    /// Where to.
    pub to: SocketAddr,
    /// Path.
    pub path: String,
    /// Connections; at least 1.
    pub connections: u32,
    /// For how long.
    pub duration: Duration,
}

/// What happened.
#[derive(Debug, Clone, Copy)]
pub struct Done {
    /// Whole answers.
    pub requests: u64,
    /// CPU of the whole process, user and system, microseconds.
    pub cpu_us: f64,
    /// Length of one answer, head and body.
    pub answer_bytes: usize,
}

/// Runs the load.
///
/// # Errors
/// When the origin cannot be reached, does not say how long its answer is, or closes; and when the kernel refuses.
pub fn run(order: &Order) -> io::Result<Done> {
    let request = format!("GET {} HTTP/1.1\r\nHost: {}\r\n\r\n", order.path, order.to).into_bytes();
    let answer_bytes = probe(order.to, &request)?;
    let sockets: Vec<TcpStream> = (0..order.connections).map(|_| connect(order.to)).collect::<io::Result<_>>()?;
    let requests = Loop::new(&request, answer_bytes, &sockets)?.run(order.duration)?;
    Ok(Done { requests, cpu_us: own_cpu_us(), answer_bytes })
}

fn connect(to: SocketAddr) -> io::Result<TcpStream> {
    let socket = TcpStream::connect(to)?;
    socket.set_nodelay(true)?;
    Ok(socket)
}

/// Asks once; the length of the whole answer.
fn probe(to: SocketAddr, request: &[u8]) -> io::Result<usize> {
    let mut socket = connect(to)?;
    socket.set_read_timeout(Some(Duration::from_secs(5)))?;
    socket.write_all(request)?;
    let mut got = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let count = socket.read(&mut piece)?;
        if count == 0 {
            return Err(io::Error::other("the origin closed before its answer's head had ended"));
        }
        got.extend_from_slice(&piece[..count]);
        if let Some(end) = got.windows(4).position(|four| four == b"\r\n\r\n") {
            return answer_bytes(&got[..end + 4])
                .ok_or_else(|| io::Error::other("the origin's answer is no 200 with a Content-Length"));
        }
    }
}

/// Length of the answer that begins with this head.
fn answer_bytes(head: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(head).ok()?;
    let mut lines = text.split("\r\n");
    if lines.next()?.split(' ').nth(1)? != "200" {
        return None;
    }
    let body: usize = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    })?;
    Some(head.len() + body)
}

fn own_cpu_us() -> f64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel fills the structure; zeroed it is valid too.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    let us = |time: libc::timeval| time.tv_sec as f64 * 1e6 + time.tv_usec as f64;
    us(usage.ru_utime) + us(usage.ru_stime)
}

struct Loop<'a> {
    // Before the buffers: the kernel lets go of them first.
    ring: IoUring,
    buffers: Buffers,
    request: &'a [u8],
    answer: usize,
    /// Bytes of the present answer still to come, by connection.
    left: Vec<usize>,
    /// Operations for the next turn, reused.
    queue: Vec<squeue::Entry>,
}

impl<'a> Loop<'a> {
    fn new(request: &'a [u8], answer: usize, sockets: &[TcpStream]) -> io::Result<Loop<'a>> {
        let count = sockets.len() as u32;
        let ring = ring::make(2 * count + 1)?;
        let fds: Vec<i32> = sockets.iter().map(AsRawFd::as_raw_fd).collect();
        ring.submitter().register_files(&fds)?;
        let buffers = Buffers::new(&ring, count.next_power_of_two().clamp(16, 1024) as u16, buffer_size(answer))?;
        Ok(Loop { ring, buffers, request, answer, left: vec![answer; sockets.len()], queue: Vec::new() })
    }

    fn run(&mut self, duration: Duration) -> io::Result<u64> {
        let time = types::Timespec::from(duration);
        self.queue.push(opcode::Timeout::new(&raw const time).build().user_data(Kind::Time.token(0)));
        for number in 0..self.left.len() as u32 {
            self.queue.push(receive(number));
            self.queue.push(send(self.request, number));
        }
        let mut requests = 0;
        let mut more = true;
        while more {
            for entry in self.queue.drain(..) {
                // SAFETY: the request, the buffers and the time outlive the ring's use of them.
                unsafe { ring::push(&mut self.ring, &entry) }?;
            }
            match self.ring.submit_and_wait(1) {
                Err(error) if !matches!(error.raw_os_error(), Some(libc::EINTR | libc::EBUSY)) => return Err(error),
                _ => {}
            }
            more = self.take(&mut requests)?;
        }
        Ok(requests)
    }

    /// Takes all completions; false when time is up.
    fn take(&mut self, requests: &mut u64) -> io::Result<bool> {
        let mut more = true;
        for done in self.ring.completion() {
            let (kind, number) = Kind::of(done.user_data());
            match (kind, done.result()) {
                (Kind::Receive, count @ 1..) => {
                    if let Some(buffer) = cqueue::buffer_select(done.flags()) {
                        self.buffers.give(buffer);
                    }
                    let left = &mut self.left[number as usize];
                    *left = left
                        .checked_sub(count as usize)
                        .ok_or_else(|| io::Error::other("an answer was longer than the first"))?;
                    if *left == 0 {
                        *left = self.answer;
                        *requests += 1;
                        self.queue.push(send(self.request, number));
                    }
                    if !cqueue::more(done.flags()) {
                        self.queue.push(receive(number));
                    }
                }
                (Kind::Receive, error) if error == -libc::ENOBUFS => self.queue.push(receive(number)),
                (Kind::Receive, 0) => return Err(io::Error::other("the origin closed a connection")),
                (Kind::Time, _) => more = false,
                (_, error) => return Err(io::Error::from_raw_os_error(-error)),
            }
        }
        self.buffers.publish();
        Ok(more)
    }
}

/// Buffers that take an answer in few pieces and touch little memory.
fn buffer_size(answer: usize) -> usize {
    match answer {
        0..=2_048 => 2_048,
        2_049..=16_384 => 16_384,
        _ => 65_536,
    }
}

fn receive(number: u32) -> squeue::Entry {
    opcode::RecvMulti::new(types::Fixed(number), buffers::GROUP).build().user_data(Kind::Receive.token(number))
}

fn send(request: &[u8], number: u32) -> squeue::Entry {
    opcode::Send::new(types::Fixed(number), request.as_ptr(), request.len() as u32)
        .flags(libc::MSG_NOSIGNAL)
        .build()
        .flags(squeue::Flags::SKIP_SUCCESS)
        .user_data(Kind::Send.token(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::null::origin;

    #[test]
    fn an_answer_is_as_long_as_its_head_and_body() {
        let head = b"HTTP/1.1 200 OK\r\nServer: x\r\nCONTENT-length:  128\r\n\r\n";
        assert_eq!(answer_bytes(head), Some(head.len() + 128));
        assert_eq!(answer_bytes(b"HTTP/1.1 200 OK\r\n\r\n"), None);
        assert_eq!(answer_bytes(b"HTTP/1.1 404 No\r\nContent-Length: 1\r\n\r\n"), None);
    }

    #[test]
    fn client_and_origin_understand_each_other() {
        for (connections, size) in [(1, 128), (30, 11_268), (5, 165_854)] {
            let origin = origin::Origin::new("127.0.0.1:0".parse().unwrap(), size).unwrap();
            let to = origin.address();
            // Ends with the test process.
            let make = move || origin.serve().unwrap();
            std::thread::spawn(make);
            let order = Order { to, path: "/".to_owned(), connections, duration: Duration::from_millis(200) };
            let done = run(&order).unwrap();
            assert!(done.requests >= u64::from(connections), "{done:?}");
            assert!(done.answer_bytes > size && done.answer_bytes < size + 200, "{done:?}");
        }
    }

    #[test]
    fn an_origin_that_closes_is_an_error() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let to = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                drop(socket);
            }
        });
        let order = Order { to, path: "/".to_owned(), connections: 1, duration: Duration::from_millis(200) };
        assert!(run(&order).is_err());
    }
}
