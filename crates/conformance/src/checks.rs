//! The checks, one file each: the question, the method, and the cells that it can return. `checks.toml` lists them,
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
pub mod h2_websocket;
pub mod h3;
pub mod head;
pub mod headers_down;
pub mod headers_up;
pub mod http10;
pub mod http2;
pub mod keep_alive;
pub mod keyvalue;
pub mod large_heads;
pub mod no_body;
pub mod path;
pub mod pipelined;
pub mod post;
pub mod reload;
pub mod resources;
pub mod slow;
pub mod streams;
pub mod tls;
pub mod trailers;

use super::cell::{Cell, word};
use super::testbed::Testbed;
use weir_product::client::{Endpoint, Http1, RequestError, Response, TIMEOUT};

/// The origin's own response; a cell that says why there is none.
fn reference(bed: &dyn Testbed, target: &str) -> Result<Response, Cell> {
    bed.origin()
        .get(target)
        .map_err(|failure| Cell::unknown(format!("weir's origin itself, asked for {target}: {failure}")))
}

/// Why a request got no successful response.
enum Lost {
    Failed(RequestError),
    /// A response with this status, or with another body.
    Wrong(u16),
}

impl Lost {
    fn word(&self) -> String {
        match self {
            Lost::Failed(failure) => word(failure).to_owned(),
            Lost::Wrong(status) => status.to_string(),
        }
    }
}

/// Sends a request for 128 bytes over a kept connection, or over a new one. Returns the connection if it can carry another.
fn ask_over(endpoint: &Endpoint, kept: Option<Http1>, request: &[u8]) -> Result<Option<Http1>, Lost> {
    let mut conn = kept.map_or_else(|| endpoint.open(), Ok).map_err(Lost::Failed)?;
    match conn.ask(request, false, TIMEOUT).map_err(Lost::Failed)? {
        response if response.status != 200 || response.body.len() != 128 => Err(Lost::Wrong(response.status)),
        response => Ok(response.keep_alive.then_some(conn)),
    }
}
