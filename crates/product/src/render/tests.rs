//! Rendering of made-up products (every error), and of the real ones against golden files.

use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;
use weir_model::gateway::{Balance, Feature};
use weir_model::load::TlsVersion;
use weir_model::product::{ProductKind, Signal};
use weir_model::suite::KeyType;

use super::*;
use crate::catalogue::Catalogue;

fn render(product: &Product, profile: &str, vars: &Vars, dir: &Path) -> Result<Rendered, RenderError> {
    super::render(&weir_host::LocalHost::new("/weir".into()), product, profile, vars, dir)
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

/// A product with one profile `p` that renders `text` into `file`.
fn product(file: &str, text: &str, command: &[&str]) -> Product {
    let profile =
        Profile { name: "p".to_owned(), files: [(file.to_owned(), "t.j2".to_owned())].into(), ..Profile::default() };
    let mut product = thing();
    product.profiles = BTreeMap::from([("p".to_owned(), profile)]);
    product.templates = BTreeMap::from([("t.j2".to_owned(), text.to_owned())]);
    program_of(&mut product).parts[0].process.command = strings(command);
    product
}

/// The product of `tests/thing.toml`.
fn thing() -> Product {
    let toml = include_str!("../../tests/thing.toml");
    Product::parse("thing", "thing.toml", toml, BTreeMap::new(), BTreeMap::new()).expect("it is right")
}

fn program_of(product: &mut Product) -> &mut Program {
    let ProductKind::Proxy(program) = &mut product.kind else { panic!("it has a program") };
    program
}

/// Those that the product gets: ports and cores of its parts, and a store has no origin.
fn vars_of(product: &Product) -> Vars {
    let vars = vars();
    let parts = || product.program().into_iter().flat_map(|program| &program.parts);
    Vars {
        origins: if product.store { Vec::new() } else { vars.origins.clone() },
        ports: parts().flat_map(|part| &part.ports).map(|name| (name.clone(), ([127, 0, 0, 1], 7001).into())).collect(),
        part_cores: parts().map(|part| (part.name.clone(), 1)).collect(),
        ..vars
    }
}

fn vars() -> Vars {
    Vars {
        change: None,
        ports: BTreeMap::from([("store".to_owned(), "127.0.0.3:9".parse().expect("an address"))]),
        part_cores: BTreeMap::from([("thing".to_owned(), 2)]),
        binary: PathBuf::from("/opt/the thing"),
        listen_host: "127.0.0.1".to_owned(),
        listen_port: 8001,
        origins: vec!["127.0.0.2:9002".parse().expect("an address"), "127.0.0.2:9003".parse().expect("an address")],
        cores: 2,
        connections: 64,
        protocol: Protocol::Http11,
        streams: 1,
        stream: None,
        tls: Tls::default(),
        others: Vec::new(),
        paths: vec!["/bytes/128".to_owned()],
        gateway: Gateway::default(),
        upstream: Protocol::Http11,
        request_id_header: "x-weir-id".to_owned(),
    }
}

fn error_of(product: &Product) -> String {
    let dir = TempDir::new().unwrap();
    let error = render(product, "p", &vars(), dir.path()).expect_err("must be refused");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "an error leaves no file");
    error.to_string()
}

#[test]
fn files_arguments_and_environment_are_rendered() {
    let mut product = product(
        "conf/a.conf",
        "listen {{ listen_host }}:{{ listen_port }}\npool {{ connections * 2 + 1 }}\n",
        &["{{ binary }}", "-c", "{{ dir }}/conf/a.conf", "{{ cores }}"],
    );
    if let ProductKind::Proxy(program) = &mut product.kind {
        program.parts[0].process.check = strings(&["{{ binary }}", "-t"]);
        program.parts[0].process.env.insert("THREADS".to_owned(), "{{ cores }}".to_owned());
    }
    let dir = TempDir::new().unwrap();
    let rendered = render(&product, "p", &vars(), dir.path()).unwrap();

    let file = dir.path().join("conf/a.conf");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "listen 127.0.0.1:8001\npool 129\n");
    let file_argument = file.to_str().unwrap();
    assert_eq!(
        rendered.parts[0].command,
        ["/opt/the thing", "-c", file_argument, "2"],
        "a space does not split an argument"
    );
    assert_eq!(rendered.parts[0].check, Some(strings(&["/opt/the thing", "-t"])));
    assert_eq!(rendered.parts[0].env, BTreeMap::from([("THREADS".to_owned(), "2".to_owned())]));
    assert_eq!(rendered.files, [file]);
}

