//! `weir help`: prints the long help of a verb, or a topic of it. Called by `main`.

use clap::{Command, CommandFactory};

use super::load::topics::{Flags, TOPICS, Topic};
use crate::args::Cli;
use crate::exit::{Exit, Failure, VerbResult};

/// Columns of help that goes to no terminal.
const WIDTH: usize = 100;

/// Flags of `weir help`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir help
  weir help load
  weir help load tls
  weir help products install")]
pub struct Args {
    /// A verb; behind load, a topic: load, find-max, request, answers, connections, tls or output.
    #[arg(value_name = "VERB")]
    words: Vec<String>,
}

/// Runs it.
///
/// # Errors
/// No such verb or topic.
pub fn main(args: &Args) -> VerbResult {
    let mut command = Cli::command();
    // Fills in what subcommands inherit, such as their full names.
    command.build();
    let mut said = "weir".to_owned();
    for (index, word) in args.words.iter().enumerate() {
        let topic = TOPICS.iter().find(|topic| said == "weir load" && topic.name == *word);
        if let (Some(topic), true) = (topic, index + 1 == args.words.len()) {
            output!("{}", page(topic, &command).trim_end());
            return Ok(Exit::Ok);
        }
        let Some(next) = command.find_subcommand(word).filter(|c| !c.is_hide_set()).cloned() else {
            return Err(unknown(&said, word, &command));
        };
        said = format!("{said} {word}");
        command = next;
    }
    output!("{}", command.render_long_help().to_string().trim_end());
    Ok(Exit::Ok)
}

fn unknown(said: &str, word: &str, command: &Command) -> Failure {
    let mut names: Vec<&str> = command.get_subcommands().filter(|c| !c.is_hide_set()).map(Command::get_name).collect();
    if said == "weir load" {
        names.extend(TOPICS.iter().map(|topic| topic.name));
    }
    let right = if names.is_empty() { format!("{said} --help") } else { names.join(", ") };
    Failure::input(format!("weir help: {said} has no \"{word}\"\n  expected: {right}"))
}

/// A topic: what there is to know, its flags, examples.
pub fn page(topic: &Topic, load: &Command) -> String {
    let flags = load
        .clone()
        .mut_args(|arg| {
            let shown = match topic.flags {
                Flags::Heading(heading) => arg.get_help_heading() == Some(heading),
                Flags::Named(names) => arg.get_long().is_some_and(|long| names.contains(&long)),
            };
            if shown { arg } else { arg.hide(true) }
        })
        .term_width(WIDTH)
        .help_template("{options}")
        .render_long_help()
        .to_string();
    format!("{}\n\n{}\n\nExamples:\n{}\n", topic.text, flags.trim_end(), topic.examples)
}
