//! Writes decisions, answers and ends.

use super::rows::{DecidedRun, Event, EventRow, RunRow, StepRow, insert_decided};
use super::{Pruned, Store, StoreError, link, now, spool};
use crate::approve::Answer;
use crate::gate::{Action, Decision, Request};
use crate::present::not_started;
use crate::redact::Redactor;
use crate::session::{RecordError, RecordId, Recorder, Session};
use cmdgate_executor::{Backend, ExecError, Finished, Outcome};
use rusqlite::{Transaction, params};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::PoisonError;

/// What a file tool would write is kept with its question up to this length, in bytes.
const LONGEST_KEPT: usize = 1024 * 1024;

/// What is known of a run when it starts.
#[derive(Debug, Clone)]
pub struct RunInfo {
    /// `command`, `agent`, `hook` or `mcp`.
    pub kind: &'static str,
    /// The goal of an agent's run.
    pub goal: Option<String>,
    /// The project root.
    pub root: String,
    /// The sandbox mode.
    pub sandbox: &'static str,
    /// The approval policy.
    pub approval: &'static str,
}

/// A store, and the run whose steps are written.
#[derive(Debug)]
pub struct RunRecorder<'s> {
    pub(super) store: &'s Store,
    pub(super) run: i64,
    /// What takes secrets out of everything that is written for this run.
    pub(super) redactor: Redactor,
    /// What is stored with a question that nobody answers; none where questions are not kept.
    pub(super) questions: Option<Value>,
    /// What the retention of the settings came to when the run began.
    retained: Option<Result<Pruned, StoreError>>,
}

impl RunInfo {
    /// Of a run in a session.
    pub fn of(kind: &'static str, goal: Option<String>, session: &Session) -> Self {
        let gate = session.gate();
        Self {
            kind,
            goal,
            root: gate.root().to_string_lossy().into_owned(),
            sandbox: gate.mode().as_str(),
            approval: gate.approval().as_str(),
        }
    }
}

/// What also takes out what the settings of a session call secret.
fn in_session(redactor: Redactor, session: &Session) -> Result<Redactor, StoreError> {
    Ok(redactor.with_patterns(&session.gate().settings().trace.redact)?)
}

