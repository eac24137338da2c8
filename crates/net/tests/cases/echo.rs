//! Bytes come back as they were, whatever their number and the reader's speed.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use weir_net::Driver;

use crate::common::{Echo, LONG, Server};

/// Bytes that differ from their neighbours and from themselves 256 later.
pub fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + i / 253) as u8).collect()
}

pub fn one_byte_comes_back<D: Driver + 'static>(make: fn() -> io::Result<D>) {
    let server = Server::start(make, || Echo);
    let mut peer = TcpStream::connect(server.addr).unwrap();
    peer.set_read_timeout(Some(LONG)).unwrap();
    for byte in 0..100u8 {
        peer.write_all(&[byte]).unwrap();
        let mut back = [0];
        peer.read_exact(&mut back).unwrap();
        assert_eq!(back, [byte]);
    }
}

pub fn a_mebibyte_comes_back_to_a_slow_reader<D: Driver + 'static>(make: fn() -> io::Result<D>) {
    let server = Server::start(make, || Echo);
    let sent = pattern(1 << 20);
    let mut peer = small_peer(server.addr);
    let mut writer = peer.try_clone().unwrap();
    let bytes = sent.clone();
    let writing = std::thread::spawn(move || {
        writer.write_all(&bytes).unwrap();
        writer.shutdown(std::net::Shutdown::Write).unwrap();
    });
    let mut back = Vec::new();
    let mut chunk = [0; 10_000];
    loop {
        let count = peer.read(&mut chunk).unwrap();
        if count == 0 {
            break;
        }
        back.extend_from_slice(&chunk[..count]);
        std::thread::sleep(Duration::from_micros(200));
    }
    writing.join().unwrap();
    assert_eq!(back.len(), sent.len());
    assert!(back == sent, "bytes changed on the way");
}

/// A connected peer with a receive buffer of a few kilobytes.
pub fn small_peer(addr: std::net::SocketAddr) -> TcpStream {
    use rustix::net::{AddressFamily, SocketType, connect, socket, sockopt};
    let fd = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    sockopt::set_socket_recv_buffer_size(&fd, 4096).unwrap();
    connect(&fd, &addr).unwrap();
    let peer = TcpStream::from(fd);
    peer.set_read_timeout(Some(LONG)).unwrap();
    peer
}
