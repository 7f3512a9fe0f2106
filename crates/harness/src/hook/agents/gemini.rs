//! Gemini CLI: `BeforeTool`.

use super::tools::like_a_shell;
use super::{chosen_directory, command_alone, directory, keys, signed, text, with_command};
use crate::hook::{Asked, Payload, Reply, Verdict};
use serde_json::{Value, json};

pub(super) fn parse(payload: &Value) -> Result<Payload, String> {
    let event = text(payload, "hook_event_name")?;
    if event != "BeforeTool" {
        return Err(format!("the event {event:?} is not known"));
    }
    let tool = text(payload, "tool_name")?;
    let input = payload.get("tool_input").cloned().unwrap_or(Value::Null);
    let commands = if tool == "run_shell_command" {
        vec![command_alone(tool, &input, &["dir_path", "directory"])?]
    } else {
        match like_a_shell(tool, &input, &[]) {
            Some(commands) => commands,
            None => return Ok(Payload::Unrelated),
        }
    };
    let session = directory(payload, "cwd")?;
    let chosen = match (input.get("dir_path"), input.get("directory")) {
        (Some(one), Some(other)) if one != other => {
            return Err("there is a directory under `dir_path` and under `directory`".to_owned());
        }
        (one, other) => one.or(other),
    };
    let cwd = chosen_directory(chosen, session.as_deref())?;
    Ok(Payload::Commands(Asked {
        event: event.to_owned(),
        commands,
        cwd,
        session,
        input,
        keys: keys(payload, &["session_id", "timestamp"]),
        transcript: None,
        unattended: false,
        lasting: false,
    }))
}

/// What is under `tool_input` takes the place of the whole input, with an ask as well as with an allow.
pub(super) fn answer(asked: Option<&Asked>, verdict: &Verdict) -> Reply {
    let changed = |decision: &str, asked: &Asked, commands: &[String], message: &str| {
        json!({
            "decision": decision,
            "systemMessage": signed(message),
            "hookSpecificOutput": {
                "hookEventName": "BeforeTool",
                "tool_input": with_command(asked, "command", commands),
            },
        })
    };
    Reply::json(&match (verdict, asked) {
        (Verdict::Allow { .. }, _) => json!({ "decision": "allow" }),
        (Verdict::Rewrite { commands, reason }, Some(asked)) if commands.len() == 1 => {
            changed("allow", asked, commands, reason)
        }
        (Verdict::AskRewrite { commands, reason }, Some(asked)) if commands.len() == 1 => {
            changed("ask", asked, commands, reason)
        }
        (Verdict::Ask { reason }, _) => json!({ "decision": "ask", "systemMessage": signed(reason) }),
        (
            Verdict::Rewrite { reason, .. } | Verdict::AskRewrite { reason, .. } | Verdict::Deny { reason },
            _,
        ) => {
            json!({ "decision": "deny", "reason": signed(reason) })
        }
    })
}
