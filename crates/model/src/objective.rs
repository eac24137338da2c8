//! Adds a search for the highest rate that meets an objective to a suite, beside its own loads or instead of them.
//! Called by `weir run --objective`.

use std::time::Duration;

use crate::InputError;
use crate::condition::Condition;
use crate::suite::{Load, LoadKind, Series, Suite};

/// The name of the load that a flag adds.
pub const OBJECTIVE: &str = "objective";

impl Suite {
    /// The suite with a search for the highest rate at which all of `objective` holds, for every workload. Connections and
    /// lengths are those of the first closed load. With `alone` it is the only load: a search needs no other.
    ///
    /// # Errors
    /// When no load says over how many connections to search.
    pub fn with_objective(&self, objective: Vec<Condition>, alone: bool) -> Result<Suite, InputError> {
        let closed = |load: &&Load| load.kind == LoadKind::Closed && load.series == Series::Once;
        let model = self.loads.iter().find(closed).or_else(|| self.loads.first()).ok_or_else(|| {
            InputError::of("--objective", "the suite has no load to take connections and lengths from", "another suite")
        })?;
        let conditions: Vec<String> = objective.iter().map(ToString::to_string).collect();
        let name = (1..).map(numbered).find(|name| self.load(name).is_none()).unwrap_or_default();
        let load = Load {
            name: name.clone(),
            title: format!("the highest rate with {}", conditions.join(", ")),
            kind: LoadKind::Search { objective },
            series: Series::Once,
            restart: false,
            values: Vec::new(),
            saturating: false,
            keep: false,
            least_cores: None,
            ..model.clone()
        };
        let load = if matches!(model.kind, LoadKind::Count { .. }) { windowed(load) } else { load };
        let mut suite = self.clone();
        if alone {
            suite.loads.clear();
        }
        suite.loads.push(load);
        for loads in suite.workloads.iter_mut().filter_map(|workload| workload.loads.as_mut()) {
            if alone {
                loads.clear();
            }
            loads.push(name.clone());
        }
        for loads in suite.scales.values_mut().filter_map(|scale| scale.loads.as_mut()) {
            if alone {
                loads.clear();
            }
            loads.push(name.clone());
        }
        Ok(suite)
    }
}

/// Of a fixed number of requests the duration is a limit, and there is no warm-up: a search's trials get lengths of their own.
fn windowed(load: Load) -> Load {
    Load { duration: load.duration.min(Duration::from_secs(10)), warmup: Duration::from_secs(1), ..load }
}

fn numbered(nth: u32) -> String {
    if nth == 1 { OBJECTIVE.to_owned() } else { format!("{OBJECTIVE}-{nth}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{catalogue, suite};
    use crate::suite::Scale;

    fn objective() -> Vec<Condition> {
        Condition::list("p99<5ms, errors<0.1%").expect("conditions")
    }

    #[test]
    fn a_search_takes_connections_and_lengths_from_the_closed_load() {
        let mut own = suite();
        own.loads.reverse();
        own.workloads[0].loads = Some(vec!["latency".to_owned()]);
        let asked = own.with_objective(objective(), false).expect("there is a load");
        let (search, capacity) = (asked.loads.last().expect("added"), own.load("capacity").expect("there"));
        assert_eq!((search.connections, search.duration, search.warmup), (4, capacity.duration, capacity.warmup));
        assert_eq!(search.title, "the highest rate with p99<5ms, errors<0.1%");
        assert_eq!(asked.loads.len(), 3);
        assert_eq!(asked.cases(search, &[]).len(), 6, "workloads that name their loads are asked, too");
    }

    #[test]
    fn alone_it_runs_at_every_scale_and_nothing_else_does() {
        let mut own = suite();
        own.scales.entry(Scale::Fit).or_default().loads = Some(vec!["capacity".to_owned()]);
        let asked = own.with_objective(objective(), true).expect("there is a load");
        for scale in [Scale::Smoke, Scale::Fit, Scale::Full] {
            let names: Vec<String> = asked.at_scale(scale).0.loads.into_iter().map(|load| load.name).collect();
            assert_eq!(names, [OBJECTIVE]);
        }
        let text = asked.to_toml();
        assert_eq!(Suite::parse("quick.toml", &text, &catalogue()).expect("a valid suite"), asked);
    }

    #[test]
    fn a_load_of_that_name_is_not_replaced() {
        let twice = suite().with_objective(objective(), false).and_then(|one| one.with_objective(objective(), false));
        let names: Vec<String> = twice.expect("there is a load").loads.into_iter().map(|load| load.name).collect();
        assert_eq!(names, ["capacity", "latency", "objective", "objective-2"]);
    }
}
