//! Windsurf: `pre_run_command`. Exit code 2 with a reason blocks; everything else proceeds.

use super::{directory, keys, shell_text, text};
use crate::hook::{Asked, Payload, Reply, Verdict};
use serde_json::Value;

pub(super) fn parse(payload: &Value) -> Result<Payload, String> {
    let event = text(payload, "agent_action_name")?;
    if event != "pre_run_command" {
        return Err(format!("the event {event:?} is not known"));
    }
    let info = payload.get("tool_info").cloned().unwrap_or(Value::Null);
    let cwd = directory(&info, "cwd")?;
    let lasting = cwd.is_none();
    Ok(Payload::Commands(Asked {
        event: event.to_owned(),
        commands: vec![shell_text(event, &info, "command_line")?],
        cwd,
        session: None,
        input: info,
        keys: keys(payload, &["trajectory_id", "execution_id"]),
        transcript: None,
        unattended: false,
        lasting,
    }))
}

pub(super) fn answer(verdict: &Verdict) -> Reply {
    match verdict {
        Verdict::Allow { .. } => Reply::default(),
        Verdict::Rewrite { reason, .. }
        | Verdict::Ask { reason }
        | Verdict::AskRewrite { reason, .. }
        | Verdict::Deny { reason } => Reply::blocked(reason),
    }
}
