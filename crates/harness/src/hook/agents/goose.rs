//! goose: `PreToolUse` of its plugins. Nothing but the answer may stand on standard output.

use super::tools::like_a_shell;
use super::{command, directory, keys, signed, text};
use crate::hook::{Asked, Payload, Reply, Verdict};
use serde_json::{Value, json};

/// It edits files by a sub-command.
const NO_SHELLS: &[&str] = &["developer__text_editor", "text_editor"];

pub(super) fn parse(payload: &Value) -> Result<Payload, String> {
    let event = text(payload, "event")?;
    if event != "PreToolUse" {
        return Err(format!("the event {event:?} is not known"));
    }
    let tool = text(payload, "tool_name")?;
    let input = payload.get("tool_input").cloned().unwrap_or(Value::Null);
    let command = if tool == "developer__shell" {
        command(&input, "command")?
    } else {
        match like_a_shell(tool, &input, NO_SHELLS) {
            Some(command) => command,
            None => return Ok(Payload::Unrelated),
        }
    };
    Ok(Payload::Commands(Asked {
        event: event.to_owned(),
        commands: vec![command],
        cwd: directory(payload, "working_dir")?,
        session: None,
        input,
        keys: keys(payload, &["session_id", "tool_call_id"]),
        transcript: None,
        unattended: false,
    }))
}

pub(super) fn answer(verdict: &Verdict) -> Reply {
    match verdict {
        Verdict::Allow { .. } => Reply::json(&json!({ "decision": "allow" })),
        Verdict::Rewrite { reason, .. }
        | Verdict::Ask { reason }
        | Verdict::AskRewrite { reason, .. }
        | Verdict::Deny { reason } => Reply::json(&json!({ "decision": "block", "reason": signed(reason) })),
    }
}
