//! `weir man`: writes man pages of weir and its verbs, made from the same table as the help. Called by `main`.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use super::load::topics::{TOPICS, Topic};
use crate::args::Cli;
use crate::exit::{Exit, Failure, VerbResult};

/// Flags of `weir man`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  Read one:
    weir man | man -l -
  Install all, one for each verb:
    weir man /usr/local/share/man/man1")]
pub struct Args {
    /// A folder to write all pages to; without it weir(1) goes to standard output.
    #[arg(value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// Runs it.
///
/// # Errors
/// A page cannot be written.
pub fn main(args: &Args) -> VerbResult {
    let mut weir = Cli::command();
    weir.build();
    let Some(folder) = &args.folder else {
        let page = page(&weir, "weir").map_err(Failure::missing)?;
        output!("{}", String::from_utf8_lossy(&page).trim_end());
        return Ok(Exit::Ok);
    };
    if !folder.is_dir() {
        return Err(Failure::input(format!(
            "weir man: there is no folder {}\n  expected: a folder that exists, such as /usr/local/share/man/man1",
            folder.display()
        )));
    }
    write_all(&weir, "weir", folder)
}

/// This page, and those of the verbs below.
fn write_all(command: &Command, name: &str, folder: &Path) -> VerbResult {
    let path = folder.join(format!("{name}.1"));
    let written = page(command, name).and_then(|page| std::fs::write(&path, page));
    written.map_err(|e| Failure::missing(format!("{}: {e}", path.display())))?;
    remark!("wrote {}", path.display());
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        write_all(verb, &format!("{name}-{}", verb.get_name()), folder)?;
    }
    Ok(Exit::Ok)
}

fn page(command: &Command, name: &str) -> std::io::Result<Vec<u8>> {
    let mut page = Vec::new();
    // Pages are called by their files' names: weir-load(1).
    Man::new(command.clone().name(name.to_owned())).render(&mut page)?;
    if name == "weir-load" {
        for topic in &TOPICS {
            section(topic, &mut page)?;
        }
    }
    Ok(page)
}

/// A topic as a section; its flags are in the page already.
fn section(topic: &Topic, page: &mut impl Write) -> std::io::Result<()> {
    let mut roff = Roff::new();
    roff.control("SH", [format!("TOPIC: {}", topic.name.to_uppercase()).as_str()]);
    // As it stands: lines are broken where they are in the help.
    roff.control("nf", []);
    roff.text([roman(format!("{}\n\nExamples:\n{}", topic.text, topic.examples))]);
    roff.control("fi", []);
    roff.to_writer(page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::help;

    #[test]
    fn every_verb_has_a_page_and_the_hidden_ones_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut weir = Cli::command();
        weir.build();
        write_all(&weir, "weir", folder.path()).expect("written");
        let names: Vec<String> = std::fs::read_dir(folder.path())
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        for name in ["weir.1", "weir-load.1", "weir-run.1", "weir-products-install.1", "weir-man.1"] {
            assert!(names.iter().any(|n| n == name), "{name} is not among {names:?}");
        }
        assert!(!names.iter().any(|n| n.contains("supervise") || n.contains("client")), "{names:?}");
        let load = std::fs::read_to_string(folder.path().join("weir-load.1")).expect("written");
        for words in [".SH \"TOPIC: TLS\"", "\\-\\-find\\-max", "weir load https://127.0.0.1:8443/"] {
            assert!(load.replace("\\-", "-").contains(&words.replace("\\-", "-")), "{words} is not in the page");
        }
        // What a man page must not have: a line of text that begins as a command does.
        assert!(load.lines().all(|line| !line.starts_with('\'')), "a line begins with an apostrophe");
        let pages = help::page(&TOPICS[0], weir.find_subcommand("load").expect("a verb"));
        assert!(pages.contains("--ramp <FROM..TO>") && !pages.contains("--tls-version"), "{pages}");
    }
}
