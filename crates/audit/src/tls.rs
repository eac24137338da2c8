//! What was negotiated.

use weir_model::load::{TlsResult, TlsVersion};
use weir_model::record::{Finding, Severity};
use weir_model::suite::{KeyType, Tls};

use super::{Check, Evidence, Kind, finding};

pub const CHECK: Check = Check {
    kind: Kind::Fairness,
    names: &["tls"],
    sees: "whether client and product negotiated the same TLS as all others: version, cipher suite, key exchange group, \
         kind of key, and resumption. A note names the result. A product with a levelled profile is suspect if it \
         uses another version, suite or group than its templates have, because it does other work",
    threshold: "any connection. Resumption, where the suite allows it: no session resumed by a load that made its \
         connections twice or more",
    source: "AES-256 has 14 rounds where AES-128 has 10, and handshakes of TLS 1.2 and 1.3 differ. A signature with RSA \
         of 2048 bits costs about twenty of P-256, and a resumed session needs none",
    remedy: "set versions and suites in the product's profile as its templates know them (tls_min, tls_max, tls12_suites, \
         tls13_suites). Or allow in the suite's [tls] only what all have",
    blind: "",
    provoked: false,
    run: Some(check),
};

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    if !e.protocol.is_tls() {
        return None;
    }
    let spoken = e.load.tls.as_ref()?;
    let words = describe(spoken);
    let differs = differences(e, spoken);
    if differs.is_empty() {
        return note(format!("{words}, as meant for all"));
    }
    if !e.levelled {
        return note(format!("{words}: what the product chooses by default"));
    }
    CHECK.finding(Severity::Warning, format!("{words}; meant for all is {}", differs.join(", ")))
}

/// What should have been negotiated and was not.
fn differences(e: &Evidence<'_>, spoken: &TlsResult) -> Vec<String> {
    let (version, suites) = expected(e.tls);
    let key = match e.tls.key {
        KeyType::P256 => "P-256",
        KeyType::Rsa2048 => "RSA",
    };
    let only = |names: &Names, meant: &[&str]| names.keys().all(|name| meant.contains(&name.as_str()));
    let mut differs = Vec::new();
    if !spoken.versions.keys().eq([&version]) || !only(&spoken.suites, suites) {
        differs.push(format!("{version} with {}", suites.join(", ")));
    }
    if !only(&spoken.groups, &[e.tls.group()]) {
        differs.push(format!("a key exchange by {}", e.tls.group()));
    }
    if !only(&spoken.keys, &[key]) {
        differs.push(format!("a certificate with a key of {key}"));
    }
    // The first connections of a load have no session to resume.
    let again = spoken.handshakes.saturating_sub(u64::from(e.connections));
    if e.tls.resumption && spoken.resumed == 0 && again >= u64::from(e.connections) {
        differs.push("resumption of sessions".to_owned());
    }
    differs
}

fn note(message: String) -> Option<Finding> {
    finding("tls", Severity::Note, message, "nothing to do: it is noted because it can differ")
}

/// The version that all products should use, and its cipher suites.
fn expected(tls: Tls) -> (String, &'static [&'static str]) {
    let newest = tls.versions.1;
    let suites = match newest {
        TlsVersion::Tls12 => tls.suites12_iana(),
        TlsVersion::Tls13 => tls.suites13(),
    };
    (format!("TLS {}", newest.as_str()), suites)
}

/// Connections by what was negotiated.
type Names = std::collections::BTreeMap<String, u64>;

