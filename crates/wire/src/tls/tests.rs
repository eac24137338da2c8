//! What a peer may and may not send after the handshake, sent with its own keys.

use super::records::{ALERT, CHANGE_CIPHER_SPEC, DATA, HANDSHAKE};
use super::session::State;
use super::*;

/// Two sessions whose handshake is done.
fn joined(version: Version) -> (Session, Session) {
    let client = ClientConfig::new(&ClientOptions {
        versions: (version, version),
        resumption: true,
        ..ClientOptions::default()
    });
    let server = ServerConfig::new(&ServerOptions {
        identities: vec![Identity::generated(KeyKind::P256).unwrap()],
        ..ServerOptions::default()
    });
    let mut client = Session::client(&client.unwrap(), &ServerName::new("localhost").unwrap()).unwrap();
    let mut server = Session::server(&server.unwrap()).unwrap();
    let mut there = Vec::new();
    client.start(&mut there).unwrap();
    while !there.is_empty() {
        let back = hear(&mut server, &there).unwrap().1;
        there = hear(&mut client, &back).unwrap().1;
    }
    assert!(client.ready() && server.ready());
    (client, server)
}

/// Passes bytes to a session. Returns the data and the bytes to send; or the error and the bytes to send.
#[allow(clippy::type_complexity, reason = "of a test")]
fn hear(session: &mut Session, bytes: &[u8]) -> Result<(Vec<u8>, Vec<u8>, bool), (TlsError, Vec<u8>)> {
    let (mut input, mut scratch, mut out) = (bytes, Scratch::new(), Vec::new());
    let (mut data, mut closed) = (Vec::new(), false);
    loop {
        match session.next(&mut input, &mut scratch, &mut out) {
            Ok(Some(TlsEvent::Plaintext(range))) => data.extend_from_slice(&scratch[range]),
            Ok(Some(TlsEvent::Closed)) => closed = true,
            Ok(Some(TlsEvent::Ready)) => {}
            Ok(None) => return Ok((data, out, closed)),
            Err(error) => return Err((error, out)),
        }
    }
}

