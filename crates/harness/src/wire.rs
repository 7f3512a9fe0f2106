//! Serialised forms: everything that leaves the program as JSON is defined here, and nowhere else.
//!
//! A breaking change of any of these raises [`SCHEMA_VERSION`].

pub mod agent;
pub mod agents;
pub mod config;
pub mod rules;
#[cfg(test)]
mod schema;
pub mod trace;

use crate::gate::{Decision, DecisionCode, Request};
use crate::present;
use crate::session::Reply;
use cmdgate_classifier::{Classification, Effects, Finding, PathUse, Verdict};
use cmdgate_executor::output::{Chunk, render};
use cmdgate_executor::probe::{CheckStatus, Report};
use cmdgate_executor::{
    Captured, Finished, Holds, LimitStatus, NetworkEnforced, Outcome, Poll, Reads, Rung, State, Stream,
};
use serde::Serialize;
use std::path::Path;

/// The version of all forms in this module.
pub const SCHEMA_VERSION: u32 = 1;

/// The JSON Schema of all forms that the subcommands print.
pub const SCHEMA: &str = include_str!("../wire.schema.json");

/// The answer to one classified command.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Classified<'a> {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The command as it was given.
    pub command: &'a str,
    /// `safe` or `needs_review`.
    pub verdict: &'static str,
    /// Why it needs review; empty when it is safe.
    pub findings: Vec<WireFinding<'a>>,
    /// What it would do, as far as it was understood.
    pub effects: WireEffects<'a>,
    /// What must be provided for the verdict to hold.
    pub conditions: Vec<&'static str>,
}

/// One reason.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WireFinding<'a> {
    /// The stable code.
    pub code: &'static str,
    /// One plain sentence fragment.
    pub message: &'a str,
    /// First and one past the last deciding byte of the command.
    pub span: [u32; 2],
    /// The table row that decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<String>,
}

/// What a command would do.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WireEffects<'a> {
    /// Paths that are read.
    pub reads: Vec<WirePath<'a>>,
    /// Paths that are written.
    pub writes: Vec<WirePath<'a>>,
    /// Programs that are run, each as its words.
    pub runs: Vec<&'a [std::borrow::Cow<'a, str>]>,
    /// Hosts that are reached; empty texts stand for unknown ones.
    pub network: &'a [std::borrow::Cow<'a, str>],
}

/// A path with the directory that it is relative to.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WirePath<'a> {
    /// The path as the program gets it.
    pub path: &'a str,
    /// The directory it is relative to, itself relative to the working directory; left out when it is that.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub directory: &'a str,
    /// Whether the shell expands it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub pattern: bool,
}

/// A line of a batch that could not be judged.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BadLine {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// What is wrong.
    pub error: BadLineError,
}

/// What is wrong with a line of a batch.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BadLineError {
    /// `bad_line`
    pub code: &'static str,
    /// The line's number, counted from 1.
    pub line: u64,
    /// What is wrong and what a line must be.
    pub message: String,
}

impl<'a> Classified<'a> {
    /// The serialised form of a classification.
    pub fn new(command: &'a str, classification: &'a Classification<'_>) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            command,
            verdict: classification.verdict().as_str(),
            findings: classification.findings.iter().map(WireFinding::new).collect(),
            effects: WireEffects::new(&classification.effects),
            conditions: classification.conditions.iter().map(cmdgate_classifier::Condition::as_str).collect(),
        }
    }
}

impl<'a> WireFinding<'a> {
    /// The serialised form of a finding.
    pub fn new(finding: &'a Finding) -> Self {
        Self {
            code: finding.code.as_str(),
            message: &finding.message,
            span: [finding.span.start, finding.span.end],
            row: finding.row.map(row_name),
        }
    }
}

/// A row as a person would name it: `git log --output`.
pub fn row_name(row: cmdgate_classifier::Row) -> String {
    [row.program, row.subcommand, row.flag.unwrap_or("")]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

impl<'a> WireEffects<'a> {
    fn new(effects: &'a Effects<'_>) -> Self {
        let path = |used: &'a PathUse<'_>| WirePath {
            path: &used.path,
            directory: effects.directory(used.directory),
            pattern: used.pattern,
        };
        Self {
            reads: effects.reads.iter().map(path).collect(),
            writes: effects.writes.iter().map(path).collect(),
            runs: effects.runs.iter().map(|run| run.argv.as_slice()).collect(),
            network: &effects.network,
        }
    }
}

/// A decision.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Decided<'a> {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// What was asked about, as one line.
    pub command: String,
    /// `allow`, `ask` or `deny`.
    pub effect: &'static str,
    /// The stable code of an ask or deny.
    pub code: Option<&'static str>,
    /// Where the decision comes from.
    pub source: &'static str,
    /// One plain sentence.
    pub reason: &'a str,
    /// The rule that decided, as it is written.
    pub rule: Option<&'a str>,
    /// The layer that decided.
    pub layer: &'a str,
    /// `safe` or `needs_review`, for commands.
    pub verdict: Option<&'static str>,
    /// Why a command needs review.
    pub findings: Vec<WireFinding<'a>>,
    /// The conditions of a safe verdict.
    pub conditions: Vec<&'static str>,
}