#[test]
fn an_empty_check_is_no_check() {
    let dir = TempDir::new().unwrap();
    let rendered = render(&product("a", "", &["{{ binary }}"]), "p", &vars(), dir.path()).unwrap();
    assert_eq!(rendered.parts[0].check, None);
}

#[test]
fn an_unknown_variable_is_named_with_its_line() {
    let text = "one conections\n{{ connections }}\nthree {{ conections * 2 }}\n";
    assert_eq!(
        error_of(&product("a", text, &["{{ binary }}"])),
        "thing, profile p, t.j2:3: unknown variable `conections`\n  expected: \
         binary, cert, cert_and_key, cert_pem, change, client_ca, client_certificates, connections, consumers, cores, dir, gateway, \
         h2, h3, hosts, key, key_pem, key_set, key_type, listen_host, listen_port, listeners, origin_host, origin_port, origins, part_cores, path, \
         paths, ports, profile, protocol, public_key, request_id_header, resumption, secret, stream, streams, tls, \
         tls12_suites, tls13_suites, tls_group, tls_max, tls_min, upstream_h2, upstream_tls"
    );
}

#[test]
fn an_unknown_variable_is_found_in_a_branch_not_taken() {
    let text = "{% if cores > 99 %}\n{{ kores }}\n{% endif %}";
    assert!(
        error_of(&product("a", text, &["{{ binary }}"]))
            .starts_with("thing, profile p, t.j2:2: unknown variable `kores`")
    );
}

#[test]
fn an_unknown_variable_of_the_command_names_its_key() {
    let message = error_of(&product("a", "", &["{{ binary }}", "{{ folder }}"]));
    assert!(
        message.starts_with("thing, profile p, product.toml: process.command[1]: unknown variable `folder`"),
        "{message}"
    );
}

#[test]
fn a_broken_template_names_its_line() {
    let message = error_of(&product("a", "fine\n{{ cores\n", &["{{ binary }}"]));
    assert!(message.starts_with("thing, profile p, t.j2:"), "{message}");
    let message = error_of(&product("a", "fine\nfine\n{{ cores / listen_host }}\n", &["{{ binary }}"]));
    assert!(message.starts_with("thing, profile p, t.j2:3: "), "{message}");
}

#[test]
fn an_unknown_profile_lists_those_there_are() {
    let error = render(&product("a", "", &["{{ binary }}"]), "q", &vars(), Path::new("/nowhere")).unwrap_err();
    assert_eq!(error.to_string(), "thing has no profile `q`\n  expected: p");
}

#[test]
fn a_missing_template_lists_those_there_are() {
    let mut product = product("a", "", &["{{ binary }}"]);
    product.templates = BTreeMap::from([("other.j2".to_owned(), String::new())]);
    assert_eq!(error_of(&product), "thing, profile p: there is no template `t.j2`\n  expected: other.j2");
}

#[test]
fn files_stay_inside_the_folder() {
    for name in ["../a", "/etc/a", "a/../../b", ".", ""] {
        let message = error_of(&product(name, "", &["{{ binary }}"]));
        assert!(message.contains("leaves the trial's folder"), "{name}: {message}");
    }
}