/// `TLS 1.3 with TLS_AES_128_GCM_SHA256 by X25519 and P-256`.
fn describe(spoken: &TlsResult) -> String {
    let names = |counts: &Names| match counts.len() {
        0 => "no handshake".to_owned(),
        _ => counts.keys().map(String::as_str).collect::<Vec<_>>().join(" and "),
    };
    let mut words = format!("{} with {}", names(&spoken.versions), names(&spoken.suites));
    for (what, counts) in [("key exchange", &spoken.groups), ("certificate", &spoken.keys)] {
        if !counts.is_empty() {
            words.push_str(&format!(", {what} {}", names(counts)));
        }
    }
    if spoken.resumed > 0 {
        words.push_str(&format!(", {} of {} sessions resumed", spoken.resumed, spoken.handshakes));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Trial, good};
    use weir_model::suite::Protocol;

    fn spoke(version: &str, suite: &str) -> Trial {
        let mut trial = good();
        trial.protocol = Protocol::H2;
        trial.load.tls = Some(TlsResult {
            handshakes: 64,
            versions: [(version.to_owned(), 64)].into(),
            suites: [(suite.to_owned(), 64)].into(),
            ..TlsResult::default()
        });
        trial
    }

    #[test]
    fn the_negotiated_tls_is_noted_and_other_tls_than_intended_is_suspect() {
        assert_eq!(good().check(check), None, "no TLS");
        let found = spoke("TLS 1.3", "TLS_AES_128_GCM_SHA256").check(check).expect("says so");
        assert_eq!(found.severity, Severity::Note);
        assert!(found.message.starts_with("TLS 1.3 with TLS_AES_128_GCM_SHA256"), "{}", found.message);
        for other in
            [spoke("TLS 1.3", "TLS_AES_256_GCM_SHA384"), spoke("TLS 1.2", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256")]
        {
            assert_eq!(other.check(check).expect("fires").severity, Severity::Warning);
            let stock = Trial { levelled: false, ..other };
            assert_eq!(stock.check(check).expect("says so").severity, Severity::Note);
        }
        let mut both = spoke("TLS 1.3", "TLS_AES_128_GCM_SHA256");
        if let Some(tls) = &mut both.load.tls {
            tls.versions.insert("TLS 1.2".into(), 1);
        }
        assert_eq!(both.check(check).expect("fires").severity, Severity::Warning);
    }

    #[test]
    fn key_exchange_certificate_and_resumption_are_compared() {
        let as_meant = || {
            let mut trial = spoke("TLS 1.3", "TLS_AES_128_GCM_SHA256");
            let tls = trial.load.tls.as_mut().expect("spoken");
            (tls.groups, tls.keys) = ([("X25519".to_owned(), 64)].into(), [("P-256".to_owned(), 64)].into());
            trial
        };
        assert_eq!(as_meant().check(check).expect("says so").severity, Severity::Note);
        type Fault = fn(&mut Trial, &mut TlsResult);
        let faults: [(Fault, &str); 3] = [
            (|_, tls| tls.groups = [("secp384r1".to_owned(), 64)].into(), "meant for all is a key exchange by X25519"),
            (|_, tls| tls.keys = [("RSA".to_owned(), 64)].into(), "a certificate with a key of P-256"),
            (|trial, tls| (trial.tls.resumption, tls.handshakes) = (true, 1_000), "meant for all is resumption"),
        ];
        for (fault, words) in faults {
            let mut trial = as_meant();
            let mut tls = trial.load.tls.take().expect("spoken");
            fault(&mut trial, &mut tls);
            trial.load.tls = Some(tls);
            let found = trial.check(check).expect("fires");
            assert!(found.severity == Severity::Warning && found.message.contains(words), "{}", found.message);
        }
        let mut resumed = as_meant();
        resumed.tls.resumption = true;
        resumed.load.tls.as_mut().expect("spoken").handshakes = 100;
        assert_eq!(resumed.check(check).expect("says so").severity, Severity::Note, "first connections");
        (resumed.load.tls.as_mut().expect("spoken").handshakes, resumed.load.tls.as_mut().expect("spoken").resumed) =
            (1_000, 930);
        assert!(resumed.check(check).expect("says so").message.contains("930 of 1000 sessions resumed"));
    }

    #[test]
    fn the_older_version_is_expected_where_only_it_is_allowed() {
        let mut trial = spoke("TLS 1.2", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256");
        trial.tls.versions.1 = TlsVersion::Tls12;
        assert_eq!(trial.check(check).expect("says so").severity, Severity::Note);
        trial.tls.key = weir_model::suite::KeyType::Rsa2048;
        assert_eq!(trial.check(check).expect("fires").severity, Severity::Warning);
    }
}
