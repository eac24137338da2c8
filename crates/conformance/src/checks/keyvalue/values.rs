//! One client and its keys: what is written is read, until it is destroyed or its time is over.

use std::time::Duration;

use super::{ask, get, open, set};
use crate::cell::{Cell, about, size};
use crate::testbed::Testbed;
use weir_model::keyvalue::Operation::{Create, Update};
use weir_product::client::{Ask, KeyValueClient, KeyValueResponse, TIMEOUT};
use weir_product::expiry::{self, TestKey};
use weir_product::verify::unlike_text;

pub fn same_bytes(bed: &dyn Testbed) -> Result<Cell, Cell> {
    let mut client = open(bed)?;
    for seed in 0..6 {
        let (key, value) = (format!("weir-get-{}", seed / 2), unlike_text(seed, 2_000));
        set(&mut client, key.as_bytes(), &value)?;
        get(&mut client, key.as_bytes(), &value)?;
    }
    Ok(Cell::yes())
}

pub fn create(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    let mut client = open(bed)?;
    let (key, missing) = (b"weir-created", b"weir-never-created");
    for key in [&key[..], missing] {
        ask(&mut client, Ask::destroy(key), &KeyValueResponse::Done)?;
    }
    ask(&mut client, Ask::write(Create, key, b"first"), &KeyValueResponse::Done)?;
    let again = Ask::write(Create, key, b"again");
    unless_done(
        &mut client,
        again,
        &KeyValueResponse::Exists,
        "creates again",
        "a key that is there is created once more",
    )?;
    get(&mut client, key, b"first")?;
    ask(&mut client, Ask::write(Update, key, b"second"), &KeyValueResponse::Done)?;
    get(&mut client, key, b"second")?;
    let update = Ask::write(Update, missing, b"first");
    unless_done(&mut client, update, &KeyValueResponse::Absent, "update creates", "a key that is absent is updated")?;
    ask(&mut client, Ask::get(missing), &KeyValueResponse::Absent)?;
    Ok(Cell::yes())
}

/// Sends a write that must not be done.
fn unless_done(
    client: &mut KeyValueClient,
    write: Ask<'_>,
    right: &KeyValueResponse,
    says: &str,
    note: &str,
) -> Result<(), Cell> {
    let found = ask(client, write, right);
    found.map_err(|cell| if cell.says == "says done" { Cell::no(says).with(note) } else { cell })
}

pub fn destroy(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    let mut client = open(bed)?;
    let key = b"weir-destroyed";
    set(&mut client, key, b"there")?;
    for _ in 0..2 {
        ask(&mut client, Ask::destroy(key), &KeyValueResponse::Done)?;
        let found = client.ask(Ask::get(key))?;
        if matches!(found, KeyValueResponse::Value(_)) {
            return Ok(Cell::no("stays").with("a key that was destroyed is read"));
        }
        super::judge(&found, &KeyValueResponse::Absent)?;
    }
    ask(&mut client, Ask::write(Create, key, b"again"), &KeyValueResponse::Done)?;
    get(&mut client, key, b"again")?;
    Ok(Cell::yes())
}

const SIZES: [u64; 3] = [100 << 10, 200 << 10, 1 << 20];

pub fn large(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    let most = bed.protocol().limits().map_or(u64::MAX, |(value, _)| value);
    let mut kept = None;
    for bytes in SIZES.into_iter().filter(|bytes| *bytes <= most) {
        match keeps(bed, bytes) {
            Ok(()) => kept = Some(size(bytes)),
            Err(cell) => {
                let says = match kept {
                    Some(kept) => format!("{kept}, then {}", cell.says),
                    None => format!("{}: {}", size(bytes), cell.says),
                };
                return Ok(Cell { says, ..cell });
            }
        }
    }
    Ok(Cell::reading(kept.unwrap_or_default()))
}

fn keeps(bed: &dyn Testbed, bytes: u64) -> Result<(), Cell> {
    let mut client = open(bed)?;
    let (key, value) = (b"weir-large", unlike_text(bytes, bytes));
    set(&mut client, key, &value)?;
    get(&mut client, key, &value)?;
    ask(&mut client, Ask::destroy(key), &KeyValueResponse::Done)
}

