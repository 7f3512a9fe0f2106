//! What a run of an agent leaves besides its steps: the conversation, by which it can be resumed, and its verification.

use super::{RunRecorder, Store, StoreError, link, now, sqlite};
use crate::session::RecordId;
use rusqlite::params;
use serde_json::Value;

/// What a verification leaves in `sandbox_events`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateEvent {
    /// What the command printed.
    Output,
    /// The step at which it failed.
    PhaseFailed,
}

impl GateEvent {
    /// The stable spelling.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Output => "gate_output",
            Self::PhaseFailed => "gate_phase_failed",
        }
    }
}

impl RunRecorder<'_> {
    /// Writes down what a verification came to.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn gate_event(
        &self,
        step: Option<RecordId>,
        event: GateEvent,
        detail: Value,
    ) -> Result<(), StoreError> {
        self.store.write(|transaction| {
            transaction
                .prepare_cached(
                    "INSERT INTO sandbox_events (run_id, step_id, at, kind, backend, detail) VALUES (?1, ?2, ?3, ?4, NULL, ?5)",
                )?
                .execute(params![self.run, step.map(|step| step.0), now(), event.as_str(), self.redactor.value(detail).to_string()])?;
            link(transaction, "sandbox_events", transaction.last_insert_rowid())
        })
    }

    /// Keeps a message of the run's conversation, secrets taken out.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn keep_message(&self, message: Value) -> Result<(), StoreError> {
        self.store.write(|transaction| {
            transaction
                .prepare_cached("INSERT INTO messages (run_id, at, message) VALUES (?1, ?2, ?3)")?
                .execute(params![self.run, now(), self.redactor.value(message).to_string()])?;
            link(transaction, "messages", transaction.last_insert_rowid())
        })
    }
}

impl Store {
    /// The conversation of a run, as far as it got.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn messages(&self, run: i64) -> Result<Vec<String>, StoreError> {
        let connection = self.connection();
        let read = || -> rusqlite::Result<Vec<String>> {
            connection
                .prepare_cached("SELECT message FROM messages WHERE run_id = ?1 ORDER BY id")?
                .query_map([run], |row| row.get(0))?
                .collect()
        };
        read().map_err(|source| sqlite(&self.path, source))
    }

    /// The project in which a run worked; nothing when there is no such run.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn root(&self, run: i64) -> Result<Option<String>, StoreError> {
        use rusqlite::OptionalExtension as _;
        self.connection()
            .query_row("SELECT root FROM runs WHERE id = ?1", [run], |row| row.get(0))
            .optional()
            .map_err(|source| sqlite(&self.path, source))
    }

    /// How a run ended; nothing while it goes on, when its process died, or when there is no such run.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn outcome(&self, run: i64) -> Result<Option<String>, StoreError> {
        use rusqlite::OptionalExtension as _;
        self.connection()
            .query_row("SELECT outcome FROM runs WHERE id = ?1", [run], |row| row.get::<_, Option<String>>(0))
            .optional()
            .map(Option::flatten)
            .map_err(|source| sqlite(&self.path, source))
    }
}
