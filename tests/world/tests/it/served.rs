//! A product that others have started: it is measured as it stands and left alone, and what its route gets wrong is said.

use std::path::Path;

use weir_model::record::{Measurement, Role, Severity};
use weir_net::Driver;
use weir_net::sim::{NodeOptions, World};
use weir_origin::Options;
use weir_world::engine::SimOrigin;
use weir_world::misbehaviour::Fault;
use weir_world::product::{Product, ProductOptions, SharedSpent};
use weir_world::scenario::{Disk, Scenario, suite};

const GATEWAY: &str = "127.0.0.1:80";

/// The port of weir's origin, to which its route should lead.
const PORT: u16 = 18_080;

/// Somebody starts a gateway with a route to this port.
fn gateway(world: &World, port: u16, fault: Fault) {
    let mut driver = world.driver("gateway");
    driver.listen(world.listen(GATEWAY.parse::<std::net::SocketAddr>().unwrap(), 100, false).unwrap()).unwrap();
    let options = ProductOptions {
        service: 50_000,
        workers: 2,
        upstreams: 100,
        keep_alive: true,
        origins: vec![weir_world::engine::address(&format!("127.0.0.1:{port}"))],
        fault,
        route: weir_world::product::SharedRoute::default(),
    };
    world.add_task(driver, Box::new(Product::new(options, SharedSpent::default())));
}

/// Measures it twice, and without it. `start` starts what was there before.
fn measure(folder: &Path, start: impl FnOnce(&World)) -> Vec<Measurement> {
    let ours = format!(
        "[product]\ntitle = \"our gateway\"\nabout = \"What serves already.\"\nhome = \"https://example.org/\"\n\
         speaks = [\"http/1.1\"]\n[served]\naddress = \"{GATEWAY}\"\norigin_port = {PORT}\nready_within = \"3s\"\n\
         [profile.tuned]\nabout = \"As it stands.\"\n"
    );
    let scenario = Scenario::new(1, 1, folder, &[("ours", ours)], Disk::sound());
    start(&scenario.realm.world);
    let was_there = scenario.realm.world.is_listening(&weir_world::engine::address(GATEWAY));
    let head = "title = \"Served\"\nproducts = [\"direct\", \"ours\"]\nprofile = \"tuned\"\nblocks = 2\nseed = 1";
    let load = "kind = \"open\"\nrate = 500\nconnections = 4\nwarmup = \"200ms\"\nduration = \"1s\"";
    scenario.run(&suite(head, "", load)).unwrap();
    let mut measured = scenario.measured();
    assert_eq!(measured.len(), 4);
    measured.retain(|m| m.case.product == "ours" || m.error.is_some());
    let gateway = weir_world::engine::address(GATEWAY);
    assert_eq!(scenario.realm.world.is_listening(&gateway), was_there, "it is left as it was");
    scenario.draw().unwrap();
    measured
}

#[test]
fn what_serves_already_is_measured_as_it_stands_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let measured = measure(folder.path(), |world| gateway(world, PORT, Fault::Honest));
    for m in &measured {
        let (load, origin) = (m.load.as_ref().unwrap(), m.origin.as_ref().unwrap());
        assert_eq!((m.error.as_ref(), load.window.successful, origin.requests), (None, 500, 600));
        let roles: Vec<Role> = m.usage.iter().map(|usage| usage.role).collect();
        assert_eq!(roles, [Role::Client, Role::Origin], "what was not measured is not there");
        assert!(m.findings.iter().any(|finding| finding.check == "unknown-usage"), "{:?}", m.findings);
    }
    assert_eq!(measured.len(), 2);
    let report = std::fs::read_to_string(folder.path().join("run/report/report.md")).unwrap();
    assert!(report.contains("CPU and memory of the product are unknown"), "{report}");
    let cell = report.lines().find(|line| line.contains("our gateway") && line.contains("| unknown |"));
    assert!(cell.is_some(), "beside its numbers:\n{report}");
}

/// The stage and the words of the errors of both of its trials.
fn errors(start: impl FnOnce(&World)) -> Vec<(String, String, String)> {
    let folder = tempfile::tempdir().unwrap();
    let errors = measure(folder.path(), start).into_iter().filter_map(|m| m.error);
    errors.map(|error| (error.stage, error.message, error.remedy)).collect()
}

#[test]
fn a_route_to_nowhere_says_which_port_it_should_lead_to() {
    let errors = errors(|world| gateway(world, PORT + 1, Fault::Honest));
    assert_eq!((errors.len(), errors[0].0.as_str()), (2, "ready"));
    let (_, message, remedy) = &errors[0];
    assert!(message.contains(&format!("through our gateway at {GATEWAY} within 3 s")), "{message}");
    assert!(remedy.contains(&format!("at port {PORT}")), "{remedy}");
}

#[test]
fn a_route_to_something_else_fails_verification_and_one_to_another_origin_the_audit() {
    let errors = errors(|world| gateway(world, PORT, Fault::Own));
    assert_eq!((errors.len(), errors[0].0.as_str()), (2, "verify"));
    assert!(errors[0].2.contains("the route of our gateway"), "{}", errors[0].2);

    let folder = tempfile::tempdir().unwrap();
    let measured = measure(folder.path(), |world| {
        let other = SimOrigin::start(world, Options::default(), NodeOptions::default()).unwrap();
        gateway(world, other.addresses[0].port(), Fault::Honest);
    });
    let found = measured[0].findings.iter().find(|finding| finding.check == "conservation-requests").unwrap();
    assert!(found.message.starts_with("of 600 requests 600 (100.00 %) got a forged ID"), "{}", found.message);
    assert_eq!((measured.len(), found.severity), (2, Severity::Fatal));
}

#[test]
fn an_address_where_nothing_serves_is_said() {
    let errors = errors(|_| {});
    let (stage, message, _) = &errors[0];
    let expected = format!("{GATEWAY} is not reached: {GATEWAY}: Connection refused");
    assert_eq!((stage.as_str(), message), ("start", &expected));
}
