//! Rasterises the SVG of a chart with an embedded font, so that it looks the same on a machine without fonts.

use std::sync::{Arc, LazyLock};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};

use super::draw::text::{BOLD, REGULAR};
use crate::error::DrawError;

/// Pixels of the picture for one of the SVG: sharp on a dense screen.
const SCALE: f32 = 2.0;

static FONTS: LazyLock<Arc<fontdb::Database>> = LazyLock::new(|| {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(REGULAR.to_vec());
    fonts.load_font_data(BOLD.to_vec());
    fonts.set_sans_serif_family("Noto Sans");
    Arc::new(fonts)
});

/// The picture as PNG.
///
/// # Errors
///
/// When `svg` is no SVG, or memory for its pixels cannot be had.
pub fn draw(svg: &str) -> Result<Vec<u8>, DrawError> {
    let options = Options { fontdb: FONTS.clone(), font_family: "Noto Sans".to_string(), ..Options::default() };
    let tree = Tree::from_str(svg, &options)?;
    let size = tree.size();
    let (width, height) = ((size.width() * SCALE).ceil() as u32, (size.height() * SCALE).ceil() as u32);
    let mut pixels = Pixmap::new(width, height).ok_or("the picture has no size")?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    Ok(pixels.encode_png()?)
}
