//! A product that others have started: where clients reach it, the origin that its route leads to, and waiting until that works.
//! [`super::set_up`] calls it. It does not know what the product is.

use std::net::SocketAddr;

use weir_host::stop::Stop;
use weir_model::product::Served;
use weir_model::suite::{Protocol, Workload};
use weir_product::failure::Failure;
use weir_product::requester::Requester;

use crate::hosts::Hosts;

/// Its address, as the client's host resolves it now.
pub fn reached(hosts: &Hosts, served: &Served) -> Result<SocketAddr, Failure> {
    hosts.resolve(&served.address).map_err(|why| {
        let remedy = "correct `address` of its [served]: clients reach it from their host";
        Failure::at("start", format!("{} is not reached: {why}", served.address), "", remedy)
    })
}

/// The origins to which its route leads: one on each host, at the port that it has been given.
pub fn origins(hosts: &Hosts, served: &Served, workload: &Workload) -> Result<Vec<SocketAddr>, Failure> {
    let wanted = workload.origin_count() as usize;
    if wanted > hosts.origins.len() {
        let found = format!(
            "the workload {} has {wanted} origins, and a product that is served has one on each of {} hosts",
            workload.name,
            hosts.origins.len()
        );
        return Err(Failure::at("start", found, "", "a topology with as many hosts for origins, or another workload"));
    }
    Ok(hosts.origins.iter().map(|host| SocketAddr::new(host.facts().traffic(), served.origin_port)).collect())
}

/// Waits until the origin answers through it.
pub fn wait_ready(
    served: &Served,
    title: &str,
    to: (SocketAddr, Protocol),
    requester: &Requester,
    stop: &Stop,
) -> Result<(), Failure> {
    requester.wait_ready(to, served.ready_within, stop, || Ok(()))?.map_err(|last| {
        let Served { address, origin_port, .. } = served;
        let within = served.ready_within.as_secs_f64();
        let found =
            format!("no response of the origin came through {title} at {address} within {within} s; last try: {last}");
        let route = format!("see that it has a route for all paths and hosts to weir's origin at port {origin_port}");
        Failure::at("ready", found, "", route + "; raise `ready_within` if it is only slow")
    })
}
