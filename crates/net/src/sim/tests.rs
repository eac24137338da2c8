//! The world by itself: time, order and what a link does. The cases of `tests/it` show that it behaves as the kernel's drivers do.

use super::*;
use crate::{Conn, Driver, Event as DriverEvent, Handler, Io};

/// When how much came.
type Times = Arc<Mutex<Vec<(u64, usize)>>>;

/// Sends back what comes, and notes when.
#[derive(Default)]
struct Echo {
    times: Times,
}

impl Handler for Echo {
    fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, event: DriverEvent<'_>) {
        match event {
            DriverEvent::Data(bytes) => {
                self.times.lock().unwrap().push((io.now(), bytes.len()));
                io.send(conn, bytes);
            }
            DriverEvent::Eof => io.close(conn),
            _ => {}
        }
    }
}

impl Task<SimDriver> for Echo {
    fn turn(&mut self, _: &mut SimDriver) -> std::io::Result<Next> {
        Ok(Next::Poll(None))
    }

    fn poll(&mut self, driver: &mut SimDriver, until: Option<u64>) -> std::io::Result<()> {
        driver.poll(self, until)
    }
}

/// Counts what comes.
#[derive(Default)]
struct Count {
    bytes: usize,
    events: usize,
    failed: Vec<(u64, String)>,
}

impl Handler for Count {
    fn on_event<I: Io>(&mut self, io: &mut I, _: Conn, event: DriverEvent<'_>) {
        self.events += 1;
        match event {
            DriverEvent::Data(bytes) => self.bytes += bytes.len(),
            DriverEvent::Failed { error, .. } => self.failed.push((io.now(), error.to_string())),
            _ => {}
        }
    }
}

impl Count {
    fn wait_while(&mut self, client: &mut SimDriver, waits: impl Fn(&Count) -> bool) {
        while waits(self) {
            client.poll(self, None).unwrap();
        }
    }
}

/// A world with an echo server, its address, its task, and the times at which it received.
fn echo_world(seed: u64) -> (World, Address, usize, Times) {
    let world = World::new(seed);
    let mut driver = world.driver("server");
    let listener = world.listen(Address::Tcp("127.0.0.1:0".parse().unwrap()), 16, false).unwrap();
    let address = listener.address().clone();
    driver.listen(listener).unwrap();
    let echo = Echo::default();
    let times = echo.times.clone();
    let task = world.add_task(driver, Box::new(echo));
    (world, address, task, times)
}

/// Sends 10,000 bytes and waits until they are back. Returns when that was, and the world's hash.
fn round_trip(seed: u64, link: Link) -> (u64, u64) {
    let (world, address, _, _) = echo_world(seed);
    world.set_default_link(link);
    let mut client = world.driver("client");
    let mut count = Count::default();
    let conn = client.connect(&address, None).unwrap();
    client.send(conn, &[7; 10_000]);
    count.wait_while(&mut client, |count| count.bytes < 10_000);
    (world.now(), world.trace_hash())
}

#[test]
fn a_round_trip_takes_the_links_time_to_the_nanosecond() {
    assert_eq!(round_trip(1, Link::default()).0, 0);
    // A handshake and a round trip.
    assert_eq!(round_trip(1, Link { latency: 250, ..Link::default() }).0, 4 * 250);
    // 10,000 bytes at 1 GB/s take 10 us each way.
    assert_eq!(round_trip(1, Link { bandwidth: 1_000_000_000, ..Link::default() }).0, 20_000);
}

#[test]
fn the_same_seed_gives_the_same_trace_and_another_gives_another() {
    let link = Link { latency: 1_000, jitter: 500, split: Split::Random, ..Link::default() };
    assert_eq!(round_trip(7, link), round_trip(7, link));
    assert_ne!(round_trip(7, link).1, round_trip(8, link).1);
}

