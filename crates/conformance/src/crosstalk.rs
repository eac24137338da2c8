//! Checks whether a product still gives each client its own response. A product may reuse a connection to the origin
//! while a response is still in transit. It then sends that response to the next client, and later checks would report
//! nonsense. `real` calls it after a check that did not succeed.

use std::time::Duration;

use weir_model::suite::Protocol;
use weir_product::client::{Endpoint, Http1, Http2, Http3, KeyValueClient, RequestError, Response, TIMEOUT};

/// The sizes of the requested bodies, each on its own connection.
const SIZES: [usize; 5] = [1, 2, 3, 128, 300];

/// Concurrent requests. The checks use at most ten connections, so the product cannot have kept more than these from
/// them.
const AT_ONCE: usize = 20;

/// Sends a GET for a target.
pub fn ask(endpoint: &Endpoint, protocol: Protocol, target: &str) -> Result<Response, RequestError> {
    let responses = match protocol {
        _ if protocol.is_quic() => Http3::open(endpoint, TIMEOUT)?.get_all(&[target], TIMEOUT)?,
        _ if protocol.is_multiplexed() => Http2::open(endpoint, TIMEOUT)?.get_all(&[target], TIMEOUT)?,
        _ => return endpoint.get(target),
    };
    responses.into_iter().next().ok_or(RequestError::Closed)
}

/// Fails when a response belongs to another request: a 200 of another size, a status that no request here can cause, or
/// another key's value.
/// Errors do not count. All requests are sent before a response is read, so that every connection that the product kept
/// is used.
///
/// # Errors
/// The wrong response, as a note for the cell of the previous check.
pub fn check(endpoint: &Endpoint, protocol: Protocol) -> Result<(), String> {
    if protocol.is_keyvalue() {
        return (0..AT_ONCE).try_for_each(|nth| own_value(endpoint, protocol, &format!("weir-own-{nth}")));
    }
    let targets = (0..AT_ONCE).map(|nth| SIZES[nth % SIZES.len()]);
    if protocol.is_multiplexed() {
        return targets.take(SIZES.len()).try_for_each(|size| judge(size, ask(endpoint, protocol, &target(size))));
    }
    let asked: Vec<(usize, Result<Http1, RequestError>)> = targets.map(|size| (size, sent(endpoint, size))).collect();
    asked.into_iter().try_for_each(|(size, conn)| judge(size, conn.and_then(|mut conn| conn.read_response(TIMEOUT))))
}

/// Writes a value that is its key's own name, over a connection of its own, and reads it.
fn own_value(endpoint: &Endpoint, protocol: Protocol, key: &str) -> Result<(), String> {
    let key = key.as_bytes();
    let Ok(mut client) = KeyValueClient::open(endpoint, protocol, TIMEOUT) else { return Ok(()) };
    match client.set(key, key, Duration::ZERO).and_then(|()| client.get(key, Duration::ZERO)) {
        Ok(Some(value)) if value != key => {
            let (key, value) = (String::from_utf8_lossy(key), String::from_utf8_lossy(&value));
            Err(format!("afterwards clients get responses that belong to others ({key} got {value})"))
        }
        _ => Ok(()),
    }
}

fn target(size: usize) -> String {
    format!("/bytes/{size}")
}

fn sent(endpoint: &Endpoint, size: usize) -> Result<Http1, RequestError> {
    let mut conn = endpoint.open()?;
    conn.send(&endpoint.request("GET", &target(size), &[]), false, TIMEOUT)?;
    Ok(conn)
}

fn judge(size: usize, response: Result<Response, RequestError>) -> Result<(), String> {
    let came = match response {
        Ok(response) if response.status == 200 && response.body.len() != size => {
            format!("{} bytes", response.body.len())
        }
        Ok(response) if (201..400).contains(&response.status) => response.status.to_string(),
        _ => return Ok(()),
    };
    Err(format!("afterwards clients get responses that belong to others ({} got {came})", target(size)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Fake, Received, Reply, origin, raw_response};
    use weir_host::stop::Stop;

    fn judged(fake: &Fake) -> Result<(), String> {
        check(&Endpoint::plain(fake.addr, Stop::new()), Protocol::Http11)
    }

    #[test]
    fn a_response_that_is_anothers_is_noticed() {
        assert_eq!(judged(&Fake::faithful()), Ok(()));
        let errors = Fake::new(|_| Reply::Keep(raw_response(502, "", b"bad gateway")));
        assert_eq!(judged(&errors), Ok(()), "an error is a product's own");
        let last = std::sync::Mutex::new("/_weir/ready".to_owned());
        let one_behind = Fake::new(move |asked| {
            let before = std::mem::replace(&mut *last.lock().expect("not poisoned"), asked.target.clone());
            Reply::Keep(origin(&Received { target: before, ..asked.clone() }))
        });
        for _ in 0..2 {
            let said = judged(&one_behind).expect_err("somebody got another's");
            assert!(said.starts_with("afterwards clients get responses that belong to others (/bytes/"), "{said}");
        }
    }

    #[test]
    fn a_value_that_is_anothers_is_noticed() {
        use crate::fake::keyvalue::{self, Asked, Does, PROTOCOLS};
        use crate::testbed::Testbed;
        use weir_model::keyvalue::Operation::Get;
        use weir_product::client::KeyValueResponse;

        for protocol in PROTOCOLS {
            let judged = |response: KeyValueResponse| {
                let does = move |asked: &Asked| (asked.operation == Get).then(|| Does::Respond(response.clone()));
                check(&keyvalue::but(protocol, does).product(), protocol)
            };
            assert_eq!(check(&keyvalue::but(protocol, |_| None).product(), protocol), Ok(()));
            assert_eq!(judged(KeyValueResponse::Error("it is busy".into())), Ok(()), "an error is a product's own");
            let said = judged(KeyValueResponse::Value(b"weir-own-7".to_vec())).expect_err("somebody got another's");
            assert!(said.ends_with("(weir-own-0 got weir-own-7)"), "{said}");
        }
    }
}