impl<'a> Decided<'a> {
    /// The serialised form of a decision.
    pub fn new(request: &Request, decision: &'a Decision) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            command: request.action.text().into_owned(),
            effect: decision.effect.as_str(),
            code: decision.code.map(DecisionCode::as_str),
            source: decision.source.as_str(),
            reason: &decision.reason,
            rule: decision.rule(),
            layer: decision.layer(),
            verdict: decision.verdict.map(Verdict::as_str),
            findings: decision.findings.iter().map(WireFinding::new).collect(),
            conditions: decision.conditions.iter().map(|condition| condition.as_str()).collect(),
        }
    }
}

/// What became of a request.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Replied<'a> {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// What was asked for, as one line.
    pub command: &'a str,
    /// `ran`, `refused`, `approval_required`, `failed` or `not_recorded`; of a file that was approved `written`; of a tool also `decided`, `background` or
    /// `invalid`.
    pub reply: &'static str,
    /// `allow`, `ask` or `deny`; absent when nothing was decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<&'static str>,
    /// The stable code of what went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<&'static str>,
    /// Why it was decided so, or what went wrong.
    pub reason: String,
    /// The rule that decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<&'a str>,
    /// The layer that decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<&'a str>,
    /// `safe` or `needs_review`, when a command was only looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<&'static str>,
    /// The conditions of a safe verdict, when a command was only looked at.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<&'static str>,
    /// Why the command needs review.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<WireFinding<'a>>,
    /// How it ended, when it ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<WireRun<'a>>,
    /// What is known of it, when it runs in the background.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background: Option<WireBackground>,
    /// Advice, where a dedicated tool would have done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The number of the question, where it was kept for `harness approvals`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<i64>,
    /// What a person should know about the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<&'static str>,
}

/// A command in the background.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WireBackground {
    /// Its number.
    pub id: u64,
    /// `running`, `ended` or `failed`.
    pub state: &'static str,
    /// As of a finished run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<&'static str>,
    /// The exit code, when it exited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal, when one ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// What came on standard output since the last poll; absent when nothing was polled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdout: Option<WireNew>,
    /// What came on standard error since the last poll; absent when nothing was polled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<WireNew>,
}

/// New output.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WireNew {
    /// The text.
    pub text: String,
    /// How many bytes before it are not shown.
    pub skipped_bytes: u64,
}

impl WireBackground {
    /// One that was just started.
    pub const fn started(id: u64) -> Self {
        Self {
            id,
            state: "running",
            outcome: None,
            exit_code: None,
            signal: None,
            stdout: None,
            stderr: None,
        }
    }

    /// What a poll found.
    pub fn polled(id: u64, poll: &Poll) -> Self {
        let new =
            |chunk: &Chunk| Some(WireNew { text: chunk.text.clone(), skipped_bytes: chunk.skipped_bytes });
        let (state, outcome) = match &poll.state {
            State::Running => ("running", None),
            State::Failed(_) => ("failed", None),
            State::Ended(finished) => ("ended", Some(outcome_of(&finished.outcome))),
        };
        Self {
            id,
            state,
            outcome: outcome.map(|(name, ..)| name),
            exit_code: outcome.and_then(|(_, code, ..)| code),
            signal: outcome.and_then(|(_, _, signal, _)| signal),
            stdout: new(&poll.stdout),
            stderr: new(&poll.stderr),
        }
    }
}

/// Name, exit code, signal, and whether a kill was incomplete.
const fn outcome_of(outcome: &Outcome) -> (&'static str, Option<i32>, Option<i32>, bool) {
    match outcome {
        Outcome::Exited(code) => ("exited", Some(*code), None, false),
        Outcome::Signaled(signal) => ("signaled", None, Some(*signal), false),
        Outcome::TimedOut { kill_incomplete } => ("timed_out", None, None, *kill_incomplete),
        Outcome::Cancelled { kill_incomplete } => ("cancelled", None, None, *kill_incomplete),
        Outcome::SandboxFailed { .. } => ("sandbox_failed", None, None, false),
        Outcome::NotStarted(_) => ("not_started", None, None, false),
    }
}

