//! Where a page finds what belongs to it: style and script, the files of its pictures, and the pages above it. A report is one page that
//! holds style and script itself; the pages of a site share them. All templates of pages ask it. It does not know what is on a page.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use sha2::{Digest as _, Sha256};

use crate::page::{SCRIPT, STYLE};

/// Names of the files that the pages of a site share, from the site's folder.
pub(crate) const STYLE_FILE: &str = "assets/weir.css";
pub(crate) const SCRIPT_FILE: &str = "assets/weir.js";

/// The feed of a site, from its folder.
pub(crate) const FEED_FILE: &str = "feed.xml";

/// What no page does: it loads nothing but pictures, asks nobody, and sends nothing.
const ALWAYS: &str =
    "default-src 'none'; img-src 'self' file: data: blob:; connect-src 'none'; base-uri 'none'; form-action 'none'";

/// Pages of a site run only the site's script. `file:` is for a site that is read from a disk.
const OF_SITE: &str = "script-src 'self' file:; style-src 'self' file:";

/// The files of a chart beside a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ChartFiles {
    /// Its numbers as CSV; the picture is on the page alone.
    Numbers,
    /// The picture as SVG, too.
    Pictures,
    /// And as PNG.
    Raster,
}

impl ChartFiles {
    pub fn has_svg(self) -> bool {
        self >= ChartFiles::Pictures
    }

    pub fn has_png(self) -> bool {
        self == ChartFiles::Raster
    }

    /// The endings of the files' names.
    pub fn endings(self) -> &'static [&'static str] {
        match self {
            ChartFiles::Numbers => &["csv"],
            ChartFiles::Pictures => &["svg", "csv"],
            ChartFiles::Raster => &["svg", "png", "csv"],
        }
    }
}

/// Where a page finds what belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Links {
    /// The way from the page to the site's folder, empty or with a `/` at its end; `None`: the page is a report on its own.
    pub root: Option<&'static str>,
    /// The way from the page to the folder of its files, likewise.
    pub files: String,
    /// As what its charts are there as files.
    pub charts: ChartFiles,
    /// The pages above it, as the reader knows them: address from the site's folder, and name.
    pub above: Vec<(String, String)>,
}

impl Links {
    /// Those of a report.
    pub fn of_report(png: bool) -> Links {
        let charts = if png { ChartFiles::Raster } else { ChartFiles::Pictures };
        Links { root: None, files: String::new(), charts, above: Vec::new() }
    }

    /// What the page may load and run (its Content Security Policy). A page that is one file names its script by its hash: a script that
    /// came in with a run's texts would not run even if it were not escaped.
    pub fn policy(&self) -> String {
        let own = match self.root {
            None => {
                let hash = BASE64_STANDARD.encode(Sha256::digest(SCRIPT));
                format!("script-src 'sha256-{hash}'; style-src 'unsafe-inline'")
            }
            Some(_) => OF_SITE.to_owned(),
        };
        format!("{ALWAYS}; {own}")
    }

    /// Its style, and of a site the feed, as markup for its head.
    pub fn style(&self) -> String {
        match self.root {
            None => format!("<style>{STYLE}</style>"),
            Some(root) => format!(
                "<link rel=\"stylesheet\" href=\"{root}{STYLE_FILE}\">\n\
                 <link rel=\"alternate\" type=\"application/atom+xml\" title=\"Runs\" href=\"{root}{FEED_FILE}\">"
            ),
        }
    }

    /// Its script, as markup for its end.
    pub fn script(&self) -> String {
        match self.root {
            None => format!("<script>{SCRIPT}</script>"),
            Some(root) => format!("<script src=\"{root}{SCRIPT_FILE}\"></script>"),
        }
    }
}
