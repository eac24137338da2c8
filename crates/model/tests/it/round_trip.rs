//! What is written reads back the same, the files that weir ships are right, and no text makes a parser panic.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;
use weir_model::Catalogue;
use weir_model::as_published::AsPublished;
use weir_model::coding::Coding;
use weir_model::fault::{Fault, FaultKind};
use weir_model::keyvalue::KeyValue;
use weir_model::load::{StreamKind, TlsVersion};
use weir_model::product::{BuildTool, Install, Need, Product, ProductKind, Reload, RustNeed, Signal, Source};
use weir_model::record::Role;
use weir_model::suite::{
    Arrivals, Entry, EntryPattern, Expect, KeyExchange, KeyType, Load, LoadKind, Protocol, RateBase, RateSpec, Request,
    RequestIdSetting, Scale, ScaleOverride, Series, Suite, Tls, Workload,
};
use weir_model::topology::{HostSpec, Made, Netns, Pods, Reach};
use weir_model::units::{BitRate, ByteCount, Share};
use weir_model::{Condition, Topology};

/// Has every product, with the two profiles that suites may rely on.
struct Everything;

impl Catalogue for Everything {
    fn products(&self) -> Vec<String> {
        Vec::new()
    }

    fn profiles(&self, _: &str) -> Option<Vec<String>> {
        Some(vec!["stock".to_owned(), "tuned".to_owned()])
    }

    fn origins(&self) -> Vec<String> {
        vec!["a-server".to_owned()]
    }
}

fn name() -> impl Strategy<Value = String> {
    "[a-z0-9][a-z0-9-]{0,8}"
}

fn names(most: usize) -> impl Strategy<Value = Vec<String>> {
    proptest::collection::btree_set(name(), 1..=most).prop_map(|names| names.into_iter().collect())
}

/// A text as it may stand in a title: any, but not empty.
fn line() -> impl Strategy<Value = String> {
    any::<String>().prop_map(|text| format!("x{text}"))
}

fn duration() -> impl Strategy<Value = Duration> {
    prop_oneof![(1u64..100_000_000).prop_map(Duration::from_micros), (1u64..100).prop_map(Duration::from_secs)]
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(Vec::new()),
        any::<Vec<u8>>(),
        any::<String>().prop_map(String::into_bytes),
        (1usize..3000).prop_map(|size| (b'a'..=b'z').cycle().take(size).collect()),
    ]
}

fn headers() -> impl Strategy<Value = Vec<(String, String)>> {
    // Names differ: a file cannot say that two headers of one name have another between them.
    let names = proptest::collection::btree_set("[!#$%&'*+.^_`|~A-Za-z0-9-]{1,9}", 0..4);
    let names = names.prop_map(Vec::from_iter).prop_shuffle();
    (names, proptest::collection::vec("([!-~é]([ -~\t]{0,6}[!-~])?)?", 0..8)).prop_map(|(names, values)| {
        let mut values = values.into_iter().peekable();
        let mut flat = Vec::new();
        for name in names {
            flat.push((name.clone(), values.next().unwrap_or_default()));
            if values.peek().is_some_and(|value| value.len() % 2 == 0) {
                flat.push((name, values.next().unwrap_or_default()));
            }
        }
        flat
    })
}

