//! Cursor: `beforeShellExecution`.
//!
//! It takes `ask` and was seen to treat it like a denial, so an ask is a denial with a one-time code. Exit code and JSON are
//! never mixed, and something is always printed, because with `failClosed` an empty answer blocks.

use super::{directory, keys, roots, shell_text, signed, text};
use crate::hook::{Asked, Payload, Reply, Verdict};
use serde_json::{Value, json};
use std::path::PathBuf;

pub(super) fn parse(payload: &Value) -> Result<Payload, String> {
    let event = text(payload, "hook_event_name")?;
    if event != "beforeShellExecution" {
        return Err(format!("the event {event:?} is not known"));
    }
    let roots = roots(payload, "workspace_roots")?;
    let cwd = directory(payload, "cwd")?;
    let says_where = cwd.is_some();
    let cwd = cwd.or_else(|| roots.first().cloned());
    let around = |root: &&PathBuf| cwd.as_ref().is_some_and(|cwd| cwd.starts_with(root));
    let session = roots.iter().find(around).or_else(|| roots.first()).cloned();
    Ok(Payload::Commands(Asked {
        event: event.to_owned(),
        commands: vec![shell_text(event, payload, "command")?],
        cwd,
        session,
        input: Value::Null,
        keys: keys(payload, &["conversation_id", "generation_id", "session_id"]),
        transcript: None,
        unattended: false,
        lasting: !says_where,
    }))
}

pub(super) fn answer(verdict: &Verdict) -> Reply {
    Reply::json(&match verdict {
        Verdict::Allow { .. } => json!({ "permission": "allow" }),
        Verdict::Rewrite { reason, .. }
        | Verdict::Ask { reason }
        | Verdict::AskRewrite { reason, .. }
        | Verdict::Deny { reason } => json!({
            "permission": "deny",
            "user_message": signed(reason),
            "agent_message": signed(reason),
        }),
    })
}
