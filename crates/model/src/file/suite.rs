//! `suite.toml` as a whole: its sections, what a schema cannot say of them (names, references, order), and writing it.
//! The catalogue in `weir-product` calls [`Suite::parse`]; reports and comparisons call `Suite::read_run`, the lab and
//! `weir suites show` [`Suite::to_toml`].

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::errors::Errors;
use super::forms::{is_field_value, is_token};
use super::locate::{child, item};
use super::{Catalogue, NAME_WANTED, is_name, read, schema};
use crate::InputError;
use crate::as_published::AsPublished;
use crate::filter::fits;
use crate::gateway::{Filter, Gateway};
use crate::keyvalue::{LEAST_VALUE, LONGEST_VALUE};
use crate::load::{MOST_ORIGIN_HEADERS, StreamKind, TlsVersion, origin_header, request_id_header};
use crate::product::ORIGIN_PROFILE;
use crate::protocol::Application;
use crate::suite::{
    Entry, EntryPattern, Expect, KeyExchange, Load, LoadKind, Protocol, RateSpec, RequestIdSetting, Scale,
    ScaleOverride, Series, Suite, TableRate, Tls, Workload,
};
use crate::text::{counted, one_of, suggestion, unique};
use crate::units::HumanDuration;

/// Points of a series at most: each is a window of its own.
const MOST_POINTS: usize = 64;

/// Largest multiple of a rate in a series.
const LARGEST_SHARE: f64 = 100.0;

/// A suite of weir: the questions, and everything needed to ask them.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(title = "weir suite")]
pub(super) struct SuiteFile {
    /// What is asked, and of which products.
    suite: Head,
    /// How TLS is spoken, where a workload's protocol has it: by all products alike.
    #[serde(default)]
    tls: Tls,
    /// What one request is, and what a successful response to it is; one `[[workload]]` each. Never names a product.
    #[schemars(length(min = 1))]
    workload: Vec<Workload>,
    /// How requests arrive; one `[[load]]` each, in the order in which later ones may refer to earlier ones.
    #[schemars(length(min = 1))]
    load: Vec<Load>,
    /// What `--scale` changes: `[scale.smoke]`, `[scale.fit]`, `[scale.full]`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "Scales")]
    scale: BTreeMap<Scale, ScaleOverride>,
    /// The runs of the document that the suite repeats, for `--as-published`.
    as_published: Option<AsPublished>,
}

/// What `--scale` changes.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Scales {
    /// Seconds: shows that everything works, says nothing about performance.
    smoke: Option<ScaleOverride>,
    /// Fitted to this machine. The default.
    fit: Option<ScaleOverride>,
    /// As written (for the published suites: as published).
    full: Option<ScaleOverride>,
}

/// What is asked, and of which products.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Head {
    /// Name of the suite. Left out, it is the file's name without its extension.
    #[schemars(regex(pattern = "^[a-z0-9][a-z0-9-]{0,59}$"), extend("x-weir-wanted" = NAME_WANTED))]
    name: Option<String>,
    /// One line for lists and report titles.
    #[schemars(length(min = 1))]
    title: String,
    /// The question that the first screen of the report answers.
    #[schemars(length(min = 1))]
    question: String,
    /// How many times each case is repeated.
    #[serde(default = "three")]
    #[schemars(range(min = 1))]
    blocks: u32,
    /// Seed of the random order within blocks. Left out, one is drawn and recorded.
    seed: Option<Seed>,
    /// A product that is the origin, instead of weir's own. It has no counters, so that the audit can check less.
    origin: Option<String>,
    /// What runs, in this order: `name`, or `name:profile`.
    #[schemars(length(min = 1))]
    products: Vec<EntryPattern>,
    /// Profile of the products that are named without one.
    #[schemars(regex(pattern = "^[a-z0-9][a-z0-9-]{0,59}$"), extend("x-weir-wanted" = NAME_WANTED))]
    profile: Option<String>,
}

fn three() -> u32 {
    3
}

/// A seed: a TOML integer where that is wide enough, else a text of digits.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Seed {
    /// A number.
    Number(#[schemars(range(min = 0))] i64),
    /// A number beyond TOML's integers, in quotes.
    Text(
        #[schemars(
            regex(pattern = "^[0-9]{1,20}$"),
            extend("x-weir-wanted" = "a whole number of at most 18446744073709551615, in quotes")
        )]
        String,
    ),
}

