//! Gives each product one colour, the same in every chart of a report and distinguishable for colour-blind readers.

use weir_model::suite::Entry;
use weir_model::text::unique;

use crate::charts::Dash;
use crate::run::BASELINE;

/// Okabe and Ito, "Color Universal Design" (2008), without black and yellow (which vanish on dark and on white),
/// then four of Paul Tol's "muted" scheme (2021) that stay apart from them.
const COLOURS: [&str; 10] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#882255", "#999933", "#332288", "#44aa99"];

/// The baseline is not compared, so it has no colour.
const GREY: &str = "#7f7f7f";

/// How one entry is drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Style {
    /// `#rrggbb`.
    pub colour: String,
    /// Lines of a product's first profile are solid.
    pub dash: Dash,
}

/// The style of `entry` among all `entries` of the run. Products beyond the tenth share colours; each profile of a product
/// but the first is paler.
pub fn style(entry: &Entry, entries: &[Entry]) -> Style {
    let products = unique(entries.iter().map(|other| other.product.as_str()).filter(|product| *product != BASELINE));
    let same = entries.iter().filter(|other| other.product == entry.product);
    let variant = same.take_while(|other| other.profile != entry.profile).count();
    let place = products.iter().position(|product| *product == entry.product);
    let colour = place.map_or(GREY, |place| COLOURS[place % COLOURS.len()]);
    let white = [0.0, 0.45, 0.25, 0.6][variant.min(3)];
    Style { colour: lighter(colour, white), dash: if variant == 0 { Dash::Solid } else { Dash::Dashed } }
}

/// `colour` (`#rrggbb`) with a `share` (0 to 1) of white in it.
pub fn lighter(colour: &str, share: f64) -> String {
    let channel = |at: usize| {
        let value = colour.get(at..at + 2).and_then(|hex| u8::from_str_radix(hex, 16).ok()).unwrap_or(0);
        let value = f64::from(value);
        (value + (255.0 - value) * share).round() as u8
    };
    format!("#{:02x}{:02x}{:02x}", channel(1), channel(3), channel(5))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(product: &str, profile: &str) -> Entry {
        Entry { product: product.to_string(), profile: profile.to_string() }
    }

    #[test]
    fn a_product_keeps_its_hue_and_the_baseline_has_none() {
        let all = [entry("direct", "stock"), entry("a", "stock"), entry("b", "stock"), entry("a", "tuned")];
        assert_eq!(style(&all[0], &all).colour, GREY);
        assert_eq!(style(&all[1], &all), Style { colour: COLOURS[0].to_string(), dash: Dash::Solid });
        assert_eq!(style(&all[2], &all).colour, COLOURS[1]);
        assert_eq!(style(&all[3], &all), Style { colour: lighter(COLOURS[0], 0.45), dash: Dash::Dashed });
        assert_eq!(lighter("#000000", 1.0), "#ffffff");
    }
}
