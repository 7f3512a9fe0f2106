//! Finds the hooks of this program in the files of the agents, however they came there.

use super::document::{self, Trouble};
use super::home::Home;
use super::{CLINE_BEGINS, CLINE_GOES_ON, GOOSES_PLUGIN, Plan, Scope};
use crate::hook::Agent;
use crate::unwrap;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// One entry in an agent's files that runs this program's `hook`.
#[derive(Debug, Clone, PartialEq)]
pub struct Registration {
    /// The file.
    pub file: PathBuf,
    /// Whose file it is.
    pub scope: Scope,
    /// The event.
    pub event: String,
    /// The place of the entry in the event's list, and of the handler in the entry.
    pub place: (usize, usize),
    /// What is run.
    pub runs: Runs,
    /// The entry as it is written, without a matcher's neighbours.
    pub handler: Value,
    /// The matcher around it, where there is one.
    pub matcher: Option<String>,
}

/// What an entry runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Runs {
    /// A line for a shell.
    Line(String),
    /// A program with arguments, without a shell.
    Program {
        /// The program.
        program: String,
        /// Its arguments.
        args: Vec<String>,
    },
}

impl Runs {
    /// As a person would type it.
    pub fn text(&self) -> String {
        match self {
            Self::Line(line) => line.clone(),
            Self::Program { program, args } => {
                let words = std::iter::once(program).chain(args).map(|word| crate::hook::quote(word));
                words.collect::<Vec<_>>().join(" ")
            }
        }
    }

    /// The words of the command that is this program's hook for an agent; none when this runs something else.
    pub fn words(&self, agent: Agent) -> Option<Vec<String>> {
        match self {
            Self::Program { program, args } => {
                let words: Vec<String> = std::iter::once(program).chain(args).cloned().collect();
                is_hook(&words, agent).then_some(words)
            }
            // Most lines are others', and to take each apart takes its time.
            Self::Line(line) if !line.contains("hook") || !line.contains(agent.name()) => None,
            Self::Line(line) => unwrap::commands(line).argvs.into_iter().find(|words| is_hook(words, agent)),
        }
    }
}

/// Whether these words are `…/harness hook <agent> …`.
fn is_hook(words: &[String], agent: Agent) -> bool {
    let [program, hook, name, ..] = words else { return false };
    let file = Path::new(program).file_stem().and_then(|name| name.to_str());
    file == Some("harness") && hook == "hook" && name == agent.name()
}

/// What a handler runs, by the keys of any agent.
pub(super) fn runs_of(handler: &Value) -> Option<Runs> {
    let text = |key: &str| handler.get(key).and_then(Value::as_str).map(ToOwned::to_owned);
    if let Some(args) = handler.get("args").and_then(Value::as_array) {
        let args: Option<Vec<String>> = args.iter().map(|arg| arg.as_str().map(ToOwned::to_owned)).collect();
        return Some(Runs::Program { program: text("exec").or_else(|| text("command"))?, args: args? });
    }
    text("command").or_else(|| text("bash")).map(Runs::Line)
}

/// Whether a handler runs this program's hook for the agent, wherever the program is.
pub(super) fn is_ours(handler: &Value, agent: Agent) -> bool {
    runs_of(handler).is_some_and(|runs| runs.words(agent).is_some())
}

/// The files in which an agent looks for hooks, the user's first.
pub fn files(agent: Agent, home: &Home, project: &Path) -> Vec<(Scope, PathBuf)> {
    let mut files = Vec::new();
    for scope in [Scope::User, Scope::Project] {
        files.push((scope, Plan::hooks_file(agent, scope, home, project)));
        let others: &[&str] = match agent {
            Agent::ClaudeCode => &["settings.local.json"],
            Agent::Codex => &["config.toml"],
            Agent::Copilot if scope == Scope::User => &["settings.json"],
            Agent::Copilot => &["copilot/settings.json", "copilot/settings.local.json"],
            Agent::Goose => &[GOOSES_PLUGIN],
            Agent::Gemini | Agent::Cursor | Agent::Opencode | Agent::Windsurf | Agent::Cline => &[],
        };
        let directory = Plan::directory(agent, scope, home, project);
        files.extend(others.iter().map(|name| (scope, directory.join(name))));
    }
    files.dedup_by(|a, b| a.1 == b.1);
    files
}

