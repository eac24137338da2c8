//! The servers behind a product: whether they have what was written, how keys are spread over them, and what a client gets
//! when they are gone.

use std::time::Duration;

use super::{Ask, KeyValueResponse, get, open, set};
use crate::cell::{Cell, about, word};
use crate::testbed::{Testbed, pause};
use weir_model::keyvalue::Operation::Set;
use weir_model::text::count;
use weir_product::client::{KeyValueClient, RequestError};

pub fn replicated(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    let mut client = open(bed)?;
    set(&mut client, b"weir-replicated", b"everywhere")?;
    Ok(match client.replicas_reached(1) {
        Ok(Some(1..)) => Cell::yes(),
        Ok(Some(0)) => Cell::no("no replica"),
        Ok(None) => Cell::absent("its protocol cannot ask for it"),
        Err(RequestError::Unexpected(text)) => Cell::no("refuses").with(format!("it returns: {text}")),
        Err(failure) => Cell::failure(&failure),
    })
}

/// The cell where there is no origin.
fn without_origins(bed: &dyn Testbed) -> Result<(), Cell> {
    if bed.origins() > 0 { Ok(()) } else { Err(Cell::absent("it holds the data itself")) }
}

const KEYS: u64 = 300;

pub fn spread(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    without_origins(bed)?;
    let before = bed.counters().map_err(Cell::unknown)?;
    let mut client = open(bed)?;
    for nth in 0..KEYS {
        let key = format!("weir-spread-{nth}");
        set(&mut client, key.as_bytes(), key.as_bytes())?;
        get(&mut client, key.as_bytes(), key.as_bytes())?;
    }
    let after = bed.counters().map_err(Cell::unknown)?.since(&before);
    let copies = after.requests > 2 * KEYS && bed.replicates();
    if after.requests != 2 * KEYS && !copies {
        let note = format!("{} requests of weir's reached the origins as {}", 2 * KEYS, count(after.requests));
        return Ok(Cell::no(format!("{} of {}", count(after.requests), 2 * KEYS)).with(note));
    }
    let shares: Vec<String> = after.addresses.iter().map(|one| one.requests.to_string()).collect();
    let used = after.addresses.iter().filter(|one| one.requests > 0).count();
    let cell = match used {
        _ if used == bed.origins() && copies => {
            Cell::reading("").with("it keeps copies: it asks several origins for one request")
        }
        _ if used == bed.origins() => Cell::reading(""),
        1 => Cell::no("").with("all go to one origin"),
        _ => Cell::odd("").with("an origin gets none of these keys, which are much alike"),
    };
    Ok(Cell { says: shares.join(" / "), ..cell })
}

/// Time for the closed connections to be noticed before the next request.
const SETTLES: Duration = Duration::from_millis(200);

pub fn gone(bed: &mut dyn Testbed, timeout: Duration) -> Result<Cell, Cell> {
    without_origins(bed)?;
    let key = b"weir-gone";
    set(&mut open(bed)?, key, b"there")?;
    bed.stop_origin();
    pause(bed.stop(), SETTLES);
    let read = asked_without(bed, Ask::get(key), timeout);
    let written = asked_without(bed, Ask::write(Set, key, b"lost"), timeout);
    let cell = match (read, written) {
        (Ok(read), Ok(_)) => read,
        (Err(cell), _) => cell.with("at a read"),
        (_, Err(cell)) => cell.with("at a write"),
    };
    Ok(match bed.start_origin() {
        Ok(()) => cell,
        Err(why) => cell.with(format!("weir's origins did not come back: {why}")),
    })
}

/// What a request gets that cannot be done. An error is right.
fn asked_without(bed: &dyn Testbed, ask: Ask<'_>, timeout: Duration) -> Result<Cell, Cell> {
    let begun = std::time::Instant::now();
    let response = KeyValueClient::open(&bed.product(), bed.protocol(), timeout).and_then(|mut client| client.ask(ask));
    match response {
        Ok(KeyValueResponse::Error(text)) => {
            Ok(Cell::reading(format!("error in {}", about(begun.elapsed()))).with(format!("it returns: {text}")))
        }
        Ok(KeyValueResponse::Value(_)) => Err(Cell::odd("answers by itself").with("a value is read without an origin")),
        Ok(KeyValueResponse::Absent) => Err(Cell::no("says absent").with("a key of which nobody knows")),
        Ok(KeyValueResponse::Done | KeyValueResponse::Exists) => {
            Err(Cell::no("says done").with("a write that nobody has"))
        }
        Err(failure @ (RequestError::Closed | RequestError::Reset)) => {
            Err(Cell::odd(word(&failure)).with("no error is returned"))
        }
        Err(failure) => Err(Cell::failure(&failure)),
    }
}

#[cfg(test)]
mod tests {
    use crate::table::cell_of;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    use super::*;
    use crate::Verdict;
    use crate::fake::FakeTestbed;
    use crate::fake::keyvalue::{Asked, Does, Fake, PROTOCOLS, bed, but};
    use weir_model::counters::{AddressCounters, OriginCounters};
    use weir_model::keyvalue::Operation::Get;

