//! The markdown page that `weir products test --write` writes, such as `docs/products.md` of this project.

use std::fmt::Write;

use weir_conformance::{CHECKS, Kind, Verdict};
use weir_model::record::Environment;
use weir_model::text::{human_bytes, wrapped};
use weir_report::tables::markdown::escape;

use super::matrix::{self, words};
use super::record::{Named, Record};

/// Columns of the text in the file.
const WIDTH: usize = 140;

/// The whole page.
pub fn page(record: &Record) -> String {
    let mut page = String::new();
    // Writing to a string does not fail.
    let _ = write_page(record, &mut page);
    page
}

fn write_page(record: &Record, page: &mut String) -> std::fmt::Result {
    writeln!(page, "# What the products do\n")?;
    let how = "Made by `weir products test --profile all --write docs/products.md`, and not to be edited. Each product runs between \
               weir's own client, which controls every byte, and weir's origin, or alone if it holds the data. It is configured for one \
               worker and may run on every CPU. `weir products test --checks` prints the question of each row; a star marks more words \
               under *Details*. Times, memory and cores are one rounded reading each, to show the kind of product: to rank, use `weir run`.";
    writeln!(page, "{}\n", wrapped(how, WIDTH, 0))?;
    let machine = format!("weir {}, {}, on {}.", record.weir, date(&record.started), place(&record.machine));
    writeln!(page, "{}\n", wrapped(&machine, WIDTH, 0))?;
    if !record.optimised {
        let slow = "This weir was built without optimisation. Its client and origin are slow, so that no product was as busy as it can be: \
                    the cores used are too few.";
        writeln!(page, "{}\n", wrapped(slow, WIDTH, 0))?;
    }
    if record.stopped {
        writeln!(page, "The run was stopped before its end.\n")?;
    }
    versions(record, page)?;
    for profile in profiles(record) {
        let of: Vec<&Named> = record.tested.iter().filter(|named| named.tested.profile == profile).collect();
        writeln!(page, "## Profile `{profile}`\n")?;
        for kind in Kind::ALL {
            matrix(kind, &matrix::of(kind, of.iter().copied()), page)?;
        }
        details(&of, page)?;
    }
    page.truncate(page.trim_end().len() + 1);
    Ok(())
}

fn date(started: &str) -> &str {
    started.split('T').next().unwrap_or(started)
}

fn place(machine: &Environment) -> String {
    let Environment { os, kernel, arch, cpu_model, cpus, memory_bytes, virtualization, .. } = machine;
    let kind = virtualization.as_ref().map(|kind| format!(" in a virtual machine ({kind})")).unwrap_or_default();
    format!("{cpus} CPUs ({cpu_model}, {arch}){kind}, {}, {os}, {kernel}", human_bytes(*memory_bytes as f64))
}

/// `tuned` first, `stock` second, others as they come.
fn profiles(record: &Record) -> Vec<String> {
    let mut profiles: Vec<String> = Vec::new();
    for named in &record.tested {
        if !profiles.contains(&named.tested.profile) {
            profiles.push(named.tested.profile.clone());
        }
    }
    let rank = |name: &str| match name {
        "tuned" => 0,
        "stock" => 1,
        _ => 2,
    };
    profiles.sort_by_key(|name| rank(name));
    profiles
}