/// Every entry in these files that runs this program's hook, and every file that cannot be read.
pub fn registrations(agent: Agent, files: &[(Scope, PathBuf)]) -> (Vec<Registration>, Vec<Trouble>) {
    let (mut found, mut troubles) = (Vec::new(), Vec::new());
    for (scope, file) in files {
        let text = match document::read(file) {
            Ok(Some(text)) => text,
            Ok(None) => continue,
            Err(trouble) => {
                troubles.push(trouble);
                continue;
            }
        };
        match in_text(agent, *scope, file, &text) {
            Ok(of_file) => found.extend(of_file),
            Err(trouble) => troubles.push(trouble),
        }
    }
    (found, troubles)
}

/// Every entry in this text of a file that runs this program's hook.
pub(super) fn in_text(
    agent: Agent,
    scope: Scope,
    file: &Path,
    text: &str,
) -> Result<Vec<Registration>, Trouble> {
    let mut found = Vec::new();
    let whole = match agent {
        Agent::Opencode => plugin(text),
        Agent::Cline => script(text),
        Agent::ClaudeCode
        | Agent::Codex
        | Agent::Gemini
        | Agent::Cursor
        | Agent::Copilot
        | Agent::Windsurf
        | Agent::Goose => {
            listed(agent, scope, file, &document::value(file, text)?, &mut found);
            None
        }
    };
    if let Some(runs) = whole.filter(|runs| runs.words(agent).is_some()) {
        found.push(Registration {
            file: file.to_path_buf(),
            scope,
            event: agent.first_event().to_owned(),
            place: (0, 0),
            runs,
            handler: Value::Null,
            matcher: None,
        });
    }
    Ok(found)
}

/// The entries of `hooks.<event>`: handlers, or matchers with handlers under `hooks`.
fn listed(agent: Agent, scope: Scope, file: &Path, value: &Value, found: &mut Vec<Registration>) {
    let Some(events) = value.get("hooks").and_then(Value::as_object) else { return };
    for (event, list) in events {
        for (at, entry) in list.as_array().into_iter().flatten().enumerate() {
            let matcher = entry.get("matcher").and_then(Value::as_str).map(ToOwned::to_owned);
            let handlers = match entry.get("hooks").and_then(Value::as_array) {
                Some(inner) => inner.as_slice(),
                None => std::slice::from_ref(entry),
            };
            for (inner, handler) in handlers.iter().enumerate() {
                if let Some(runs) = runs_of(handler).filter(|runs| runs.words(agent).is_some()) {
                    found.push(Registration {
                        file: file.to_path_buf(),
                        scope,
                        event: event.clone(),
                        place: (at, inner),
                        runs,
                        handler: handler.clone(),
                        matcher: matcher.clone(),
                    });
                }
            }
        }
    }
}

/// What the plugin that `harness install opencode` writes starts: a program and its arguments, both as JSON.
fn plugin(text: &str) -> Option<Runs> {
    let (_, call) = text.split_once("spawnSync(")?;
    let mut values = serde_json::Deserializer::from_str(call).into_iter::<Value>();
    let program = values.next()?.ok()?.as_str()?.to_owned();
    let rest = call.get(values.byte_offset()..)?.trim_start().strip_prefix(',')?;
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
    let args: Option<Vec<String>> =
        values.next()?.ok()?.as_array()?.iter().map(|arg| arg.as_str().map(ToOwned::to_owned)).collect();
    Some(Runs::Program { program, args: args? })
}

/// What a script for Cline starts in the end.
fn script(text: &str) -> Option<Runs> {
    let begun = |line: &str| {
        let inside = line.strip_prefix(CLINE_BEGINS).and_then(|line| line.strip_suffix(CLINE_GOES_ON));
        inside.or_else(|| line.strip_prefix("exec ")).map(ToOwned::to_owned)
    };
    text.lines().find_map(|line| begun(line.trim())).map(Runs::Line)
}
