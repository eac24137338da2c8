//! Checks before anything is started: file descriptors, and a folder name that products can use. `weir run`
//! calls them, so that a run that cannot succeed fails at once and says what would be right.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use weir_model::InputError;
use weir_model::product::Product;
use weir_model::suite::Suite;

use weir_product::render::quotable;

/// Descriptors a role needs beside its connections: files, rings, listeners, pipes.
const OTHER_DESCRIPTORS: u64 = 256;

/// Checks that the suite's connections fit the descriptors that a process may have on the proxy's host: a proxy holds each
/// downstream, and one upstream for each request that can be in flight on it. weir's own client and origin check theirs by
/// themselves; they need none for most of their connections.
///
/// # Errors
/// The load that does not fit, and what would.
pub fn descriptors(suite: &Suite, products: &BTreeMap<String, Product>, limit: u64) -> Result<(), InputError> {
    let starts_none = |name: &str| products.get(name).is_some_and(|product| product.program().is_none());
    if suite.entries.iter().all(|entry| starts_none(&entry.product)) {
        return Ok(());
    }
    for load in &suite.loads {
        // Upstream is HTTP/1.1: each request in flight has a connection of its own.
        let streams = suite.workloads.iter().map(|w| load.streams_of(w.protocol)).max().unwrap_or(1);
        let each = 1 + u64::from(streams);
        let connections = load.all_connections();
        let needed = u64::from(connections) * each + OTHER_DESCRIPTORS;
        if needed > limit {
            let name = &load.name;
            let most = limit.saturating_sub(OTHER_DESCRIPTORS) / each;
            return Err(InputError::of(
                format!("suite {}: load {name}: connections", suite.name),
                format!(
                    "{connections} connections need {needed} descriptors in the proxy, and its machine allows {limit} a process"
                ),
                match most {
                    0 => format!("a hard limit of {needed} and more (`ulimit -Hn`, /etc/security/limits.conf)"),
                    _ => format!(
                        "at most {most} connections, or a higher hard limit (`ulimit -Hn`, /etc/security/limits.conf)"
                    ),
                },
            ));
        }
    }
    Ok(())
}

/// Checks that the run's folder, which need not exist yet, has a name that can be put into products' configurations.
///
/// # Errors
/// The character that configuration files would take for something else.
pub fn folder(folder: &Path) -> Result<(), InputError> {
    let wanted = "a path of letters, digits, spaces and the like, because products' configurations name it";
    let fail = |found: String| InputError::of("--out", found, wanted);
    let path = canonical(folder).map_err(|e| fail(format!("{}: {e}", folder.display())))?;
    // Names of trials consist of letters, digits and `-`, so the run's folder decides for them, too.
    // The path is quoted, because the wrong character may be a line break.
    quotable(&path).map(drop).map_err(|why| fail(format!("the path {path:?} {why}")))
}

/// The path as it will be once the folder exists.
fn canonical(folder: &Path) -> std::io::Result<PathBuf> {
    let absolute = std::path::absolute(folder)?;
    for there in absolute.ancestors() {
        if let (Ok(real), Ok(rest)) = (there.canonicalize(), absolute.strip_prefix(there)) {
            // Joined with an empty path, a path would get a slash at its end.
            return Ok(if rest.as_os_str().is_empty() { real } else { real.join(rest) });
        }
    }
    Ok(absolute)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::suite;

    #[test]
    fn connections_fit_the_descriptors_or_it_is_said_how_many_would() {
        let mut suite = suite(1, 1, 1);
        suite.loads[0].connections = 22;
        suite.loads[1].connections = 500;
        let none = BTreeMap::new();
        let of = |suite: &Suite, limit| descriptors(suite, &none, limit);
        assert_eq!(of(&suite, 2 * 500 + OTHER_DESCRIPTORS), Ok(()));
        let refused = of(&suite, 300).expect_err("too few");
        assert_eq!(
            refused.to_string(),
            "suite suite: load half: connections: 500 connections need 1256 descriptors in the proxy, and its machine \
             allows 300 a process\n  expected: at most 22 connections, or a higher hard limit (`ulimit -Hn`, \
             /etc/security/limits.conf)"
        );
        suite.loads[1].connections = 22;
        assert_eq!(of(&suite, 300), Ok(()), "what was said to be right is right");
        let none_fits = of(&suite, 100).expect_err("none").to_string();
        assert!(
            none_fits.ends_with("expected: a hard limit of 300 and more (`ulimit -Hn`, /etc/security/limits.conf)"),
            "{none_fits}"
        );
        assert_eq!(
            descriptors(&suite, &[("p0".into(), crate::fixture::direct())].into(), 0),
            Ok(()),
            "there is no proxy"
        );
    }

    #[test]
    fn folders_that_a_configuration_cannot_name_are_refused() {
        let scratch = tempfile::tempdir().expect("a temporary folder");
        assert_eq!(folder(scratch.path()), Ok(()));
        assert_eq!(folder(&scratch.path().join("my runs/2026, first")), Ok(()), "need not exist");
        assert_eq!(folder(Path::new("relative")), Ok(()), "the checkout's own path is plain");
        for bad in ["a;b", "50%", "it's", "a\"b", "{x}", "a\nb", "$HOME"] {
            let refused = folder(&scratch.path().join(bad).join("run")).expect_err(bad).to_string();
            assert!(refused.starts_with("--out: the path ") && refused.contains("has '"), "{refused}");
            assert!(refused.contains("expected: a path of letters"), "{refused}");
        }
        // The name that counts is the one behind a link.
        let odd = scratch.path().join("o#dd");
        std::fs::create_dir(&odd).expect("made");
        std::os::unix::fs::symlink(&odd, scratch.path().join("plain")).expect("linked");
        assert!(folder(&scratch.path().join("plain/run")).is_err());
    }
}
