//! `weir load` as a user runs it, where the kernel has a part in it: large bodies, source addresses, and the status that conditions give.
//! Every other kind of load is in `tests/world/tests/it/load.rs`.

use crate::common::{OriginUnderTest, all_right, load_result, number, run, scratch};

/// Nobody reads these bodies, so they may be dropped in the kernel; with a hash they are read. Both are counted to the last byte.
#[test]
fn large_bodies_are_counted_whether_they_are_read_or_not() {
    let origin = OriginUnderTest::start(&[]);
    let file = scratch().path().with_extension("body");
    for driver in ["io_uring", "epoll"] {
        for size in [40_000, 165_854, 3_000_000] {
            let url = origin.url(&format!("/bytes/{size}"));
            let (text, expected) = (size.to_string(), f64::from(size) * 60.0);
            let usual = [url.as_str(), "-n", "60", "-c", "4", "--driver", driver, "--expect-size", &text];
            for more in [&[][..], &["--pipeline", "3"], &["--requests-per-connection", "4"], &["--source", "127.0.0.2"]]
            {
                let result = all_right(&[&usual[..], more].concat());
                assert_eq!(number(&result, "/total/body_bytes"), expected, "{driver} {size} {more:?}");
                assert!(number(&result, "/total/bytes_in") > expected);
            }
            let got = std::process::Command::new("curl").args(["--silent", "--output"]).arg(&file).arg(&url).status();
            assert!(got.expect("curl runs").success());
            all_right(&[&usual[..], &["--expect-hash-of", file.to_str().expect("UTF-8")]].concat());
            let wrong = load_result(1, &[&usual[..7], &["--expect-size", "39999"]].concat());
            assert_eq!(wrong["window"]["errors"]["wrong_body"], 60, "{driver} {size}");
        }
    }
    std::fs::remove_file(file).expect("removed");
}

#[test]
fn loads_come_from_the_addresses_given() {
    let origin = OriginUnderTest::start(&[]);
    all_right(&[&origin.url("/bytes/1"), "-n", "20", "-c", "4", "--source", "127.0.0.2,127.0.0.3"]);
    // An address that is nobody's here cannot be connected from.
    let ended =
        run(&["load", "-q", &origin.url("/"), "-n", "1", "-c", "1", "--source", "192.0.2.1", "--timeout", "1s"]);
    assert!(matches!(ended.code(), Some(2 | 3)), "{ended:?}");
}

#[test]
fn conditions_decide_how_it_ends() {
    let origin = OriginUnderTest::start(&[]);
    let (fine, wrong) = (origin.url("/bytes/1"), origin.url("/status/503"));
    let ends = |url: &str, conditions: &[&str]| {
        let flags: Vec<&str> = conditions.iter().flat_map(|c| ["--fail-if", c]).collect();
        run(&[&["load", "-q", url, "-n", "50", "-c", "2"], flags.as_slice()].concat())
    };
    ends(&fine, &["p99>1m", "errors>0.1%"]).expect(0);
    let ended = ends(&fine, &["p99>1m", "p50>0us"]);
    let said = ended.expect(1);
    assert!(said.contains("p50 is") && said.contains("--fail-if 'p50>0s'") && !said.contains("p99"), "{said}");
    // Without a condition wrong responses fail; with one only what it says.
    ends(&wrong, &[]).expect(1);
    ends(&wrong, &["p99>1m"]).expect(0);
    assert!(ends(&wrong, &["errors>10%"]).expect(1).contains("errors are 100 %"));
    assert!(ends(&fine, &["handshake.p99>1s"]).expect(1).contains("cannot be judged"));
}
