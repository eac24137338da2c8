//! Two runs compared: how many false alarms it raises, what it finds, what it refuses, and its texts.

use crate::golden::golden;
use crate::made::{BUSY, Made, Noise, QUIET, VIRTUAL};
use weir_compare::{Change, ComparedRun, Comparison, FailIf, Options, Verdict, compare, markdown, text};
use weir_model::metric::Metric;
use weir_model::record::{Environment, HostRecord, Role, TrialError, Verdict as TrialVerdict};
use weir_model::suite::{Protocol, Tls, Workload};
use weir_report::Part;

fn asking(conditions: &[&str]) -> Options {
    let fail_if = conditions.iter().map(|text| text.parse::<FailIf>().expect(text)).collect();
    Options { fail_if, ..Options::default() }
}

fn change<'a>(comparison: &'a Comparison, product: &str, metric: Metric) -> &'a Change {
    let case = comparison.cases.iter().find(|case| case.case.product == product).expect(product);
    case.changes.iter().find(|change| change.metric == metric).expect("that metric")
}

fn any_sure(comparison: &Comparison) -> bool {
    let products = comparison.cases.iter().filter(|case| !case.machine);
    products.flat_map(|case| &case.changes).any(|change| change.verdict == Verdict::Sure)
}

fn alarms(comparison: &Comparison) -> usize {
    comparison.conditions.iter().map(|judged| judged.alarms.len()).sum()
}

/// How many of so many pairs of runs say so.
fn count(
    pairs: u64,
    before: &Made<'_>,
    after: &Made<'_>,
    options: &Options,
    says: impl Fn(&Comparison) -> bool,
) -> usize {
    let pair = |seed: u64| compare(&before.side(2 * seed + 1), &after.side(2 * seed + 2), options).expect("compared");
    (0..pairs).filter(|seed| says(&pair(*seed))).count()
}

/// The same products twice, on a machine that drifts within runs and between them: of all comparisons, at most one in twenty
/// may say of any of its many numbers that it surely changed.
#[test]
fn the_same_product_against_itself_is_found_changed_once_in_twenty_at_most() {
    for (blocks, noise) in [(2, VIRTUAL), (3, VIRTUAL), (5, BUSY), (8, VIRTUAL)] {
        let (sure, failed) = false_alarms(200, blocks, noise);
        assert!(sure <= 10 && failed <= 10, "{blocks} blocks: {sure} and {failed} of 200");
    }
}

/// What befell one whole run and spared the direct path: the blocks do not show it, and it is not called sure.
#[test]
fn a_state_of_whole_runs_is_called_sure_once_in_twenty_at_most() {
    for blocks in [3, 8] {
        let same = Made { blocks, noise: Noise { apart: 0.02, ..VIRTUAL }, ..Made::default() };
        let (sure, failed) = [Options::default(), asking(&["capacity -0%"])]
            .map(|options| count(200, &same, &same, &options, any_sure))
            .into();
        assert!(sure <= 10 && failed <= 10, "{blocks} blocks: {sure} and {failed} of 200");
        let likely = |one: &Comparison| change(one, "alder", Metric::Rate).verdict == Verdict::Likely;
        let likely = count(200, &same, &same, &Options::default(), likely);
        assert!(blocks == 3 || likely > 10, "it is there to be seen: {likely} of 200");
    }
}

/// Of so many comparisons of four cases with themselves: how many call any of their twenty numbers surely changed, and how
/// many would fail a build that tolerates nothing.
fn false_alarms(pairs: u64, blocks: u32, noise: Noise) -> (usize, usize) {
    let same = Made { products: &["alder", "birch"], workloads: &["plain", "json"], blocks, noise, ..Made::default() };
    let sure = count(pairs, &same, &same, &Options::default(), any_sure);
    let options = asking(&["capacity -0%", "p99 +0%", "cpu +0%", "memory +0%"]);
    (sure, count(pairs, &same, &same, &options, |comparison| alarms(comparison) > 0))
}