prop_compose! {
    fn workload(name: String)(
        title in line(),
        method in proptest::sample::select(vec!["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"]),
        path in "/[!-~]{0,20}",
        headers in headers(),
        body in body(),
        protocol in proptest::sample::select(Protocol::all().collect::<Vec<_>>()),
        status in proptest::option::of(200u16..=599),
        size in any::<Option<u64>>(),
        hash in any::<Option<u64>>(),
        errors in proptest::sample::select(vec![None, Some(Share::THOUSANDTH)]),
        (by_product, any_body) in any::<(bool, bool)>(),
        (keyvalue, origins) in (keyvalue(), proptest::option::of(1u32..=64)),
        origin_headers in proptest::sample::select(vec![vec![], vec![("Server".to_owned(), "x/1".to_owned()), ("Date".to_owned(), "now".to_owned())]]),
        accept_encoding in proptest::sample::select(vec![None, Some(Coding::Gzip)]),
        stream in proptest::sample::select(vec![None, Some(StreamKind::Sse)]),
        names in proptest::sample::select(vec![
            None, Some(RequestIdSetting::Given(true)), Some(RequestIdSetting::Given(false)), Some(RequestIdSetting::In("X-Unlikely-Id".to_owned()))
        ]),
    ) -> Workload {
        if protocol.is_keyvalue() {
            let replicas = if protocol.has_replicas() { keyvalue.replicas } else { 0 };
            let keyvalue = KeyValue { replicas, ..keyvalue };
            return Workload { name: name.clone(), title, protocol, keyvalue: Some(keyvalue), origins,
                request: Request::get(""), ..Workload::default() };
        }
        Workload {
            name: name.clone(),
            title,
            protocol,
            request: Request { method: method.to_owned(), path, headers, body },
            expect: Expect { status, size, hash, any_body: any_body && size.or(hash).is_none(), errors, headers: vec![] },
            by_product,
            request_ids: names,
            accept_encoding: accept_encoding.filter(|_| stream.is_none()),
            stream: stream.filter(|_| hash.is_none() && method != "HEAD"),
            origin_headers,
            origins,
            ..Workload::default()
        }
    }
}

prop_compose! {
    fn keyvalue()(
        operations in proptest::sample::select(vec!["C:1,S:1,G:1,U:1,D:1", "C:10,G:30,D:5", "set:1,get:3"]),
        value in proptest::sample::select(vec!["2000", "2000,4500", "100..4000"]),
        keys in proptest::sample::select(vec!["fresh", "sequential", "uniform", "zipf:0.99"]),
        ttl_s in proptest::option::of(1u64..259_200),
        more in 0u64..1_000_000_000,
        preload in 1u64..1_000_000_000,
        (share, replicas) in (any::<bool>(), 0u32..5),
    ) -> KeyValue {
        KeyValue {
            operations: operations.parse().expect("a mix"),
            value: value.parse().expect("a length"),
            keys: keys.parse().expect("a choice"),
            ttl: ttl_s.map(Duration::from_secs),
            key_count: (keys != "fresh").then_some(preload + more),
            preload,
            share: share && keys != "fresh",
            replicas,
        }
    }
}

prop_compose! {
    fn fault()(
        what in proptest::sample::select(vec![FaultKind::Kill, FaultKind::Freeze, FaultKind::DiskFull]),
        part in proptest::sample::select(vec!["all", "front", "first", "store-1"]),
        (at_ms, lasts_ms, size) in (0u64..100, 1u64..100, 1u64..),
    ) -> Fault {
        let disk = (what == FaultKind::DiskFull).then_some(ByteCount(size));
        let time = Duration::from_millis;
        Fault { what, part: part.to_owned(), at: time(at_ms), lasts: time(lasts_ms), disk, ..Fault::default() }
    }
}

