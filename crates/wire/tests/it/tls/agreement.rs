//! What the two halves agree on: versions, suites, groups, protocols, keys.

use weir_wire::tls::{KeyKind, TlsErrorKind, Version, groups, suites};

use super::pair::{Pair, client, p256, rsa, server};

#[test]
fn the_newest_version_is_the_default() {
    let mut pair = Pair::joined(&client(|_| ()), &server(|_| ()));
    for end in [&pair.client, &pair.server] {
        let negotiated = end.session.negotiated().unwrap();
        assert_eq!(negotiated.version, Version::Tls13);
        assert_eq!(negotiated.suite, "TLS_AES_256_GCM_SHA384");
        assert_eq!(negotiated.group, Some("X25519"));
        assert_eq!((negotiated.alpn.as_deref(), negotiated.resumed), (None, false));
    }
    assert_eq!(pair.client.session.negotiated().unwrap().peer_key, Some(KeyKind::P256));
    assert_eq!(pair.server.session.negotiated().unwrap().peer_key, None);
    pair.talk();
}

#[test]
fn every_suite_can_be_chosen() {
    for (suite, version) in suites() {
        let mut pair = Pair::joined(&client(|o| o.suites = vec![suite.to_owned()]), &server(|_| ()));
        for end in [&pair.client, &pair.server] {
            let negotiated = end.session.negotiated().unwrap();
            assert_eq!((negotiated.suite, negotiated.version), (suite, version));
        }
        pair.talk();
        pair.talk();
        // And by the server.
        let mut pair = Pair::joined(&client(|_| ()), &server(|o| o.suites = vec![suite.to_owned()]));
        assert_eq!(pair.client.session.negotiated().unwrap().suite, suite);
        pair.talk();
    }
}

#[test]
fn every_group_can_be_chosen() {
    for group in groups() {
        for version in [Version::Tls12, Version::Tls13] {
            if group.contains("MLKEM") && version == Version::Tls12 {
                continue;
            }
            let config = client(|o| {
                o.groups = vec![group.to_owned()];
                o.versions = (version, version);
            });
            let mut pair = Pair::joined(&config, &server(|_| ()));
            assert_eq!(pair.client.session.negotiated().unwrap().group, Some(group), "{version}");
            assert_eq!(pair.server.session.negotiated().unwrap().group, Some(group), "{version}");
            pair.talk();
        }
    }
}

#[test]
fn a_server_that_wants_another_group_asks_again() {
    let server = server(|o| o.groups = vec!["secp384r1".to_owned()]);
    let mut pair = Pair::joined(&client(|_| ()), &server);
    assert_eq!(pair.client.session.negotiated().unwrap().group, Some("secp384r1"));
    pair.talk();
}

#[test]
fn a_range_of_versions_is_respected() {
    use Version::{Tls12, Tls13};
    for (theirs, ours, expected) in [
        ((Tls12, Tls12), (Tls12, Tls13), Tls12),
        ((Tls12, Tls13), (Tls12, Tls12), Tls12),
        ((Tls13, Tls13), (Tls12, Tls13), Tls13),
        ((Tls12, Tls13), (Tls13, Tls13), Tls13),
    ] {
        let mut pair = Pair::joined(&client(|o| o.versions = ours), &server(|o| o.versions = theirs));
        assert_eq!(pair.client.session.negotiated().unwrap().version, expected);
        pair.talk();
    }
    for (theirs, ours) in [((Tls12, Tls12), (Tls13, Tls13)), ((Tls13, Tls13), (Tls12, Tls12))] {
        let mut pair = Pair::new(&client(|o| o.versions = ours), &server(|o| o.versions = theirs));
        let error = pair.settle().unwrap_err();
        assert_eq!(error.kind(), TlsErrorKind::Handshake);
        assert_eq!(error.to_string(), "the two sides have no version of TLS in common");
        let alert = std::mem::take(&mut pair.server.out);
        let error = pair.client.take(&alert).unwrap_err();
        assert_eq!(error.to_string(), "the peer ended the TLS handshake: protocol_version (70)");
        assert_eq!(error.kind(), TlsErrorKind::Handshake);
    }
}

#[test]
fn missing_common_parameters_are_named() {
    let one = "TLS_AES_128_GCM_SHA256".to_owned();
    let other = "TLS_CHACHA20_POLY1305_SHA256".to_owned();
    let mut pair = Pair::new(&client(|o| o.suites = vec![one]), &server(|o| o.suites = vec![other]));
    assert_eq!(pair.settle().unwrap_err().to_string(), "the two sides have no cipher suite in common");
    let alert = std::mem::take(&mut pair.server.out);
    let error = pair.client.take(&alert).unwrap_err();
    assert_eq!(error.to_string(), "the peer ended the TLS handshake: handshake_failure (40)");

    let (one, other) = ("X25519".to_owned(), "secp256r1".to_owned());
    let mut pair = Pair::new(&client(|o| o.groups = vec![one]), &server(|o| o.groups = vec![other]));
    assert_eq!(pair.settle().unwrap_err().to_string(), "the two sides have no key exchange group in common");
}

#[test]
fn a_protocol_is_agreed_on() {
    let both = server(|o| o.alpn = vec!["h2".to_owned(), "http/1.1".to_owned()]);
    for name in ["h2", "http/1.1"] {
        let pair = Pair::joined(&client(|o| o.alpn = Some(name.to_owned())), &both);
        assert_eq!(pair.client.session.negotiated().unwrap().alpn.as_deref(), Some(name));
        assert_eq!(pair.server.session.negotiated().unwrap().alpn.as_deref(), Some(name));
    }
    // One that does not know ALPN says nothing, either way.
    let pair = Pair::joined(&client(|o| o.alpn = Some("h2".to_owned())), &server(|_| ()));
    assert_eq!(pair.client.session.negotiated().unwrap().alpn, None);
    let pair = Pair::joined(&client(|_| ()), &both);
    assert_eq!(pair.client.session.negotiated().unwrap().alpn, None);

    let old = server(|o| o.alpn = vec!["http/1.1".to_owned()]);
    let mut pair = Pair::new(&client(|o| o.alpn = Some("h2".to_owned())), &old);
    let error = pair.settle().unwrap_err();
    assert_eq!(error.to_string(), "the two sides have no protocol in common (ALPN)");
    let alert = std::mem::take(&mut pair.server.out);
    let error = pair.client.take(&alert).unwrap_err();
    assert_eq!(error.to_string(), "the peer ended the TLS handshake: no_application_protocol (120)");
}

#[test]
fn a_server_uses_the_key_that_suits() {
    // The client of TLS 1.2 says by its suites what it can; the server has both keys.
    for (suite, kind) in [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", KeyKind::Rsa),
        ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", KeyKind::P256),
    ] {
        for identities in [vec![p256(), rsa()], vec![rsa(), p256()]] {
            let pair = Pair::joined(
                &client(|o| o.suites = vec![suite.to_owned()]),
                &server(|o| {
                    o.identities = identities;
                    o.versions = (Version::Tls12, Version::Tls12);
                }),
            );
            assert_eq!(pair.client.session.negotiated().unwrap().peer_key, Some(kind));
        }
    }
    let pair = Pair::joined(&client(|_| ()), &server(|o| o.identities = vec![rsa()]));
    assert_eq!(pair.client.session.negotiated().unwrap().peer_key, Some(KeyKind::Rsa));
}