#[test]
fn a_folder_that_would_break_a_configuration_is_refused() {
    let product = product("a", "", &["{{ binary }}"]);
    for dir in ["relative", "/tmp/a\"b", "/tmp/a$b", "/tmp/a{b}", "/tmp/a\nb", "/tmp/a#b"] {
        let error = render(&product, "p", &vars(), Path::new(dir)).expect_err(dir);
        assert!(matches!(error, RenderError::Refused(_)), "{dir}: {error}");
    }
}

#[test]
fn direct_has_nothing_to_render() {
    let mut direct = product("a", "", &["x"]);
    direct.kind = ProductKind::Direct;
    assert!(matches!(render(&direct, "p", &vars(), Path::new("/x")), Err(RenderError::NoProgram(_))));
}

#[test]
fn the_version_command_knows_the_binary_alone() {
    let mut product = product("a", "", &["{{ binary }}"]);
    assert_eq!(version_command(&product, Path::new("/b")).unwrap(), ["/b", "--version"]);
    if let ProductKind::Proxy(program) = &mut product.kind {
        program.version.command = strings(&["{{ dir }}/x"]);
    }
    let message = version_command(&product, Path::new("/b")).unwrap_err().to_string();
    assert_eq!(message, "thing, product.toml: version.command[0]: unknown variable `dir`\n  expected: binary");
}

#[test]
fn templates_know_the_protocol_and_the_tls_settings() {
    let text = "{{ protocol }} {{ tls }} {{ h2 }} {{ streams }} {{ tls_min }}-{{ tls_max }} {{ tls12_suites|join(':') }} \
                {{ tls13_suites[0] }} {{ resumption }} {{ key_type }}\n{{ cert }} {{ key }} {{ cert_and_key }}";
    let of = |vars: &Vars| {
        let dir = TempDir::new().unwrap();
        render(&product("a", text, &["{{ binary }}"]), "p", vars, dir.path()).unwrap();
        std::fs::read_to_string(dir.path().join("a")).unwrap().replace(dir.path().to_str().unwrap(), "/trial")
    };
    let paths = "\n/trial/cert.pem /trial/key.pem /trial/cert-and-key.pem";
    assert_eq!(
        of(&vars()),
        format!(
            "http/1.1 false false 1 1.2-1.3 ECDHE-ECDSA-AES128-GCM-SHA256 TLS_AES_128_GCM_SHA256 false p256{paths}"
        )
    );
    let tls = Tls {
        key: KeyType::Rsa2048,
        versions: (TlsVersion::Tls13, TlsVersion::Tls13),
        resumption: true,
        ..Tls::default()
    };
    assert_eq!(
        of(&Vars { protocol: Protocol::H2, streams: 8, tls, ..vars() }),
        format!("h2 true true 8 1.3-1.3 ECDHE-RSA-AES128-GCM-SHA256 TLS_AES_128_GCM_SHA256 true rsa2048{paths}")
    );
    assert!(of(&Vars { protocol: Protocol::H2c, ..vars() }).starts_with("h2c false true"));
    assert!(of(&Vars { protocol: Protocol::Https11, ..vars() }).starts_with("https/1.1 true false"));
}

#[test]
fn templates_know_all_origins_and_a_store_has_none() {
    let of = |origins: Vec<SocketAddr>, text: &str| {
        let dir = TempDir::new().unwrap();
        render(&product("a", text, &["{{ binary }}"]), "p", &Vars { origins, ..vars() }, dir.path())
            .map(|_| std::fs::read_to_string(dir.path().join("a")).unwrap())
    };
    let all = "{{ origin_port }}:{% for o in origins %} {{ o.host }}:{{ o.port }}{% endfor %}";
    assert_eq!(of(vars().origins, all).unwrap(), "9002: 127.0.0.2:9002 127.0.0.2:9003");
    assert!(of(Vec::new(), all).unwrap_err().to_string().contains("undefined value"));
    assert_eq!(of(Vec::new(), "{{ origins | length }}").unwrap(), "0");
}