/// Without the direct path's help the machine's drift between runs looks like a change, in spite of what is allowed for it: the check
/// above can fire.
#[test]
fn without_dividing_the_machine_is_taken_for_the_product() {
    let same = Made { blocks: 8, ..Made::default() };
    let options = Options { absolute: true, ..asking(&["capacity -0%", "capacity -0%"]) };
    let failed = count(200, &same, &same, &options, |comparison| alarms(comparison) > 0);
    assert!(failed > 10, "only {failed} of 200");
}

#[test]
fn a_product_made_ten_per_cent_slower_is_found() {
    for (blocks, noise, least) in [(5, QUIET, 196), (8, VIRTUAL, 100), (12, VIRTUAL, 120)] {
        let found = slower_found(200, blocks, noise);
        assert!(found >= least, "{blocks} blocks: {found} of 200");
    }
}

/// Of so many comparisons with a product that lost a tenth: in how many `capacity -5%` is an alarm.
fn slower_found(pairs: u64, blocks: u32, noise: Noise) -> usize {
    let before = Made { blocks, noise, ..Made::default() };
    let after = Made { blocks, noise, speed: 0.9, ..Made::default() };
    count(pairs, &before, &after, &asking(&["capacity -5%"]), |comparison| alarms(comparison) == 1)
}

/// The table of bench/EVIDENCE.md: `cargo test -p weir-compare --test it compare:: -- --ignored --nocapture`.
#[test]
#[ignore = "prints figures for a page"]
fn figures() {
    for (name, noise) in [("quiet", QUIET), ("virtual", VIRTUAL), ("busy", BUSY)] {
        for blocks in [3, 5, 8] {
            let (sure, failed) = false_alarms(400, blocks, noise);
            let found = slower_found(400, blocks, noise);
            println!("{name}, {blocks} blocks: sure {sure}, failed {failed}, a tenth slower found {found}, of 400");
        }
    }
}

#[test]
fn a_change_that_is_sure_and_small_is_no_alarm() {
    let quiet = Noise { run: 0.0, drift: 0.0, own: 0.001, wild: 0.0, apart: 0.0 };
    let before = Made { noise: quiet, ..Made::default() }.side(1);
    let after = Made { noise: quiet, speed: 0.97, ..Made::default() }.side(2);
    let comparison = compare(&before, &after, &asking(&["capacity -5%"])).expect("compared");
    let capacity = change(&comparison, "alder", Metric::Rate);
    assert_eq!((capacity.verdict, alarms(&comparison)), (Verdict::Sure, 0));
    assert!(((capacity.ratio.value - 1.0) + 0.03).abs() < 0.005, "{capacity:?}");
    assert_eq!(alarms(&compare(&before, &after, &asking(&["capacity -2%"])).expect("compared")), 1);
    // Better is no alarm, however much.
    assert_eq!(alarms(&compare(&after, &before, &asking(&["capacity -2%"])).expect("compared")), 0);
    // A rate that is looked for is a capacity by another name, and one claim.
    let both = compare(&before, &after, &asking(&["capacity -2%", "rate -2%"])).expect("compared");
    assert_eq!((alarms(&both), both.asked.claims), (2, 1));
}

#[test]
fn nothing_is_claimed_from_one_block() {
    let one = Made { blocks: 1, ..Made::default() };
    let after = Made { blocks: 1, speed: 0.1, ..Made::default() };
    let comparison = compare(&one.side(1), &after.side(2), &asking(&["capacity -5%"])).expect("compared");
    let capacity = change(&comparison, "alder", Metric::Rate);
    assert_eq!((capacity.verdict, capacity.detectable_ratio, alarms(&comparison)), (Verdict::Unclaimable, None, 0));
    assert_eq!(comparison.answer, "Nothing can be claimed: no case has two blocks in each run.");
    let why = &comparison.conditions[0].unjudged[0].why;
    assert!(why.contains("nothing can be claimed from 1 block before and 1 block after"), "{why}");
    // Nor from one against many.
    let many = compare(&Made::default().side(1), &after.side(2), &asking(&["capacity -5%"])).expect("compared");
    assert_eq!(change(&many, "alder", Metric::Rate).verdict, Verdict::Unclaimable);
    assert_eq!(many.conditions[0].claims, 0);
}

