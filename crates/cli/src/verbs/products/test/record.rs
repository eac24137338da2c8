//! The results of a conformance test. `weir products test --json` prints them; `block`, `matrix` and `page` draw them.

use std::collections::BTreeMap;

use serde::Serialize;
use weir_conformance::{CHECKS, Check, ProductReport};
use weir_install::Installed;
use weir_model::product::Product;
use weir_model::record::Environment;

/// Version of [`Record`].
const SCHEMA: u32 = 1;

/// A run.
#[derive(Debug, Serialize)]
pub struct Record {
    /// [`SCHEMA`].
    pub schema: u32,
    /// weir's version.
    pub weir: String,
    /// Whether weir was built to be fast. One that was not cannot keep a product busy.
    pub optimised: bool,
    /// When it began, RFC 3339, UTC.
    pub started: String,
    /// Where.
    pub machine: Environment,
    /// What was asked.
    pub checks: Vec<&'static Check>,
    /// What was found, in the order in which it was.
    pub tested: Vec<Named>,
    /// What could not be tested.
    pub absent: Vec<Absent>,
    /// Products with a way to install them that nobody has tried, and which.
    pub never_fetched: BTreeMap<String, Vec<String>>,
    /// Somebody asked to stop before the end.
    pub stopped: bool,
}

/// A product in a profile, and what was found of it.
#[derive(Debug, Serialize)]
pub struct Named {
    pub title: String,
    pub version: String,
    pub from: String,
    #[serde(flatten)]
    pub tested: ProductReport,
}

/// A product that is not here.
#[derive(Debug, Serialize)]
pub struct Absent {
    pub product: String,
    pub title: String,
    pub why: String,
}

impl Absent {
    /// Where nothing was looked for is left out: it would name folders of this machine.
    pub fn new(product: &Product) -> Absent {
        let why = match super::super::release_elsewhere(product) {
            Some(release) => format!("not installed here; to fix it: {release}"),
            None => format!("not installed here; to fix it: weir products install {}", product.name),
        };
        Absent { product: product.name.clone(), title: product.title.clone(), why }
    }
}

impl Record {
    /// Nothing found yet.
    pub fn begin(absent: Vec<Absent>, never_fetched: BTreeMap<String, Vec<String>>, only: &[String]) -> Record {
        let is_asked = |check: &&Check| only.is_empty() || only.contains(&check.name);
        Record {
            schema: SCHEMA,
            weir: env!("CARGO_PKG_VERSION").to_owned(),
            optimised: !cfg!(debug_assertions),
            started: jiff::Timestamp::now().to_string(),
            machine: weir_vitals::environment(),
            checks: CHECKS.iter().filter(is_asked).collect(),
            tested: Vec::new(),
            absent,
            never_fetched,
            stopped: false,
        }
    }

    /// Takes in what was found of one.
    pub fn add(&mut self, product: &Product, installed: Option<&Installed>, tested: ProductReport) {
        self.tested.push(Named {
            title: product.title.clone(),
            version: installed.map(|i| i.version.clone()).unwrap_or_default(),
            from: installed.map(|i| i.from.clone()).unwrap_or_default(),
            tested,
        });
    }
}

/// What the other modules' tests draw.
#[cfg(test)]
pub fn example() -> Record {
    use weir_conformance::{Cell, Kind, Verdict};

    let cell =
        |verdict, says: &str, note: Option<&str>| Cell { verdict, says: says.into(), note: note.map(str::to_owned) };
    let named = |product: &str, profile: &str, cells: Vec<(&str, Cell)>| Named {
        title: product.to_uppercase(),
        version: "1.2.3".into(),
        from: format!("apt {product}"),
        tested: ProductReport {
            product: product.into(),
            profile: profile.into(),
            kinds: vec![Kind::Http],
            cells: cells.into_iter().map(|(name, cell)| (name.to_owned(), cell)).collect(),
            error: None,
            cut_short: false,
            took_s: 9.0,
        },
    };
    let mut record =
        Record::begin(Vec::new(), BTreeMap::new(), &["get", "pipelined", "memory-idle", "h3"].map(String::from));
    record.started = "2026-01-02T10:15:00Z".into();
    let one = vec![
        ("get", cell(Verdict::Yes, "yes", None)),
        ("pipelined", cell(Verdict::No, "1 of 3", Some("after 1 of 3 responses it closes"))),
        ("memory-idle", cell(Verdict::Reading, "8.0 MiB", None)),
        ("h3", cell(Verdict::Absent, "-", None)),
    ];
    let two = vec![
        ("get", cell(Verdict::Odd, "yes, closes", Some("it closes the client's connection after request 1"))),
        ("pipelined", cell(Verdict::Yes, "yes", None)),
        ("memory-idle", cell(Verdict::Unknown, "?", Some("gone"))),
        ("h3", cell(Verdict::Absent, "described", None)),
    ];
    record.tested = vec![named("one", "tuned", one.clone()), named("one", "stock", one), named("two", "tuned", two)];
    record.tested.push(named("three", "tuned", Vec::new()));
    record.tested[3].tested.error = Some(weir_model::record::TrialError {
        stage: "ready".into(),
        message: "THREE did not get ready within 1 s; last try: refuses | pipes".into(),
        evidence: "output.log is empty".into(),
        remedy: "see".into(),
    });
    record.absent = vec![Absent {
        product: "four".into(),
        title: "Four".into(),
        why: "not installed (four is not in PATH)".into(),
    }];
    record
}

/// A store of keys and values beside them.
#[cfg(test)]
pub fn store() -> Named {
    use weir_conformance::{Cell, Kind};

    let mut store = example().tested.remove(0);
    store.tested.product = "five".into();
    store.title = "FIVE".into();
    store.tested.kinds = vec![Kind::KeyValue];
    let cells = [("kv-get", Cell::yes()), ("kv-gone", Cell::absent("it holds the data itself"))];
    store.tested.cells = cells.map(|(name, cell)| (name.to_owned(), cell)).to_vec();
    store
}