/// Records of any type and content, sealed with the session's keys.
fn seal(session: &mut Session, records: &[(u8, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    let State::Traffic(traffic) = &mut session.0 else { panic!("not ready") };
    for (kind, content) in records {
        traffic.seal(*kind, content, &mut out).unwrap();
    }
    out
}

/// The client fails at these records with this kind of error, and its peer receives the alert.
fn fails(version: Version, records: &[(u8, &[u8])], kind: TlsErrorKind, alert: &str) {
    let (mut client, mut server) = joined(version);
    let bytes = seal(&mut server, records);
    let (error, out) = hear(&mut client, &bytes).unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    let (heard, _) = hear(&mut server, &out).unwrap_err();
    assert_eq!(heard.to_string(), format!("the peer ended the TLS connection: {alert}"), "{error}");
    assert_eq!(heard.kind(), TlsErrorKind::Alert);
    // Both are over now.
    for session in [&mut client, &mut server] {
        assert!(!session.ready());
        assert_eq!(session.write(&[b"x"], &mut Vec::new()).unwrap_err().kind(), TlsErrorKind::Misuse);
        assert_eq!(hear(session, b"x").unwrap_err().0.kind(), TlsErrorKind::Misuse);
    }
}

#[test]
fn records_without_data_are_passed_over_up_to_a_limit() {
    for version in [Version::Tls12, Version::Tls13] {
        let (mut client, mut server) = joined(version);
        // The tickets that came with the handshake are such records as well.
        for idle in [30, 32, 32] {
            let mut records = vec![(DATA, &b""[..]); idle];
            records.push((DATA, b"data"));
            let bytes = seal(&mut server, &records);
            assert_eq!(hear(&mut client, &bytes).unwrap().0, b"data");
        }
        fails(version, &[(DATA, &b""[..]); 33], TlsErrorKind::Protocol, "unexpected_message (10)");
    }
}

#[test]
fn an_end_is_an_end() {
    for version in [Version::Tls12, Version::Tls13] {
        let (mut client, mut server) = joined(version);
        let mut out = Vec::new();
        server.write(&[b"last"], &mut out).unwrap();
        server.close(&mut out);
        let len = out.len();
        server.close(&mut out);
        assert_eq!(out.len(), len, "close_notify is sent once");
        assert_eq!(server.write(&[b"more"], &mut out).unwrap_err().kind(), TlsErrorKind::Misuse);
        out.extend_from_slice(b"whatever else comes is ignored, TLS or not");
        assert_eq!(hear(&mut client, &out).unwrap(), (b"last".to_vec(), Vec::new(), true));
        assert_eq!(hear(&mut client, b"here too").unwrap(), (Vec::new(), Vec::new(), false));
        // The other direction is still open.
        let mut out = Vec::new();
        client.write(&[b"answer"], &mut out).unwrap();
        client.close(&mut out);
        assert_eq!(hear(&mut server, &out).unwrap(), (b"answer".to_vec(), Vec::new(), true));
    }
}

#[test]
fn keys_are_updated_when_the_peer_asks_and_when_they_are_worn() {
    let (mut client, mut server) = joined(Version::Tls13);
    for round in 0..40_u8 {
        // The server changes its keys and wants the client's changed.
        let State::Traffic(traffic) = &mut server.0 else { panic!("not ready") };
        let mut bytes = Vec::new();
        traffic.update_keys(round % 2 == 0, &mut bytes).unwrap();
        server.write(&[&[round]], &mut bytes).unwrap();
        let (data, mut back, _) = hear(&mut client, &bytes).unwrap();
        assert_eq!(data, [round]);
        assert_eq!(!back.is_empty(), round % 2 == 0, "the client answers if it is asked");
        client.write(&[&[round, 1]], &mut back).unwrap();
        let (data, back, _) = hear(&mut server, &back).unwrap();
        assert_eq!((data, back.is_empty()), (vec![round, 1], true));
    }
    // Keys at their limit.
    let State::Traffic(traffic) = &mut client.0 else { panic!("not ready") };
    let before = traffic.wear_out();
    let State::Traffic(traffic) = &mut server.0 else { panic!("not ready") };
    traffic.expect_number(before);
    let mut out = Vec::new();
    client.write(&[b"one"], &mut out).unwrap();
    client.write(&[b"two"], &mut out).unwrap();
    assert_eq!(hear(&mut server, &out).unwrap().0, b"onetwo");
    let State::Traffic(traffic) = &mut client.0 else { panic!("not ready") };
    assert_eq!(traffic.sealed(), 2, "both under the new key");
}

#[test]
fn a_key_update_is_the_last_of_its_record_and_of_its_form() {
    for content in [&[24, 0, 0, 1, 0, 24, 0, 0, 1, 0][..], &[24, 0, 0, 1, 0, 4]] {
        fails(Version::Tls13, &[(HANDSHAKE, content)], TlsErrorKind::Protocol, "unexpected_message (10)");
    }
    for content in [&[24, 0, 0, 1, 2][..], &[24, 0, 0, 0], &[24, 0, 0, 2, 0, 0]] {
        fails(Version::Tls13, &[(HANDSHAKE, content)], TlsErrorKind::Protocol, "decode_error (50)");
    }
    let (mut client, mut server) = joined(Version::Tls13);
    let State::Traffic(traffic) = &mut server.0 else { panic!("not ready") };
    let mut bytes = Vec::new();
    for _ in 0..33 {
        traffic.update_keys(true, &mut bytes).unwrap();
    }
    let (error, _) = hear(&mut client, &bytes).unwrap_err();
    assert_eq!(error.kind(), TlsErrorKind::Protocol, "{error}");
}

#[test]
fn tickets_may_come_in_any_pieces() {
    let ticket = {
        // Lifetime, age, nonce, ticket, extensions.
        let mut ticket = vec![4, 0, 0, 18, 0, 0, 1, 0, 1, 2, 3, 4, 1, 9, 0, 5];
        ticket.extend_from_slice(b"abcde\0\0");
        ticket[3] = (ticket.len() - 4) as u8;
        ticket
    };
    let twice = [&ticket[..], &ticket].concat();
    for cut in 1..twice.len() {
        let (mut client, mut server) = joined(Version::Tls13);
        let (one, two) = twice.split_at(cut);
        let bytes = seal(&mut server, &[(HANDSHAKE, one), (HANDSHAKE, two), (DATA, b"data")]);
        assert_eq!(hear(&mut client, &bytes).unwrap().0, b"data", "cut at {cut}");
    }
    // Not with data in between.
    let (one, two) = ticket.split_at(7);
    let records = [(HANDSHAKE, one), (DATA, &b"data"[..]), (HANDSHAKE, two)];
    fails(Version::Tls13, &records, TlsErrorKind::Protocol, "unexpected_message (10)");
    // Not a wrong one, nor one without end.
    fails(Version::Tls13, &[(HANDSHAKE, &[4, 0, 0, 2, 0, 0])], TlsErrorKind::Protocol, "decode_error (50)");
    fails(Version::Tls13, &[(HANDSHAKE, &[4, 255, 0, 0])], TlsErrorKind::Protocol, "decode_error (50)");
}

#[test]
fn unexpected_messages_end_the_connection() {
    for content in [&[1, 0, 0, 0][..], &[13, 0, 0, 1, 0], &[20, 0, 0, 0], &[]] {
        fails(Version::Tls13, &[(HANDSHAKE, content)], TlsErrorKind::Protocol, "unexpected_message (10)");
    }
    for content in [&[2, 0, 0, 0][..], &[24, 0, 0, 1, 0]] {
        fails(Version::Tls12, &[(HANDSHAKE, content)], TlsErrorKind::Protocol, "unexpected_message (10)");
    }
    for version in [Version::Tls12, Version::Tls13] {
        fails(version, &[(CHANGE_CIPHER_SPEC, &[1])], TlsErrorKind::Protocol, "unexpected_message (10)");
        fails(version, &[(ALERT, &[2])], TlsErrorKind::Protocol, "decode_error (50)");
    }
    fails(Version::Tls13, &[(0, b"")], TlsErrorKind::Protocol, "unexpected_message (10)");
    // A server gets no tickets.
    let (mut client, mut server) = joined(Version::Tls13);
    let bytes = seal(&mut client, &[(HANDSHAKE, &[4, 0, 0, 0])]);
    assert_eq!(hear(&mut server, &bytes).unwrap_err().0.kind(), TlsErrorKind::Protocol);
}

#[test]
fn a_new_handshake_is_refused() {
    // The server asks the client.
    let (mut client, mut server) = joined(Version::Tls12);
    let bytes = seal(&mut server, &[(HANDSHAKE, &[0, 0, 0, 0]), (DATA, b"data")]);
    let (data, out, _) = hear(&mut client, &bytes).unwrap();
    assert_eq!(data, b"data");
    // The server gets the refusal, a warning, and continues.
    server.write(&[b"still here"], &mut Vec::new()).unwrap();
    assert_eq!(hear(&mut server, &out).unwrap(), (Vec::new(), Vec::new(), false));
    // The client asks the server.
    let (mut client, mut server) = joined(Version::Tls12);
    let bytes = seal(&mut client, &[(HANDSHAKE, &[1, 0, 0, 2, 3, 3])]);
    let (_, out, _) = hear(&mut server, &bytes).unwrap();
    assert!(!out.is_empty());
    assert!(hear(&mut client, &out).is_ok());
    // Not without end.
    let bytes = seal(&mut client, &[(HANDSHAKE, &[1, 0, 0, 2, 3, 3][..]); 40]);
    assert_eq!(hear(&mut server, &bytes).unwrap_err().0.kind(), TlsErrorKind::Protocol);
}

#[test]
fn alerts_are_named() {
    for (version, level, number, text) in [
        (Version::Tls13, 2, 116, "certificate_required (116)"),
        (Version::Tls13, 1, 40, "handshake_failure (40)"),
        (Version::Tls12, 2, 20, "bad_record_mac (20)"),
        (Version::Tls12, 2, 250, "number 250, which has no name"),
    ] {
        let (mut client, mut server) = joined(version);
        let bytes = seal(&mut server, &[(ALERT, &[level, number])]);
        let (error, out) = hear(&mut client, &bytes).unwrap_err();
        assert_eq!(error.to_string(), format!("the peer ended the TLS connection: {text}"));
        assert!(out.is_empty(), "an alert is not answered");
    }
    // Harmless ones.
    for (version, number) in [(Version::Tls12, 112), (Version::Tls13, 90)] {
        let (mut client, mut server) = joined(version);
        let bytes = seal(&mut server, &[(ALERT, &[1, number]), (DATA, b"data")]);
        assert_eq!(hear(&mut client, &bytes).unwrap().0, b"data");
    }
}

#[test]
fn the_largest_records_are_taken_and_larger_ones_are_not() {
    let most = vec![7; 1 << 14];
    let more = vec![7; (1 << 14) + 1];
    for version in [Version::Tls12, Version::Tls13] {
        let (mut client, mut server) = joined(version);
        let bytes = seal(&mut server, &[(DATA, &most)]);
        assert_eq!(hear(&mut client, &bytes).unwrap().0, most);
        fails(version, &[(DATA, &more)], TlsErrorKind::Protocol, "record_overflow (22)");
        let (mut client, _) = joined(version);
        let (error, _) = hear(&mut client, &[23, 3, 3, 0x48, 0x01]).unwrap_err();
        assert_eq!(error.to_string(), "a TLS record is larger than 16 KiB");
    }
}

#[test]
fn padding_is_taken_off() {
    let (mut client, mut server) = joined(Version::Tls13);
    // Content, its type, padding: what is sealed gets another type byte behind it, here the last byte of padding.
    let bytes = seal(&mut server, &[(0, b"data\x17\0\0\0\0\0")]);
    assert_eq!(hear(&mut client, &bytes).unwrap().0, b"data");
    let bytes = seal(&mut server, &[(0, b"\x17\0\0"), (DATA, b"more")]);
    assert_eq!(hear(&mut client, &bytes).unwrap().0, b"more");
}
