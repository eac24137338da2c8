//! Tables, charts, markdown and HTML, made from a run folder alone.
//!
//! Data moves one way: [`load_run`] reads the folder, [`summary`] turns it into medians, intervals and ranks, and
//! everything drawn (terminal, `report.md`, `report.html`, SVG, PNG) is a drawing of that. Nothing in here starts a
//! process or opens a socket, and nothing of a run is written but the folder `report/`.
//!
//! The verbs `run` and `report` call [`make_of`], with sections of their own to add ([`extra`]). This crate knows no product,
//! no protocol, no document that something was published in, and not how anything was measured beyond what the record says.

pub mod charts;
mod error;
pub mod extra;
pub mod files;
pub mod formats;
pub mod hlog;
mod make;
mod markdown;
mod page;
mod page_filter;
pub mod palette;
mod part;
mod plan;
pub mod run;
pub mod series;
pub mod summary;
mod summary_csv;
pub mod tables;
mod terminal;

pub use error::ReportError;
pub use extra::Extra;
pub use make::{Made, Options, make, make_of};
pub use part::Part;
pub use run::{Run, load_run};
pub use summary::{Summary, summary};
pub use terminal::{full_answer, short_answer};