prop_compose! {
    /// `closed` names the closed loads before this one.
    fn load(name: String, closed: Vec<String>)(
        title in line(),
        open in any::<bool>(),
        rate in 1e-3f64..1e9,
        share in 0.001f64..=1.5,
        base in any::<proptest::sample::Index>(),
        fixed in any::<bool>(),
        slowest in 0u8..3,
        poisson in any::<bool>(),
        other in 0u8..4,
        series in 0u8..4,
        (steady, saturating, keep) in (proptest::option::of(duration()), any::<bool>(), any::<bool>()),
        least_cores in proptest::option::of(1u32..),
        connections in 1u32..,
        streams in 1u32..,
        warmup in duration(),
        duration in duration(),
        timeout in duration(),
        (faults, close) in (proptest::collection::vec(fault(), 0..3), any::<bool>()),
        control in any::<Option<bool>>(),
    ) -> Load {
        let rate = if fixed || closed.is_empty() {
            RateSpec::Fixed(rate)
        } else {
            let of = [RateBase::Slowest, RateBase::Own, RateBase::Direct][usize::from(slowest)];
            RateSpec::Share { share, of, load: base.get(&closed).clone() }
        };
        let arrivals = if poisson { Arrivals::Poisson } else { Arrivals::Constant };
        // Loads whose name begins with a letter up to m are the closed ones, so that later ones can refer to them.
        let kind = if open && !is_closed(&name) { LoadKind::Open { rate, arrivals } } else { LoadKind::Closed };
        let kind = match (kind, other) {
            (LoadKind::Closed, 1) if !is_closed(&name) => LoadKind::Count { requests: u64::from(connections) },
            (LoadKind::Closed, 2) if !is_closed(&name) => {
                LoadKind::Search { objective: Condition::list("p99<5ms, errors<0.1%").expect("conditions") }
            }
            (kind, _) => kind,
        };
        let series = match (&kind, series) {
            (LoadKind::Search { .. }, _) | (_, 0) => Series::Once,
            (LoadKind::Open { .. }, 1) => Series::Shares(vec![0.25, 0.5, 1.25]),
            (_, 2) if connections > 1 => Series::Connections(vec![1, connections]),
            _ => Series::Rounds(9),
        };
        let saturating = saturating && matches!(kind, LoadKind::Open { .. });
        let steady = steady.filter(|most| !most.is_zero());
        let lone = series == Series::Once && matches!(kind, LoadKind::Open { .. } | LoadKind::Closed);
        let faults: Vec<_> = faults.into_iter().filter(|fault| lone && fault.end() <= duration).collect();
        let restart = series != Series::Once && !keep && steady.is_none();
        let every = (duration / 4).max(Duration::from_millis(1));
        let changes = lone && !keep && duration >= every * 3 && every.as_nanos().is_multiple_of(1_000_000);
        Load {
            change_every: changes.then_some(every),
            restart,
            values: if restart { vec![2_000; series.points() as usize] } else { Vec::new() },
            connect_timeout: restart.then_some(timeout),
            keep: keep && faults.is_empty(),
            faults,
            name: name.clone(),
            title,
            kind,
            series,
            connections,
            clients: least_cores,
            stagger: steady,
            streams,
            steady,
            close,
            saturating,
            least_cores,
            control,
            warmup,
            duration,
            timeout,
        }
    }
}

fn is_closed(name: &str) -> bool {
    name.starts_with(|c: char| c <= 'm')
}

fn loads() -> impl Strategy<Value = Vec<Load>> {
    names(4).prop_flat_map(|names| {
        let loads: Vec<_> = (0..names.len())
            .map(|at| {
                let closed: Vec<String> = names[..at].iter().filter(|name| is_closed(name)).cloned().collect();
                load(names[at].clone(), closed)
            })
            .collect();
        loads
    })
}

fn scale(products: Vec<String>, workloads: Vec<String>) -> impl Strategy<Value = ScaleOverride> {
    let some = |names: Vec<String>| {
        let most = names.len();
        proptest::option::of(proptest::sample::subsequence(names, 1..=most))
    };
    (
        proptest::option::of(1u32..),
        some(products),
        some(workloads),
        proptest::option::of(duration()),
        proptest::option::of(duration()),
        proptest::option::of(1u64..1 << 60),
    )
        .prop_map(|(blocks, products, workloads, warmup, duration, requests)| ScaleOverride {
            blocks,
            products,
            workloads,
            loads: None,
            requests,
            warmup,
            duration,
        })
}

fn tls() -> impl Strategy<Value = Tls> {
    let versions = proptest::sample::select(vec![
        (TlsVersion::Tls12, TlsVersion::Tls12),
        (TlsVersion::Tls12, TlsVersion::Tls13),
        (TlsVersion::Tls13, TlsVersion::Tls13),
    ]);
    let keys = proptest::sample::select(vec![KeyType::P256, KeyType::Rsa2048]);
    (keys, versions, any::<bool>(), any::<bool>()).prop_map(|(key, versions, resumption, client_certificates)| Tls {
        key,
        versions,
        resumption,
        client_certificates,
        group: (resumption && versions.1 == TlsVersion::Tls13).then_some(KeyExchange::X25519Mlkem768),
    })
}

