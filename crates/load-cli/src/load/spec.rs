//! Turns the flags of `weir load` into a load specification, and rejects flags that do not go together. Called by
//! `verbs::load`.

use weir_model::load::{
    Endpoint, LONGEST_S, LoadNumbers, LoadProtocol, LoadSpec, OfferedRate, RequestIds, RequestSpec, StreamSpec, Target,
};
use weir_model::protocol::Application;
use weir_model::suite::LoadKind;

use super::flags::Args;
use super::recorded::{self, Source};
use super::request::Mix;
use super::urls;
use super::{keyvalue, request, tls};
use crate::exit::Failure;

/// Length of a load without -d, seconds.
const DURATION_S: f64 = 10.0;

/// The warm-up, s, where none is given.
const WARMUP_S: f64 = 1.0;

/// The shortest window, s: that of a replay whose requests are all due at once.
const SHORTEST_S: f64 = 0.001;

/// What the flags ask for.
#[derive(Debug)]
pub struct Ordered {
    pub spec: LoadSpec,
    /// What the user has to know of it before it starts.
    pub note: Option<String>,
}

/// The specification.
///
/// # Errors
/// Flags that are wrong or do not go together.
pub fn load_spec(args: &Args) -> Result<Ordered, Failure> {
    let Source { lines, replay, note } = recorded::source(args)?;
    let spoken = urls::protocol(&lines).map_err(Failure::input)?;
    let (kind, duration_s) = kind(args, replay)?;
    keyvalue::check_flags(args, spoken)?;
    check(args, &kind)?;
    let protocol = match args.connections.http {
        _ if spoken.is_keyvalue() => LoadProtocol::of(spoken, 1).in_flight(args.keyvalue.in_flight.unwrap_or(1)),
        Some(Application::Http2) => LoadProtocol::Http2 { streams: args.connections.streams.unwrap_or(1) },
        Some(Application::Http3) => LoadProtocol::Http3 { streams: args.connections.streams.unwrap_or(1) },
        _ => LoadProtocol::Http1 { pipeline: args.connections.pipeline.unwrap_or(1) },
    };
    let warmup_s = warmup(args, &kind)?;
    let tls = tls::tls(args, spoken)?;
    let keyvalue = keyvalue::keyvalue(args, spoken)?;
    let feed = request::feed(args)?;
    let Mix { targets, mut requests, .. } = request::mix(args, &lines, feed.as_ref())?;
    if let Some(keyvalue) = &keyvalue {
        requests = RequestSpec::operations(&keyvalue.operations);
    }
    let timeout_s = args.responses.timeout.0.as_secs_f64();
    if let Some(kind) = args.responses.stream {
        let timeout = Some(args.responses.timeout.0);
        for one in &mut requests {
            one.request = kind.dressed(&one.request, timeout);
            one.expect = kind.expected(std::mem::take(&mut one.expect));
        }
    }
    if (args.load.connections as usize) < targets.len() {
        let found = format!("{} connections for {} servers", args.load.connections, targets.len());
        return Err(Failure::wrong("-c", found, "at least one for each"));
    }
    // Another load that the same origin sees has another number, probably.
    let number = LoadNumbers::new((weir_net::unix_ns() / 1_000) as u16).next();
    let one_clock = targets.iter().all(is_here);
    let names = args.request.request_ids.clone().map(|header| RequestIds::new(header, number, one_clock));
    let spec = LoadSpec {
        targets,
        requests,
        feed,
        protocol,
        keyvalue,
        login: lines.into_iter().find_map(|line| line.url.login),
        proxy_protocol: args.connections.proxy_protocol,
        tls,
        kind,
        think: args.load.think,
        bursts: None,
        connections: args.load.connections,
        max_connections: args.connections.max_connections,
        connect_rate: args.connections.connect_rate.map(|rate| rate.per_second()),
        requests_per_connection: args.connections.requests_per_connection,
        recycle_s: args.connections.recycle.map(|time| time.0.as_secs_f64()),
        request_ids: names,
        accept_encoding: args.request.accept_encoding,
        stream: args.responses.stream.map(|kind| StreamSpec { kind, one_clock }),
        cancel_each: args.responses.cancel_each,
        changes: None,
        slow_clients: Vec::new(),
        connection_close: args.connections.close,
        sources: args.connections.source.clone(),
        // With 0 the load decides by how many connections a thread can hold.
        threads: args.connections.threads.unwrap_or(0).min(args.load.connections),
        part: None,
        cpus: args.connections.cpus.clone().unwrap_or_default(),
        real_time: false,
        warmup_s,
        duration_s,
        timeout_s,
        connect_timeout_s: None,
        leave_queue: false,
        seed: args.load.seed,
        driver: args.connections.driver,
    };
    Ok(Ordered { spec, note })
}

