//! goose: `PreToolUse` of its plugins. Nothing but the answer may stand on standard output.

use super::tools::like_a_shell;
use super::{command_alone, directory, keys, signed, text};
use crate::hook::{Asked, AskedCommand, Payload, Reply, Verdict};
use serde_json::{Value, json};

/// Its shell. In 1.52.0 the tools of the extension `developer` have no prefix; older versions, and models that put it there,
/// name the extension too.
const SHELLS: &[&str] = &["shell", "developer__shell", "developer.shell"];
/// Tools whose commands goose shows to no hook, by the last part of their names: those of another agent, and those that a
/// program calls (seen with 1.52.0; the others are names of older versions).
const UNSEEN: &[&str] = &[
    "create_task",
    "delegate",
    "execute_code",
    "execute_task",
    "execute_typescript",
    "manage_schedule",
    "subagent",
];
/// It edits files by a sub-command.
const NO_SHELLS: &[&str] = &["developer__text_editor", "text_editor"];

pub(super) fn parse(payload: &Value) -> Result<Payload, String> {
    let event = text(payload, "event")?;
    if event != "PreToolUse" {
        return Err(format!("the event {event:?} is not known"));
    }
    let tool = text(payload, "tool_name")?;
    let input = payload.get("tool_input").cloned().unwrap_or(Value::Null);
    let is_unseen = |name: &&str| {
        tool == *name || tool.strip_suffix(*name).is_some_and(|owner| owner.ends_with(['.', '_']))
    };
    let commands = if UNSEEN.iter().any(is_unseen) {
        vec![AskedCommand::Other {
            language: format!("the tool {tool:?}, whose commands goose shows to no hook"),
            text: input.to_string(),
        }]
    } else if SHELLS.contains(&tool) {
        vec![command_alone(tool, &input, &[])?]
    } else {
        match like_a_shell(tool, &input, NO_SHELLS) {
            Some(commands) => commands,
            None => return Ok(Payload::Unrelated),
        }
    };
    Ok(Payload::Commands(Asked {
        event: event.to_owned(),
        commands,
        cwd: directory(payload, "working_dir")?,
        session: None,
        input,
        keys: keys(payload, &["session_id", "tool_call_id"]),
        transcript: None,
        unattended: false,
        lasting: false,
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
