//! Each transition of a load, with made-up messages and times.

use super::*;
use crate::clock::SECOND;
use crate::counts::RequestCounts;
use crate::headers::HeaderWatch;
use crate::plan::tests::spec;
use crate::protocol::{Http1, Watches};
use crate::recorder::{Kinds, histo};

const START: u64 = 10 * SECOND;

/// A load of one worker with 1 s of warm-up and a window of 1 s, and where its messages come from.
struct Fixture {
    controller: Controller,
    messages: Sender<Message>,
    stop: StopFlag,
    said: Vec<String>,
}

impl Fixture {
    fn new(gated: bool) -> Fixture {
        Fixture::of(LoadSpec { warmup_s: 1.0, duration_s: 1.0, ..spec() }, gated)
    }

    fn of(spec: LoadSpec, gated: bool) -> Fixture {
        let (outputs, resources) = (Outputs::default(), Resources::unlimited());
        let options = LoadOptions {
            spec: &spec,
            outputs: &outputs,
            resources: &resources,
            gated,
            nonce: 1,
            preloaded: None,
            now: START,
        };
        let (controller, mut workers) = Controller::new::<Http1>(options).unwrap();
        let messages = workers.remove(0).messages;
        Fixture { controller, messages, stop: StopFlag::new(), said: Vec::new() }
    }

    fn connected(self) -> Fixture {
        self.messages.send(Message::Connected(Ready { open: 1, attempts: 0, failure: None })).unwrap();
        self
    }

    /// One turn. Returns when the next has to be, nanoseconds from then on.
    fn turn(&mut self, now: u64) -> Result<Option<u64>, LoadError> {
        let said = &mut self.said;
        let at = At { mono_ns: now, unix_ns: now };
        let next = self.controller.turn(at, &self.stop, &mut |news| {
            let text = format!("{news:?}");
            said.push(text.split([' ', '(', '{']).next().unwrap_or_default().to_owned());
        })?;
        Ok(match next {
            Next::Poll(until) => until.map(|until| until - now),
            Next::Over => None,
        })
    }

    fn stage(&self) -> &'static str {
        match self.controller.stage {
            Stage::Connecting(_) => "connecting",
            Stage::Ready => "ready",
            Stage::WarmingUp(_) => "warming up",
            Stage::Window(_) => "window",
            Stage::Draining(_) => "draining",
            Stage::Done(_) => "done",
        }
    }

    fn done(&self) {
        let watches = Watches { headers: HeaderWatch::new(1), names: None, codings: None };
        let result = WorkerResult {
            thread: 0,
            before: RequestCounts::new(1),
            window: RequestCounts::new(1),
            by_status: None,
            connect: histo(),
            used: 0,
            min_streams: 1,
            tls: None,
            watches,
            cpu_us: (0, 0),
            busy_poll_us: 0,
            real_time: false,
            busy: 0.0,
        };
        self.messages.send(Message::Done(Box::new(result))).unwrap();
    }
}

#[test]
fn a_load_begins_when_all_connections_are_up() {
    let mut load = Fixture::new(false);
    assert_eq!((load.turn(START).unwrap(), load.stage()), (Some(POLL_INTERVAL), "connecting"));
    let mut load = load.connected();
    assert_eq!((load.turn(START).unwrap(), load.stage()), (Some(POLL_INTERVAL), "warming up"));
    assert_eq!(load.controller.shared.start(), Some(START + LEAD_TIME));
    assert_eq!(load.controller.shared.end(), START + LEAD_TIME + 2 * SECOND);
}

#[test]
fn a_load_without_a_connection_says_why() {
    let mut load = Fixture::new(false);
    let failure = Some((ErrorKind::ConnectRefused, "refused".to_owned()));
    load.messages.send(Message::Connected(Ready { open: 0, attempts: 3, failure })).unwrap();
    let error = load.turn(START + 2 * SECOND).unwrap_err();
    assert!(matches!(error, LoadError::NoConnection { attempts: 3, seconds: 2.0, .. }), "{error:?}");
}

#[test]
fn a_gated_load_waits_for_its_start_and_refuses_one_that_comes_too_late() {
    let mut load = Fixture::new(true).connected();
    load.turn(START).unwrap();
    assert_eq!((load.stage(), load.said.last().map(String::as_str)), ("ready", Some("Ready")));
    let late = load.controller.start_at(At { mono_ns: START + 1, unix_ns: 0 }, START).unwrap_err();
    assert!(matches!(late, LoadError::Late { by_ns, .. } if by_ns == STARTS_AHEAD - 1), "{late:?}");
    load.controller.start_at(At { mono_ns: START + SECOND, unix_ns: 5 * SECOND }, START).unwrap();
    assert_eq!((load.stage(), load.controller.shared.start()), ("warming up", Some(START + SECOND)));
    assert_eq!(load.controller.span().map(|span| span.unix_ns), Some(6 * SECOND));
}

