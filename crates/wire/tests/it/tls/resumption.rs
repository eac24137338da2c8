//! Sessions that are resumed, and those that are not.

use weir_wire::tls::{ClientConfig, ServerConfig, Version};

use super::pair::{Pair, client, server};

const VERSIONS: [Version; 2] = [Version::Tls12, Version::Tls13];

fn of(version: Version, resumption: bool) -> ClientConfig {
    client(|o| {
        o.versions = (version, version);
        o.resumption = resumption;
    })
}

/// Whether the next connection resumes; both halves say the same.
fn resumes(client: &ClientConfig, server: &ServerConfig) -> bool {
    let mut pair = Pair::joined(client, server);
    pair.talk();
    let resumed = pair.client.session.negotiated().unwrap().resumed;
    assert_eq!(pair.server.session.negotiated().unwrap().resumed, resumed);
    resumed
}

#[test]
fn a_session_is_resumed_when_both_want_it() {
    let keeping = server(|_| ());
    let forgetting = server(|o| o.resumption = false);
    for version in VERSIONS {
        let config = of(version, true);
        assert!(!resumes(&config, &keeping), "the first is none");
        for _ in 0..20 {
            assert!(resumes(&config, &keeping));
        }
        // A clone shares the tickets; a thread's own has none.
        assert!(resumes(&config.clone(), &keeping));
        let own = config.for_thread();
        assert!(!resumes(&own, &keeping));
        assert!(resumes(&own, &keeping));
        // Either can be against it.
        let without = of(version, false);
        assert!(!resumes(&without, &keeping) && !resumes(&without, &keeping));
        let config = of(version, true);
        assert!(!resumes(&config, &forgetting) && !resumes(&config, &forgetting));
        // Another process's ticket is of no use, and does no harm.
        let config = of(version, true);
        assert!(!resumes(&config, &keeping));
        assert!(!resumes(&config, &server(|_| ())));
    }
}

#[test]
fn connections_that_begin_together_resume_together() {
    let server = server(|_| ());
    let config = of(Version::Tls13, true);
    for round in 0..2 {
        let pairs: Vec<Pair> = (0..100).map(|_| Pair::new(&config, &server)).collect();
        let mut resumed = 0;
        for mut pair in pairs {
            pair.settle().unwrap();
            resumed += usize::from(pair.client.session.negotiated().unwrap().resumed);
        }
        assert_eq!(resumed, round * 100);
    }
}

#[test]
fn a_resumed_session_reports_its_parameters() {
    let server = server(|o| o.alpn = vec!["h2".to_owned()]);
    for version in VERSIONS {
        let config = client(|o| {
            o.versions = (version, version);
            o.resumption = true;
            o.alpn = Some("h2".to_owned());
        });
        let first = Pair::joined(&config, &server);
        let second = Pair::joined(&config, &server);
        let (first, second) = (first.client.session.negotiated().unwrap(), second.client.session.negotiated().unwrap());
        assert!(second.resumed);
        assert_eq!((first.suite, &first.alpn, first.version), (second.suite, &second.alpn, second.version));
        // TLS 1.2 exchanges no keys then; TLS 1.3 does.
        assert_eq!(second.group.is_some(), version == Version::Tls13);
    }
}