pub fn expires(bed: &mut dyn Testbed, lives: Duration) -> Result<Cell, Cell> {
    let mut keys = [TestKey::new(lives)];
    expiry::test(&mut keys, &bed.product(), bed.protocol(), TIMEOUT)?;
    let (expiry, application) = (keys[0].expiry, bed.protocol().application());
    let lived = |seconds: f64| about(Duration::from_secs_f64(seconds));
    Ok(if expiry.is_early(application) {
        Cell::no("too early").with(format!("absent after {}", lived(expiry.at_most_s.unwrap_or_default())))
    } else if expiry.is_late(application) {
        Cell::no("stays").with(format!("still there after {}", lived(expiry.at_least_s)))
    } else {
        Cell::yes()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::keyvalue::{Asked, Does, Fake, PROTOCOLS, bed, but};
    use crate::table::cell_of;
    use weir_model::keyvalue::Operation::{self, Destroy, Get, Set};

    /// What the check says of a product that does this, over every protocol.
    fn says(check: &str, does: impl Fn(&Asked) -> Option<Does> + Clone + Send + Sync + 'static) -> Vec<String> {
        let cells = PROTOCOLS.map(|protocol| cell_of(check, &mut but(protocol, does.clone())));
        assert!(cells.iter().all(|cell| cell.verdict == crate::Verdict::No), "{cells:?}");
        cells.map(|cell| cell.says).to_vec()
    }

    #[test]
    fn a_good_store_does_everything() {
        for protocol in PROTOCOLS {
            for check in ["kv-get", "kv-create", "kv-destroy", "kv-expires"] {
                assert_eq!(cell_of(check, &mut bed(Fake::good(protocol))), Cell::yes(), "{} {protocol:?}", check);
            }
            let cell = cell_of("kv-large", &mut bed(Fake::good(protocol)));
            let largest =
                if protocol.limits().is_some_and(|(value, _)| value < 1 << 20) { "200 KiB" } else { "1.0 MiB" };
            assert_eq!(cell, Cell::reading(largest), "{protocol:?}");
        }
    }

    #[test]
    fn other_bytes_an_error_and_a_closed_connection_are_told_apart() {
        let response = |response: KeyValueResponse| move |_: &_| Some(Does::Respond(response.clone()));
        let on = |operation: Operation, does: Does| {
            move |asked: &Asked| (asked.operation == operation).then(|| does.clone())
        };
        assert_eq!(says("kv-get", on(Get, Does::Respond(KeyValueResponse::Value(vec![1])))), ["wrong value"; 3]);
        assert_eq!(says("kv-get", on(Get, Does::Respond(KeyValueResponse::Absent))), ["absent"; 3]);
        assert_eq!(says("kv-get", response(KeyValueResponse::Error("it is busy".into()))), ["error"; 3]);
        assert_eq!(says("kv-get", on(Set, Does::Close)), ["closes"; 3]);
        let cell = cell_of("kv-get", &mut but(PROTOCOLS[0], response(KeyValueResponse::Error("it is busy".into()))));
        assert_eq!(cell.note.as_deref(), Some("it returns: it is busy; at a set"));
    }

    #[test]
    fn writes_that_must_not_be_done() {
        let done = |operation| {
            move |asked: &Asked| {
                (asked.operation == operation && asked.is_refused).then_some(Does::Respond(KeyValueResponse::Done))
            }
        };
        assert_eq!(says("kv-create", done(Create)), ["creates again"; 3]);
        assert_eq!(says("kv-create", done(Update)), ["update creates"; 3]);
        let kept = |asked: &Asked| (asked.operation == Destroy).then_some(Does::Respond(KeyValueResponse::Done));
        assert_eq!(says("kv-destroy", kept), ["stays"; 3]);
    }

    #[test]
    fn the_largest_value_is_found() {
        let at_most = |most: usize| {
            move |asked: &Asked| {
                (asked.value.len() > most).then(|| Does::Respond(KeyValueResponse::Error("too large".into())))
            }
        };
        assert_eq!(says("kv-large", at_most(150_000)), ["100 KiB, then error"; 3]);
        assert_eq!(says("kv-large", at_most(50_000)), ["100 KiB: error"; 3]);
    }

    #[test]
    fn a_time_to_live_is_neither_shorter_nor_longer() {
        for (factor, word) in [(0.0, "too early"), (1000.0, "stays")] {
            for protocol in PROTOCOLS {
                let fake = Fake { lifetime: factor, ..Fake::good(protocol) };
                let cell = cell_of("kv-expires", &mut bed(fake));
                assert_eq!((cell.says.as_str(), cell.verdict), (word, crate::Verdict::No), "{cell:?}");
            }
        }
    }
}