/// A finished run.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WireRun<'a> {
    /// `exited`, `signaled`, `timed_out`, `cancelled`, `sandbox_failed` or `not_started`.
    pub outcome: &'static str,
    /// The exit code, when it exited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal, when one ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Whether something could not be shown to be gone after a kill.
    pub kill_incomplete: bool,
    /// Wall-clock time in milliseconds.
    pub duration_ms: u64,
    /// The directory it ran in, relative to the root.
    pub workdir: String,
    /// Standard output.
    pub stdout: WireOutput<'a>,
    /// Standard error.
    pub stderr: WireOutput<'a>,
    /// What was in force.
    pub enforced: WireEnforced,
    /// What was denied, one line each.
    pub denials: Vec<String>,
}

/// One output stream.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WireOutput<'a> {
    /// The text, with a note where it was cut.
    pub text: String,
    /// Whether it was cut.
    pub truncated: bool,
    /// All bytes that came.
    pub total_bytes: u64,
    /// All lines that came.
    pub total_lines: u64,
    /// The file with the whole output, where one was asked for and needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spill: Option<std::borrow::Cow<'a, str>>,
}

/// What was in force while a command ran.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WireEnforced {
    /// The sandbox mode.
    pub mode: &'static str,
    /// The rung of the sandbox; absent without one.
    pub rung: Option<&'static str>,
    /// Whether the system call filters were on.
    pub seccomp: bool,
    /// Whether it had a user namespace of its own, without capabilities.
    pub user_namespace: bool,
    /// Whether it had a process namespace of its own.
    pub pid_namespace: bool,
    /// `closed`, `proxy_only` or `open`.
    pub network: &'static str,
    /// `everything` or `project_and_system`.
    pub reads: &'static str,
    /// Every bound that was asked for, and whether it held.
    pub limits: Vec<WireLimit>,
}

/// A bound on what a command may use.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WireLimit {
    /// `processes`, `open_files`, `file_size`, `data`, `cpu_seconds`, `memory`, `shared_memory` or `core_files`; and
    /// `ends_with_caller` where the command may outlive a harness that is ended by SIGKILL.
    pub name: &'static str,
    /// Its value: a number, bytes or seconds.
    pub value: u64,
    /// Whether it held.
    pub holds: bool,
    /// By what, where it held: `control_group` (the whole tree), `resource_limit` (each process; the tree for processes)
    /// or `mount` (a file system in memory).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<&'static str>,
    /// Why it did not hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl WireLimit {
    fn new(status: &LimitStatus) -> Self {
        let (by, reason) = match &status.holds {
            Holds::ControlGroup => (Some("control_group"), None),
            Holds::ResourceLimit => (Some("resource_limit"), None),
            Holds::Mount => (Some("mount"), None),
            Holds::Unenforced(reason) => (None, Some(reason.clone())),
        };
        Self { name: status.kind.name(), value: status.value, holds: by.is_some(), by, reason }
    }
}

/// The name of a reply.
pub const fn reply_kind(reply: &Reply) -> &'static str {
    match reply {
        Reply::Ran { .. } => "ran",
        Reply::Refused(_) => "refused",
        Reply::ApprovalRequired { .. } => "approval_required",
        Reply::Failed(_) => "failed",
        Reply::NotRecorded(_) => "not_recorded",
    }
}

impl<'a> Replied<'a> {
    /// The serialised form of a reply.
    pub fn new(command: &'a str, root: &Path, reply: &'a Reply) -> Self {
        let mut replied = Self::of_kind(command, reply_kind(reply));
        match reply {
            Reply::Ran { decision, finished, .. } => {
                replied.decision(decision);
                replied.run = Some(WireRun::new(root, finished));
                replied.code = match &finished.outcome {
                    Outcome::TimedOut { .. } => Some("TIMEOUT"),
                    Outcome::Cancelled { .. } => Some("ABORTED"),
                    Outcome::SandboxFailed { .. } | Outcome::NotStarted(_) => Some("EXECUTION_ERROR"),
                    Outcome::Exited(_) | Outcome::Signaled(_) => None,
                };
            }
            Reply::Refused(decision) => replied.decision(decision),
            Reply::ApprovalRequired { decision, approval, .. } => {
                replied.decision(decision);
                replied.approval = *approval;
            }
            Reply::Failed(error) => {
                replied.code = Some("EXECUTION_ERROR");
                replied.reason = error.to_string();
            }
            Reply::NotRecorded(error) => {
                replied.code = Some("EXECUTION_ERROR");
                replied.reason = error.to_string();
            }
        }
        replied
    }

