//! The measured part of a trial: the client works, vitals look on, and everybody must stay alive.

use std::time::{Duration, Instant};

use weir_model::load::{LoadResult, LoadSpec};
use weir_model::record::Role;
use weir_vitals::{Watch, Watched, Window};

use super::failure::Failure;
use super::product::Running;
use super::serving::Serving;
use super::{Bench, Order, Step};
use crate::role::{ClientProcess, ClientWord};
use crate::stop::Stop;
use crate::tail::last_lines;

/// What came out.
#[derive(Debug)]
pub struct Measured {
    /// The client's account.
    pub load: LoadResult,
    /// What the kernel said of the roles and the host during the window.
    pub window: Window,
}

/// Runs the load against what is running.
pub fn measure(
    bench: &Bench,
    order: &Order<'_>,
    spec: &LoadSpec,
    origin: &mut Serving,
    running: &mut Option<Running>,
    stop: &Stop,
    tell: &mut dyn FnMut(Step<'_>),
) -> Result<Measured, Failure> {
    let output = order.folder.join("client.log");
    let evidence = || last_lines(&output, 8);
    let failed = |message: String| Failure::at("load", message, evidence(), "see client.log in the trial's folder");
    tell(Step::Stage("connecting"));
    let client = ClientProcess::start(&bench.weir, spec, order.folder, &output).map_err(|e| failed(e.to_string()))?;
    let mut watched = vec![Watched { role: Role::Client, root: client.pid(), include_root: true }, origin.watched()];
    if let Some(running) = running {
        watched.push(Watched { role: Role::Proxy, root: running.root(), include_root: false });
    }
    // Vitals may see first that a process has gone; which it was says more.
    let watch = Watch::start(watched).or_else(|e| {
        all_alive(origin, running)?;
        Err(failed(format!("vitals did not start: {e}")))
    })?;
    let deadline = Instant::now() + longest(spec);
    let mut window = None;
    let load = loop {
        if stop.wanted() {
            return Err(Failure::Stopped);
        }
        if Instant::now() > deadline {
            return Err(failed(format!("the client was not done after {} s", longest(spec).as_secs())));
        }
        all_alive(origin, running)?;
        match client.hear(Duration::from_millis(200)).map_err(|e| failed(e.to_string()))? {
            None | Some(ClientWord::Connecting { .. }) => {}
            Some(ClientWord::Warmup(row)) => {
                tell(Step::Stage("warming up"));
                tell(Step::Second(&row));
            }
            Some(ClientWord::WindowStart { .. }) => {
                tell(Step::Stage("measuring"));
                watch.begin_window().or_else(|e| {
                    all_alive(origin, running)?;
                    Err(failed(format!("vitals failed: {e}")))
                })?;
            }
            Some(ClientWord::Second(row)) => tell(Step::Second(&row)),
            Some(ClientWord::WindowEnd) => {
                window = Some(watch.end_window().map_err(|e| failed(format!("vitals failed: {e}")))?);
            }
            Some(ClientWord::Done(result)) => break *result,
            Some(ClientWord::Failed(why)) => return Err(failed(why)),
        }
    };
    watch.stop();
    // One that died in the last moment is seen here: what it answered until then is not what it carries.
    all_alive(origin, running)?;
    let window = window.ok_or_else(|| failed("the client ended without a measured window".to_owned()))?;
    Ok(Measured { load, window })
}

fn all_alive(origin: &mut Serving, running: &mut Option<Running>) -> Result<(), Failure> {
    origin.still_runs()?;
    running.as_mut().map_or(Ok(()), |running| running.still_runs("load"))
}

/// Longer than this the client cannot take, whatever the product does: connecting and draining are bounded by the
/// timeout each, warm-up and window by their lengths.
fn longest(spec: &LoadSpec) -> Duration {
    Duration::from_secs_f64(spec.warmup_s + spec.duration_s + 3.0 * spec.timeout_s + 30.0)
}
