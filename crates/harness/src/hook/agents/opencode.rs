//! opencode: the plugin that `harness install opencode` writes sends `{sessionID, callID, tool, args, cwd}`, throws what is
//! under `deny`, and puts what is under `args` in the place of the tool's arguments.

use super::tools::like_a_shell;
use super::{chosen_directory, command_alone, directory, keys, signed, text, with_command};
use crate::hook::{Asked, Payload, Reply, Verdict};
use serde_json::{Value, json};

/// It begins another agent, and names the slash command that it comes from.
const NO_SHELLS: &[&str] = &["task"];

pub(super) fn parse(payload: &Value) -> Result<Payload, String> {
    let tool = text(payload, "tool")?;
    let input = payload.get("args").cloned().unwrap_or(Value::Null);
    let commands = if tool == "bash" {
        vec![command_alone(tool, &input, &["workdir"])?]
    } else {
        match like_a_shell(tool, &input, NO_SHELLS) {
            Some(commands) => commands,
            None => return Ok(Payload::Unrelated),
        }
    };
    let session = directory(payload, "cwd")?;
    let cwd = chosen_directory(input.get("workdir"), session.as_deref())?;
    Ok(Payload::Commands(Asked {
        event: "tool.execute.before".to_owned(),
        commands,
        cwd,
        session,
        input,
        keys: keys(payload, &["sessionID", "callID"]),
        transcript: None,
        unattended: false,
        lasting: false,
    }))
}

pub(super) fn answer(asked: Option<&Asked>, verdict: &Verdict) -> Reply {
    Reply::json(&match (verdict, asked) {
        (Verdict::Allow { .. }, _) => json!({ "allow": true }),
        (Verdict::Rewrite { commands, .. }, Some(asked)) => {
            json!({ "allow": true, "args": with_command(asked, "command", commands) })
        }
        (Verdict::Rewrite { reason, .. }, None)
        | (Verdict::Ask { reason } | Verdict::AskRewrite { reason, .. } | Verdict::Deny { reason }, _) => {
            json!({ "deny": signed(reason) })
        }
    })
}
