//! Headers of the PROXY protocol: those that its document and real programs write, mistakes, and any bytes.

use crate::proxy_protocol_oracle as oracle;
use std::net::SocketAddr;

use proptest::prelude::*;
use weir_wire::proxy_protocol::{Header, ProxyError, Reader, Version, write};

fn read(input: &[u8]) -> Result<(Option<Header>, usize), ProxyError> {
    let mut rest = input;
    let header = Reader::default().next(&mut rest)?;
    Ok((header, rest.len()))
}

fn addresses(from: &str, to: &str) -> Option<(SocketAddr, SocketAddr)> {
    Some((from.parse().expect("an address"), to.parse().expect("an address")))
}

#[test]
fn lines_of_version_1_are_read() {
    for (line, expected) in [
        ("PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\n", addresses("192.168.0.1:56324", "192.168.0.11:443")),
        ("PROXY TCP6 2001:db8::1 ::1 0 65535\r\n", addresses("[2001:db8::1]:0", "[::1]:65535")),
        ("PROXY UNKNOWN\r\n", None),
        ("PROXY UNKNOWN ffff::1 x 1 2\r\n", None),
    ] {
        let input = format!("{line}GET / HTTP/1.1\r\n");
        let header = Header { version: Version::V1, addresses: expected };
        assert_eq!(read(input.as_bytes()), Ok((Some(header), 16)), "{line}");
        oracle::proxy_protocol(input.as_bytes());
    }
}

#[test]
fn bytes_of_version_2_are_read() {
    let start = b"\r\n\r\n\0\r\nQUIT\n";
    // As HAProxy's send-proxy-v2 writes it, with a value (CRC32C) behind the addresses.
    let tcp4 =
        [&start[..], b"\x21\x11\x00\x13\x7f\0\0\x01\x7f\0\0\x02\x1f\x90\0\x50\x03\0\x04\x01\x02\x03\x04"].concat();
    let local = [&start[..], b"\x20\x00\x00\x00"].concat();
    let unix = [&start[..], b"\x21\x31\x00\xd8", &[b'x'; 216]].concat();
    for (bytes, expected) in [(tcp4, addresses("127.0.0.1:8080", "127.0.0.2:80")), (local, None), (unix, None)] {
        let header = Header { version: Version::V2, addresses: expected };
        assert_eq!(read(&[&bytes[..], b"ab"].concat()), Ok((Some(header), 2)));
        assert_eq!(read(&bytes[..bytes.len() - 1]), Ok((None, 0)), "not whole");
        oracle::proxy_protocol(&bytes);
    }
}

#[test]
fn what_is_no_header_is_refused() {
    let v2 = |rest: &[u8]| [b"\r\n\r\n\0\r\nQUIT\n", rest].concat();
    for (input, error) in [
        (b"GET / HTTP/1.1\r\n".to_vec(), ProxyError::Absent),
        (b"PROXX".to_vec(), ProxyError::Absent),
        (b"\r\n\r\n\0\r\nQUIX".to_vec(), ProxyError::Absent),
        (b"PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n".to_vec(), ProxyError::Malformed),
        (b"PROXY TCP4 1.2.3.4 1.2.3.4 1 65536\r\n".to_vec(), ProxyError::Malformed),
        (b"PROXY TCP4 1.2.3.4 1.2.3.4 01 2\r\n".to_vec(), ProxyError::Malformed),
        (b"PROXY TCP4 ::1 1.2.3.4 1 2\r\n".to_vec(), ProxyError::Malformed),
        (b"PROXY TCP4  1.2.3.4 1.2.3.4 1 2\r\n".to_vec(), ProxyError::Malformed),
        (b"PROXY UDP4 1.2.3.4 1.2.3.4 1 2\r\n".to_vec(), ProxyError::Malformed),
        (format!("PROXY UNKNOWN {}", "x".repeat(100)).into_bytes(), ProxyError::TooLong),
        (v2(b"\x31\x11\x00\x0c"), ProxyError::Malformed),
        (v2(b"\x21\x11\x00\x0b12345678901"), ProxyError::Malformed),
        (v2(b"\x21\x21\x00\x0c123456789012"), ProxyError::Malformed),
        (v2(b"\x22\x11\x00\x0c123456789012"), ProxyError::Malformed),
        (v2(b"\x21\x11\xff\xff"), ProxyError::TooLong),
    ] {
        let padded = [&input[..], b"123456789012"].concat();
        assert_eq!(read(&padded), Err(error), "{:?}", String::from_utf8_lossy(&input));
        oracle::proxy_protocol(&padded);
    }
}

#[test]
fn addresses_of_two_families_are_not_written() {
    for version in [Version::V1, Version::V2] {
        let mut out = Vec::new();
        write(&mut out, version, addresses("127.0.0.1:1", "[::1]:2"));
        assert_eq!(read(&out), Ok((Some(Header { version, addresses: None }), 0)));
    }
}

proptest! {
    #[test]
    fn what_is_written_reads_back(v6: bool, ips: (u128, u128), ports: (u16, u16), two: bool, after: Vec<u8>) {
        let ip = |bits: u128| if v6 { std::net::Ipv6Addr::from(bits).into() } else { std::net::Ipv4Addr::from(bits as u32).into() };
        let addresses = Some((SocketAddr::new(ip(ips.0), ports.0), SocketAddr::new(ip(ips.1), ports.1)));
        let version = if two { Version::V2 } else { Version::V1 };
        let mut out = Vec::new();
        write(&mut out, version, addresses);
        let length = after.len();
        out.extend(after);
        prop_assert_eq!(read(&out), Ok((Some(Header { version, addresses }), length)));
        oracle::proxy_protocol(&out);
    }

    #[test]
    fn any_bytes_hold(
        start in prop_oneof![Just(b"PROXY ".to_vec()), Just(b"PROXY TCP4 1.1.1.1 ".to_vec()), Just(b"\r\n\r\n\0\r\nQUIT\n".to_vec()), Just(vec![])],
        rest in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        oracle::proxy_protocol(&[start, rest].concat());
    }
}
