//! The memory of intervals, which no simulated world has. `tests/it` shows the course of loads with its times.

use super::*;
use crate::clock::SECOND;
use crate::interval::Kinds;
use crate::plan::tests::spec;

const START: u64 = 10 * SECOND;

/// A load of one worker, where its messages come from, and where its spare intervals go.
struct Fixture {
    controller: Controller,
    messages: Sender<Message>,
    spares: Receiver<Box<Interval>>,
}

impl Fixture {
    fn new() -> Fixture {
        let spec = LoadSpec { warmup_s: 1.0, duration_s: 1.0, ..spec() };
        let (outputs, resources) = (Outputs::default(), Resources::unlimited());
        let options = LoadOptions {
            spec: &spec,
            outputs: &outputs,
            resources: &resources,
            gated: false,
            nonce: 1,
            preloaded: None,
            now: START,
        };
        let plan = Plan::new(&spec, &resources).unwrap();
        let (controller, mut workers) = Controller::new(plan, options).unwrap();
        let WorkerParts { messages, spares, .. } = workers.remove(0);
        Fixture { controller, messages, spares }
    }

    fn connected(mut self) -> Fixture {
        self.messages.send(Message::Connected(Ready { open: 1, attempts: 0, failure: None })).unwrap();
        self.turn(START).unwrap();
        self
    }

    /// One turn, and what it reports.
    fn turn(&mut self, now: u64) -> Result<Vec<Progress>, LoadError> {
        let (at, mut news) = (At { mono_ns: now, unix_ns: now }, Vec::new());
        self.controller.turn(at, &StopFlag::new(), &mut |one| news.push(one)).map(|_| news)
    }
}

#[test]
fn an_interval_becomes_a_row_and_its_memory_goes_back() {
    let mut load = Fixture::new().connected();
    assert_eq!(load.spares.try_iter().count(), 2);
    let mut interval = Interval::new(Kinds::default());
    (interval.phase, interval.start, interval.end) = (Phase::Warmup, START, START + SECOND);
    load.messages.send(Message::Interval(0, interval)).unwrap();
    let news = load.turn(START + SECOND).unwrap();
    assert!(news.iter().any(|one| matches!(one, Progress::Warmup { second: 0, .. })), "{news:?}");
    assert_eq!(load.spares.try_iter().count(), 1);
}