/// Whether a target is on this machine, and so reads the same clock.
fn is_here(target: &Target) -> bool {
    match &target.address {
        Endpoint::Tcp(address) => address.ip().is_loopback(),
        Endpoint::Unix(_) => true,
    }
}

/// What is requested, for the first line of every output: `http://h/a`, `http://h/a and 2 more`.
pub fn title(args: &Args) -> String {
    let unix = args.connections.unix.iter().map(|path| path.display().to_string());
    let to = args.connections.connect_to.iter().map(|rule| rule.to.authority.clone());
    let by: Vec<String> = unix.chain(to).collect();
    let by = if by.is_empty() { String::new() } else { format!(" by {}", by.join(", ")) };
    match (&args.request.urls, args.url.as_slice()) {
        (Some(path), [server]) => format!("{}{by}, requests of {}", urls::shown(server), path.display()),
        (Some(path), _) => format!("URLs of {}{by}", path.display()),
        (None, [one]) => format!("{}{by}", urls::shown(one)),
        (None, [first, rest @ ..]) => format!("{} and {} more{by}", urls::shown(first), rest.len()),
        (None, []) => by,
    }
}

/// Flags that do not go together.
fn check(args: &Args, kind: &LoadKind<OfferedRate>) -> Result<(), Failure> {
    let (flags, connections) = (&args.connections, args.load.connections);
    let http1 = !matches!(flags.http, Some(Application::Http2 | Application::Http3));
    let (streams, pipeline) = (flags.streams.is_some(), flags.pipeline.unwrap_or(1) > 1);
    let only = |what: &str| format!("it is only for {what}");
    let most = flags.max_connections;
    for (is_wrong, flag, found, wanted) in [
        (http1 && streams, "--streams", only("HTTP/2 and HTTP/3"), "--http 2 or 3 with it"),
        (http1 && pipeline && flags.close, "--pipeline", only("keep-alive connections"), "without --close"),
        (!http1 && flags.pipeline.is_some(), "--pipeline", only("HTTP/1.1"), "--streams N with --http 2"),
        (
            flags.connect_rate.is_some() && (flags.close || flags.requests_per_connection == Some(1)),
            "--connect-rate",
            only("connections that are made before the load"),
            "more than one request for each connection",
        ),
        (!http1 && flags.close, "--close", only("HTTP/1.1"), "--requests-per-connection N with --http 2"),
        (
            most.is_some() && !kind.is_open(),
            "--max-connections",
            only("open loads"),
            "--rate, --ramp, --steps or --replay with it",
        ),
        (
            most.is_some_and(|most| most < connections),
            "--max-connections",
            format!("{} is less than -c {connections}", most.unwrap_or_default()),
            "at least as many as -c",
        ),
    ] {
        if is_wrong {
            return Err(Failure::wrong(flag, found, wanted));
        }
    }
    Ok(())
}

/// The length of the warm-up, s.
fn warmup(args: &Args, kind: &LoadKind<OfferedRate>) -> Result<f64, Failure> {
    let given = args.load.warmup.map(|time| time.0.as_secs_f64());
    if kind.has_warmup() {
        return Ok(given.unwrap_or(WARMUP_S));
    }
    match given {
        Some(given) if given > 0.0 => {
            let found =
                "it is only for loads of a given duration, and this one has a number of requests or their times";
            Err(Failure::wrong("--warmup", found, "no --warmup, or --warmup 0s"))
        }
        _ => Ok(0.0),
    }
}