impl Store {
    /// Begins a run.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn begin(&self, info: &RunInfo) -> Result<RunRecorder<'_>, StoreError> {
        self.begin_with(info, self.redactor.clone())
    }

    /// Begins a run in a session, by whose settings the trace is pruned first and secrets are taken out.
    /// [`RunRecorder::pruned`] says what was removed.
    ///
    /// # Errors
    ///
    /// When it cannot be written, or a pattern of the settings cannot be used. A trace that cannot be pruned is none.
    pub fn begin_in(
        &self,
        kind: &'static str,
        goal: Option<String>,
        session: &Session,
    ) -> Result<RunRecorder<'_>, StoreError> {
        let redactor = self.redactor_of(session)?;
        // A hook answers at once; whatever takes its time is left to the others.
        let trace = &session.gate().settings().trace;
        let retained = if kind == "hook" { None } else { self.retain(trace).transpose() };
        let recorder = self.begin_with(&RunInfo::of(kind, goal, session), redactor)?;
        self.remember_redactor(&recorder);
        Ok(RunRecorder { retained, ..recorder })
    }

    /// Writes down a run that decides and nothing more, with its outcome, at once. The trace is not pruned first; that is
    /// left to those who have time.
    ///
    /// # Errors
    ///
    /// When it cannot be written, and then nothing of it is; or when a pattern of the settings cannot be used.
    pub fn record_decisions(
        &self,
        kind: &'static str,
        goal: Option<String>,
        session: &Session,
        decisions: &[(Request, Decision)],
        outcome: &str,
    ) -> Result<(i64, Vec<RecordId>), StoreError> {
        let redactor = self.redactor_of(session)?;
        let run = DecidedRun::new(&RunInfo::of(kind, goal, session), decisions, outcome, &redactor);
        let (run, steps) = self.write(|transaction| run.insert(transaction))?;
        Ok((run, steps.into_iter().map(RecordId).collect()))
    }

    /// The same for a process that answers once and ends, and needs no numbers: mostly without opening the trace, as a line
    /// of the spool beside it, which whoever opens the trace next brings in.
    ///
    /// # Errors
    ///
    /// As [`Store::open`] and [`Store::record_decisions`].
    pub fn note_decisions(
        path: impl Into<PathBuf>,
        kind: &'static str,
        goal: Option<String>,
        session: &Session,
        decisions: &[(Request, Decision)],
        outcome: &str,
    ) -> Result<(), StoreError> {
        let redactor = Redactor::from_environment();
        let info = RunInfo::of(kind, goal, session);
        Self::note(path.into(), &info, &in_session(redactor, session)?, decisions, outcome)
    }

    /// The same without a session.
    pub(crate) fn note(
        path: PathBuf,
        info: &RunInfo,
        redactor: &Redactor,
        decisions: &[(Request, Decision)],
        outcome: &str,
    ) -> Result<(), StoreError> {
        let run = DecidedRun::new(info, decisions, outcome, redactor);
        if spool::add(&path, &run)? {
            return Ok(());
        }
        let store = Self::open(path)?;
        store.write(|transaction| run.insert(transaction))?;
        store.begin_spool()
    }

    fn redactor_of(&self, session: &Session) -> Result<Redactor, StoreError> {
        in_session(self.redactor.clone(), session)
    }

    fn begin_with(&self, info: &RunInfo, redactor: Redactor) -> Result<RunRecorder<'_>, StoreError> {
        let row = RunRow::new(info, &redactor, None);
        let run = self.write(|transaction| row.insert(transaction))?;
        Ok(RunRecorder { store: self, run, redactor, questions: None, retained: None })
    }

    fn remember_redactor(&self, recorder: &RunRecorder<'_>) {
        let mut of_runs = self.of_runs.lock().unwrap_or_else(PoisonError::into_inner);
        of_runs.insert(recorder.run, recorder.redactor.clone());
    }

    /// Goes on writing a run that was begun before; by the settings of its session, when it was begun here.
    pub fn reopen(&self, run: i64) -> RunRecorder<'_> {
        let of_runs = self.of_runs.lock().unwrap_or_else(PoisonError::into_inner);
        let redactor = of_runs.get(&run).unwrap_or(&self.redactor).clone();
        RunRecorder { store: self, run, redactor, questions: None, retained: None }
    }

    /// The same for a run that another process began.
    ///
    /// # Errors
    ///
    /// When a pattern of the settings cannot be used.
    pub fn reopen_in(&self, run: i64, session: &Session) -> Result<RunRecorder<'_>, StoreError> {
        let redactor = self.redactor_of(session)?;
        let recorder = RunRecorder { store: self, run, redactor, questions: None, retained: None };
        self.remember_redactor(&recorder);
        Ok(recorder)
    }
}

impl Store {
    /// Writes down what a person said, outside the run that asked, about what these steps of a hook asked. Where none of
    /// them is there (any more), the answer is a run of its own, in this directory.
    ///
    /// # Errors
    ///
    /// When it cannot be written; the answer must not count then.
    pub fn answered_once(
        &self,
        steps: &[i64],
        cwd: &std::path::Path,
        yes: bool,
        reason: &str,
    ) -> Result<(), StoreError> {
        let effect = if yes { "approve" } else { "deny" };
        self.write(|transaction| {
            let mut written = 0;
            for step in steps {
                let inserted = transaction
                    .prepare_cached(
                        "INSERT INTO policy_events
                         (run_id, step_id, at, kind, act, target, effect, rule, layer, source, reason)
                         SELECT run_id, step_id, ?2, 'answer', act, target, ?3, rule, layer, 'approver', ?4
                         FROM policy_events WHERE step_id = ?1 AND kind = 'decision' ORDER BY id LIMIT 1",
                    )?
                    .execute(params![step, now(), effect, reason])?;
                if inserted > 0 {
                    link(transaction, "policy_events", transaction.last_insert_rowid())?;
                }
                written += inserted;
            }
            if written > 0 {
                return Ok(());
            }
            transaction
                .prepare_cached(
                    "INSERT INTO runs (started_at, ended_at, kind, goal, root, sandbox, approval, outcome)
                     VALUES (?1, ?1, 'hook', ?2, ?3, 'none', 'none', ?4)",
                )?
                .execute(params![now(), reason, cwd.to_string_lossy(), effect])?;
            link(transaction, "runs", transaction.last_insert_rowid())
        })
    }
}

