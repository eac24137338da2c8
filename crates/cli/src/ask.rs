//! Questions to the user, which `--yes` answers. Verbs that install or run what others have written ask them.

use std::io::{IsTerminal, Write};

use crate::exit::Failure;

/// Whether the user agrees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// Beforehand, by `--yes`.
    Given,
    /// When asked.
    Asked,
}

impl From<bool> for Consent {
    /// From the flag `--yes`.
    fn from(yes: bool) -> Consent {
        if yes { Consent::Given } else { Consent::Asked }
    }
}

/// Whether somebody sits at a terminal.
pub fn can_be_asked() -> bool {
    console::user_attended() && std::io::stdin().is_terminal()
}

/// The answer to a question; anything but yes is no.
///
/// # Errors
/// When it cannot be asked.
pub fn asked(question: &str) -> Result<bool, Failure> {
    eprint!("{question} [y/N] ");
    std::io::stderr().flush().map_err(Failure::missing)?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(Failure::missing)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// Asks before something is done, unless the user has agreed to it. `why` says that it has to be done, and `otherwise` what a no means.
///
/// # Errors
/// When the user says no, or cannot be asked.
pub fn agreed(question: &str, why: &str, otherwise: &str, consent: Consent) -> Result<(), Failure> {
    let no = |why: &str| Err(Failure::missing(format!("{why}\n  to go on without asking: --yes")));
    match consent {
        Consent::Given => Ok(()),
        Consent::Asked if !can_be_asked() => no(&format!("{why}, and there is no terminal to ask on")),
        Consent::Asked if asked(question)? => Ok(()),
        Consent::Asked => no(otherwise),
    }
}
