//! The text of `weir hosts check`: a table of the hosts, one of the pairs, and what would spoil a measurement.

use std::collections::BTreeMap;

use console::style;
use weir_lab::network::Pair;
use weir_model::record::{Finding, Severity, role_names};
use weir_model::text::{fixed_us, human_bytes, list, percent, significant, wrapped};
use weir_model::units::CpuList;

use super::check::{Checked, CheckedHost, HostReport};
use crate::exit::Failure;
use crate::out;

/// Columns where there is no terminal.
const WIDTH: usize = 100;

/// Prints it.
pub fn show(checked: &Checked) -> Result<(), Failure> {
    output!("{}", text(checked, out::terminal_width(WIDTH)));
    Ok(())
}

fn text(checked: &Checked, width: usize) -> String {
    let mut parts = vec![hosts(checked)];
    parts.extend(products(checked, width));
    parts.extend(pairs(checked));
    parts.extend(spoils(checked, width));
    parts.join("\n\n")
}

fn cells<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).into()
}

fn hosts(checked: &Checked) -> String {
    let head = cells(["host", "roles", "reached by", "kernel", "CPUs", "memory", "descriptors", "clock"]);
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(checked.hosts.iter().map(host)).collect();
    out::columns("lllllrrr", usize::MAX, &rows)
}

fn host(host: &CheckedHost) -> Vec<String> {
    let roles = role_names(&host.roles, &host.parts);
    let mut row = vec![host.name.clone(), roles.join(", "), host.by.clone()];
    row.extend(match &host.said {
        None => vec![style("not reached").red().to_string()],
        Some(HostReport { cpus, facts, clock_error_us, .. }) => vec![
            facts.kernel.strip_prefix("Linux ").unwrap_or(&facts.kernel).to_owned(),
            of_all(cpus, facts.cpus),
            human_bytes(facts.memory_bytes as f64),
            facts.descriptors.1.to_string(),
            format!("± {}", fixed_us(*clock_error_us)),
        ],
    });
    row
}

/// CPUs that roles may use, and how many there are, if that is more.
fn of_all(cpus: &[u32], online: u32) -> String {
    let own = CpuList::text(cpus);
    if cpus.len() < online as usize { format!("{own} of {online}") } else { own }
}

/// What hosts have, those together that have the same.
fn products(checked: &Checked, width: usize) -> Option<String> {
    let mut all: Vec<(&BTreeMap<String, String>, Vec<&str>)> = Vec::new();
    for host in &checked.hosts {
        let Some(has) = host.said.as_ref().and_then(|said| said.products.as_ref()) else { continue };
        match all.iter_mut().find(|(known, _)| *known == has) {
            Some((_, names)) => names.push(&host.name),
            None => all.push((has, vec![&host.name])),
        }
    }
    let line = |(has, names): (&BTreeMap<String, String>, Vec<&str>)| {
        let versions: Vec<String> = has.iter().map(|(name, version)| format!("{name} {version}")).collect();
        let said = if versions.is_empty() { "none".to_owned() } else { versions.join(", ") };
        wrapped(&format!("products on {}: {said}", list(&names)), width, 2)
    };
    (!all.is_empty()).then(|| all.into_iter().map(line).collect::<Vec<_>>().join("\n"))
}

