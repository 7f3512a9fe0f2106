//! goose: `PreToolUse` of its plugins. Nothing but the answer may stand on standard output.

use super::{command, directory, keys, signed, text};
use crate::hook::{Asked, Payload, Reply, Verdict};
use serde_json::{Value, json};

pub(super) fn parse(payload: &Value) -> Result<Payload, String> {
    let event = text(payload, "event")?;
    if event != "PreToolUse" {
        return Err(format!("the event {event:?} is not known"));
    }
    if text(payload, "tool_name")? != "developer__shell" {
        return Ok(Payload::Unrelated);
    }
    let input = payload.get("tool_input").cloned().unwrap_or(Value::Null);
    Ok(Payload::Commands(Asked {
        event: event.to_owned(),
        commands: vec![command(&input, "command")?],
        cwd: directory(payload, "working_dir")?,
        session: None,
        input,
        keys: keys(payload, &["session_id", "tool_call_id"]),
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
