//! What is entered for each agent.

use super::found::Registration;
use super::{OR_BLOCK, Plan};
use crate::hook::Agent;
use serde_json::{Value, json};

impl Plan {
    /// The entries by event, failing closed where the agent can.
    pub(super) fn entries(&self) -> Value {
        let program = self.program.to_string_lossy();
        let mut args = vec![json!("hook"), json!(self.agent.name())];
        args.extend(self.options.iter().map(|option| json!(option)));
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
                "type": "command", "exec": program, "args": args, "matcher": "bash|powershell", "timeoutSec": 10,
            } }),
            Agent::Windsurf => json!({ "pre_run_command": { "command": or_block, "show_output": true } }),
            Agent::Goose => json!({ "PreToolUse": {
                "matcher": "developer__shell",
                "hooks": [{ "type": "command", "command": command, "timeout": 10, "on_failure": "block" }],
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

    /// In what a registration differs from what would be installed, as a sentence fragment.
    pub(super) fn difference(&self, registration: &Registration) -> Option<String> {
        let entries = self.entries();
        let Some(expected) = entries.get(&registration.event) else {
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
            return (text != made).then(|| "the file is not the one of this version".to_owned());
        };
        let matcher = expected.get("matcher").and_then(Value::as_str);
        if expected.get("hooks").is_some() && matcher != registration.matcher.as_deref() {
            return Some(format!(
                "the matcher is {:?} and not {:?}",
                registration.matcher.as_deref().unwrap_or(""),
                matcher.unwrap_or("")
            ));
        }
        let handler = expected.pointer("/hooks/0").unwrap_or(expected);
        let line = |handler: &Value| handler.get("command").and_then(Value::as_str).map(ToOwned::to_owned);
        if line(handler).is_some_and(|line| line.ends_with(OR_BLOCK))
            && !line(&registration.handler).is_some_and(|line| line.ends_with(OR_BLOCK))
        {
            return Some("it lets the command run when the program is gone or crashes".to_owned());
        }
        let differing = handler.as_object()?.iter().find(|(key, value)| {
            !matches!(key.as_str(), "command" | "exec" | "args" | "name" | "statusMessage" | "show_output")
                && registration.handler.get(key.as_str()) != Some(value)
        })?;
        Some(format!("`{}` is not {}", differing.0, differing.1))
    }
}
