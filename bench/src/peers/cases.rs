//! What is compared: groups of cells, and what differs inside a cell.

use serde::{Deserialize, Serialize};

use super::{server, tool};

/// What is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wire {
    /// HTTP/1.1 without TLS.
    Plain,
    /// HTTP/1.1 over TLS 1.3.
    Tls,
    /// HTTP/2 without TLS, by prior knowledge.
    H2c,
    /// HTTP/2 over TLS 1.3.
    H2Tls,
}

impl Wire {
    /// Its name in headings.
    pub fn name(self) -> &'static str {
        match self {
            Wire::Plain => "HTTP/1.1",
            Wire::Tls => "HTTP/1.1 over TLS 1.3",
            Wire::H2c => "HTTP/2 without TLS",
            Wire::H2Tls => "HTTP/2 over TLS 1.3",
        }
    }

    /// Whether there is TLS.
    pub fn is_tls(self) -> bool {
        matches!(self, Wire::Tls | Wire::H2Tls)
    }

    /// Whether it is HTTP/2.
    pub fn is_h2(self) -> bool {
        matches!(self, Wire::H2c | Wire::H2Tls)
    }
}

/// What the cells of a group have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Clients against weir's origin.
    Clients,
    /// Clients against nginx.
    Nginx,
    /// Origins under weir's client.
    Origins,
    /// The open load.
    Open,
}

/// Cells that are run and written together, chosen with `--only`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// Clients against weir's origin, HTTP/1.1.
    Clients,
    /// The same over TLS.
    ClientsTls,
    /// The same with HTTP/2, with and without TLS.
    ClientsH2,
    /// Clients against nginx, HTTP/1.1.
    Nginx,
    /// The same over TLS.
    NginxTls,
    /// The same with HTTP/2, with and without TLS.
    NginxH2,
    /// Origins under weir's client, HTTP/1.1.
    Origins,
    /// The same over TLS.
    OriginsTls,
    /// The same with HTTP/2, with and without TLS.
    OriginsH2,
    /// The open load.
    Open,
}

/// All, in the order of the results.
pub const GROUPS: [Group; 10] = [
    Group::Clients,
    Group::ClientsTls,
    Group::ClientsH2,
    Group::Nginx,
    Group::NginxTls,
    Group::NginxH2,
    Group::Origins,
    Group::OriginsTls,
    Group::OriginsH2,
    Group::Open,
];

impl Group {
    /// Its name on the command line and in the raw results.
    pub fn name(self) -> &'static str {
        match self {
            Group::Clients => "clients",
            Group::ClientsTls => "clients-tls",
            Group::ClientsH2 => "clients-h2",
            Group::Nginx => "nginx",
            Group::NginxTls => "nginx-tls",
            Group::NginxH2 => "nginx-h2",
            Group::Origins => "origins",
            Group::OriginsTls => "origins-tls",
            Group::OriginsH2 => "origins-h2",
            Group::Open => "open",
        }
    }

    /// What its cells have in common.
    pub fn part(self) -> Part {
        match self {
            Group::Clients | Group::ClientsTls | Group::ClientsH2 => Part::Clients,
            Group::Nginx | Group::NginxTls | Group::NginxH2 => Part::Nginx,
            Group::Origins | Group::OriginsTls | Group::OriginsH2 => Part::Origins,
            Group::Open => Part::Open,
        }
    }

    /// Whether a pattern names it: its name, with `*` for any letters.
    pub fn is_named(self, pattern: &str) -> bool {
        matches(pattern, self.name())
    }

    /// All its cells.
    pub fn cells(self) -> Vec<Cell> {
        let cell = |wire, (connections, streams), size| Cell { group: self, wire, connections, streams, size };
        match self {
            Group::Clients => PLAIN.into_iter().map(|(c, size)| cell(Wire::Plain, (c, 1), size)).collect(),
            Group::Nginx => vec![cell(Wire::Plain, (MAIN.0, 1), MAIN.1)],
            Group::Origins => [128, 11_268].map(|size| cell(Wire::Plain, (MAIN.0, 1), size)).to_vec(),
            Group::ClientsTls | Group::NginxTls | Group::OriginsTls => vec![cell(Wire::Tls, (MAIN.0, 1), MAIN.1)],
            Group::ClientsH2 | Group::NginxH2 | Group::OriginsH2 => [Wire::H2c, Wire::H2Tls]
                .into_iter()
                .flat_map(|wire| H2.map(|shape| cell(wire, shape, MAIN.1)))
                .collect(),
            Group::Open => vec![cell(Wire::Plain, (OPEN.1, 1), MAIN.1)],
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

/// Connections and size of the cells of plain clients.
const PLAIN: [(u32, u64); 7] =
    [(1, 128), (16, 128), (64, 128), (64, 11_268), (64, 165_854), (1_000, 128), (10_000, 128)];

/// Connections, and streams of each, of the cells of HTTP/2.
const H2: [(u32, u32); 2] = [(64, 1), (8, 32)];

/// One comparison: cases that differ in one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cell {
    /// Which group it belongs to.
    pub group: Group,
    /// What is spoken.
    pub wire: Wire,
    /// Connections.
    pub connections: u32,
    /// Requests in flight on each.
    pub streams: u32,
    /// Bytes of an answer's body.
    pub size: u64,
}

/// What differs inside a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A load generator.
    Client(tool::Kind),
    /// An origin.
    Origin(server::Kind),
    /// `weir load` with one connection, closed.
    One,
    /// `weir load --rate 20000`, 64 connections.
    Open,
}

/// Connections and size of the cell that all tools take part in.
pub const MAIN: (u32, u64) = (64, 128);

