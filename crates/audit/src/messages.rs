//! Streams whose messages were changed or held on the way, and those whose origin is not told that the client cancels them.

use weir_model::load::{Cancellation, MessageResult, StreamVerdict};
use weir_model::record::{Finding, Severity};
use weir_model::text::human_us;

use super::{Evidence, finding, finding_with};

/// One of so many is invalid.
const INVALID: u64 = 10_000;

/// The share of cancelled streams that the origin may see too late: a reset may meet the end of its stream.
const ALLOWED: f64 = 0.01;

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let messages = e.load.messages.as_ref()?;
    changed(messages).or_else(|| held(e, messages))
}

/// Messages that came otherwise than they were sent, and streams that ended too early without saying so.
fn changed(messages: &MessageResult) -> Option<Finding> {
    let total = &messages.total;
    // Another sender's messages have no stamp, and weir's own are altered then.
    let unstamped = Some(("altered", total.unstamped)).filter(|(_, n)| *n > 0);
    let wrong: Vec<(&str, u64)> = total.wrong().chain(unstamped).collect();
    let all: u64 = wrong.iter().map(|(_, n)| n).sum::<u64>() + total.cut_short;
    if all == 0 {
        return None;
    }
    let mut words: Vec<String> = wrong.iter().map(|(what, n)| format!("{n} {what}")).collect();
    if total.cut_short > 0 {
        words.push(format!("{} of {} streams ended like complete ones before their end", total.cut_short, total.begun));
    }
    let severity = if all.saturating_mul(INVALID) > total.received { Severity::Fatal } else { Severity::Warning };
    finding("messages", severity, format!("of {} messages: {}", total.received, words.join(", ")))
}

/// Messages that did not go on as they came.
fn held(e: &Evidence<'_>, messages: &MessageResult) -> Option<Finding> {
    let verdict = messages.verdict().filter(|verdict| *verdict != StreamVerdict::Passes)?;
    if !e.proxied {
        let message = format!("without a product the path {verdict}: client or origin is late");
        return finding_with("held-messages", Severity::Warning, message, "give client and origin CPUs of their own");
    }
    let delay = match messages.delay.count {
        0 => String::new(),
        _ => format!(": half of its messages took more than {}", human_us(messages.delay.p50_us)),
    };
    finding("held-messages", Severity::Note, format!("the product {verdict}{delay}"))
}

/// Streams that the client cancels, and whose origin is not told.
pub fn cancellations(e: &Evidence<'_>) -> Option<Finding> {
    let found = e.load.messages.as_ref()?.cancellation?;
    let Cancellation { cancelled, seen, in_time, .. } = found;
    if (cancelled - in_time) as f64 <= ALLOWED * cancelled as f64 {
        return None;
    }
    let within = human_us(Cancellation::WITHIN.as_micros() as f64);
    let mut message = format!(
        "the client cancelled {cancelled} streams in their middle, and the origin saw {in_time} of them end within {within}"
    );
    if seen > in_time {
        message += &format!(", the last one after {}", human_us(found.max_us));
    }
    if seen < cancelled {
        message += &format!("; {} of them it never saw end early", cancelled - seen);
    }
    if !e.proxied {
        return finding_with("cancellations", Severity::Warning, message, "give client and origin CPUs of their own");
    }
    finding("cancellations", Severity::Note, message)
}

#[cfg(test)]
pub(super) mod tests {
    use weir_model::load::{Cancellation, MessageCounts, MessageResult, Quantiles};
    use weir_model::record::Severity;

    use crate::fixture::{Trial, good};

    /// A trial of ten streams of 64 messages, so many of which came with others.
    pub fn streams(gathered: u64, change: impl FnOnce(&mut MessageCounts)) -> Trial {
        let mut trial = good();
        let mut counts =
            MessageCounts { received: 640, bytes: 128_000, gathered, begun: 10, whole: 10, ..MessageCounts::default() };
        change(&mut counts);
        let delay = Quantiles { count: 640, p50_us: 106_000.0, ..Quantiles::default() };
        trial.load.messages = Some(MessageResult { delay, window: counts, total: counts, ..MessageResult::default() });
        trial
    }

    #[test]
    fn messages_that_are_lost_or_changed_are_found() {
        assert_eq!(streams(0, |_| ()).check(super::check), None);
        assert_eq!(good().check(super::check), None, "no streams");
        let changes: [fn(&mut MessageCounts); 7] = [
            |c| c.lost = 1,
            |c| c.doubled = 1,
            |c| c.reordered = 1,
            |c| c.altered = 1,
            |c| c.foreign = 1,
            |c| c.unstamped = 1,
            |c| c.cut_short = 1,
        ];
        for change in changes {
            assert_eq!(streams(0, change).check(super::check).expect("fires").severity, Severity::Fatal);
        }
        let one_in_many = |c: &mut MessageCounts| (c.received, c.lost) = (20_000, 1);
        assert_eq!(streams(0, one_in_many).check(super::check).expect("fires").severity, Severity::Warning);
    }

    #[test]
    fn a_product_that_holds_messages_is_named_and_ranked() {
        let found = streams(570, |_| ()).check(super::check).expect("fires");
        assert_eq!((found.check.as_str(), found.severity), ("held-messages", Severity::Note));
        let mut direct = streams(570, |_| ());
        direct.proxied = false;
        assert_eq!(direct.check(super::check).expect("fires").severity, Severity::Warning);
    }

    /// A trial of 200 streams that were cancelled, so many of which the origin saw end, and so many in time.
    pub fn cancelled(seen: u64, in_time: u64) -> Trial {
        let mut trial = good();
        let cancellation =
            Cancellation { cancelled: 200, seen, in_time, p50_us: 400.0, p99_us: 900.0, max_us: 1_300_000.0 };
        let total = MessageCounts { cancelled: 200, ..MessageCounts::default() };
        trial.load.messages =
            Some(MessageResult { cancellation: Some(cancellation), total, ..MessageResult::default() });
        trial
    }

    #[test]
    fn a_product_that_keeps_cancellations_to_itself_is_named_and_ranked() {
        for in_time in [200, 198] {
            assert_eq!(cancelled(200, in_time).check(super::cancellations), None, "{in_time}");
        }
        assert_eq!(good().check(super::cancellations), None, "no streams");
        for (seen, in_time) in [(200, 197), (0, 0)] {
            let found = cancelled(seen, in_time).check(super::cancellations).expect("fires");
            assert_eq!((found.check.as_str(), found.severity), ("cancellations", Severity::Note));
        }
        let mut direct = cancelled(0, 0);
        direct.proxied = false;
        assert_eq!(direct.check(super::cancellations).expect("fires").severity, Severity::Warning);
    }
}