    const fn of_kind(command: &'a str, reply: &'static str) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            command,
            reply,
            effect: None,
            code: None,
            reason: String::new(),
            rule: None,
            layer: None,
            verdict: None,
            conditions: Vec::new(),
            findings: Vec::new(),
            approval: None,
            warnings: Vec::new(),
            run: None,
            background: None,
            hint: None,
        }
    }

    /// What would be decided about a command that nobody runs.
    pub fn decided(command: &'a str, decision: &'a Decision) -> Self {
        let mut replied = Self::of_kind(command, "decided");
        replied.decision(decision);
        replied.verdict = decision.verdict.map(Verdict::as_str);
        replied.conditions = decision.conditions.iter().map(|condition| condition.as_str()).collect();
        replied
    }

    /// What is known of a command in the background.
    pub fn background(command: &'a str, background: WireBackground) -> Self {
        Self { background: Some(background), ..Self::of_kind(command, "background") }
    }

    /// Nothing came of a call: `invalid` when its arguments are wrong, else `failed`.
    pub fn without_decision(code: &'static str, reason: &str) -> Self {
        let reply = if code == DecisionCode::ValidationError.as_str() { "invalid" } else { "failed" };
        Self { code: Some(code), reason: reason.to_owned(), ..Self::of_kind("", reply) }
    }

    /// What became of a file that was to be written.
    pub fn of_file(path: &'a str, reply: &'static str, code: Option<&'static str>, text: &str) -> Self {
        Self { code, reason: text.to_owned(), ..Self::of_kind(path, reply) }
    }

    fn decision(&mut self, decision: &'a Decision) {
        self.effect = Some(decision.effect.as_str());
        self.code = decision.code.map(DecisionCode::as_str);
        self.reason.clone_from(&decision.reason);
        self.rule = decision.rule();
        self.layer = Some(decision.layer());
        self.findings = decision.findings.iter().map(WireFinding::new).collect();
    }
}

impl<'a> WireRun<'a> {
    fn new(root: &Path, finished: &'a Finished) -> Self {
        let (outcome, exit_code, signal, kill_incomplete) = outcome_of(&finished.outcome);
        let output = |captured: &'a Captured, stream: Stream| WireOutput {
            text: render(captured, stream),
            truncated: captured.truncated,
            total_bytes: captured.total_bytes,
            total_lines: captured.total_lines,
            spill: captured.spill.as_ref().map(|path| path.to_string_lossy()),
        };
        let enforced = &finished.enforced;
        Self {
            outcome,
            exit_code,
            signal,
            kill_incomplete,
            duration_ms: u64::try_from(finished.duration.as_millis()).unwrap_or(u64::MAX),
            workdir: present::shown_workdir(root, &finished.workdir),
            stdout: output(&finished.stdout, Stream::Stdout),
            stderr: output(&finished.stderr, Stream::Stderr),
            enforced: WireEnforced {
                mode: enforced.mode.name(),
                rung: enforced.rung.map(Rung::name),
                seccomp: enforced.seccomp,
                user_namespace: enforced.user_namespace,
                pid_namespace: enforced.pid_namespace,
                network: match enforced.network {
                    NetworkEnforced::Closed => "closed",
                    NetworkEnforced::ProxyOnly => "proxy_only",
                    NetworkEnforced::Open => "open",
                },
                reads: match enforced.reads {
                    Reads::Everything => "everything",
                    Reads::ProjectAndSystem => "project_and_system",
                },
                limits: enforced.limits.iter().map(WireLimit::new).collect(),
            },
            denials: finished.denials.iter().map(cmdgate_executor::Denial::line).collect(),
        }
    }
}

/// What a machine can enforce.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Health<'a> {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Whether nothing failed.
    pub well: bool,
    /// The rung that the sandbox reaches.
    pub rung: Option<&'static str>,
    /// Every check.
    pub checks: Vec<WireCheck<'a>>,
}

/// One check.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WireCheck<'a> {
    /// Its stable name.
    pub name: &'static str,
    /// `ok`, `note`, `warning` or `failed`.
    pub status: &'static str,
    /// What was seen.
    pub detail: &'a str,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<&'a str>,
}

impl<'a> Health<'a> {
    /// The serialised form of a report.
    pub fn new(report: &'a Report) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            well: report.checks.iter().all(|check| check.status != CheckStatus::Failed),
            rung: report.rung.map(Rung::name),
            checks: report
                .checks
                .iter()
                .map(|check| WireCheck {
                    name: check.name,
                    status: check_status(check.status),
                    detail: &check.detail,
                    remedy: check.remedy.as_deref(),
                })
                .collect(),
        }
    }
}

/// The stable spelling of a check's status.
pub const fn check_status(status: CheckStatus) -> &'static str {
    match status {
        CheckStatus::Ok => "ok",
        CheckStatus::Warning => "warning",
        CheckStatus::Failed => "failed",
    }
}
