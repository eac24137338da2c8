//! Renders a product's profile into files, argument vectors and environment for one trial. The launcher calls it.
//!
//! Templates are text with named variables ([`Vars`]). An unknown variable is an error, not an empty string. Commands are vectors of
//! arguments, never lines for a shell.
//!
//! This module knows no product by name, and does not know what the files mean or how they are used.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Component, Path, PathBuf};

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, ValueKind};
use minijinja::{Environment, UndefinedBehavior, Value};
use weir_host::Host;
use weir_model::gateway::Gateway;
use weir_model::load::StreamKind;
use weir_model::product::{self, Product, Profile, Program, Reload};
use weir_model::protocol::Application;
use weir_model::suite::{Protocol, Tls};

use crate::consumers::Consumers;

/// The variables of a product's templates, except `dir` and the names in it. Every variable is always defined, so that a template
/// can test it; without TLS, `cert` names a file that does not exist.
#[derive(Debug, Clone, PartialEq)]
pub struct Vars {
    /// `binary`: the product's program.
    pub binary: PathBuf,
    /// `listen_host`: the address the product listens on, and no other.
    pub listen_host: String,
    /// `listen_port`.
    pub listen_port: u16,
    /// `origins`: where the origins are, each with `host` and `port`. `origin_host` and `origin_port` are the first's. A product
    /// that holds the data itself has none.
    pub origins: Vec<SocketAddr>,
    /// `cores`: how many CPUs the proxy role has on the host where the files are.
    pub cores: u32,
    /// `connections`: how many connections the load opens to the product.
    pub connections: u32,
    /// `protocol`: the protocol of the clients; `tls` and `h2` follow from it.
    pub protocol: Protocol,
    /// Other protocols in which it is asked, and where: under a profile with `listeners` alone. `listeners` in templates has the
    /// one above and these, each with `host`, `port`, `protocol`, and the flags that follow from it.
    pub others: Vec<(Protocol, SocketAddr)>,
    /// `streams`: HTTP/2 streams a connection; 1 for HTTP/1.1.
    pub streams: u32,
    /// `stream`: what carries the messages of responses that are streams, which are to be passed on as they come (`sse`, `grpc`); none where
    /// they are not.
    pub stream: Option<StreamKind>,
    /// `tls_group`, `tls_min`, `tls_max`, `tls12_suites`, `tls13_suites`, `resumption`, `key_type`, `client_certificates`.
    pub tls: Tls,
    /// `paths`: the paths of the load's requests, without queries, for products that need a rule for each path. `path` is the
    /// first: the only one, unless the product is kept for several workloads.
    pub paths: Vec<String>,
    /// `gateway`: what is asked of it beyond sending requests on, as a suite says it. `consumers`, `key_set`, `secret` and `public_key` follow
    /// from its filter ([`Consumers`]).
    pub gateway: Gateway,
    /// `upstream_tls`, `upstream_h2`: what it speaks to the origin.
    pub upstream: Protocol,
    /// `change`: the number of the change of the route that the files show, which responses have in the header `x-weir-change`; none where
    /// the route does not change. Where it does, `origins` has one at a time.
    pub change: Option<u32>,
    /// `request_id_header`: the header by which requests differ, in lower case.
    pub request_id_header: String,
    /// `ports`: the ports of the product's parts, by name; `hosts`: the addresses on which they listen, by the same names.
    pub ports: BTreeMap<String, SocketAddr>,
    /// `part_cores`: how many CPUs each part may use, by name.
    pub part_cores: BTreeMap<String, usize>,
}

/// Why a profile could not be rendered.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// The product has no program.
    #[error("{0} has no program to run: it is the client talking to the origin")]
    NoProgram(String),
    /// The profile, a template or the folder is wrong: where, what was found, and what was expected.
    #[error("{0}")]
    Refused(String),
    /// A file cannot be written.
    #[error(transparent)]
    File(#[from] weir_host::files::FileError),
}

/// Which text of a product is rendered.
#[derive(Debug, Clone)]
enum SourceText {
    /// A template file of the product's folder.
    Template(String),
    /// A value of `product.toml`, by its dotted key.
    Key(String),
}

/// Name of the certificate (`cert`) in the rendered folder: a PEM file that exists when TLS is used.
pub const CERT: &str = "cert.pem";

