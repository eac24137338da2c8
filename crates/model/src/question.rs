//! Whether workloads and loads of two runs ask the same: the parts in which they differ, in words. Runs that are compared or laid beside
//! each other need it. Titles may differ, and so may windows and warm-ups, which readers are told.

use crate::suite::{Load, Workload};

impl Workload {
    /// The parts in which another workload asks something else, as readers know them; empty when both ask the same.
    pub fn differs_in(&self, other: &Workload) -> Vec<&'static str> {
        let (own, its) = (&self.request, &other.request);
        differing(&[
            ("protocol", self.protocol != other.protocol),
            ("method", own.method != its.method),
            ("path", own.path != its.path),
            ("headers", own.headers != its.headers),
            ("body", own.body != its.body),
            ("content coding accepted", self.accept_encoding != other.accept_encoding),
            ("stream", self.stream != other.stream),
            ("operations on keys", self.keyvalue != other.keyvalue),
            ("origin's headers", self.origin_headers != other.origin_headers),
            ("expected response", self.expect != other.expect),
        ])
    }
}

impl Load {
    /// The parts in which another load asks something else, as readers know them; empty when both ask the same.
    pub fn differs_in(&self, other: &Load) -> Vec<&'static str> {
        differing(&[
            ("way in which requests arrive", self.kind != other.kind),
            ("series", self.series != other.series || self.saturating != other.saturating),
            ("keeping of products", self.keep != other.keep || self.restart != other.restart),
            ("length of values", self.values != other.values),
            ("changes of the route", self.change_every != other.change_every),
            ("closing of connections", self.close != other.close),
            ("number of connections", self.connections != other.connections),
            ("number of streams", self.streams != other.streams),
        ])
    }
}

fn differing(parts: &[(&'static str, bool)]) -> Vec<&'static str> {
    parts.iter().filter(|(_, differs)| *differs).map(|(name, _)| *name).collect()
}
