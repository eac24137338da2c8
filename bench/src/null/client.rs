//! The client of the floor: a closed loop over N connections that counts bytes.
//!
//! It sends one request, learns the length of the response, and takes every further response to be as long. Its only
//! clock is a timer in the ring that ends the run.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Duration;

use io_uring::{opcode, squeue, types};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use super::{Event, Operation, Turns, drop_bytes, receive, send};

/// A closed load.
#[derive(Debug, Clone)]
pub struct Load {
    /// Where to.
    pub to: SocketAddr,
    /// Path.
    pub path: String,
    /// Connections; at least 1.
    pub connections: u32,
    /// For how long.
    pub duration: Duration,
}

/// The result of a load.
#[derive(Debug, Clone, Copy)]
pub struct Completed {
    /// Whole responses.
    pub requests: u64,
    /// CPU of the whole process, user and system, µs.
    pub cpu_us: f64,
    /// Length of one response, head and body.
    pub response_bytes: usize,
}

/// Runs the load.
///
/// # Errors
/// When the origin cannot be reached, does not say how long its response is, or closes; and when the kernel refuses.
pub fn run(load: &Load) -> io::Result<Completed> {
    let request = format!("GET {} HTTP/1.1\r\nHost: {}\r\n\r\n", load.path, load.to).into_bytes();
    let response_bytes = first_response_bytes(load.to, &request)?;
    let sockets: Vec<TcpStream> = (0..load.connections).map(|_| connect(load.to)).collect::<io::Result<_>>()?;
    let requests = closed_loop(&request, response_bytes, &sockets, load.duration)?;
    Ok(Completed { requests, cpu_us: own_cpu_us()?, response_bytes })
}

fn connect(to: SocketAddr) -> io::Result<TcpStream> {
    let socket = TcpStream::connect(to)?;
    socket.set_nodelay(true)?;
    Ok(socket)
}

/// Sends one request, and returns the length of the whole response.
fn first_response_bytes(to: SocketAddr, request: &[u8]) -> io::Result<usize> {
    let mut socket = connect(to)?;
    socket.set_read_timeout(Some(Duration::from_secs(5)))?;
    socket.write_all(request)?;
    let mut got = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let count = match socket.read(&mut chunk) {
            Ok(0) => return Err(io::Error::other("the origin closed before its response's head had ended")),
            Ok(count) => count,
            // A read with a timeout is not begun again by the kernel after the process was stopped and continued.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        got.extend_from_slice(&chunk[..count]);
        if let Some(end) = got.windows(4).position(|four| four == b"\r\n\r\n") {
            return response_bytes(&got[..end + 4])
                .ok_or_else(|| io::Error::other("the origin's response is no 200 with a Content-Length"));
        }
    }
}

/// Length of the response that begins with this head.
fn response_bytes(head: &[u8]) -> Option<usize> {
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

/// CPU time of this process, µs.
fn own_cpu_us() -> io::Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    Ok((usage.user_time() + usage.system_time()).num_microseconds() as f64)
}

/// Sends the request on every connection again and again; returns the number of whole responses.
fn closed_loop(request: &[u8], response: usize, sockets: &[TcpStream], duration: Duration) -> io::Result<u64> {
    let count = sockets.len() as u32;
    let buffers = count.next_power_of_two().clamp(16, 1024) as u16;
    let mut turns = Turns::new(2 * count + 1, buffers, buffer_size(response))?;
    let fds: Vec<i32> = sockets.iter().map(AsRawFd::as_raw_fd).collect();
    turns.ring.submitter().register_files(&fds)?;
    let time = types::Timespec::from(duration);
    turns.queue.push(opcode::Timeout::new(&raw const time).build().user_data(Operation::Time.token(0)));
    // The larger a response, the more copying it costs, and nobody reads it.
    let dropped = response > LARGEST_COPIED;
    for number in 0..count {
        turns.queue.push(if dropped { drop_bytes(number, response) } else { receive(number) });
        turns.queue.push(send(request, number));
    }
    // Bytes of the current response still to come, by connection.
    let mut left = vec![response; sockets.len()];
    let (mut requests, mut more) = (0, true);
    while more {
        let handle = |queue: &mut Vec<squeue::Entry>, event: Event<'_>| {
            let mut arrived = |queue: &mut Vec<squeue::Entry>, number: u32, bytes: usize| {
                let left = &mut left[number as usize];
                let rest = left.checked_sub(bytes);
                *left = rest.ok_or_else(|| io::Error::other("a response was longer than the first"))?;
                if *left == 0 {
                    *left = response;
                    requests += 1;
                    queue.push(send(request, number));
                }
                if dropped {
                    queue.push(drop_bytes(number, *left));
                }
                io::Result::Ok(())
            };
            match event {
                Event::Received(number, bytes) => arrived(queue, number, bytes.len())?,
                Event::Other(Operation::Receive, number, bytes @ 1.., _) => arrived(queue, number, bytes as usize)?,
                Event::Other(Operation::Time, ..) => more = false,
                Event::Other(Operation::Receive, _, 0, _) => {
                    return Err(io::Error::other("the origin closed a connection"));
                }
                Event::Other(_, _, error, _) => return Err(io::Error::from_raw_os_error(-error)),
            }
            Ok(())
        };
        // SAFETY: the request and the time outlive the ring's use of them.
        unsafe { turns.turn(handle) }?;
    }
    Ok(requests)
}

/// Bytes of the largest response that is copied out of the kernel.
const LARGEST_COPIED: usize = 65_536;

/// Buffers that take a response in few chunks and touch little memory.
fn buffer_size(response: usize) -> usize {
    match response {
        0..=2_048 => 2_048,
        2_049..=16_384 => 16_384,
        _ => 65_536,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::null::origin;

    #[test]
    fn a_response_is_as_long_as_its_head_and_body() {
        let head = b"HTTP/1.1 200 OK\r\nServer: x\r\nCONTENT-length:  128\r\n\r\n";
        assert_eq!(response_bytes(head), Some(head.len() + 128));
        assert_eq!(response_bytes(b"HTTP/1.1 200 OK\r\n\r\n"), None);
        assert_eq!(response_bytes(b"HTTP/1.1 404 No\r\nContent-Length: 1\r\n\r\n"), None);
    }

    #[test]
    fn client_and_origin_understand_each_other() {
        for (connections, size) in [(1, 128), (30, 11_268), (5, 165_854)] {
            let origin = origin::Origin::new("127.0.0.1:0".parse().unwrap(), size).unwrap();
            let to = origin.address();
            // Ends with the test process.
            let serve = move || origin.serve().unwrap();
            std::thread::spawn(serve);
            let load = Load { to, path: "/".to_owned(), connections, duration: Duration::from_millis(200) };
            let done = run(&load).unwrap();
            assert!(done.requests >= u64::from(connections), "{done:?}");
            assert!(done.response_bytes > size && done.response_bytes < size + 200, "{done:?}");
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
        let load = Load { to, path: "/".to_owned(), connections: 1, duration: Duration::from_millis(200) };
        assert!(run(&load).is_err());
    }
}
