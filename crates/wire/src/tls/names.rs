//! Cipher suites and key exchange groups by name: the supported ones, and the selection that options make.

use rustls::crypto::{SupportedKxGroup, aws_lc_rs as provider};
use rustls::{CipherSuite, NamedGroup, SupportedCipherSuite};

use super::error::{TlsError, TlsErrorKind};
use super::options::Version;

/// Other common names, in lower case, and IANA's.
const ALIASES: [(&str, &str); 11] = [
    ("ecdhe-ecdsa-aes256-gcm-sha384", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"),
    ("ecdhe-ecdsa-aes128-gcm-sha256", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"),
    ("ecdhe-ecdsa-chacha20-poly1305", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"),
    ("ecdhe-rsa-aes256-gcm-sha384", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"),
    ("ecdhe-rsa-aes128-gcm-sha256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"),
    ("ecdhe-rsa-chacha20-poly1305", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"),
    ("p-256", "secp256r1"),
    ("p-384", "secp384r1"),
    ("prime256v1", "secp256r1"),
    ("p256", "secp256r1"),
    ("p384", "secp384r1"),
];

/// The supported cipher suites, by their IANA names, best first, each with its version.
pub fn suites() -> impl Iterator<Item = (&'static str, Version)> {
    provider::ALL_CIPHER_SUITES.iter().map(|suite| (suite_name(suite.suite()), version_of(*suite)))
}

/// The supported key exchange groups, best first.
pub fn groups() -> impl Iterator<Item = &'static str> {
    all_groups().into_iter().map(|group| group_name(group.name()))
}

/// A suite's IANA name. (rustls calls TLS 1.3's `TLS13_…`, to distinguish them.)
pub(super) fn suite_name(suite: CipherSuite) -> &'static str {
    match suite {
        CipherSuite::TLS13_AES_128_GCM_SHA256 => "TLS_AES_128_GCM_SHA256",
        CipherSuite::TLS13_AES_256_GCM_SHA384 => "TLS_AES_256_GCM_SHA384",
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => "TLS_CHACHA20_POLY1305_SHA256",
        other => other.as_str().unwrap_or("unknown suite"),
    }
}

/// A group's IANA name.
pub(super) fn group_name(group: NamedGroup) -> &'static str {
    match group {
        NamedGroup::secp256r1MLKEM768 => "SecP256r1MLKEM768",
        other => other.as_str().unwrap_or("unknown group"),
    }
}

/// The version of a suite.
pub(super) fn version_of(suite: SupportedCipherSuite) -> Version {
    match suite {
        SupportedCipherSuite::Tls12(_) => Version::Tls12,
        SupportedCipherSuite::Tls13(_) => Version::Tls13,
    }
}

/// The requested suites, in that order; all, if none is named.
pub(super) fn chosen_suites(
    names: &[String],
    versions: (Version, Version),
) -> Result<Vec<SupportedCipherSuite>, TlsError> {
    if versions.0 > versions.1 {
        return Err(wrong(format!("TLS from {} to {} is no range", versions.0, versions.1)));
    }
    if names.is_empty() {
        return Ok(provider::ALL_CIPHER_SUITES.to_vec());
    }
    let mut chosen = Vec::with_capacity(names.len());
    for name in names {
        let wanted = iana(name);
        let found =
            provider::ALL_CIPHER_SUITES.iter().find(|suite| suite_name(suite.suite()).eq_ignore_ascii_case(wanted));
        let Some(suite) = found else {
            let there_are: Vec<_> = suites().map(|(name, _)| name).collect();
            return Err(wrong(format!("there is no TLS cipher suite \"{name}\" here; there are {}", list(&there_are))));
        };
        chosen.push(*suite);
    }
    let usable = |suite: &SupportedCipherSuite| (versions.0..=versions.1).contains(&version_of(*suite));
    if !chosen.iter().any(usable) {
        let for_them: Vec<_> =
            suites().filter(|(_, v)| (versions.0..=versions.1).contains(v)).map(|(name, _)| name).collect();
        let range =
            if versions.0 == versions.1 { versions.0.to_string() } else { format!("{} to {}", versions.0, versions.1) };
        return Err(wrong(format!(
            "none of the cipher suites asked for ({}) is of {range}; of {range} are {}",
            names.join(", "),
            list(&for_them)
        )));
    }
    Ok(chosen)
}

/// The requested groups, in that order; all, if none is named.
pub(super) fn chosen_groups(names: &[String]) -> Result<Vec<&'static dyn SupportedKxGroup>, TlsError> {
    if names.is_empty() {
        return Ok(all_groups());
    }
    let find = |name: &String| {
        let wanted = iana(name);
        let found = all_groups().into_iter().find(|group| group_name(group.name()).eq_ignore_ascii_case(wanted));
        found.ok_or_else(|| {
            let there_are: Vec<_> = groups().collect();
            wrong(format!("there is no key exchange group \"{name}\" here; there are {}", list(&there_are)))
        })
    };
    names.iter().map(find).collect()
}

/// All groups, X25519 first: the peers use it by default. The hybrids come last, because their key shares are over 1
/// KB.
fn all_groups() -> Vec<&'static dyn SupportedKxGroup> {
    use provider::kx_group::{SECP256R1, SECP256R1MLKEM768, SECP384R1, X25519, X25519MLKEM768};
    vec![X25519, SECP256R1, SECP384R1, X25519MLKEM768, SECP256R1MLKEM768]
}

