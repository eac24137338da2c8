//! Remarks on a load whose figures are correct and may mean something else than its user thinks: every response was a redirect, an error
//! that was expected, or empty. Called by `verbs::load` and `verbs::load::summary`.

use std::ops::Range;

use weir_model::load::QuicResult;
use weir_model::text::{counted, list};

use super::format::Outcome;

const SUCCESSES: Range<u16> = 200..300;
const REDIRECTS: Range<u16> = 300..400;

/// Statuses whose responses have no body.
const BODILESS: [u16; 3] = [204, 205, 304];

/// So many do not come one by one by chance.
const MANY_DATAGRAMS: u64 = 1_000;

/// The remarks, each in lines of at most 68 columns but for what the target said.
pub fn remarks(outcome: Outcome<'_>) -> Vec<String> {
    let of_quic = outcome.result.quic.iter().flat_map(of_quic);
    of_responses(outcome).into_iter().chain(of_quic).collect()
}

/// Remarks about datagrams that cost the client more than they had to.
fn of_quic(quic: &QuicResult) -> Vec<String> {
    let mut remarks = Vec::new();
    if quic.datagrams_in > MANY_DATAGRAMS && quic.trains_in == quic.datagrams_in {
        remarks.push("no datagrams came together (GRO): the target sends them one by one,".to_owned());
        remarks.push("or something on the way parts them".to_owned());
    }
    if quic.refused > 0 {
        remarks.push(format!("{} did not fit this host's buffers;", counted(quic.refused, "datagram")));
        remarks.push("`sysctl net.core.wmem_max` shows their limit".to_owned());
    }
    remarks
}

fn of_responses(outcome: Outcome<'_>) -> Vec<String> {
    let (spec, result) = (outcome.spec, outcome.result);
    let statuses: Vec<u16> = result.window.statuses.keys().copied().collect();
    let all = |range: Range<u16>| statuses.iter().all(|status| range.contains(status));
    let is_of_http = spec.keyvalue.is_none() && !spec.stream.is_some_and(|stream| stream.kind.is_websocket());
    // If no response was successful, the errors say it.
    if !is_of_http || result.window.successful == 0 || statuses.is_empty() {
        return Vec::new();
    }
    let listed = list(&statuses.iter().map(u16::to_string).collect::<Vec<_>>());
    if all(REDIRECTS) {
        let location = result.headers.as_ref().and_then(|headers| headers.location.as_ref());
        let first = format!("every response was a redirect ({listed}), which weir does not follow");
        return std::iter::once(first).chain(location.map(|location| format!("Location: {location}"))).collect();
    }
    if !statuses.iter().any(|status| SUCCESSES.contains(status)) {
        return vec![format!("no response was a success (2xx): every status was {listed}")];
    }
    let bodiless = statuses.iter().all(|status| BODILESS.contains(status))
        || spec.requests.iter().all(|ask| ask.request.method == "HEAD" || ask.expect.size == Some(0));
    if result.window.body_bytes == 0 && !bodiless {
        return vec!["no response had a body".to_owned()];
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use weir_model::load::{StreamKind, StreamSpec};

    use super::*;
    use crate::load::sample;

    #[test]
    fn datagrams_one_by_one_and_those_without_room_are_remarked_on() {
        let said = |datagrams_in, trains_in, refused| {
            let mut sample = sample::plain();
            sample.result.quic = Some(QuicResult { datagrams_in, trains_in, refused, ..QuicResult::default() });
            remarks(sample.outcome()).join(" ")
        };
        assert_eq!(said(5_000, 4_999, 0), "");
        assert_eq!(said(1_000, 1_000, 0), "", "too few to say");
        assert!(said(5_000, 5_000, 0).starts_with("no datagrams came together (GRO)"));
        assert!(said(5_000, 2_000, 7).starts_with("7 datagrams did not fit this host's buffers"));
    }

    #[test]
    fn messages_of_websocket_are_fine_with_their_status() {
        let mut sample = sample::plain();
        sample.result.window.statuses = [(101, 1_000)].into();
        assert!(!remarks(sample.outcome()).is_empty(), "of HTTP it is remarked on");
        sample.spec.stream = Some(StreamSpec { kind: StreamKind::Broadcast, one_clock: true });
        assert_eq!(remarks(sample.outcome()), [""; 0]);
    }

    #[test]
    fn responses_that_are_never_what_was_asked_for_are_remarked_on() {
        let said = |statuses: &[u16], location: Option<&str>, body_bytes: u64, method: &str| {
            let mut sample = sample::plain();
            sample.result.window.statuses = statuses.iter().map(|status| (*status, 1_000)).collect();
            sample.result.window.body_bytes = body_bytes;
            sample.result.headers =
                Some(weir_model::load::HeaderSamples { location: location.map(str::to_owned), ..Default::default() });
            sample.spec.requests[0].request.method = method.to_owned();
            remarks(sample.outcome()).join("; ")
        };
        let redirect = "every response was a redirect (301), which weir does not follow";
        assert_eq!(said(&[301], None, 9, "GET"), redirect);
        let with_location = format!("{redirect}; Location: https://shop.example/");
        assert_eq!(said(&[301], Some("https://shop.example/"), 0, "GET"), with_location);
        assert!(said(&[302, 307], None, 0, "GET").contains("(302 and 307)"));
        assert_eq!(said(&[301, 404], None, 9, "GET"), "no response was a success (2xx): every status was 301 and 404");
        assert_eq!(said(&[503], None, 9, "GET"), "no response was a success (2xx): every status was 503");
        assert_eq!(said(&[200], None, 0, "GET"), "no response had a body");
        for (statuses, body_bytes, method) in [
            (&[200][..], 9, "GET"),
            (&[200, 301, 404], 9, "GET"),
            (&[204], 0, "GET"),
            (&[200], 0, "HEAD"),
            (&[], 0, "GET"),
        ] {
            assert_eq!(said(statuses, None, body_bytes, method), "", "{statuses:?} {method}");
        }
        let mut failing = sample::plain();
        (failing.result.window.successful, failing.result.window.statuses) = (0, [(404, 20_000)].into());
        assert_eq!(remarks(failing.outcome()), [""; 0], "the errors say it");
        assert_eq!(remarks(sample::keyvalue().outcome()), [""; 0]);
    }
}
