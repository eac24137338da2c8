//! What the client is told to do, from the case and the point.

use std::net::SocketAddr;

use weir_model::load::{LoadProtocol, LoadSpec, Shape, Target};
use weir_model::suite::{Expect, LoadKind};

use super::points::PointOrder;
use super::{Bench, Order};
use weir_product::failure::Failure;

/// The order for one point.
pub fn load_spec(
    bench: &Bench,
    order: &Order<'_>,
    point: &PointOrder,
    target: SocketAddr,
    expect: &Expect,
) -> Result<LoadSpec, Failure> {
    let protocol = order.workload.protocol;
    let authority = bench.launcher.wire_protocol(protocol)?.authority(target);
    let shape = match (&order.load.kind, point.rate) {
        (LoadKind::Open { arrivals, .. }, Some(rate)) => Shape::Open { rate, arrivals: *arrivals },
        (LoadKind::Count { requests }, _) => Shape::Count { requests: *requests },
        // A search is told its rates one after another.
        (LoadKind::Closed | LoadKind::Search { .. } | LoadKind::Open { .. }, _) => Shape::Closed,
    };
    let warmup = match order.load.kind {
        LoadKind::Count { .. } => std::time::Duration::ZERO,
        _ => order.load.warmup,
    };
    Ok(LoadSpec {
        shape,
        protocol: LoadProtocol::of(protocol, order.load.streams),
        tls: protocol.is_tls().then(|| bench.launcher.tls.order()),
        connections: point.connections,
        threads: (bench.placement.client.len() as u32).min(point.connections),
        cpus: bench.placement.client.clone(),
        warmup_s: warmup.as_secs_f64(),
        duration_s: order.load.duration.as_secs_f64(),
        timeout_s: order.load.timeout.as_secs_f64(),
        leave_queue: order.load.leaves_queue(),
        seed: seed(bench.seed, order.planned.block, point.point),
        driver: bench.driver,
        ..LoadSpec::new(Target::tcp(target, authority), order.workload.request.clone(), expect.clone())
    })
}

/// The same arrivals for every product of a block, because what is compared is offered alike; others at every point.
fn seed(run: u64, block: u32, point: u32) -> u64 {
    run ^ u64::from(block) ^ (u64::from(point.saturating_sub(1)) << 32)
}
