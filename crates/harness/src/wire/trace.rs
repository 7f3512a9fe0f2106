//! Serialised forms of what the trace holds.

use super::SCHEMA_VERSION;
use crate::store::{Fault, Pruned, Verified};
use serde::Serialize;
use serde_json::Value;

/// Steps of the trace, as `harness log --json` prints them.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Log<'a> {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The steps, the oldest first.
    pub steps: &'a [LoggedStep],
}

impl<'a> Log<'a> {
    /// The serialised form of these steps.
    pub const fn new(steps: &'a [LoggedStep]) -> Self {
        Self { schema_version: SCHEMA_VERSION, steps }
    }
}

/// One tool call and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LoggedStep {
    /// Its number in the trace.
    pub id: i64,
    /// The run it belongs to.
    pub run: i64,
    /// Its number in the run.
    pub step: i64,
    /// When it was decided, RFC 3339.
    pub at: String,
    /// `command`, `agent`, `hook` or `mcp`.
    pub kind: String,
    /// The project root.
    pub root: String,
    /// The tool.
    pub tool: String,
    /// What was asked for.
    pub call: Value,
    /// The same as one line.
    pub command: String,
    /// What became of it: `allowed`, `denied`, `asked`, `approved`, `deferred`.
    pub status: &'static str,
    /// The first decision: `allow`, `ask` or `deny`.
    pub effect: String,
    /// Where the decision comes from.
    pub source: String,
    /// The stable code of an ask or deny.
    pub code: Option<String>,
    /// `safe` or `needs_review`.
    pub verdict: Option<String>,
    /// The rule that decided.
    pub rule: Option<String>,
    /// The layer that decided.
    pub layer: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// What the approver said, or what was decided after that.
    pub answer: Option<String>,
    /// The approver's message.
    pub answer_reason: Option<String>,
    /// How it ended; absent while it goes on, or when it never ran.
    pub outcome: Option<String>,
    /// The exit code.
    pub exit_code: Option<i64>,
    /// When it ended.
    pub ended_at: Option<String>,
}

/// One step, as `harness log tail --json` prints it.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LogLine<'a> {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The step.
    #[serde(flatten)]
    pub step: &'a LoggedStep,
}

/// One step with all that was recorded about it.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StepDetail {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The step.
    #[serde(flatten)]
    pub step: LoggedStep,
    /// How it ended.
    pub result: Option<Value>,
    /// Its decisions and answers.
    pub policy_events: Vec<Value>,
    /// What confined it, and what was denied meanwhile.
    pub sandbox_events: Vec<Value>,
}

/// One row of `harness log export`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Exported<'a> {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The table.
    pub table: &'a str,
    /// The row, by column.
    pub row: &'a Value,
}

/// What `harness log verify` found.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WireVerified<'a> {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Whether nothing is wrong.
    pub intact: bool,
    /// How many links were checked.
    pub links: u64,
    /// The last hash.
    pub head: &'a str,
    /// What is wrong.
    pub faults: Vec<WireFault>,
}

/// One fault.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WireFault {
    /// `broken_link`, `changed`, `removed`, `added`, `foreign` or `damaged`.
    pub kind: &'static str,
    /// A sentence.
    pub message: String,
}

impl<'a> WireVerified<'a> {
    /// The serialised form.
    pub fn new(verified: &'a Verified) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            intact: verified.faults.is_empty(),
            links: verified.links,
            head: &verified.head,
            faults: verified.faults.iter().map(WireFault::new).collect(),
        }
    }
}

impl WireFault {
    fn new(fault: &Fault) -> Self {
        Self { kind: fault.kind(), message: fault.to_string() }
    }
}

/// What `harness log prune` removed.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WirePruned {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Runs.
    pub runs: u64,
    /// Rows of all tables.
    pub rows: u64,
    /// Bytes in use before.
    pub bytes_before: u64,
    /// Bytes in use after.
    pub bytes_after: u64,
}

impl WirePruned {
    /// The serialised form.
    pub const fn new(pruned: &Pruned) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            runs: pruned.runs,
            rows: pruned.rows,
            bytes_before: pruned.bytes_before,
            bytes_after: pruned.bytes_after,
        }
    }
}
