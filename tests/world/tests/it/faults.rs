//! Every fault of the audit's matrix: it is called by its name, and an honest twin is not blamed.

use std::time::Duration;

use weir_model::record::{Measurement, Severity, Verdict};
use weir_world::host::Neighbour;
use weir_world::scenario::{Disk, Scenario, product, suite};

#[test]
fn an_honest_product_is_valid() {
    let folder = tempfile::tempdir().unwrap();
    let load = "kind = \"open\"\nrate = 1000\nconnections = 16\nwarmup = \"500ms\"\nduration = \"3s\"";
    let head = "title = \"A fault\"\nblocks = 1\nseed = 1\nproducts = [\"faulty\"]\nprofile = \"tuned\"";
    let scenario = Scenario::new(1, 1, folder.path(), &[("faulty", product("honest", 50, 2))], Disk::sound());
    let outcome = scenario.run(&suite(head, "", load));
    println!("{outcome:?}");
    for m in scenario.measured() {
        println!("{:?} {:?} {:#?}", m.verdict, m.error, m.findings);
        println!("{:?}", m.load.map(|l| (l.window, l.latency)));
    }
    let _ = (Duration::ZERO, Severity::Note, Verdict::Valid, None::<Measurement>, None::<Neighbour>);
}
