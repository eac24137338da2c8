//! Draws the counterparts of a document's pictures: the same axes and series with this run's numbers. Which pictures a document has is data
//! (`layout`).

mod bars;
mod lines;
mod resources;

pub(crate) use bars::distances;

use crate::figures::Picture;
use crate::layout::{Draw, PictureLayout};
use crate::run_cases::{Context, RunCases};
use weir_report::charts::Chart;
use weir_report::charts::axis::Scale;
use weir_report::extra::Item;
use weir_report::run::Broken;
use weir_report::summary::Summary;

/// A layout and the picture that it describes.
#[derive(Clone, Copy)]
pub(super) struct Counterpart<'a> {
    pub context: &'a Context<'a>,
    pub layout: &'a PictureLayout,
    /// `None` where the document has no picture and says that one can be drawn.
    pub picture: Option<&'a Picture>,
}

/// A counterpart for each picture of the document that has a case which was run, under the loads that repeat the document or under
/// the picture's own.
pub(crate) fn items(context: &Context<'_>, summary: &Summary, broken: &mut Vec<Broken>) -> Vec<Item> {
    let mut drawn = Vec::new();
    for layout in &context.source.layout.pictures {
        let under = layout.load.as_ref().map(|load| RunCases::under(context.cases.run, summary, load));
        let context = Context { cases: under.as_ref().unwrap_or(context.cases), ..*context };
        let picture = context.source.pictures.iter().find(|picture| picture.picture == layout.picture);
        drawn.extend(of_picture(Counterpart { context: &context, layout, picture }, broken));
    }
    drawn
}

fn of_picture(counterpart: Counterpart<'_>, broken: &mut Vec<Broken>) -> Vec<Item> {
    match counterpart.layout.draw {
        Draw::Bars => shown(bars::draw(counterpart)),
        Draw::Percentiles => shown(lines::percentiles(counterpart, None, broken)),
        Draw::ProductPercentiles => {
            folded(counterpart.title(), lines::percentiles_of_each(counterpart, broken)).into_iter().collect()
        }
        Draw::Rounds => shown(lines::rounds(counterpart)),
        Draw::Points => shown(lines::points(counterpart)),
        Draw::Resources => resources::draw(counterpart, broken),
    }
}

/// Pictures to be read one after another.
fn shown(charts: impl IntoIterator<Item = Chart>) -> Vec<Item> {
    charts.into_iter().filter(|chart| !chart.is_empty()).map(|chart| Item::Chart(Box::new(chart))).collect()
}

/// Pictures of one kind, too many to be read one after another; `None` when there is none.
fn folded(summary: String, mut charts: Vec<Chart>) -> Option<Item> {
    charts.retain(|chart| !chart.is_empty());
    (!charts.is_empty()).then_some(Item::Charts { summary, charts })
}

impl Counterpart<'_> {
    /// The stem of the counterpart's file names.
    pub fn name(&self) -> String {
        let stem = match self.picture {
            Some(picture) => picture.picture.rsplit_once('.').map_or(picture.picture.as_str(), |(stem, _)| stem),
            None => &self.layout.title,
        };
        format!("published-{}", slug(stem))
    }

    /// Its heading.
    pub fn title(&self) -> String {
        match self.picture {
            Some(picture) if self.layout.title.is_empty() => picture.title.clone(),
            _ => self.layout.title.clone(),
        }
    }

    /// A line that names the picture of the document.
    pub fn subtitle(&self, better: &str) -> String {
        let of = match self.picture {
            Some(picture) => format!("Drawn as {} in line {} of the document.", picture.picture, picture.line),
            None => "Drawn as the document says, which has no such picture.".to_string(),
        };
        format!("{better} {of}").trim().to_string()
    }

    /// The scale of the original's vertical axis.
    pub fn scale(&self) -> Scale {
        match self.picture {
            Some(picture) if picture.y_scale == "log" => Scale::Log,
            _ => Scale::Linear,
        }
    }

    /// The lower end of the original's axis, if the axis could begin at 0 and does not.
    pub fn cut_off(&self) -> Option<f64> {
        self.picture.and_then(cut_off)
    }
}

fn cut_off(picture: &Picture) -> Option<f64> {
    let (from, _) = picture.y_range.split_once(" to ")?;
    from.parse().ok().filter(|from| *from > 0.0 && picture.y_scale != "log")
}

/// The share of white in one of several colours of a product: none in the first, `palest` in the last.
fn shade(palest: f64, place: usize, of: usize) -> f64 {
    if of < 2 { 0.0 } else { palest * place as f64 / (of - 1) as f64 }
}

/// The name reduced to lower-case letters, digits and hyphens.
pub(crate) fn slug(name: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let text: String = name.chars().map(safe).collect();
    text.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::source;

    #[test]
    fn an_axis_that_did_not_begin_at_0_is_noticed() {
        let source = source("monolake").unwrap();
        let cut = source.layout.pictures.iter().filter(|layout| {
            let picture = source.pictures.iter().find(|picture| picture.picture == layout.picture);
            picture.and_then(cut_off).is_some()
        });
        assert_eq!(cut.count(), 3);
        assert_eq!(slug("../A b_c!"), "a-b-c");
    }
}