#[test]
fn templates_know_all_listeners_and_paths() {
    let text = "{% for l in listeners %}{{ l.host }}:{{ l.port }} {{ l.protocol }} {{ l.tls }} {% endfor %}{{ path }} {{ paths }}";
    let of = |vars: &Vars| {
        let dir = TempDir::new().unwrap();
        render(&product("a", text, &["{{ binary }}"]), "p", vars, dir.path()).unwrap();
        std::fs::read_to_string(dir.path().join("a")).unwrap()
    };
    assert_eq!(of(&vars()), "127.0.0.1:8001 http/1.1 false /bytes/128 ['/bytes/128']");
    let others = vec![(Protocol::Https11, "127.0.0.1:8002".parse().expect("an address"))];
    let paths = vec!["/a".to_owned(), "/b".to_owned()];
    let both = of(&Vars { others, paths, ..vars() });
    assert_eq!(both, "127.0.0.1:8001 http/1.1 false 127.0.0.1:8002 https/1.1 true /a ['/a', '/b']");
}

#[test]
fn a_parts_monitor_is_rendered() {
    let mut product = product("a", "", &["{{ binary }}"]);
    program_of(&mut product).parts[0].monitor = Some("http://{{ hosts.store }}:{{ ports.store }}/stats".to_owned());
    let dir = TempDir::new().unwrap();
    let rendered = render(&product, "p", &vars(), dir.path()).unwrap();
    assert_eq!(rendered.parts[0].monitor.as_deref(), Some("http://127.0.0.3:9/stats"));
    program_of(&mut product).parts[0].monitor = Some("http://{{ nowhere }}".to_owned());
    let message = render(&product, "p", &vars(), dir.path()).unwrap_err().to_string();
    assert!(message.contains("part[0].monitor: unknown variable `nowhere`"), "{message}");
}

#[test]
fn templates_know_the_profile_the_path_and_the_certificate() {
    let of = |text: &str| {
        let dir = TempDir::new().unwrap();
        std::fs::write(dir.path().join(CERT), "-----BEGIN CERTIFICATE-----\n").unwrap();
        render(&product("a", text, &["{{ binary }}"]), "p", &vars(), dir.path())
            .map(|_| std::fs::read_to_string(dir.path().join("a")).unwrap())
    };
    assert_eq!(of("{{ profile }} {{ path }}").unwrap(), "p /bytes/128");
    assert_eq!(of("pem: |\n  {{ cert_pem }}").unwrap(), "pem: |\n  -----BEGIN CERTIFICATE-----\n");
    let dir = TempDir::new().unwrap();
    std::fs::write(dir.path().join(KEY), "-----BEGIN PRIVATE KEY-----\n").unwrap();
    render(&product("a", "key {{ key_pem }}", &["{{ binary }}"]), "p", &vars(), dir.path()).unwrap();
    let mode = std::fs::metadata(dir.path().join("a")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "a key that was taken in is nobody else's");
    // There is no key beside it: an error, and no empty key in a configuration.
    assert!(of("a\n{{ key_pem }}").unwrap_err().to_string().contains("t.j2:2: undefined value"));
    assert_eq!(of("{% if tls %}{{ key_pem }}{% endif %}no TLS").unwrap(), "no TLS");
}

#[test]
fn a_command_that_reloads_is_rendered() {
    let mut product = product("a", "", &["{{ binary }}"]);
    let mut reload = |reload: Option<Reload>| {
        let ProductKind::Proxy(program) = &mut product.kind else { panic!("a proxy") };
        program.parts[0].process.reload = reload;
        let dir = TempDir::new().unwrap();
        render(&product, "p", &vars(), dir.path()).map(|rendered| rendered.parts[0].reload.clone())
    };
    let command = |text: &str| Some(Reload::Command(strings(&[text, "reload"])));
    assert_eq!(reload(command("{{ binary }}")).unwrap(), command("/opt/the thing"));
    assert_eq!(reload(Some(Reload::Signal(Signal::Hup))).unwrap(), Some(Reload::Signal(Signal::Hup)));
    let message = reload(command("{{ program }}")).unwrap_err().to_string();
    assert!(message.contains("product.toml: process.reload.command[0]: unknown variable `program`"), "{message}");
}

