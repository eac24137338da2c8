//! The static table (RFC 7541 appendix A). `encode` and `decode` look fields up in it.

use super::super::StreamError;
use super::super::class::Class;

/// Entries of the static table; index 0 is none.
pub(super) const COUNT: usize = 61;

/// Name and value of the entries 1 to 61.
#[rustfmt::skip]
pub(super) static TABLE: [(&str, &str); COUNT] = [
    (":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"), (":path", "/index.html"),
    (":scheme", "http"), (":scheme", "https"), (":status", "200"), (":status", "204"), (":status", "206"),
    (":status", "304"), (":status", "400"), (":status", "404"), (":status", "500"), ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"), ("accept-language", ""), ("accept-ranges", ""), ("accept", ""),
    ("access-control-allow-origin", ""), ("age", ""), ("allow", ""), ("authorization", ""), ("cache-control", ""),
    ("content-disposition", ""), ("content-encoding", ""), ("content-language", ""), ("content-length", ""),
    ("content-location", ""), ("content-range", ""), ("content-type", ""), ("cookie", ""), ("date", ""), ("etag", ""),
    ("expect", ""), ("expires", ""), ("from", ""), ("host", ""), ("if-match", ""), ("if-modified-since", ""),
    ("if-none-match", ""), ("if-range", ""), ("if-unmodified-since", ""), ("last-modified", ""), ("link", ""),
    ("location", ""), ("max-forwards", ""), ("proxy-authenticate", ""), ("proxy-authorization", ""), ("range", ""),
    ("referer", ""), ("refresh", ""), ("retry-after", ""), ("server", ""), ("set-cookie", ""),
    ("strict-transport-security", ""), ("transfer-encoding", ""), ("user-agent", ""), ("vary", ""), ("via", ""),
    ("www-authenticate", ""),
];

/// The entry at an index from 1 to 61, with its class.
#[inline]
pub(super) fn get(index: usize) -> Option<(&'static [u8], &'static [u8], Class)> {
    let &(name, value) = TABLE.get(index.checked_sub(1)?)?;
    let class = match index {
        1 => Class::Authority,
        2 | 3 => Class::Method,
        4 | 5 => Class::Path,
        6 | 7 => Class::Scheme,
        8..=14 => Class::Status,
        28 => Class::ContentLength,
        35 => Class::Expect,
        38 => Class::Host,
        57 => Class::Bad(StreamError::ConnectionHeader),
        _ => Class::Plain,
    };
    Some((name.as_bytes(), value.as_bytes(), class))
}

/// Index of the entry with this name and value, or else of one with this name; 0: none.
pub(super) fn find(name: &str, value: &str) -> (u8, u8) {
    let whole = TABLE.iter().position(|entry| *entry == (name, value)).map_or(0, |at| at + 1);
    let named = TABLE.iter().position(|entry| entry.0 == name).map_or(0, |at| at + 1);
    // Both are at most 61.
    (whole as u8, named as u8)
}

#[cfg(test)]
mod tests {
    use super::super::super::class::classify;
    use super::*;

    #[test]
    fn classes_are_those_that_the_headers_would_get() {
        for index in 1..=COUNT {
            let (name, value, class) = get(index).unwrap();
            assert_eq!(class, classify(name, value), "{index}");
        }
        assert!(get(0).is_none() && get(COUNT + 1).is_none());
    }
}
