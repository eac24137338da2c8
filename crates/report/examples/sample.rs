//! Makes a report to look at: `cargo run -p weir-report --example sample -- <folder> [curves|large]` of the run in that
//! folder, or of a made-up one (of the kind named) when there is no such folder.

#[path = "../tests/common/mod.rs"]
mod common;

use std::path::PathBuf;

fn main() {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("which folder?");
        std::process::exit(2);
    };
    let kind = std::env::args().nth(2);
    // Thousands of pictures take longer than anybody looks.
    let large = kind.as_deref() == Some("large");
    if !folder.exists() {
        match kind.as_deref() {
            Some("curves") => common::write_curves(&folder),
            Some("large") => common::write_large(&folder, common::Size { products: 24, workloads: 20, blocks: 10 }),
            _ => common::write_run(&folder),
        }
    }
    let began = std::time::Instant::now();
    let made = weir_report::make(
        &folder,
        if large { weir_report::ChartFiles::Pictures } else { weir_report::ChartFiles::Raster },
    );
    let run = weir_report::load_run(&folder);
    match made.and_then(|made| Ok((made, run?))) {
        Ok((made, run)) => {
            println!("{}", weir_report::full_answer(&weir_report::summary(&run), 150, false));
            println!("{} after {:.1?}", made.html.display(), began.elapsed());
        }
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
    }
}
