//! Writes a valid [`Suite`] as TOML. The lab uses it for the `run.toml` of a run, and `weir suites show` prints it.

use std::fmt::Write as _;

use super::http::{Headers, Method};
use super::suite::generated_body;
use super::suite_wire::{
    EntryName, ExpectTable, Head, KindName, LoadTable, RateValue, ScaleTable, ScaleTables, Seed, ShareTable, SuiteFile,
    TableRateTable, TlsTable, WorkloadTable,
};
use crate::Condition;
use crate::suite::{Entry, Load, LoadKind, RateSpec, Scale, ScaleOverride, Series, Suite, TableRate, Tls, Workload};
use crate::units::{ByteCount, Rate};

impl Suite {
    /// The suite as a file that [`Suite::parse`] reads back as an equal suite.
    ///
    /// Everything is written out, defaults too: the file is to mean the same to a later weir with other defaults.
    pub fn to_toml(&self) -> String {
        let file = SuiteFile {
            suite: head(self),
            tls: tls(&self.tls),
            workload: self.workloads.iter().map(workload).collect(),
            load: self.loads.iter().map(load).collect(),
            scale: ScaleTables {
                smoke: self.scales.get(&Scale::Smoke).map(scale),
                fit: self.scales.get(&Scale::Fit).map(scale),
                full: self.scales.get(&Scale::Full).map(scale),
            },
        };
        // Every key is a text and every number fits: what could fail is a map whose keys are no texts.
        toml::to_string(&file).unwrap_or_else(|error| format!("# this suite cannot be written: {error}\n"))
    }
}

fn head(suite: &Suite) -> Head {
    let product = |entry: &Entry| EntryName(format!("{}:{}", entry.product, entry.profile));
    Head {
        name: Some(suite.name.clone()),
        title: suite.title.clone(),
        question: suite.question.clone(),
        blocks: suite.blocks,
        seed: suite.seed.map(|seed| match i64::try_from(seed) {
            Ok(number) => Seed::Number(number),
            Err(_) => Seed::Text(seed.to_string()),
        }),
        origin: suite.origin.clone(),
        products: suite.entries.iter().map(product).collect(),
        profile: None,
    }
}

fn tls(tls: &Tls) -> TlsTable {
    let (oldest, newest) = tls.versions;
    let versions = if oldest == newest { vec![oldest] } else { vec![oldest, newest] };
    TlsTable { key: tls.key, versions, resumption: tls.resumption }
}

fn workload(workload: &Workload) -> WorkloadTable {
    let request = &workload.request;
    let mut table = WorkloadTable {
        name: workload.name.clone(),
        title: Some(workload.title.clone()),
        protocol: workload.protocol,
        // A valid workload's method is one of these.
        method: Method::from_name(&request.method).unwrap_or_default(),
        path: request.path.clone(),
        headers: Headers::from_flat(&request.headers),
        body: None,
        body_bytes: None,
        body_hex: None,
        expect: ExpectTable {
            status: workload.expect.status,
            size: workload.expect.size.map(ByteCount),
            hash: workload.expect.hash.map(|hash| format!("{hash:016x}")),
        },
        loads: workload.loads.clone(),
        products: workload.products.as_ref().map(|some| some.iter().map(|one| EntryName(one.to_string())).collect()),
        by_product: workload.by_product,
    };
    if request.body.is_empty() {
        return table;
    }
    // A long generated body is written as what it was in the suite; a short one reads better as text.
    let size = request.body.len() as u64;
    if size > 64 && request.body == generated_body(size) {
        table.body_bytes = Some(ByteCount(size));
    } else if let Ok(text) = std::str::from_utf8(&request.body) {
        table.body = Some(text.to_owned());
    } else {
        table.body_hex = Some(request.body.iter().fold(String::new(), |mut hex, byte| {
            // Writing to a String cannot fail.
            let _ = write!(hex, "{byte:02x}");
            hex
        }));
    }
    table
}

fn load(load: &Load) -> LoadTable {
    let (kind, rate, arrivals) = match &load.kind {
        LoadKind::Closed => (KindName::Closed, None, None),
        LoadKind::Count { .. } => (KindName::Count, None, None),
        LoadKind::Search { .. } => (KindName::Search, None, None),
        LoadKind::Open { rate, arrivals } => (KindName::Open, rate_value(rate), Some(*arrivals)),
    };
    LoadTable {
        name: load.name.clone(),
        title: Some(load.title.clone()),
        kind,
        requests: if let LoadKind::Count { requests } = load.kind { Some(requests) } else { None },
        objective: if let LoadKind::Search { objective } = &load.kind { Some(objective_text(objective)) } else { None },
        rate,
        rounds: if let Series::Rounds(rounds) = load.series { Some(rounds) } else { None },
        shares: if let Series::Shares(shares) = &load.series { Some(shares.clone()) } else { None },
        connection_counts: if let Series::Connections(counts) = &load.series { Some(counts.clone()) } else { None },
        arrivals,
        steady: load.steady.map(Into::into),
        saturating: load.saturating,
        cores: load.least_cores,
        connections: load.connections,
        streams: load.streams,
        warmup: load.warmup.into(),
        duration: load.duration.into(),
        timeout: load.timeout.into(),
    }
}

fn objective_text(objective: &[Condition]) -> String {
    objective.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn rate_value(rate: &RateSpec) -> Option<RateValue> {
    match rate {
        // A valid load's rate is in range.
        RateSpec::Fixed(rate) => Rate::new(*rate).ok().map(RateValue::Fixed),
        RateSpec::Share { share, of, load } => {
            Some(RateValue::Share(ShareTable { share: *share, of: *of, load: load.clone() }))
        }
        RateSpec::Table(rows) => {
            let row = |row: &TableRate| {
                let rate = Rate::new(row.rate).ok()?;
                Some(TableRateTable { workload: row.workload.clone(), product: row.product.clone(), rate })
            };
            Some(RateValue::Table(rows.iter().filter_map(row).collect()))
        }
    }
}

fn scale(scale: &ScaleOverride) -> ScaleTable {
    ScaleTable {
        blocks: scale.blocks,
        products: scale.products.clone(),
        workloads: scale.workloads.clone(),
        loads: scale.loads.clone(),
        requests: scale.requests,
        warmup: scale.warmup.map(Into::into),
        duration: scale.duration.map(Into::into),
    }
}