#[test]
fn a_run_is_no_different_from_itself() {
    let run = Made::default().side(3);
    let comparison = compare(&run, &run, &asking(&["capacity -0%", "p50 +0%", "memory +0%"])).expect("compared");
    assert_eq!((alarms(&comparison), comparison.differences.len()), (0, 0));
    assert!(comparison.remarks.contains(&"Both are the same run.".to_owned()));
    let capacity = change(&comparison, "alder", Metric::Rate);
    assert!((capacity.ratio.value - 1.0).abs() < 1e-9 && capacity.verdict == Verdict::None);
}

#[test]
fn without_the_direct_path_numbers_are_as_measured_and_that_is_said() {
    let bare = Made { no_direct: true, ..Made::default() };
    let comparison = compare(&Made::default().side(1), &bare.side(2), &Options::default()).expect("compared");
    assert!(!change(&comparison, "alder", Metric::Rate).divided);
    assert!(comparison.remarks.iter().any(|remark| remark.contains("the direct path is not in two blocks")));
    let both = compare(&Made::default().side(1), &Made::default().side(2), &Options::default()).expect("compared");
    assert!(change(&both, "alder", Metric::Rate).divided && change(&both, "alder", Metric::Cpu).divided);
    assert!(!change(&both, "alder", Metric::Rss).divided);
    assert_eq!(change(&both, "direct", Metric::Rate).verdict, Verdict::Machine);
}

/// Where weir itself became faster by some microseconds, the direct path's time fell by a larger share than the products'.
#[test]
fn what_the_direct_path_alone_saved_is_no_change_of_a_product() {
    let quiet = Made { noise: Noise { run: 0.0, drift: 0.0, own: 0.005, wild: 0.0, apart: 0.0 }, ..Made::default() };
    let (before, mut after) = (quiet.side(1), quiet.side(2));
    let faster = |after: &mut ComparedRun, product: &str, times: f64| {
        for trial in after.run.trials.iter_mut().filter(|trial| trial.measurement.case.product == product) {
            trial.measurement.load.as_mut().expect("it has one").latency.p50_us *= times;
        }
    };
    faster(&mut after, "direct", 0.6);
    let p50 = |after: &ComparedRun| {
        let comparison = compare(&before, after, &asking(&["p50 +10%"])).expect("compared");
        (change(&comparison, "alder", Metric::P50).verdict, alarms(&comparison))
    };
    assert_eq!(p50(&after), (Verdict::Unclear, 0));
    faster(&mut after, "alder", 1.2);
    assert_eq!(p50(&after), (Verdict::Sure, 1));
}

/// A trial that had not the machine to itself says nothing of a product, and too few others say nothing either.
#[test]
fn trials_beside_something_else_are_skipped() {
    let quiet = Made { noise: QUIET, blocks: 6, ..Made::default() };
    let (before, mut after) = (quiet.side(1), quiet.side(2));
    let spoil = |after: &mut ComparedRun, from: u32| {
        for trial in after.run.trials.iter_mut().filter(|trial| trial.measurement.case.product == "alder") {
            if trial.measurement.block >= from {
                trial.measurement.load.as_mut().expect("it has one").rate = 10_000.0;
                after.cpu_of_others.insert(trial.measurement.trial, 0.4);
            }
        }
    };
    spoil(&mut after, 4);
    let compared = |after: &ComparedRun, busy: bool| {
        let options = Options { busy, ..asking(&["capacity -5%"]) };
        compare(&before, after, &options).expect("compared")
    };
    let comparison = compared(&after, false);
    let capacity = change(&comparison, "alder", Metric::Rate);
    assert_eq!((alarms(&comparison), capacity.after.blocks, capacity.divided), (0, 3, true));
    assert!((capacity.ratio.value - 1.0).abs() < 0.05, "{capacity:?}");
    assert_eq!(change(&comparison, "alder", Metric::Rss).after.blocks, 6);
    assert!(
        comparison
            .remarks
            .iter()
            .any(|remark| remark.starts_with("Skipped, except for memory: 0 trials of the run before and 3 trials of"))
    );
    spoil(&mut after, 2);
    assert_eq!(compared(&after, false).conditions[0].unjudged.len(), 1);
    spoil(&mut after, 1);
    let comparison = compared(&after, false);
    assert!(comparison.refused[0].why.starts_with("in every trial of the run after something else"), "{comparison:?}");
    assert_eq!(comparison.conditions[0].unjudged.len(), 1);
    assert_eq!(alarms(&compared(&after, true)), 1, "as asked for, whatever else ran");
}