/// Rate of the open load, requests a second, and its connections.
pub const OPEN: (u32, u32) = (20_000, 64);

impl Cell {
    /// What takes part: of clients those that speak it, in the main cell all, elsewhere those that a target
    /// names, unless `all`.
    pub fn subjects(&self, tools: &[tool::Kind], servers: &[server::Kind], all: bool) -> Vec<Subject> {
        let main = self.group == Group::Clients && (self.connections, self.size) == MAIN;
        let shown = |kind: &&tool::Kind| {
            kind.speaks(self.wire)
                && match self.wire {
                    Wire::Plain => {
                        all || main
                            || matches!(kind, tool::Kind::Weir | tool::Kind::Null | tool::Kind::Wrk)
                            || self.group == Group::Nginx && matches!(kind, tool::Kind::H1load | tool::Kind::H2load)
                    }
                    _ => true,
                }
        };
        match self.group.part() {
            Part::Clients | Part::Nginx => tools.iter().filter(shown).map(|kind| Subject::Client(*kind)).collect(),
            Part::Origins => {
                servers.iter().filter(|kind| kind.speaks(self.wire)).map(|kind| Subject::Origin(*kind)).collect()
            }
            Part::Open => {
                let wrk2 = tools.contains(&tool::Kind::Wrk2).then_some(Subject::Client(tool::Kind::Wrk2));
                [Subject::One, Subject::Open].into_iter().chain(wrk2).collect()
            }
        }
    }

    /// Its load, in words.
    pub fn shape(&self) -> String {
        let connections = match self.connections {
            1 => "1 connection".to_owned(),
            more => format!("{} connections", grouped(more.into())),
        };
        let streams = match (self.wire.is_h2(), self.streams) {
            (false, _) => String::new(),
            (true, 1) => " x 1 stream".to_owned(),
            (true, more) => format!(" x {more} streams"),
        };
        format!("{connections}{streams}, {} B", grouped(self.size))
    }

    /// A heading.
    pub fn title(&self) -> String {
        let (wire, shape) = (self.wire.name(), self.shape());
        match self.group.part() {
            Part::Clients => format!("Clients against weir's origin, {wire}, {shape}"),
            Part::Nginx => format!("Clients against nginx, {wire}, {shape}"),
            Part::Origins => format!("Origins under weir's client, {wire}, {shape}"),
            Part::Open => format!("Open load, {}/s over {shape}", grouped(OPEN.0.into())),
        }
    }
}

impl Subject {
    /// Its name in tables and in the raw results.
    pub fn name(self) -> &'static str {
        match self {
            Subject::Client(kind) => kind.name(),
            Subject::Origin(kind) => kind.name(),
            Subject::One => "closed one connection",
            Subject::Open => "open",
        }
    }

    /// What has that name in cells of a part.
    pub fn from_name(part: Part, name: &str) -> Option<Subject> {
        match (part, name) {
            (Part::Open, "open") => Some(Subject::Open),
            (Part::Open, "closed one connection") => Some(Subject::One),
            (Part::Origins, name) => server::KINDS.into_iter().find(|kind| kind.name() == name).map(Subject::Origin),
            (_, name) => tool::Kind::from_name(name).map(Subject::Client),
        }
    }
}

/// A number with commas.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_names_groups() {
        let named = |pattern| GROUPS.into_iter().filter(|group| group.is_named(pattern)).count();
        assert_eq!(named("*"), GROUPS.len());
        assert_eq!(named("clients"), 1);
        assert_eq!(named("clients*"), 3);
        assert_eq!(named("*-h2"), 3);
        assert_eq!(named("*s-*"), 4);
        assert_eq!(named("client"), 0);
        assert_eq!(named(""), 0);
    }

    #[test]
    fn no_cell_is_there_twice() {
        let mut cells: Vec<Cell> = GROUPS.into_iter().flat_map(Group::cells).collect();
        let all = cells.len();
        cells.sort_unstable();
        cells.dedup();
        assert_eq!(cells.len(), all);
        assert!(cells.iter().all(|cell| cell.wire.is_h2() || cell.streams == 1));
    }

    #[test]
    fn only_the_main_cell_has_everybody() {
        let tools = tool::KINDS;
        let plain = tools.iter().filter(|kind| kind.speaks(Wire::Plain)).count();
        let of = |connections| {
            *Group::Clients.cells().iter().find(|cell| cell.connections == connections && cell.size == 128).unwrap()
        };
        assert_eq!(of(64).subjects(&tools, &[], false).len(), plain);
        assert_eq!(of(1).subjects(&tools, &[], false).len(), 3);
        assert_eq!(of(1).subjects(&tools, &[], true).len(), plain);
    }

    #[test]
    fn every_subject_is_found_by_its_name() {
        for cell in GROUPS.into_iter().flat_map(Group::cells) {
            for subject in cell.subjects(&tool::KINDS, &server::KINDS, true) {
                assert_eq!(Subject::from_name(cell.group.part(), subject.name()), Some(subject));
                assert!(!subject.name().contains(','), "it stands in a CSV file");
            }
        }
    }

    #[test]
    fn headings_say_what_is_spoken() {
        let cell = Cell { group: Group::NginxH2, wire: Wire::H2Tls, connections: 8, streams: 32, size: 11_268 };
        assert_eq!(cell.title(), "Clients against nginx, HTTP/2 over TLS 1.3, 8 connections x 32 streams, 11,268 B");
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([1, 999, 1_000, 165_854, 1_000_000].map(grouped), ["1", "999", "1,000", "165,854", "1,000,000"]);
    }
}
