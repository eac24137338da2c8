//! What is not TLS, or not any more, or in pieces.

use weir_wire::tls::{Session, TlsErrorKind, Version};

use super::pair::{End, Pair, client, p256, rsa, server};

#[test]
fn bytes_that_are_not_tls_are_reported() {
    let server = server(|_| ());
    for garbage in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], b"SSH-2.0-x\r\n", &[0; 64], &[0xff; 64]] {
        let mut end = End::new(Session::server(&server).unwrap());
        let error = end.take(garbage).unwrap_err();
        assert_eq!(error.kind(), TlsErrorKind::NotTls, "{error}");
        assert_eq!(end.out, [21, 3, 3, 0, 2, 2, 10], "the peer is told");
        // To the client the same.
        let mut pair = Pair::new(&client(|_| ()), &server);
        let error = pair.client.take(garbage).unwrap_err();
        assert_eq!(error.kind(), TlsErrorKind::NotTls, "{error}");
        // And after the handshake.
        let mut pair = Pair::joined(&client(|_| ()), &server);
        let error = pair.client.take(garbage).unwrap_err();
        assert_eq!(error.kind(), TlsErrorKind::NotTls, "{error}");
        assert!(!pair.client.out.is_empty());
    }
    let mut pair = Pair::new(&client(|_| ()), &server);
    let error = pair.client.take(b"HTTP/1.1 400 Bad Request").unwrap_err();
    assert_eq!(error.to_string(), "what came is not TLS: \"HTTP/\"");
}

#[test]
fn a_server_that_speaks_no_tls_is_seen_by_its_response_whatever_its_pieces() {
    let mut pair = Pair::new(&client(|_| ()), &server(|_| ()));
    for byte in b"HTTP" {
        pair.client.take(&[*byte]).unwrap();
    }
    assert_eq!(pair.client.take(b"/").unwrap_err().kind(), TlsErrorKind::NotTls);
}

#[test]
fn a_changed_record_does_not_open() {
    for version in [Version::Tls12, Version::Tls13] {
        for suite in ["", "CHACHA20"] {
            let config = client(|o| {
                o.versions = (version, version);
                o.suites = weir_wire::tls::suites().map(|(name, _)| name.to_owned()).collect();
                o.suites.retain(|name| name.contains(suite));
            });
            let joined = || Pair::joined(&config, &server(|_| ()));
            let len = {
                let mut pair = joined();
                pair.server.say(b"data");
                pair.server.out.len()
            };
            // Behind the header, whose own bytes are changed elsewhere.
            for at in 5..len {
                let mut pair = joined();
                pair.server.say(b"data");
                pair.server.out[at] ^= 0x40;
                let error = pair.settle().unwrap_err();
                assert_eq!(error.kind(), TlsErrorKind::Decrypt, "{error}");
                let alert = std::mem::take(&mut pair.client.out);
                let error = pair.server.take(&alert).unwrap_err();
                assert_eq!(error.to_string(), "the peer ended the TLS connection: bad_record_mac (20)");
            }
            // Too short for any.
            let mut pair = joined();
            assert_eq!(pair.client.take(&[23, 3, 3, 0, 3, 1, 2, 3]).unwrap_err().kind(), TlsErrorKind::Decrypt);
        }
    }
}

#[test]
fn records_cannot_be_repeated_or_skipped() {
    for version in [Version::Tls12, Version::Tls13] {
        let config = client(|o| o.versions = (version, version));
        let mut pair = Pair::joined(&config, &server(|_| ()));
        pair.server.say(b"one");
        let one = pair.server.out.clone();
        pair.settle().unwrap();
        assert_eq!(pair.client.take(&one).unwrap_err().kind(), TlsErrorKind::Decrypt);
        let mut pair = Pair::joined(&config, &server(|_| ()));
        pair.server.say(b"one");
        pair.server.out.clear();
        pair.server.say(b"two");
        assert_eq!(pair.settle().unwrap_err().kind(), TlsErrorKind::Decrypt);
    }
}

