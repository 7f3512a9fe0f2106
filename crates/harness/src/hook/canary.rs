//! The other side of a hook: what an agent sends, and what it does with an answer.
//!
//! With it a registered hook can be tried as the agent would use it. Each reading follows the same source as the adapter
//! of that agent, and where an agent runs the command on an answer that it does not understand, so does the reading.

use super::Agent;
use serde_json::{Value, json};
use std::path::Path;

/// What an agent does with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It runs the command as it is, without asking.
    Allow,
    /// It runs another command in its place, without asking.
    Rewrite,
    /// It asks a person.
    Ask,
    /// It asks a person, and then runs another command in its place.
    AskRewrite,
    /// It goes on as if there were no hook: its own rules decide.
    OwnRules,
    /// It does not run the command.
    Deny,
}

impl Taken {
    /// Whether the command does not run unless a person was asked about it.
    pub const fn refuses(self) -> bool {
        match self {
            Self::Ask | Self::AskRewrite | Self::Deny => true,
            Self::Allow | Self::Rewrite | Self::OwnRules => false,
        }
    }
}

impl Agent {
    /// The event before a shell command, as the agent names it.
    pub const fn first_event(self) -> &'static str {
        match self {
            Self::ClaudeCode | Self::Codex | Self::Goose | Self::Cline => "PreToolUse",
            Self::Gemini => "BeforeTool",
            Self::Cursor => "beforeShellExecution",
            Self::Copilot => "preToolUse",
            Self::Opencode => "tool.execute.before",
            Self::Windsurf => "pre_run_command",
        }
    }

    /// What the agent would send before this command.
    pub fn payload(self, command: &str, cwd: &Path) -> Value {
        let cwd = cwd.to_string_lossy();
        let mark = "cmdgate-doctor";
        match self {
            Self::ClaudeCode => json!({
                "session_id": mark, "transcript_path": "", "cwd": cwd, "permission_mode": "default",
                "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": { "command": command },
                "tool_use_id": mark,
            }),
            Self::Codex => json!({
                "session_id": mark, "turn_id": mark, "transcript_path": null, "cwd": cwd,
                "hook_event_name": "PreToolUse", "model": mark, "permission_mode": "default",
                "tool_name": "Bash", "tool_input": { "command": command }, "tool_use_id": mark,
            }),
            Self::Gemini => json!({
                "session_id": mark, "transcript_path": "", "cwd": cwd, "hook_event_name": "BeforeTool",
                "timestamp": "2026-01-01T00:00:00Z", "tool_name": "run_shell_command",
                "tool_input": { "command": command },
            }),
            Self::Cursor => json!({
                "conversation_id": mark, "generation_id": mark, "hook_event_name": "beforeShellExecution",
                "workspace_roots": [cwd], "command": command, "cwd": cwd, "sandbox": false,
            }),
            Self::Copilot => json!({
                "sessionId": mark, "timestamp": 0, "cwd": cwd, "toolName": "bash",
                "toolArgs": { "command": command },
            }),
            Self::Opencode => json!({
                "sessionID": mark, "callID": mark, "tool": "bash", "cwd": cwd, "args": { "command": command },
            }),
            Self::Windsurf => json!({
                "agent_action_name": "pre_run_command", "trajectory_id": mark, "execution_id": mark,
                "tool_info": { "command_line": command, "cwd": cwd },
            }),
            Self::Cline => json!({
                "hookName": "tool_call", "taskId": mark, "workspaceRoots": [cwd],
                "tool_call": { "id": mark, "name": "run_commands", "input": { "commands": [command] } },
            }),
            Self::Goose => json!({
                "event": "PreToolUse", "session_id": mark, "tool_call_id": mark,
                "matcher_context": "shell", "tool_name": "shell", "tool_input": { "command": command }, "working_dir": cwd,
            }),
        }
    }

    /// What the agent does when its hook for `event` prints this and ends with this code; none: a signal ended it.
    pub fn takes(self, event: &str, stdout: &str, exit: Option<i32>) -> Taken {
        let answer: Option<Value> = serde_json::from_str(stdout).ok();
        let at = |pointer: &str| answer.as_ref().and_then(|answer| answer.pointer(pointer));
        let word = |pointer: &str| at(pointer).and_then(Value::as_str);
        match self {
            Self::ClaudeCode if event == "PermissionRequest" => permission(
                word("/hookSpecificOutput/decision/behavior"),
                at("/hookSpecificOutput/decision/updatedInput").is_some(),
            ),
            Self::Codex if event == "PermissionRequest" => match (exit, answer.is_some()) {
                (Some(2), _) => Taken::Deny,
                // A changed input voids the answer.
                (Some(0), true) if at("/hookSpecificOutput/decision/updatedInput").is_none() => {
                    permission(word("/hookSpecificOutput/decision/behavior"), false)
                }
                _ => Taken::OwnRules,
            },
            Self::ClaudeCode => match exit {
                Some(2) => Taken::Deny,
                _ => claude_shaped(
                    word("/hookSpecificOutput/permissionDecision"),
                    at("/hookSpecificOutput/updatedInput").is_some(),
                ),
            },
            Self::Codex => match (exit, word("/hookSpecificOutput/permissionDecision")) {
                (Some(2), _) => Taken::Deny,
                (Some(0), Some("deny")) => Taken::Deny,
                (Some(0), Some("allow")) if at("/hookSpecificOutput/updatedInput").is_some() => {
                    Taken::Rewrite
                }
                // Everything else counts as a failed hook, or as nothing to say.
                _ => Taken::OwnRules,
            },
            Self::Gemini => {
                let changed = at("/hookSpecificOutput/tool_input").is_some();
                match (word("/decision"), exit) {
                    (Some("deny" | "block"), _) => Taken::Deny,
                    (Some("ask"), _) => {
                        if changed {
                            Taken::AskRewrite
                        } else {
                            Taken::Ask
                        }
                    }
                    (Some("allow"), _) if changed => Taken::Rewrite,
                    (None, Some(0 | 1)) => Taken::OwnRules,
                    (None, Some(_)) => Taken::Deny,
                    // Its own policy follows an allow.
                    (Some(_), _) | (None, None) => Taken::OwnRules,
                }
            }
            Self::Cursor => match (exit, word("/permission")) {
                (Some(2), _) | (_, Some("deny" | "ask")) => Taken::Deny,
                (_, Some("allow")) => Taken::Allow,
                _ => Taken::OwnRules,
            },
            Self::Copilot if matches!(event, "permissionRequest" | "PermissionRequest") => match exit {
                Some(2) => Taken::Deny,
                _ => permission(word("/behavior"), false),
            },
            Self::Copilot => {
                let vs_code = event == "PreToolUse";
                let said = if vs_code {
                    word("/hookSpecificOutput/permissionDecision")
                } else {
                    word("/permissionDecision")
                };
                let changed =
                    at("/hookSpecificOutput/updatedInput").is_some() || at("/modifiedArgs").is_some();
                match exit {
                    Some(0) => claude_shaped(said, changed),
                    Some(2) => Taken::Deny,
                    Some(_) if !vs_code => Taken::Deny,
                    Some(_) | None => Taken::OwnRules,
                }
            }
            // The plugin refuses whatever is not a plain permission.
            Self::Opencode => match (at("/allow"), at("/args").is_some()) {
                (Some(Value::Bool(true)), true) => Taken::Rewrite,
                (Some(Value::Bool(true)), false) => Taken::Allow,
                _ => Taken::Deny,
            },
            Self::Windsurf => {
                if exit == Some(2) {
                    Taken::Deny
                } else {
                    Taken::Allow
                }
            }
            Self::Cline => {
                let review = at("/review") == Some(&Value::Bool(true));
                let changed = at("/overrideInput").is_some();
                if at("/cancel") == Some(&Value::Bool(true)) {
                    Taken::Deny
                } else if review && changed {
                    Taken::AskRewrite
                } else if review {
                    Taken::Ask
                } else if changed {
                    Taken::Rewrite
                } else {
                    Taken::OwnRules
                }
            }
            Self::Goose => match (exit, word("/decision")) {
                (Some(2), _) | (_, Some("block" | "deny")) => Taken::Deny,
                (_, Some("allow")) => Taken::Allow,
                _ => Taken::OwnRules,
            },
        }
    }
}

fn claude_shaped(said: Option<&str>, changed: bool) -> Taken {
    match (said, changed) {
        (Some("allow"), true) => Taken::Rewrite,
        (Some("allow"), false) => Taken::Allow,
        (Some("ask"), true) => Taken::AskRewrite,
        (Some("ask"), false) => Taken::Ask,
        (Some("deny"), _) => Taken::Deny,
        (_, _) => Taken::OwnRules,
    }
}

fn permission(behavior: Option<&str>, changed: bool) -> Taken {
    match behavior {
        Some("allow") if changed => Taken::Rewrite,
        Some("allow") => Taken::Allow,
        Some("deny") => Taken::Deny,
        // The dialog is shown.
        Some(_) | None => Taken::Ask,
    }
}
