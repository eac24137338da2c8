//! Does a product still give each client its own answer? One that put a connection to the origin back while an answer was still on
//! its way gives that answer to whoever asks next; it serves, and all that it says is another's.

use super::talk::{Door, Heard, Line, PATIENCE, Trouble, Two};

/// Sizes of bodies that are asked for, each on a connection of its own.
const SIZES: [usize; 5] = [1, 2, 3, 128, 300];

/// Requests at once: more than connections that a product has kept from the checks, which ask over ten at most.
const AT_ONCE: usize = 20;

/// Asks for a target.
pub fn ask(door: &Door, two: bool, target: &str) -> Result<Heard, Trouble> {
    if !two {
        return door.get(target);
    }
    let heard = Two::open(door)?.get_all(&[target], PATIENCE)?;
    heard.into_iter().next().ok_or(Trouble::Closed)
}

/// Fails when an answer is another request's: a right one, of another size, or of a status that nothing here has. Errors are not
/// another's. All requests are sent before an answer is read, so that every connection that the product has kept is used.
///
/// # Errors
/// What came, in words for the cell of what was asked before.
pub fn own_answers(door: &Door, two: bool) -> Result<(), String> {
    let targets = (0..AT_ONCE).map(|nth| SIZES[nth % SIZES.len()]);
    if two {
        return targets.take(SIZES.len()).try_for_each(|size| judge(size, ask(door, true, &target(size))));
    }
    let asked: Vec<(usize, Result<Line, Trouble>)> = targets.map(|size| (size, sent(door, size))).collect();
    asked.into_iter().try_for_each(|(size, line)| judge(size, line.and_then(|mut line| line.answer(PATIENCE))))
}

fn target(size: usize) -> String {
    format!("/bytes/{size}")
}

fn sent(door: &Door, size: usize) -> Result<Line, Trouble> {
    let mut line = door.open()?;
    line.send(&door.request("GET", &target(size), &[]), false, PATIENCE)?;
    Ok(line)
}

fn judge(size: usize, heard: Result<Heard, Trouble>) -> Result<(), String> {
    let came = match heard {
        Ok(heard) if heard.status == 200 && heard.body.len() != size => format!("{} bytes", heard.body.len()),
        Ok(heard) if (201..400).contains(&heard.status) => heard.status.to_string(),
        _ => return Ok(()),
    };
    Err(format!("afterwards clients get answers that belong to others ({} got {came})", target(size)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Asked, Fake, Say, answer, origin};
    use weir_host::stop::Stop;

    fn judged(fake: &Fake) -> Result<(), String> {
        own_answers(&Door::plain(fake.addr, Stop::new()), false)
    }

    #[test]
    fn an_answer_that_is_anothers_is_noticed() {
        assert_eq!(judged(&Fake::faithful()), Ok(()));
        let errors = Fake::new(|_| Say::Next(answer(502, "", b"bad gateway")));
        assert_eq!(judged(&errors), Ok(()), "an error is a product's own");
        let last = std::sync::Mutex::new("/_weir/ready".to_owned());
        let one_behind = Fake::new(move |asked| {
            let before = std::mem::replace(&mut *last.lock().expect("not poisoned"), asked.target.clone());
            Say::Next(origin(&Asked { target: before, ..asked.clone() }))
        });
        for _ in 0..2 {
            let said = judged(&one_behind).expect_err("somebody got another's");
            assert!(said.starts_with("afterwards clients get answers that belong to others (/bytes/"), "{said}");
        }
    }
}