/// A handshake and some data, cut in two at one place of what the server sends and of what the client sends.
fn cut_at(pair: &mut Pair, cut: usize) -> (usize, usize) {
    let (mut sent, mut received) = (0, 0);
    let mut said = false;
    loop {
        let there = std::mem::take(&mut pair.client.out);
        give(&mut pair.server, &there, &mut sent, cut);
        let back = std::mem::take(&mut pair.server.out);
        give(&mut pair.client, &back, &mut received, cut);
        if pair.client.out.is_empty() && pair.server.out.is_empty() {
            if said {
                return (sent, received);
            }
            said = true;
            pair.client.say(b"a request");
            pair.server.say(b"a response");
        }
    }
}

/// Gives it the bytes, in two pieces if the place is among them.
fn give(end: &mut End, bytes: &[u8], before: &mut usize, cut: usize) {
    let at = cut.saturating_sub(*before).min(bytes.len());
    *before += bytes.len();
    end.take(&bytes[..at]).unwrap();
    end.take(&bytes[at..]).unwrap();
}

#[test]
fn a_conversation_may_be_cut_anywhere() {
    for version in [Version::Tls12, Version::Tls13] {
        let client = client(|o| {
            o.versions = (version, version);
            o.resumption = true;
        });
        let server = server(|o| o.identities = vec![p256()]);
        let mut cut = 0;
        loop {
            let mut pair = Pair::new(&client.for_thread(), &server);
            let (sent, received) = cut_at(&mut pair, cut);
            assert_eq!(pair.server.heard, b"a request", "cut at {cut}");
            assert_eq!(pair.client.heard, b"a response", "cut at {cut}");
            cut += 1;
            if cut > sent.max(received) {
                break;
            }
        }
        assert!(cut > 400);
    }
}

#[test]
fn a_conversation_may_come_byte_by_byte() {
    for version in [Version::Tls12, Version::Tls13] {
        let config = client(|o| o.versions = (version, version));
        let mut pair = Pair::new(&config, &server(|o| o.identities = vec![rsa()]));
        let data = vec![5; 40_000];
        for round in 0..2 {
            while !pair.client.out.is_empty() || !pair.server.out.is_empty() {
                for byte in std::mem::take(&mut pair.client.out) {
                    pair.server.take(&[byte]).unwrap();
                }
                for byte in std::mem::take(&mut pair.server.out) {
                    pair.client.take(&[byte]).unwrap();
                }
            }
            if round == 0 {
                pair.client.say(&data);
                pair.server.say(&data);
            }
        }
        assert!(pair.client.heard == data && pair.server.heard == data);
    }
}

#[test]
fn a_session_that_is_not_ready_refuses_to_write() {
    let mut pair = Pair::new(&client(|_| ()), &server(|_| ()));
    let mut out = Vec::new();
    let error = pair.client.session.write(&[b"early"], &mut out).unwrap_err();
    assert_eq!(error.kind(), TlsErrorKind::Misuse);
    assert!(out.is_empty() && !pair.client.session.ready() && pair.client.session.negotiated().is_none());
    pair.client.session.close(&mut out);
    assert!(out.is_empty());
    assert_eq!(pair.client.take(b"\x16\x03\x03\0\0").unwrap_err().kind(), TlsErrorKind::Misuse);
}

#[test]
fn an_early_close_of_the_handshake_is_reported() {
    let mut pair = Pair::new(&client(|_| ()), &server(|_| ()));
    let error = pair.client.take(&[21, 3, 3, 0, 2, 2, 80]).unwrap_err();
    assert_eq!(error.kind(), TlsErrorKind::Handshake);
    assert_eq!(error.to_string(), "the peer ended the TLS handshake: internal_error (80)");
    // A warning, which anybody can send who sees the packets, ends nothing, if there are not too many.
    let mut pair = Pair::new(&client(|_| ()), &server(|_| ()));
    pair.client.take(&[21, 3, 3, 0, 2, 1, 0]).unwrap();
    pair.settle().unwrap();
    pair.talk();
    let mut pair = Pair::new(&client(|_| ()), &server(|_| ()));
    assert!((0..20).any(|_| pair.client.take(&[21, 3, 3, 0, 2, 1, 0]).is_err()));
}

#[test]
fn empty_writes_send_nothing() {
    let mut pair = Pair::joined(&client(|_| ()), &server(|_| ()));
    pair.client.session.write(&[], &mut pair.client.out).unwrap();
    pair.client.session.write(&[b"", b""], &mut pair.client.out).unwrap();
    assert!(pair.client.out.is_empty());
}
