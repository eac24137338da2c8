//! What is compared: loads against an origin, origins under a load, and the open load.

use super::{server, tool};

/// Parts of the comparison, chosen with `--only`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Part {
    /// Clients against weir's origin
    Clients,
    /// Clients against nginx
    Nginx,
    /// Origins under weir's client
    Origins,
    /// The open load
    Open,
}

/// One comparison: cases that differ in one thing.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// Which part it belongs to.
    pub part: Part,
    /// Connections.
    pub connections: u32,
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

/// The cell that all tools take part in.
pub const MAIN: (u32, u64) = (64, 128);

/// Rate of the open load, requests a second, and its connections.
pub const OPEN: (u32, u32) = (20_000, 64);

/// The cells of a run. Without a wish: all connections with the smallest size, and all sizes with 64
/// connections; with a wish for either, every pair.
pub fn cells(parts: &[Part], connections: &[u32], sizes: &[u64]) -> Vec<Cell> {
    let crossed = connections.is_empty() && sizes.is_empty();
    let all_connections = if connections.is_empty() { &[1, 16, 64, 1_000, 10_000][..] } else { connections };
    let all_sizes = if sizes.is_empty() { &[128, 11_268, 165_854][..] } else { sizes };
    let all_connections = if connections.is_empty() && !crossed { &[MAIN.0][..] } else { all_connections };
    let all_sizes = if sizes.is_empty() && !crossed { &[MAIN.1][..] } else { all_sizes };
    let mut cells = Vec::new();
    for &part in parts {
        for &connections in all_connections {
            for &size in all_sizes {
                let main = (connections, size) == MAIN;
                let wanted = match part {
                    Part::Clients => !crossed || connections == MAIN.0 || size == MAIN.1,
                    Part::Origins => !crossed || (connections == MAIN.0 && size <= 11_268),
                    Part::Nginx => !crossed || main,
                    // It has its own shape, once.
                    Part::Open => false,
                };
                if wanted {
                    cells.push(Cell { part, connections, size });
                }
            }
        }
        if part == Part::Open {
            cells.push(Cell { part, connections: OPEN.1, size: MAIN.1 });
        }
    }
    cells
}

impl Cell {
    /// What takes part: in the main cell every tool, elsewhere those that a target names, unless `all`.
    pub fn subjects(&self, tools: &[tool::Kind], servers: &[server::Kind], all: bool) -> Vec<Subject> {
        let everybody = all || (self.connections, self.size) == MAIN;
        let named = |kind: &&tool::Kind| matches!(kind, tool::Kind::Weir | tool::Kind::Null | tool::Kind::Wrk);
        match self.part {
            Part::Clients | Part::Nginx => {
                tools.iter().filter(|kind| everybody || named(kind)).map(|kind| Subject::Client(*kind)).collect()
            }
            Part::Origins => servers.iter().map(|kind| Subject::Origin(*kind)).collect(),
            Part::Open => vec![Subject::One, Subject::Open],
        }
    }

    /// A heading.
    pub fn title(&self) -> String {
        let shape = format!("{} connections, {} B", grouped(self.connections.into()), grouped(self.size));
        match self.part {
            Part::Clients => format!("Clients against weir's origin, {shape}"),
            Part::Nginx => format!("Clients against nginx, {shape}"),
            Part::Origins => format!("Origins under weir's client, {shape}"),
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
            Subject::One => "closed, one connection",
            Subject::Open => "open",
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
    fn the_usual_cells_are_a_cross_and_wishes_a_grid() {
        let usual = cells(&[Part::Clients], &[], &[]);
        assert_eq!(usual.len(), 7);
        assert_eq!(cells(&[Part::Clients], &[1, 2], &[3, 4]).len(), 4);
        assert_eq!(cells(&[Part::Clients], &[1], &[]), [Cell { part: Part::Clients, connections: 1, size: 128 }]);
        assert_eq!(cells(&[Part::Open, Part::Nginx], &[], &[]).len(), 2);
        assert_eq!(cells(&[Part::Open], &[5], &[6])[0].connections, 64);
    }

    #[test]
    fn only_the_main_cell_has_everybody() {
        let tools = tool::KINDS;
        let main = Cell { part: Part::Clients, connections: 64, size: 128 };
        assert_eq!(main.subjects(&tools, &[], false).len(), tools.len());
        let other = Cell { connections: 1, ..main };
        assert_eq!(other.subjects(&tools, &[], false).len(), 3);
        assert_eq!(other.subjects(&tools, &[], true).len(), tools.len());
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([1, 999, 1_000, 165_854, 1_000_000].map(grouped), ["1", "999", "1,000", "165,854", "1,000,000"]);
    }
}
