//! Makes what is asked of a key-value server from its flags, and rejects flags that are for another kind of server. Called by
//! `verbs::load::spec`.

use clap::ValueEnum;
use weir_model::keyvalue::KeyValue;
use weir_model::protocol::Protocol;
use weir_model::text::counted;

use super::flags::{Args, FormatArg};
use crate::exit::Failure;

/// What is asked of a key-value server; `None` of another.
///
/// # Errors
/// What the protocol does not allow, and several URLs.
pub fn keyvalue(args: &Args, protocol: Protocol) -> Result<Option<KeyValue>, Failure> {
    if !protocol.is_keyvalue() {
        return Ok(None);
    }
    if args.url.len() > 1 {
        let found = counted(args.url.len() as u64, "URL");
        return Err(Failure::wrong("URL", found, "one of a key-value server: a key is on one server"));
    }
    let (flags, default) = (&args.keyvalue, KeyValue::default());
    let keyvalue = KeyValue {
        operations: flags.ops.clone().unwrap_or(default.operations),
        value: flags.value.clone().unwrap_or(default.value),
        ttl: flags.ttl.map(|time| time.0),
        keys: flags.keys.unwrap_or(default.keys),
        key_count: flags.key_count,
        preload: flags.preload.unwrap_or(default.preload),
        share: flags.share,
        replicas: flags.replicas.unwrap_or(default.replicas),
    };
    keyvalue.check(protocol).map_err(|(key, found, wanted)| Failure::wrong(flag(key), found, wanted))?;
    Ok(Some(keyvalue))
}

/// The flag for a key of a file.
fn flag(key: &str) -> String {
    match key {
        "operations" => "--ops".to_owned(),
        key => format!("--{}", key.replace('_', "-")),
    }
}

/// Rejects flags of HTTP with the URL of a key-value server, flags of key-value servers with another, and formats that have
/// no table for the protocol.
///
/// # Errors
/// The first such flag.
pub fn check_flags(args: &Args, protocol: Protocol) -> Result<(), Failure> {
    let scheme = protocol.scheme();
    let other = |format: &FormatArg| format.is_keyvalue().is_some_and(|keyvalue| keyvalue != protocol.is_keyvalue());
    if let Some(format) = args.output.format.filter(other) {
        let name = format.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
        let wanted = Protocol::schemes(|other| format.is_keyvalue() == Some(other.is_keyvalue()));
        return Err(Failure::wrong("--format", format!("{name} has no table for {scheme}://"), wanted));
    }
    if protocol.is_keyvalue() {
        let Some((flag, instead)) = of_http(args) else { return Ok(()) };
        let found = format!("it is for HTTP, and the URL is {scheme}://");
        let wanted = match instead {
            "" => Protocol::schemes(|other| !other.is_keyvalue()),
            instead => instead.to_owned(),
        };
        return Err(Failure::wrong(flag, found, wanted));
    }
    let Some(flag) = of_keyvalue(args) else { return Ok(()) };
    let found = format!("it is for key-value servers, and the URL is {scheme}://");
    Err(Failure::wrong(flag, found, Protocol::schemes(Protocol::is_keyvalue)))
}

/// The first flag of HTTP that was given, and what key-value servers have instead.
fn of_http(args: &Args) -> Option<(&'static str, &'static str)> {
    let (request, responses, connections) = (&args.request, &args.responses, &args.connections);
    [
        ("--method", request.method.is_some(), "--ops"),
        ("--header", !request.header.is_empty(), ""),
        ("--body", request.body.is_some(), "--value"),
        ("--body-size", request.body_size.is_some(), "--value"),
        ("--urls", request.urls.is_some(), ""),
        ("--weight", !request.weight.is_empty(), "--ops"),
        ("--template", request.template, ""),
        ("--feed", request.feed.is_some(), ""),
        ("--request-ids", request.request_ids.is_some(), ""),
        ("--accept-encoding", request.accept_encoding.is_some(), ""),
        ("--expect-status", responses.expect_status.is_some(), ""),
        ("--expect-size", responses.expect_size.is_some(), ""),
        ("--expect-header", !responses.expect_header.is_empty(), ""),
        ("--expect-hash", responses.expect_hash.is_some(), ""),
        ("--expect-hash-of", responses.expect_hash_of.is_some(), ""),
        ("--http", connections.http.is_some(), ""),
        ("--streams", connections.streams.is_some(), "--in-flight"),
        ("--pipeline", connections.pipeline.is_some(), "--in-flight"),
        ("--close", connections.close, "--requests-per-connection, or --recycle"),
    ]
    .into_iter()
    .find_map(|(name, given, instead)| given.then_some((name, instead)))
}

/// The first flag of key-value servers that was given.
fn of_keyvalue(args: &Args) -> Option<&'static str> {
    let flags = &args.keyvalue;
    [
        ("--ops", flags.ops.is_some()),
        ("--value", flags.value.is_some()),
        ("--ttl", flags.ttl.is_some()),
        ("--keys", flags.keys.is_some()),
        ("--key-count", flags.key_count.is_some()),
        ("--preload", flags.preload.is_some()),
        ("--share", flags.share),
        ("--replicas", flags.replicas.is_some()),
        ("--in-flight", flags.in_flight.is_some()),
    ]
    .into_iter()
    .find_map(|(name, given)| given.then_some(name))
}
