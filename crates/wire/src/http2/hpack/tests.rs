//! The vectors of RFC 7541 appendix C, and further properties of reading and writing blocks.

use super::super::class::Class;
use super::super::fields::Fields;
use super::super::{Prepared, Request};
use super::*;

/// Headers as they came.
#[derive(Default)]
struct Decoded(Vec<(String, String)>);

impl Reader for Decoded {
    fn field(&mut self, _: Class, name: &[u8], value: &[u8], _: usize) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.0.push((text(name), text(value)));
    }
}

/// Reads a block. Returns its headers and whether the table stayed unchanged.
fn read(table: &mut Table, block: &[u8]) -> Option<(Vec<(String, String)>, bool)> {
    // Whether fields are kept must make no difference.
    let mut decoded = Decoded::default();
    let mut fields = Fields::new(block.len().is_multiple_of(2), 1 << 20);
    let pure = decode(table, block, &mut fields, &mut decoded).ok()?.pure;
    Some((decoded.0, pure))
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// A block, its headers, and the table's size behind it.
type Vector<'a> = (&'a str, &'a [(&'a str, &'a str)], u32);

/// Reads blocks one after the other; of each the headers, and the table's size behind it.
#[track_caller]
fn check(limit: u32, blocks: &[Vector<'_>]) {
    let mut table = Table::new(limit);
    for (block, headers, size) in blocks {
        let (got, _) = read(&mut table, &hex(block)).expect("a block of the RFC");
        let want: Vec<_> = headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        assert_eq!(got, want);
        assert_eq!(table.size(), *size);
    }
}

#[test]
fn c2_one_header_each() {
    check(
        4096,
        &[("400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572", &[("custom-key", "custom-header")], 55)],
    );
    check(4096, &[("040c 2f73 616d 706c 652f 7061 7468", &[(":path", "/sample/path")], 0)]);
    check(4096, &[("1008 7061 7373 776f 7264 0673 6563 7265 74", &[("password", "secret")], 0)]);
    check(4096, &[("82", &[(":method", "GET")], 0)]);
}

type Header = (&'static str, &'static str);

const FIRST: &[Header] = &[(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "www.example.com")];
const THIRD: &[Header] = &[
    (":method", "GET"),
    (":scheme", "https"),
    (":path", "/index.html"),
    (":authority", "www.example.com"),
    ("custom-key", "custom-value"),
];

fn requests(blocks: [&str; 3]) {
    let second = [FIRST, &[("cache-control", "no-cache")]].concat();
    let headers = [(FIRST, 57), (&second, 110), (THIRD, 164)];
    check(4096, &[0, 1, 2].map(|at| (blocks[at], headers[at].0, headers[at].1)));
}

#[test]
fn c3_requests_without_huffman() {
    requests([
        "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "8286 84be 5808 6e6f 2d63 6163 6865",
        "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
    ]);
}

#[test]
fn c4_requests_with_huffman() {
    requests([
        "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
        "8286 84be 5886 a8eb 1064 9cbf",
        "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
    ]);
}

fn responses(blocks: [&str; 3]) {
    let response = |status, date, more: &[Header]| {
        let head = [(":status", status), ("cache-control", "private"), ("date", date)];
        [&head, &[("location", "https://www.example.com")][..], more].concat()
    };
    let cookie = ("set-cookie", "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1");
    let all = [
        response("302", "Mon, 21 Oct 2013 20:13:21 GMT", &[]),
        response("307", "Mon, 21 Oct 2013 20:13:21 GMT", &[]),
        response("200", "Mon, 21 Oct 2013 20:13:22 GMT", &[("content-encoding", "gzip"), cookie]),
    ];
    check(256, &[(0, 222), (1, 222), (2, 215)].map(|(at, size)| (blocks[at], &all[at][..], size)));
}

#[test]
fn c5_answers_without_huffman_in_a_small_table() {
    responses([
        "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32
         3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "4803 3330 37c1 c0bf",
        "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970
         7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61
         6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31",
    ]);
}

#[test]
fn c6_answers_with_huffman_in_a_small_table() {
    responses([
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad
         1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
        "4883 640e ffc1 c0bf",
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2
         e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
    ]);
}

#[test]
fn what_is_no_block_is_refused() {
    for (bad, why) in [
        ("80", "index 0"),
        ("be", "an index beyond the table"),
        ("ffff ffff ff0f", "an index without end"),
        ("7f80 8080 8080 8000", "an integer of too many bytes"),
        ("7f", "an integer that is cut"),
        ("4001", "a name that is cut"),
        ("4001 6101", "a value that is cut"),
        ("4001 61", "no value"),
        ("82 3f00", "a size update behind a header"),
        ("3fe2 1f", "a size update beyond what SETTINGS allow"),
        ("4082 ffff 00", "a name padded with too much"),
        ("0081 fe00", "a name padded with a zero"),
    ] {
        assert_eq!(read(&mut Table::new(4096), &hex(bad)), None, "{why}");
    }
}

#[test]
fn size_updates_evict() {
    let mut table = Table::new(4096);
    read(&mut table, &hex("4001 6101 62")).unwrap();
    assert_eq!(table.size(), 34);
    // To 0, then to 4096 again: two updates in a block (section 4.2).
    let (headers, pure) = read(&mut table, &hex("20 3fe1 1f 82")).unwrap();
    assert_eq!((headers.len(), pure, table.size()), (1, false, 0));
    assert_eq!(read(&mut table, &hex("be")), None);
}

#[test]
fn an_entry_larger_than_the_table_empties_it() {
    let mut table = Table::new(64);
    read(&mut table, &hex("4001 6101 62")).unwrap();
    let mut large = hex("4001 61 20");
    large.extend([b'x'; 32]);
    assert_eq!(read(&mut table, &large).unwrap().0[0].1.len(), 32);
    assert_eq!(table.size(), 0);
}

#[test]
fn a_name_may_come_from_the_entry_that_is_evicted() {
    let mut table = Table::new(40);
    read(&mut table, &hex("4003 616263 01 62")).unwrap();
    assert_eq!(read(&mut table, &hex("7e 02 7879")).unwrap().0, [("abc".to_owned(), "xy".to_owned())]);
    assert_eq!(read(&mut table, &hex("be")).unwrap().0, [("abc".to_owned(), "xy".to_owned())]);
}

#[test]
fn the_table_costs_nothing_before_use_and_little_more_than_its_size_after_long_use() {
    let mut table = Table::new(4096);
    assert_eq!(table.heap(), 0);
    for n in 0..10_000 {
        let value = "v".repeat(n % 97);
        table.insert(b"some-name", value.as_bytes(), Class::Plain);
        assert_eq!(table.get(62).unwrap().1, value.as_bytes());
    }
    assert!(table.heap() < 16 << 10, "{}", table.heap());
}

fn request(path: &str, headers: &[(&str, &str)]) -> Prepared {
    Prepared::request(&Request { method: "GET", scheme: "http", authority: "a", path, headers }).unwrap()
}

/// Writes a head and reads it again.
#[track_caller]
fn round(encoder: &mut Encoder, table: &mut Table, head: &Prepared, want: &[(&str, &str)]) -> usize {
    let mut block = Vec::new();
    encoder.head(head, &mut block, |_| ());
    let (got, _) = read(table, &block).expect("a block that was just written");
    let want: Vec<_> = want.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    assert_eq!(got[3..], want[..]);
    block.len()
}

#[test]
fn a_changed_limit_is_announced_and_blocks_stay_valid() {
    let one = request("/", &[("x-one", "1"), ("x-both", "b")]);
    let two = request("/2", &[("x-both", "b"), ("x-two", "2")]);
    let want_one = [(":path", "/"), ("x-one", "1"), ("x-both", "b")];
    let want_two = [(":path", "/2"), ("x-both", "b"), ("x-two", "2")];
    let (mut encoder, mut table) = (Encoder::new(), Table::new(4096));
    for limits in [&[][..], &[0], &[100], &[4096], &[50, 4096], &[70, 90, 80], &[u32::MAX], &[0, 0]] {
        for limit in limits {
            encoder.set_peer_limit(*limit);
        }
        for _ in 0..3 {
            round(&mut encoder, &mut table, &one, &want_one);
            round(&mut encoder, &mut table, &two, &want_two);
        }
        assert_eq!(encoder.size, table.size(), "both sides agree about the table");
    }
    assert_eq!(table.size(), 0);
}

#[test]
fn a_limit_is_announced_also_without_eviction() {
    let request = request("/", &[("x-one", "1")]);
    let want = [(":path", "/"), ("x-one", "1")];
    let (mut encoder, mut table) = (Encoder::new(), Table::new(4096));
    for _ in 0..3 {
        round(&mut encoder, &mut table, &request, &want);
    }
    let quiet = round(&mut encoder, &mut table, &request, &want);
    encoder.set_peer_limit(1000);
    // The update is three bytes.
    assert_eq!(round(&mut encoder, &mut table, &request, &want), quiet + 3);
    assert_eq!(round(&mut encoder, &mut table, &request, &want), quiet);
}

#[test]
fn headers_that_do_not_fit_are_sent_as_literals() {
    let long = "v".repeat(3000);
    let (mut encoder, mut table) = (Encoder::new(), Table::new(4096));
    for n in 0..4 {
        let name = format!("x-{n}");
        let head = request("/", &[(&name, &long)]);
        for _ in 0..3 {
            round(&mut encoder, &mut table, &head, &[(":path", "/"), (&name, &long)]);
        }
    }
    // The first one and the authority.
    assert_eq!(encoder.entries.len(), 2);
    let again = request("/", &[("x-0", &long)]);
    assert_eq!(round(&mut encoder, &mut table, &again, &[(":path", "/"), ("x-0", &long)]), 5);
}
