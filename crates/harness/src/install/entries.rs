//! What is entered for each agent.

use super::found::Registration;
use super::{OR_BLOCK, Plan};
use crate::hook::Agent;
use serde_json::{Value, json};

/// The names of goose's tools that its hook is shown: a regular expression that need not match the whole name. Its own shell
/// is `shell` in 1.52.0, where an expression of `developer__shell`, as its documentation has it, matches nothing. The last four
/// are for tools whose own commands it shows to no hook.
const GOOSES_SHELLS: &str = "(?i)shell|bash|command|cmd|exec|process|script|terminal|console|stdin|repl|pty\
    |delegate|subagent|task|schedule";

impl Plan {
    /// The entries by event, failing closed where the agent can.
    pub(super) fn entries(&self) -> Value {
        let command = self.command();
        let or_block = self.command_or_block();
        match self.agent {
            Agent::ClaudeCode => {
                // A line for a shell, because a version that does not know `onFailure` runs the command when the
                // program is gone.
                let handler = json!({
                    "type": "command", "command": or_block, "timeout": 10, "onFailure": "block",
                });
                let matched = json!({ "matcher": "Bash|Monitor|PowerShell", "hooks": [handler] });
                json!({ "PreToolUse": matched, "PreSkillShellCommand": { "hooks": [handler] } })
            }
            Agent::Codex => {
                let entry = json!({
                    "matcher": "^Bash$",
                    "hooks": [{ "type": "command", "command": or_block, "timeout": 10, "statusMessage": "cmdgate" }],
                });
                json!({ "PreToolUse": entry, "PermissionRequest": entry })
            }
            Agent::Gemini => json!({ "BeforeTool": {
                "matcher": "run_shell_command",
                "hooks": [{ "name": "cmdgate", "type": "command", "command": or_block, "timeout": 10_000 }],
            } }),
            Agent::Cursor => {
                json!({ "beforeShellExecution": { "command": command, "timeout": 10, "failClosed": true } })
            }
            Agent::Copilot => json!({ "preToolUse": {
                // VS Code skips an entry that has `exec` and no line for a shell, without a word.
                "type": "command", "bash": or_block, "matcher": "bash|powershell", "timeoutSec": 10,
            } }),
            Agent::Windsurf => json!({ "pre_run_command": { "command": or_block, "show_output": true } }),
            Agent::Goose => json!({ "PreToolUse": {
                "matcher": GOOSES_SHELLS,
                // Versions that do not know `on_failure` take code 2 for a no all the same.
                "hooks": [{ "type": "command", "command": or_block, "timeout": 10, "on_failure": "block" }],
            } }),
            Agent::Opencode | Agent::Cline => json!({}),
        }
    }

    /// Tools of opencode that run no command, so that no process is started for each of them. Whatever else there is, also
    /// of servers that its user has added, is shown to the hook.
    const OPENCODES_OWN: [&str; 13] = [
        "read",
        "edit",
        "write",
        "apply_patch",
        "glob",
        "grep",
        "list",
        "todowrite",
        "todoread",
        "webfetch",
        "websearch",
        "skill",
        "task",
    ];

    /// opencode has no hook for a process: a plugin calls it, and refuses whatever is not a plain permission.
    pub(super) fn opencode_plugin(&self) -> String {
        let mut words = vec![json!("hook"), json!(self.agent.name())];
        words.extend(self.options.iter().map(|option| json!(option)));
        format!(
            "// Written by `harness install opencode`; `harness uninstall opencode` removes it.\n\
             import {{ spawnSync }} from \"node:child_process\";\n\n\
             export const Cmdgate = async ({{ directory }}) => ({{\n  \
             \"tool.execute.before\": async (input, output) => {{\n    \
             if ({silent}.includes(input.tool)) return;\n    \
             const payload = {{ sessionID: input.sessionID, callID: input.callID, tool: input.tool, args: output.args, cwd: directory }};\n    \
             const ran = spawnSync({program}, {args}, {{ input: JSON.stringify(payload), encoding: \"utf8\", timeout: 10000 }});\n    \
             let answer;\n    \
             try {{ answer = JSON.parse(ran.stdout) ?? {{}}; }} catch {{ answer = {{}}; }}\n    \
             if (answer.allow !== true) throw new Error(answer.deny ?? \"cmdgate: the hook gave no answer\");\n    \
             if (answer.args) Object.assign(output.args, answer.args);\n  }},\n}});\n",
            program = json!(self.program.to_string_lossy()),
            args = Value::Array(words),
            silent = json!(Self::OPENCODES_OWN),
        )
    }

    /// A whole new file.
    pub(super) fn whole(&self) -> String {
        let mut document = serde_json::Map::new();
        if matches!(self.agent, Agent::Cursor | Agent::Copilot) {
            document.insert("version".to_owned(), json!(1));
        }
        let lists = self.entries().as_object().cloned().unwrap_or_default().into_iter();
        let hooks: serde_json::Map<String, Value> =
            lists.map(|(event, entry)| (event, json!([entry]))).collect();
        document.insert("hooks".to_owned(), Value::Object(hooks));
        super::document::pretty(&Value::Object(document))
    }

