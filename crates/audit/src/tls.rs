//! Fairness: did client and product negotiate the TLS version and cipher suite that is intended for all products of the
//! run? Listed in `CHECKS`.
//!
//! A note reports what was negotiated. Products with a levelled profile should use the newest version that the suite allows, with the
//! cipher suite of their templates. A product that uses another is suspect, because it does other work: AES-256 has 14 rounds
//! where AES-128 has 10, and the handshakes of TLS 1.2 and 1.3 differ. There is no threshold; any connection counts.

use weir_model::load::{TlsResult, TlsVersion};
use weir_model::record::{Finding, Severity};
use weir_model::suite::Tls;

use super::{Evidence, finding};

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    if !e.protocol.is_tls() {
        return None;
    }
    let spoken = e.load.tls.as_ref()?;
    let (version, suites) = expected(e.tls);
    let words = describe(spoken);
    if spoken.versions.keys().eq([&version]) && spoken.suites.keys().all(|suite| suites.contains(&suite.as_str())) {
        return note(format!("{words}, as meant for all"));
    }
    if !e.levelled {
        return note(format!("{words}: what the product chooses by default"));
    }
    finding(
        "tls",
        Severity::Warning,
        format!("{words}; meant for all is {version} with {}", suites.join(", ")),
        "set versions and suites in the product's profile as its templates know them (tls_min, tls_max, tls12_suites, \
         tls13_suites), or allow in the suite's [tls] only what all have",
    )
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

/// `TLS 1.3 with TLS_AES_128_GCM_SHA256`.
fn describe(spoken: &TlsResult) -> String {
    let names = |counts: &std::collections::BTreeMap<String, u64>| match counts.len() {
        0 => "no handshake".to_owned(),
        _ => counts.keys().map(String::as_str).collect::<Vec<_>>().join(" and "),
    };
    format!("{} with {}", names(&spoken.versions), names(&spoken.suites))
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
    fn the_older_version_is_expected_where_only_it_is_allowed() {
        let mut trial = spoke("TLS 1.2", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256");
        trial.tls.versions.1 = TlsVersion::Tls12;
        assert_eq!(trial.check(check).expect("says so").severity, Severity::Note);
        trial.tls.key = weir_model::suite::KeyType::Rsa2048;
        assert_eq!(trial.check(check).expect("fires").severity, Severity::Warning);
    }
}
