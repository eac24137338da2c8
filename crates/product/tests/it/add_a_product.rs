//! The product that `docs/add-a-product.md` adds: its files, taken from the page as they stand there, are valid, and
//! render in every protocol that they say the product speaks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use weir_model::gateway::Gateway;
use weir_model::product::Product;
use weir_model::suite::{KeyType, Protocol, Tls};
use weir_product::catalogue::Catalogue;
use weir_product::render::{RenderError, Rendered, Vars};

fn render(product: &Product, profile: &str, vars: &Vars, dir: &Path) -> Result<Rendered, RenderError> {
    weir_product::render::render(&weir_host::LocalHost::new("/weir".into()), product, profile, vars, dir)
}

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/add-a-product.md");
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("docs/add-a-product.md: {e}"))
}

/// The files that the page asks for, by path: a line that names one in `...`, and the block that follows.
fn files(page: &str) -> Vec<(&str, &str)> {
    let mut files = Vec::new();
    let mut rest = page;
    while let Some(start) = rest.find("\n`library/") {
        rest = &rest[start + 2..];
        let (name, after) = rest.split_once('`').expect("the name's end");
        let (_, block) = after.split_once("```").expect("a block after the name");
        let (_, block) = block.split_once('\n').expect("the block's first line");
        let (text, after) = block.split_once("```").expect("the block's end");
        files.push((name, text));
        rest = after;
    }
    files
}

fn write(page: &str, into: &Path) -> PathBuf {
    for (name, text) in files(page) {
        let path = into.join(name);
        std::fs::create_dir_all(path.parent().expect("below the library")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
    into.join("library")
}

fn vars(protocol: Protocol) -> Vars {
    Vars {
        change: None,
        binary: PathBuf::from("/usr/sbin/x"),
        listen_host: "127.0.0.1".to_owned(),
        listen_port: 8001,
        origins: vec!["127.0.0.1:9001".parse().expect("an address")],
        cores: 2,
        connections: 64,
        protocol,
        streams: 1,
        stream: None,
        tls: Tls { key: KeyType::P256, ..Tls::default() },
        paths: vec!["/bytes/128".to_owned()],
        others: Vec::new(),
        gateway: Gateway::default(),
        upstream: Protocol::Http11,
        request_id_header: "x-weir-id".to_owned(),
        ports: BTreeMap::from([("backend".to_owned(), ([127, 0, 0, 1], 7001).into())]),
        part_cores: BTreeMap::new(),
    }
}

#[test]
fn the_page_adds_a_product_that_renders_in_all_it_speaks() {
    let dir = tempfile::tempdir().expect("a folder");
    let library = write(&page(), dir.path());
    let mut catalogue = Catalogue::default();
    catalogue.overlay(&library).unwrap_or_else(|e| panic!("{e}"));
    let products: Vec<_> = catalogue.products().values().collect();
    assert_eq!(products.len(), 1);
    let product = products[0];
    assert_eq!(product.profiles.keys().collect::<Vec<_>>(), ["stock", "tuned"]);
    let of_paths = || Protocol::all().filter(|protocol| !protocol.is_keyvalue() && !protocol.is_quic());
    assert!(of_paths().eq(product.speaks.iter().copied()));
    for profile in product.profiles.keys() {
        for protocol in of_paths() {
            let rendered =
                render(product, profile, &vars(protocol), &dir.path().join("trial")).unwrap_or_else(|e| panic!("{e}"));
            let text = std::fs::read_to_string(&rendered.files[0]).expect("the rendered file");
            assert!(text.contains("8001") && text.contains("9001"), "{profile}: {text}");
            assert_eq!(text.contains("cert.pem"), protocol.is_tls(), "{profile} over {}: {text}", protocol.as_str());
        }
    }
}

#[test]
fn a_mistake_on_the_page_is_seen() {
    let wrong = page().replace("ready_within = ", "ready_withn = ");
    let dir = tempfile::tempdir().expect("a folder");
    let error = Catalogue::default().overlay(&write(&wrong, dir.path())).expect_err("an unknown key");
    assert!(error.to_string().contains("ready_withn"), "{error}");
}

/// Every key of the example has its row in one of the page's tables, and so has every variable that templates may use.
#[test]
fn every_key_and_variable_is_explained() {
    let page = page();
    let text = files(&page).iter().find(|(name, _)| name.ends_with("product.toml")).expect("the product's file").1;
    let explained = |word: &str| page.lines().any(|line| line.starts_with('|') && line.contains(word));
    for line in text.lines() {
        if let Some((key, _)) = line.split_once(" = ")
            && !key.starts_with(['#', ' '])
        {
            assert!(explained(key), "{key} is in the example and in no table");
        }
    }
    let variables = known_variables();
    assert!(variables.len() > 15, "{variables:?}");
    for variable in variables {
        assert!(explained(&format!("`{variable}`")), "{variable} is in no table");
    }
}

/// What weir says it knows when a template asks for something else.
fn known_variables() -> Vec<String> {
    let wrong = page().replace("{{ cores }}", "{{ corse }}");
    let dir = tempfile::tempdir().expect("a folder");
    let mut catalogue = Catalogue::default();
    catalogue.overlay(&write(&wrong, dir.path())).unwrap_or_else(|e| panic!("{e}"));
    let product = catalogue.products().values().next().expect("the product");
    match render(product, "tuned", &vars(Protocol::Http11), &dir.path().join("trial")) {
        Err(RenderError::Refused(text)) if text.contains("unknown variable `corse`") => {
            let known = text.split_once("expected: ").expect("it says what is known").1;
            known.split(", ").map(str::to_owned).collect()
        }
        other => panic!("{other:?}"),
    }
}
