//! Systems without a backend: every run is refused, with a sandbox and without one, because neither the sandbox nor the
//! end of the whole tree could be promised.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use super::Prepared;
use crate::error::ExecError;
use crate::outcome::Finished;
use crate::supervise::Control;

impl Prepared {
    /// Refuses.
    #[expect(clippy::unused_async, reason = "other systems start processes here")]
    pub(crate) async fn check(&self) -> Result<(), ExecError> {
        Err(super::no_backend(std::env::consts::OS))
    }

    pub(super) async fn run_confined(self, _control: &Control) -> Result<Finished, ExecError> {
        self.check().await?;
        Err(super::no_backend(std::env::consts::OS))
    }

    pub(super) async fn run_unconfined(self, control: &Control) -> Result<Finished, ExecError> {
        self.run_confined(control).await
    }
}

/// Never reached: nothing is run.
pub(super) fn script(_text: &[u8]) -> io::Result<(PathBuf, OwnedFd)> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Never reached: nothing is run.
pub(super) fn tidy_later(work: impl FnOnce() + Send + 'static) {
    work();
}
