//! One file an agent: how it asks, and how it is answered.

mod claude_code;
mod cline;
mod codex;
mod copilot;
mod cursor;
mod gemini;
mod goose;
mod opencode;
mod tools;
mod windsurf;

use super::{Asked, AskedCommand, Asks, Payload, Reply, Verdict, quote};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An agent whose hooks are understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, clap::ValueEnum)]
#[value(rename_all = "kebab-case")]
pub enum Agent {
    /// Claude Code: `PreToolUse`, `PermissionRequest`, `PreSkillShellCommand`. Read from 2.1.332.
    ClaudeCode,
    /// Codex CLI: `PreToolUse`, `PermissionRequest`. Read from 0.171.0.
    Codex,
    /// Gemini CLI: `BeforeTool`. Read from 0.61.0.
    Gemini,
    /// Cursor: `beforeShellExecution`. Read from 3.9.16.
    Cursor,
    /// Copilot CLI (`preToolUse`, `permissionRequest`) and VS Code (`PreToolUse`). Read from 1.0.102.
    Copilot,
    /// opencode, through the plugin that `harness install` writes. Read from 1.18.33.
    Opencode,
    /// Windsurf: `pre_run_command`.
    Windsurf,
    /// Cline: `PreToolUse`. Read from 3.0.65.
    Cline,
    /// goose: `PreToolUse`. Read from 1.52.0.
    Goose,
}

impl Agent {
    /// Every agent.
    pub const ALL: [Self; 9] = [
        Self::ClaudeCode,
        Self::Codex,
        Self::Gemini,
        Self::Cursor,
        Self::Copilot,
        Self::Opencode,
        Self::Windsurf,
        Self::Cline,
        Self::Goose,
    ];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Cursor => "cursor",
            Self::Copilot => "copilot",
            Self::Opencode => "opencode",
            Self::Windsurf => "windsurf",
            Self::Cline => "cline",
            Self::Goose => "goose",
        }
    }

    /// How it takes an ask.
    pub const fn asks(self) -> Asks {
        match self {
            Self::ClaudeCode | Self::Gemini | Self::Copilot => Asks::Native,
            Self::Codex => Asks::BySilence,
            Self::Cursor | Self::Opencode | Self::Windsurf | Self::Cline | Self::Goose => Asks::ByCode,
        }
    }

    /// Whether it takes an ask together with a changed command, so that what a person says yes to is what runs.
    pub const fn asks_about_rewrites(self) -> bool {
        match self {
            Self::ClaudeCode | Self::Gemini => true,
            Self::Codex
            | Self::Cursor
            | Self::Copilot
            | Self::Opencode
            | Self::Windsurf
            | Self::Cline
            | Self::Goose => false,
        }
    }

    /// Whether it lets a hook change the command.
    pub const fn rewrites(self) -> bool {
        match self {
            Self::ClaudeCode | Self::Codex | Self::Gemini | Self::Copilot | Self::Cline | Self::Opencode => {
                true
            }
            Self::Cursor | Self::Windsurf | Self::Goose => false,
        }
    }

    /// How long the hook may think: well under the agent's own limit, which is ten seconds where this program was installed
    /// by `harness install`, and after which most agents run the command.
    pub const fn patience(self) -> Duration {
        Duration::from_secs(4)
    }

    /// Reads a payload.
    ///
    /// # Errors
    ///
    /// Why it is not what this agent sends.
    pub fn parse(self, payload: &Value) -> Result<Payload, String> {
        match self {
            Self::ClaudeCode => claude_code::parse(payload),
            Self::Codex => codex::parse(payload),
            Self::Gemini => gemini::parse(payload),
            Self::Cursor => cursor::parse(payload),
            Self::Copilot => copilot::parse(payload),
            Self::Opencode => opencode::parse(payload),
            Self::Windsurf => windsurf::parse(payload),
            Self::Cline => cline::parse(payload),
            Self::Goose => goose::parse(payload),
        }
    }

    /// The answer in the agent's own shape. Without `asked` the payload was not understood, and so it is not known of which
    /// event it is: where an agent expects another shape for each, the exit code says no in all of them.
    pub fn answer(self, asked: Option<&Asked>, verdict: &Verdict) -> Reply {
        match self {
            Self::ClaudeCode => claude_code::answer(asked, verdict),
            Self::Codex => codex::answer(asked, verdict),
            Self::Gemini => gemini::answer(asked, verdict),
            Self::Cursor => cursor::answer(verdict),
            Self::Copilot => copilot::answer(asked, verdict),
            Self::Opencode => opencode::answer(asked, verdict),
            Self::Windsurf => windsurf::answer(verdict),
            Self::Cline => cline::answer(asked, verdict),
            Self::Goose => goose::answer(verdict),
        }
    }

    /// Whether the agent runs the command in a sandbox of its own, as far as it says so in its own record of the session; none
    /// where that is not known.
    pub fn own_sandbox(self, asked: &Asked) -> Option<bool> {
        match self {
            Self::Codex => codex::own_sandbox(asked),
            Self::ClaudeCode
            | Self::Gemini
            | Self::Cursor
            | Self::Copilot
            | Self::Opencode
            | Self::Windsurf
            | Self::Cline
            | Self::Goose => None,
        }
    }

    /// The answer to a tool call that runs no command: none of this hook's business.
    pub fn no_opinion(self) -> Reply {
        match self {
            // With `failClosed` an empty answer blocks.
            Self::Cursor => Reply::json(&json!({ "permission": "allow" })),
            Self::Cline => Reply::json(&json!({})),
            // Its plugin refuses whatever is not a plain permission.
            Self::Opencode => Reply::json(&json!({ "allow": true })),
            Self::ClaudeCode | Self::Codex | Self::Gemini | Self::Copilot | Self::Windsurf | Self::Goose => {
                Reply::default()
            }
        }
    }
}

