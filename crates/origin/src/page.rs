//! Texts for people who look at an origin: the index page and refusals. [`crate::resolve`] serves them.

use crate::held::MAX_HELD;
use crate::payload::MAX_PAYLOAD;
use crate::route::Refusal;

/// The page at `/`.
pub const INDEX_PAGE: &str = "\
weir origin: the server behind the proxy.

/bytes/<size>       a body of so many bytes, 0 to 64MiB (11268, 16KiB); the same bytes on every machine
/text/<size>        words instead, of which a compressor makes a third
/delay/<duration>   `ok`, that much later, 0s to 60s (250us, 10ms, 5ms..15ms, exp:10ms)
/echo               the body of the request, with its Content-Type, up to 64MiB
/status/<code>      a response with this status, 200 to 599
/headers            the head of the request as it arrived
/request            the same, and the body of the request behind it, up to 64MiB
/stream             server-sent events, each with the time at which it was sent; its query may have
                    messages=<number>&first=<duration>&every=<duration>&size=<bytes>&seed=<number>
                    (64, 200ms, 20ms, 200, 1), and trailers=1 for a header behind them; it has the faults reset, close
                    and stall (half-way) and status
/v1/chat/completions   a language model: a stream of such messages if the request's body asks for one, else all in one
                    piece at once; it has the same query, and the fault error, which says half-way that it failed
/weir.Echo/Unary    a call of gRPC, over HTTP/2 alone: one message at once; /weir.Echo/ClientStream: the same behind
                    requests=<number> messages of the client (1); /weir.Echo/ServerStream: as /stream. All have
                    its query, the fault error (status 13 half-way), and code=<status>, which comes without a message
/weir.Echo/Bidi     each message comes back; requests=<number>&every=<duration>&size=<bytes> say what weir's client sends
                    (16, 20ms, 200); it has the faults reset and status
/ws                 WebSocket: each message comes back; with messages=<number> it closes the connection after so many, with
                    code=<code> (1000)
/                   this page

Any of them takes a query, which wins over the path:
  ?bytes=<size>&delay=<duration>&status=<code>&fault=<fault>&chunked=1&close=1
  encoding=gzip, for requests that accept it: a body that is always the same, coded
  and x=<anything>, which is ignored (for targets that have to differ)

Durations: 10ms; 5ms..15ms, anything between them; exp:10ms, exponential with this mean.

Faults: what goes wrong on purpose, several with commas between, each with a probability or not
  reset              the connection is reset: reset=before or reset=middle of the response, or one of them
  close              half of the body, then the end of the connection
  stall              the head, and nothing more until the peer gives up
  length             a wrong Content-Length: length=more or length=less than there is, or one of them
  status=<code>      another status
  drip=<bytes>/s     the response, byte by byte
  none               no fault, whatever this origin was told at its start
  such as fault=reset=1%,status=503:2%,drip=1kB/s:5%

/_weir/counters        the accounts of this origin, as JSON
/_weir/ready           204; with ?bytes=<size> 200 and so many bytes
/_weir/authorize       200 with a key that may pass, else 401
";

/// The body of what a request gets that asks for no upgrade.
pub(crate) const NO_UPGRADE: &str =
    "there are sockets here: expected is a request for an upgrade to WebSocket, version 13.\n";

/// The body of a refusal.
pub(crate) fn refusal(refusal: &Refusal) -> String {
    match refusal {
        Refusal::NotFound { .. } => format!("{refusal}. What there is:\n\n{INDEX_PAGE}"),
        Refusal::BadValue { .. } => format!("{refusal}.\n"),
    }
}

/// The body of a 413.
pub(crate) fn too_large() -> String {
    format!("this origin echoes at most {MAX_PAYLOAD} bytes, and {MAX_HELD} at a time in each of its threads.\n")
}

/// The body of the 400 for what is not HTTP.
pub(crate) fn malformed(why: &dyn std::fmt::Display) -> String {
    format!("this is not a request that can be answered: {why}.\n")
}
