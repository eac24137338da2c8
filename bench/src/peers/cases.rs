//! The cases to compare: groups of cells, and the clients or origins that differ within a cell. [`super::compare`]
//! chooses groups, [`super::trial`] runs the cells, [`super::results`] makes a table of each.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use weir_model::protocol::Protocol;
use weir_model::text::{count, counted};

use super::client::Client;
use super::server::Server;

/// The protocols that are compared, with their names in files and flags.
pub const PROTOCOLS: [(&str, Protocol); 6] = [
    ("plain", Protocol::Http11),
    ("tls", Protocol::Https11),
    ("h2c", Protocol::H2c),
    ("h2-tls", Protocol::H2),
    ("redis", Protocol::Redis),
    ("juno", Protocol::Juno),
];

/// The protocol with one of those names.
///
/// # Errors
/// The names.
pub fn protocol(name: &str) -> Result<Protocol, String> {
    let found = PROTOCOLS.iter().find(|(known, _)| *known == name);
    found.map(|(_, protocol)| *protocol).ok_or_else(|| PROTOCOLS.map(|(known, _)| known).join(", "))
}

/// Its name in files and flags.
pub fn wire_name(protocol: Protocol) -> &'static str {
    PROTOCOLS.iter().find(|(_, known)| *known == protocol).map_or("", |(name, _)| name)
}

/// The address of `/bytes/<size>` on a port of this machine; a key-value server's has no path.
pub fn url(protocol: Protocol, port: impl std::fmt::Display, size: u64) -> String {
    let path = if protocol.is_keyvalue() { String::new() } else { format!("/bytes/{size}") };
    format!("{}://127.0.0.1:{port}{path}", protocol.scheme())
}

/// What the cells of a group compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// Clients against weir's origin.
    Clients,
    /// Clients against nginx.
    Nginx,
    /// Clients against haterm.
    Haterm,
    /// Origins under weir's client.
    Origins,
    /// Latency under an open load.
    Open,
    /// Clients against redis-server.
    Redis,
    /// Clients against weir's origin, which stores keys and values.
    Store,
    /// Clients against weir's origin, which sends messages of WebSocket back.
    Sockets,
    /// Clients against weir's origin, which responds to unary calls of gRPC.
    Calls,
    /// Messages of streams against the same bytes as plain responses, at the same rate: the client's cost.
    StreamsClient,
    /// The origin's.
    StreamsOrigin,
}

/// Cells that are run and written together, chosen with `--only`: a question, with HTTP/1.1, with TLS, with HTTP/2, or with a
/// key-value protocol. Those against servers of others come first, because weir's client and origin were made for each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Group {
    Nginx,
    NginxTls,
    NginxH2,
    Haterm,
    HatermH2,
    Redis,
    #[default]
    Clients,
    ClientsTls,
    ClientsH2,
    Origins,
    OriginsTls,
    OriginsH2,
    Open,
    Juno,
    Sockets,
    Calls,
    StreamsClient,
    StreamsOrigin,
}

/// The name of a value on the command line and in tables.
pub fn name<T: ValueEnum>(value: T) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

impl Group {
    /// All, in the order of the results.
    pub fn all() -> &'static [Group] {
        Group::value_variants()
    }

    /// What its cells compare.
    pub fn question(self) -> Question {
        match self {
            Group::Clients | Group::ClientsTls | Group::ClientsH2 => Question::Clients,
            Group::Nginx | Group::NginxTls | Group::NginxH2 => Question::Nginx,
            Group::Haterm | Group::HatermH2 => Question::Haterm,
            Group::Origins | Group::OriginsTls | Group::OriginsH2 => Question::Origins,
            Group::Open => Question::Open,
            Group::Redis => Question::Redis,
            Group::Juno => Question::Store,
            Group::Sockets => Question::Sockets,
            Group::Calls => Question::Calls,
            Group::StreamsClient => Question::StreamsClient,
            Group::StreamsOrigin => Question::StreamsOrigin,
        }
    }

    /// Returns whether its loads have messages that are not plain responses.
    pub fn has_messages(self) -> bool {
        matches!(self, Group::Sockets | Group::Calls | Group::StreamsClient | Group::StreamsOrigin)
    }

    /// The server that its clients are compared against; `None` where servers are compared.
    pub fn server(self) -> Option<Server> {
        match self.question() {
            Question::Nginx => Some(Server::NginxCopy),
            Question::Haterm => Some(Server::Haterm),
            Question::Redis => Some(Server::Redis),
            Question::Origins => None,
            _ => Some(Server::Weir),
        }
    }

    /// Whether a pattern matches its name; `*` stands for any letters.
    pub fn is_named(self, pattern: &str) -> bool {
        matches(pattern, &name(self))
    }

    /// All its cells.
    pub fn cells(self) -> Vec<Cell> {
        let cell = |protocol, (connections, streams), size| Cell { group: self, protocol, connections, streams, size };
        let (connections, size) = MAIN;
        let plain =
            |cells: &[(u32, u64)]| cells.iter().map(|&(c, size)| cell(Protocol::Http11, (c, 1), size)).collect();
        match self {
            Group::Clients => plain(&PLAIN),
            Group::Open => plain(&[MAIN]),
            Group::Nginx | Group::Haterm => plain(&[MAIN, (connections, 165_854)]),
            Group::HatermH2 => HTTP2.map(|shape| cell(Protocol::H2c, shape, size)).to_vec(),
            Group::Origins => plain(&[(connections, 128), (connections, 11_268)]),
            Group::ClientsTls | Group::NginxTls | Group::OriginsTls => {
                vec![cell(Protocol::Https11, (connections, 1), size)]
            }
            Group::ClientsH2 | Group::NginxH2 | Group::OriginsH2 => [Protocol::H2c, Protocol::H2]
                .into_iter()
                .flat_map(|protocol| HTTP2.map(|shape| cell(protocol, shape, size)))
                .collect(),
            Group::Redis => [1, 16].map(|streams| cell(Protocol::Redis, (connections, streams), VALUE)).to_vec(),
            Group::Sockets => [1, 16].map(|streams| cell(Protocol::Http11, (connections, streams), size)).to_vec(),
            Group::Calls => HTTP2.map(|shape| cell(Protocol::H2c, shape, size)).to_vec(),
            Group::StreamsClient | Group::StreamsOrigin => vec![cell(Protocol::Http11, (STREAMS, 1), MESSAGE)],
            // junoload has one request in flight on a connection.
            Group::Juno => vec![cell(Protocol::Juno, (connections, 1), VALUE)],
        }
    }
}

