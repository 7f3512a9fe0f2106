//! Rows as they are written: made of what was decided, secrets taken out, and put into the trace at once or later
//! (`spool`).

use super::record::RunInfo;
use super::{link, now};
use crate::gate::{Action, Decision, DecisionCode, Request};
use crate::redact::Redactor;
use cmdgate_classifier::Verdict;
use rusqlite::{Transaction, named_params, params};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::borrow::Cow;

/// The row of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunRow {
    at: String,
    kind: Cow<'static, str>,
    goal: Option<String>,
    root: String,
    sandbox: Cow<'static, str>,
    approval: Cow<'static, str>,
    /// Of a run that has ended as it began.
    outcome: Option<String>,
}

/// The row of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StepRow {
    at: String,
    tool: Cow<'static, str>,
    /// JSON.
    tool_call: String,
    effect: Cow<'static, str>,
    source: Cow<'static, str>,
    code: Option<Cow<'static, str>>,
    verdict: Option<Cow<'static, str>>,
}

/// The row of a policy event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EventRow {
    at: String,
    kind: Cow<'static, str>,
    act: Cow<'static, str>,
    target: String,
    effect: Cow<'static, str>,
    rule: Option<String>,
    layer: String,
    source: Cow<'static, str>,
    reason: String,
}

/// A run that decides and nothing more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DecidedRun {
    run: RunRow,
    steps: Vec<(StepRow, EventRow)>,
}

/// What differs between the kinds of policy events.
pub(super) struct Event<'a> {
    pub(super) kind: &'static str,
    pub(super) effect: &'static str,
    pub(super) source: &'static str,
    pub(super) reason: &'a str,
}

impl RunRow {
    pub(super) fn new(info: &RunInfo, redactor: &Redactor, outcome: Option<&str>) -> Self {
        Self {
            at: now(),
            kind: info.kind.into(),
            goal: info.goal.as_deref().map(|goal| redactor.text(goal).into_owned()),
            root: info.root.clone(),
            sandbox: info.sandbox.into(),
            approval: info.approval.into(),
            outcome: outcome.map(ToOwned::to_owned),
        }
    }

    /// Writes it; gives the run's number.
    pub(super) fn insert(&self, transaction: &Transaction<'_>) -> rusqlite::Result<i64> {
        transaction
            .prepare_cached(
                "INSERT INTO runs (started_at, ended_at, kind, goal, root, sandbox, approval, outcome)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?
            .execute(params![
                self.at,
                self.outcome.as_ref().map(|_| &self.at),
                self.kind,
                self.goal,
                self.root,
                self.sandbox,
                self.approval,
                self.outcome,
            ])?;
        let run = transaction.last_insert_rowid();
        link(transaction, "runs", run)?;
        Ok(run)
    }
}

impl StepRow {
    pub(super) fn new(request: &Request, decision: &Decision, redactor: &Redactor) -> Self {
        Self {
            at: now(),
            tool: tool_of(&request.action).into(),
            tool_call: redactor.value(call_of(request)).to_string(),
            effect: decision.effect.as_str().into(),
            source: decision.source.as_str().into(),
            code: decision.code.map(DecisionCode::as_str).map(Cow::from),
            verdict: decision.verdict.map(Verdict::as_str).map(Cow::from),
        }
    }