/// What failed in every block is no number, and no silence either.
#[test]
fn a_product_that_failed_leaves_its_condition_unjudged() {
    let before = Made { products: &["alder", "birch"], ..Made::default() };
    let mut after = before.side(2);
    for trial in after.run.trials.iter_mut().filter(|trial| trial.measurement.case.product == "birch") {
        trial.measurement.verdict = TrialVerdict::Error;
        trial.measurement.load = None;
        let text = |text: &str| text.to_owned();
        trial.measurement.error = Some(TrialError {
            stage: text("ready"),
            message: text("did not answer"),
            evidence: text(""),
            remedy: text(""),
        });
    }
    let comparison = compare(&before.side(1), &after, &asking(&["capacity -50%"])).expect("compared");
    let judged = &comparison.conditions[0];
    assert_eq!((judged.claims, judged.unjudged.len()), (1, 1));
    assert!(judged.unjudged[0].why.contains("all 5 trials failed at ready: did not answer"), "{:?}", judged.unjudged);
}

#[test]
fn a_condition_that_no_case_has_is_unjudged() {
    let mut runs = [Made::default().side(1), Made::default().side(2)];
    for side in &mut runs {
        side.suite = None;
        side.run
            .trials
            .iter_mut()
            .filter_map(|trial| trial.measurement.load.as_mut())
            .for_each(|load| load.offered_rate = Some(1e4));
    }
    let comparison = compare(&runs[0], &runs[1], &asking(&["capacity -5%", "rate -5%"])).expect("compared");
    assert!(comparison.conditions[0].unjudged[0].why.contains("has a capacity"), "{:?}", comparison.conditions[0]);
    assert_eq!((comparison.conditions[1].claims, comparison.conditions[1].unjudged.len()), (1, 0));
    // At another rate it is another question.
    for load in runs[1].run.trials.iter_mut().filter_map(|trial| trial.measurement.load.as_mut()) {
        load.offered_rate = Some(1.2e4);
    }
    let comparison = compare(&runs[0], &runs[1], &Options::default()).expect("compared");
    assert!(comparison.cases.is_empty(), "{:?}", comparison.cases);
    assert!(comparison.refused[0].why.starts_with("10,000 requests/s were offered before and 12,000 after"));
}

