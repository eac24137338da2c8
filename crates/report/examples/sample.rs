//! Writes a made-up run and its report into a folder, to look at: `cargo run -p weir-report --example sample -- <folder>`.

#[path = "../tests/common/mod.rs"]
mod common;

use std::path::PathBuf;

fn main() {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("which folder?");
        std::process::exit(2);
    };
    common::write_run(&folder);
    let run = weir_report::load_run(&folder).expect("the made-up run is whole");
    println!("{}", weir_report::text_tables(&weir_report::summary(&run), 150, false));
    let made = weir_report::make(&folder, &weir_report::Options::default()).expect("it can be drawn");
    println!("{}", made.html.display());
}