    /// Writes it as the next one of its run; gives its number.
    fn insert(&self, transaction: &Transaction<'_>, run: i64) -> rusqlite::Result<i64> {
        transaction
            .prepare_cached(
                "INSERT INTO steps (run_id, step, at, tool, tool_call, effect, source, code, verdict)
                 VALUES (:run, (SELECT coalesce(max(step), 0) + 1 FROM steps WHERE run_id = :run),
                         :at, :tool, :call, :effect, :source, :code, :verdict)",
            )?
            .execute(named_params! {
                ":run": run,
                ":at": self.at,
                ":tool": self.tool,
                ":call": self.tool_call,
                ":effect": self.effect,
                ":source": self.source,
                ":code": self.code,
                ":verdict": self.verdict,
            })?;
        let step = transaction.last_insert_rowid();
        link(transaction, "steps", step)?;
        Ok(step)
    }
}

impl EventRow {
    pub(super) fn new(
        request: &Request,
        decision: &Decision,
        event: &Event<'_>,
        redactor: &Redactor,
    ) -> Self {
        let ruling = decision.ruling.as_ref();
        let act = ruling.map_or(request.action.act(), |ruling| ruling.act);
        let target = match ruling {
            Some(ruling) if !ruling.target.is_empty() => Cow::from(&ruling.target),
            Some(_) | None => request.action.text(),
        };
        Self {
            at: now(),
            kind: event.kind.into(),
            act: act.as_str().into(),
            target: redactor.text(&target).into_owned(),
            effect: event.effect.into(),
            rule: decision.rule().map(ToOwned::to_owned),
            layer: decision.layer().to_owned(),
            source: event.source.into(),
            reason: redactor.text(event.reason).into_owned(),
        }
    }

    /// What a step was decided to be.
    pub(super) fn of_decision(request: &Request, decision: &Decision, redactor: &Redactor) -> Self {
        let event = Event {
            kind: "decision",
            effect: decision.effect.as_str(),
            source: decision.source.as_str(),
            reason: &decision.reason,
        };
        Self::new(request, decision, &event, redactor)
    }

    /// Writes it.
    pub(super) fn insert(&self, transaction: &Transaction<'_>, run: i64, step: i64) -> rusqlite::Result<()> {
        transaction
            .prepare_cached(
                "INSERT INTO policy_events (run_id, step_id, at, kind, act, target, effect, rule, layer, source, reason)
                 VALUES (:run, :step, :at, :kind, :act, :target, :effect, :rule, :layer, :source, :reason)",
            )?
            .execute(named_params! {
                ":run": run,
                ":step": step,
                ":at": self.at,
                ":kind": self.kind,
                ":act": self.act,
                ":target": self.target,
                ":effect": self.effect,
                ":rule": self.rule,
                ":layer": self.layer,
                ":source": self.source,
                ":reason": self.reason,
            })?;
        link(transaction, "policy_events", transaction.last_insert_rowid())
    }
}

/// Writes a step with its decision; gives the step's number.
pub(super) fn insert_decided(
    transaction: &Transaction<'_>,
    run: i64,
    (step, event): &(StepRow, EventRow),
) -> rusqlite::Result<i64> {
    let number = step.insert(transaction, run)?;
    event.insert(transaction, run, number)?;
    Ok(number)
}

impl DecidedRun {
    pub(super) fn new(
        info: &RunInfo,
        decisions: &[(Request, Decision)],
        outcome: &str,
        redactor: &Redactor,
    ) -> Self {
        let steps = decisions.iter().map(|(request, decision)| {
            (StepRow::new(request, decision, redactor), EventRow::of_decision(request, decision, redactor))
        });
        Self { run: RunRow::new(info, redactor, Some(outcome)), steps: steps.collect() }
    }

    /// Writes all of it; gives the numbers of the run and its steps.
    pub(super) fn insert(&self, transaction: &Transaction<'_>) -> rusqlite::Result<(i64, Vec<i64>)> {
        let run = self.run.insert(transaction)?;
        let steps = self.steps.iter().map(|step| insert_decided(transaction, run, step));
        Ok((run, steps.collect::<rusqlite::Result<_>>()?))
    }
}

const fn tool_of(action: &Action) -> &'static str {
    match action {
        Action::Shell(_) => "shell",
        Action::Exec(_) => "exec",
        Action::Read(_) => "read_file",
        Action::Write(_) => "write_file",
    }
}

fn call_of(request: &Request) -> Value {
    let workdir = request.workdir.as_ref().map(|path| path.to_string_lossy());
    match &request.action {
        Action::Shell(command) => json!({ "command": command, "workdir": workdir }),
        Action::Exec(argv) => json!({ "argv": argv, "workdir": workdir }),
        Action::Read(path) | Action::Write(path) => json!({ "path": path.to_string_lossy() }),
    }
}
