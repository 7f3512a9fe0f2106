//! Copilot CLI (`preToolUse`, `permissionRequest`, told apart by their keys) and the agent of VS Code (`PreToolUse`).

use super::tools::like_a_shell;
use super::{command, command_alone, directory, insert, keys, signed, with_command};
use crate::hook::{Asked, AskedCommand, Payload, Reply, Verdict};
use serde_json::{Value, json};

/// VS Code, whose answers have the shape of Claude Code's.
const VS_CODE: &str = "PreToolUse";

/// Tools that look like a shell and are none: they read, list or end what runs, or edit files by a sub-command.
const NO_SHELLS: &[&str] = &[
    "get_terminal_output",
    "kill_terminal",
    "list_bash",
    "list_powershell",
    "read_bash",
    "read_powershell",
    "stop_bash",
    "stop_powershell",
    "str_replace_editor",
    "terminal_last_command",
    "terminal_selection",
];
/// Tools of VS Code that run what a file says, which the model may have written: a task, a cell of a notebook.
const RUNS_FILES: &[&str] = &["run_task", "run_notebook_cell"];

pub(super) fn parse(payload: &Value) -> Result<Payload, String> {
    let named = |name: &str| match payload.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(format!("`{name}` is not a text")),
    };
    // Without one it is the CLI, whose answers VS Code would not read.
    let event = match named("hook_event_name")?.or(named("hookEventName")?) {
        Some(event) => event,
        None if named("toolName")?.is_some() => "preToolUse",
        None => return Err("`hook_event_name` and `toolName` are missing".to_owned()),
    };
    if !matches!(event, "preToolUse" | "permissionRequest" | "PreToolUse" | "PermissionRequest") {
        return Err(format!("the event {event:?} is not known"));
    }
    let tool = named("toolName")?.or(named("tool_name")?).ok_or("`toolName` is missing")?;
    let input = match payload.get("toolArgs").or_else(|| payload.get("tool_input")) {
        // Older versions send the arguments as a text of JSON.
        Some(Value::String(text)) => super::super::json::parse(text.as_bytes())?,
        Some(value) => value.clone(),
        None => return Err("`toolArgs` is missing".to_owned()),
    };
    let commands = match tool {
        "bash" | "Bash" | "shell" | "runTerminalCommand" | "run_in_terminal" | "runInTerminal" => {
            vec![command_alone(tool, &input, &[])?]
        }
        "powershell" | "PowerShell" => match command(&input, "command")? {
            AskedCommand::Shell(text) => {
                vec![AskedCommand::Other { language: "PowerShell".to_owned(), text }]
            }
            AskedCommand::Argv(argv) => {
                vec![AskedCommand::Other { language: "PowerShell".to_owned(), text: argv.join(" ") }]
            }
            other @ AskedCommand::Other { .. } => vec![other],
        },
        other if RUNS_FILES.contains(&other) => {
            vec![AskedCommand::Other { language: format!("the tool {other:?}"), text: input.to_string() }]
        }
        other => match like_a_shell(other, &input, NO_SHELLS) {
            Some(commands) => commands,
            None => return Ok(Payload::Unrelated),
        },
    };
    Ok(Payload::Commands(Asked {
        event: event.to_owned(),
        commands,
        cwd: directory(payload, "cwd")?,
        session: None,
        input,
        keys: keys(payload, &["sessionId", "session_id", "tool_use_id", "timestamp"]),
        transcript: None,
        unattended: false,
        // The terminal of VS Code goes on.
        lasting: event == VS_CODE,
    }))
}

pub(super) fn answer(asked: Option<&Asked>, verdict: &Verdict) -> Reply {
    let reason = signed(verdict.reason());
    let Some(asked) = asked else {
        // The shape of the CLI is not that of VS Code, which would take it for no opinion; both take the code for a no.
        let flat = Reply::json(&json!({ "permissionDecision": "deny", "permissionDecisionReason": reason }));
        return Reply { stdout: flat.stdout, ..Reply::blocked(verdict.reason()) };
    };
    let event = asked.event.as_str();
    let decision = match verdict {
        Verdict::Allow { .. } | Verdict::Rewrite { .. } => "allow",
        Verdict::Ask { .. } => "ask",
        // Whether changed arguments count with an ask is not documented.
        Verdict::AskRewrite { .. } | Verdict::Deny { .. } => "deny",
    };
    let changed = match verdict {
        Verdict::Rewrite { commands, .. } => Some(with_command(asked, "command", commands)),
        Verdict::Allow { .. } | Verdict::Ask { .. } | Verdict::AskRewrite { .. } | Verdict::Deny { .. } => {
            None
        }
    };
    if event == VS_CODE {
        let mut output = json!({
            "hookEventName": VS_CODE,
            "permissionDecision": decision,
            "permissionDecisionReason": reason,
        });
        if let Some(changed) = changed {
            insert(&mut output, "updatedInput", changed);
        }
        return Reply::json(&json!({ "hookSpecificOutput": output }));
    }
    if matches!(event, "permissionRequest" | "PermissionRequest") {
        return match verdict {
            Verdict::Allow { .. } => Reply::json(&json!({ "behavior": "allow" })),
            Verdict::AskRewrite { .. } | Verdict::Deny { .. } => {
                Reply::json(&json!({ "behavior": "deny", "message": reason, "interrupt": false }))
            }
            // Neither can be said here: the rules and the prompt of the agent follow.
            Verdict::Rewrite { .. } | Verdict::Ask { .. } => Reply::default(),
        };
    }
    let mut output = json!({ "permissionDecision": decision, "permissionDecisionReason": reason });
    if let Some(changed) = changed {
        insert(&mut output, "modifiedArgs", changed);
    }
    Reply::json(&output)
}
