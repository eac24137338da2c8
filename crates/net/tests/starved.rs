//! Without descriptors, accepting pauses without spinning and resumes by itself. This test is alone in its process,
//! because it takes all descriptors of the process.

use std::fs::File;
use std::io;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use weir_net::{Conn, Driver, EpollDriver, Event, Handler, Io, UringDriver, listen_socket};

#[derive(Default)]
struct Count {
    accepted: usize,
}

impl Handler for Count {
    fn on_event<I: Io>(&mut self, _io: &mut I, _conn: Conn, event: Event<'_>) {
        self.accepted += usize::from(matches!(event, Event::Accepted(_)));
    }
}

/// Opens files until no more can be opened.
fn take_all_descriptors() -> Vec<File> {
    let mut all = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        all.push(file);
    }
    all
}

fn accepting_pauses_and_goes_on<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>>(
    make: fn() -> io::Result<D>,
) {
    let listener = listen_socket("127.0.0.1:0".parse().unwrap(), 64, false).unwrap();
    let addr = listener.local_addr().unwrap();
    let mut driver = make().unwrap();
    driver.listen(listener).unwrap();
    let mut count = Count::default();

    let mut all = take_all_descriptors();
    all.pop();
    let _peer = TcpStream::connect(addr).unwrap();
    // The peer has the last descriptor.
    let mut turns = 0;
    let end = Instant::now() + Duration::from_millis(300);
    while Instant::now() < end {
        driver.poll(&mut count, Some(end)).unwrap();
        turns += 1;
    }
    assert_eq!(count.accepted, 0);
    assert!(turns < 300, "{} spins: {turns} turns", driver.name());

    drop(all);
    let end = Instant::now() + Duration::from_secs(60);
    while count.accepted == 0 {
        assert!(Instant::now() < end, "{} accepts no more", driver.name());
        driver.poll(&mut count, Some(end)).unwrap();
    }
    // No other connection is kept waiting.
    let _more = TcpStream::connect(addr).unwrap();
    while count.accepted == 1 {
        assert!(Instant::now() < end, "{} accepts no more", driver.name());
        driver.poll(&mut count, Some(end)).unwrap();
    }
}

#[test]
fn accepting_pauses_without_descriptors_and_goes_on_with_them() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = Rlimit { current: Some(100), maximum: getrlimit(Resource::Nofile).maximum };
    setrlimit(Resource::Nofile, limit).unwrap();
    accepting_pauses_and_goes_on(EpollDriver::new);
    accepting_pauses_and_goes_on(UringDriver::new);
}
