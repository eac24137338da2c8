//! `weir help`, `weir completions` and `weir man`: all that is printed from the table of verbs and flags. `weir help` prints
//! the long help of a verb, or a topic of `weir load`. Called by `main`.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use weir_load_cli::topics::{TOPICS, Topic};

use crate::args::Cli;
use crate::exit::{Exit, Failure, VerbResult};

/// Columns of help that goes to no terminal.
const WIDTH: usize = 100;

/// Between the text of a topic and its examples.
const EXAMPLES: &str = "\n\nExamples:\n";

/// Flags of `weir help`.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../help/help.txt"))]
pub struct Args {
    /// A verb; behind load, a topic: load, find-max, request, key-value, answers, connections, tls or output.
    #[arg(value_name = "VERB")]
    words: Vec<String>,
}

/// Flags of `weir completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../help/completions.txt"))]
pub struct CompletionArgs {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// Flags of `weir man`.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../help/man.txt"))]
pub struct ManArgs {
    /// A folder to write all pages to; without it weir(1) goes to standard output.
    #[arg(value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// Every verb and flag; what subcommands inherit, such as their full names, is filled in.
fn weir() -> Command {
    let mut command = Cli::command();
    command.build();
    command
}

/// Runs `weir help`.
///
/// # Errors
/// No such verb or topic.
pub fn main(args: &Args) -> VerbResult {
    let mut command = weir();
    let mut path = "weir".to_owned();
    for (index, word) in args.words.iter().enumerate() {
        let topic = TOPICS.iter().find(|topic| path == "weir load" && topic.name == *word);
        if let (Some(topic), true) = (topic, index + 1 == args.words.len()) {
            output!("{}", page(topic, &command).trim_end());
            return Ok(Exit::Ok);
        }
        let Some(next) = shown(&command).find(|verb| verb.get_name() == word).cloned() else {
            return Err(unknown(&path, word, &command));
        };
        path = format!("{path} {word}");
        command = next;
    }
    output!("{}", command.render_long_help().to_string().trim_end());
    Ok(Exit::Ok)
}

/// The verbs below a command that users see.
fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|verb| !verb.is_hide_set())
}

fn unknown(path: &str, word: &str, command: &Command) -> Failure {
    let topics = TOPICS.iter().map(|topic| topic.name).filter(|_| path == "weir load");
    let names: Vec<&str> = shown(command).map(Command::get_name).chain(topics).collect();
    let wanted = if names.is_empty() { format!("{path} --help") } else { names.join(", ") };
    Failure::wrong("weir help", format!("{path} has no \"{word}\""), wanted)
}

/// A topic: its text, its flags, examples.
fn page(topic: &Topic, load: &Command) -> String {
    let (text, examples) = topic.page.split_once(EXAMPLES).unwrap_or((topic.page, ""));
    let is_shown = |arg: &clap::Arg| match topic.flags {
        [] => arg.get_help_heading().is_some_and(|heading| heading.eq_ignore_ascii_case(topic.name)),
        names => arg.get_long().is_some_and(|long| names.contains(&long)),
    };
    let flags = load
        .clone()
        .mut_args(|arg| if is_shown(&arg) { arg } else { arg.hide(true) })
        .term_width(WIDTH)
        .help_template("{options}")
        .render_long_help()
        .to_string();
    format!("{text}\n\n{}{EXAMPLES}{examples}", flags.trim_end())
}

/// Runs `weir completions`.
///
/// # Errors
/// Standard output cannot be written.
pub fn completions(args: &CompletionArgs) -> VerbResult {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "weir", &mut script);
    output!("{}", String::from_utf8_lossy(&script).trim_end());
    Ok(Exit::Ok)
}

/// Runs `weir man`.
///
/// # Errors
/// A page cannot be written.
pub fn man(args: &ManArgs) -> VerbResult {
    let Some(folder) = &args.folder else {
        let page = man_page(&weir(), "weir").map_err(Failure::missing)?;
        output!("{}", String::from_utf8_lossy(&page).trim_end());
        return Ok(Exit::Ok);
    };
    if !folder.is_dir() {
        let found = format!("there is no folder {}", folder.display());
        return Err(Failure::wrong("weir man", found, "a folder that exists, such as /usr/local/share/man/man1"));
    }
    write_man_pages(&weir(), "weir", folder)
}

/// This page, and those of the verbs below.
fn write_man_pages(command: &Command, name: &str, folder: &Path) -> VerbResult {
    let path = folder.join(format!("{name}.1"));
    let written = man_page(command, name).and_then(|page| std::fs::write(&path, page));
    written.map_err(|e| Failure::missing(format!("{}: {e}", path.display())))?;
    remark!("wrote {}", path.display());
    for verb in shown(command) {
        write_man_pages(verb, &format!("{name}-{}", verb.get_name()), folder)?;
    }
    Ok(Exit::Ok)
}

fn man_page(command: &Command, name: &str) -> std::io::Result<Vec<u8>> {
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

/// A topic as a section of a man page; its flags are in the page already.
fn section(topic: &Topic, page: &mut impl Write) -> std::io::Result<()> {
    let mut roff = Roff::new();
    roff.control("SH", [format!("TOPIC: {}", topic.name.to_uppercase()).as_str()]);
    // As it stands: lines are broken where they are in the help.
    roff.control("nf", []);
    roff.text([roman(topic.page.trim_end())]);
    roff.control("fi", []);
    roff.to_writer(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Elsewhere the verbs that measure have no flags.
    #[cfg(target_os = "linux")]
    #[test]
    fn every_verb_has_a_page_and_the_hidden_ones_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let weir = weir();
        write_man_pages(&weir, "weir", folder.path()).expect("written");
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
        let page = page(&TOPICS[0], weir.find_subcommand("load").expect("a verb"));
        assert!(page.contains("--ramp <FROM..TO>") && !page.contains("--tls-version"), "{page}");
    }

    #[test]
    fn every_topic_has_examples() {
        assert!(TOPICS.iter().all(|topic| topic.page.contains(EXAMPLES)));
    }
}
