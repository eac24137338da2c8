//! Unix stream sockets behave as TCP does, at a path.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use weir_net::{Address, Driver, UnixError, listen_unix};

use crate::common::{BODY, Echo, LONG, Record, Seen, poll, run_out, run_until};

/// A path of its own for each test, removed with what is there.
struct Place(PathBuf);

impl Place {
    fn new() -> Place {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Place(std::env::temp_dir().join(format!("weir-net-{}-{number}.sock", std::process::id())))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

pub fn both_ends_of_a_unix_socket_are_drivers<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>>(
    make: fn() -> io::Result<D>,
) {
    let place = Place::new();
    let socket = listen_unix(&place.0, 16).unwrap();
    let (mut server, mut client) = (make().unwrap(), make().unwrap());
    server.listen(socket.listener().unwrap()).unwrap();
    let to = Address::unix(&place.0);
    let conn = client.connect(&to, None).unwrap();
    client.send_with(conn, b"head", &BODY);
    let (mut echo, mut record) = (Echo, Record::default());
    while record.data().len() < 4 + BODY.len() {
        poll(&mut client, &mut record);
        poll(&mut server, &mut echo);
    }
    assert_eq!(record.seen[0], (conn, Seen::Connected));
    assert!(record.data()[4..] == BODY);
    client.close(conn);
    run_out(&mut client, &mut record);
    run_out(&mut server, &mut echo);
    drop(socket);
    assert!(!place.0.exists(), "the file goes with the socket");
    let error = client.connect(&to, None).map(|_| run_out(&mut client, &mut record));
    assert!(error.is_ok());
    assert_eq!(record.seen.last().unwrap().1, Seen::Failed(ErrorKind::NotFound));
}

pub fn a_full_queue_of_a_unix_socket_is_waited_for<
    D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>,
>(
    make: fn() -> io::Result<D>,
) {
    let place = Place::new();
    let socket = listen_unix(&place.0, 1).unwrap();
    let listener: UnixListener = socket.listener().unwrap();
    let mut driver = make().unwrap();
    let mut record = Record::default();
    let to = Address::unix(&place.0);
    for _ in 0..20 {
        driver.connect(&to, None).unwrap();
    }
    let given_up = driver.connect(&to, None).unwrap();
    driver.close(given_up);
    let connected = |record: &Record| record.count(|seen| *seen == Seen::Connected);
    for _ in 0..3 {
        poll(&mut driver, &mut record);
    }
    assert!(connected(&record) < 20, "the queue is not full");
    let mut peers: Vec<UnixStream> = Vec::new();
    run_until(&mut driver, &mut record, |record, _| {
        while let Ok((peer, _)) = listener.accept() {
            peers.push(peer);
        }
        connected(record) == 20
    });
    assert_eq!(record.seen.len(), 20, "{:?}", record.seen);
    drop(peers);
    run_until(&mut driver, &mut record, |record, _| {
        // The last ones wait for it yet.
        let _ = listener.accept();
        record.count(|seen| *seen == Seen::Eof) == 20
    });
}

pub fn unix_peers_are_echoed_and_closed<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker> + 'static>(
    make: fn() -> io::Result<D>,
) {
    let place = Place::new();
    let socket = listen_unix(&place.0, 16).unwrap();
    let mut driver = make().unwrap();
    driver.listen(socket.listener().unwrap()).unwrap();
    let mut record = Record::default();
    let mut peer = UnixStream::connect(&place.0).unwrap();
    peer.set_read_timeout(Some(LONG)).unwrap();
    peer.write_all(b"hello").unwrap();
    run_until(&mut driver, &mut record, |record, _| record.data() == b"hello");
    let conn = record.conn();
    driver.send(conn, b"bye");
    driver.close(conn);
    run_out(&mut driver, &mut record);
    let mut all = Vec::new();
    peer.read_to_end(&mut all).unwrap();
    assert_eq!(all, b"bye");
    // An abort ends the connection at least.
    let mut peer = UnixStream::connect(&place.0).unwrap();
    run_until(&mut driver, &mut record, |record, _| record.count(|seen| *seen == Seen::Accepted) == 2);
    driver.abort(record.seen.last().unwrap().0);
    run_out(&mut driver, &mut record);
    assert_eq!(peer.read(&mut [0; 10]).unwrap_or(0), 0);
}

pub fn only_paths_of_dead_servers_are_taken_over<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>>(
    make: fn() -> io::Result<D>,
) {
    let place = Place::new();
    // A dead server leaves its file.
    drop(UnixListener::bind(&place.0).unwrap());
    assert!(place.0.exists());
    let socket = listen_unix(&place.0, 16).unwrap();
    // A living one keeps it.
    let error = listen_unix(&place.0, 16).unwrap_err();
    assert!(matches!(error, UnixError::Taken(_)));
    assert!(error.to_string().contains("listens on") && error.to_string().contains("another path"), "{error}");
    drop(socket);
    std::fs::write(&place.0, "a file").unwrap();
    let error = listen_unix(&place.0, 16).unwrap_err();
    assert!(matches!(error, UnixError::NoSocket(_)), "{error}");
    assert_eq!(std::fs::read(&place.0).unwrap(), b"a file");
    let long = PathBuf::from("/tmp/".to_owned() + &"x".repeat(103));
    assert!(matches!(listen_unix(&long, 16), Err(UnixError::Path(_))));
    assert!(matches!(listen_unix(&place.0.join("below"), 16), Err(UnixError::Io { .. })));
    // A server that took the path meanwhile keeps it.
    std::fs::remove_file(&place.0).unwrap();
    let first = listen_unix(&place.0, 16).unwrap();
    std::fs::remove_file(&place.0).unwrap();
    let second = listen_unix(&place.0, 16).unwrap();
    drop(first);
    assert!(second.path().exists());
    // Drivers report the same error for a path that is too long.
    let mut driver = make().unwrap();
    assert!(driver.connect(&Address::unix(&long), None).is_err());
    assert_eq!(driver.open(), 0);
}
