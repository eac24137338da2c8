//! Reads the CPUs of this process from a flag, and the request to stop from signals.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use weir_host::stop::Stop;
use weir_model::units::CpuList;

use crate::exit::{Failure, wrong_value};

/// Reads `0-3,8` and checks that this process may use them.
pub fn parse_cpus(text: &str) -> Result<Vec<u32>, String> {
    let cpus = text.parse::<CpuList>().map_err(|e| wrong_value(e.found, &e.wanted))?.into_vec();
    let allowed = weir_host::placement::allowed_cpus();
    match cpus.iter().find(|cpu| !allowed.contains(cpu)) {
        Some(cpu) => Err(wrong_value(format!("weir may not use CPU {cpu}"), &CpuList::text(&allowed))),
        None => Ok(cpus),
    }
}

/// A request to stop that the first Ctrl-C, SIGTERM or SIGHUP makes; a second one ends weir at once (supervisors and roles then clean
/// up). A SIGHUP that weir was started to ignore, by `nohup`, stays ignored.
///
/// # Errors
/// When the system takes no handler.
pub fn stop_on_signal() -> Result<Stop, Failure> {
    let stop = Stop::new();
    let hangup = Some(SIGHUP).filter(|signal| !is_ignored(*signal));
    for signal in [SIGINT, SIGTERM].into_iter().chain(hangup) {
        signal_hook::flag::register_conditional_shutdown(signal, 130, stop.flag()).map_err(Failure::missing)?;
        signal_hook::flag::register(signal, stop.flag()).map_err(Failure::missing)?;
    }
    Ok(stop)
}

/// True if the process ignores a signal, by the mask that the kernel shows.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