impl RunRecorder<'_> {
    /// Writes down that a person has approved a step, and by what.
    ///
    /// # Errors
    ///
    /// When it cannot be written; the approval must not count then.
    pub fn approved_because(
        &self,
        record: RecordId,
        request: &Request,
        decision: &Decision,
        reason: &str,
    ) -> Result<(), StoreError> {
        let event = Event { kind: "answer", effect: "approve", source: "approver", reason };
        self.event(record, request, decision, &event)
    }

    /// The same, keeping the questions about commands that nobody answers, so that another process can answer and
    /// resume them: with `options`, what the command line set.
    #[must_use]
    pub fn keeping_questions(mut self, options: Value) -> Self {
        self.questions = Some(options);
        self
    }

    /// What the retention of the settings removed when the run began, or why it removed nothing though it should have;
    /// for a person to read.
    pub fn pruned(&self) -> Option<String> {
        Some(match self.retained.as_ref()? {
            Ok(pruned) => format!(
                "removed {} old runs from the trace, as `trace.keep_days` and `trace.max_bytes` say ({} bytes were in \
                 use, {} are)",
                pruned.runs, pruned.bytes_before, pruned.bytes_after
            ),
            Err(error) => format!("the trace is not pruned: {error}"),
        })
    }

    /// The run's number.
    pub fn run(&self) -> i64 {
        self.run
    }

    /// Writes down how the run ended.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn finish(&self, outcome: &str) -> Result<(), StoreError> {
        self.store.write(|transaction| {
            transaction
                .prepare_cached("UPDATE runs SET ended_at = ?2, outcome = ?3 WHERE id = ?1")?
                .execute(params![self.run, now(), outcome])?;
            link(transaction, "runs", self.run)
        })
    }

    /// Writes a policy event of a step.
    fn event(
        &self,
        record: RecordId,
        request: &Request,
        decision: &Decision,
        event: &Event<'_>,
    ) -> Result<(), StoreError> {
        let row = EventRow::new(request, decision, event, &self.redactor);
        self.store.write(|transaction| row.insert(transaction, self.run, record.0))
    }

    fn sandbox_event(
        &self,
        transaction: &Transaction<'_>,
        step: i64,
        kind: &str,
        backend: Option<&str>,
        detail: Value,
    ) -> rusqlite::Result<()> {
        transaction
            .prepare_cached(
                "INSERT INTO sandbox_events (run_id, step_id, at, kind, backend, detail) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute(params![self.run, step, now(), kind, backend, self.redactor.value(detail).to_string()])?;
        link(transaction, "sandbox_events", transaction.last_insert_rowid())
    }
}

