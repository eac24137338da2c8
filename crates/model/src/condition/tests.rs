use proptest::prelude::*;

use super::*;
use crate::load::{Counts, ErrorKind};

fn result() -> LoadResult {
    let times = |p99_us: f64| Quantiles {
        count: 1000,
        p50_us: p99_us / 10.0,
        p99_us,
        max_us: p99_us * 2.0,
        ..Quantiles::default()
    };
    LoadResult {
        window_s: 2.0,
        rate: 4995.0,
        window: Counts {
            due: 10_000,
            sent: 9_995,
            unsent: 5,
            errors: [(ErrorKind::Timeout, 3), (ErrorKind::BadStatus, 2)].into(),
            ..Counts::default()
        },
        latency: times(6_200.0),
        service: times(5_000.0),
        lag: times(12.0),
        ..LoadResult::default()
    }
}

fn read(text: &str) -> Condition {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn every_metric_is_read_and_written_alike() {
    let all = "p99<5ms p99.9>1s p99.99>=1500us mean<=2ms stdev<1ms max>10s min<1ms lag.p99<50us service.p50<1ms \
        first-byte.p99.9<5ms connect.max<100ms handshake.mean<3ms rate<5k/s rate>=0.5/s errors>10 errors<0.1% \
        unsent>0 unsent<=100%";
    for text in all.split(' ') {
        assert_eq!(read(text).to_string(), text);
        let json = serde_json::to_string(&read(text)).unwrap();
        assert_eq!(serde_json::from_str::<Condition>(&json).unwrap(), read(text));
    }
    for (text, same) in [
        (" p99 < 5 ms ", "p99<5ms"),
        ("latency.p99≤5ms", "p99<=5ms"),
        ("rate<5000", "rate<5k/s"),
        ("errors < 1 %", "errors<1%"),
    ] {
        assert_eq!(read(text), read(same));
    }
}

#[test]
fn lists_have_commas() {
    let list = Condition::list("p99<5ms, errors<0.1%").unwrap();
    assert_eq!(list, [read("p99<5ms"), read("errors<0.1%")]);
    let trailing = Condition::list("p99<5ms,").unwrap_err();
    assert_eq!(trailing.found, "nothing where a condition should be");
    assert!(Condition::list("").is_err());
}

#[test]
fn errors_say_what_was_found_and_what_would_be_right() {
    for (text, found, wanted) in [
        ("", "nothing where a condition should be", "such as p99<5ms"),
        ("p99", "\"p99\" compares nothing", "one of < <= > >="),
        ("p99=5ms", "\"p99=5ms\" has no comparison that is known", "one of < <= > >="),
        ("<5ms", "does not say what is compared", "p99<5ms"),
        ("p99<", "does not say with what p99 is compared", "p99<5ms"),
        ("p98<5ms", "\"p98\" is no percentile that is recorded", "p50, p75, p90, p95, p99, p99.9, p99.99"),
        ("p999<5ms", "\"p999\" is no percentile that is recorded", "p99.9"),
        ("lag.p98<5ms", "\"p98\" is no percentile", "p99"),
        ("lag<5ms", "\"lag\" is many times", "lag.p99"),
        ("lag p99<5ms", "\"lag p99\" is no metric; did you mean \"lag.p99\"?", "lag.p99"),
        ("error<1%", "\"error\" is no metric; did you mean \"errors\"?", "rate, errors, unsent"),
        ("servce.p99<1s", "\"servce.p99\" is no metric; did you mean \"service.p99\"?", "service.p99"),
        ("median<1s", "did you mean \"p50\"?", ""),
        ("lag.avg<1s", "did you mean \"mean\"?", ""),
        ("p99<5", "in \"p99<5\": \"5\" has no unit", "\"10ms\""),
        ("p99<5%", "unknown unit \"%\"", "\"10ms\""),
        ("rate<5ms", "\"5ms\" is not a rate", "20k/s"),
        ("rate<=>5", "\">5\" is not a rate", "20k/s"),
        ("errors<0.1", "\"0.1\" is no number of requests", "0.1%"),
        ("errors<5ms", "\"5ms\" is no number of requests", "0.1%"),
        ("errors<101%", "\"101%\" is no share", "0.1%"),
        ("errors<-1%", "\"-1%\" is no share", "0.1%"),
    ] {
        let error = text.parse::<Condition>().unwrap_err();
        assert!(error.found.contains(found), "{text}: {}", error.found);
        assert!(error.wanted.contains(wanted), "{text}: {}", error.wanted);
    }
}

#[test]
fn values_are_those_of_the_record() {
    let result = result();
    for (text, value, holds) in [
        ("p99<5ms", 6_200.0, false),
        ("p99>5ms", 6_200.0, true),
        ("p99<=6200us", 6_200.0, true),
        ("p99<6200us", 6_200.0, false),
        ("p50<1ms", 620.0, true),
        ("service.p99<=5ms", 5_000.0, true),
        ("lag.max>20us", 24.0, true),
        ("rate>=5k/s", 4995.0, false),
        ("errors>4", 5.0, true),
        ("errors<0.1%", 0.05, true),
        ("unsent>0", 5.0, true),
        ("unsent>0.1%", 0.05, false),
    ] {
        let condition = read(text);
        assert_eq!(condition.value_of(&result), Some(value), "{text}");
        assert_eq!(condition.holds(&result), holds, "{text}");
    }
}

#[test]
fn what_was_not_measured_holds_nothing() {
    let nothing = LoadResult::default();
    for text in ["p99<5ms", "p99>5ms", "connect.p99<1s", "errors<0.1%", "errors>0.1%", "rate<1"] {
        assert_eq!(read(text).value_of(&nothing), None, "{text}");
        assert!(!read(text).holds(&nothing), "{text}");
    }
    assert_eq!(read("p99<5ms").finding(&nothing), "p99 was not measured");
    assert!(!read("errors>0").holds(&nothing));
}

#[test]
fn findings_are_for_people() {
    let result = result();
    for (text, finding) in [
        ("p99<5ms", "p99 is 6.2 ms"),
        ("lag.p99<5ms", "lag.p99 is 12 µs"),
        ("rate>5000", "rate is 4995/s"),
        ("rate>10000", "rate is 5k/s"),
        ("p99<6201us", "p99 is 6200us"),
        ("errors>0", "errors are 5"),
        ("errors>0%", "errors are 0.05 %"),
    ] {
        assert_eq!(read(text).finding(&result), finding);
    }
    assert_eq!(read("errors>1%").metric.human(12.345678), "12.346 %");
    assert_eq!(read("errors>1%").metric.human(0.000_123_4), "0.00012 %");
    assert_eq!(read("errors>1%").metric.human(0.0), "0 %");
}

proptest! {
    #[test]
    fn no_text_panics(text: String) {
        let _ = Condition::list(&text);
    }

    #[test]
    fn no_text_that_looks_like_one_panics(text in "[a-z0-9.]{0,8}[<>=≤ ]{0,3}[0-9.]{0,4}[%mskM/]{0,3}") {
        let _ = Condition::list(&text);
    }

    #[test]
    fn what_is_written_reads_back(micros in 1u64..100_000_000_000, percent in 0.0f64..=100.0, rate in 1e-3f64..1e9) {
        let metrics = [
            (Metric::P999, Timing::Lag, false, micros as f64),
            (Metric::Errors, Timing::Latency, true, percent),
            (Metric::Rate, Timing::Latency, false, rate),
            (Metric::Unsent, Timing::Latency, false, (micros % 4_000_000_000) as f64),
        ];
        for (metric, of, share, bound) in metrics {
            let metric = ConditionMetric { metric, of, share };
            let condition = Condition { metric, is: Comparison::AtLeast, bound };
            prop_assert_eq!(condition.to_string().parse(), Ok(condition));
        }
    }
}
