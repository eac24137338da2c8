//! A search on a target whose limit is known: weir's own origin that takes 10 ms for every answer, over four connections,
//! carries 400 requests a second and no more.

use weir_load::{Outputs, SearchProgress, StopFlag, find_max_to};
use weir_model::Condition;
use weir_model::load::{LoadSpec, ProbeKind, RandomDuration, SearchEnd, SearchLimit, SearchOptions, Target};
use weir_model::suite::{Expect, Request};
use weir_origin::{Options, Origin};

#[test]
fn the_limit_of_an_origin_that_takes_its_time_is_found() {
    let mut options = Options::default();
    options.responses.delay = Some(RandomDuration::Constant { s: 0.01 });
    let origin = Origin::start(options).unwrap();
    let request = Request { method: "GET".into(), path: "/".into(), headers: vec![], body: vec![] };
    let mut spec = LoadSpec::new(Target::tcp(origin.addr(), "origin.test"), request, Expect::default());
    spec.connections = 4;
    spec.warmup_s = 0.1;
    spec.duration_s = 0.5;
    spec.timeout_s = 2.0;

    // Above the limit requests wait for a connection, longer from one to the next.
    let conditions = Condition::list("p90<50ms, errors<1%").unwrap();
    let options = SearchOptions { tolerance: 0.1, budget_s: 60.0, ..SearchOptions::default() };
    let mut ends = 0;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| Some(folder.path().join(name));
    let outputs = Outputs { hlog: path("latency.hlog"), series: path("load.csv") };
    let found = find_max_to(&spec, &conditions, &options, &outputs, None, &StopFlag::new(), &mut |news| {
        ends += usize::from(matches!(news, SearchProgress::Ends(_)));
    })
    .unwrap();
    origin.stop();

    assert_eq!(found.probes.len(), ends);
    assert_eq!(found.probes[0].kind, ProbeKind::Guess);
    // On a busy machine answers take longer, and a search may find less; never more. Half a second over the limit by a
    // tenth makes the last wait for 45 ms.
    let rate = found.rate.unwrap_or_else(|| panic!("{found:?}"));
    assert!((100.0..=460.0).contains(&rate), "{found:?}");
    assert!(matches!(found.end, SearchEnd::Found | SearchEnd::Unsteady), "{found:?}");
    assert_eq!(found.limit, Some(SearchLimit::Target), "{found:?}");
    assert!(found.met_up_to <= found.rate && found.rate < found.failed_from, "{found:?}");

    // The files are those of the last trial of full length: half a second is one row.
    let rows = std::fs::read_to_string(folder.path().join("load.csv")).unwrap();
    let confirmation = found.confirmation.unwrap();
    assert_eq!(rows.lines().count(), 1 + confirmation.series.len(), "{rows}");
    let due = rows.lines().nth(1).unwrap().split(',').nth(2).unwrap();
    assert_eq!(due, confirmation.series[0].due.to_string(), "{rows}");
    assert!(folder.path().join("latency.hlog").metadata().unwrap().len() > 0);
}
