//! Copilot CLI (`preToolUse`, `permissionRequest`, told apart by their keys) and the agent of VS Code (`PreToolUse`).

use super::tools::like_a_shell;
use super::{command, directory, insert, keys, signed, with_command};
use crate::hook::{Asked, AskedCommand, Payload, Reply, Verdict};
use serde_json::{Value, json};

/// VS Code, whose answers have the shape of Claude Code's.
const VS_CODE: &str = "PreToolUse";

/// Tools that look like a shell and are none: they read, list or end what runs, or edit files by a sub-command.
const NO_SHELLS: &[&str] = &[
    "list_bash",
    "list_powershell",
    "read_bash",
    "read_powershell",
    "stop_bash",
    "stop_powershell",
    "str_replace_editor",
];

pub(super) fn parse(payload: &Value) -> Result<Payload, String> {
    let named = |name: &str| payload.get(name).and_then(Value::as_str);
    let event = named("hook_event_name").or_else(|| named("hookEventName")).unwrap_or("preToolUse");
    if !matches!(event, "preToolUse" | "permissionRequest" | "PreToolUse" | "PermissionRequest") {
        return Err(format!("the event {event:?} is not known"));
    }
    let tool = named("toolName").or_else(|| named("tool_name")).ok_or("`toolName` is missing")?;
    let input = match payload.get("toolArgs").or_else(|| payload.get("tool_input")) {
        // Older versions send the arguments as a text of JSON.
        Some(Value::String(text)) => super::super::json::parse(text.as_bytes())?,
        Some(value) => value.clone(),
        None => return Err("`toolArgs` is missing".to_owned()),
    };
    let commands = match tool {
        "bash" | "Bash" | "shell" | "runTerminalCommand" | "run_in_terminal" | "runInTerminal" => {
            vec![command(&input, "command")?]
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
        other => match like_a_shell(other, &input, NO_SHELLS) {
            Some(command) => vec![command],
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
    }))
}

pub(super) fn answer(asked: Option<&Asked>, verdict: &Verdict) -> Reply {
    let event = asked.map_or("preToolUse", |asked| asked.event.as_str());
    let (decision, reason) = match verdict {
        Verdict::Allow { reason } | Verdict::Rewrite { reason, .. } => ("allow", signed(reason)),
        Verdict::Ask { reason } => ("ask", signed(reason)),
        // Whether changed arguments count with an ask is not documented.
        Verdict::AskRewrite { reason, .. } | Verdict::Deny { reason } => ("deny", signed(reason)),
    };
    let changed = match (verdict, asked) {
        (Verdict::Rewrite { commands, .. }, Some(asked)) => Some(with_command(asked, "command", commands)),
        (
            Verdict::Allow { .. }
            | Verdict::Ask { .. }
            | Verdict::AskRewrite { .. }
            | Verdict::Deny { .. }
            | Verdict::Rewrite { .. },
            _,
        ) => None,
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