fn suite() -> impl Strategy<Value = Suite> {
    (names(4), names(3)).prop_flat_map(|(products, workload_names)| {
        let scales = proptest::collection::btree_map(
            proptest::sample::select(vec![Scale::Smoke, Scale::Fit, Scale::Full]),
            scale(products.clone(), workload_names.clone()),
            0..3,
        );
        let workloads: Vec<_> = workload_names.into_iter().map(workload).collect();
        let head = (name(), line(), line(), 1u32.., any::<Option<u64>>());
        (head, Just(products), any::<(bool, bool)>(), tls(), workloads, loads(), scales).prop_map(
            |(
                (name, title, question, blocks, seed),
                products,
                (tuned, other_origin),
                tls,
                workloads,
                loads,
                scales,
            )| {
                let (mut workloads, mut loads) = (workloads, loads);
                let is_plain = |one: &Workload| one.keyvalue.is_none() && one.stream.is_none() && !one.by_product;
                if !workloads.iter().all(is_plain) {
                    loads.iter_mut().for_each(|load| load.change_every = None);
                }
                for workload in workloads.iter_mut().filter(|one| one.protocol.is_quic()) {
                    // It has no older TLS.
                    workload.protocol = if tls.versions.1 == TlsVersion::Tls12 { Protocol::H2 } else { Protocol::H3 };
                }
                let origin = other_origin.then(|| "a-server".to_owned());
                let profile = if tuned { "tuned" } else { "stock" };
                let entry = |product| Entry { product, profile: profile.to_owned() };
                let entries: Vec<Entry> = products.into_iter().map(entry).collect();
                let as_published = other_origin.then(|| AsPublished {
                    products: vec![EntryPattern::from(&entries[0])],
                    loads: tuned.then(|| vec![loads[0].name.clone()]),
                    origin: origin.clone(),
                    only: [(entries[0].product.clone(), vec![workloads[0].name.clone()])].into(),
                });
                Suite {
                    name,
                    title,
                    question,
                    blocks,
                    seed,
                    origin,
                    entries,
                    tls,
                    workloads,
                    loads,
                    scales,
                    as_published,
                }
            },
        )
    })
}

proptest! {
    #[test]
    fn a_suite_that_is_written_reads_back_the_same(suite in suite()) {
        let text = suite.to_toml();
        match Suite::parse("run.toml", &text, &Everything) {
            Ok(read) => prop_assert_eq!(read, suite, "{}", text),
            Err(errors) => prop_assert!(false, "{}\n{}", errors[0], text),
        }
    }

    #[test]
    fn a_topology_reads_back_as_it_was(topology in topology()) {
        let text = topology.to_toml();
        let read = Topology::parse("hosts.toml", &text);
        prop_assert_eq!(read, Ok(topology), "{}", text);
    }

    #[test]
    fn no_text_makes_a_parser_panic(text: String) {
        let _ = Topology::parse("x.toml", &text);
        let _ = Suite::parse("x.toml", &text, &Everything);
        let _ = Product::parse("x", "x.toml", &text, BTreeMap::new(), BTreeMap::new());
    }

    #[test]
    fn no_cut_or_changed_file_makes_a_parser_panic(
        at in any::<proptest::sample::Index>(),
        length in 0usize..40,
        with in "[ -~\\n]{0,12}",
    ) {
        for file in [shipped("suites/quick.toml"), include_str!("../product.toml").to_owned(), HOSTS.to_owned()] {
            let start = boundary(&file, at.index(file.len()));
            let end = boundary(&file, (start + length).min(file.len()));
            let text = format!("{}{with}{}", &file[..start], &file[end..]);
            let _ = Suite::parse("x.toml", &text, &Everything);
            let _ = Product::parse("x", "x.toml", &text, BTreeMap::new(), BTreeMap::new());
            let _ = Topology::parse("x.toml", &text);
        }
    }
}

/// Every way to reach a host.
const HOSTS: &str = include_str!("../hosts.toml");

