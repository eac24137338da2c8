//! Does a product still give each client its own answer? One that put a connection to the origin back while an answer was still on
//! its way gives that answer to whoever asks next; it serves, and all that it says is another's.

use super::talk::{Door, Heard, PATIENCE, Trouble, Two};

/// Sizes of bodies that are asked for, each on a connection of its own. All differ from each other and from what checks leave behind.
const SIZES: [usize; 5] = [1, 2, 3, 128, 300];

/// Asks for a target.
pub fn ask(door: &Door, two: bool, target: &str) -> Result<Heard, Trouble> {
    if !two {
        return door.get(target);
    }
    let heard = Two::open(door)?.get_all(&[target], PATIENCE)?;
    heard.into_iter().next().ok_or(Trouble::Closed)
}

/// Fails when an answer is another request's: a right one, of another size, or of a status that nothing here has. Errors are not
/// another's.
///
/// # Errors
/// What came, in words for the cell of what was asked before.
pub fn own_answers(door: &Door, two: bool) -> Result<(), String> {
    for size in SIZES {
        let target = format!("/bytes/{size}");
        let Ok(heard) = ask(door, two, &target) else { continue };
        if (heard.status == 200 && heard.body.len() != size) || (201..400).contains(&heard.status) {
            let came = match heard.status {
                200 => format!("{} bytes", heard.body.len()),
                other => other.to_string(),
            };
            return Err(format!("afterwards clients get answers that belong to others ({target} got {came})"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::fake::{Asked, Fake, Say, answer, origin};
    use crate::stop::Stop;

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
        assert_eq!(
            judged(&one_behind),
            Err("afterwards clients get answers that belong to others (/bytes/1 got 204)".into())
        );
        assert_eq!(
            judged(&one_behind),
            Err("afterwards clients get answers that belong to others (/bytes/2 got 1 bytes)".into())
        );
    }
}