/// IANA's name for a name that may be a common alias.
fn iana(name: &str) -> &str {
    ALIASES.iter().find(|(alias, _)| alias.eq_ignore_ascii_case(name)).map_or(name, |(_, iana)| iana)
}

/// `a, b and c`
fn list(names: &[&str]) -> String {
    match names {
        [] => "none".to_owned(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

fn wrong(text: String) -> TlsError {
    TlsError::new(TlsErrorKind::Options, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: (Version, Version) = (Version::Tls12, Version::Tls13);

    #[test]
    fn names_are_ianas_and_are_recognised() {
        for (name, version) in suites() {
            let chosen = chosen_suites(&[name.to_owned()], BOTH).unwrap();
            assert_eq!(suite_name(chosen[0].suite()), name);
            assert_eq!(version_of(chosen[0]), version);
            assert!(name.starts_with("TLS_"), "{name}");
        }
        for name in groups() {
            assert_eq!(group_name(chosen_groups(&[name.to_owned()]).unwrap()[0].name()), name);
        }
        assert_eq!(groups().next(), Some("X25519"));
        assert_eq!(suites().count(), 9);
    }

    #[test]
    fn other_names_are_understood() {
        for (alias, name) in ALIASES {
            let alias = [alias.to_uppercase()];
            if name.starts_with("TLS_") {
                assert_eq!(suite_name(chosen_suites(&alias, BOTH).unwrap()[0].suite()), name);
            } else {
                assert_eq!(group_name(chosen_groups(&alias).unwrap()[0].name()), name);
            }
        }
    }

    #[test]
    fn unknown_names_are_reported_with_the_known_ones() {
        let error = chosen_suites(&["TLS_RSA_WITH_AES_128_CBC_SHA".to_owned()], BOTH).unwrap_err().to_string();
        assert!(
            error.contains("\"TLS_RSA_WITH_AES_128_CBC_SHA\"") && error.contains("TLS_AES_128_GCM_SHA256"),
            "{error}"
        );
        let error = chosen_groups(&["x448".to_owned()]).err().unwrap().to_string();
        assert!(error.contains("\"x448\"") && error.contains("X25519"), "{error}");
        let only13 = (Version::Tls13, Version::Tls13);
        let error = chosen_suites(&["ECDHE-RSA-AES128-GCM-SHA256".to_owned()], only13).unwrap_err().to_string();
        assert!(error.contains("TLS 1.3 are TLS_AES_256"), "{error}");
        assert!(chosen_suites(&[], (Version::Tls13, Version::Tls12)).is_err());
    }
}
