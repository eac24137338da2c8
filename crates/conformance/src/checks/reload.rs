//! Reloads under load: how many requests are lost?

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weir_model::suite::Protocol;

use super::keep_alive::grouped;
use crate::cell::Cell;
use crate::rig::{Rig, pause};
use crate::table::{Check, When};
use crate::talk::{Door, Line, PATIENCE, Trouble};

/// Of the table.
pub const CHECK: Check = Check {
    name: "reload",
    title: "Reload under load",
    asks: "Two reloads of an unchanged configuration while 4 clients ask, 2 over kept connections and 2 over a new one a request: how many \
           requests get no right answer?",
    protocol: Protocol::Http11,
    when: When::Late,
    run,
};

const BETWEEN: Duration = Duration::from_millis(1500);

fn run(rig: &mut dyn Rig) -> Cell {
    with(rig, BETWEEN)
}

fn with(rig: &mut dyn Rig, between: Duration) -> Cell {
    if !rig.can_reload() {
        return Cell::absent("its file names no way to reload");
    }
    let door = rig.product();
    let before = rig.pids();
    let over = AtomicBool::new(false);
    let mut reloads = Ok(());
    let counts: Vec<Count> = std::thread::scope(|scope| {
        let threads: Vec<_> = [true, true, false, false]
            .map(|keeps| {
                scope.spawn({
                    let (door, over) = (&door, &over);
                    move || client(door, keeps, over)
                })
            })
            .into();
        for _ in 0..2 {
            pause(rig.stop(), between);
            if reloads.is_ok() {
                reloads = rig.reload();
            }
        }
        pause(rig.stop(), between);
        over.store(true, Ordering::SeqCst);
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    if let Err(why) = reloads {
        return Cell::no("fails").with(why);
    }
    let asked: u64 = counts.iter().map(|count| count.asked).sum();
    let lost: u64 = counts.iter().map(|count| count.lost).sum();
    let replaced = rig.pids().iter().any(|pid| !before.contains(pid));
    let how = if replaced { "new processes take over" } else { "the processes stay the same" };
    let how = counts
        .iter()
        .find_map(|count| count.first.clone())
        .map_or(how.to_owned(), |first| format!("the first lost: {first}; {how}"));
    match lost {
        0 => Cell::new(crate::Verdict::Yes, "0 lost").with(format!("of {}", grouped(asked))).with(how),
        n => Cell::odd(format!("{} lost", grouped(n))).with(format!("of {}", grouped(asked))).with(how),
    }
}

#[derive(Debug, Default)]
struct Count {
    asked: u64,
    lost: u64,
    /// What became of the first that was lost.
    first: Option<String>,
}

fn client(door: &Door, keeps: bool, over: &AtomicBool) -> Count {
    let mut count = Count::default();
    let request = door.request("GET", "/bytes/128", &[]);
    let mut line: Option<Line> = None;
    while !over.load(Ordering::SeqCst) {
        count.asked += 1;
        let kept = line.is_some();
        match ask(door, line.take(), &request) {
            Ok(open) => line = open.filter(|_| keeps),
            Err(Lost::Stopped) => return count,
            Err(Lost::Because(why)) => {
                count.lost += 1;
                count
                    .first
                    .get_or_insert_with(|| format!("{why} on a {} connection", if kept { "kept" } else { "new" }));
                // A product that is away for a moment is not asked a million times meanwhile.
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
    count
}

enum Lost {
    Stopped,
    Because(String),
}

impl From<Trouble> for Lost {
    fn from(trouble: Trouble) -> Lost {
        if trouble == Trouble::Stopped { Lost::Stopped } else { Lost::Because(trouble.word().to_owned()) }
    }
}

fn ask(door: &Door, line: Option<Line>, request: &[u8]) -> Result<Option<Line>, Lost> {
    let mut line = match line {
        Some(line) => line,
        None => door.open()?,
    };
    let heard = line.ask(request, false, PATIENCE)?;
    if heard.status != 200 || heard.body.len() != 128 {
        return Err(Lost::Because(heard.status.to_string()));
    }
    Ok(heard.keep_alive.then_some(line))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Verdict;
    use crate::fake::{Say, TestRig};

    #[test]
    fn losses_are_counted() {
        assert_eq!(with(&mut TestRig::good(), Duration::ZERO).verdict, Verdict::Absent);
        let short = Duration::from_millis(100);
        let mut good = TestRig::good();
        good.on_reload = Some(Box::new(|| {}));
        let cell = with(&mut good, short);
        assert_eq!((cell.says.as_str(), cell.verdict), ("0 lost", Verdict::Yes));
        assert!(cell.note.expect("a note").ends_with("the processes stay the same"));
        let drops = Arc::new(AtomicBool::new(false));
        let drop_one = drops.clone();
        let mut bad = TestRig::but(move |_| drop_one.swap(false, Ordering::SeqCst).then(|| Say::Last(Vec::new())));
        bad.on_reload = Some(Box::new(move || drops.store(true, Ordering::SeqCst)));
        let cell = with(&mut bad, short);
        assert_eq!((cell.says.as_str(), cell.verdict), ("2 lost", Verdict::Odd));
        assert!(cell.note.expect("a note").contains("the first lost: closes on a "));
    }
}
