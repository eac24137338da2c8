//! What only the worker itself shows. All else is tested in a simulated world: `tests/it`.

use super::*;
use crate::http::HttpSession;

#[test]
fn a_connection_that_waits_is_small() {
    assert!(size_of::<Connection<HttpSession>>() <= 320, "{}", size_of::<Connection<HttpSession>>());
}

#[test]
fn only_what_the_peer_does_is_a_reset() {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, TimedOut};
    assert!([ConnectionReset, BrokenPipe, ConnectionAborted].into_iter().all(|kind| is_reset(&kind.into())));
    assert!(!is_reset(&TimedOut.into()));
}

#[test]
fn a_former_connection_of_a_slot_is_not_found() {
    let mut pages: Vec<Box<[Connection<HttpSession>]>> = vec![(0..PAGE).map(|_| Connection::new()).collect()];
    pages[0][3].conn = Some(Conn::new(3, 2));
    assert!(find(&mut pages, Conn::new(3, 2)).is_some() && find(&mut pages, Conn::new(3, 1)).is_none());
}