/// Name of its key (`key`).
pub const KEY: &str = "key.pem";

/// Name of the file with both, the certificate first (`cert_and_key`).
pub const CERT_AND_KEY: &str = "cert-and-key.pem";

/// Name of the file with the authorities of clients' certificates (`client_ca`): there when the suite asks for them. The run's own
/// certificate is among them, for processes of a product that are each other's clients.
pub const CLIENT_CA: &str = "client-ca.pem";

/// A profile as one trial runs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// The files written, in the profile's order.
    pub files: Vec<PathBuf>,
    /// Its processes, in the order of the product's file.
    pub parts: Vec<RenderedPart>,
    /// Niceness of its processes, 0 to 19.
    pub nice: u8,
}

/// One of its processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedPart {
    /// Argument vector that runs it in the foreground; first is the program.
    pub command: Vec<String>,
    /// Argument vector of its own check of its configuration, if it has one.
    pub check: Option<Vec<String>>,
    /// Environment variables on top of the inherited ones.
    pub env: BTreeMap<String, String>,
    /// How it reads its configuration anew, if it can.
    pub reload: Option<Reload>,
    /// It does so by itself when they are written.
    pub watches: bool,
    /// The address at which it tells numbers about itself, if it does.
    pub monitor: Option<String>,
}

/// Renders `profile` of `product` into `dir`, which must be absolute; it is made when missing.
///
/// Everything is rendered before the first file is written, so that only a full disk leaves some of the files.
///
/// # Errors
/// When the profile or a template does not exist, a template is invalid or uses an unknown variable, the folder's name cannot be
/// put into a configuration, or a file cannot be written.
pub fn render(
    host: &dyn Host,
    product: &Product,
    profile: &str,
    vars: &Vars,
    dir: &Path,
) -> Result<Rendered, RenderError> {
    let program = program(product)?;
    let (profile, scope) = scope(host, product, profile, vars, dir)?;
    let texts = render_files(product, profile, &scope)?;
    let mut parts = Vec::with_capacity(program.parts.len());
    for (index, part) in program.parts.iter().enumerate() {
        let key = if program.has_parts() { format!("part[{index}].process") } else { "process".to_owned() };
        let monitor = part.monitor.as_ref();
        let monitor =
            monitor.map(|text| scope.text(SourceText::Key(format!("part[{index}].monitor")), text)).transpose()?;
        parts.push(RenderedPart { monitor, ..render_part(&key, &part.process, &scope)? });
    }
    let mut files = Vec::with_capacity(texts.len());
    host.create_dir(dir)?;
    for (name, text) in texts {
        let path = dir.join(name);
        write(host, &path, &text)?;
        files.push(path);
    }
    Ok(Rendered { files, parts, nice: profile.nice })
}

/// The files that differ from those of `before` with these variables: where they go, and their texts.
///
/// # Errors
/// As for [`render`].
pub(crate) fn differing(
    host: &dyn Host,
    product: &Product,
    profile: &str,
    (before, vars): (&Vars, &Vars),
    dir: &Path,
) -> Result<Vec<(PathBuf, String)>, RenderError> {
    let texts = |vars| {
        let (profile, scope) = scope(host, product, profile, vars, dir)?;
        render_files(product, profile, &scope)
    };
    let (old, new) = (texts(before)?, texts(vars)?);
    let differ = new.into_iter().zip(old).filter(|(new, old)| new != old);
    Ok(differ.map(|((name, text), _)| (dir.join(name), text)).collect())
}

/// Writes a configuration. Only the owner may read one that contains the key.
pub(crate) fn write(host: &dyn Host, path: &Path, text: &str) -> Result<(), weir_host::files::FileError> {
    host.write(path, text.as_bytes(), text.contains("PRIVATE KEY-----"))
}

/// A profile by its name, with what its templates know.
fn scope<'p>(
    host: &dyn Host,
    product: &'p Product,
    profile: &str,
    vars: &Vars,
    dir: &Path,
) -> Result<(&'p Profile, Scope<'p>), RenderError> {
    let profile = product.profiles.get(profile).ok_or_else(|| {
        let known = list(product.profiles.keys());
        RenderError::Refused(format!("{} has no profile `{profile}`\n  expected: {known}", product.name))
    })?;
    let mut values = values(host, vars, dir)?;
    values.insert("profile", Value::from(profile.name.as_str()));
    Ok((profile, Scope::new(&product.name, &profile.name, values)))
}

