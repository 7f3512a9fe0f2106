//! The rows of questions that wait for an answer.

use super::{Store, StoreError, hex, link, now, row_json, sqlite};
use crate::approve::pending::{Pending, PendingError, StoredQuestion, request_of};
use crate::store::RunRecorder;
use rusqlite::{Connection, Row, params};
use serde_json::Value;
use sha2::{Digest, Sha256};

const COLUMNS: &str = "id, run_id, step_id, at, root, workdir, action, resumable, shown, options, policy_hash, files, \
                       state, answered_at, answer";

impl RunRecorder<'_> {
    pub(crate) fn store_pending(&self, question: &StoredQuestion<'_>) -> Result<i64, StoreError> {
        let redactor = &self.redactor;
        let action = redactor.value(question.action.clone());
        let resumable = action == question.action;
        self.store.write(|transaction| {
            transaction
                .prepare_cached(
                    "INSERT INTO pending_approvals
                     (run_id, step_id, at, root, workdir, action, resumable, shown, options, policy_hash, files, state)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, 'pending')",
                )?
                .execute(params![
                    self.run,
                    question.step,
                    now(),
                    question.root.to_string_lossy(),
                    question.workdir.to_string_lossy(),
                    action.to_string(),
                    resumable,
                    redactor.value(question.shown.clone()).to_string(),
                    question.options.to_string(),
                    question.policy_hash,
                    question.files.to_string(),
                ])?;
            let id = transaction.last_insert_rowid();
            link(transaction, "pending_approvals", id)?;
            Ok(id)
        })
    }
}

impl Store {
    /// The questions in the order of asking: those that wait, or all.
    ///
    /// # Errors
    ///
    /// When the trace cannot be read.
    pub fn pendings(&self, all: bool) -> Result<Vec<Pending>, PendingError> {
        let read = |connection: &Connection| {
            let mut statement = connection.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM pending_approvals WHERE ?1 OR state IN ('pending', 'approved') ORDER BY id"
            ))?;
            statement.query_map([all], pending_of)?.collect::<rusqlite::Result<Vec<_>>>()
        };
        let rows = read(&self.connection()).map_err(|source| sqlite(self.path(), source))?;
        Ok(rows.into_iter().flatten().collect())
    }

    /// One question; nothing when there is none of that number.
    ///
    /// # Errors
    ///
    /// When the trace cannot be read, or when the row is not what was written.
    pub fn pending(&self, id: i64) -> Result<Option<Pending>, PendingError> {
        let read = |connection: &Connection| {
            let mut statement = connection
                .prepare_cached(&format!("SELECT {COLUMNS} FROM pending_approvals WHERE id = ?1"))?;
            let Some(found) = statement.query_map([id], pending_of)?.next().transpose()? else {
                return Ok(None);
            };
            let linked: Option<String> = connection
                .prepare_cached(
                    "SELECT max(content) FROM chain WHERE seq =
                     (SELECT max(seq) FROM chain WHERE tbl = 'pending_approvals' AND row_id = ?1)",
                )?
                .query_row([id], |row| row.get(0))?;
            let content = row_json(connection, "pending_approvals", id)?.map(|row| hex(Sha256::digest(row)));
            Ok(Some(found.filter(|_| linked.is_some() && linked == content)))
        };
        match read(&self.connection()).map_err(|source| sqlite(self.path(), source))? {
            None => Ok(None),
            Some(None) => Err(PendingError::Changed(id)),
            Some(Some(pending)) => Ok(Some(pending)),
        }
    }

    /// Moves a question from one state to another; false when it was not in the first one any more.
    pub(crate) fn move_pending(
        &self,
        pending: &Pending,
        from: &str,
        to: &str,
        message: Option<&str>,
    ) -> Result<bool, StoreError> {
        let message = message.map(|message| self.redactor().text(message));
        self.write(|transaction| {
            let moved = transaction
                .prepare_cached(
                    "UPDATE pending_approvals SET state = ?3, answered_at = coalesce(answered_at, ?4),
                     answer = coalesce(?5, answer) WHERE id = ?1 AND state = ?2",
                )?
                .execute(params![pending.id, from, to, now(), message])?;
            if moved == 0 {
                return Ok(false);
            }
            link(transaction, "pending_approvals", pending.id)?;
            let (effect, reason) = match to {
                "resumed" => ("resume", String::new()),
                "approved" => ("approve", message.clone().unwrap_or_default().into_owned()),
                _ => ("deny", message.clone().unwrap_or_default().into_owned()),
            };
            transaction
                .prepare_cached(
                    "INSERT INTO policy_events (run_id, step_id, at, kind, act, target, effect, rule, layer, source, reason)
                     SELECT run_id, step_id, ?2, ?3, act, target, ?4, rule, layer, 'approver', ?5
                     FROM policy_events WHERE step_id = ?1 AND kind = 'decision' ORDER BY id LIMIT 1",
                )?
                .execute(params![
                    pending.step,
                    now(),
                    if to == "resumed" { "resume" } else { "answer" },
                    effect,
                    reason
                ])?;
            link(transaction, "policy_events", transaction.last_insert_rowid())?;
            Ok(true)
        })
    }
}

/// A row; nothing when it is not what this program writes.
fn pending_of(row: &Row<'_>) -> rusqlite::Result<Option<Pending>> {
    let json = |at: usize| row.get::<_, String>(at).map(|text| serde_json::from_str::<Value>(&text).ok());
    let (Some(action), Some(shown), Some(options), Some(files)) = (json(6)?, json(8)?, json(9)?, json(11)?)
    else {
        return Ok(None);
    };
    let (Some(request), Ok(files)) = (request_of(&action), serde_json::from_value(files)) else {
        return Ok(None);
    };
    Ok(Some(Pending {
        id: row.get(0)?,
        run: row.get(1)?,
        step: row.get(2)?,
        at: row.get(3)?,
        root: row.get::<_, String>(4)?.into(),
        workdir: row.get::<_, String>(5)?.into(),
        request,
        content: action.get("content").and_then(Value::as_str).map(ToOwned::to_owned),
        resumable: row.get(7)?,
        shown,
        options,
        policy_hash: row.get(10)?,
        files,
        state: row.get(12)?,
        answered_at: row.get(13)?,
        answer: row.get(14)?,
    }))
}
