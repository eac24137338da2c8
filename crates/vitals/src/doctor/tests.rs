//! Every decision, with injected values, as the text that users read.

use super::*;
use crate::parse::host::CpuTicks;

fn some(names: &[(&str, f64)]) -> Vec<(String, f64)> {
    names.iter().map(|(name, cores)| ((*name).to_owned(), *cores)).collect()
}

/// Enough of all, and each in turn too little.
fn rooms() -> [connections::Room; 6] {
    let enough = connections::Room {
        descriptors: 20_000,
        tables: true,
        memory: Some(24 << 30),
        files: connections::files("1472 0 2466177"),
    };
    [
        enough,
        connections::Room { tables: false, ..enough },
        connections::Room { tables: false, descriptors: 1024, ..enough },
        connections::Room { memory: Some(100 << 20), ..enough },
        connections::Room { files: connections::files("1472 0 10000"), ..enough },
        connections::Room { memory: None, files: connections::files("0"), ..enough },
    ]
}

/// All outcomes of all judges.
fn outcomes() -> Vec<Check> {
    let governors = |list: &[&str]| cpu::judge_governor(&list.iter().map(|g| (*g).to_owned()).collect::<Vec<_>>());
    let mut all = Vec::new();
    all.extend([None, Some(1), Some(2), Some(8)].map(cpu::judge_count));
    all.extend(
        [None, Some((4.0, "/".to_owned())), Some((0.5, "/box".to_owned()))].map(|limit| cpu::judge_quota(limit, 2)),
    );
    all.extend([governors(&[]), governors(&["performance"; 2]), governors(&["schedutil", "performance", "schedutil"])]);
    all.extend([None, Some(true), Some(false)].map(cpu::judge_boost));
    all.extend([None, Some(vec![]), Some(vec![0, 4])].map(|shared| cpu::judge_siblings(shared, 8)));
    all.push(cpu::judge_siblings(Some(vec![0, 1]), 2));
    all.extend([None, Some(0.0), Some(0.013), Some(0.05)].map(busy::judge_steal));
    all.extend(
        [some(&[]), some(&[("sshd", 0.02)]), some(&[("cargo", 1.01), ("rustc", 0.5)])].map(|l| busy::judge_others(&l)),
    );
    all.extend([(None, Some(2)), (Some(1.0), Some(2)), (Some(3.5), Some(2))].map(|(l, c)| busy::judge_load(l, c)));
    for kind in ["cpu", "memory", "io"] {
        all.extend([None, Some(0.5), Some(17.49)].map(|avg| busy::judge_pressure(kind, avg)));
    }
    all.extend([None, Some(100 << 20), Some(900 << 20), Some(24 << 30)].map(limits::judge_available));
    all.extend([None, Some(0), Some(3 << 20)].map(limits::judge_swap));
    all.extend(
        [None, Some("[always] madvise never"), Some("always [madvise] never"), Some("always madvise [never]")]
            .map(limits::judge_hugepages),
    );
    all.extend(
        [(1024, 1024, true), (1024, 20_000, false), (20_000, 1_048_576, false)]
            .map(|(now, hard, may)| limits::judge_descriptors(now, hard, may)),
    );
    all.extend([8 << 20, u64::MAX].map(limits::judge_memlock));
    all.extend(rooms().map(|room| connections::judge_connections(&room, Some((32_768, 60_999)))));
    all.extend(["", "1 100 200", "287901 383868 575802"].map(|t| connections::judge_tcp_memory(connections::pages(t))));
    all.extend([None, Some((32_768, 60_999)), Some((50_000, 50_999))].map(net::judge_ports));
    all.extend([None, Some(128), Some(4096)].map(net::judge_somaxconn));
    all.extend([None, Some(128), Some(1024)].map(net::judge_syn_backlog));
    all.extend([None, Some(0), Some(2)].map(net::judge_tw_reuse));
    all.extend([None, Some((212_992, 212_992)), Some((4 << 20, 4 << 20))].map(net::judge_udp_buffers));
    all.extend([None, Some(65_536), Some(1500)].map(net::judge_mtu));
    all.extend([None, Some((12, 65_536)), Some((60_000, 65_536))].map(net::judge_conntrack));
    all.extend(["5.10.0-28-amd64", "5.15.0-91-generic", "6.1.0-18-amd64", "unnamed"].map(kernel::judge_version));
    all.extend(
        [(None, false), (Some(0), false), (Some(1), true), (Some(1), false), (Some(2), true)]
            .map(|(mode, root)| kernel::judge_io_uring(mode, root)),
    );
    all.extend([None, Some("tsc"), Some("acpi_pm")].map(kernel::judge_clock));
    all.extend([(None, false), (Some(4), true), (Some(4), false)].map(|(level, root)| kernel::judge_perf(level, root)));
    all.extend([None, Some(10 << 20), Some(1 << 30), Some(80 << 30)].map(place::judge_disk));
    all.extend([(true, false), (false, true), (false, false)].map(|(root, sudo)| place::judge_rights(root, sudo)));
    all
}

#[test]
fn texts_are_as_reviewed() {
    let now: String = outcomes().iter().map(|check| format!("{check}\n")).collect();
    let reviewed = include_str!("golden.txt");
    for (line, (now, reviewed)) in now.lines().zip(reviewed.lines()).enumerate() {
        assert_eq!(now, reviewed, "line {} of golden.txt", line + 1);
    }
    assert_eq!(now.lines().count(), reviewed.lines().count(), "all of it:\n{now}");
}

#[test]
fn what_is_ok_needs_no_command_and_no_text_is_empty() {
    for check in outcomes() {
        assert!(check.status != Status::Ok || check.mend.is_none(), "{check}");
        assert!(!check.seen.is_empty() && !check.seen.ends_with('.'), "{check}");
        assert!(check.why.ends_with('.'), "{check}");
        assert!(check.name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{check}");
        assert_eq!(check.finding().is_none(), check.status == Status::Ok);
    }
}

#[test]
fn a_check_as_a_finding() {
    let finding = limits::judge_swap(Some(3 << 20)).finding().expect("it warns");
    assert_eq!((finding.check.as_str(), finding.severity), ("doctor-swap", Severity::Warning));
    assert!(finding.message.starts_with("3 MiB in use. A role"), "{}", finding.message);
    assert_eq!(finding.remedy, "Run: swapoff -a");
    assert_eq!(kernel::judge_version("4.19.0").finding().map(|f| f.severity), Some(Severity::Fatal));
    assert_eq!(cpu::judge_boost(None).finding().map(|f| f.severity), Some(Severity::Note));
}

#[test]
fn steal_is_a_share_of_all_time() {
    let before = CpuTicks { idle: 100, ..CpuTicks::default() };
    let after = CpuTicks { idle: 140, user: 40, steal: 20, ..CpuTicks::default() };
    assert_eq!(busy::steal_share(before, after), Some(0.2));
    assert_eq!(busy::steal_share(before, before), None);
}

/// On whatever machine this runs: every check responses, once.
#[test]
fn examines_this_machine() {
    let checks = examine(Path::new("/nonesuch/runs"));
    let mut names: Vec<&str> = checks.iter().map(|check| check.name.as_str()).collect();
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!((all, names.len()), (31, 31), "{names:?}");
    let disk = checks.iter().find(|check| check.name == "disk").expect("is one of them");
    assert_ne!(disk.status, Status::Unknown, "the nearest folder that exists is taken");
}
