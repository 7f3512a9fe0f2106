//! Serialised forms of approvals, of remembered rules, and of rules that were imported or are proposed.

use super::SCHEMA_VERSION;
use crate::approve::pending::Pending;
use crate::approve::remember::Remembered;
use crate::import::Imported;
use crate::learn::{History, Proposal};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;

/// Stored questions, as `harness approvals list --json` prints them.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Approvals<'a> {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The questions, the oldest first.
    pub approvals: Vec<WireApproval<'a>>,
}

/// One stored question, as the other subcommands of `harness approvals` print it with `--json`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Approval<'a> {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The question.
    #[serde(flatten)]
    pub approval: WireApproval<'a>,
    /// What differs now from when it was asked; of `show` and `approve` alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<&'a [String]>,
}

/// A stored question.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WireApproval<'a> {
    /// Its number.
    pub id: i64,
    /// The run it belongs to.
    pub run: i64,
    /// The step of the trace that asks.
    pub step: i64,
    /// When it was asked, RFC 3339.
    pub at: &'a str,
    /// The project root.
    pub root: Cow<'a, str>,
    /// The real working directory.
    pub workdir: Cow<'a, str>,
    /// In what sandbox it would have run when it was asked.
    pub sandbox: &'a str,
    /// What was asked for, as one line.
    pub command: String,
    /// What a file tool would write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<&'a str>,
    /// Whether it is stored whole; one that holds a secret is not.
    pub resumable: bool,
    /// `pending`, `approved`, `denied` or `resumed`.
    pub state: &'a str,
    /// When it was answered.
    pub answered_at: Option<&'a str>,
    /// A message of the person who answered.
    pub message: Option<&'a str>,
    /// Hash of all layers and settings when it was asked.
    pub policy_hash: &'a str,
    /// The files that the command names or that drive it.
    pub files: Vec<WireFile<'a>>,
    /// The decision that was shown, in the form of `harness check --json`.
    pub decision: Option<&'a Value>,
}

/// A file as it was.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WireFile<'a> {
    /// The path under which it is reached.
    pub path: Cow<'a, str>,
    /// SHA-256 of size and content; null when there was no such file.
    pub sha256: Option<&'a str>,
}

impl<'a> WireApproval<'a> {
    /// The serialised form of a stored question.
    pub fn new(pending: &'a Pending) -> Self {
        Self {
            id: pending.id,
            run: pending.run,
            step: pending.step,
            at: &pending.at,
            root: pending.root.to_string_lossy(),
            workdir: pending.workdir.to_string_lossy(),
            sandbox: pending.sandbox(),
            command: pending.line(),
            content: pending.content.as_deref(),
            resumable: pending.resumable,
            state: &pending.state,
            answered_at: pending.answered_at.as_deref(),
            message: pending.answer.as_deref(),
            policy_hash: &pending.policy_hash,
            files: pending
                .files
                .iter()
                .map(|file| WireFile { path: file.path.to_string_lossy(), sha256: file.sha256.as_deref() })
                .collect(),
            decision: pending.shown.get("decision"),
        }
    }
}

impl<'a> Approvals<'a> {
    /// The serialised form of these questions.
    pub fn new(list: &'a [Pending]) -> Self {
        Self { schema_version: SCHEMA_VERSION, approvals: list.iter().map(WireApproval::new).collect() }
    }
}

impl<'a> Approval<'a> {
    /// The serialised form of a question, with what changed since where that was looked at.
    pub fn new(pending: &'a Pending, changes: Option<&'a [String]>) -> Self {
        Self { schema_version: SCHEMA_VERSION, approval: WireApproval::new(pending), changes }
    }
}

/// Remembered rules, as `harness rules list --json` prints them.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Rules<'a> {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The file in which they stand.
    pub file: Cow<'a, str>,
    /// The rules, in its order.
    pub rules: Vec<WireRemembered<'a>>,
}

/// A remembered rule.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WireRemembered<'a> {
    /// Its number, for `harness rules remove`.
    pub number: usize,
    /// The project it counts in; null when it counts everywhere.
    pub project: Option<&'a str>,
    /// `read`, `write`, `exec` or `net`.
    pub act: &'static str,
    /// `allow`, `ask` or `deny`.
    pub effect: &'static str,
    /// The pattern.
    pub pattern: &'a str,
    /// Whether only the whole command counts.
    pub whole: bool,
    /// Whether the spaces of its pattern stand between words.
    pub words: bool,
    /// Why it is there.
    pub reason: Option<&'a str>,
    /// When it ends, RFC 3339; null when it does not.
    pub expires: Option<String>,
}

