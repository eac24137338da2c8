//! Tables, charts, markdown and HTML, made from a run folder alone. The verbs `run` and `report` call [`make_of`];
//! `weir-published` adds sections ([`extra`]), and `weir-compare` reads runs and draws tables with this crate.
//!
//! Data moves one way: [`load_run`] reads the folder, [`summary`](mod@summary) computes medians, intervals and ranks, and everything
//! else draws the summary. [`site`](fn@site) publishes many runs. The crate starts no process, opens no socket, and writes only the
//! folder `report/` of a run, or that of a site.
//! It does not know products, protocols or published documents, or how a number was measured beyond what the record
//! says.

pub mod charts;
mod error;
pub mod extra;
pub mod files;
pub mod formats;
mod make;
mod page;
pub mod palette;
mod part;
pub mod run;
pub mod series;
mod site;
pub mod summary;
mod summary_csv;
pub mod tables;
mod terminal;

pub use error::{DrawError, ReportError};
pub use extra::Extra;
pub use make::{Made, make, make_of};
pub use page::{ChartFiles, Links, SectionsPage};
pub use part::Part;
pub use run::{Run, find_runs, load_run};
pub use site::{Site, SiteOptions, SkippedRun, site};
pub use summary::{Summary, summary};
pub use terminal::{full_answer, short_answer};
