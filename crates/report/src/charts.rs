//! Charts as plain data ([`Chart`]), drawn as SVG ([`draw`]) and PNG, with their numbers as CSV. `section` decides which charts a report
//! has.

pub mod axis;
pub mod csv;
mod description;
pub mod draw;
pub mod png;
mod section;

pub use description::*;
pub use section::{
    PERCENTILES_NOTE, SectionCharts, Separated, better, note_broken, of_section, over_routes, overview,
    percentile_curve, placed, separate, style,
};
