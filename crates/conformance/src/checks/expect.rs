//! Checks who sends 100 (Continue): the product or the origin.
//!
//! Two steps tell them apart. If the head that reached the origin has no `Expect`, the product sent 100 itself.
//! Otherwise the client announces a body that the origin refuses before it sends 100. If a 100 arrives all the same,
//! the product sent it; if the origin's own 413 arrives, the product waits for the origin.

use std::time::Duration;

use crate::cell::{Cell, with_status};
use weir_product::client::{Endpoint, FirstResponse, RequestError, TIMEOUT};

/// How long a client waits for 100 before it sends the body without it.
pub const WAITS: Duration = Duration::from_secs(1);

/// A byte more than weir's origin accepts: it responds with 413 at once.
const TOO_MUCH: &str = "67108865";

pub fn with(endpoint: &Endpoint, waits: Duration) -> Result<Cell, Cell> {
    let asked = ask(endpoint, waits)?;
    let arrived = asked.head.to_lowercase();
    if !asked.hundred {
        let cell = Cell::no("nobody").with(format!("the body is taken without it, after {:.0} s", waits.as_secs_f64()));
        return Ok(if arrived.contains("\r\nexpect:") { cell.with("Expect reaches the origin") } else { cell });
    }
    if !arrived.contains("\r\nexpect:") {
        return Ok(Cell::new(crate::Verdict::Yes, "product"));
    }
    let request = endpoint.request("POST", "/echo", &[("Expect", "100-continue"), ("Content-Length", TOO_MUCH)]);
    let first = endpoint.open().and_then(|mut conn| {
        conn.send(&request, false, TIMEOUT)?;
        conn.first(waits)
    });
    Ok(match first {
        Ok(FirstResponse::Interim(_)) => {
            Cell::new(crate::Verdict::Yes, "product").with("it says it before the origin does, and sends Expect on")
        }
        Ok(FirstResponse::Final(response))
            if response.status == 413 && response.body.starts_with(b"this origin echoes") =>
        {
            Cell::new(crate::Verdict::Yes, "origin")
        }
        // The product's own limit on bodies hides the origin's response.
        _ => Cell::new(crate::Verdict::Yes, "origin").with("Expect is sent on; that the product waits was not seen"),
    })
}

struct Answered {
    hundred: bool,
    /// The head as the origin received it.
    head: String,
}

fn ask(endpoint: &Endpoint, waits: Duration) -> Result<Answered, Cell> {
    let mut conn = endpoint.open()?;
    let head = endpoint.request("POST", "/headers", &[("Expect", "100-continue"), ("Content-Length", "5")]);
    conn.send(&head, false, TIMEOUT)?;
    let hundred = match conn.first(waits) {
        Ok(FirstResponse::Interim(100)) => true,
        Ok(FirstResponse::Interim(status)) => return Err(Cell::odd(status.to_string())),
        Ok(FirstResponse::Final(response)) => return Err(Cell::status(&response).with("before the body was sent")),
        Err(RequestError::Silent(_)) => false,
        Err(other) => return Err(other.into()),
    };
    conn.more(b"hello", TIMEOUT)?;
    let response = with_status(200, conn.read_response(TIMEOUT)).map_err(|cell| cell.with("after the body"))?;
    Ok(Answered { hundred, head: String::from_utf8_lossy(&response.body).into_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::either;
    use crate::fake::{Fake, FakeTestbed, Received, Reply, origin, raw_response};
    use crate::testbed::Testbed;

    const HUNDRED: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

    /// A product that reacts to `Expect` with `expects`, and passes the header on if `sends_on`.
    fn says(sends_on: bool, expects: impl Fn(&Received) -> Option<Reply> + Send + Sync + 'static) -> String {
        let responses = move |asked: &Received| {
            let head = if sends_on { asked.head.clone() } else { asked.head.replace("Expect: 100-continue\r\n", "") };
            Reply::Keep(origin(&Received { head, ..asked.clone() }))
        };
        let bed = FakeTestbed::new(Fake::expecting(expects, responses));
        either(with(&bed.product(), Duration::from_millis(200))).says
    }

    #[test]
    fn who_says_it_is_told_apart() {
        let hundred = |_: &Received| Some(Reply::Keep(HUNDRED.to_vec()));
        assert_eq!(says(false, hundred), "product");
        assert_eq!(says(true, hundred), "product");
        let as_the_origin = |asked: &Received| match asked.header("content-length") {
            Some("5") => Some(Reply::Keep(HUNDRED.to_vec())),
            _ => Some(Reply::Close(raw_response(413, "", b"this origin echoes at most 67108864 bytes.\n"))),
        };
        assert_eq!(says(true, as_the_origin), "origin");
        assert_eq!(says(true, |_| None), "nobody");
        assert_eq!(says(true, |_| Some(Reply::Close(raw_response(417, "", b"")))), "417");
        assert_eq!(says(true, |_| Some(Reply::Close(Vec::new()))), "closes");
    }
}