/// `key` is where the process stands in the product's file.
fn render_part(key: &str, process: &product::ProcessSpec, scope: &Scope<'_>) -> Result<RenderedPart, RenderError> {
    let command = scope.vector(&format!("{key}.command"), &process.command)?;
    let check = match process.check.as_slice() {
        [] => None,
        check => Some(scope.vector(&format!("{key}.check"), check)?),
    };
    let mut env = BTreeMap::new();
    for (name, template) in &process.env {
        env.insert(name.clone(), scope.text(SourceText::Key(format!("{key}.env.{name}")), template)?);
    }
    let reload = match &process.reload {
        Some(Reload::Command(command)) => {
            Some(Reload::Command(scope.vector(&format!("{key}.reload.command"), command)?))
        }
        other => other.clone(),
    };
    Ok(RenderedPart { command, check, env, reload, watches: process.watches, monitor: None })
}

/// The argument vector that asks `binary` for its version. Only `{{ binary }}` is known in it.
///
/// # Errors
/// When the product has no program, or its version command says something unknown.
pub fn version_command(product: &Product, binary: &Path) -> Result<Vec<String>, RenderError> {
    let program = program(product)?;
    let values = BTreeMap::from([("binary", Value::from(utf8(binary)?))]);
    Scope::new(&product.name, "", values).vector("version.command", &program.version.command)
}

fn program(product: &Product) -> Result<&Program, RenderError> {
    product.program().ok_or_else(|| RenderError::NoProgram(product.name.clone()))
}

/// Every file of the profile as (relative name, text).
fn render_files(product: &Product, profile: &Profile, scope: &Scope) -> Result<Vec<(PathBuf, String)>, RenderError> {
    let mut texts = Vec::with_capacity(profile.files.len());
    for (file, template) in &profile.files {
        let wrong = |what: String| RenderError::Refused(format!("{}, profile {}: {what}", product.name, profile.name));
        let source = product.templates.get(template).ok_or_else(|| {
            let known = list(product.templates.keys());
            wrong(format!("there is no template `{template}`\n  expected: {known}"))
        })?;
        let name = PathBuf::from(file);
        // A product's folder can come from anybody: its files stay inside the trial's folder.
        if file.is_empty() || !name.components().all(|part| matches!(part, Component::Normal(_))) {
            let expected = "a relative name without `..`";
            return Err(wrong(format!("`{file}` leaves the trial's folder\n  expected: {expected}")));
        }
        texts.push((name, scope.text(SourceText::Template(template.clone()), source)?));
    }
    Ok(texts)
}