#[test]
fn marks_are_passed_on_time_and_the_last_report_ends_the_load() {
    let mut load = Fixture::new(false).connected();
    load.turn(START).unwrap();
    let window = START + LEAD_TIME + SECOND;
    assert_eq!(load.turn(window - 5).unwrap(), Some(5));
    assert_eq!((load.turn(window).unwrap(), load.stage()), (Some(POLL_INTERVAL), "window"));
    assert_eq!(load.turn(window + SECOND - 7).unwrap(), Some(7));
    assert_eq!((load.turn(window + SECOND).unwrap(), load.stage()), (Some(POLL_INTERVAL), "draining"));
    load.done();
    assert_eq!((load.turn(window + SECOND + 1).unwrap(), load.stage()), (None, "done"));
    let marks = ["WindowStart", "WindowEnd", "Draining"];
    let said: Vec<&str> = load.said.iter().map(String::as_str).filter(|word| marks.contains(word)).collect();
    assert_eq!(said, marks);
    let result = load.controller.finish(&mut |_| ()).unwrap();
    assert_eq!((result.window_s, result.cut_short), (1.0, false));
}

#[test]
fn a_stop_ends_the_window_early_and_a_second_one_the_drain() {
    let mut load = Fixture::new(false).connected();
    load.turn(START).unwrap();
    let window = START + LEAD_TIME + SECOND;
    load.turn(window).unwrap();
    load.stop.set();
    assert_eq!(load.turn(window + SECOND / 4).unwrap(), Some(LEAD_TIME));
    let end = window + SECOND / 4 + LEAD_TIME;
    assert_eq!(load.controller.shared.end(), end);
    load.stop.set();
    load.turn(end).unwrap();
    assert!(load.controller.shared.is_abandoned());
    load.done();
    load.turn(end + 1).unwrap();
    let result = load.controller.finish(&mut |_| ()).unwrap();
    assert_eq!((result.window_s, result.cut_short), (0.3, true));
}

#[test]
fn a_stop_before_the_start_measures_nothing() {
    for gated in [false, true] {
        let mut load = Fixture::new(gated);
        if gated {
            load = load.connected();
            load.turn(START).unwrap();
        }
        load.stop.set();
        assert!(matches!(load.turn(START), Err(LoadError::Stopped)), "{}", load.stage());
    }
}

#[test]
fn a_stop_in_the_warm_up_leaves_no_window() {
    let mut load = Fixture::new(false).connected();
    load.turn(START).unwrap();
    load.stop.set();
    load.turn(START + LEAD_TIME).unwrap();
    load.turn(START + 2 * LEAD_TIME).unwrap();
    assert_eq!(load.stage(), "draining");
    load.done();
    load.turn(START + 2 * LEAD_TIME).unwrap();
    assert_eq!(load.controller.finish(&mut |_| ()).unwrap().window_s, 0.0);
}

#[test]
fn a_worker_that_fails_ends_the_load_at_any_time() {
    for connected in [false, true] {
        let mut load = Fixture::new(false);
        if connected {
            load = load.connected();
            load.turn(START).unwrap();
        }
        load.messages.send(Message::Failed(LoadError::Order("made up".into()))).unwrap();
        assert!(matches!(load.turn(START), Err(LoadError::Order(_))), "{}", load.stage());
    }
}

#[test]
fn a_counted_load_ends_with_its_last_response() {
    let spec = LoadSpec { kind: LoadKind::Count { requests: 3 }, warmup_s: 0.0, ..spec() };
    let mut load = Fixture::of(spec, false).connected();
    load.turn(START).unwrap();
    let window = START + LEAD_TIME;
    load.turn(window).unwrap();
    load.controller.shared.finish(window + 123);
    load.turn(window + SECOND).unwrap();
    assert_eq!((load.stage(), load.controller.span().map(|span| span.end)), ("draining", Some(window + 123)));
}

#[test]
fn an_interval_becomes_a_row_and_its_memory_goes_back() {
    let spec = LoadSpec { warmup_s: 1.0, duration_s: 1.0, ..spec() };
    let (outputs, resources) = (Outputs::default(), Resources::unlimited());
    let options = LoadOptions {
        spec: &spec,
        outputs: &outputs,
        resources: &resources,
        gated: false,
        nonce: 1,
        preloaded: None,
        now: 0,
    };
    let (controller, mut workers) = Controller::new::<Http1>(options).unwrap();
    let WorkerParts { messages, spares, .. } = workers.remove(0);
    let mut load = Fixture { controller, messages, stop: StopFlag::new(), said: Vec::new() }.connected();
    load.turn(START).unwrap();
    assert_eq!(spares.try_iter().count(), 2);
    let mut interval = Interval::new(Kinds::default());
    (interval.phase, interval.start, interval.end) = (Phase::Warmup, START, START + SECOND);
    load.messages.send(Message::Interval(0, interval)).unwrap();
    load.turn(START + SECOND).unwrap();
    assert!(load.said.contains(&"Warmup".to_owned()), "{:?}", load.said);
    assert_eq!(spares.try_iter().count(), 1);
}
