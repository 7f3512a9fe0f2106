//! The project that the server works in, and its run in the trace.

use super::tell::tell;
use crate::config::{self, Overrides, UserDirs};
use crate::session::Session;
use crate::store::Store;
use crate::tools::Backgrounds;
use std::path::Path;
use std::sync::Arc;

/// One project with its background commands.
#[derive(Debug)]
pub(super) struct Project {
    pub(super) session: Session,
    /// The run in the trace.
    pub(super) run: i64,
    pub(super) backgrounds: Arc<Backgrounds>,
}

impl Project {
    /// Reads the configuration for the project at `root` and begins its run.
    pub(super) fn open(
        root: &Path,
        dirs: &UserDirs,
        overrides: &Overrides,
        store: &Store,
    ) -> Result<Self, OpenError> {
        let loaded = config::load(root, dirs, overrides).map_err(Box::new)?;
        let mut session = Session::new(root, loaded)?;
        if let Some(state) = &dirs.state {
            session = session.keep_preflight(&state.join("preflight"))?;
        }
        let recorder = store.begin_in("mcp", None, &session)?;
        if let Some(text) = recorder.pruned() {
            tell(&text);
        }
        let run = recorder.run();
        Ok(Self { session, run, backgrounds: Arc::default() })
    }

    /// Ends what runs in the background, and the run.
    pub(super) async fn end(&self, store: &Store) {
        let recorded = match store.reopen_in(self.run, &self.session) {
            Ok(recorder) => {
                self.backgrounds.end_all(&recorder).await;
                recorder.finish("closed")
            }
            // What still runs dies with the session.
            Err(error) => Err(error),
        };
        if let Err(error) = recorded {
            tell(&format!("the end of this run could not be recorded: {error}"));
        }
    }
}

/// Why a project cannot be worked in.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] Box<config::ConfigError>),
    /// The root cannot be used.
    #[error(transparent)]
    Root(#[from] cmdgate_executor::ExecError),
    /// The run cannot be recorded.
    #[error(transparent)]
    Store(#[from] crate::store::StoreError),
}
