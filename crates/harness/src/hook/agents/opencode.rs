//! opencode: the plugin that `harness install opencode` writes sends `{sessionID, callID, tool, args, cwd}`, throws what is
//! under `deny`, and puts what is under `args` in the place of the tool's arguments.

use super::{chosen_directory, command, directory, keys, signed, text, with_command};
use crate::hook::{Asked, Payload, Reply, Verdict};
use serde_json::{Value, json};

pub(super) fn parse(payload: &Value) -> Result<Payload, String> {
    if text(payload, "tool")? != "bash" {
        return Ok(Payload::Unrelated);
    }
    let input = payload.get("args").cloned().unwrap_or(Value::Null);
    let session = directory(payload, "cwd")?;
    let cwd = chosen_directory(input.get("workdir"), session.as_deref())?;
    Ok(Payload::Commands(Asked {
        event: "tool.execute.before".to_owned(),
        commands: vec![command(&input, "command")?],
        cwd,
        session,
        input,
        keys: keys(payload, &["sessionID", "callID"]),
        unattended: false,
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
