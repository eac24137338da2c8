//! What weir does as the first processes of its pods: it copies itself to where the product's container sees it, and then
//! stays there as process 1 until no agent has run for a while. So a product's image needs neither weir nor a shell.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{WaitOptions, wait};

/// How long a pod waits for its first agent: longer than weir waits for pods, because the others may still fetch their images.
const FIRST: Duration = Duration::from_secs(240);

/// How long a pod stays when its agents are gone: after weir was killed its CPUs are free again this soon. A run that goes on reaches
/// it sooner, or makes it anew.
const UNUSED: Duration = Duration::from_secs(20);

/// How often process 1 looks; reading a few entries of /proc costs some 50 us.
const LOOK: Duration = Duration::from_secs(2);

/// Copies this program to a path.
///
/// # Errors
/// What the system said.
pub fn copy_weir(to: &Path) -> io::Result<()> {
    // The whole file appears at once.
    let new = to.with_extension("new");
    fs::copy("/proc/self/exe", &new)?;
    fs::rename(new, to)
}

/// Reaps processes whose parents are gone, and returns when this process has been alone in its namespace for a while.
pub fn idle() {
    let own = std::process::id();
    let (mut used, mut patience) = (Instant::now(), FIRST);
    while used.elapsed() < patience {
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        let others = fs::read_dir("/proc").into_iter().flatten().flatten().any(|entry| {
            let pid = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
            pid.is_some_and(|pid| pid != own)
        });
        if others {
            (used, patience) = (Instant::now(), UNUSED);
        }
        std::thread::sleep(LOOK);
    }
}
