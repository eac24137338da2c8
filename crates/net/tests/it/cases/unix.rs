//! Unix stream sockets behave as TCP does, at a path.

use std::io::ErrorKind;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use weir_net::{Address, Driver, Io, UnixError, listen_unix};

use crate::common::{BODY, Echo, Kernel, Network, Peer, Place, Record, Seen, poll, run_out, run_until, settle};

pub fn both_ends_of_a_unix_socket_are_drivers<N: Network>(net: &N) {
    let (mut server, to) = net.listening(Place::Unix(16));
    let mut client = net.driver();
    let conn = client.connect(&to, None).unwrap();
    client.send_with(conn, b"head", &BODY);
    let (mut echo, mut record) = (Echo, Record::default());
    run_until(&mut client, &mut record, |record, _| {
        poll(&mut server, &mut echo);
        record.received() == 4 + BODY.len()
    });
    assert_eq!(record.seen[0], (conn, Seen::Connected));
    assert!(record.data()[4..] == BODY);
    client.close(conn);
    run_out(&mut client, &mut record);
    run_out(&mut server, &mut echo);
    server.stop_listening();
    settle(&mut server, &mut echo);
    net.unlink(&to);
    client.connect(&to, None).unwrap();
    run_out(&mut client, &mut record);
    assert_eq!(record.seen.last().unwrap().1, Seen::Failed(ErrorKind::NotFound));
}

pub fn a_full_queue_of_a_unix_socket_is_waited_for<N: Network>(net: &N) {
    let (listener, to) = net.peer_listener(Place::Unix(1));
    let (mut driver, mut record) = net.recording();
    for _ in 0..20 {
        driver.connect(&to, None).unwrap();
    }
    let given_up = driver.connect(&to, None).unwrap();
    driver.close(given_up);
    let connected = |record: &Record| record.count(|seen| *seen == Seen::Connected);
    settle(&mut driver, &mut record);
    assert!(connected(&record) < 20, "the queue is not full");
    let mut peers = Vec::new();
    run_until(&mut driver, &mut record, |record, _| {
        peers.extend(std::iter::from_fn(|| net.try_accept(&listener)));
        connected(record) == 20
    });
    assert_eq!(record.seen.len(), 20, "{:?}", record.seen);
    drop(peers);
    run_until(&mut driver, &mut record, |record, _| {
        // The last ones wait for it yet.
        let _ = net.try_accept(&listener);
        record.count(|seen| *seen == Seen::Eof) == 20
    });
}

pub fn unix_peers_are_echoed_and_closed<N: Network>(net: &N) {
    let (mut driver, to) = net.listening(Place::Unix(16));
    let mut record = Record::default();
    let mut peer = net.connect(&to);
    peer.write(b"hello");
    run_until(&mut driver, &mut record, |record, _| record.data() == b"hello");
    let conn = record.conn();
    driver.send(conn, b"bye");
    driver.close(conn);
    run_out(&mut driver, &mut record);
    let all = peer.read_to_end().unwrap();
    assert_eq!(all, b"bye");
    // An abort ends the connection at least.
    let mut peer = net.connect(&to);
    run_until(&mut driver, &mut record, |record, _| record.count(|seen| *seen == Seen::Accepted) == 2);
    driver.abort(record.seen.last().unwrap().0);
    run_out(&mut driver, &mut record);
    assert!(peer.read_to_end().unwrap_or_default().is_empty());
}

pub fn an_abstract_socket_has_a_name_and_no_file<D>(net: &Kernel<D>)
where
    Kernel<D>: Network,
{
    let name = PathBuf::from(format!("@{}", Kernel::<D>::path().display()));
    let to = Address::unix(&name);
    let (mut driver, mut record) = net.recording();
    driver.connect(&to, None).unwrap();
    run_out(&mut driver, &mut record);
    assert_eq!(record.seen[0].1, Seen::Failed(ErrorKind::ConnectionRefused));
    let socket = listen_unix(&name, 16).unwrap();
    assert!(!name.exists() && matches!(listen_unix(&name, 16), Err(UnixError::Taken(_))));
    driver.connect(&to, None).unwrap();
    run_until(&mut driver, &mut record, |record, _| record.seen.len() == 2);
    assert_eq!(record.seen[1].1, Seen::Connected);
    socket.listener().unwrap().accept().unwrap();
    // Its name is free once it is closed.
    drop(socket);
    drop(listen_unix(&name, 16).unwrap());
    // The kernel would give an empty name another one.
    for wrong in ["@".to_owned(), format!("@{}", "x".repeat(107))] {
        assert!(matches!(listen_unix(&PathBuf::from(&wrong), 16), Err(UnixError::Path(_))));
        assert!(driver.connect(&Address::unix(wrong), None).is_err());
    }
}

pub fn only_paths_of_dead_servers_are_taken_over<D>(net: &Kernel<D>)
where
    Kernel<D>: Network,
{
    let path = Kernel::<D>::path();
    // A dead server leaves its file.
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let socket = listen_unix(&path, 16).unwrap();
    // A living one keeps it.
    let error = listen_unix(&path, 16).unwrap_err();
    assert!(matches!(error, UnixError::Taken(_)));
    assert!(error.to_string().contains("listens on") && error.to_string().contains("another path"), "{error}");
    drop(socket);
    std::fs::write(&path, "a file").unwrap();
    let error = listen_unix(&path, 16).unwrap_err();
    assert!(matches!(error, UnixError::NoSocket(_)), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), b"a file");
    let long = PathBuf::from("/tmp/".to_owned() + &"x".repeat(103));
    assert!(matches!(listen_unix(&long, 16), Err(UnixError::Path(_))));
    assert!(matches!(listen_unix(&path.join("below"), 16), Err(UnixError::Io { .. })));
    // A server that took the path meanwhile keeps it.
    std::fs::remove_file(&path).unwrap();
    let first = listen_unix(&path, 16).unwrap();
    std::fs::remove_file(&path).unwrap();
    let second = listen_unix(&path, 16).unwrap();
    drop(first);
    assert!(second.path().exists());
    // Drivers report the same error for a path that is too long.
    let mut driver = net.driver();
    assert!(driver.connect(&Address::unix(&long), None).is_err());
    assert_eq!(driver.open(), 0);
}