impl Recorder for RunRecorder<'_> {
    fn decided(&self, request: &Request, decision: &Decision) -> Result<RecordId, RecordError> {
        let step = (
            StepRow::new(request, decision, &self.redactor),
            EventRow::of_decision(request, decision, &self.redactor),
        );
        let number = self.store.write(|transaction| insert_decided(transaction, self.run, &step))?;
        Ok(RecordId(number))
    }

    fn answered(
        &self,
        record: RecordId,
        request: &Request,
        decision: &Decision,
        answer: &Answer,
    ) -> Result<(), RecordError> {
        let (effect, reason) = match answer {
            Answer::Approve { modified: Some(action), .. } => {
                ("approve", format!("changed to: {}", crate::words::of(action)))
            }
            Answer::Approve { modified: None, remember } => {
                let rules: Vec<String> =
                    remember.iter().map(|wish| format!("`{}`", wish.rule.pattern.as_str())).collect();
                let reason = if rules.is_empty() {
                    String::new()
                } else {
                    format!("to be remembered: {}", rules.join(", "))
                };
                ("approve", reason)
            }
            Answer::Deny { reason } => ("deny", reason.clone()),
            Answer::Defer => ("defer", String::new()),
        };
        let event = Event { kind: "answer", effect, source: "approver", reason: &reason };
        Ok(self.event(record, request, decision, &event)?)
    }

    fn decided_again(
        &self,
        record: RecordId,
        request: &Request,
        decision: &Decision,
    ) -> Result<(), RecordError> {
        let event = Event {
            kind: "again",
            effect: decision.effect.as_str(),
            source: decision.source.as_str(),
            reason: &decision.reason,
        };
        Ok(self.event(record, request, decision, &event)?)
    }

    fn deferred(
        &self,
        record: RecordId,
        session: &Session,
        request: &Request,
        decision: &Decision,
        content: Option<&str>,
    ) -> Result<Option<i64>, RecordError> {
        let Some(options) = &self.questions else { return Ok(None) };
        match (&request.action, content) {
            (Action::Shell(_) | Action::Exec(_), _) => {}
            (Action::Write(_), Some(content)) if content.len() <= LONGEST_KEPT => {}
            // What is read is for the model, which has gone on by the time of an answer.
            (Action::Read(_) | Action::Write(_), _) => return Ok(None),
        }
        Ok(Some(self.defer(record, session, request, decision, content, options)?))
    }

    fn ended(
        &self,
        record: RecordId,
        _: &Request,
        end: &Result<Finished, ExecError>,
    ) -> Result<(), RecordError> {
        self.store.write(|transaction| {
            transaction
                .prepare_cached("UPDATE steps SET result = ?2, ended_at = ?3 WHERE id = ?1")?
                .execute(params![record.0, self.redactor.value(result_of(end)).to_string(), now()])?;
            link(transaction, "steps", record.0)?;
            match end {
                Ok(finished) => {
                    let backend = backend_of(&finished.enforced.backend);
                    let enforced = &finished.enforced;
                    let detail = json!({
                        "mode": enforced.mode.name(),
                        "rung": enforced.rung.map(cmdgate_executor::Rung::name),
                        "seccomp": enforced.seccomp,
                        "user_namespace": enforced.user_namespace,
                        "pid_namespace": enforced.pid_namespace,
                        "network": format!("{:?}", enforced.network),
                        "reads": format!("{:?}", enforced.reads),
                    });
                    self.sandbox_event(transaction, record.0, "enforced", Some(&backend), detail)?;
                    for denial in &finished.denials {
                        let detail = json!({
                            "operation": format!("{:?}", denial.operation),
                            "rule": denial.rule,
                            "certainty": format!("{:?}", denial.certainty),
                            "reverted": denial.reverted,
                            "evidence": denial.evidence,
                        });
                        self.sandbox_event(transaction, record.0, "denial", Some(&backend), detail)?;
                    }
                }
                Err(error) => {
                    self.sandbox_event(
                        transaction,
                        record.0,
                        "failed",
                        None,
                        json!({ "error": error.to_string() }),
                    )?;
                }
            }
            Ok(())
        })?;
        Ok(())
    }

    fn moved(&self, record: RecordId, end: &Result<u64, String>) -> Result<(), RecordError> {
        let result = match end {
            Ok(bytes) => json!({ "outcome": "done", "bytes": bytes }),
            Err(error) => json!({ "outcome": "failed", "error": error }),
        };
        self.store.write(|transaction| {
            transaction
                .prepare_cached("UPDATE steps SET result = ?2, ended_at = ?3 WHERE id = ?1")?
                .execute(params![record.0, self.redactor.value(result).to_string(), now()])?;
            link(transaction, "steps", record.0)
        })?;
        Ok(())
    }
}

fn result_of(end: &Result<Finished, ExecError>) -> Value {
    let finished = match end {
        Ok(finished) => finished,
        Err(error) => return json!({ "outcome": "not_started", "error": error.to_string() }),
    };
    let outcome = match &finished.outcome {
        Outcome::Exited(code) => json!({ "outcome": "exited", "code": code }),
        Outcome::Signaled(signal) => json!({ "outcome": "signaled", "signal": signal }),
        Outcome::TimedOut { kill_incomplete } => {
            json!({ "outcome": "timed_out", "kill_incomplete": kill_incomplete })
        }
        Outcome::Cancelled { kill_incomplete } => {
            json!({ "outcome": "cancelled", "kill_incomplete": kill_incomplete })
        }
        Outcome::SandboxFailed { stage, text, .. } => {
            json!({ "outcome": "sandbox_failed", "stage": stage.name(), "error": text })
        }
        Outcome::NotStarted(why) => json!({ "outcome": "not_started", "error": not_started(why) }),
    };
    let mut result = outcome;
    if let Some(object) = result.as_object_mut() {
        let millis = u64::try_from(finished.duration.as_millis()).unwrap_or(u64::MAX);
        object.insert("duration_ms".to_owned(), json!(millis));
        object.insert("workdir".to_owned(), json!(finished.workdir.to_string_lossy()));
        for (name, captured) in [("stdout", &finished.stdout), ("stderr", &finished.stderr)] {
            let detail = json!({
                "bytes": captured.total_bytes,
                "lines": captured.total_lines,
                "truncated": captured.truncated,
            });
            object.insert(name.to_owned(), detail);
        }
    }
    result
}

fn backend_of(backend: &Backend) -> String {
    match backend {
        Backend::None => "none".to_owned(),
        Backend::Bubblewrap { version, .. } => format!("bubblewrap {version}"),
        Backend::SandboxExec => "sandbox-exec".to_owned(),
    }
}