fn values(host: &dyn Host, vars: &Vars, dir: &Path) -> Result<BTreeMap<&'static str, Value>, RenderError> {
    let dir = quotable(dir).map_err(|why| bad_path(dir, &why))?;
    let below = |name: &str| Value::from(format!("{dir}/{name}"));
    // For products that need them inside their configuration. Without TLS they are undefined, and using them is an error.
    let text_of = |name: &str| {
        host.read(&Path::new(dir).join(name))
            .ok()
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .map_or(Value::UNDEFINED, Value::from)
    };
    let list = |names: &[&str]| Value::from(names.iter().map(|name| Value::from(*name)).collect::<Vec<_>>());
    let (oldest, newest) = vars.tls.versions;
    let origin = vars.origins.first();
    let place = |addr: &SocketAddr| {
        Value::from_pairs([("host", Value::from(addr.ip().to_string())), ("port", Value::from(addr.port()))])
    };
    let mut values = BTreeMap::from([
        ("binary", Value::from(utf8(&vars.binary)?)),
        ("dir", Value::from(dir)),
        ("listen_host", Value::from(vars.listen_host.as_str())),
        ("listen_port", Value::from(vars.listen_port)),
        ("origin_host", origin.map_or(Value::UNDEFINED, |origin| Value::from(origin.ip().to_string()))),
        ("origin_port", origin.map_or(Value::UNDEFINED, |origin| Value::from(origin.port()))),
        ("origins", vars.origins.iter().map(place).collect()),
        ("cores", Value::from(vars.cores)),
        ("connections", Value::from(vars.connections)),
        ("protocol", Value::from(vars.protocol.as_str())),
        ("streams", Value::from(vars.streams)),
        ("stream", vars.stream.map_or(Value::from(()), |kind| Value::from(kind.carrier().as_str()))),
        ("cert", below(CERT)),
        ("key", below(KEY)),
        ("cert_and_key", below(CERT_AND_KEY)),
        ("client_ca", below(CLIENT_CA)),
        ("cert_pem", text_of(CERT)),
        ("key_pem", text_of(KEY)),
        ("tls_group", Value::from(vars.tls.group().to_ascii_lowercase())),
        ("tls_min", Value::from(oldest.as_str())),
        ("tls_max", Value::from(newest.as_str())),
        ("tls12_suites", list(vars.tls.suites12())),
        ("tls13_suites", list(vars.tls.suites13())),
        ("resumption", Value::from(vars.tls.resumption)),
        ("client_certificates", Value::from(vars.tls.client_certificates)),
        ("key_type", Value::from(vars.tls.key.as_str())),
        ("path", Value::from(vars.paths.first().map(String::as_str).unwrap_or_default())),
        ("paths", Value::from(vars.paths.clone())),
        ("gateway", Value::from(Serde(&vars.gateway))),
        ("upstream_tls", Value::from(vars.upstream.is_tls())),
        ("upstream_h2", Value::from(vars.upstream.application() == Application::Http2)),
        ("change", vars.change.map_or(Value::from(()), Value::from)),
        ("request_id_header", Value::from(vars.request_id_header.as_str())),
        ("listeners", listeners(vars)),
        ("ports", Value::from_pairs(vars.ports.iter().map(|(name, addr)| (name.clone(), addr.port())))),
        ("hosts", Value::from_pairs(vars.ports.iter().map(|(name, addr)| (name.clone(), addr.ip().to_string())))),
        ("part_cores", Value::from_pairs(vars.part_cores.clone())),
    ]);
    let Consumers { consumers, key_set, secret, public_key } = Consumers::of(vars.gateway.filter);
    values.insert("consumers", Value::from(Serde(&consumers)));
    values.extend(
        [("key_set", key_set), ("secret", secret), ("public_key", public_key)]
            .map(|(name, text)| (name, Value::from(text))),
    );
    values.extend(vars.protocol.template_flags().into_iter().map(|(name, on)| (name, Value::from(on))));
    Ok(values)
}

/// All listeners as templates see them.
fn listeners(vars: &Vars) -> Value {
    let one = |protocol: Protocol, host: String, port: u16| {
        let own =
            [("host", Value::from(host)), ("port", Value::from(port)), ("protocol", Value::from(protocol.as_str()))];
        let flags = protocol.template_flags().into_iter().map(|(name, on)| (name, Value::from(on)));
        Value::from_pairs(own.into_iter().chain(flags))
    };
    let others = vars.others.iter().map(|(protocol, addr)| one(*protocol, addr.ip().to_string(), addr.port()));
    [one(vars.protocol, vars.listen_host.clone(), vars.listen_port)].into_iter().chain(others).collect()
}

fn bad_path(path: &Path, why: &str) -> RenderError {
    let expected = "an absolute path of letters, digits, spaces and the like (see --out)";
    RenderError::Refused(format!("the path {} {why}\n  expected: {expected}", path.display()))
}

fn utf8(path: &Path) -> Result<&str, RenderError> {
    path.to_str().ok_or_else(|| bad_path(path, "is not UTF-8"))
}

/// Checks that the folder's name can be put into configuration files, at best between double quotes. Characters that would end the
/// quotes or be expanded are refused here, with a clear error.
///
/// # Errors
/// What is wrong with it, with the path as the subject.
pub fn quotable(dir: &Path) -> Result<&str, String> {
    if !dir.is_absolute() {
        return Err("is not absolute".to_owned());
    }
    let text = dir.to_str().ok_or("is not UTF-8")?;
    match text.chars().find(|c| c.is_control() || "\"'\\$`{}#%;".contains(*c)) {
        Some(bad) => Err(format!("has {bad:?} in it, which configuration files take for something else")),
        None => Ok(text),
    }
}