impl Suite {
    /// Reads a suite. `source_name` is the file as the user named it; it stands in messages, and its stem is the
    /// suite's name unless the file gives one. `catalogue` says which products and profiles exist.
    ///
    /// # Errors
    /// Everything that is wrong with the file, by line: syntax errors alone if there are any; else all wrong keys,
    /// types, units and ranges, and, where the rest can be read at all, wrong names and references too.
    pub fn parse(source_name: &str, text: &str, catalogue: &dyn Catalogue) -> Result<Suite, Vec<InputError>> {
        read(source_name, text, &schema::SUITE, |file, errors| {
            Some(Checks { catalogue, errors }.suite(source_name, file))
        })
    }

    /// Reads the suite that a run wrote down ([`Suite::to_toml`]), whatever products there are today.
    ///
    /// # Errors
    /// What is wrong with the file, the first thing alone.
    pub fn read_run(file: &Path) -> Result<Suite, String> {
        let text = crate::regular::read_text(file).map_err(|error| error.to_string())?;
        Suite::parse("run.toml", &text, &own_catalogue(&text)?)
            .map_err(|errors| errors.first().map_or("is not a suite".to_owned(), ToString::to_string))
    }

    /// The suite as a file that [`Suite::parse`] reads back as an equal suite.
    ///
    /// Everything is written out, defaults too: the file is to mean the same to a later weir with other defaults.
    pub fn to_toml(&self) -> String {
        let file = SuiteFile {
            suite: Head {
                name: Some(self.name.clone()),
                title: self.title.clone(),
                question: self.question.clone(),
                blocks: self.blocks,
                seed: self.seed.map(|seed| i64::try_from(seed).map_or(Seed::Text(seed.to_string()), Seed::Number)),
                origin: self.origin.clone(),
                products: self.entries.iter().map(EntryPattern::from).collect(),
                profile: None,
            },
            tls: self.tls,
            workload: self.workloads.iter().map(|workload| self.written(workload)).collect(),
            load: self.loads.clone(),
            scale: self.scales.clone(),
            as_published: self.as_published.clone(),
        };
        // Every key is a text and every number fits: what could fail is a map whose keys are no texts.
        toml::to_string(&file).unwrap_or_else(|error| format!("# this suite cannot be written: {error}\n"))
    }
}

impl Suite {
    /// A workload as a file has it: without a baseline that is no part of the suite, as where only some of it runs.
    fn written(&self, workload: &Workload) -> Workload {
        let is_there = |(name, profile): &(&str, Option<&str>)| {
            let has = |profile: &str| self.entries.iter().any(|entry| entry.profile == profile);
            self.workload(name).is_some() && profile.is_none_or(has)
        };
        let baseline = workload.baseline.clone().filter(|_| workload.baseline().as_ref().is_some_and(is_there));
        Workload { baseline, ..workload.clone() }
    }
}

/// The products and profiles that the file of a run names. The catalogue may no longer have them.
fn own_catalogue(text: &str) -> Result<BTreeMap<String, Vec<String>>, String> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| error.message().to_owned())?;
    let head = table.get("suite");
    let products = head.and_then(|suite| suite.get("products")).and_then(|products| products.as_array());
    let mut catalogue: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in products.into_iter().flatten().filter_map(|entry| entry.as_str()) {
        let (product, profile) = entry.split_once(':').unwrap_or((entry, "stock"));
        catalogue.entry(product.to_owned()).or_default().push(profile.to_owned());
    }
    if let Some(origin) = head.and_then(|suite| suite.get("origin")).and_then(|origin| origin.as_str()) {
        catalogue.entry(origin.to_owned()).or_default().push(ORIGIN_PROFILE.to_owned());
    }
    Ok(catalogue)
}

/// Checks what a schema cannot say. Errors go to `errors`; what is returned is valid only if there are none.
struct Checks<'a, 'e> {
    catalogue: &'a dyn Catalogue,
    errors: &'a mut Errors<'e>,
}

