//! What the access log of a trial's product has grown by, if its profile has one. The series of a trial calls it. It does not know who
//! counts the lines.

use std::time::Duration;

use weir_model::gateway::AccessLog;
use weir_model::load::LoadResult;
use weir_product::failure::Failure;

use super::series::RunningTrial;

/// How long a product may keep lines until it writes them: more than the ten seconds of the slowest default.
const WRITTEN_WITHIN: Duration = Duration::from_secs(12);

/// How long to wait until the next look.
const EVERY: Duration = Duration::from_millis(500);

impl RunningTrial<'_> {
    /// What is in the log by now; `None` where there is no log.
    pub fn access_log(&self) -> Result<Option<AccessLog>, Failure> {
        self.started.running.as_ref().map_or(Ok(None), |running| running.access_log(self.trial.stop))
    }

    /// What it has grown by since, when there is a line for each request, or when none is to be expected any more.
    pub fn access_log_since(&self, before: AccessLog, load: &LoadResult) -> Result<Option<AccessLog>, Failure> {
        let clock = self.trial.context.hosts.clock();
        let deadline = clock.now().plus(WRITTEN_WITHIN);
        loop {
            let Some(now) = self.access_log()? else { return Ok(None) };
            let grown = now.since(before);
            if grown.lines >= load.total.sent || clock.left(deadline).is_zero() {
                return Ok(Some(grown));
            }
            clock.sleep(EVERY);
        }
    }
}
