//! A thread that watches and has no CPU when it needs it.

use super::*;
use crate::clock::now;

/// The thread had no CPU from the time at which the window was to begin until its end was asked for.
#[test]
fn a_window_that_nobody_began_in_time_begins_late_and_says_so() {
    const LATE: Duration = Duration::from_millis(50);
    let mut sampler =
        Sampler::open(vec![Watched::process(Role::Client, std::process::id())].into(), Vec::new()).unwrap();
    let planned = |from: At| State::Planned { from, to: Some(from.plus(2 * LATE)), prepared: None };
    let end = |sampler: &mut Sampler| {
        let (commands, inbox) = channel();
        let (sender, reply) = channel();
        commands.send(Command::End(sender)).unwrap();
        drop(commands);
        sampler.serve(&inbox);
        reply.recv().unwrap()
    };
    sampler.state = planned(now());
    std::thread::sleep(LATE);
    let window = end(&mut sampler).unwrap();
    assert!(window.late_s >= LATE.as_secs_f64() && window.usage.len() == 1, "{window:?}");
    sampler.state = planned(now().plus(Duration::from_secs(60)));
    assert_eq!(end(&mut sampler).unwrap_err().to_string(), "no window is open", "its time has not come");
}
