//! Whose certificate is taken, on either side.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use weir_wire::tls::{
    ClientAuth, ClientConfig, ClientOptions, Identity, ServerConfig, ServerOptions, TlsErrorKind, Version,
};

use super::pair::{Pair, client, p256, rsa, server};

/// An authority, and how to have certificates from it.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new(name: &str) -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Authority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn pem(&self) -> Vec<u8> {
        self.0.pem().into_bytes()
    }

    fn issue(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Identity {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        change(&mut params);
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Identity { chain: certificate.pem().into_bytes(), key: key.serialize_pem().into_bytes() }
    }
}

const VERSIONS: [Version; 2] = [Version::Tls12, Version::Tls13];

#[test]
fn a_servers_certificate_must_come_from_the_authorities_given() {
    let authority = Authority::new("ours");
    for version in VERSIONS {
        let trusting = |authorities: Vec<u8>| {
            client(|o| {
                o.authorities = Some(authorities);
                o.versions = (version, version);
            })
        };
        for name in ["example.test", "127.0.0.1", "::1"] {
            let server = server(|o| o.identities = vec![authority.issue(name, |_| ())]);
            Pair::named(&trusting(authority.pem()), &server, name).settle().unwrap();
            // Another name.
            let mut pair = Pair::named(&trusting(authority.pem()), &server, "localhost");
            let error = pair.settle().unwrap_err();
            assert_eq!(error.kind(), TlsErrorKind::Certificate);
            assert!(error.to_string().contains("not valid for name \"localhost\""), "{error}");
            let alert = std::mem::take(&mut pair.client.out);
            let error = pair.server.take(&alert).unwrap_err().to_string();
            assert!(error.contains("bad_certificate (42)"), "{error}");
            // Another authority.
            let error = Pair::named(&trusting(Authority::new("another").pem()), &server, name).settle().unwrap_err();
            assert_eq!(error.kind(), TlsErrorKind::Certificate);
            let text = "the peer's certificate is refused: it comes from none of the authorities given";
            assert_eq!(error.to_string(), text);
        }
        // Two files in one.
        let both = [Authority::new("another").pem(), authority.pem()].concat();
        let server = server(|o| o.identities = vec![authority.issue("localhost", |_| ())]);
        Pair::new(&trusting(both), &server).settle().unwrap();
        // One that is over.
        let old = authority.issue("localhost", |params| params.not_after = rcgen::date_time_ymd(2001, 1, 1));
        let server = super::pair::server(|o| o.identities = vec![old]);
        let error = Pair::new(&trusting(authority.pem()), &server).settle().unwrap_err();
        assert_eq!(error.kind(), TlsErrorKind::Certificate);
        assert!(error.to_string().contains("expired"), "{error}");
        // No certificate is checked when no authorities are given.
        Pair::named(&client(|o| o.versions = (version, version)), &server, "other.test").settle().unwrap();
    }
}

#[test]
fn a_generated_certificate_is_its_own_authority() {
    for identity in [p256(), rsa()] {
        let server = server(|o| o.identities = vec![identity.clone()]);
        let trusting = client(|o| o.authorities = Some(identity.chain.clone()));
        for name in ["localhost", "127.0.0.1", "[::1]"] {
            Pair::named(&trusting, &server, name).settle().unwrap();
        }
        let error = Pair::named(&trusting, &server, "127.0.0.2").settle().unwrap_err();
        assert_eq!(error.kind(), TlsErrorKind::Certificate, "{error}");
    }
    assert_eq!(p256(), p256(), "made once");
}