impl<'a> Rules<'a> {
    /// The serialised form of the rules of a file.
    pub fn new(file: &'a std::path::Path, rules: &'a [Remembered]) -> Self {
        let rules = rules.iter().map(|found| WireRemembered {
            number: found.number,
            project: found.project.as_deref(),
            act: found.rule.act.as_str(),
            effect: found.rule.effect.as_str(),
            pattern: found.rule.pattern.as_str(),
            whole: found.rule.whole,
            words: found.rule.words,
            reason: found.rule.reason.as_deref(),
            expires: found.rule.expires.map(|expires| expires.to_string()),
        });
        Self { schema_version: SCHEMA_VERSION, file: file.to_string_lossy(), rules: rules.collect() }
    }
}

/// What became of the rules of another agent, as `harness import --report --json` prints it.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ImportReport<'a> {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Whose rules they were.
    pub source: &'static str,
    /// The name of the layer that they became.
    pub layer: &'a str,
    /// How the other agent combines its rules.
    pub combines: &'static str,
    /// Each rule of the source, in the order of the files.
    pub entries: Vec<WireEntry<'a>>,
    /// What differs for all of them.
    pub remarks: &'a [&'static str],
}

/// One rule of another agent.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WireEntry<'a> {
    /// The file.
    pub file: &'a str,
    /// The line in it, from 1.
    pub line: usize,
    /// The rule as the source has it.
    pub rule: &'a str,
    /// `exactly`, `stricter` or `not`.
    pub carried: &'static str,
    /// Why not exactly; empty where it was.
    pub why: &'a str,
    /// The rules it became, as `effect act pattern`.
    pub became: &'a [String],
}

impl<'a> ImportReport<'a> {
    /// The serialised form of a report.
    pub fn new(imported: &'a Imported) -> Self {
        let entries = imported.entries.iter().map(|entry| WireEntry {
            file: &entry.file,
            line: entry.line,
            rule: &entry.source,
            carried: entry.carried.as_str(),
            why: &entry.why,
            became: &entry.became,
        });
        Self {
            schema_version: SCHEMA_VERSION,
            source: imported.source.as_str(),
            layer: &imported.layer.name,
            combines: imported.source.combines(),
            entries: entries.collect(),
            remarks: &imported.remarks,
        }
    }
}

/// Rules that would have saved questions, as `harness learn --json` prints them.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Learned<'a> {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// How many commands ran.
    pub commands: usize,
    /// How many different ones.
    pub different: usize,
    /// How many entries could not be used.
    pub skipped: usize,
    /// The rules, the most saving first.
    pub proposals: Vec<WireProposal<'a>>,
}

/// A proposed rule.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WireProposal<'a> {
    /// `exec`.
    pub act: &'static str,
    /// `allow`.
    pub effect: &'static str,
    /// The pattern.
    pub pattern: &'a str,
    /// Whether only the whole command counts.
    pub whole: bool,
    /// How many questions it would have saved by itself.
    pub saves: usize,
    /// In how many lines that were asked about it has a part.
    pub needed: usize,
    /// Commands that ran and that it matches.
    pub matches: &'a [String],
    /// What else it would let pass, as examples.
    pub also: &'a [String],
}

impl<'a> Learned<'a> {
    /// The serialised form of these proposals.
    pub fn new(history: &History, proposals: &'a [Proposal]) -> Self {
        let proposals = proposals.iter().map(|proposal| WireProposal {
            act: proposal.rule.act.as_str(),
            effect: proposal.rule.effect.as_str(),
            pattern: proposal.rule.pattern.as_str(),
            whole: proposal.rule.whole,
            saves: proposal.saves,
            needed: proposal.needed,
            matches: &proposal.matches,
            also: &proposal.also,
        });
        Self {
            schema_version: SCHEMA_VERSION,
            commands: history.commands.values().sum(),
            different: history.commands.len(),
            skipped: history.skipped,
            proposals: proposals.collect(),
        }
    }
}