#[test]
fn a_link_that_is_down_delays_bytes_and_repeats_attempts_to_connect() {
    let (world, address, _, times) = echo_world(1);
    let mut client = world.driver("client");
    let mut count = Count::default();
    let down = Link { down: true, ..Link::default() };
    let server = 0;
    world.set_link(client.node(), server, down);
    let conn = client.connect(&address, None).unwrap();
    client.send(conn, b"first");
    world.at(2_500_000_000, move |world| world.set_link(1, 0, Link::default()));
    count.wait_while(&mut client, |count| count.bytes < 5);
    // The attempts are at 0, 1 and 3 s.
    assert_eq!(times.lock().unwrap().as_slice(), [(3_000_000_000, 5)]);
    world.set_link(client.node(), server, down);
    client.send(conn, b"second");
    world.at(9_000_000_000, move |world| world.set_link(1, 0, Link { latency: 10, ..Link::default() }));
    count.wait_while(&mut client, |count| count.bytes < 11);
    assert_eq!(times.lock().unwrap()[1], (9_000_000_010, 6));
    world.set_link(client.node(), server, down);
    client.connect(&address, None).unwrap();
    count.wait_while(&mut client, |count| count.failed.is_empty());
    // 1 + 2 + 4 + .. + 64 s, as with tcp_syn_retries of 6.
    assert_eq!(count.failed, [(9_000_000_010 + 127_000_000_000, "Connection timed out (os error 110)".into())]);
}

#[test]
fn a_frozen_task_goes_on_when_it_thaws_and_a_killed_one_is_gone() {
    let (world, address, task, times) = echo_world(1);
    let mut client = world.driver("client");
    let mut count = Count::default();
    let conn = client.connect(&address, None).unwrap();
    client.poll(&mut count, Some(0)).unwrap();
    world.freeze(task, 1_000_000);
    client.send(conn, b"waits");
    count.wait_while(&mut client, |count| count.bytes < 5);
    assert_eq!((times.lock().unwrap().as_slice(), world.now()), ([(1_000_000, 5)].as_slice(), 1_000_000));
    world.kill(task);
    assert!(world.is_over(task) && !world.is_listening(&address));
    client.connect(&address, None).unwrap();
    count.wait_while(&mut client, |count| count.failed.is_empty());
    assert_eq!(count.failed, [(1_000_000, "Connection refused (os error 111)".into())]);
}

/// Closes its connection, and is over when that has gone. It listens nowhere.
struct Last(Option<Conn>);

impl Handler for Last {
    fn on_event<I: Io>(&mut self, _: &mut I, _: Conn, _: DriverEvent<'_>) {}
}

impl Task<SimDriver> for Last {
    fn turn(&mut self, driver: &mut SimDriver) -> std::io::Result<Next> {
        self.0.take().into_iter().for_each(|conn| driver.close(conn));
        Ok(if driver.open() > 0 { Next::Poll(Some(5_000_000_000)) } else { Next::Over })
    }

