//! What a product that runs can be told: a signal, and to read its configuration anew.

use std::time::{Duration, Instant};

use weir_model::product::{Reload, Signal};

use super::Bench;
use super::product::Running;
use crate::stop::Stop;
use crate::supervisor::{Ended, Kept, Order};
use crate::tail::last_lines;

/// How long a command that makes a product reload may take.
const RELOADS_WITHIN: Duration = Duration::from_secs(10);

impl Running {
    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<Ended> {
        self.kept.ended()
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// When it is gone.
    pub fn signal(&mut self, signal: Signal) -> std::io::Result<()> {
        self.kept.signal(match signal {
            Signal::Term => rustix::process::Signal::TERM,
            Signal::Int => rustix::process::Signal::INT,
            Signal::Quit => rustix::process::Signal::QUIT,
            Signal::Hup => rustix::process::Signal::HUP,
            Signal::Usr1 => rustix::process::Signal::USR1,
            Signal::Usr2 => rustix::process::Signal::USR2,
            Signal::Winch => rustix::process::Signal::WINCH,
        })
    }

    /// Makes it read its configuration anew, as its file says. A signal is sent and not waited for; a command has to succeed.
    ///
    /// # Errors
    /// Why it does not, in words.
    pub fn reload(&mut self, bench: &Bench, stop: &Stop) -> Result<(), String> {
        match self.rendered.reload.clone() {
            None => Err("its file names no way to reload".to_owned()),
            Some(Reload::Signal(signal)) => self.signal(signal).map_err(|e| e.to_string()),
            Some(Reload::Command(argv)) => self.beside(bench, argv, stop),
        }
    }

    /// Runs a command of the product's own, in its folder and environment, under a supervisor as the product is.
    fn beside(&self, bench: &Bench, argv: Vec<String>, stop: &Stop) -> Result<(), String> {
        let output = self.folder.join("reload.log");
        let name = argv.first().cloned().unwrap_or_default();
        let env = super::product::environment(&self.rendered.env);
        let order = Order { argv, env, dir: self.folder.clone(), output: output.clone(), cpus: Vec::new(), nice: 0 };
        let mut kept = Kept::start(&bench.weir, &order).map_err(|e| e.to_string())?;
        let deadline = Instant::now() + RELOADS_WITHIN;
        loop {
            match kept.wait(Duration::from_millis(50)) {
                Some(Ended { code: Some(0), .. }) => return Ok(()),
                Some(ended) => return Err(format!("{name}: {ended}; {}", last_lines(&output, 3))),
                None if stop.wanted() => return Err("stopped on request".to_owned()),
                None if Instant::now() > deadline => {
                    return Err(format!("{name} was not done after {} s", RELOADS_WITHIN.as_secs()));
                }
                None => {}
            }
        }
    }
}
