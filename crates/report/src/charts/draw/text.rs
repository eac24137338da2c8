//! Measures, shortens and wraps text in the font with which pictures are rasterised.

use std::sync::LazyLock;

use ttf_parser::Face;

/// The two faces that every picture uses: Noto Sans, Apache 2.0, from the crate `ttf-noto-sans`.
pub(crate) const REGULAR: &[u8] = ttf_noto_sans::REGULAR;
/// The bold one.
pub(crate) const BOLD: &[u8] = ttf_noto_sans::BOLD;

static FACES: LazyLock<[Option<Face<'static>>; 2]> =
    LazyLock::new(|| [Face::parse(REGULAR, 0).ok(), Face::parse(BOLD, 0).ok()]);

/// Width in pixels at `size` pixels. A letter the font lacks counts as half a square.
pub(crate) fn width(text: &str, size: f64, bold: bool) -> f64 {
    let Some(face) = &FACES[usize::from(bold)] else {
        return text.chars().count() as f64 * size * 0.5;
    };
    let em = f64::from(face.units_per_em());
    let advance = |c: char| {
        let glyph = face.glyph_index(c).and_then(|glyph| face.glyph_hor_advance(glyph));
        glyph.map_or(0.5, |advance| f64::from(advance) / em)
    };
    text.chars().map(advance).sum::<f64>() * size
}

/// `text`, or as much of it as fits into `room` pixels with an ellipsis.
pub(crate) fn fit(text: &str, size: f64, room: f64) -> String {
    if width(text, size, false) <= room {
        return text.to_string();
    }
    let mut shorter = text.to_string();
    while !shorter.is_empty() && width(&format!("{shorter}\u{2026}"), size, false) > room {
        shorter.pop();
    }
    format!("{}\u{2026}", shorter.trim_end())
}

/// Breaks at spaces so that every line fits into `room` pixels, where its words do.
pub(crate) fn wrap(text: &str, size: f64, room: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let longer = lines.last().map(|line| format!("{line} {word}"));
        match longer.filter(|longer| width(longer, size, false) <= room) {
            Some(longer) => *lines.last_mut().expect("it was just read") = longer,
            None => lines.push(word.to_string()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_font_has_what_reports_use() {
        assert!(FACES.iter().all(Option::is_some));
        let face = FACES[0].as_ref().unwrap();
        for c in "aZ09,.%/()\u{b5}\u{2013}\u{2026}*:;\u{e9}".chars() {
            assert!(face.glyph_index(c).is_some(), "no glyph for {c}");
        }
        assert!(width("mmm", 10.0, false) > width("iii", 10.0, false));
        assert!(width("m", 10.0, true) > width("m", 10.0, false));
    }

    #[test]
    fn long_labels_are_cut_to_the_room() {
        let cut = fit("a very long name of a product", 12.0, 80.0);
        assert!(cut.ends_with('\u{2026}') && width(&cut, 12.0, false) <= 80.0, "{cut}");
        assert_eq!(fit("short", 12.0, 80.0), "short");
        assert!(wrap("one two three four", 12.0, 60.0).len() > 1);
    }
}
