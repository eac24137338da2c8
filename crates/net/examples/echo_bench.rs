//! Measures what a request costs on each driver: one thread echoes, another sends requests, over loopback. CPU time is
//! counted per thread.
//!
//! `cargo run --release -p weir-net --example echo_bench -- [rounds] [seconds] [connections] [bytes]`
//! The drivers run in alternating slices, so that a change in the machine's speed affects both alike.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weir_net::{Conn, Driver, EpollDriver, Event, Handler, Io, UringDriver};

/// What one thread has done.
#[derive(Debug, Default, Clone, Copy)]
struct Done {
    requests: u64,
    turns: u64,
    cpu: Duration,
}

/// CPU time of the calling thread.
fn thread_cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

struct Echo;

impl Handler for Echo {
    fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, event: Event<'_>) {
        match event {
            Event::Data(bytes) => io.send(conn, bytes),
            Event::Eof => io.close(conn),
            _ => {}
        }
    }
}

struct Client {
    message: Vec<u8>,
    /// Bytes of the response still to come, by slot.
    missing: Vec<usize>,
    requests: u64,
}

impl Handler for Client {
    fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, event: Event<'_>) {
        match event {
            Event::Connected => {
                self.missing.resize(self.missing.len().max(conn.slot() + 1), 0);
                self.missing[conn.slot()] = self.message.len();
                io.send(conn, &self.message);
            }
            Event::Data(bytes) => {
                let missing = &mut self.missing[conn.slot()];
                *missing -= bytes.len();
                if *missing == 0 {
                    *missing = self.message.len();
                    self.requests += 1;
                    io.send(conn, &self.message);
                }
            }
            other => panic!("{other:?}"),
        }
    }
}

fn serve<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>>(
    make: fn() -> io::Result<D>,
    listener: std::net::TcpListener,
    stop: &AtomicBool,
) -> Done {
    let mut driver = make().expect("a driver");
    driver.listen(listener).expect("listening");
    let start = thread_cpu();
    let mut done = Done::default();
    while !stop.load(Ordering::Relaxed) {
        let until = Instant::now() + Duration::from_millis(100);
        driver.poll(&mut Echo, Some(until)).expect("a poll");
        done.turns += 1;
    }
    done.cpu = thread_cpu() - start;
    done
}

fn ask<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>>(
    make: fn() -> io::Result<D>,
    addr: SocketAddr,
    time: Duration,
    connections: usize,
    bytes: usize,
) -> Done {
    let mut driver = make().expect("a driver");
    let mut client = Client { message: vec![b'x'; bytes], missing: Vec::new(), requests: 0 };
    for _ in 0..connections {
        driver.connect(&addr.into(), None).expect("a socket");
    }
    let start = thread_cpu();
    let end = Instant::now() + time;
    let mut turns = 0;
    while Instant::now() < end {
        driver.poll(&mut client, Some(end)).expect("a poll");
        turns += 1;
    }
    Done { requests: client.requests, turns, cpu: thread_cpu() - start }
}

fn slice<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker> + 'static>(
    make: fn() -> io::Result<D>,
    time: Duration,
    connections: usize,
    bytes: usize,
) -> (Done, Done) {
    let addr: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let listener = weir_net::listen_socket(addr, 1024, false).expect("a listener");
    let addr = listener.local_addr().expect("its address");
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let server = std::thread::spawn(move || {
        let _ = weir_net::pin_to_cpu(1);
        serve(make, listener, &stopped)
    });
    let client = std::thread::spawn(move || {
        let _ = weir_net::pin_to_cpu(0);
        ask(make, addr, time, connections, bytes)
    });
    let client = client.join().expect("the client");
    stop.store(true, Ordering::Relaxed);
    (client, server.join().expect("the server"))
}

fn report(name: &str, (client, server): (Done, Done)) -> f64 {
    let requests = client.requests as f64;
    let each = |cpu: Duration| cpu.as_secs_f64() * 1e6 / requests;
    println!(
        "{name:9} {:9} requests, CPU us a request: client {:.3} server {:.3}; requests a turn: {:.1} {:.1}",
        client.requests,
        each(client.cpu),
        each(server.cpu),
        requests / client.turns as f64,
        requests / server.turns as f64,
    );
    each(client.cpu) + each(server.cpu)
}

fn main() {
    let arguments: Vec<usize> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let argument = |number: usize, default| arguments.get(number).copied().unwrap_or(default);
    let only = std::env::args().find(|a| a == "epoll" || a == "uring");
    let wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    let rounds = argument(0, 5);
    let time = Duration::from_secs(argument(1, 2) as u64);
    let (connections, bytes) = (argument(2, 64), argument(3, 128));
    let mut ratios = Vec::new();
    for _ in 0..rounds {
        let mut costs = Vec::new();
        if wanted("uring") {
            costs.push(report("io_uring", slice(UringDriver::new, time, connections, bytes)));
        }
        if wanted("epoll") {
            costs.push(report("epoll", slice(EpollDriver::new, time, connections, bytes)));
        }
        if let [uring, epoll] = costs[..] {
            ratios.push(uring / epoll);
        }
    }
    ratios.sort_by(f64::total_cmp);
    if let Some(median) = ratios.get(ratios.len() / 2) {
        println!("io_uring / epoll, CPU a request, median: {median:.3}");
    }
}
