//! The exit status of a load, and the reason for it (`--fail-if`). Called by `verbs::load` and `verbs::load::find_max`.

use console::style;
use weir_model::condition::Condition;
use weir_model::load::LoadResult;

use crate::exit::{Exit, VerbResult};

/// `--fail-if` decides where it was given, otherwise any request without a right answer fails. Prints the reasons.
///
/// # Errors
/// None; the type is that of verbs.
pub fn exit_status(fail_if: &[Condition], result: &LoadResult) -> VerbResult {
    let reasons = reasons(fail_if, result);
    reasons.iter().for_each(|reason| remark!("{} failed: {reason}", style("weir:").red().bold().for_stderr()));
    if result.cut_short {
        return Ok(Exit::Interrupted);
    }
    let failed = result.window.error_count() + result.window.unsent > 0;
    let failed = if fail_if.is_empty() { failed } else { !reasons.is_empty() };
    Ok(if failed { Exit::Failed } else { Exit::Ok })
}

/// Conditions that hold, with what was measured, and conditions that cannot be judged: those must not pass silently.
fn reasons(fail_if: &[Condition], result: &LoadResult) -> Vec<String> {
    fail_if
        .iter()
        .filter_map(|condition| match condition.value_of(result) {
            None => Some(format!("{}, so --fail-if '{condition}' cannot be judged", condition.finding(result))),
            Some(_) => {
                condition.holds(result).then(|| format!("{} (--fail-if '{condition}')", condition.finding(result)))
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::load::sample;

    #[test]
    fn conditions_decide_where_there_are_some() {
        let list = |text: &str| Condition::list(text).expect("conditions");
        let (plain, failing) = (sample::plain().result, sample::failing().result);
        assert_eq!(exit_status(&[], &plain).expect("judged"), Exit::Ok);
        assert_eq!(exit_status(&[], &failing).expect("judged"), Exit::Failed);
        assert_eq!(exit_status(&list("errors>10%"), &failing).expect("judged"), Exit::Ok);
        assert_eq!(exit_status(&list("errors>10%, p99>1ms"), &failing).expect("judged"), Exit::Failed);
        let cut = LoadResult { cut_short: true, ..plain.clone() };
        assert_eq!(exit_status(&list("p99>1ms"), &cut).expect("judged"), Exit::Interrupted);
        assert_eq!(reasons(&list("p99>1ms"), &plain), ["p99 is 1.04 ms (--fail-if 'p99>1ms')"]);
        let unknown = reasons(&list("handshake.p99>1ms"), &plain);
        assert!(unknown[0].contains("was not measured") && unknown[0].contains("cannot be judged"), "{unknown:?}");
    }
}