/// Whether `*` in the pattern can stand for letters so that it is the text.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((before, after)) => text
            .strip_prefix(before)
            .is_some_and(|rest| (0..=rest.len()).any(|at| rest.is_char_boundary(at) && matches(after, &rest[at..]))),
    }
}

/// Connections and size of the cell in which all clients take part, and of the open load.
pub const MAIN: (u32, u64) = (64, 128);

/// Bytes of a value.
const VALUE: u64 = 100;

/// Streams that are held, each with a message every 20 ms, and the bytes of a message with what it is wrapped in.
const STREAMS: u32 = 1_000;
const MESSAGE: u64 = 214;

/// Messages a second of these streams, and requests a second of the plain load that they are compared with.
pub const MESSAGE_RATE: u32 = 50 * STREAMS;

/// Rate of the open load, requests a second.
pub const OPEN_RATE: u32 = 20_000;

/// Connections and size of the cells of plain clients.
const PLAIN: [(u32, u64); 7] =
    [(1, 128), (16, 128), (64, 128), (64, 11_268), (64, 165_854), (1_000, 128), (10_000, 128)];

/// Connections, and streams of each, of the cells of HTTP/2.
const HTTP2: [(u32, u32); 2] = [(64, 1), (8, 32)];

/// One comparison: cases that differ in one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// Which group it belongs to.
    pub group: Group,
    /// What is spoken.
    pub protocol: Protocol,
    /// Connections.
    pub connections: u32,
    /// Requests in flight on each.
    pub streams: u32,
    /// Bytes of a response's body, or of a value.
    pub size: u64,
}

/// What differs inside a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A client.
    Client(Client),
    /// An origin.
    Origin(Server),
    /// `weir load` with one connection, closed.
    OneConnection,
    /// `weir load` with an open rate, 64 connections.
    OpenRate,
    /// `weir load` of streams.
    Streams,
    /// `weir load` of plain responses.
    Plain,
}

impl Cell {
    /// Whether it is the cell that all clients take part in.
    pub fn is_main(&self) -> bool {
        (self.connections, self.size) == MAIN
    }

    /// Whether responses are so large that what they cost is taking their bodies out of the kernel.
    pub fn is_large(&self) -> bool {
        self.size > 100_000
    }

    /// What can take part, in the order of tables.
    pub fn candidates(&self) -> Vec<Subject> {
        let clients = Client::value_variants().iter().filter(|client| client.speaks(self.protocol));
        match self.group.question() {
            Question::Clients | Question::Nginx | Question::Haterm | Question::Redis | Question::Store => {
                clients.map(|client| Subject::Client(*client)).collect()
            }
            Question::Origins => {
                let origins = Server::value_variants().iter().filter(|server| server.speaks(self.protocol));
                origins.map(|server| Subject::Origin(*server)).collect()
            }
            Question::Open => vec![Subject::OneConnection, Subject::OpenRate, Subject::Client(Client::Wrk2)],
            Question::Sockets => vec![Subject::Client(Client::Weir), Subject::Client(Client::Gcannon)],
            Question::Calls => vec![Subject::Client(Client::Weir), Subject::Client(Client::H2load)],
            Question::StreamsClient | Question::StreamsOrigin => vec![Subject::Streams, Subject::Plain],
        }
    }

