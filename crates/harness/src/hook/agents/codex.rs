//! Codex CLI: `PreToolUse` and `PermissionRequest`.
//!
//! It has no answer for an ask: one with `ask`, a bare `allow`, or any key that its schema does not know counts as a failed
//! hook, after which the command runs. Silence makes it go on to its own rules, sandbox and prompt. But in its sandbox it
//! prompts for nothing that needs no more than that, and without a sandbox for nothing at all, unless its rules say so
//! (seen with 0.171.0). So an ask is silence only where its sandbox bounds the command; which one there is stands in its
//! record of the session. In that sandbox no other can be set up: nothing is rewritten into one there.

use super::tools::like_a_shell;
use super::{alone, command, directory, keys, signed, text};
use crate::hook::{Asked, Payload, Reply, Verdict};
use serde_json::{Value, json};
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

/// The longest record of a session that is read, in bytes.
const LONGEST_RECORD: u64 = 256 * 1024 * 1024;

/// Its patches stand under `command`.
const NO_SHELLS: &[&str] = &["apply_patch"];

pub(super) fn parse(payload: &Value) -> Result<Payload, String> {
    let event = text(payload, "hook_event_name")?;
    if !matches!(event, "PreToolUse" | "PermissionRequest") {
        return Err(format!("the event {event:?} is not known"));
    }
    let tool = text(payload, "tool_name")?;
    let input = payload.get("tool_input").cloned().unwrap_or(Value::Null);
    let shell = matches!(tool, "Bash" | "shell" | "local_shell" | "exec_command" | "unified_exec");
    let commands = match (input.get("command"), input.get("cmd")) {
        _ if !shell => match like_a_shell(tool, &input, NO_SHELLS) {
            Some(commands) => commands,
            None => return Ok(Payload::Unrelated),
        },
        (Some(_), Some(_)) => return Err("there is a command under `command` and under `cmd`".to_owned()),
        (None, Some(_)) => vec![command(&input, "cmd")?],
        (Some(_) | None, None) => vec![alone(tool, command(&input, "command")?, &input, &[])],
    };
    let mode = payload.get("permission_mode").and_then(Value::as_str);
    Ok(Payload::Commands(Asked {
        event: event.to_owned(),
        commands,
        cwd: directory(payload, "cwd")?,
        // `cwd` is that of the command, which the model may choose; Codex starts its hooks in that of the session.
        session: std::env::current_dir().ok(),
        input,
        keys: keys(payload, &["session_id", "turn_id", "tool_use_id", "agent_id"]),
        transcript: transcript(payload),
        // No prompt of its own comes before what is typed into a program, say.
        unattended: !shell || matches!(mode, Some("bypassPermissions" | "dontAsk")),
        lasting: false,
    }))
}

pub(super) fn answer(asked: Option<&Asked>, verdict: &Verdict) -> Reply {
    let Some(asked) = asked else { return Reply::blocked(verdict.reason()) };
    let event = asked.event.as_str();
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
        Verdict::Allow { .. } | Verdict::Ask { .. } => Reply::default(),
        Verdict::Rewrite { commands, .. } => match commands.as_slice() {
            [command] => Reply::json(&json!({ "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "allow",
                "updatedInput": { "command": command },
            } })),
            _ => Reply::default(),
        },
        Verdict::AskRewrite { reason, .. } | Verdict::Deny { reason } => {
            Reply::json(&json!({ "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": signed(reason),
        } }))
        }
    }
}

fn transcript(payload: &Value) -> Option<(PathBuf, String)> {
    let path = payload.get("transcript_path")?.as_str().filter(|path| path.starts_with('/'))?;
    let turn = payload.get("turn_id")?.as_str().filter(|turn| !turn.is_empty())?;
    Some((PathBuf::from(path), turn.to_owned()))
}

/// What the record says of the turn: `{"type":"turn_context","payload":{"turn_id":…,"sandbox_policy":{"type":…}}}`.
pub(super) fn own_sandbox(asked: &Asked) -> Option<bool> {
    let (path, turn) = asked.transcript.as_ref()?;
    if !std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() <= LONGEST_RECORD) {
        return None;
    }
    let mut record = Vec::new();
    File::open(path).ok()?.take(LONGEST_RECORD).read_to_end(&mut record).ok()?;
    // The last one counts.
    record.split(|byte| *byte == b'\n').rev().find_map(|line| {
        let begins = line.get(..line.len().min(200)).unwrap_or_default();
        if !begins.windows(14).any(|window| window == b"\"turn_context\"") {
            return None;
        }
        let line: Value = serde_json::from_slice(line).ok()?;
        if line.get("type")?.as_str()? != "turn_context"
            || line.pointer("/payload/turn_id")?.as_str()? != turn
        {
            return None;
        }
        let policy = line.pointer("/payload/sandbox_policy/type").and_then(Value::as_str);
        let profile = line.pointer("/payload/permission_profile/type").and_then(Value::as_str);
        Some(matches!(policy, Some("read-only" | "workspace-write")) && profile != Some("disabled"))
    })
}