impl Reply {
    /// A JSON answer with exit code 0.
    pub(crate) fn json(value: &Value) -> Self {
        Self { stdout: format!("{value}\n"), stderr: String::new(), exit: 0 }
    }

    /// A refusal by exit code 2, the reason on standard error.
    pub(crate) fn blocked(reason: &str) -> Self {
        Self { stdout: String::new(), stderr: format!("{}\n", signed(reason)), exit: 2 }
    }
}

/// The reason with who says it.
fn signed(reason: &str) -> String {
    // Agents cap these texts, the strictest at 10,000 characters.
    let short: String = reason.chars().take(2_000).collect();
    format!("cmdgate: {short}")
}

/// The text under `key`, which must be there.
fn text<'v>(object: &'v Value, key: &str) -> Result<&'v str, String> {
    match object.get(key) {
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(format!("`{key}` is not a text")),
        None => Err(format!("`{key}` is missing")),
    }
}

/// The directory under `key`; an error when it is there and not an absolute path.
fn directory(object: &Value, key: &str) -> Result<Option<PathBuf>, String> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.is_empty() => Ok(None),
        Some(Value::String(text)) if text.starts_with('/') => Ok(Some(PathBuf::from(text))),
        Some(Value::String(text)) => Err(format!("`{key}` is not an absolute path: {text:?}")),
        Some(_) => Err(format!("`{key}` is not a text")),
    }
}

/// The absolute paths under `key`; an error when something else is among them.
fn roots(object: &Value, key: &str) -> Result<Vec<PathBuf>, String> {
    let path = |root: &Value| root.as_str().filter(|root| root.starts_with('/')).map(PathBuf::from);
    match object.get(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(list)) => list
            .iter()
            .map(path)
            .collect::<Option<_>>()
            .ok_or_else(|| format!("`{key}` holds something that is not an absolute path")),
        Some(_) => Err(format!("`{key}` is not a list")),
    }
}

/// The directory that a tool's input names, from that of the session.
fn chosen_directory(chosen: Option<&Value>, session: Option<&Path>) -> Result<Option<PathBuf>, String> {
    match chosen {
        None | Some(Value::Null) => Ok(session.map(Path::to_path_buf)),
        Some(Value::String(text)) if text.is_empty() => Ok(session.map(Path::to_path_buf)),
        Some(Value::String(text)) => match session {
            Some(session) => Ok(Some(session.join(text))),
            None => Err("the directory of the session is missing".to_owned()),
        },
        Some(_) => Err("the directory of the command is not a text".to_owned()),
    }
}