/// The same name for another question: that case is refused with the reason, the others are compared.
#[test]
fn another_workload_by_the_same_name_is_refused() {
    let made = Made { workloads: &["plain", "json"], ..Made::default() };
    let (before, mut after) = (made.side(1), made.side(2));
    let suite = after.suite.as_mut().expect("it has one");
    suite.workloads[1].request.path = "/bytes/65".to_owned();
    suite.workloads[1].expect.size = Some(65);
    suite.workloads[0].title = "Another title".to_owned();
    suite.loads[0].duration *= 2;
    let comparison = compare(&before, &after, &asking(&["capacity -5%"])).expect("compared");
    assert!(comparison.cases.iter().all(|case| case.case.workload == "plain") && comparison.cases.len() == 2);
    assert_eq!(comparison.refused.len(), 2);
    let why = "the workload json is another one in each run: its path and its expected response differ";
    assert_eq!(comparison.refused[0].why, why);
    assert!(comparison.conditions[0].unjudged.iter().any(|one| one.why == why), "{:?}", comparison.conditions);
    assert_eq!(comparison.differences[0].what, "window of capacity");
    // Once for both cases.
    let said = text(&comparison, 500, false);
    for which in [
        "Not compared: json, capacity (direct tuned, alder tuned)",
        "Not judged (capacity -5%): json, capacity (alder tuned)",
    ] {
        assert_eq!(said.matches(&format!("{which}: {why}.\n")).count(), 1, "{said}");
    }
    // A gateway's routes and pool are part of the question, and so is TLS.
    let why = |change: fn(&mut Workload)| {
        let with = |seed: u64, change: fn(&mut Workload)| {
            let mut run = made.side(seed);
            let workload = &mut run.suite.as_mut().expect("it has one").workloads[0];
            workload.protocol = Protocol::Https11;
            change(workload);
            run
        };
        let comparison = compare(&with(1, |_| ()), &with(2, change), &Options::default()).expect("refused, not wrong");
        comparison.refused.first().map(|refused| refused.why.clone()).unwrap_or_default()
    };
    assert!(why(|workload| workload.gateway.routes = Some(9)).ends_with("its gateway differs"));
    assert!(why(|workload| workload.origins = Some(9)).ends_with("its number of origins differs"));
    assert!(why(|workload| workload.tls = Some(Tls { resumption: true, ..Tls::default() })).contains("TLS settings"));
    assert_eq!(why(|workload| workload.tls = Some(Tls::default())), "", "as the suite's");
    // And another load.
    after.suite.as_mut().expect("it has one").loads[0].connections = 65;
    let message = compare(&before, &after, &Options::default()).expect("refused, not wrong").refused[0].why.clone();
    assert_eq!(message, "the load capacity is another one in each run: its number of connections differs");
}

#[test]
fn what_only_one_run_has_is_listed_and_nothing_in_common_is_an_error() {
    let before = Made { products: &["alder", "birch"], ..Made::default() }.side(1);
    let after = Made { products: &["alder", "cedar"], ..Made::default() }.side(2);
    let comparison = compare(&before, &after, &Options::default()).expect("compared");
    let names =
        |cases: &[weir_model::record::CaseId]| cases.iter().map(|case| case.product.clone()).collect::<Vec<_>>();
    assert_eq!(
        (names(&comparison.only_before), names(&comparison.only_after)),
        (vec!["birch".into()], vec!["cedar".into()])
    );
    let only = |names: &[&str]| Options {
        selection: Part { products: names.iter().map(|name| (*name).to_owned()).collect(), ..Part::default() },
        ..Options::default()
    };
    let message = compare(&before, &after, &only(&["birch"])).expect_err("nothing in common").to_string();
    assert!(
        message.contains("no case in common of those that the filters leave") && message.contains("cedar tuned"),
        "{message}"
    );
    let message = compare(&before, &after, &only(&["brich"])).expect_err("no such product").to_string();
    assert!(message.contains("did you mean \"birch\"?"), "{message}");
}

#[test]
fn differences_come_first() {
    let (before, mut after) = (Made::default().side(1), Made::default().side(2));
    let environment = after.run.environment.as_mut().expect("it has one");
    environment.kernel = "Linux 6.13.0".to_owned();
    environment.products[1].version = "2.5.0".to_owned();
    environment.placement.proxy = vec![1, 2];
    environment.sysctls = [("net.core.somaxconn".to_owned(), "128".to_owned())].into();
    let comparison = compare(&before, &after, &Options::default()).expect("compared");
    let said: Vec<String> =
        comparison.differences.iter().map(|d| format!("{}: {} -> {}", d.what, d.before, d.after)).collect();
    assert_eq!(
        said,
        [
            "Kernel: Linux 6.12.0 -> Linux 6.13.0",
            "CPUs of the proxy: not pinned -> 1, 2",
            "net.core.somaxconn: none -> 128",
            "alder's version: 2.4.1 -> 2.5.0",
        ]
    );
    let shown = text(&comparison, 100, false);
    let (differs, table) = (shown.find("Kernel: Linux"), shown.find("Changes"));
    assert!(differs.is_some() && differs < table, "{shown}");
}