    /// The events for which an entry is made.
    pub(super) fn events(&self) -> Vec<String> {
        match self.entries().as_object() {
            Some(events) if !events.is_empty() => events.keys().cloned().collect(),
            Some(_) | None => vec![self.agent.first_event().to_owned()],
        }
    }

    /// In what a registration differs from what would be installed.
    pub(super) fn difference(&self, registration: &Registration) -> Option<Difference> {
        let entries = self.entries();
        let Some(expected) = entries.get(&registration.event) else { return self.edited(registration) };
        let handler = expected.pointer("/hooks/0").unwrap_or(expected);
        let matcher = expected.get("matcher").and_then(Value::as_str);
        unheard(self.agent, matcher, registration)
            .map(Difference::Unheard)
            .or_else(|| weaker(handler, &registration.handler).map(Difference::Weaker))
    }

    /// The same for a script or plugin, of which the whole file is this program's.
    fn edited(&self, registration: &Registration) -> Option<Difference> {
        let made = match self.agent {
            Agent::Opencode => self.opencode_plugin(),
            Agent::Cline => self.cline_script(None).ok()?,
            Agent::ClaudeCode
            | Agent::Codex
            | Agent::Gemini
            | Agent::Cursor
            | Agent::Copilot
            | Agent::Windsurf
            | Agent::Goose => return None,
        };
        let text = super::document::read(&registration.file).ok().flatten().unwrap_or_default();
        if text != made {
            let what = "the file is not the one of this version, so what it does is not known";
            return Some(Difference::Unheard(what.to_owned()));
        }
        let starts = self.agent != Agent::Cline || super::health::executable(&registration.file);
        (!starts).then(|| Difference::Unheard("it is not executable, so Cline does not start it".to_owned()))
    }
}

/// What is different about a registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Difference {
    /// It is asked about every command, and something of what it would be is missing.
    Weaker(String),
    /// Commands run about which it is not asked, or whatever it answers.
    Unheard(String),
}

/// What keeps an entry from being asked about every command, or from being heard.
fn unheard(agent: Agent, matcher: Option<&str>, registration: &Registration) -> Option<String> {
    let found = registration.matcher.as_deref();
    if !shows_as_much(agent, matcher, found) {
        return Some(match (matcher, found) {
            (Some(matcher), Some(found)) => {
                format!(
                    "the matcher is {found:?} and not {matcher:?}, so it is not asked about every command"
                )
            }
            (_, found) => format!(
                "there is the matcher {:?}, so it is not asked about every command",
                found.unwrap_or_default()
            ),
        });
    }
    let handler = &registration.handler;
    let key = ["if", "async", "asyncRewake", "once"]
        .into_iter()
        .find(|key| handler.get(key).is_some_and(|value| !matches!(value, Value::Null | Value::Bool(false))));
    if let Some(key) = key {
        return Some(format!(
            "`{key}` is set, so commands run that it was not asked about, or before it answers"
        ));
    }
    let kind = handler.get("type").and_then(Value::as_str);
    if kind.is_some_and(|kind| kind != "command") {
        return Some("`type` is not \"command\", so it is not started".to_owned());
    }
    (agent == Agent::Copilot && handler.get("bash").or_else(|| handler.get("command")).is_none())
        .then(|| "VS Code skips an entry that has `exec` and no `bash`".to_owned())
}

/// Whether a matcher lets an event through for at least the tools of another one.
fn shows_as_much(agent: Agent, expected: Option<&str>, found: Option<&str>) -> bool {
    let names =
        |matcher: &str| matcher.split(['|', ',']).map(|name| name.trim().to_owned()).collect::<Vec<String>>();
    match (expected, found) {
        (_, None | Some("" | ".*")) => true,
        // No regular expression, and what goose cannot read as one it skips.
        (_, Some("*")) => agent != Agent::Goose,
        (None, Some(_)) => false,
        (Some(expected), Some(found)) => {
            let found = names(found);
            expected == found.join("|") || names(expected).iter().all(|name| found.contains(name))
        }
    }
}

/// What of a handler is missing or different, and still lets it be asked.
fn weaker(expected: &Value, found: &Value) -> Option<String> {
    let line = |handler: &Value| {
        let line = handler.get("command").or_else(|| handler.get("bash"));
        line.and_then(Value::as_str).map(ToOwned::to_owned)
    };
    let blocks = |handler: &Value| line(handler).is_some_and(|line| line.ends_with(OR_BLOCK));
    if blocks(expected) && !blocks(found) {
        return Some("it lets the command run when the program is gone or crashes".to_owned());
    }
    let ignored = ["command", "bash", "name", "statusMessage", "show_output", "matcher"];
    let differing = expected
        .as_object()?
        .iter()
        .find(|(key, value)| !ignored.contains(&key.as_str()) && found.get(key.as_str()) != Some(value))?;
    Some(format!("`{}` is not {}", differing.0, differing.1))
}