#[test]
fn hosts_are_as_the_file_says() {
    let topology = Topology::parse("hosts.toml", HOSTS).expect("a valid topology");
    let [ssh, local, pod, namespace, command] = topology.hosts() else { panic!("{topology:?}") };
    assert_eq!(ssh.reach, Reach::Ssh { destination: "bench@10.0.0.5".into(), config: Some("bench.config".into()) });
    assert_eq!((ssh.address, ssh.cpus.clone()), (Some([10, 0, 1, 5].into()), Some(vec![0, 1, 2, 3, 8])));
    assert_eq!((ssh.rate.map(BitRate::per_second), local.rate), (Some(10_000_000_000), None));
    assert_eq!((&local.reach, local.roles.as_slice()), (&Reach::Local, &[Role::Client, Role::Origin][..]));
    let (container, context) = (Some("product".to_owned()), Some("lab".to_owned()));
    assert_eq!(pod.reach, Reach::Pod { name: "proxy-0".into(), namespace: "bench".into(), container, context });
    assert_eq!(namespace.reach, Reach::Namespace("weir.test_1".into()));
    assert_eq!(command.reach, Reach::Command(["srun", "-u", "-w", "node1"].map(String::from).into()));
    let names = |hosts: Vec<&HostSpec>| hosts.iter().map(|host| host.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(topology.clients().collect()), ["client-1", "client-2"]);
    assert_eq!(names(topology.origins().collect()), ["client-2", "origin-1", "origin-2"]);
    assert_eq!((topology.proxy().name.as_str(), topology.kind()), ("proxy", "hosts"));
    let text = "[[host]]\nname = \"here\"\nroles = [\"client\", \"proxy\", \"origin\"]\nlocal = true\n";
    assert!(Topology::parse("hosts.toml", text).expect("one host needs no address").is_local());
}

#[test]
fn namespaces_that_weir_makes_have_a_path() {
    let text = "[netns]\nclients = 4\nrate = \"2.5Gbit/s\"\ndelay = \"20ms\"\nloss = \"1%\"\n";
    let topology = Topology::parse("netns.toml", text).expect("valid");
    let (rate, loss) = ("2500Mbit".parse().expect("a rate"), "1 %".parse().expect("a share"));
    let links = Netns { rate: Some(rate), delay: Duration::from_millis(20), loss: Some(loss) };
    assert_eq!(topology, Topology::netns(4, 1, links));
}

#[test]
fn pods_that_weir_makes_have_an_image() {
    let topology = Topology::parse("pods.toml", "[kubernetes]\nimage = \"weir:1\"\ncpus = 4\n").expect("valid");
    let expected =
        Pods { image: "weir:1".into(), namespace: "default".into(), context: None, cpus: 4, memory_mib: 1024 };
    assert_eq!((topology.made(), topology.kind()), (Some(&Made::Pods(expected)), "kubernetes"));
    let errors = Topology::parse("pods.toml", "[kubernetes]\ncpus = 4\n").expect_err("no image");
    assert!(errors[0].to_string().contains("image"), "{errors:?}");
}

fn topology() -> impl Strategy<Value = Topology> {
    let rate = proptest::option::of((1u64..100_000).prop_map(|n| format!("{n}Mbit/s").parse().expect("a rate")));
    let shipped = Topology::parse("hosts.toml", HOSTS).expect("a valid topology");
    prop_oneof![
        (1u32..9, 1u32..9, rate, 0u64..1000, proptest::option::of(1u32..100)).prop_map(
            |(clients, origins, rate, delay, loss)| {
                let loss = loss.map(|loss| format!("{loss} %").parse().expect("a share"));
                Topology::netns(clients, origins, Netns { rate, delay: Duration::from_millis(delay), loss })
            }
        ),
        (1u32..9, 1u32..9, 1u32..65).prop_map(|(clients, origins, cpus)| {
            let (image, namespace) = ("registry.test/weir:1".to_owned(), "bench".to_owned());
            Topology::pods(clients, origins, Pods { image, namespace, context: None, cpus, memory_mib: 2048 })
        }),
        Just(Topology::local()),
        Just(with_parts(&shipped)),
        Just(shipped),
    ]
}

