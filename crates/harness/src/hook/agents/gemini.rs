//! Gemini CLI: `BeforeTool`.

use super::{command, directory, keys, signed, text};
use crate::hook::{Asked, Payload, Reply, Verdict};
use serde_json::{Value, json};
use std::path::Path;

pub(super) fn parse(payload: &Value) -> Result<Payload, String> {
    let event = text(payload, "hook_event_name")?;
    if event != "BeforeTool" {
        return Err(format!("the event {event:?} is not known"));
    }
    if text(payload, "tool_name")? != "run_shell_command" {
        return Ok(Payload::Unrelated);
    }
    let input = payload.get("tool_input").cloned().unwrap_or(Value::Null);
    let mut cwd = directory(payload, "cwd")?;
    if let Some(relative) = input.get("dir_path").or_else(|| input.get("directory")).and_then(Value::as_str) {
        cwd = Some(cwd.as_deref().unwrap_or(Path::new("/")).join(relative));
    }
    Ok(Payload::Commands(Asked {
        event: event.to_owned(),
        commands: vec![command(&input, "command")?],
        cwd,
        input,
        keys: keys(payload, &["session_id", "timestamp"]),
        unattended: false,
    }))
}

pub(super) fn answer(_: Option<&Asked>, verdict: &Verdict) -> Reply {
    Reply::json(&match verdict {
        Verdict::Allow { .. } => json!({ "decision": "allow" }),
        Verdict::Rewrite { commands, .. } => match commands.as_slice() {
            [command] => json!({
                "decision": "allow",
                "hookSpecificOutput": { "hookEventName": "BeforeTool", "tool_input": { "command": command } },
            }),
            _ => json!({ "decision": "ask", "systemMessage": signed("several commands in one call") }),
        },
        Verdict::Ask { reason } => json!({ "decision": "ask", "systemMessage": signed(reason) }),
        Verdict::Deny { reason } => json!({ "decision": "deny", "reason": signed(reason) }),
    })
}