    fn poll(&mut self, driver: &mut SimDriver, until: Option<u64>) -> std::io::Result<()> {
        driver.poll(self, until)
    }
}

#[test]
fn a_task_that_has_lost_its_last_connection_does_not_wait() {
    let (world, address, _, _) = echo_world(1);
    let mut client = world.driver("client");
    let conn = client.connect(&address, None).unwrap();
    client.poll(&mut Count::default(), None).unwrap();
    let task = world.add_task(client, Box::new(Last(Some(conn))));
    assert!(world.run_until(10_000_000_000, || world.is_over(task)));
    assert_eq!(world.now(), 0);
}

#[test]
fn a_wait_ends_on_time_in_the_clock_of_its_machine() {
    let world = World::new(1);
    let mut driver = world.driver_with("late", NodeOptions { clock_offset: 5_000, ..NodeOptions::default() });
    driver.poll(&mut Count::default(), Some(6_000)).unwrap();
    assert_eq!((world.now(), driver.now()), (1_000, 6_000));
    let unix = driver.unix_now();
    world.step_wall_clock(-1_000_000_000);
    assert_eq!(unix - driver.unix_now(), 1_000_000_000);
}

#[test]
fn descriptors_and_queues_run_full() {
    let world = World::new(1);
    let mut server = world.driver_with("server", NodeOptions { descriptors: 1, ..NodeOptions::default() });
    let listener = world.listen(Address::Tcp("127.0.0.1:0".parse().unwrap()), 0, false).unwrap();
    let address = listener.address().clone();
    server.listen(listener).unwrap();
    let mut client = world.driver_with("client", NodeOptions { descriptors: 3, ..NodeOptions::default() });
    let mut count = Count::default();
    for _ in 0..3 {
        client.connect(&address, None).unwrap();
    }
    assert_eq!(client.connect(&address, None).unwrap_err().raw_os_error(), Some(libc::EMFILE));
    server.poll(&mut count, Some(1_000)).unwrap();
    // One came before the others, and is accepted. They try again after a second, and one of them waits in the queue.
    assert_eq!((count.events, server.open()), (1, 1));
    let mut connected = Count::default();
    while world.now() < 2_000_000_000 {
        client.poll(&mut connected, Some(2_000_000_000)).unwrap();
    }
    assert_eq!(connected.events, 2);
}

#[test]
fn ports_to_one_destination_run_short() {
    let world = World::new(1);
    let listen = || world.listen(Address::Tcp("127.0.0.1:0".parse().unwrap()), 16, false).unwrap();
    let (one, other) = (listen(), listen());
    let mut client = world.driver_with("client", NodeOptions { ports: 2, ..NodeOptions::default() });
    let mut count = Count::default();
    let conns = [(); 3].map(|()| client.connect(one.address(), None).unwrap());
    client.connect(other.address(), None).unwrap();
    client.connect(one.address(), Some("127.0.0.2".parse().unwrap())).unwrap();
    count.wait_while(&mut client, |count| count.events < 5);
    assert_eq!(count.failed, [(0, "Cannot assign requested address (os error 99)".into())]);
    assert_eq!(client.peer_address(conns[0]), one.address().tcp());
    // A port is free again when its connection is closed.
    client.close(conns[1]);
    client.flush();
    client.connect(one.address(), None).unwrap();
    client.poll(&mut count, Some(1)).unwrap();
    assert_eq!((count.failed.len(), count.events), (1, 6));
}

/// What comes of 1,000 datagrams on a link: their numbers, in the order in which they came.
fn datagrams_over(link: Link, seed: u64) -> (Vec<u16>, u64) {
    #[derive(Default)]
    struct Numbers(Vec<u16>);

    impl Handler for Numbers {
        fn on_event<I: Io>(&mut self, _: &mut I, _: Conn, event: DriverEvent<'_>) {
            if let DriverEvent::Datagrams(train) = event {
                self.0.extend(train.each().map(|one| u16::from_le_bytes([one[0], one[1]])));
            }
        }
    }

    let world = World::new(seed);
    world.set_default_link(link);
    let socket = world.listen_datagrams("127.0.0.1:7".parse().unwrap(), false).unwrap();
    let to = socket.address().tcp().unwrap();
    let (mut server, mut client) = (world.driver("server"), world.driver("client"));
    server.listen(socket).unwrap();
    let conn = client.connect_datagrams(to, None).unwrap();
    let mut numbers = Numbers::default();
    for number in 0..1_000u16 {
        let mut one = [0; 100];
        one[..2].copy_from_slice(&number.to_le_bytes());
        client.send_datagrams(conn, None, &one, 100);
        server.poll(&mut numbers, Some(world.now() + 10_000)).unwrap();
    }
    while world.now() < 1_000_000_000 {
        server.poll(&mut numbers, Some(1_000_000_000)).unwrap();
    }
    (numbers.0, world.trace_hash())
}

#[test]
fn datagrams_are_lost_doubled_and_overtaken_as_the_link_says() {
    let link = Link { latency: 20_000, ..Link::default() };
    let all: Vec<u16> = (0..1_000).collect();
    assert_eq!(datagrams_over(link, 1).0, all);
    let (lossy, trace) = datagrams_over(Link { loss: 30_000, ..link }, 1);
    assert!((950..990).contains(&lossy.len()) && lossy.is_sorted(), "{}", lossy.len());
    assert_eq!(datagrams_over(Link { loss: 30_000, ..link }, 1), (lossy.clone(), trace), "the same seed");
    assert_ne!(datagrams_over(Link { loss: 30_000, ..link }, 2).0, lossy, "another seed");
    let doubled = datagrams_over(Link { duplicates: 100_000, ..link }, 1).0;
    assert!((1_070..1_130).contains(&doubled.len()), "{}", doubled.len());
    let overtaken = datagrams_over(Link { jitter: 100_000, ..link }, 1).0;
    assert!(overtaken.len() == 1_000 && !overtaken.is_sorted());
    assert!(datagrams_over(Link { mtu: 99, ..link }, 1).0.is_empty());
    assert!(datagrams_over(Link { down: true, ..link }, 1).0.is_empty());
}
