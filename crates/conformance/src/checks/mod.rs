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
pub mod h3;
pub mod head;
pub mod headers_down;
pub mod headers_up;
pub mod http10;
pub mod http2;
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
pub mod slow;
pub mod tls;

use super::cell::Cell;
use super::client::Response;
use super::testbed::Testbed;

/// What the origin itself answers; a cell that says that it does not.
fn reference(bed: &dyn Testbed, target: &str) -> Result<Response, Cell> {
    bed.origin()
        .get(target)
        .map_err(|failure| Cell::unknown(format!("weir's origin itself, asked for {target}: {failure}")))
}