fn shown() -> (ComparedRun, ComparedRun) {
    let noise = Noise { own: 0.01, drift: 0.02, ..VIRTUAL };
    let made = |name: &'static str, speed: f64| Made {
        name,
        products: &["alder", "birch"],
        workloads: &["plain", "json"],
        noise,
        speed,
        ..Made::default()
    };
    let (before, mut after) = (made("2026-01-02-trees", 1.0).side(5), made("2026-01-03-trees", 0.8).side(6));
    after.run.environment.as_mut().expect("it has one").kernel = "Linux 6.13.0".to_owned();
    (before, after)
}

#[test]
fn texts_are_the_reviewed_ones() {
    let (before, after) = shown();
    let comparison = compare(&before, &after, &asking(&["capacity -5%", "p99 +10%"])).expect("compared");
    for width in [80, 120] {
        let shown = text(&comparison, width, false);
        assert!(shown.lines().all(|line| line.chars().count() <= width), "wider than {width}:\n{shown}");
        golden(&format!("compare-{width}.txt"), &shown);
    }
    golden("compare.md", &markdown(&comparison));
    let json = serde_json::to_string_pretty(&comparison).expect("JSON");
    golden("compare.json", &format!("{json}\n"));
    assert!(text(&comparison, 100, true).contains('\u{1b}'));
}

/// Hosts are compared by role, and what differs on all of them is said once.
#[test]
fn hosts_are_compared_by_role() {
    let (mut before, mut after) = (Made::default().side(5), Made::default().side(6));
    let facts = |kernel: &str, cpu_model: &str| Environment {
        kernel: kernel.to_owned(),
        cpu_model: cpu_model.to_owned(),
        cpus: 8,
        ..Environment::default()
    };
    let host = |name: &str, role, facts: &Environment| HostRecord {
        name: name.to_owned(),
        roles: vec![role],
        machine: name.to_owned(),
        facts: facts.clone(),
        ..HostRecord::default()
    };
    let hosts = |client: &Environment, others: &Environment| {
        [
            ("p", Role::Proxy, others),
            ("o", Role::Origin, others),
            ("c1", Role::Client, others),
            ("c2", Role::Client, client),
        ]
        .map(|(name, role, facts)| host(name, role, facts))
        .to_vec()
    };
    let differences = |before: &ComparedRun, after: &ComparedRun| -> Vec<String> {
        let all = compare(before, after, &Options::default()).expect("compared").differences;
        all.iter().map(|d| format!("{}: {} -> {}", d.what, d.before, d.after)).collect()
    };
    let (old, new) = (facts("Linux 6.12.0", "A"), facts("Linux 6.13.0", "A"));
    let set = |run: &mut ComparedRun, hosts| run.run.environment.as_mut().expect("it has one").hosts = hosts;
    set(&mut before, hosts(&old, &old));
    assert_eq!(differences(&before, &before), [""; 0]);
    set(&mut after, hosts(&new, &new));
    assert_eq!(differences(&before, &after), ["Kernel: Linux 6.12.0 -> Linux 6.13.0"]);
    set(&mut after, hosts(&facts("Linux 6.12.0", "B"), &old));
    assert_eq!(differences(&before, &after), ["CPU of client: A -> A and B"]);
    let mut spread = hosts(&old, &old);
    spread.push(HostRecord { parts: vec!["store-1".to_owned()], ..host("s", Role::Proxy, &old) });
    set(&mut after, spread);
    let topology = "client on c1 and c2, proxy on p, origin on o";
    assert_eq!(
        differences(&before, &after),
        [format!("topology: hosts, 4 hosts: {topology} -> hosts, 5 hosts: {topology}, store-1 on s")]
    );
    set(&mut after, hosts(&facts("Linux 6.12.0", "B"), &old));
    set(&mut before, Vec::new());
    let found = differences(&before, &after);
    assert_eq!(
        found[0],
        "topology: one machine, over loopback -> hosts, 4 hosts: client on c1 and c2, proxy on p, origin on o"
    );
    assert!(found.contains(&"CPU of client: none -> A and B".to_owned()), "{found:?}");
}
