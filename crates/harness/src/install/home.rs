//! Where agents keep the user's own settings.

use crate::hook::Agent;
use std::path::{Path, PathBuf};

/// A user's home directory, and the settings that agents keep somewhere else because a variable of theirs says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    path: PathBuf,
    moved: Vec<(Agent, PathBuf)>,
}

impl Home {
    /// A home directory in which every agent keeps its settings.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), moved: Vec::new() }
    }

    /// That of the user, with what the agents' own variables say; none when it is not known. A variable that holds no absolute
    /// path is passed over.
    pub fn from_environment() -> Option<Self> {
        let moved = Agent::ALL.into_iter().filter_map(|agent| {
            let (variable, below) = variable(agent)?;
            let directory = PathBuf::from(std::env::var_os(variable)?);
            directory
                .is_absolute()
                .then(|| (agent, below.map_or_else(|| directory.clone(), |name| directory.join(name))))
        });
        Some(Self { path: std::env::home_dir()?, moved: moved.collect() })
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory of an agent's settings.
    pub fn settings(&self, agent: Agent) -> PathBuf {
        let moved = self.moved.iter().find(|(known, _)| *known == agent);
        moved.map_or_else(|| self.path.join(usual(agent)), |(_, directory)| directory.clone())
    }
}

/// The directory of an agent's settings below the home directory.
const fn usual(agent: Agent) -> &'static str {
    match agent {
        Agent::ClaudeCode => ".claude",
        Agent::Codex => ".codex",
        Agent::Gemini => ".gemini",
        Agent::Cursor => ".cursor",
        Agent::Copilot => ".copilot",
        Agent::Opencode => ".config/opencode",
        Agent::Windsurf => ".codeium/windsurf",
        Agent::Cline => ".cline",
        Agent::Goose => ".agents/plugins",
    }
}

/// The variable that puts it somewhere else, and where below that. Tried with Claude Code 2.1.197, Codex 0.171.0, Gemini CLI 0.61.0, Copilot CLI
/// 1.0.102 and opencode 1.18.33.
const fn variable(agent: Agent) -> Option<(&'static str, Option<&'static str>)> {
    match agent {
        Agent::ClaudeCode => Some(("CLAUDE_CONFIG_DIR", None)),
        Agent::Codex => Some(("CODEX_HOME", None)),
        Agent::Copilot => Some(("COPILOT_HOME", None)),
        Agent::Gemini => Some(("GEMINI_CLI_HOME", Some(".gemini"))),
        Agent::Opencode => Some(("XDG_CONFIG_HOME", Some("opencode"))),
        Agent::Cursor | Agent::Windsurf | Agent::Cline | Agent::Goose => None,
    }
}

/// The directory of an agent's settings below a project.
pub(super) fn of_project(agent: Agent, project: &Path) -> PathBuf {
    project.join(match agent {
        Agent::ClaudeCode => ".claude",
        Agent::Codex => ".codex",
        Agent::Gemini => ".gemini",
        Agent::Cursor => ".cursor",
        Agent::Copilot => ".github",
        Agent::Opencode => ".opencode",
        Agent::Windsurf => ".windsurf",
        Agent::Cline => ".cline",
        Agent::Goose => ".agents/plugins",
    })
}

/// The user's plugin for goose: the one that is there, or one of a name that nobody knows beforehand. For goose a directory of a
/// project's own takes the place of the user's plugin of the same name, also when nothing is in it, and a project's settings
/// can switch a plugin off by its name (seen with 1.52.0).
pub(super) fn gooses_plugin(directory: &Path) -> PathBuf {
    const BEGINS: &str = "cmdgate-";
    let mut there: Vec<PathBuf> = std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.is_dir() && path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(BEGINS))
        })
        .collect();
    there.sort();
    there.into_iter().next().unwrap_or_else(|| {
        let unknown = crate::hook::code::permit().unwrap_or_default();
        directory.join(format!("{BEGINS}{unknown}"))
    })
}