impl Checks<'_, '_> {
    fn suite(&mut self, source_name: &str, file: SuiteFile) -> Suite {
        let SuiteFile { suite: head, tls, workload: mut workloads, load: mut loads, scale: scales, as_published } =
            file;
        self.unique("workload", workloads.iter().map(|workload| workload.name.as_str()));
        self.unique("load", loads.iter().map(|load| load.name.as_str()));
        let before = self.errors.count();
        let entries = self.entries(&head.products, head.profile.as_deref());
        // Entries that were refused are reported where they stand; in other places they would only be noise.
        let known_entries = (self.errors.count() == before).then_some(entries.as_slice());
        let load_names: Vec<&str> = loads.iter().map(|load| load.name.as_str()).collect();
        let workload_names: Vec<&str> = workloads.iter().map(|workload| workload.name.as_str()).collect();
        for (index, workload) in workloads.iter().enumerate() {
            let path = item("workload", index);
            self.workload(&path, workload, &load_names, known_entries);
            self.baseline(&child(&path, "baseline"), workload, &workload_names, known_entries);
            let spoken = workload.tls.unwrap_or(tls);
            if workload.protocol.is_quic() && spoken.versions.1 == TlsVersion::Tls12 {
                let found = format!("{:?} needs TLS 1.3, and [tls] allows 1.2 alone", workload.protocol.as_str());
                self.errors.add(&child(&path, "protocol"), found, "versions = [\"1.3\"] in [tls], or another protocol");
            }
            if spoken.group == Some(KeyExchange::X25519Mlkem768) && spoken.versions.1 == TlsVersion::Tls12 {
                let path = if workload.tls.is_some() { child(&path, "tls") } else { "tls".to_owned() };
                let found = "needs TLS 1.3, and versions allow 1.2 alone";
                self.errors.add(&child(&path, "group"), found, "versions = [\"1.3\"], or \"x25519\"");
            }
            if workload.tls.is_some_and(|own| own.client_certificates != tls.client_certificates) {
                let found = "differs from [tls]: a run has one authority of clients, or none";
                self.errors.add(&child(&child(&path, "tls"), "client_certificates"), found, "the same in both");
            }
        }
        for index in 0..loads.len() {
            self.load(&item("load", index), &loads, index, &workload_names);
            self.members(&item("load", index), &loads[index], &workloads);
        }
        for (scale, change) in &scales {
            let path = child("scale", scale.as_str());
            if let Some(entries) = known_entries {
                let mut products: Vec<&str> = entries.iter().map(|entry| entry.product.as_str()).collect();
                products.dedup();
                self.known(&child(&path, "products"), "product", change.products.as_deref(), &products);
            }
            self.known(&child(&path, "workloads"), "workload", change.workloads.as_deref(), &workload_names);
            self.known(&child(&path, "loads"), "load", change.loads.as_deref(), &load_names);
        }
        if let Some(AsPublished { products, loads, origin, only }) = &as_published {
            if let Some(origin) = origin {
                self.can_be_origin("as_published.origin", origin);
            }
            self.patterns("as_published.products", products, known_entries);
            for (index, pattern) in loads.iter().flatten().enumerate() {
                if !load_names.iter().any(|name| fits(pattern, name)) {
                    let found = format!("the suite has no load {pattern:?}{}", suggestion(pattern, &load_names));
                    self.errors.add(&item("as_published.loads", index), found, one_of(&load_names));
                }
            }
            for (product, workloads) in only {
                let path = child("as_published.only", product);
                if !products.iter().any(|one| one.product == *product) {
                    let known = products.iter().map(|one| &one.product);
                    self.errors.add(&path, format!("{product:?} is not in as_published.products"), one_of(known));
                }
                self.known(&path, "workload", Some(workloads.as_slice()), &workload_names);
            }
        }
        let titles = workloads.iter_mut().map(|workload| (&workload.name, &mut workload.title));
        let titles = titles.chain(loads.iter_mut().map(|load| (&load.name, &mut load.title)));
        titles.filter(|(_, title)| title.is_empty()).for_each(|(name, title)| title.clone_from(name));
        Suite {
            name: head.name.unwrap_or_else(|| self.name_of_file(source_name)),
            title: head.title,
            question: head.question,
            blocks: head.blocks,
            seed: head.seed.and_then(|seed| self.seed(&seed)),
            origin: head.origin.filter(|name| self.can_be_origin("suite.origin", name)),
            entries,
            tls,
            workloads,
            loads,
            scales,
            as_published,
        }
    }

