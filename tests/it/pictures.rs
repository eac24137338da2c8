//! Draws `docs/pictures/crates.svg` from the manifests: boxes of crates in rows, and lines down to those that each uses, without lines
//! that others imply. `WEIR_BLESS=1` writes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use super::architecture::{crates, uses};

const WIDTH: f64 = 880.0;
const STEP: f64 = 84.0;
const BOX: (f64, f64) = (114.0, 34.0);

const STYLE: &str = "path{fill:none;stroke:#888}rect{fill:#eef4f8;stroke:#4682a9}text{fill:#222}\
    @media(prefers-color-scheme:dark){rect{fill:#1d2b36}text{fill:#eee}}";

type Uses = BTreeMap<String, Vec<String>>;

/// All crates that a crate uses, also by others.
fn reached<'a>(all: &'a Uses, name: &str) -> BTreeSet<&'a str> {
    all[name].iter().flat_map(|used| reached(all, used).into_iter().chain([used.as_str()])).collect()
}

/// Longest way down to a crate from one that nobody uses.
fn depth(all: &Uses, name: &str) -> usize {
    let users = all.iter().filter(|(_, used)| used.iter().any(|used| used == name));
    users.map(|(user, _)| depth(all, user) + 1).max().unwrap_or(0)
}

fn without_implied(all: &Uses) -> Uses {
    let direct = |used: &Vec<String>| {
        let is_implied = |one: &String| used.iter().any(|other| reached(all, other).contains(one.as_str()));
        used.iter().filter(|one| !is_implied(one)).cloned().collect()
    };
    all.iter().map(|(name, used)| (name.clone(), direct(used))).collect()
}

/// Middles of the boxes.
fn places(rows: &[Vec<String>]) -> BTreeMap<&str, (f64, f64)> {
    let mut places = BTreeMap::new();
    for (number, row) in rows.iter().enumerate() {
        for (place, name) in row.iter().enumerate() {
            let x = WIDTH * (2 * place + 1) as f64 / (2 * row.len()) as f64;
            places.insert(name.as_str(), (x, STEP * number as f64 + BOX.1 / 2.0 + 10.0));
        }
    }
    places
}

/// Rows from top to bottom; each crate is moved a few times to the middle of those above or below to which it has lines.
fn rows(all: &Uses, lines: &Uses) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for name in all.keys() {
        let depth = depth(all, name);
        rows.resize(rows.len().max(depth + 1), Vec::new());
        rows[depth].push(name.clone());
    }
    for sweep in 0..8 {
        for number in 0..rows.len() {
            let places = places(&rows);
            let middle = |name: &String| {
                let users = lines.iter().filter(|(_, used)| used.contains(name)).map(|(user, _)| user);
                let near: Vec<&String> = if sweep % 2 == 0 { users.collect() } else { lines[name].iter().collect() };
                let sum: f64 = near.iter().map(|name| places[name.as_str()].0).sum();
                if near.is_empty() { places[name.as_str()].0 } else { sum / near.len() as f64 }
            };
            let mut row: Vec<(f64, String)> = rows[number].iter().map(|name| (middle(name), name.clone())).collect();
            row.sort_by(|a, b| a.0.total_cmp(&b.0));
            rows[number] = row.into_iter().map(|(_, name)| name).collect();
        }
    }
    rows
}

fn drawn() -> Result<String, std::fmt::Error> {
    let all: Uses = crates().into_iter().map(|name| (name.clone(), uses(&name))).collect();
    let lines = without_implied(&all);
    let rows = rows(&all, &lines);
    let places = places(&rows);
    let (mut svg, (width, height)) = (String::new(), BOX);
    writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {}\" font-family=\"sans-serif\" font-size=\"15\" \
         text-anchor=\"middle\">\n<title>Each crate uses those to which a line leads down</title>\n<style>{STYLE}</style>",
        STEP * (rows.len() - 1) as f64 + height + 20.0
    )?;
    for (name, used) in &lines {
        for used in used {
            let ((x, y), (to_x, to_y)) = (places[name.as_str()], places[used.as_str()]);
            let (from, to) = (y + height / 2.0, to_y - height / 2.0);
            let (out, into) = (from + 30.0, to - 30.0);
            writeln!(svg, "<path d=\"M{x:.0} {from}C{x:.0} {out} {to_x:.0} {into} {to_x:.0} {to}\"/>")?;
        }
    }
    for (name, (x, y)) in &places {
        let (left, top, line) = (x - width / 2.0, y - height / 2.0, y + 5.0);
        writeln!(svg, "<rect x=\"{left:.0}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" rx=\"6\"/>")?;
        writeln!(svg, "<text x=\"{x:.0}\" y=\"{line}\">{name}</text>")?;
    }
    svg.push_str("</svg>\n");
    Ok(svg)
}

#[test]
fn the_picture_of_the_crates_is_that_of_the_manifests() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pictures/crates.svg");
    let svg = drawn().expect("text");
    if std::env::var_os("WEIR_BLESS").is_some() {
        std::fs::write(&path, &svg).expect("written");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(svg == kept, "{} differs; WEIR_BLESS=1 writes it", path.display());
}