/// The kind, and for how long.
fn kind(args: &Args, replay: Option<OfferedRate>) -> Result<(LoadKind<OfferedRate>, f64), Failure> {
    let load = &args.load;
    let given = load.duration.map(|time| time.0.as_secs_f64());
    let endless = given == Some(0.0);
    if endless && (load.ramp.is_some() || load.find_max.is_some()) {
        let what = if load.ramp.is_some() { "a ramp has an end" } else { "each trial of a search has an end" };
        return Err(Failure::wrong("-d", format!("0, which is until Ctrl-C: {what}"), "a length, such as 30s"));
    }
    let duration_s = if endless { LONGEST_S } else { given.unwrap_or(DURATION_S) };
    let open = |rate| LoadKind::Open { rate, arrivals: load.arrivals };
    if let Some(requests) = load.requests {
        return Ok((LoadKind::Count { requests }, LONGEST_S));
    }
    if let Some(rate) = load.rate {
        return Ok((open(OfferedRate::Constant(rate.per_second())), duration_s));
    }
    if let Some((from, to)) = load.ramp {
        return Ok((open(OfferedRate::Ramp { from, to }), duration_s));
    }
    if let Some(steps) = load.steps.clone() {
        let all: f64 = steps.iter().map(|step| step.for_s).sum();
        if let Some(given) = given.filter(|given| *given < all) {
            let found = format!("{given} s, and the steps take {all} s");
            return Err(Failure::wrong("-d", found, "no -d, or a longer one"));
        }
        return Ok((open(OfferedRate::Steps(steps)), given.unwrap_or(all)));
    }
    if let Some(replay) = replay {
        let last = match &replay {
            OfferedRate::Recorded(due) => due.last().map(|due| due.at_s),
            OfferedRate::Replay(due_s) => due_s.last().copied(),
            _ => None,
        };
        return Ok((open(replay), last.unwrap_or_default().max(SHORTEST_S)));
    }
    if load.find_max.is_some() {
        // The search sets the rate.
        return Ok((open(OfferedRate::Constant(1.0)), duration_s));
    }
    Ok((LoadKind::Closed, duration_s))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use weir_model::keyvalue::ValueSize;
    use weir_model::load::{Login, StreamKind};
    use weir_model::suite::Arrivals;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn read(text: &str) -> Result<LoadSpec, String> {
        let line = Line::try_parse_from(std::iter::once("load").chain(text.split(' '))).map_err(|e| e.to_string())?;
        load_spec(&line.args).map(|ordered| ordered.spec).map_err(|failure| failure.to_string())
    }

    #[test]
    fn flags_become_a_specification() {
        let spec = read("http://127.0.0.1:1/ -R 20k --arrivals poisson --http 2 --streams 8 -c 4 --max-connections 9")
            .expect("right");
        assert_eq!(spec.kind, LoadKind::open(20_000.0, Arrivals::Poisson));
        assert_eq!(
            (spec.protocol, spec.connections, spec.max_connections),
            (LoadProtocol::Http2 { streams: 8 }, 4, Some(9))
        );
        assert_eq!((spec.warmup_s, spec.duration_s, spec.timeout_s), (1.0, 10.0, 10.0));
        assert_eq!(spec.requests[0].request.method, "GET");
        let spec = read("http://127.0.0.1:1/ --steps 10x1s,20x500ms -b x --body-size 3").expect_err("two bodies");
        assert!(spec.contains("cannot be used with"), "{spec}");
        let spec = read("http://127.0.0.1:1/ --steps 10x1s,20x500ms --body-size 100").expect("right");
        assert_eq!((spec.duration_s, spec.requests[0].request.body.len()), (1.5, 100));
        assert_eq!(spec.requests[0].request.method, "POST");
        let spec = read("http://127.0.0.1:1/ --ramp 0..1k -d 3s --connect-rate 100 --source 127.0.0.2,127.0.0.3")
            .expect("right");
        assert_eq!((spec.duration_s, spec.connect_rate, spec.sources.len()), (3.0, Some(100.0), 2));
        let spec =
            read("http://127.0.0.1:1/ -n 10 --pipeline 4 --think 1ms --requests-per-connection 2").expect("right");
        assert_eq!((spec.protocol.streams(), spec.warmup_s, spec.requests_per_connection), (4, 0.0, Some(2)));
        assert!(spec.think.is_some());
        let spec = read("http://127.0.0.1:1/ -n 7 --warmup 0s").expect("none is what it has");
        assert_eq!(spec.warmup_s, 0.0);
        let spec = read("http://127.0.0.1:1/ -n 1.5M -c 1k --requests-per-connection 2k").expect("right");
        assert_eq!(spec.kind, LoadKind::Count { requests: 1_500_000 });
        assert_eq!((spec.connections, spec.requests_per_connection), (1_000, Some(2_000)));
    }

    #[test]
    fn a_streams_delay_needs_a_server_of_this_machine() {
        for (url, one_clock) in [("http://127.0.0.1:1/stream", true), ("http://192.0.2.7:1/stream", false)] {
            let spec = read(&format!("{url} --stream sse -c 3")).expect("right");
            assert_eq!(spec.stream, Some(StreamSpec { kind: StreamKind::Sse, one_clock }));
        }
        assert!(read("http://127.0.0.1:1/ --stream smoke").expect_err("none").contains("possible values: sse"));
    }

    #[test]
    fn a_load_may_be_long_or_last_until_it_is_stopped() {
        let of = |flags: &str| read(&format!("http://127.0.0.1:1/ {flags}"));
        for (flags, seconds, endless) in [
            ("-d 1m30s", 90.0, false),
            ("-d 72h -R 10", 259_200.0, false),
            ("-d 3d", 259_200.0, false),
            ("-d 0", LONGEST_S, true),
            ("-d 0 -R 10", LONGEST_S, true),
        ] {
            let spec = of(flags).expect("right");
            assert_eq!((spec.duration_s, spec.is_endless()), (seconds, endless), "{flags}");
        }
        assert!(!of("-n 5").expect("right").is_endless());
        for flags in ["-d 0 --ramp 1..2", "-d 0 --find-max p99<5ms"] {
            assert!(of(flags).expect_err(flags).contains("until Ctrl-C"), "{flags}");
        }
    }

    #[test]
    fn flags_become_a_key_value_specification() {
        let spec = read("redis://127.0.0.1:1 --ops set:1,get:3 --value 2000 -c 200 --rate 20k").expect("right");
        let keyvalue = spec.keyvalue.expect("of a key-value server");
        assert_eq!((keyvalue.operations.to_string().as_str(), keyvalue.value), ("set:1,get:3", ValueSize::Fixed(2000)));
        let names: Vec<_> = spec.requests.iter().map(|ask| (ask.name(), ask.weight)).collect();
        assert_eq!(names, [("set".to_owned(), 1), ("get".to_owned(), 3)]);
        assert_eq!((spec.protocol.application(), spec.protocol.streams()), (Application::Redis, 1));
        let spec = read(
            "junos://localhost --ops C:1,S:1,G:1,U:1,D:1 --ttl 30m --keys zipf:0.99 --preload 1M --in-flight 8 --recycle 9s \
             --share --tls-name x",
        )
        .expect("right");
        let keyvalue = spec.keyvalue.expect("of a key-value server");
        assert_eq!((keyvalue.ttl.map(|ttl| ttl.as_secs()), keyvalue.known()), (Some(1_800), 1_000_000));
        assert!(keyvalue.share && spec.tls.is_some() && spec.recycle_s == Some(9.0));
        assert_eq!((spec.protocol.application(), spec.protocol.streams()), (Application::Juno, 8));
        assert_eq!(spec.targets[0].authority, "localhost");
        let plain = read("redis://127.0.0.1:1").expect("right").keyvalue.expect("of a key-value server");
        assert_eq!(plain, weir_model::keyvalue::KeyValue::default());
        assert_eq!(
            read("redis://x --unix /run/a.sock").expect("right").targets[0].address.to_string(),
            "unix:/run/a.sock"
        );
    }

    #[test]
    fn a_login_is_taken_from_the_url_and_never_shown() {
        for (url, user, password, host) in [
            ("redis://me:secret@127.0.0.1:1", "me", "secret", "127.0.0.1:1"),
            ("rediss://:s%40%2Fcret@localhost", "", "s@/cret", "localhost"),
            ("redis://me:secret/s@ret@127.0.0.1", "me", "secret/s@ret", "127.0.0.1"),
        ] {
            let line = Line::try_parse_from(["load", url]).expect("flags");
            let spec = load_spec(&line.args).expect("right").spec;
            assert_eq!(spec.login, Some(Login { user: user.to_owned(), password: password.to_owned() }));
            assert_eq!(spec.targets[0].authority, host);
            let shown = title(&line.args);
            assert!(shown.contains(&format!("://{user}:***@{host}")), "{shown}");
            let all = format!("{shown} {spec:?} {}", serde_json::to_string(&spec).expect("written"));
            assert!(!all.contains("cret"), "{all}");
        }
        let wrong = "redis://secret@h redis://me:@h redis://me:secret%ff@h redis://me:secret@h/0 \
            redis://me:secret@h:0 redis://me:secret@ redis://me:secret@\u{e4} juno://me:secret@h \
            memcached://me:secret@h http://me:secret@h/ ftp://me:secret@h/ me:secret@h/";
        for url in wrong.split(' ') {
            let said = read(url).expect_err(url);
            assert!(said.contains("expected: ") && !said.contains("secret"), "{url}: {said}");
        }
    }

    #[test]
    fn what_is_wrong_for_a_key_value_server_is_refused() {
        for (line, word) in [
            ("juno://h --method PUT", "--ops"),
            ("juno://h -b x", "--value"),
            ("redis://h --pipeline 2", "--in-flight"),
            ("redis://h --streams 2", "--in-flight"),
            ("redis://h --http 2", "one of http://, https://"),
            ("redis://h --close", "--recycle"),
            ("redis://h --expect-status 200", "one of http://, https://"),
            ("redis://h -H a:b", "it is for HTTP, and the URL is redis://"),
            ("http://h/ --ops C:1", "one of redis://, rediss://, juno://, junos://, memcached://, memcacheds://"),
            ("http://h/ --in-flight 2", "it is for key-value servers, and the URL is http://"),
            ("https://h/ --value 20", "it is for key-value servers, and the URL is https://"),
            ("http://h/ --share", "--share"),
            ("redis://h --format hey", "no table for redis://"),
            ("juno://h --format wrk", "no table for juno://"),
            ("http://h/ --format junoload", "no table for http://"),
            ("juno://h --ops X:1", "is no operation"),
            ("juno://h --ops G:1", "--ops: get:1 reads an empty store"),
            ("juno://h --value 10", "--value"),
            ("juno://h --value 204801", "204800 bytes"),
            ("juno://h --ttl 73h", "259200s"),
            ("juno://h --replicas 1", "--replicas"),
            ("memcached://h --replicas 1", "--replicas"),
            ("memcached://h --value 1048576", "1048000 bytes"),
            ("memcached://h --ttl 721h", "2592000s"),
            ("juno://h --share", "--share"),
            ("juno://h --key-count 5", "--key-count"),
            ("juno://h --keys uniform", "--keys"),
            ("juno://h --keys uniform --key-count 5 --preload 6", "--preload"),
            ("juno://h --cacert /dev/null", "there is no certificate"),
            ("juno://h --resume", "junos:// in the URL"),
            ("juno://h --recycle 1s --close", "cannot be used with"),
            ("juno://h juno://i", "2 URLs"),
            ("juno://h redis://i", "some URLs are juno, and some redis"),
            ("juno://h http://i/", "some URLs are juno, and some http"),
            (
                "ftp://h",
                "one of http://, https://, redis://, rediss://, juno://, junos://, memcached://, memcacheds://",
            ),
        ] {
            let said = read(line).expect_err(line);
            assert!(said.contains(word) && !said.contains("Some("), "{line}: {said}");
        }
    }

    #[test]
    fn several_urls_are_several_targets_or_several_requests() {
        let spec =
            read("http://127.0.0.1:1/a http://127.0.0.1:1/b http://127.0.0.1:2/c --weight 9,1,1").expect("right");
        let asks: Vec<_> = spec.requests.iter().map(|ask| (ask.target, ask.weight)).collect();
        assert_eq!((spec.targets.len(), asks), (2, vec![(0, 9), (0, 1), (1, 1)]));
        let said = read("http://127.0.0.1:1/a http://127.0.0.1:2/c --weight 9,1").expect_err("nothing to weigh");
        assert!(said.contains("the only URL of 127.0.0.1:1"), "{said}");
    }

    #[test]
    fn a_unix_socket_is_one_target() {
        let spec = read("/x http://name/y --unix /run/a.sock").expect("right");
        assert!(spec.targets.iter().all(|target| target.address == Endpoint::Unix("/run/a.sock".into())));
        assert_eq!(spec.targets[1].authority, "name");
    }

    #[test]
    fn connections_go_elsewhere_and_the_name_stays() {
        let spec =
            read("https://shop.invalid/x https://shop.invalid:8443/y -c 2 --connect-to 127.0.0.1:9443").expect("right");
        let targets: Vec<_> =
            spec.targets.iter().map(|target| (target.address.to_string(), target.authority.as_str())).collect();
        let address = "127.0.0.1:9443".to_owned();
        assert_eq!(targets, [(address.clone(), "shop.invalid"), (address, "shop.invalid:8443")]);
        // In the clear, a connection may carry requests to several hosts.
        let spec = read("http://a.invalid/ http://b.invalid/ http://a.invalid/x -c 1 --connect-to 127.0.0.1:9080")
            .expect("right");
        let hosts: Vec<_> = spec.requests.iter().map(|ask| (ask.target, ask.request.header("host"))).collect();
        assert_eq!((spec.targets.len(), hosts), (1, vec![(0, None), (0, Some("b.invalid")), (0, None)]));
        let spec = read("http://a.invalid/ http://127.0.0.1:7/ --connect-to a.invalid:80:[::1]:8080").expect("right");
        let addresses: Vec<_> = spec.targets.iter().map(|target| target.address.to_string()).collect();
        assert_eq!(addresses, ["[::1]:8080", "127.0.0.1:7"]);
        let line = Line::try_parse_from(["load", "http://a.invalid/", "--connect-to", "127.0.0.1:1"]).expect("flags");
        assert_eq!(title(&line.args), "http://a.invalid/ by 127.0.0.1:1");
        for (line, word) in [
            ("http://a.invalid/ --connect-to b.invalid:80:127.0.0.1:1", "no URL is of the server"),
            ("http://a.invalid/ --connect-to 127.0.0.1", "HOST1:PORT1:HOST2:PORT2"),
            ("http://a.invalid/ --connect-to 127.0.0.1:1 --unix /x", "cannot be used with"),
        ] {
            let said = read(line).expect_err(line);
            assert!(said.contains(word), "{said}");
        }
    }

    #[test]
    fn an_abstract_unix_socket_has_a_name_instead_of_a_path() {
        let spec = read("/x --unix @gateway").expect("right");
        assert_eq!(spec.targets[0].address.to_string(), "unix:@gateway");
    }

    #[test]
    fn tls_goes_with_https_alone() {
        let spec = read("https://127.0.0.1:1/ --tls-version 1.3 --tls-suite A,B --resume --tls-name x").expect("right");
        let tls = spec.tls.expect("https");
        assert!(tls.resumption && tls.suites == ["A", "B"] && tls.server_name.as_deref() == Some("x"));
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "-----BEGIN CERTIFICATE-----\n").expect("written");
        let cacert = format!("--cacert {}", file.path().display());
        for wrong in ["--tls-version 1.3", "--resume", "--tls-name x", "--tls-suite A", "--tls-group A", &cacert] {
            let said = read(&format!("http://127.0.0.1:1/ {wrong}")).expect_err(wrong);
            assert!(said.contains("https:// in the URL"), "{said}");
        }
        assert!(read("https://127.0.0.1:1/ http://127.0.0.1:1/").expect_err("both").contains("some http"));
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        for (flags, word) in [
            ("--streams 2", "--http 2"),
            ("--http 2 --pipeline 2", "--streams"),
            ("--http 2 --close", "--requests-per-connection"),
            ("--pipeline 2 --close", "without --close"),
            ("--max-connections 100", "open loads"),
            ("-R 10 -c 10 --max-connections 5", "at least as many"),
            ("-R 10 --think 1ms", "cannot be used with"),
            ("-R 10 --ramp 1..2", "cannot be used with"),
            ("-n 10 -R 10", "cannot be used with"),
            ("-n 10 -d 10s", "cannot be used with"),
            ("-n 10 --warmup 1s", "no --warmup, or --warmup 0s"),
            ("--steps 10x2s -d 1s", "the steps take 2 s"),
            ("--arrivals poisson", "required"),
            ("--budget 1s", "required"),
            ("--weight 1,2", "2 weights for 1 URL"),
            ("--expect-hash 12 --expect-hash-of /dev/null", "cannot be used with"),
            ("--replay /no/such/file", "/no/such/file"),
            ("--expect-hash-of /no/such/file", "/no/such/file"),
            ("--body-size 2GiB", "at most 1GiB"),
            ("--close --requests-per-connection 2", "cannot be used with"),
            ("--requests-per-connection 1 --connect-rate 5", "more than one request for each connection"),
            ("-n 0", "is too few"),
            ("-c 5000M", "is too many"),
            ("-n many", "no count"),
            ("-d 30", "has no unit"),
            ("-d 0s", "takes no time"),
            ("-b @/no/such/file", "/no/such/file: No such file"),
            ("--template", "no field in GET /"),
            ("--template -b {{sec}}", "{{sec}}"),
            ("--feed /no/such/file", "/no/such/file"),
            ("--feed-order random", "required"),
            ("--find-max p99<5ms --csv x", "cannot be used with"),
            ("--find-max p99", "compares nothing"),
        ] {
            let said = read(&format!("http://127.0.0.1:1/ {flags}")).expect_err(flags);
            assert!(said.contains(word), "{flags}: {said}");
        }
    }
}
