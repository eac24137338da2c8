//! What a duet asks: the suite of two products, one workload and one load that its flags mean. Called by `verbs::duet`.

use std::collections::BTreeMap;
use std::time::Duration;

use weir_lab::skipped;
use weir_model::product::{Product, ProductKind};
use weir_model::record::Skipped;
use weir_model::suite::{Arrivals, Entry, Load, LoadKind, RateSpec, Suite};
use weir_model::text::{one_of, suggestion};
use weir_model::units::Rate;
use weir_product::catalogue::Catalogue;

use super::Args;
use super::side::Side;
use crate::args::parse_time;
use crate::exit::{Failure, wrong_value};

/// Default length of a pair of slices. Shorter ones spend more of their time on starts; longer ones are fewer starts.
pub const SLICE: &str = "2s";

/// Default length of a turn: shorter than what disturbs a machine lasts, and longer than what is in flight at its end.
pub const TURN: &str = "25ms";

/// Load before each window: its connections are new.
const WARMUP: Duration = Duration::from_millis(200);

/// The suite of a workload that names none.
const USUAL_SUITE: &str = "quick";

/// The profile of a side that names none.
const USUAL_PROFILE: &str = "tuned";

/// How requests arrive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LoadChoice {
    /// As fast as responses come.
    Capacity,
    /// At this rate.
    Rate(f64),
}

/// Reads `capacity` or a rate.
pub fn parse_load(text: &str) -> Result<LoadChoice, String> {
    match text {
        "capacity" => Ok(LoadChoice::Capacity),
        rate => rate
            .parse()
            .map(|rate: Rate| LoadChoice::Rate(rate.per_second()))
            .map_err(|error| wrong_value(error.found, "capacity, or requests a second, such as 5000 or 20k/s")),
    }
}

/// Reads the length of a slice.
pub fn parse_slice(text: &str) -> Result<Duration, String> {
    parse_time(Duration::from_millis(100)..=Duration::from_secs(60), "a time from 100ms to 60s, such as 2s")(text)
}

/// Reads the length of a turn.
pub fn parse_turn(text: &str) -> Result<Duration, String> {
    parse_time(Duration::from_millis(5)..=Duration::from_secs(30), "a time from 5ms to 30s, such as 25ms")(text)
}

/// The shortest time that is at least this long and in which both have the same number of turns.
fn whole_turns(time: Duration, turn: Duration) -> Duration {
    let both = 2 * turn.as_nanos();
    let times = time.as_nanos().div_ceil(both).max(1);
    Duration::from_nanos((times * both) as u64)
}

/// The suite of a duet, with the products by the names that it gives them.
#[derive(Debug)]
pub struct Question {
    pub suite: Suite,
    pub products: BTreeMap<String, Product>,
}

impl Question {
    /// # Errors
    /// A product, profile or workload that does not exist, or that does not fit the other.
    pub fn of(args: &Args, catalogue: &Catalogue) -> Result<Question, Failure> {
        let (name, workload) = args.workload.rsplit_once('/').unwrap_or((USUAL_SUITE, &args.workload));
        let suite = crate::library::suite(catalogue, name)?;
        let Some(workload) = suite.workload(workload) else {
            let names: Vec<&str> = suite.workloads.iter().map(|one| one.name.as_str()).collect();
            let found = format!("the suite {name} has no workload \"{workload}\"{}", suggestion(workload, &names));
            return Err(Failure::wrong("--workload", found, one_of(&names)));
        };
        let mut workload = workload.clone();
        (workload.loads, workload.products) = (None, None);
        let mut products = BTreeMap::new();
        let mut entries = Vec::new();
        for (side, letter, place) in [(&args.a, 'a', "A"), (&args.b, 'b', "B")] {
            let mut product = product(side, place, catalogue)?;
            // Products of one name are two.
            if args.a.product == args.b.product {
                product.name = format!("{}-{letter}", side.product);
                product.title = format!("{} ({place})", product.title);
            }
            let profile = side.profile.clone().unwrap_or_else(|| USUAL_PROFILE.to_owned());
            entries.push(Entry { product: product.name.clone(), profile });
            products.insert(product.name.clone(), product);
        }
        let suite = Suite {
            name: "duet".to_owned(),
            title: format!("{} and {} in turn", args.a.label(), args.b.label()),
            question: "Does the second differ from the first?".to_owned(),
            blocks: 1,
            seed: args.seed,
            origin: None,
            entries,
            workloads: vec![workload],
            loads: vec![load(args)],
            scales: BTreeMap::new(),
            as_published: None,
            ..suite
        };
        let unsupported = skipped::unsupported(&suite, &products);
        if !unsupported.is_empty() {
            return Err(Failure::input(Skipped::sentences(&unsupported).join("\n")));
        }
        Ok(Question { suite, products })
    }
}

fn product(side: &Side, place: &str, catalogue: &Catalogue) -> Result<Product, Failure> {
    let product = catalogue.product(&side.product, place).map_err(Failure::input)?.clone();
    if let ProductKind::Served(_) = product.kind {
        let found = format!("{} is served already, and a duet starts both", side.product);
        return Err(Failure::wrong(place, found, "a product that weir starts"));
    }
    if side.binary.is_some() && product.program().is_none() {
        return Err(Failure::wrong(place, format!("{} has no binary", side.product), side.product.clone()));
    }
    let profiles: Vec<&String> = product.proxy_profiles().collect();
    let profile = side.profile.as_deref().unwrap_or(USUAL_PROFILE);
    if profiles.iter().any(|name| *name == profile) {
        return Ok(product);
    }
    let found = format!("{} has no profile \"{profile}\"{}", side.product, suggestion(profile, &profiles));
    Err(Failure::wrong(place, found, one_of(&profiles)))
}

fn load(args: &Args) -> Load {
    let (name, kind) = match args.load {
        LoadChoice::Capacity => ("capacity", LoadKind::Closed),
        LoadChoice::Rate(rate) => ("rate", LoadKind::Open { rate: RateSpec::Fixed(rate), arrivals: Arrivals::Poisson }),
    };
    Load {
        name: name.to_owned(),
        title: name.to_owned(),
        kind,
        connections: args.connections,
        streams: 1,
        warmup: whole_turns(WARMUP, args.turn),
        duration: whole_turns(args.slice, args.turn),
        timeout: Duration::from_secs(10),
        ..Load::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_capacity_or_a_rate() {
        assert_eq!(parse_load("capacity"), Ok(LoadChoice::Capacity));
        assert_eq!(parse_load("20k/s"), Ok(LoadChoice::Rate(20_000.0)));
        assert!(parse_load("fast").expect_err("no load").contains("expected: capacity, or requests a second"));
    }

    #[test]
    fn a_slice_has_a_length_that_makes_sense() {
        assert_eq!(parse_slice("250ms"), Ok(Duration::from_millis(250)));
        assert!(parse_slice(SLICE).is_ok());
        for wrong in ["0s", "99ms", "2m", "x"] {
            assert!(parse_slice(wrong).is_err(), "{wrong}");
        }
        assert!(parse_turn(TURN).is_ok() && parse_turn("1ms").is_err() && parse_turn("x").is_err());
        let ms = Duration::from_millis;
        assert_eq!([1, 50, 51, 200].map(|time| whole_turns(ms(time), ms(25))), [50, 50, 100, 200].map(ms));
    }
}
