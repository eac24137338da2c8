//! Whether workloads and loads of two runs ask the same: the parts in which they differ, in words. Runs that are compared or laid beside
//! each other need it. Titles may differ, and so may windows and warm-ups, which readers are told.
//!
//! Each field is named here, so that a new one cannot be forgotten.

use crate::suite::{Load, Workload};

impl Workload {
    /// The parts in which another workload asks something else, as readers know them; empty when both ask the same. Settings of TLS are left
    /// to the caller: those of the suite stand in for a workload's.
    pub fn differs_in(&self, other: &Workload) -> Vec<&'static str> {
        let Workload {
            name: _,
            title: _,
            protocol,
            request,
            keyvalue,
            request_ids: _,
            accept_encoding,
            stream,
            cancel_each,
            origins: _,
            gateway,
            origin_headers,
            expect,
            tls: _,
            loads: _,
            products: _,
            baseline: _,
            by_product,
        } = self;
        let its = &other.request;
        differing(&[
            ("protocol", *protocol != other.protocol),
            ("method", request.method != its.method),
            ("path", request.path != its.path),
            ("headers", request.headers != its.headers),
            ("body", request.body != its.body),
            ("request IDs", self.request_id_header() != other.request_id_header()),
            ("content coding accepted", *accept_encoding != other.accept_encoding),
            ("stream", *stream != other.stream),
            ("share of cancelled streams", *cancel_each != other.cancel_each),
            ("operations on keys", *keyvalue != other.keyvalue),
            ("number of origins", self.origin_count() != other.origin_count()),
            ("gateway", *gateway != other.gateway),
            ("origin's headers", *origin_headers != other.origin_headers),
            ("expected response", *expect != other.expect),
            ("place where requests are answered", *by_product != other.by_product),
        ])
    }
}

impl Load {
    /// The parts in which another load asks something else, as readers know them; empty when both ask the same.
    pub fn differs_in(&self, other: &Load) -> Vec<&'static str> {
        let Load {
            name: _,
            title: _,
            kind,
            series,
            restart,
            values,
            connections,
            clients: _,
            stagger: _,
            streams,
            close,
            steady: _,
            saturating,
            keep,
            control: _,
            least_cores: _,
            warmup: _,
            duration: _,
            timeout: _,
            connect_timeout: _,
            change_every,
            faults,
        } = self;
        differing(&[
            ("way in which requests arrive", *kind != other.kind),
            ("series", *series != other.series || *saturating != other.saturating),
            ("keeping of products", *keep != other.keep || *restart != other.restart),
            ("length of values", *values != other.values),
            ("faults", *faults != other.faults),
            ("changes of the route", *change_every != other.change_every),
            ("closing of connections", *close != other.close),
            ("number of connections", *connections != other.connections),
            ("number of streams", *streams != other.streams),
        ])
    }
}

fn differing(parts: &[(&'static str, bool)]) -> Vec<&'static str> {
    parts.iter().filter(|(_, differs)| *differs).map(|(name, _)| *name).collect()
}
