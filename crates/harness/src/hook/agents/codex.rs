//! Codex CLI: `PreToolUse` and `PermissionRequest`.
//!
//! It has no answer for an ask: one with `ask`, a bare `allow`, or any key that its schema does not know counts as a failed
//! hook, after which the command runs. Silence makes it go on to its own rules, sandbox and prompt.

use super::{command, directory, keys, signed, text};
use crate::hook::{Asked, Payload, Reply, Verdict};
use serde_json::{Value, json};

pub(super) fn parse(payload: &Value) -> Result<Payload, String> {
    let event = text(payload, "hook_event_name")?;
    if !matches!(event, "PreToolUse" | "PermissionRequest") {
        return Err(format!("the event {event:?} is not known"));
    }
    let tool = text(payload, "tool_name")?;
    if !matches!(tool, "Bash" | "shell" | "local_shell" | "exec_command" | "unified_exec") {
        return Ok(Payload::Unrelated);
    }
    let input = payload.get("tool_input").cloned().unwrap_or(Value::Null);
    let key = if input.get("command").is_none() && input.get("cmd").is_some() { "cmd" } else { "command" };
    let mode = payload.get("permission_mode").and_then(Value::as_str);
    Ok(Payload::Commands(Asked {
        event: event.to_owned(),
        commands: vec![command(&input, key)?],
        cwd: directory(payload, "cwd")?,
        session: None,
        input,
        keys: keys(payload, &["session_id", "turn_id", "tool_use_id", "agent_id"]),
        unattended: matches!(mode, Some("bypassPermissions" | "dontAsk")),
    }))
}

pub(super) fn answer(asked: Option<&Asked>, verdict: &Verdict) -> Reply {
    let event = asked.map_or("PreToolUse", |asked| asked.event.as_str());
    if event == "PermissionRequest" {
        let decision = match verdict {
            Verdict::Allow { .. } => json!({ "behavior": "allow" }),
            Verdict::Deny { reason } => json!({ "behavior": "deny", "message": signed(reason) }),
            // A changed input would void the answer; silence shows the prompt.
            Verdict::Rewrite { .. } | Verdict::Ask { .. } | Verdict::AskRewrite { .. } => {
                return Reply::default();
            }
        };
        return Reply::json(
            &json!({ "hookSpecificOutput": { "hookEventName": event, "decision": decision } }),
        );
    }
    match verdict {
        Verdict::Allow { .. } => Reply::default(),
        // Without a payload that was understood there is nothing to be silent about.
        Verdict::Ask { .. } if asked.is_some() => Reply::default(),
        Verdict::Rewrite { commands, .. } => match commands.as_slice() {
            [command] => Reply::json(&json!({ "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "allow",
                "updatedInput": { "command": command },
            } })),
            _ => Reply::default(),
        },
        Verdict::Ask { reason } | Verdict::AskRewrite { reason, .. } | Verdict::Deny { reason } => {
            Reply::json(&json!({ "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": signed(reason),
        } }))
        }
    }
}
