//! Checks what every store of keys and values, and every proxy before such stores, owes its clients. Each runs in
//! every one of these protocols that the product speaks, and is left out where the protocol lacks the operation.

pub mod clients;
pub mod servers;
pub mod values;

use crate::cell::Cell;
use crate::testbed::Testbed;
use weir_model::keyvalue::Operation;
use weir_product::client::{Ask, KeyValueClient, KeyValueResponse, TIMEOUT};

/// A connection to the product.
fn open(bed: &dyn Testbed) -> Result<KeyValueClient, Cell> {
    Ok(KeyValueClient::open(&bed.product(), bed.protocol(), TIMEOUT)?)
}

/// Sends a request to which there is one correct response.
fn ask(client: &mut KeyValueClient, ask: Ask<'_>, right: &KeyValueResponse) -> Result<(), Cell> {
    let at = |cell: Cell| cell.with(format!("at a {}", ask.operation.as_str()));
    judge(&client.ask(ask).map_err(|failure| at(Cell::failure(&failure)))?, right).map_err(at)
}

/// Writes a value.
fn set(client: &mut KeyValueClient, key: &[u8], value: &[u8]) -> Result<(), Cell> {
    ask(client, Ask::write(Operation::Set, key, value), &KeyValueResponse::Done)
}

/// Reads a value, which has to be this one.
fn get(client: &mut KeyValueClient, key: &[u8], value: &[u8]) -> Result<(), Cell> {
    ask(client, Ask::get(key), &KeyValueResponse::Value(value.to_vec()))
}

/// The cell for a response that is not the correct one.
fn judge(found: &KeyValueResponse, right: &KeyValueResponse) -> Result<(), Cell> {
    if found == right {
        return Ok(());
    }
    Err(match found {
        KeyValueResponse::Error(text) => Cell::no("error").with(format!("it returns: {text}")),
        KeyValueResponse::Value(value) => Cell::no("wrong value").with(format!("{} bytes", value.len())),
        KeyValueResponse::Absent => Cell::no("absent"),
        KeyValueResponse::Exists => Cell::no("exists"),
        KeyValueResponse::Done => Cell::no("says done"),
    })
}
