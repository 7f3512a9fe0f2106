//! The serialised form of an agent's run.

use super::SCHEMA_VERSION;
use crate::agent::{RunError, RunResult};
use serde::Serialize;

/// How a run of an agent ended, as `harness agent --json` prints it.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AgentRun<'a> {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// `done`, `out_of_steps`, `out_of_time`, `out_of_tokens`, `cancelled`, or `failed`.
    pub outcome: &'static str,
    /// The run's number in the trace; absent when it did not begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<i64>,
    /// The model that was asked.
    pub model: &'a str,
    /// How often it answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u32>,
    /// The tokens used, as far as the server says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// What the model said last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<&'a str>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl<'a> AgentRun<'a> {
    /// The serialised form of a run that ended.
    pub fn ended(model: &'a str, result: &'a RunResult) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            outcome: result.outcome.as_str(),
            run: Some(result.run_id),
            model,
            steps: Some(result.steps),
            tokens: Some(result.tokens),
            answer: Some(&result.answer),
            error: None,
        }
    }

    /// The serialised form of a run that failed.
    pub fn failed(model: &'a str, run: Option<i64>, error: &RunError) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            outcome: "failed",
            run,
            model,
            steps: None,
            tokens: None,
            answer: None,
            error: Some(error.to_string()),
        }
    }
}