/// All that a product speaks under a profile but one, each at a port of its own.
fn other_protocols(product: &Product, profile: &str, but: Protocol) -> Vec<(Protocol, SocketAddr)> {
    let others = product.spoken_under(profile).iter().copied().filter(|other| *other != but);
    others.zip(8002u16..).map(|(protocol, port)| (protocol, SocketAddr::from(([127, 0, 0, 1], port)))).collect()
}

/// Every product and profile of the repository, in every protocol that it says it speaks, with every kind of key: no
/// variable that weir does not give.
#[test]
fn every_profile_renders_in_every_protocol_it_speaks() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut catalogue = Catalogue::default();
    catalogue.overlay(&root).unwrap_or_else(|error| panic!("{error}"));
    let mut rendered_files = 0;
    for product in catalogue.products().values() {
        if product.program().is_none() {
            continue;
        }
        for profile in product.profiles.keys() {
            for &protocol in product.spoken_under(profile) {
                for key in [KeyType::P256, KeyType::Rsa2048] {
                    let tls = Tls { key, ..Tls::default() };
                    let others = if product.profiles[profile].listeners {
                        other_protocols(product, profile, protocol)
                    } else {
                        Vec::new()
                    };
                    let vars = Vars { protocol, others, tls, ..vars_of(product) };
                    let dir = TempDir::new().unwrap();
                    for name in [CERT, KEY, CERT_AND_KEY, CLIENT_CA] {
                        std::fs::write(dir.path().join(name), name).unwrap();
                    }
                    let rendered = render(product, profile, &vars, dir.path())
                        .unwrap_or_else(|error| panic!("{} over {}: {error}", product.name, protocol.as_str()));
                    rendered_files += rendered.files.len();
                }
            }
        }
    }
    assert!(rendered_files > 20, "{rendered_files}");
}

/// What a profile says that it can do, it does in every way: a pool names all origins, and whatever may be asked of it can be rendered.
#[test]
fn every_profile_can_do_what_its_features_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut catalogue = Catalogue::default();
    catalogue.overlay(&root).unwrap_or_else(|error| panic!("{error}"));
    let mut pools = 0;
    for product in catalogue.products().values().filter(|product| product.program().is_some() && !product.store) {
        for profile in product.proxy_profiles() {
            let features = product.features_under(profile);
            let can = |feature: Feature| features.contains(&feature);
            let ways = [Balance::RoundRobin, Balance::LeastConnections, Balance::HeaderHash];
            let ways = ways.into_iter().filter(|way| can((*way).into())).map(|way| (Some(way), false));
            let pool = can(Feature::Pool).then_some((None, false));
            let failover = can(Feature::Failover).then_some((None, true));
            for (balance, failover) in pool.into_iter().chain(ways).chain(failover) {
                let protocol = product.spoken_under(profile)[0];
                let routes = can(Feature::Routes).then_some(3);
                let gateway = Gateway { balance, failover, routes, ..Gateway::default() };
                let vars = Vars { protocol, gateway, ..vars_of(product) };
                let dir = TempDir::new().unwrap();
                let rendered = render(product, profile, &vars, dir.path())
                    .unwrap_or_else(|error| panic!("{} with {balance:?}: {error}", product.name));
                let texts: Vec<String> =
                    rendered.files.iter().filter_map(|file| std::fs::read_to_string(file).ok()).collect();
                let both = texts.iter().any(|text| text.contains("9002") && text.contains("9003"));
                assert!(both, "{}, profile {profile}, with {balance:?}: not both origins", product.name);
                pools += 1;
            }
        }
    }
    assert!(pools > 60, "{pools}");
}
