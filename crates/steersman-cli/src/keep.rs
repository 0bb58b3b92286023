//! Seeing to it that what was learned is on disk before the command ends: what waits in memory goes with it.

use crate::exit::{Failure, Outcome};
use std::time::{Duration, Instant};
use steersman::Runtime;
use steersman_core::wisdom::{Kept, NoticeKind};

/// How long a file that another process holds is waited for.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two tries, each of which waits by itself.
const PAUSE: Duration = Duration::from_millis(100);

/// Writes what is not on disk yet; `what` is not kept if that fails. Without a file there is nothing to do.
pub fn kept(runtime: &Runtime, what: &str) -> Outcome {
    let begun = Instant::now();
    loop {
        match runtime.save()? {
            Kept::Disk | Kept::Memory => return Ok(()),
            Kept::Waiting(why) if why.kind == NoticeKind::Locked && begun.elapsed() < PATIENCE => {
                std::thread::sleep(PAUSE);
            }
            Kept::Waiting(why) => {
                let (file, cause) = (why.path.display(), why.cause());
                return Err(Failure::failed(format!(
                    "{what} not kept: wisdom file {file}: {cause}; {}",
                    why.advice
                )));
            }
        }
    }
}
