//! Writes the keys that a key-value load begins with, by a counted load of its own.

use weir_model::keyvalue::{KeyChoice, KeyValue, Mix, Operation};
use weir_model::load::{LONGEST_S, LoadResult, LoadSpec, RequestSpec, TlsResult};
use weir_model::suite::LoadKind;

use crate::error::LoadError;

/// More connections write no faster, and might be more than a server takes in a closed load.
const CONNECTIONS: u32 = 64;

/// The load that writes the keys with which a load begins, if there are keys for this client to write. It sets each key once.
pub fn preload_spec(load: &LoadSpec) -> Option<LoadSpec> {
    let keyvalue = load.keyvalue.as_ref().filter(|keyvalue| keyvalue.preload > 0)?;
    let operations = Mix(vec![(Operation::Set, 1)]);
    let keys = keyvalue.preload;
    let connections = u64::from(load.connections.min(CONNECTIONS)).min(keys) as u32;
    // Fewer connections may have fewer threads, of which some clients then have none.
    let (threads, part) = match load.part {
        Some(part) => (load.threads.min(connections), Some(part.below(connections)?)),
        None => (load.threads, None),
    };
    Some(LoadSpec {
        requests: RequestSpec::operations(&operations),
        keyvalue: Some(KeyValue {
            operations,
            keys: KeyChoice::Sequential,
            key_count: Some(keys),
            preload: 0,
            share: true,
            ..keyvalue.clone()
        }),
        kind: LoadKind::Count { requests: keys },
        think: None,
        bursts: None,
        connections,
        threads,
        part,
        max_connections: None,
        connect_rate: None,
        requests_per_connection: None,
        warmup_s: 0.0,
        duration_s: LONGEST_S,
        ..load.clone()
    })
}

/// Whether all keys were written, so many (`of`).
///
/// # Errors
/// [`LoadError::Preload`], and [`LoadError::Stopped`] where it was stopped.
pub fn check_preload(result: &LoadResult, of: u64) -> Result<(), LoadError> {
    let written = result.total.successful;
    match written == of {
        true => Ok(()),
        false if result.cut_short => Err(LoadError::Stopped),
        false => Err(LoadError::Preload { written, of, errors: result.list_errors(&result.total.errors) }),
    }
}

/// Adds the counts of the preload to those of the client's whole life.
pub fn add_preload(result: &mut LoadResult, mut preload: LoadResult) {
    // These two count the window only.
    (preload.total.successful_in_window, preload.total.successful_body_bytes_in_window) = (0, 0);
    result.total.add(&preload.total);
    result.connections_used += preload.connections_used;
    result.most_open = result.most_open.max(preload.most_open);
    if let (Some(tls), Some(more)) = (&mut result.tls, preload.tls) {
        add_tls(tls, &more);
    }
    result.preload = Some(preload.total);
}

/// Adds the TLS statistics of other connections.
pub(crate) fn add_tls(tls: &mut TlsResult, more: &TlsResult) {
    tls.handshakes += more.handshakes;
    tls.resumed += more.resumed;
    tls.failed += more.failed;
    for (to, from) in [
        (&mut tls.versions, &more.versions),
        (&mut tls.suites, &more.suites),
        (&mut tls.groups, &more.groups),
        (&mut tls.keys, &more.keys),
    ] {
        from.iter().for_each(|(name, n)| *to.entry(name.clone()).or_default() += n);
    }
}
