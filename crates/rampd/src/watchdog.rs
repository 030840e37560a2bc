//! Watchdog of the service manager.
//!
//! The node's thread counts once a second. Another thread notifies the service manager that the
//! node is alive, if the count has grown. So a node that hangs is restarted. The node's thread
//! itself does not write to the service manager, which might block it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sd_notify::NotifyState;

/// Minimum number of polls of the thread within the timeout of the service manager.
const POLLS_MIN: u32 = 4;
/// Minimum interval of polls. The node's thread counts once a second, so that shorter ones are
/// useless.
const PERIOD_MIN: Duration = Duration::from_secs(2);

/// Counters of the node's thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heartbeat(Arc<AtomicU64>);

impl Heartbeat {
    /// Starts the thread if the service manager has a watchdog (`WatchdogSec`).
    ///
    /// # Errors
    /// The system has no thread.
    pub(crate) fn start() -> io::Result<Self> {
        let heart = Self::default();
        if let Some(limit) = sd_notify::watchdog_enabled() {
            let (watched, period) = (heart.clone(), (limit / POLLS_MIN).max(PERIOD_MIN));
            let watch = move || {
                let mut before = 0;
                loop {
                    std::thread::sleep(period);
                    let count = watched.0.load(Ordering::Relaxed);
                    if count != before {
                        let _ = sd_notify::notify(&[NotifyState::Watchdog]);
                    }
                    before = count;
                }
            };
            std::thread::Builder::new().name("watchdog".to_owned()).spawn(watch)?;
        }
        Ok(heart)
    }

    /// Counts an iteration of the node's thread.
    pub(crate) fn beat(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