/// Names and values while one product's profile is rendered.
struct Scope<'a> {
    product: &'a str,
    profile: &'a str,
    values: BTreeMap<&'static str, Value>,
    templates: Environment<'static>,
}

impl<'a> Scope<'a> {
    fn new(product: &'a str, profile: &'a str, values: BTreeMap<&'static str, Value>) -> Scope<'a> {
        let mut templates = Environment::new();
        templates.set_undefined_behavior(UndefinedBehavior::Strict);
        templates.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        // The engine would write True and False, which configuration languages do not use.
        templates.set_formatter(|out, state, value| match bool::try_from(value.clone()) {
            Ok(flag) if value.kind() == ValueKind::Bool => Ok(write!(out, "{flag}")?),
            _ => minijinja::escape_formatter(out, state, value),
        });
        let syntax = SyntaxConfig::builder().keep_trailing_newline(true).build();
        // Only delimiters can clash, and these are the default ones.
        templates.set_syntax(syntax.expect("the default delimiters differ"));
        Scope { product, profile, values, templates }
    }

    fn vector(&self, key: &str, arguments: &[String]) -> Result<Vec<String>, RenderError> {
        let one = |(i, argument): (usize, &String)| self.text(SourceText::Key(format!("{key}[{i}]")), argument);
        arguments.iter().enumerate().map(one).collect()
    }

    fn text(&self, source_text: SourceText, source: &str) -> Result<String, RenderError> {
        let wrong = |error: &minijinja::Error| {
            let message = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
            RenderError::Refused(format!("{}: {message}", self.at(&source_text, error.line())))
        };
        let template = self.templates.template_from_str(source).map_err(|error| wrong(&error))?;
        // Checked before rendering, so that a misspelt name is found even in a branch that is not taken.
        let mut unknown: Vec<String> = template.undeclared_variables(false).into_iter().collect();
        unknown.retain(|name| !self.values.contains_key(name.as_str()) && !self.is_global(name));
        unknown.sort();
        if let Some(variable) = unknown.into_iter().next() {
            let at = self.at(&source_text, line_of(source, &variable));
            let known = list(self.values.keys());
            return Err(RenderError::Refused(format!("{at}: unknown variable `{variable}`\n  expected: {known}")));
        }
        template.render(Value::from_pairs(self.values.clone())).map_err(|error| wrong(&error))
    }

    /// Where something is wrong. A line number is useful only in a file of its own.
    fn at(&self, source_text: &SourceText, line: Option<usize>) -> String {
        let Scope { product, profile, .. } = self;
        let profile = if profile.is_empty() { String::new() } else { format!(", profile {profile}") };
        match (source_text, line) {
            (SourceText::Key(key), _) => format!("{product}{profile}, product.toml: {key}"),
            (SourceText::Template(file), Some(line)) => format!("{product}{profile}, {file}:{line}"),
            (SourceText::Template(file), None) => format!("{product}{profile}, {file}"),
        }
    }

    fn is_global(&self, name: &str) -> bool {
        self.templates.globals().any(|(global, _)| global == name)
    }
}

fn list<T: ToString>(names: impl Iterator<Item = T>) -> String {
    let names: Vec<String> = names.map(|name| name.to_string()).collect();
    if names.is_empty() { "(there is none)".to_owned() } else { names.join(", ") }
}

/// The 1-based line on which `variable` first stands between a tag's braces.
fn line_of(source: &str, variable: &str) -> Option<usize> {
    let mut from = 0;
    while let Some(open) = first_of(&source[from..], ["{{", "{%"]) {
        let start = from + open + 2;
        let end = first_of(&source[start..], ["}}", "%}"]).map_or(source.len(), |close| start + close);
        if let Some(at) = word_at(&source[start..end], variable) {
            return Some(source[..start + at].matches('\n').count() + 1);
        }
        from = end;
    }
    None
}

fn first_of(text: &str, needles: [&str; 2]) -> Option<usize> {
    needles.iter().filter_map(|needle| text.find(needle)).min()
}

fn word_at(text: &str, word: &str) -> Option<usize> {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    text.match_indices(word).map(|(at, _)| at).find(|&at| {
        !text[..at].ends_with(part_of_word) && !text[at + word.len()..].starts_with(|c| part_of_word(c) && c != '.')
    })
}
