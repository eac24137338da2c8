//! Counts the requests that are lost when a product reloads under load.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{Lost, ask_over};
use crate::cell::Cell;
use crate::testbed::{Testbed, pause};
use weir_model::text::count;
use weir_product::client::{Endpoint, Http1, RequestError};

pub const BETWEEN: Duration = Duration::from_millis(1500);

pub fn with(bed: &mut dyn Testbed, between: Duration) -> Result<Cell, Cell> {
    if !bed.can_reload() {
        return Ok(Cell::absent("its file names no way to reload"));
    }
    let endpoint = bed.product();
    let before = bed.pids();
    let over = AtomicBool::new(false);
    let mut reloads = Ok(());
    let counts: Vec<Count> = std::thread::scope(|scope| {
        let threads: Vec<_> = [true, true, false, false]
            .map(|keeps| {
                scope.spawn({
                    let (endpoint, over) = (&endpoint, &over);
                    move || client(endpoint, keeps, over)
                })
            })
            .into();
        for _ in 0..2 {
            pause(bed.stop(), between);
            if reloads.is_ok() {
                reloads = bed.reload();
            }
        }
        pause(bed.stop(), between);
        over.store(true, Ordering::SeqCst);
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    if let Err(why) = reloads {
        return Ok(Cell::no("fails").with(why));
    }
    let asked: u64 = counts.iter().map(|count| count.asked).sum();
    let lost: u64 = counts.iter().map(|count| count.lost).sum();
    let replaced = bed.pids().iter().any(|pid| !before.contains(pid));
    let how = if replaced { "new processes take over" } else { "the processes stay the same" };
    let how = counts
        .iter()
        .find_map(|count| count.first.clone())
        .map_or(how.to_owned(), |first| format!("the first lost: {first}; {how}"));
    Ok(match lost {
        0 => Cell::new(crate::Verdict::Yes, "0 lost").with(format!("of {}", count(asked))).with(how),
        n => Cell::odd(format!("{} lost", count(n))).with(format!("of {}", count(asked))).with(how),
    })
}

#[derive(Debug, Default)]
struct Count {
    asked: u64,
    lost: u64,
    /// How the first lost request failed.
    first: Option<String>,
}

fn client(endpoint: &Endpoint, keeps: bool, over: &AtomicBool) -> Count {
    let mut count = Count::default();
    let request = endpoint.request("GET", "/bytes/128", &[]);
    let mut conn: Option<Http1> = None;
    while !over.load(Ordering::SeqCst) {
        count.asked += 1;
        let kept = conn.is_some();
        match ask_over(endpoint, conn.take(), &request) {
            Ok(open) => conn = open.filter(|_| keeps),
            Err(Lost::Failed(RequestError::Stopped)) => return count,
            Err(lost) => {
                let why = lost.word();
                count.lost += 1;
                count
                    .first
                    .get_or_insert_with(|| format!("{why} on a {} connection", if kept { "kept" } else { "new" }));
                // A pause, so that a product that is down for a moment does not get a million requests meanwhile.
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Verdict;
    use crate::cell::either;
    use crate::fake::{FakeTestbed, Reply};

    #[test]
    fn losses_are_counted() {
        assert_eq!(either(with(&mut FakeTestbed::good(), Duration::ZERO)).verdict, Verdict::Absent);
        let short = Duration::from_millis(100);
        let mut good = FakeTestbed::good();
        good.on_reload = Some(Box::new(|| {}));
        let cell = either(with(&mut good, short));
        assert_eq!((cell.says.as_str(), cell.verdict), ("0 lost", Verdict::Yes));
        assert!(cell.note.expect("a note").ends_with("the processes stay the same"));
        let drops = Arc::new(AtomicBool::new(false));
        let drop_one = drops.clone();
        let mut bad =
            FakeTestbed::but(move |_| drop_one.swap(false, Ordering::SeqCst).then(|| Reply::Close(Vec::new())));
        bad.on_reload = Some(Box::new(move || drops.store(true, Ordering::SeqCst)));
        let cell = either(with(&mut bad, short));
        assert_eq!((cell.says.as_str(), cell.verdict), ("2 lost", Verdict::Odd));
        assert!(cell.note.expect("a note").contains("the first lost: closes on a "));
    }
}
