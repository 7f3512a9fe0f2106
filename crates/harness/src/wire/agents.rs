//! The health of the agents' hooks.

use super::{SCHEMA_VERSION, WireCheck};
use crate::install::health::{AgentHealth, Status};
use serde::Serialize;

/// What `harness doctor --agents` found.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AgentsHealth<'a> {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Whether nothing failed.
    pub well: bool,
    /// Every agent whose settings or program are here.
    pub agents: Vec<WireAgent<'a>>,
}

/// One agent.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WireAgent<'a> {
    /// Its name on the command line.
    pub agent: &'static str,
    /// Where it was found: programs and directories.
    pub seen: Vec<std::borrow::Cow<'a, str>>,
    /// Every check.
    pub checks: Vec<WireCheck<'a>>,
}

impl<'a> AgentsHealth<'a> {
    /// The serialised form of a report.
    pub fn new(agents: &'a [AgentHealth]) -> Self {
        let checks = agents.iter().flat_map(|agent| &agent.checks);
        Self {
            schema_version: SCHEMA_VERSION,
            well: checks.into_iter().all(|check| check.status != Status::Failed),
            agents: agents
                .iter()
                .map(|health| WireAgent {
                    agent: health.agent.name(),
                    seen: health.seen.iter().map(|path| path.to_string_lossy()).collect(),
                    checks: health
                        .checks
                        .iter()
                        .map(|check| WireCheck {
                            name: check.name,
                            status: check.status.as_str(),
                            detail: &check.detail,
                            remedy: check.remedy.as_deref(),
                        })
                        .collect(),
                })
                .collect(),
        }
    }
}