    #[test]
    fn replicas_are_asked_for_where_there_can_be_some() {
        for protocol in PROTOCOLS {
            let says = |replicas| cell_of("kv-replicated", &mut bed(Fake { replicas, ..Fake::good(protocol) }));
            match protocol.has_replicas() {
                true => {
                    assert_eq!(says(Some(2)), Cell::yes());
                    assert_eq!(says(Some(0)).says, "no replica");
                    assert_eq!(says(None).says, "refuses");
                }
                false => assert_eq!(says(Some(0)).verdict, Verdict::Absent),
            }
        }
    }

    #[test]
    fn where_no_origin_is_none_is_asked_for() {
        for check in ["kv-spread", "kv-gone"] {
            let mut bed = bed(Fake::good(PROTOCOLS[0]));
            bed.origins = 0;
            assert_eq!(cell_of(check, &mut bed).verdict, Verdict::Absent);
        }
    }

    /// A product whose requests reach three origins in these shares, of seven each.
    fn spreading(protocol: weir_model::suite::Protocol, shares: [u64; 3]) -> FakeTestbed {
        let requests = Arc::new(AtomicU64::new(0));
        let counted = requests.clone();
        let mut bed = but(protocol, move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            None
        });
        bed.on_counters = Some(Box::new(move || {
            let address = |share| AddressCounters {
                requests: requests.load(Ordering::SeqCst) * share / 6,
                ..AddressCounters::default()
            };
            let addresses = shares.map(address).to_vec();
            OriginCounters {
                requests: addresses.iter().map(|one| one.requests).sum(),
                addresses,
                ..OriginCounters::default()
            }
        }));
        bed
    }

    #[test]
    fn requests_are_counted_where_they_arrive() {
        for protocol in PROTOCOLS {
            assert_eq!(cell_of("kv-spread", &mut spreading(protocol, [1, 2, 3])), Cell::reading("100 / 200 / 300"));
            let cell = cell_of("kv-spread", &mut spreading(protocol, [6, 0, 0]));
            assert_eq!((cell.says.as_str(), cell.verdict), ("600 / 0 / 0", Verdict::No));
            let cell = cell_of("kv-spread", &mut spreading(protocol, [5, 1, 0]));
            assert_eq!((cell.says.as_str(), cell.verdict), ("500 / 100 / 0", Verdict::Odd));
            let cell = cell_of("kv-spread", &mut spreading(protocol, [2, 2, 3]));
            assert_eq!((cell.says.as_str(), cell.verdict), ("700 of 600", Verdict::No));
            let copies = |shares| {
                let mut bed = spreading(protocol, shares);
                bed.replicates = true;
                bed
            };
            let cell = cell_of("kv-spread", &mut copies([2, 2, 3]));
            assert_eq!((cell.says.as_str(), cell.verdict), ("200 / 200 / 300", Verdict::Reading));
            assert_eq!(cell_of("kv-spread", &mut copies([1, 2, 2])).says, "500 of 600", "it answered some itself");
        }
    }

    /// A product that does this without an origin.
    fn without(
        protocol: weir_model::suite::Protocol,
        does: impl Fn(&Asked) -> Option<Does> + Send + Sync + 'static,
    ) -> FakeTestbed {
        let up = Arc::new(AtomicBool::new(true));
        let is_up = up.clone();
        let mut bed = but(protocol, move |asked| if is_up.load(Ordering::SeqCst) { None } else { does(asked) });
        bed.on_origin = Some(Box::new(move |comes| up.store(comes, Ordering::SeqCst)));
        bed
    }

    #[test]
    fn what_the_client_gets_without_an_origin_is_said() {
        let response = |response: KeyValueResponse| move |_: &Asked| Some(Does::Respond(response.clone()));
        let error = || KeyValueResponse::Error("nobody is there".into());
        for protocol in PROTOCOLS {
            let cell = cell_of("kv-gone", &mut without(protocol, response(error())));
            assert!(cell.says.starts_with("error in ") && cell.verdict == Verdict::Reading, "{cell:?}");
            let says = |cell: Cell| (cell.says, cell.verdict);
            assert_eq!(
                says(cell_of("kv-gone", &mut without(protocol, |_| None))),
                ("answers by itself".to_owned(), Verdict::Odd)
            );
            assert_eq!(
                says(cell_of("kv-gone", &mut without(protocol, |_| Some(Does::Close)))),
                ("closes".to_owned(), Verdict::Odd)
            );
            let on_get = move |reads: KeyValueResponse, writes: KeyValueResponse| {
                move |asked: &Asked| {
                    Some(Does::Respond(if asked.operation == Get { reads.clone() } else { writes.clone() }))
                }
            };
            let cell = cell_of("kv-gone", &mut without(protocol, on_get(KeyValueResponse::Absent, error())));
            assert_eq!(says(cell), ("says absent".to_owned(), Verdict::No));
            let cell = cell_of("kv-gone", &mut without(protocol, on_get(error(), KeyValueResponse::Done)));
            assert_eq!(says(cell), ("says done".to_owned(), Verdict::No));
            let mut silent = without(protocol, |_| Some(Does::Nothing));
            assert_eq!(crate::cell::either(gone(&mut silent, Duration::from_millis(300))).says, "hangs");
        }
    }
}