    fn name_of_file(&mut self, source_name: &str) -> String {
        let stem = Path::new(source_name).file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default();
        if !is_name(&stem) {
            let wanted = format!("{NAME_WANTED}; or name = \"…\" in [suite]");
            self.errors.add("suite.name", format!("the file's name makes {stem:?} the suite's"), wanted);
        }
        stem.into_owned()
    }

    fn seed(&mut self, seed: &Seed) -> Option<u64> {
        let read = match seed {
            Seed::Number(number) => u64::try_from(*number).ok(),
            Seed::Text(digits) => digits.parse().ok(),
        };
        if read.is_none() {
            self.errors.add("suite.seed", "the number is too large", "a whole number of at most 18446744073709551615");
        }
        read
    }

    fn can_be_origin(&mut self, key: &str, name: &str) -> bool {
        let known = self.catalogue.origins();
        let can = known.iter().any(|origin| origin == name);
        if !can {
            let found = format!("{name:?} is no product that can be the origin{}", suggestion(name, &known));
            self.errors.add(key, found, format!("{}, or no such key for weir's own", one_of(&known)));
        }
        can
    }

    /// Names of the `what` tables must differ: cases, folders and references go by them.
    fn unique<'n>(&mut self, what: &str, names: impl Iterator<Item = &'n str>) {
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        for (index, name) in names.enumerate() {
            if let Some(first) = seen.get(name) {
                let found = format!("a second {what} named {name:?}; the first is {what}[{first}]");
                self.errors.add(&child(&item(what, index), "name"), found, "a name that no other has");
            } else {
                seen.insert(name, index);
            }
        }
    }

    fn entries(&mut self, products: &[EntryPattern], default: Option<&str>) -> Vec<Entry> {
        let mut entries: Vec<Entry> = Vec::new();
        for (index, EntryPattern { product, profile }) in products.iter().enumerate() {
            match self.entry(product, profile.as_deref().or(default)) {
                Ok(entry) if entries.contains(&entry) => {
                    let found = format!("{product}:{} stands here twice", entry.profile);
                    self.errors.add(&item("suite.products", index), found, "each product and profile once");
                }
                Ok(entry) => entries.push(entry),
                Err((found, wanted)) => self.errors.add(&item("suite.products", index), found, wanted),
            }
        }
        entries
    }

    /// A product with one of its profiles, or what was found and what was expected.
    fn entry(&self, product: &str, profile: Option<&str>) -> Result<Entry, (String, String)> {
        let Some(profiles) = self.catalogue.profiles(product) else {
            let known = self.catalogue.products();
            return Err((format!("there is no product {product:?}{}", suggestion(product, &known)), one_of(&known)));
        };
        let Some(profile) = profile else {
            let wanted = format!("\"{product}:<profile>\", or profile = \"…\" in [suite], for all without one");
            return Err((format!("{product:?} is named without a profile"), wanted));
        };
        if !profiles.iter().any(|known| known == profile) {
            let near = suggestion(profile, &profiles);
            return Err((format!("product {product:?} has no profile {profile:?}{near}"), one_of(&profiles)));
        }
        Ok(Entry { product: product.to_owned(), profile: profile.to_owned() })
    }

    fn workload(&mut self, path: &str, workload: &Workload, loads: &[&str], entries: Option<&[Entry]>) {
        self.known(&child(path, "loads"), "load", workload.loads.as_deref(), loads);
        self.patterns(&child(path, "products"), workload.products.as_deref().unwrap_or_default(), entries);
        for (name, value) in &workload.request.headers {
            let path = child(&child(path, "headers"), name);
            if !is_token(name) {
                let wanted = "a header's name: letters, digits and !#$%&'*+-.^_`|~";
                self.errors.add(&path, format!("{name:?} cannot be a header's name"), wanted);
            }
            if !is_field_value(value) {
                let wanted = "one line without control characters, and no blanks at its ends";
                self.errors.add(&path, format!("{value:?} cannot be a header's value"), wanted);
            }
        }
        self.kind_of_request(path, workload);
        self.names(path, workload);
        self.coding(path, workload, entries);
        self.stream(path, workload);
        if workload.expect.any_body && (workload.expect.size.is_some() || workload.expect.hash.is_some()) {
            let found = "stands beside a size or a hash";
            self.errors.add(&child(&child(path, "expect"), "any_body"), found, "one of the two");
        }
        self.origin_headers(path, workload);
        if let Err((key, found, wanted)) = workload.gateway.check(workload.origin_count(), &workload.request.path) {
            self.errors.add(&child(&child(path, "gateway"), key), found, wanted);
        }
        if workload.gateway.first_host().is_some() && workload.request.header("host").is_some() {
            let path = child(&child(path, "headers"), "host");
            self.errors.add(&path, "stands beside routes by host", "none: each request has the host of its route");
        }
    }

    /// Another workload of the suite, and a profile that products have in it.
    fn baseline(&mut self, path: &str, workload: &Workload, workloads: &[&str], entries: Option<&[Entry]>) {
        let Some((name, profile)) = workload.baseline() else { return };
        let others: Vec<&str> = workloads.iter().copied().filter(|other| *other != workload.name).collect();
        if !others.contains(&name) {
            let found = format!("the suite has no other workload {name:?}{}", suggestion(name, &others));
            self.errors.add(path, found, one_of(&others));
        }
        let (Some(profile), Some(entries)) = (profile, entries) else { return };
        let profiles = unique(entries.iter().map(|entry| entry.profile.as_str()));
        if !profiles.contains(&profile) {
            self.errors.add(path, format!("no product of the suite has the profile {profile:?}"), one_of(&profiles));
        }
    }

    /// Each means one of the suite's products.
    fn patterns(&mut self, path: &str, patterns: &[EntryPattern], entries: Option<&[Entry]>) {
        for (index, pattern) in patterns.iter().enumerate() {
            let Some(entries) = entries else { break };
            if !entries.iter().any(|entry| pattern.fits(&entry.product, &entry.profile)) {
                let names = entries.iter().map(|entry| format!("{}:{}", entry.product, entry.profile));
                let found = format!("the suite has no product {:?}", pattern.to_string());
                self.errors.add(&item(path, index), found, one_of(names));
            }
        }
    }

    /// The header with the names must be one that nothing else uses.
    fn names(&mut self, path: &str, workload: &Workload) {
        let Some(RequestIdSetting::In(header)) = &workload.request_ids else { return };
        let path = child(path, "request_ids");
        if let Err((found, wanted)) = request_id_header(header) {
            self.errors.add(&path, found, wanted);
        } else if workload.request.header(header).is_some() {
            self.errors.add(&path, format!("the request has a header {header:?} already"), "another header");
        }
    }

    /// The origin can send what it is told to.
    fn origin_headers(&mut self, path: &str, workload: &Workload) {
        let path = child(path, "origin_headers");
        for (name, value) in &workload.origin_headers {
            if let Err((found, wanted)) = origin_header(name, value) {
                self.errors.add(&child(&path, name), found, wanted);
            }
        }
        let count = workload.origin_headers.len();
        if count > MOST_ORIGIN_HEADERS {
            self.errors.add(&path, format!("{count} headers"), format!("at most {MOST_ORIGIN_HEADERS}"));
        }
    }

    /// Somebody has to offer the content coding that a workload accepts: one of its products, or the origin, whose path then says so.
    fn coding(&mut self, path: &str, workload: &Workload, entries: Option<&[Entry]>) {
        let key = child(path, "accept_encoding");
        let compresses = workload.gateway.filter == Some(Filter::Compression);
        if compresses && workload.accept_encoding.is_none() {
            self.errors.add(&key, "is missing", "\"gzip\", for the filter compresses what clients accept so");
        }
        let Some(coding) = workload.accept_encoding.filter(|_| !workload.protocol.is_keyvalue()) else { return };
        if workload.request.header("accept-encoding").is_some() {
            let found = "the request has a header Accept-Encoding already";
            return self.errors.add(
                &key,
                found,
                "one of the two: the header alone lets no coded response be successful",
            );
        }
        let offers = |entry: &Entry| {
            let codings = self.catalogue.codings(&entry.product, &entry.profile);
            codings.is_none_or(|codings| codings.contains(&coding))
        };
        let mut asked =
            entries.unwrap_or_default().iter().filter(|entry| workload.asks(&entry.product, &entry.profile));
        let by_origin = workload.request.path.contains(&format!("encoding={}", coding.as_str()));
        if entries.is_some() && !by_origin && !compresses && !asked.any(offers) {
            let coding = coding.as_str();
            let found = format!("no product of this workload answers in {coding}");
            let wanted = format!(
                "a product whose profile has codings = [\"{coding}\"], or encoding={coding} in the query of `path`, with which the \
                 origin codes"
            );
            self.errors.add(&key, found, wanted);
        }
    }

    /// The messages of a stream are read as they come, and differ each time.
    fn stream(&mut self, path: &str, workload: &Workload) {
        if workload.cancel_each.is_some_and(|each| !(1..=1_000_000).contains(&each)) {
            self.errors.add(&child(path, "cancel_each"), "is out of its range".to_owned(), "1 to 1000000".to_owned());
        }
        if workload.cancel_each.is_some() && !workload.stream.is_some_and(StreamKind::in_responses) {
            let wanted = "stream = \"sse\", \"openai\" or \"grpc\" beside it, or none".to_owned();
            self.errors.add(&child(path, "cancel_each"), "has no stream to cancel".to_owned(), wanted);
        }
        if workload.stream.is_none() || workload.protocol.is_keyvalue() {
            return;
        }
        let needed = workload.stream.and_then(StreamKind::application);
        if let Some(needed) = needed.filter(|needed| workload.protocol.application() != *needed) {
            let of_it = Protocol::all().filter(|protocol| protocol.application() == needed);
            let found = format!("does not go with protocol = {:?}", workload.protocol.as_str());
            self.errors.add(&child(path, "stream"), found, format!("protocol {}", one_of(of_it.map(Protocol::as_str))));
        }
        if let Some(needed) = needed.filter(|needed| workload.upstream().application() != *needed) {
            let of_it = Protocol::all().filter(|protocol| protocol.application() == needed);
            let found = format!("does not carry this stream: {:?}", workload.upstream().as_str());
            let key = child(&child(path, "gateway"), "upstream");
            self.errors.add(&key, found, one_of(of_it.map(Protocol::as_str)));
        }
        let besides = [
            ("accept_encoding", workload.accept_encoding.is_some()),
            ("hash", workload.expect.hash.is_some()),
            ("method = \"HEAD\"", workload.request.method == "HEAD"),
        ];
        for (key, _) in besides.into_iter().filter(|(_, given)| *given) {
            self.errors.add(
                &child(path, "stream"),
                format!("stands beside {key}"),
                format!("a stream without {key}, because its messages are read as they come, and differ each time"),
            );
        }
    }

    /// A workload asks either for a path or for keys and values, as its protocol does.
    fn kind_of_request(&mut self, path: &str, workload: &Workload) {
        let (protocol, request) = (workload.protocol, &workload.request);
        let mut error = |key: &str, found: String, wanted: &str| self.errors.add(&child(path, key), found, wanted);
        let Some(keyvalue) = &workload.keyvalue else {
            if protocol.is_keyvalue() {
                let found = format!("{} needs operations, and there are none", protocol.title());
                error("keyvalue", found, "a table such as { operations = \"C:1,G:3\", value = 2000 }");
            } else if request.path.is_empty() {
                error("path", "is missing".to_owned(), "the path of the request, such as \"/bytes/128\"");
            }
            return;
        };
        if !protocol.is_keyvalue() {
            let speak = Protocol::all().filter(|protocol| protocol.is_keyvalue()).map(Protocol::as_str);
            let found = format!("does not go with protocol = {:?}", protocol.as_str());
            return error("keyvalue", found, &format!("protocol = {}", one_of(speak)));
        }
        let of_http = [
            ("path", !request.path.is_empty()),
            ("method", request.method != "GET"),
            ("headers", !request.headers.is_empty()),
            ("body", !request.body.is_empty()),
            ("expect", workload.expect != Expect::default()),
            ("by_product", workload.by_product),
            ("request_ids", workload.request_ids.is_some()),
            ("accept_encoding", workload.accept_encoding.is_some()),
            ("stream", workload.stream.is_some()),
            ("cancel_each", workload.cancel_each.is_some()),
            ("origin_headers", !workload.origin_headers.is_empty()),
            ("gateway", workload.gateway != Gateway::default()),
        ];
        for (key, _) in of_http.into_iter().filter(|(_, given)| *given) {
            error(key, format!("does not go with protocol = {:?}", protocol.as_str()), &format!("no {key}"));
        }
        if let Err((key, found, wanted)) = keyvalue.check(protocol) {
            self.errors.add(&child(&child(path, "keyvalue"), key), found, wanted);
        }
    }

    fn load(&mut self, path: &str, loads: &[Load], index: usize, workloads: &[&str]) {
        let load = &loads[index];
        let mut error = |key: &str, found: &str, wanted: &str| self.errors.add(&child(path, key), found, wanted);
        if !matches!(load.kind, LoadKind::Open { .. }) {
            let of_open = [("shares", matches!(load.series, Series::Shares(_))), ("saturating", load.saturating)];
            for (key, _) in of_open.into_iter().filter(|(_, given)| *given) {
                error(key, &format!("only an open load has {key}"), &format!("kind = \"open\", or no {key}"));
            }
        }
        let key = match &load.series {
            Series::Once => "",
            Series::Rounds(_) => "rounds",
            Series::Shares(shares) => {
                if let Some(share) = shares.iter().find(|share| !(**share > 0.0 && **share <= LARGEST_SHARE)) {
                    let wanted = "multiples of the rate, of more than 0 and at most 100, such as [0.2, 0.5, 1.0]";
                    error("shares", &format!("found the number {share:?}"), wanted);
                }
                if !shares.is_sorted_by(|a, b| a < b) {
                    error("shares", "the multiples do not ascend", "each larger than the one before");
                }
                "shares"
            }
            Series::Connections(counts) => {
                if counts.contains(&0) {
                    error("connection_counts", "found the number 0", "at least one connection");
                }
                if !counts.is_sorted_by(|a, b| a < b) {
                    error("connection_counts", "the numbers do not ascend", "each larger than the one before");
                }
                if let Some(most) = counts.last().filter(|most| **most != load.connections) {
                    let has = load.connections;
                    let found = format!("the load has {has} connections, and the last of the series {most}");
                    error("connections", &found, &format!("connections = {most}: the most of the series"));
                }
                "connection_counts"
            }
        };
        if let (LoadKind::Search { .. }, Series::Rounds(_) | Series::Shares(_) | Series::Connections(_)) =
            (&load.kind, &load.series)
        {
            error(key, "a search is no series: it finds one rate", &format!("no {key}"));
        }
        if load.restart && (load.series == Series::Once || load.keep || load.steady.is_some()) {
            error("restart", "a load of one point, or one with keep or steady", "a series without either");
        }
        let fits = |value: &u64| (LEAST_VALUE..=LONGEST_VALUE).contains(value);
        if !load.values.is_empty()
            && (load.values.len() != load.series.points() as usize || !load.values.iter().all(fits))
        {
            let found = format!("found the lengths {:?}, and {} points", load.values, load.series.points());
            error("values", &found, &format!("a length of {LEAST_VALUE} to {LONGEST_VALUE} bytes for each point"));
        }
        let lone =
            load.series == Series::Once && !matches!(load.kind, LoadKind::Search { .. } | LoadKind::Count { .. });
        if !load.faults.is_empty() && !lone {
            error("fault", "faults in a series, a search or a counted load", "a closed or open load of one point");
        }
        if load.keep && !load.faults.is_empty() {
            error(
                "keep",
                "the load has faults, and a kept product would take them into the next workload",
                "no keep, or no fault",
            );
        }
        if let Some(every) = load.change_every {
            if !lone || load.keep {
                let found = "changes in a series, a search, a counted load, or one with keep";
                error("change_every", found, "a closed or open load of one point, without keep");
            }
            if load.changes().is_empty() {
                let found = format!("none fits: the window has {}", HumanDuration(load.duration));
                error("change_every", &found, &format!("a duration of {} or more", HumanDuration(every * 3)));
            }
        }
        if load.series.points() as usize > MOST_POINTS {
            error(key, &format!("a series of {} points", load.series.points()), &format!("at most {MOST_POINTS}"));
        }
        for (index, fault) in load.faults.iter().enumerate() {
            if let Err((key, found, wanted)) = fault.check(load.duration) {
                self.errors.add(&child(&item(&child(path, "fault"), index), key), found, wanted);
            }
        }
        match &load.kind {
            LoadKind::Open { rate: RateSpec::Share { load: base, .. }, .. } => self.base(path, base, loads, index),
            LoadKind::Open { rate: RateSpec::Table(rows), .. } => self.rates(path, rows, workloads),
            _ => {}
        }
    }

    /// The members to which faults happen are there under each workload of the load, and responses can show changes.
    fn members(&mut self, path: &str, load: &Load, workloads: &[Workload]) {
        let under = |workload: &&Workload| workload.loads.as_ref().is_none_or(|loads| loads.contains(&load.name));
        let plain = |one: &&Workload| {
            one.gateway == Gateway::default() && one.keyvalue.is_none() && one.stream.is_none() && !one.by_product
        };
        if let Some(other) = workloads.iter().filter(under).find(|one| load.change_every.is_some() && !plain(one)) {
            let found = format!("the workload {} has keyvalue, stream, by_product or gateway", other.name);
            self.errors.add(&child(path, "change_every"), found, "workloads without them, named by their `loads`");
        }
        let spoken = |workload: &&Workload| workload.protocol.application() != Application::Http1;
        for (index, fault) in load.faults.iter().enumerate() {
            if let Some(other) = workloads.iter().filter(under).find(|one| fault.what.is_of_clients() && spoken(one)) {
                let path = child(&item(&child(path, "fault"), index), "what");
                let found = format!(
                    "slow clients speak HTTP/1.1, and the workload {} is {}",
                    other.name,
                    other.protocol.as_str()
                );
                self.errors.add(&path, found, "workloads of http/1.1 or https/1.1, named by their `loads`");
            }
            let Some(member) = fault.member else { continue };
            let path = child(&item(&child(path, "fault"), index), "member");
            for workload in workloads.iter().filter(under) {
                let origins = workload.origin_count();
                if workload.protocol.is_keyvalue() {
                    let found = format!("the workload {} is one of keys and values", workload.name);
                    self.errors.add(&path, found, "workloads of HTTP, named by their `loads`");
                } else if member > origins || origins < 2 {
                    let found = format!("the workload {} has {}", workload.name, counted(origins.into(), "origin"));
                    self.errors.add(&path, found, "a member of its pool (its `origins`), or `loads` without this one");
                }
            }
        }
    }

    /// A share refers to a closed load that has been run by then.
    fn base(&mut self, path: &str, base: &str, loads: &[Load], index: usize) {
        let at = loads.iter().position(|load| load.name == base);
        let found = match at.map(|at| (at, &loads[at].kind)) {
            Some((at, LoadKind::Closed)) if at < index => return,
            None => {
                let near = suggestion(base, loads.iter().map(|load| load.name.as_str()));
                format!("there is no load {base:?}{near}")
            }
            Some((at, _)) if at == index => "a load cannot be a share of itself".to_owned(),
            Some((at, _)) if at > index => format!("the load {base:?} comes later"),
            Some((_, LoadKind::Open { .. })) => format!("the load {base:?} is open, and finds no capacity"),
            Some(_) => format!("the load {base:?} is not closed"),
        };
        let earlier = loads[..index].iter().filter(|load| load.kind == LoadKind::Closed);
        let earlier: Vec<&str> = earlier.map(|load| load.name.as_str()).collect();
        let wanted = match earlier.as_slice() {
            [] => "the name of a closed load that stands before this one".to_owned(),
            names => format!("a closed load that stands before this one: {}", one_of(names)),
        };
        self.errors.add(&child(&child(path, "rate"), "load"), found, wanted);
    }

    fn rates(&mut self, path: &str, rows: &[TableRate], workloads: &[&str]) {
        for (index, row) in rows.iter().enumerate() {
            let path = child(&item(&child(path, "rate"), index), "workload");
            if !workloads.contains(&row.workload.as_str()) {
                let near = suggestion(&row.workload, workloads);
                let found = format!("the suite has no workload {:?}{near}", row.workload);
                self.errors.add(&path, found, one_of(workloads));
            }
            if rows[..index].iter().any(|other| other.workload == row.workload && other.product == row.product) {
                self.errors.add(&path, "a second rate for the same workload and product", "each once");
            }
        }
    }

    fn known(&mut self, path: &str, what: &str, found: Option<&[String]>, known: &[&str]) {
        for (index, name) in found.into_iter().flatten().enumerate() {
            if !known.contains(&name.as_str()) {
                let found = format!("the suite has no {what} {name:?}{}", suggestion(name, known));
                self.errors.add(&item(path, index), found, one_of(known));
            }
        }
    }
}
