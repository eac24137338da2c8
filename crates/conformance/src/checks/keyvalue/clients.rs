//! Several requests, and several clients: each gets its own responses, and sees what the others wrote.

use super::{Ask, KeyValueResponse, get, judge, open, set};
use crate::cell::{Cell, detail, word};
use crate::testbed::Testbed;
use weir_model::keyvalue::Operation::Set;
use weir_product::client::{KeyValueClient, RequestError};

const AT_ONCE: usize = 16;

pub fn pipelined(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    let mut client = open(bed)?;
    let keys: Vec<String> = (0..AT_ONCE).map(|nth| format!("weir-pipelined-{nth}")).collect();
    // The value of each key is its name.
    let sets: Vec<Ask<'_>> = keys.iter().map(|key| Ask::write(Set, key.as_bytes(), key.as_bytes())).collect();
    let set = vec![KeyValueResponse::Done; AT_ONCE];
    all(&mut client, &sets, &set)?;
    let absent: Vec<String> = keys.iter().map(|key| format!("{key}-absent")).collect();
    let is_there = |nth: usize| nth % 3 != 1;
    let name = |nth: usize| if is_there(nth) { &keys[nth] } else { &absent[nth] };
    let gets: Vec<Ask<'_>> = (0..AT_ONCE).map(|nth| Ask::get(name(nth).as_bytes())).collect();
    let value = |nth: usize| {
        if is_there(nth) { KeyValueResponse::Value(keys[nth].clone().into()) } else { KeyValueResponse::Absent }
    };
    all(&mut client, &gets, &(0..AT_ONCE).map(value).collect::<Vec<_>>())?;
    Ok(Cell::yes())
}

fn all(client: &mut KeyValueClient, asks: &[Ask<'_>], right: &[KeyValueResponse]) -> Result<(), Cell> {
    let responses = client.ask_all(asks)?;
    let wrong = responses.iter().zip(right).filter(|(found, right)| found != right).count();
    match responses.iter().zip(right).find_map(|(found, right)| judge(found, right).err()) {
        None => Ok(()),
        Some(cell) => Err(cell.with(format!("{wrong} of {} responses are wrong", asks.len()))),
    }
}

const ROUNDS: u32 = 100;

pub fn shared(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    let (mut writer, mut reader) = (open(bed)?, open(bed)?);
    let key = b"weir-shared";
    let mut old = 0;
    for round in 0..ROUNDS {
        let value = round.to_be_bytes();
        set(&mut writer, key, &value)?;
        match reader.ask(Ask::get(key))? {
            KeyValueResponse::Value(found) if found == value => {}
            KeyValueResponse::Value(_) | KeyValueResponse::Absent => old += 1,
            other => judge(&other, &KeyValueResponse::Absent)?,
        }
    }
    Ok(match old {
        0 => Cell::yes(),
        _ => Cell::no(format!("{old} of {ROUNDS} old")).with("what was read was written before, or nothing"),
    })
}

pub fn malformed(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    let (key, value) = (b"weir-bystander", b"there");
    let mut before = open(bed)?;
    set(&mut before, key, value)?;
    let cell = match open(bed)?.send_malformed() {
        Ok(text) => Cell { says: "error".to_owned(), ..Cell::yes() }.with(format!("it returns: {text}")),
        Err(failure @ (RequestError::Closed | RequestError::Reset | RequestError::Cut)) => {
            Cell { says: word(&failure).to_owned(), ..Cell::yes() }
        }
        Err(failure @ RequestError::Unexpected(_)) => Cell::no("accepts it").with(detail(&failure).unwrap_or_default()),
        Err(failure) => Cell::failure(&failure),
    };
    let harms = |which: &str, cell: Cell| {
        Cell::no(format!("harms others: {}", cell.says)).with(format!("at a connection opened {which}"))
    };
    get(&mut before, key, value).map_err(|cell| harms("before", cell))?;
    open(bed).and_then(|mut after| get(&mut after, key, value)).map_err(|cell| harms("after", cell))?;
    Ok(cell)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::fake::keyvalue::{Asked, Does, Fake, OnMalformed, PROTOCOLS, bed, but};
    use crate::table::cell_of;
    use weir_model::keyvalue::Operation::Get;

    #[test]
    fn a_good_store_does_everything() {
        for protocol in PROTOCOLS {
            for check in ["kv-pipelined", "kv-shared"] {
                assert_eq!(cell_of(check, &mut bed(Fake::good(protocol))), Cell::yes(), "{} {protocol:?}", check);
            }
        }
    }

    #[test]
    fn answers_in_another_order_are_wrong_where_there_is_one() {
        for protocol in PROTOCOLS {
            let cell = cell_of("kv-pipelined", &mut bed(Fake { turned: true, ..Fake::good(protocol) }));
            match protocol.is_multiplexed() {
                true => assert_eq!(cell, Cell::yes()),
                false => {
                    assert_eq!(cell.verdict, Verdict::No, "{cell:?}");
                    assert!(cell.note.is_some_and(|note| note.contains("of 16 responses are wrong")));
                }
            }
            // A response that belongs to another request.
            let of_another = |asked: &Asked| {
                (asked.key == b"weir-pipelined-2" && asked.operation == Get)
                    .then(|| Does::Respond(KeyValueResponse::Value(b"weir-pipelined-3".to_vec())))
            };
            let cell = cell_of("kv-pipelined", &mut but(protocol, of_another));
            assert_eq!((cell.says.as_str(), cell.verdict), ("wrong value", Verdict::No));
            let one = |asked: &Asked| (asked.key == b"weir-pipelined-9").then_some(Does::Close);
            assert_eq!(cell_of("kv-pipelined", &mut but(protocol, one)).says, "closes");
        }
    }

    #[test]
    fn a_value_that_is_older_than_the_last_write_is_seen() {
        for protocol in PROTOCOLS {
            let old =
                |asked: &Asked| (asked.operation == Get).then(|| Does::Respond(KeyValueResponse::Value(vec![0; 4])));
            assert_eq!(cell_of("kv-shared", &mut but(protocol, old)).says, "99 of 100 old");
            let absent = |asked: &Asked| (asked.operation == Get).then_some(Does::Respond(KeyValueResponse::Absent));
            assert_eq!(cell_of("kv-shared", &mut but(protocol, absent)).says, "100 of 100 old");
        }
    }

    #[test]
    fn bytes_that_are_no_request_are_refused_and_harm_nobody() {
        for protocol in PROTOCOLS {
            let cell = |malformed| cell_of("kv-malformed", &mut bed(Fake { malformed, ..Fake::good(protocol) }));
            assert_eq!(cell(OnMalformed::Closes), Cell { says: "closes".to_owned(), ..Cell::yes() });
            let refused = cell(OnMalformed::Responds);
            assert_eq!((refused.says.as_str(), refused.verdict), ("error", Verdict::Yes), "{refused:?}");
            for (malformed, says) in [
                (OnMalformed::Accepts, "accepts it"),
                (OnMalformed::ClosesAll, "harms others: closes"),
                (OnMalformed::Forgets, "harms others: absent"),
            ] {
                let cell = cell(malformed);
                assert_eq!((cell.says.as_str(), cell.verdict), (says, Verdict::No), "{protocol:?}: {cell:?}");
            }
        }
    }

    #[test]
    fn silence_is_no_refusal() {
        let cell =
            cell_of("kv-malformed", &mut bed(Fake { malformed: OnMalformed::Ignores, ..Fake::good(PROTOCOLS[0]) }));
        assert_eq!((cell.says.as_str(), cell.verdict), ("hangs", Verdict::No), "{cell:?}");
    }
}