/// These keys of the payload, for the trace.
fn keys(payload: &Value, names: &[&str]) -> Value {
    let mut found = Map::new();
    for name in names {
        if let Some(value) = payload.get(name).filter(|value| !value.is_null()) {
            found.insert((*name).to_owned(), value.clone());
        }
    }
    Value::Object(found)
}

/// The command of a tool input: a text for a shell, or a list of words.
fn command(input: &Value, key: &str) -> Result<AskedCommand, String> {
    match input.get(key) {
        Some(Value::String(text)) => Ok(AskedCommand::Shell(text.clone())),
        Some(Value::Array(words)) => words
            .iter()
            .map(|word| word.as_str().map(ToOwned::to_owned))
            .collect::<Option<Vec<_>>>()
            .map(AskedCommand::Argv)
            .ok_or_else(|| format!("`{key}` holds something that is not a text")),
        Some(_) => Err(format!("`{key}` is neither a text nor a list of words")),
        None => Err(format!("`{key}` is missing")),
    }
}

/// Arguments by which a tool would run its command somewhere else or with something else than it is judged for, in lower case
/// and without `_` and `-`.
const ELSEWHERE: &[&str] = &[
    "cwd",
    "dir",
    "directory",
    "dirpath",
    "env",
    "environment",
    "shell",
    "stdin",
    "user",
    "workdir",
    "workingdir",
    "workingdirectory",
];

/// The command of a shell's input; something to ask about where the input also says where or with what it runs, and the
/// adapter does not know how: `known` are the names that it does know.
fn command_alone(tool: &str, input: &Value, known: &[&str]) -> Result<AskedCommand, String> {
    Ok(alone(tool, shell_text(tool, input, "command")?, input, known))
}

/// The command, or something to ask about as [`command_alone`] has it.
fn alone(tool: &str, found: AskedCommand, input: &Value, known: &[&str]) -> AskedCommand {
    match elsewhere(input, known) {
        Some(key) => with_more(tool, key, &found, input),
        None => found,
    }
}

/// The text of a command, of an agent that sends nothing else. A list of words is something to ask about: such an agent
/// might join it and give it to a shell, where each word means something else than as an argument.
fn shell_text(tool: &str, input: &Value, key: &str) -> Result<AskedCommand, String> {
    Ok(match command(input, key)? {
        list @ AskedCommand::Argv(_) => with_more(tool, key, &list, input),
        text @ (AskedCommand::Shell(_) | AskedCommand::Other { .. }) => text,
    })
}

/// The first argument that says where or with what a command runs.
fn elsewhere<'v>(input: &'v Value, known: &[&str]) -> Option<&'v str> {
    let says = |key: &str, value: &Value| {
        let plain: String = key.chars().filter(|c| !matches!(c, '_' | '-')).collect();
        let nothing = match value {
            Value::Null | Value::Bool(false) => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(entries) => entries.is_empty(),
            Value::Bool(true) | Value::Number(_) => false,
        };
        !nothing && !known.contains(&key) && ELSEWHERE.contains(&plain.to_lowercase().as_str())
    };
    input.as_object()?.iter().find(|(key, value)| says(key, value)).map(|(key, _)| key.as_str())
}

/// A command with an argument that is not understood.
fn with_more(tool: &str, key: &str, command: &AskedCommand, input: &Value) -> AskedCommand {
    let text = match command {
        AskedCommand::Shell(text) | AskedCommand::Other { text, .. } => text.clone(),
        AskedCommand::Argv(argv) => argv.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" "),
    };
    AskedCommand::Other {
        language: format!("the tool {tool:?} with `{key}`"),
        text: format!("{text} # {input}"),
    }
}

/// The tool's input with another command.
fn with_command(asked: &Asked, key: &str, commands: &[String]) -> Value {
    let mut input = asked.input.clone();
    if let (Some(object), [command]) = (input.as_object_mut(), commands) {
        object.insert(key.to_owned(), Value::String(command.clone()));
    }
    input
}

/// Puts one more key into an answer.
fn insert(answer: &mut Value, key: &str, value: Value) {
    if let Some(object) = answer.as_object_mut() {
        object.insert(key.to_owned(), value);
    }
}
