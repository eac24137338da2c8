//! Every fault of the audit's matrix (`make faults` injects them into real runs): the finding that has to name it does, by a word that
//! says what it is, with the verdict that it deserves, and an honest product under the same load is not blamed for anything.

use std::sync::Arc;
use std::time::Duration;

use weir_model::record::{Measurement, Role};
use weir_world::faults::{Beside, CASES, Case, Load};
use weir_world::host::{Neighbour, Realm};
use weir_world::scenario::{Disk, Scenario, product, store};

const MILLI: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLI;

/// By then the load has begun: what is disturbed is disturbed in its window.
const IN_WINDOW: u64 = 1_500 * MILLI;

fn measure(case: &Case) -> Measurement {
    let folder = tempfile::tempdir().unwrap();
    // A closed load over few connections, and a product that is as fast as a test can afford: what is counted is the same, and the world
    // has less to do.
    let (connections, service) = match case.load {
        Load::Closed(_) => (4, 2_000),
        Load::Dense(_) => (16, 100),
        Load::Open(..) => (16, 50),
    };
    let faulty = match case.store() {
        Some(faults) => store("redis", faults),
        None => product(&case.fault.replace("CLIENT_CPU", "0"), service, 2),
    };
    let scenario = Scenario::new(1, 1, folder.path(), &[("faulty", faulty)], Disk::sound());
    // A store of the world takes no time of its own.
    let scenario = if case.store().is_some() { scenario.with_latency(MILLI) } else { scenario };
    disturb(&scenario.realm, case.beside);
    scenario.run(&case.suite("faulty", connections)).unwrap();
    scenario.measured().remove(0)
}

fn disturb(realm: &Arc<Realm>, beside: Beside) {
    let burner = |cpu, percent: u64, seconds: u64| {
        realm.add_neighbour(Neighbour {
            cpu,
            share: percent as f64 / 100.0,
            from: IN_WINDOW,
            to: IN_WINDOW + seconds * SECOND,
        });
    };
    let weak = Arc::downgrade(realm);
    let stop = |role: Role, from: u64, every: u64, length: u64, how: fn(&Realm, u32, Duration)| {
        for at in (from..IN_WINDOW + 8 * SECOND).step_by(every as usize) {
            let weak = weak.clone();
            realm.world.at(at, move |_| {
                let Some(realm) = weak.upgrade() else { return };
                let name = if role == Role::Proxy { "product" } else { role.as_str() };
                realm.running(name).into_iter().for_each(|pid| how(&realm, pid, Duration::from_nanos(length)));
            });
        }
    };
    match beside {
        Beside::Nobody => {}
        Beside::Burner(role, percent, seconds) => burner(u32::from(role == Role::Proxy), percent, seconds),
        Beside::ShortLived(percent) => burner(1, percent, 60),
        Beside::Stopped(role) => stop(role, IN_WINDOW, SECOND, 200 * MILLI, Realm::freeze),
        Beside::StoppedOften(role) => stop(role, 0, 10 * MILLI, 5 * MILLI, Realm::freeze),
        Beside::Quota(role) => stop(role, 0, 100 * MILLI, 50 * MILLI, Realm::throttle),
        Beside::SamplersStopped => realm.world.at(500 * MILLI, move |_| {
            if let Some(realm) = weak.upgrade() {
                realm.freeze_samplers(Duration::from_secs(1));
            }
        }),
    }
}

#[test]
fn each_fault_is_called_by_its_name_and_nobody_else_is_blamed() {
    let judged = |case: &Case| {
        let why = case.judge(&measure(case), &[]);
        (!why.is_empty()).then(|| format!("{}: {why}", case.name))
    };
    // Each world is of one thread; there may be several worlds.
    let (first, second) = CASES.split_at(CASES.len() / 2);
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let first = scope.spawn(move || first.iter().filter_map(judged).collect::<Vec<_>>());
        let second: Vec<String> = second.iter().filter_map(judged).collect();
        first.join().unwrap().into_iter().chain(second).collect()
    });
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), CASES.len(), wrong.join("\n"));
}
