//! Charts: described once as plain data ([`Chart`]), drawn once as SVG ([`draw`]) for the page, as a file and as PNG; CSV has
//! their numbers. Which charts a report has is in `section`.

pub mod axis;
pub mod csv;
mod description;
pub mod draw;
pub mod png;
mod section;

pub use description::*;
pub use section::{
    SectionCharts, Separated, merged_histogram, note_broken, of_section, overview, percentile_curve, separate, style,
};