fn versions(record: &Record, page: &mut String) -> std::fmt::Result {
    writeln!(page, "## Versions\n")?;
    let mut rows = vec![["product", "version", "from"].map(str::to_owned).to_vec()];
    for Named { title, version, from: source, .. } in &record.tested {
        let row = [title, version, from(source)].map(escape).to_vec();
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    rows.extend(record.absent.iter().map(|absent| vec![escape(&absent.title), "-".to_owned(), escape(&absent.why)]));
    table(&rows, page)
}

/// A table whose first row is its head.
fn table(rows: &[Vec<String>], page: &mut String) -> std::fmt::Result {
    for (number, row) in rows.iter().enumerate() {
        let cell = |cell: &String| if cell.is_empty() { " |".to_owned() } else { format!(" {cell} |") };
        writeln!(page, "|{}", row.iter().map(cell).collect::<String>())?;
        if number == 0 {
            writeln!(page, "|{}", "---|".repeat(row.len()))?;
        }
    }
    writeln!(page)
}

/// Where a binary of the user's lies is nobody else's business.
fn from(from: &str) -> &str {
    if from.starts_with("own ") { "a binary of one's own" } else { from }
}

fn matrix(kind: Kind, of: &[&Named], page: &mut String) -> std::fmt::Result {
    if of.is_empty() {
        return Ok(());
    }
    let names = of.iter().map(|named| named.tested.product.clone());
    let mut rows = vec![std::iter::once(String::new()).chain(names).collect()];
    for check in matrix::checks(kind, of) {
        let cells = of.iter().map(|named| escape(&words(named, &check.name)));
        rows.push(std::iter::once(check.title.clone()).chain(cells).collect());
    }
    table(&rows, page)
}

/// Remarks by check; products with the same remark are listed together.
fn details(of: &[&Named], page: &mut String) -> std::fmt::Result {
    writeln!(page, "### Details\n")?;
    for named in of {
        if let Some(error) = &named.tested.error {
            let item = format!("- **{}** was not started: {}", escape(&named.title), escape(&error.message));
            writeln!(page, "{}", wrapped(&item, WIDTH, 2))?;
        }
    }
    for check in CHECKS.iter() {
        let mut notes: Vec<(String, Vec<&str>)> = Vec::new();
        for named in of {
            let Some(found) = named.tested.cell(&check.name) else { continue };
            let (Some(note), false) = (&found.note, found.verdict == Verdict::Absent) else { continue };
            let text = format!("{}: {}", escape(&found.says), escape(note));
            match notes.iter_mut().find(|(other, _)| *other == text) {
                Some((_, titles)) => titles.push(&named.title),
                None => notes.push((text, vec![&named.title])),
            }
        }
        if !notes.is_empty() {
            let items: Vec<String> =
                notes.iter().map(|(text, titles)| format!("{}, {text}.", escape(&titles.join(", ")))).collect();
            let item = format!("- **{}**. {}", check.title, items.join(" "));
            writeln!(page, "{}", wrapped(&item, WIDTH, 2))?;
        }
    }
    writeln!(page)
}

#[cfg(test)]
mod tests {
    use super::super::record::{example, store};
    use super::*;

    #[test]
    fn the_page_has_matrices_by_profile_and_every_note() {
        let mut record = example();
        record.tested.push(store());
        let page = page(&record);
        let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text} is not in\n{page}"));
        assert!(at("## Profile `tuned`") < at("## Profile `stock`"));
        at("| | one | two | three |\n|---|---|---|---|\n");
        at("| GET | yes | yes, closes\\* | no start |");
        at("| | five |\n|---|---|\n| Set and get | yes |\n| Origins gone | - |\n");
        at("- **Pipelined requests**. ");
        at("1 of 3: after 1 of 3 responses it closes.");
        at("refuses \\| pipes");
        at("| Four | - | not installed (four is not in PATH) |");
        at("2026-01-02");
        assert_eq!(page.contains("built without optimisation"), cfg!(debug_assertions));
        at("| TWO | 1.2.3 | apt two |");
        assert_eq!(from("own /home/somebody/bin/two"), "a binary of one's own");
        assert!(page.lines().all(|line| line.starts_with('|') || line.chars().count() <= WIDTH), "{page}");
        assert!(!page.contains("\n\n\n"));
    }

    #[test]
    fn what_products_say_is_no_markup() {
        assert_eq!(escape("<1 ms*, a|b\nx_y"), "&lt;1 ms\\*, a\\|b x\\_y");
    }
}