    /// Whether a subject takes part: in the main cell, and in those with TLS or HTTP/2, all that can; elsewhere those that a
    /// target names, and with large responses those that are cheap there.
    pub fn is_shown(&self, subject: Subject) -> bool {
        let few = matches!(self.group, Group::Open | Group::Sockets | Group::Calls);
        let everybody = few || self.protocol != Protocol::Http11 || self.group == Group::Clients && self.is_main();
        match subject {
            Subject::Client(client) => {
                everybody
                    || matches!(client, Client::Weir | Client::Null | Client::Wrk)
                    || matches!(self.group, Group::Nginx | Group::Haterm)
                        && matches!(
                            client,
                            Client::H1load | Client::Haload | Client::H2load | Client::Shb | Client::Shb100
                        )
                    || self.is_large()
                        && matches!(client, Client::H1load | Client::Haload | Client::Gcannon | Client::Shb)
            }
            _ => true,
        }
    }

    /// A heading.
    pub fn title(&self) -> String {
        let (protocol, shape) = (self.protocol.title(), self.shape());
        match self.group.question() {
            Question::Clients => format!("Clients against weir's origin, {protocol}, {shape}"),
            Question::Nginx => format!("Clients against nginx, {protocol}, {shape}"),
            Question::Haterm => format!("Clients against haterm, {protocol}, {shape}"),
            Question::Redis => format!("Clients against redis-server, {protocol}, {shape}"),
            Question::Store => format!("Clients against weir's origin, {protocol}, {shape}"),
            Question::Origins => format!("Origins under weir's client, {protocol}, {shape}"),
            Question::Sockets => format!("Clients against weir's origin, WebSocket, {shape}"),
            Question::Calls => format!("Clients against weir's origin, unary calls of gRPC, {shape}"),
            Question::StreamsClient => format!("Client, a message of a stream against a plain response, {shape}"),
            Question::StreamsOrigin => format!("Origin, a message of a stream against a plain response, {shape}"),
            Question::Open => format!("Open load, {}/s over {shape}", count(OPEN_RATE.into())),
        }
    }

    fn shape(&self) -> String {
        let streams = match self.protocol {
            protocol if protocol.is_keyvalue() => format!(" x {} in flight", self.streams),
            _ if self.group == Group::Sockets => format!(" x {} in flight", self.streams),
            protocol if protocol.is_multiplexed() => format!(" x {}", counted(self.streams.into(), "stream")),
            _ => String::new(),
        };
        format!("{}{streams}, {} B", counted(self.connections.into(), "connection"), count(self.size))
    }
}

impl Subject {
    /// Its name in tables and in the samples.
    pub fn name(self) -> String {
        match self {
            Subject::Client(client) => name(client),
            Subject::Origin(server) => name(server),
            Subject::OneConnection => "closed one connection".to_owned(),
            Subject::OpenRate => "open".to_owned(),
            Subject::Streams => "streams".to_owned(),
            Subject::Plain => "plain".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_names_groups() {
        let named = |pattern| Group::all().iter().filter(|group| group.is_named(pattern)).count();
        assert_eq!(named("*"), Group::all().len());
        assert_eq!(named("clients"), 1);
        assert_eq!(named("clients*"), 3);
        assert_eq!(named("*-h2"), 4);
        assert_eq!(named("*s-*"), 6);
        assert_eq!(named("client"), 0);
        assert_eq!(named(""), 0);
    }

    #[test]
    fn no_cell_is_there_twice() {
        let mut cells: Vec<Cell> = Group::all().iter().flat_map(|group| group.cells()).collect();
        let all = cells.len();
        cells.sort_unstable();
        cells.dedup();
        assert_eq!(cells.len(), all);
        let has_several =
            |cell: &Cell| cell.protocol.is_multiplexed() || cell.protocol.is_keyvalue() || cell.group == Group::Sockets;
        let one = |cell: &Cell| has_several(cell) || cell.streams == 1;
        assert!(cells.iter().all(one));
    }

    #[test]
    fn only_the_main_cell_has_everybody() {
        let of = |connections, size| {
            let cells = Group::Clients.cells();
            let cell = cells.iter().find(|cell| (cell.connections, cell.size) == (connections, size)).unwrap();
            let all = cell.candidates();
            (all.len(), all.into_iter().filter(|subject| cell.is_shown(*subject)).count())
        };
        assert_eq!((of(64, 128), of(1, 128), of(64, 165_854)), ((13, 13), (13, 3), (13, 7)));
    }

    #[test]
    fn subjects_of_a_cell_have_different_names() {
        for cell in Group::all().iter().flat_map(|group| group.cells()) {
            let names: std::collections::BTreeSet<String> = cell.candidates().into_iter().map(Subject::name).collect();
            assert_eq!(names.len(), cell.candidates().len());
        }
    }

    #[test]
    fn headings_say_what_is_spoken() {
        let cell = Cell { group: Group::NginxH2, protocol: Protocol::H2, connections: 8, streams: 32, size: 11_268 };
        assert_eq!(cell.title(), "Clients against nginx, HTTP/2 over TLS, 8 connections x 32 streams, 11,268 B");
    }
}
