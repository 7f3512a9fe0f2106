//! Serialised forms: everything that leaves the program as JSON is defined here, and nowhere else.
//!
//! A breaking change of any of these raises [`SCHEMA_VERSION`].

use crate::gate::{Decision, DecisionCode, Request};
use cmdgate_classifier::{Classification, Effects, Finding, PathUse, Verdict};
use serde::Serialize;

/// The version of all forms in this module.
pub const SCHEMA_VERSION: u32 = 1;

/// The answer to one classified command.
#[derive(Debug, Serialize)]
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
pub struct BadLine {
    /// What is wrong.
    pub error: BadLineError,
}

/// What is wrong with a line of a batch.
#[derive(Debug, Serialize)]
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
