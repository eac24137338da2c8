//! Loads on weir's own origin: the books of both sides must agree.

use weir_load::{Outputs, StopFlag, run};
use weir_model::books::Books;
use weir_model::load::{DriverChoice, LoadResult, LoadSpec, Shape, Target};
use weir_model::suite::{Arrivals, Expect, Request};
use weir_origin::{Options, Origin, payload_hash};

fn load(driver: DriverChoice, shape: Shape, close: bool) -> (LoadResult, Books) {
    let origin = Origin::start(Options { driver, ..Options::default() }).unwrap();
    let target = Target::tcp(origin.addr(), "origin.test");
    let request = Request { method: "GET".into(), path: "/bytes/11268".into(), headers: vec![], body: vec![] };
    let hash = Some(payload_hash(11_268));
    let expect = Expect { status: Some(200), size: Some(11_268), hash, headers: vec![] };
    let spec = LoadSpec {
        shape,
        connections: 16,
        threads: 2,
        cpus: vec![],
        warmup_s: 0.3,
        duration_s: 1.0,
        timeout_s: 10.0,
        seed: 1,
        driver,
        connection_close: close,
        ..LoadSpec::new(target, request, expect)
    };
    let result = run(&spec, &Outputs::default(), &StopFlag::new(), &mut |_| {}).unwrap();
    (result, origin.stop())
}

#[test]
fn what_the_client_sent_is_what_the_origin_received() {
    for driver in [DriverChoice::Epoll, DriverChoice::Uring] {
        let poisson = Shape::Open { rate: 2_000.0, arrivals: Arrivals::Poisson };
        for shape in &[Shape::Closed, Shape::Count { requests: 5_000 }, poisson] {
            for close in [false, true] {
                let (result, books) = load(driver, shape.clone(), close);
                let name = format!("{driver:?} {shape:?} close: {close}");
                let total = &result.total;
                assert_eq!(total.right, total.due, "{name}: {total:?}");
                assert_eq!(books.requests, total.sent, "{name}");
                assert_eq!(books.answered, total.right, "{name}");
                assert_eq!(books.connections_accepted, total.connections, "{name}");
                assert_eq!(books.bytes_in, total.bytes_out, "{name}");
                assert_eq!(books.bytes_out, total.bytes_in, "{name}");
                assert_eq!(books.body_bytes_out, total.body_bytes, "{name}");
                assert_eq!(books.max_in_flight_per_connection, 1, "{name}");
                assert_eq!(books.connections_reset, 0, "{name}");
                if close {
                    assert_eq!(books.connection_headers.get("close"), Some(&total.sent), "{name}");
                } else {
                    assert_eq!(total.connections, 16, "{name}");
                }
            }
        }
    }
}