/// The same with parts of a product on two of its hosts.
fn with_parts(topology: &Topology) -> Topology {
    let text = topology.to_toml();
    let text = text.replace("[\"proxy\"]", "[\"proxy:front\"]").replacen("\"origin\"]", "\"proxy:store-1\"]", 1);
    Topology::parse("hosts.toml", &text).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"))
}

/// The last boundary between characters up to a place.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

fn shipped(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_quick_suite_is_as_the_readme_says() {
    let suite = Suite::parse("suites/quick.toml", &shipped("suites/quick.toml"), &Everything).expect("a valid suite");
    assert_eq!((suite.name.as_str(), suite.blocks, suite.entries.len()), ("quick", 3, 6));
    let sizes: Vec<_> = suite.workloads.iter().map(|workload| workload.expect.size).collect();
    assert_eq!(sizes, [Some(128), Some(11_268)]);
    assert_eq!(suite.load("capacity").map(|load| &load.kind), Some(&LoadKind::Closed));
    let latency = suite.load("latency").expect("there");
    let half = RateSpec::Share { share: 0.5, of: RateBase::Slowest, load: "capacity".to_owned() };
    assert_eq!(latency.kind, LoadKind::Open { rate: half, arrivals: Arrivals::Poisson });
    assert_eq!(latency.timeout, Duration::from_secs(10));
    let (smoke, words) = suite.at_scale(Scale::Smoke);
    assert_eq!((smoke.blocks, smoke.entries.len(), words.len()), (1, 2, 6));
    assert_eq!(suite.at_scale(Scale::Full).0.loads[0].duration, Duration::from_secs(15));
}

#[test]
fn direct_is_no_program_and_has_both_profiles() {
    let text = shipped("products/direct/product.toml");
    let direct = Product::parse("direct", "product.toml", &text, BTreeMap::new(), BTreeMap::new()).expect("valid");
    assert_eq!(direct.kind, ProductKind::Direct);
    assert_eq!(direct.profiles.keys().collect::<Vec<_>>(), ["stock", "tuned"]);
}

#[test]
fn a_product_that_is_served_has_an_address_and_perhaps_pods() {
    let text = r#"
        product = { title = "our gateway", about = "It is there.", home = "https://example.org/", speaks = ["http/1.1"] }
        profile = { stock = { about = "As it stands." } }
        [served]
        address = "[::1]:8080"
        origin_port = 9000
    "#;
    let read =
        |text: &str| Product::parse("ours", "product.toml", text, BTreeMap::new(), BTreeMap::new()).expect("valid");
    let ours = read(text);
    let served = ours.served().expect("served");
    assert_eq!((served.address.as_str(), served.origin_port, served.pods()), ("[::1]:8080", 9000, None));
    assert_eq!((served.ready_within, ours.program()), (Duration::from_secs(30), None));
    let ours = read(&format!("{text}\nnamespace = \"ingress\"\nselector = \"app=gateway\""));
    assert_eq!(ours.served().expect("served").pods(), Some(("ingress", "app=gateway")));
}

#[test]
fn a_product_is_read_whole() {
    let templates: BTreeMap<_, _> =
        ["stock.conf.j2", "tuned.conf.j2"].map(|name| (name.to_owned(), String::new())).into();
    let product = Product::parse("nginx", "product.toml", include_str!("../product.toml"), templates, BTreeMap::new())
        .expect("valid");
    let ProductKind::Proxy(program) = &product.kind else { panic!("a proxy") };
    assert_eq!(program.installs.len(), 3);
    assert!(matches!(&program.installs[2], Install::Wheel { sha256, .. } if sha256.keys().eq(["x86_64"])));
    assert_eq!(program.version.at_least.as_deref(), Some("1.18"));
    assert_eq!(program.front().process.env["GOMAXPROCS"], "{{ cores }}");
    assert_eq!(program.front().process.ready_within, Duration::from_secs(10));
    assert_eq!(program.front().process.stop_within, Duration::from_secs(2));
    assert_eq!((program.front().process.graceful, &program.front().process.reload), (Signal::Term, &None));
    assert_eq!((product.caches, product.notes.len()), (false, 0));
    let files = [("nginx.conf".to_owned(), "tuned.conf.j2".to_owned())];
    assert_eq!(product.profiles["tuned"].files, files.into());
    assert_eq!(product.profiles["tuned"].reasons.len(), 1);
    assert_eq!(product.profiles["stock"].name, "stock");
    assert_eq!(product.spoken_under("tuned"), [Protocol::Http11]);
    assert_eq!(product.spoken_under("none"), []);
}

#[test]
fn every_way_to_get_a_product_is_read() {
    let files = "rust/Cargo.toml rust/Cargo.lock go/go.mod java/pom.xml java/src/main/java/Main.java \
        js/package.json js/package-lock.json";
    let files: BTreeMap<String, Vec<u8>> =
        files.split(' ').map(|path| (path.to_owned(), path.as_bytes().to_vec())).collect();
    let text = include_str!("../every-way.toml");
    let product = Product::parse("thing", "product.toml", text, BTreeMap::new(), files.clone())
        .unwrap_or_else(|errors| panic!("{}", errors.iter().map(|e| format!("{e}\n")).collect::<String>()));
    let ProductKind::Proxy(program) = &product.kind else { panic!("a proxy") };
    let package = |package: &str, version: &str| Source::Package { package: package.into(), version: version.into() };
    let project = |name: &str| Source::Project(name.into());
    let need = |program: &str, package: Option<&str>, at_least: Option<&str>| Need {
        program: program.into(),
        package: package.map(str::to_owned),
        at_least: at_least.map(str::to_owned),
    };
    let hash = "0123456789abcdef".repeat(4);
    let build = |tool, source, binary: &str, features: &[&str], needs| Install::Build {
        tool,
        source,
        binary: binary.into(),
        features: features.iter().map(|feature| (*feature).to_owned()).collect(),
        rust: (tool == BuildTool::Cargo && !features.is_empty()).then(|| RustNeed {
            at_least: "1.85".into(),
            below: Some("1.86".into()),
            packages: vec!["rustc-web".into(), "cargo-web".into()],
        }),
        env: (!features.is_empty()).then(|| ("RUSTC_BOOTSTRAP".to_owned(), "1".to_owned())).into_iter().collect(),
        needs,
    };
    let protoc = need("protoc", Some("protobuf-compiler"), None);
    let (go, go_package) = (need("go", None, Some("1.22")), package("example.com/thing/v2/cmd/thing", "v2.11.4"));
    assert_eq!(
        program.installs,
        [
            build(BuildTool::Cargo, package("sozu", "2.3.3"), "bin/sozu", &["splice"], vec![protoc]),
            build(BuildTool::Cargo, project("rust"), "target/release/thing", &[], vec![]),
            build(BuildTool::Go, go_package, "bin/thing", &[], vec![go]),
            build(BuildTool::Go, project("go"), "thing", &[], vec![]),
            build(BuildTool::Maven, project("java"), "target/thing.jar", &[], vec![]),
            build(BuildTool::Npm, project("js"), "server.js", &[], vec![]),
            Install::Release {
                version: "1.2.3".into(),
                url: [("x86_64".to_owned(), "https://example.com/thing-1.2.3.tar.gz".to_owned())].into(),
                binary: "thing-*/thing".into(),
                sha256: [("x86_64".to_owned(), hash)].into(),
                build: vec![vec!["make".into(), "-j2".into()]],
                needs: vec![need("make", None, None)],
                fetched: false,
            },
            Install::Own { at: "https://example.com/releases".into(), about: "the archive for linux".into() },
        ]
    );
    assert_eq!(program.front().process.graceful, Signal::Quit);
    assert_eq!(program.front().process.reload, Some(Reload::Command(vec!["{{ binary }}".into(), "reload".into()])));
    assert_eq!((product.caches, product.notes.as_slice()), (true, ["It bites.".to_owned()].as_slice()));
    assert_eq!(
        product.spoken_under("stock"),
        [Protocol::Http11, Protocol::Https11, Protocol::H2c, Protocol::H2, Protocol::H3]
    );
    assert_eq!(product.spoken_under("as-published-thing"), [Protocol::Http11]);
    assert_eq!(product.files, files);
}