#[test]
fn an_authority_given_may_itself_be_the_server() {
    // What `openssl req -x509` makes.
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let pem = params.self_signed(&key).unwrap().pem().into_bytes();
    let identity = Identity { chain: pem.clone(), key: key.serialize_pem().into_bytes() };
    let server = server(|o| o.identities = vec![identity]);
    let trusting = client(|o| o.authorities = Some(pem));
    Pair::new(&trusting, &server).settle().unwrap();
    let error = Pair::named(&trusting, &server, "other.test").settle().unwrap_err();
    assert_eq!(error.kind(), TlsErrorKind::Certificate, "{error}");
    let error = Pair::new(&client(|o| o.authorities = Some(p256().chain)), &server).settle().unwrap_err();
    assert_eq!(error.kind(), TlsErrorKind::Certificate);
    let text =
        "the peer's certificate is refused: it is an authority's own certificate, and none of the authorities given";
    assert_eq!(error.to_string(), text);
}

#[test]
fn a_client_can_be_asked_for_a_certificate() {
    let authority = Authority::new("ours");
    let good = authority.issue("client", |_| ());
    let bad = Authority::new("another").issue("client", |_| ());
    for version in VERSIONS {
        let with = |identity: Option<&Identity>| {
            client(|o| {
                o.identity = identity.cloned();
                o.versions = (version, version);
            })
        };
        let offering = server(|o| o.clients = ClientAuth::Optional(authority.pem()));
        let proving = server(|o| o.clients = ClientAuth::Required(authority.pem()));
        for server in [&offering, &proving] {
            let mut pair = Pair::joined(&with(Some(&good)), server);
            assert!(pair.server.session.negotiated().unwrap().peer_key.is_some());
            pair.talk();
            // A wrong one is refused by either.
            let mut pair = Pair::new(&with(Some(&bad)), server);
            assert_eq!(pair.settle().unwrap_err().kind(), TlsErrorKind::Certificate);
        }
        Pair::joined(&with(None), &offering).talk();
        let mut pair = Pair::new(&with(None), &proving);
        let error = pair.settle().unwrap_err();
        assert_eq!(error.to_string(), "the peer sent no certificate, and must");
        assert_eq!(error.kind(), TlsErrorKind::Certificate);
        // The client of TLS 1.3 was ready when it heard of it.
        let alert = std::mem::take(&mut pair.server.out);
        let error = pair.client.take(&alert).unwrap_err();
        let kind = if version == Version::Tls13 { TlsErrorKind::Alert } else { TlsErrorKind::Handshake };
        assert_eq!(error.kind(), kind, "{error}");
        // A server that asks for none gets none.
        let pair = Pair::joined(&with(Some(&good)), &server(|_| ()));
        assert_eq!(pair.server.session.negotiated().unwrap().peer_key, None);
    }
}

#[test]
fn invalid_options_are_explained() {
    let of_client = |change: &dyn Fn(&mut ClientOptions)| {
        let mut options = ClientOptions::default();
        change(&mut options);
        let error = ClientConfig::new(&options).unwrap_err();
        assert_eq!(error.kind(), TlsErrorKind::Options);
        error.to_string()
    };
    let text = of_client(&|o| o.suites = vec!["AES".to_owned()]);
    assert!(text.contains("\"AES\"") && text.contains("TLS_AES_128_GCM_SHA256"), "{text}");
    let text = of_client(&|o| o.groups = vec!["X448".to_owned()]);
    assert!(text.contains("\"X448\"") && text.contains("secp384r1"), "{text}");
    let text = of_client(&|o| o.authorities = Some(b"nothing".to_vec()));
    assert_eq!(text, "the authorities: there is no certificate in the PEM text");
    let text = of_client(&|o| o.authorities = Some(b"-----BEGIN CERTIFICATE-----\n".to_vec()));
    assert!(text.starts_with("the authorities: the PEM text cannot be read"), "{text}");
    let text = of_client(&|o| o.identity = Some(Identity { chain: p256().chain, key: rsa().key }));
    assert_eq!(text, "the certificate and its key: the key is not the certificate's");
    let text = of_client(&|o| o.identity = Some(Identity { chain: p256().chain, key: p256().chain }));
    assert!(text.starts_with("the key: there is none in the PEM text"), "{text}");
    let error = ServerConfig::new(&ServerOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), "a TLS server needs a certificate and its key");
}
