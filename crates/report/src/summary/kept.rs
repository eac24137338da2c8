//! Says that products were kept from one workload to the next, and where they were not. Called by `section`.

use weir_model::text::{grouped, list};

use crate::run::{Run, Trial};

/// Sentences for a section's trials; none where nothing was kept.
pub(super) fn words(run: &Run, trials: &[&Trial]) -> Vec<String> {
    let kept = || trials.iter().filter_map(|trial| Some((*trial, trial.measurement.kept?)));
    let entries = kept().filter_map(|(trial, kept)| {
        let entry = run.suite.entries.iter().find(|entry| trial.is_of(entry))?;
        Some(((kept.place, kept.of), run.label_of(entry)))
    });
    let places = grouped(entries);
    let place = |(place, of): (u32, u32)| format!("number {place} of {of}");
    let which = match places.as_slice() {
        [] => return Vec::new(),
        [(alike, _)] => place(*alike),
        several => list(
            &several.iter().map(|(own, labels)| format!("{} for {}", place(*own), each(labels))).collect::<Vec<_>>(),
        ),
    };
    let mut sentences = vec![format!(
        "Product and origin were started once for several workloads and kept from one to the next, with all that a workload left \
         behind, such as idle connections; this was {which}."
    )];
    let anew = kept().filter(|(trial, kept)| kept.is_anew(trial.measurement.trial));
    let anew: Vec<String> = anew
        .map(|(trial, kept)| format!("trial {} (started for trial {})", trial.measurement.trial, kept.since))
        .collect();
    if !anew.is_empty() {
        sentences.push(format!(
            "What earlier workloads left behind was gone in {}: the run was interrupted, or the product was not tried before.",
            list(&anew)
        ));
    }
    sentences
}

/// Labels, each once.
fn each(labels: &[String]) -> String {
    list(&weir_model::text::unique(labels.iter().cloned()))
}
