//! Opens far more connections than there are descriptors: two processes with several rings each echo over loopback.
//!
//! `cargo run --release -p weir-net --example many -- [connections] [rings]`
//! It prints how long the set-up takes, how much memory the kernel and the processes use, and how long one echo on
//! every connection takes.

use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use weir_net::{Conn, DescriptorKind, Driver, DriverKind, Event, Handler, Io, UringDriver, capacity, listen_socket};

/// Connections of one ring that are being established at a time.
const AT_ONCE: usize = 256;

/// Connections from one source address. The kernel tries every second port first, and checks all of those again for
/// each further connection: with 28,232 ports, the 14,117th connection takes a millisecond.
const A_SOURCE: usize = 10_000;

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
    to: SocketAddr,
    /// This ring's number, from which its source addresses follow.
    ring: usize,
    left: usize,
    conns: Vec<Conn>,
    echoed: usize,
}

impl Client {
    fn connect<I: Io>(&mut self, io: &mut I) {
        if self.left > 0 {
            self.left -= 1;
            let [.., third, fourth] = ((self.ring << 6) + self.left / A_SOURCE + 1).to_be_bytes();
            let from = IpAddr::V4(Ipv4Addr::new(127, 1, third, fourth));
            io.connect(&self.to.into(), Some(from)).expect("a socket");
        }
    }
}

impl Handler for Client {
    fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, event: Event<'_>) {
        match event {
            Event::Connected => {
                self.conns.push(conn);
                self.connect(io);
            }
            Event::Data(_) => self.echoed += 1,
            other => panic!("{other:?}"),
        }
    }
}

fn driver() -> UringDriver {
    UringDriver::with_descriptors(DescriptorKind::Direct).expect("a driver")
}

fn poll(driver: &mut UringDriver, handler: &mut impl Handler) {
    driver.poll(handler, Some(driver.now() + 100_000_000)).expect("a poll");
}

/// Prints its address, and serves until its input ends.
fn serve(rings: usize) {
    let mut addr: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let mut threads = Vec::new();
    let stop = Arc::new(AtomicUsize::new(0));
    let open = Arc::new(AtomicUsize::new(0));
    for _ in 0..rings {
        let listener = listen_socket(addr, 4096, true).expect("a listener");
        addr = listener.local_addr().expect("its address");
        let (stop, open) = (Arc::clone(&stop), Arc::clone(&open));
        threads.push(std::thread::spawn(move || {
            let mut driver = driver();
            driver.listen(listener).expect("listening");
            let mut had = 0;
            while stop.load(Ordering::Relaxed) == 0 {
                poll(&mut driver, &mut Echo);
                let has = driver.open();
                open.fetch_add(has.wrapping_sub(had), Ordering::Relaxed);
                had = has;
            }
        }));
    }
    println!("{addr}");
    // Each line asks for the numbers.
    for _ in std::io::stdin().lock().lines() {
        println!("{} {}", open.load(Ordering::Relaxed), resident());
    }
    stop.store(1, Ordering::Relaxed);
    for thread in threads {
        thread.join().expect("a worker");
    }
}

/// Kilobytes in a file of lines `name: kB`.
fn kilobytes(path: &str, name: &str) -> i64 {
    let text = std::fs::read_to_string(path).expect("a file of the kernel's");
    let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("a line of it");
    line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().expect("a number")
}

fn resident() -> i64 {
    kilobytes("/proc/self/status", "VmRSS")
}

fn ask(to: SocketAddr, ring: usize, share: usize, step: &Barrier) {
    let mut driver = driver();
    let mut client = Client { to, ring, left: share, conns: Vec::new(), echoed: 0 };
    step.wait();
    for _ in 0..AT_ONCE {
        client.connect(&mut driver);
    }
    while client.conns.len() < share {
        poll(&mut driver, &mut client);
    }
    step.wait();
    // The main thread reads the memory numbers.
    step.wait();
    for number in 0..share {
        driver.send(client.conns[number], b"ping");
        if number % AT_ONCE == 0 {
            poll(&mut driver, &mut client);
        }
    }
    while client.echoed < share {
        poll(&mut driver, &mut client);
    }
    step.wait();
    for (number, &conn) in client.conns.iter().enumerate() {
        if number % 2 == 0 { driver.close(conn) } else { driver.abort(conn) }
    }
    while driver.open() > 0 {
        poll(&mut driver, &mut client);
    }
    step.wait();
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default| arguments.get(at).map_or(default, |text| text.parse().expect("a number"));
    if arguments.first().is_some_and(|first| first == "server") {
        capacity(DriverKind::Uring);
        return serve(number(1, 1));
    }
    let capacity = capacity(DriverKind::Uring);
    println!("{capacity:?}");
    let connections: usize = number(0, 200_000);
    let plan = capacity.plan(connections).expect("a kernel that can hold sockets in a ring's table");
    let rings = number(1, plan.drivers);
    println!("{plan:?}: {rings} rings a side");

    let mut server = Command::new(std::env::current_exe().expect("this program"))
        .args(["server", &rings.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a server");
    let mut question = server.stdin.take().expect("its input");
    let mut answers = BufReader::new(server.stdout.take().expect("its output")).lines();
    let mut answer = || answers.next().expect("a line").expect("a line");
    let addr: SocketAddr = answer().parse().expect("an address");
    let mut ask_server = || {
        std::io::Write::write_all(&mut question, b"\n").expect("a question");
        answer()
    };

    let step = Arc::new(Barrier::new(rings + 1));
    let threads: Vec<_> = (0..rings)
        .map(|ring| {
            let step = Arc::clone(&step);
            let share = connections / rings + usize::from(ring < connections % rings);
            std::thread::spawn(move || ask(addr, ring, share, &step))
        })
        .collect();
    std::thread::sleep(Duration::from_millis(200));
    let memory = |name| kilobytes("/proc/meminfo", name);
    let (slab, available, rss) = (memory("Slab"), memory("MemAvailable"), resident());
    let per = |kb: i64| kb as f64 * 1024.0 / connections as f64;
    println!("server before: {} (open, kB resident)", ask_server());
    step.wait();
    let begun = Instant::now();
    step.wait();
    println!("{connections} connections in {:.2} s", begun.elapsed().as_secs_f64());
    std::thread::sleep(Duration::from_secs(1));
    println!(
        "kernel: slab {:.0} B, all {:.0} B a connection (both ends)",
        per(memory("Slab") - slab),
        per(available - memory("MemAvailable"))
    );
    println!("client: {} kB resident, {:.0} B a connection more than before", resident(), per(resident() - rss));
    println!("server after: {} (open, kB resident)", ask_server());
    let begun = Instant::now();
    step.wait();
    step.wait();
    println!("an echo on every one in {:.2} s", begun.elapsed().as_secs_f64());
    println!("server after echo: {} client {}", ask_server(), resident());
    let begun = Instant::now();
    step.wait();
    println!("closed and aborted, half each, in {:.2} s", begun.elapsed().as_secs_f64());
    for thread in threads {
        thread.join().expect("a worker");
    }
    std::thread::sleep(Duration::from_millis(500));
    println!("server at the end: {} (open, kB resident)", ask_server());
    drop(question);
    server.wait().expect("the server's end");
}
