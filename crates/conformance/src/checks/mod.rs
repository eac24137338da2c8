//! The checks, one file each: what is asked, how, and what the answers are called. None knows how it is shown, and none fails:
//! what a product does not do is its cell.
//!
//! Each has tests with small products that do it, that do not, and that do it in ways of their own.

pub mod back;
pub mod chunked;
pub mod cores;
pub mod errors;
pub mod expect;
pub mod get;
pub mod gone;
pub mod graceful;
pub mod h2;
pub mod h2_tls;
pub mod h2c;
pub mod h3;
pub mod head;
pub mod headers_down;
pub mod headers_up;
pub mod http10;
pub mod https;
pub mod https_resumption;
pub mod https_tls;
pub mod keep_alive;
pub mod large_heads;
pub mod memory_idle;
pub mod memory_many;
pub mod no_body;
pub mod path;
pub mod pipelined;
pub mod post;
pub mod processes;
pub mod reload;
mod secure;
pub mod slow;

use super::cell::Cell;
use super::rig::Rig;
use super::talk::Heard;

/// What the origin itself answers; a cell that says that it does not.
fn reference(rig: &dyn Rig, target: &str) -> Result<Heard, Cell> {
    rig.origin()
        .get(target)
        .map_err(|trouble| Cell::unknown(format!("weir's origin itself, asked for {target}: {trouble}")))
}

/// Several words as one: `a, b and c`.
fn listed(words: &[impl AsRef<str>]) -> String {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    match words.split_last() {
        None => String::new(),
        Some((last, [])) => (*last).to_owned(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_listed() {
        assert_eq!([listed(&["a"]), listed(&["a", "b", "c"]), listed(&[] as &[&str])], ["a", "a, b and c", ""]);
    }
}
