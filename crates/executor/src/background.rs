//! Commands that run while their caller does something else.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use crate::error::ExecError;
use crate::job::Job;
use crate::outcome::Finished;
use crate::output::Chunk;
use crate::run;
use crate::supervise::Captures;

/// How many background commands of one executor may run at once.
pub const MAX_LIVE: usize = 8;
/// How many that have ended are kept for a last poll.
const MAX_ENDED: usize = 32;

type Ending = Option<Result<Arc<Finished>, Arc<ExecError>>>;

/// A command that runs in the background. Cheap to clone; it lives as long as its executor, however many handles
/// there are.
#[derive(Clone)]
pub struct Background {
    entry: Arc<Entry>,
}

impl fmt::Debug for Background {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Background").field("id", &self.entry.id).finish_non_exhaustive()
    }
}

struct Entry {
    id: u64,
    captures: Arc<Captures>,
    cancel: CancellationToken,
    ending: watch::Receiver<Ending>,
    task: AbortHandle,
}

/// What a poll finds.
#[derive(Debug, Clone)]
pub struct Poll {
    /// What came on standard output since the last poll.
    pub stdout: Chunk,
    /// What came on standard error since the last poll.
    pub stderr: Chunk,
    /// Whether it still runs.
    pub state: State,
}

/// Whether a background command still runs.
#[derive(Debug, Clone)]
pub enum State {
    /// It runs.
    Running,
    /// It has ended.
    Ended(Arc<Finished>),
    /// It could not be started.
    Failed(Arc<ExecError>),
}

impl Background {
    /// The number by which [`crate::Executor::background`] finds it again.
    pub fn id(&self) -> u64 {
        self.entry.id
    }

    /// What is new since the last poll, within the output bounds of the job, and whether it still runs.
    pub fn poll(&self) -> Poll {
        // The state is looked at first: output that comes after it is left for the next poll, never lost.
        let state = self.state();
        let stdout = self.entry.captures.stdout().read_new();
        let stderr = self.entry.captures.stderr().read_new();
        Poll { stdout, stderr, state }
    }

    /// Whether it still runs.
    pub fn state(&self) -> State {
        match &*self.entry.ending.borrow() {
            None => State::Running,
            Some(Ok(finished)) => State::Ended(finished.clone()),
            Some(Err(error)) => State::Failed(error.clone()),
        }
    }

    /// Kills the whole tree and waits until it is gone.
    pub async fn kill(&self) -> State {
        self.entry.cancel.cancel();
        self.wait().await
    }

    /// Waits for the end.
    pub async fn wait(&self) -> State {
        let mut ending = self.entry.ending.clone();
        // An error means that the task is gone without a word, which only happens when the executor is.
        let _ = ending.wait_for(Option::is_some).await;
        self.state()
    }
}

/// The background commands of an executor. Dropping it ends them all.
#[derive(Default)]
pub(crate) struct Registry {
    entries: Mutex<BTreeMap<u64, Arc<Entry>>>,
}

impl fmt::Debug for Registry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.lock().keys()).finish()
    }
}

impl Registry {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, id: u64) -> Result<Background, ExecError> {
        self.lock()
            .get(&id)
            .map(|entry| Background { entry: entry.clone() })
            .ok_or(ExecError::NoSuchBackground { id })
    }

    pub(crate) fn all(&self) -> Vec<Background> {
        self.lock().values().map(|entry| Background { entry: entry.clone() }).collect()
    }

    /// Starts a job whose settings have been checked.
    pub(crate) async fn start(&self, job: Job) -> Result<Background, ExecError> {
        let core = job.executor.shared.core.clone();
        let mut prepared = run::prepare(core, job.command, job.settings)?;
        drop(job.executor);
        prepared.check().await?;

        let cancel = CancellationToken::new();
        prepared.also_cancelled_by(&cancel);
        let captures = prepared.captures.clone();
        let (sender, ending) = watch::channel(None);
        let mut entries = self.lock();
        let live = entries.values().filter(|entry| entry.ending.borrow().is_none()).count();
        if live >= MAX_LIVE {
            return Err(ExecError::TooManyBackground { limit: MAX_LIVE });
        }
        let ended: Vec<u64> =
            entries.iter().filter(|(_, entry)| entry.ending.borrow().is_some()).map(|(&id, _)| id).collect();
        for id in ended.iter().take(ended.len().saturating_sub(MAX_ENDED)) {
            entries.remove(id);
        }
        let id = entries.keys().next_back().map_or(1, |last| last + 1);
        let task = tokio::spawn(async move {
            let ending = prepared.run().await.map(Arc::new).map_err(Arc::new);
            // Nobody may be listening any more.
            let _ = sender.send(Some(ending));
        })
        .abort_handle();
        let entry = Arc::new(Entry { id, captures, cancel, ending, task });
        entries.insert(id, entry.clone());
        Ok(Background { entry })
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        for entry in self.lock().values() {
            // Dropping the task's future kills the tree.
            entry.cancel.cancel();
            entry.task.abort();
        }
    }
}
