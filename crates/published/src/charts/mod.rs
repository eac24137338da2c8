//! The counterparts of a document's pictures: the same axes and series, drawn with this run's numbers. Knows layouts and
//! trials; which document has which pictures is data.

mod bars;
mod lines;
mod resources;

use crate::data::{Picture, Source};
use crate::layout::{Draw, PictureLayout};
use crate::ours::Ours;
use weir_report::chart::Chart;
use weir_report::chart::axis::Scale;
use weir_report::run::Broken;

/// What every counterpart is drawn from.
pub(crate) struct Originals<'a> {
    pub ours: &'a Ours<'a>,
    pub source: &'a Source,
    /// What was scaled, a sentence.
    pub scaled: &'a str,
}

/// A layout with the picture that it draws.
#[derive(Clone, Copy)]
pub(super) struct Original<'a> {
    pub layout: &'a PictureLayout,
    /// `None` where the document has none and says that it can be drawn.
    pub picture: Option<&'a Picture>,
}

/// A counterpart for each picture of the document of which a case was run.
pub(crate) fn charts(originals: &Originals<'_>, broken: &mut Vec<Broken>) -> Vec<Chart> {
    let mut charts = Vec::new();
    for layout in &originals.source.drawings {
        let picture = originals.source.pictures.iter().find(|picture| picture.picture == layout.picture);
        let original = Original { layout, picture };
        match layout.draw {
            Draw::Bars => charts.extend(bars::draw(originals, original)),
            Draw::Percentiles => charts.extend(lines::percentiles(originals, original, broken)),
            Draw::Rounds => charts.extend(lines::rounds(originals, original)),
            Draw::Resources => charts.extend(resources::draw(originals, original, broken)),
        }
    }
    charts.retain(|chart| !chart.is_empty());
    charts
}

impl Original<'_> {
    /// Stem of the counterpart's file names.
    pub fn name(&self) -> String {
        let stem = match self.picture {
            Some(picture) => picture.picture.rsplit_once('.').map_or(picture.picture.as_str(), |(stem, _)| stem),
            None => &self.layout.title,
        };
        format!("published-{}", slug(stem))
    }

    /// What stands above it.
    pub fn title(&self) -> String {
        match self.picture {
            Some(picture) if self.layout.title.is_empty() => picture.title.clone(),
            _ => self.layout.title.clone(),
        }
    }

    /// Which picture of the document it is the counterpart of.
    pub fn subtitle(&self, better: &str) -> String {
        let of = match self.picture {
            Some(picture) => format!("Drawn as {} in line {} of the document.", picture.picture, picture.line),
            None => "Drawn from a list as the document proposes.".to_string(),
        };
        format!("{better} {of}").trim().to_string()
    }

    /// How the vertical axis of the original is spread.
    pub fn scale(&self) -> Scale {
        match self.picture {
            Some(picture) if picture.y_scale == "log" => Scale::Log,
            _ => Scale::Linear,
        }
    }

    /// Where the original's axis begins, if that is not at 0 of an axis that has a 0.
    pub fn cut_off(&self) -> Option<f64> {
        let (from, _) = self.picture?.y_range.split_once(" to ")?;
        let from: f64 = from.parse().ok()?;
        (from > 0.0 && self.scale() == Scale::Linear).then_some(from)
    }
}

/// A name of which nothing but small letters, digits and hyphens is left.
pub(crate) fn slug(name: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let text: String = name.chars().map(safe).collect();
    text.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::source;

    #[test]
    fn an_axis_that_did_not_begin_at_0_is_noticed() {
        let source = source("monolake").unwrap();
        let cut = source.drawings.iter().filter(|layout| {
            let picture = source.pictures.iter().find(|picture| picture.picture == layout.picture);
            Original { layout, picture }.cut_off().is_some()
        });
        assert_eq!(cut.count(), 3);
        assert_eq!(slug("../A b_c!"), "a-b-c");
    }
}