fn pairs(checked: &Checked) -> Option<String> {
    let head = cells(["from", "to", "p50", "p99", "sent", "received", "sent again"]);
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(checked.pairs.iter().map(pair)).collect();
    let table = (!checked.pairs.is_empty()).then(|| out::columns("llrrrrr", usize::MAX, &rows));
    let not_measured = checked.not_measured.iter().map(|pairs| format!("not measured: {pairs}"));
    let lines: Vec<String> = table.into_iter().chain(not_measured).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn pair(pair: &Pair) -> Vec<String> {
    vec![
        pair.from.clone(),
        pair.to.clone(),
        fixed_us(pair.p50_us),
        fixed_us(pair.p99_us),
        bits(pair.sent_bits_per_s),
        bits(pair.received_bits_per_s),
        if pair.large.again == 0 { "none".to_owned() } else { percent(pair.large.share()) },
    ]
}

/// `94.1 Mbit/s`, `9.41 Gbit/s`.
fn bits(per_second: f64) -> String {
    match per_second {
        n if n >= 1e9 => format!("{} Gbit/s", significant(n / 1e9, 3)),
        n => format!("{} Mbit/s", significant(n / 1e6, 3)),
    }
}

/// What would spoil a measurement, the worst first.
fn spoils(checked: &Checked, width: usize) -> Option<String> {
    let unreached = checked.hosts.iter().filter_map(|host| Some((&host.name, host.error.as_ref()?)));
    let unreached = unreached.map(|(name, why)| vec![bad(), name.clone(), why.clone()]);
    let mut findings: Vec<&Finding> = checked.findings.iter().collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let rows: Vec<Vec<String>> = unreached.chain(findings.into_iter().map(finding)).collect();
    if rows.is_empty() {
        return Some("nothing was found that would spoil a measurement".to_owned());
    }
    Some(out::columns("lll", width, &rows))
}

fn bad() -> String {
    style("bad").red().to_string()
}

fn finding(finding: &Finding) -> Vec<String> {
    let severity = match finding.severity {
        Severity::Fatal => bad(),
        Severity::Warning => style("warn").yellow().to_string(),
        Severity::Note => style("note").dim().to_string(),
    };
    // Of a doctor's finding what was seen; `weir doctor` there has the reasons.
    let (name, message) = match finding.check.strip_prefix("doctor-") {
        Some(name) => (name, finding.message.split(". ").next().unwrap_or_default().to_owned()),
        None => (finding.check.as_str(), finding.message.clone()),
    };
    let remedy = match finding.remedy.strip_prefix("Run: ").unwrap_or(&finding.remedy) {
        "" => String::new(),
        remedy => format!("\n{}", style(format!("to fix it: {remedy}")).dim()),
    };
    vec![severity, name.to_owned(), message + &remedy]
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_lab::network::Segments;
    use weir_model::record::{Environment, Role};

    fn reached(name: &str, role: Role, products: &[(&str, &str)]) -> CheckedHost {
        let owned = |(name, version): &(&str, &str)| ((*name).to_owned(), (*version).to_owned());
        let facts = Environment {
            kernel: "Linux 6.1.0-28-amd64".into(),
            cpus: 16,
            memory_bytes: 32 << 30,
            descriptors: (1_024, 1_048_576),
            ..Environment::default()
        };
        let said = HostReport {
            machine: name.into(),
            cpus: (0..8).collect(),
            clock_error_us: 45.2,
            products: (role != Role::Client).then(|| products.iter().map(owned).collect()),
            facts,
            ..HostReport::default()
        };
        CheckedHost {
            name: name.into(),
            roles: vec![role],
            parts: Vec::new(),
            by: format!("ssh bench@{name}"),
            error: None,
            said: Some(said),
        }
    }

    #[test]
    fn all_is_on_one_screen() {
        let segments = |again| Segments { sent: 100_000, again };
        let pair = |from: &str, to: &str, again| Pair {
            from: from.into(),
            to: to.into(),
            p50_us: 112.4,
            p99_us: 340.1,
            sent_bits_per_s: 9.41e9,
            received_bits_per_s: 941.2e6,
            small: segments(0),
            large: segments(again),
        };
        let finding = |check: &str, severity, message: &str, remedy: &str| Finding {
            check: check.into(),
            severity,
            message: message.into(),
            remedy: remedy.into(),
        };
        let away =
            "the host m4 was not reached: the connection ended before weir ran there; ssh ended with exit status: 255";
        let unreached = CheckedHost {
            name: "m4".into(),
            roles: vec![Role::Origin],
            parts: vec!["store-1".into()],
            by: "ssh m4".into(),
            error: Some(format!("{away}\n  expected: `ssh m4 true` works without questions")),
            said: None,
        };
        let has = [("nginx", "1.22.1"), ("haproxy", "2.6.12")];
        let checked = Checked {
            topology: "hosts",
            hosts: vec![
                reached("m1", Role::Client, &[]),
                reached("m2", Role::Proxy, &has),
                reached("m3", Role::Origin, &[]),
                unreached,
            ],
            pairs: vec![pair("m1", "m2", 0), pair("m2", "m3", 120)],
            not_measured: vec!["m2 to m4: not both are reached".into()],
            findings: vec![
                finding(
                    "doctor-governor",
                    Severity::Warning,
                    "m2: powersave. It is slow.",
                    "Run: cpupower frequency-set -g performance",
                ),
                finding(
                    "no-traffic",
                    Severity::Fatal,
                    "m1 gets no responses from m3 at 10.0.0.3: refused",
                    "let all TCP ports through",
                ),
            ],
        };
        let said = console::strip_ansi_codes(&text(&checked, 80)).into_owned() + "\n";
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/words/hosts-check.txt");
        if std::env::var_os("WEIR_BLESS").is_some() {
            std::fs::write(path, &said).expect("written");
        }
        assert_eq!(said, std::fs::read_to_string(path).expect("there"), "\n{said}");
        assert!(said.lines().count() < 24);
    }

    #[test]
    fn nothing_found_is_said() {
        let checked = Checked { hosts: vec![reached("m1", Role::Client, &[])], ..Checked::default() };
        assert!(text(&checked, 80).ends_with("\n\nnothing was found that would spoil a measurement"));
    }

    #[test]
    fn rates_have_three_digits() {
        assert_eq!([bits(9.4e6), bits(94.13e6), bits(9.414e9)], ["9.40 Mbit/s", "94.1 Mbit/s", "9.41 Gbit/s"]);
    }
}
