//! The checks, one file each: the question, the method, and the cells that it can return. `table::CHECKS` lists them,
//! and `run` calls them. A check does not know how its cell is shown, and it never fails the run: what a product cannot
//! do is its cell.
//!
//! Each has tests with small fake products that do it, that do not, and that do it in another way.

pub mod back;
pub mod chunked;
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
pub mod no_body;
pub mod path;
pub mod pipelined;
pub mod post;
pub mod reload;
pub mod resources;
pub mod slow;
pub mod tls;

use super::cell::Cell;
use super::testbed::Testbed;
use weir_product::client::Response;

/// The origin's own response; a cell that says why there is none.
fn reference(bed: &dyn Testbed, target: &str) -> Result<Response, Cell> {
    bed.origin()
        .get(target)
        .map_err(|failure| Cell::unknown(format!("weir's origin itself, asked for {target}: {failure}")))
}
