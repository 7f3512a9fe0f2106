//! Claude Code: `PreToolUse`, `PermissionRequest` and `PreSkillShellCommand`.

use super::tools::like_a_shell;
use super::{command_alone, directory, insert, keys, shell_text, signed, text, with_command};
use crate::hook::{Asked, AskedCommand, Payload, Reply, Verdict};
use serde_json::{Value, json};

/// Its own tools that run no command: they read and write files, read or end what runs, begin other agents, name a skill.
const NO_SHELLS: &[&str] = &[
    "BashOutput",
    "Edit",
    "Glob",
    "Grep",
    "KillBash",
    "KillShell",
    "LS",
    "MultiEdit",
    "NotebookEdit",
    "Read",
    "Skill",
    "SlashCommand",
    "Task",
    "TodoWrite",
    "WebFetch",
    "WebSearch",
    "Write",
    "str_replace_based_edit_tool",
    "str_replace_editor",
];

/// The shell of VS Code, which reads the settings of Claude Code and shows their hooks every tool.
const TERMINAL: &str = "run_in_terminal";

pub(super) fn parse(payload: &Value) -> Result<Payload, String> {
    let event = text(payload, "hook_event_name")?;
    let input = payload.get("tool_input").cloned().unwrap_or(Value::Null);
    let commands = match event {
        "PreToolUse" | "PermissionRequest" => match text(payload, "tool_name")? {
            tool @ ("Bash" | "Monitor" | TERMINAL) => vec![command_alone(tool, &input, &[])?],
            "PowerShell" => vec![AskedCommand::Other {
                language: "PowerShell".to_owned(),
                text: text(&input, "command")?.to_owned(),
            }],
            other => match like_a_shell(other, &input, NO_SHELLS) {
                Some(commands) => commands,
                None => return Ok(Payload::Unrelated),
            },
        },
        "PreSkillShellCommand" => {
            let holder = if payload.get("command").is_some() { payload } else { &input };
            vec![shell_text(event, holder, "command")?]
        }
        other => return Err(format!("the event {other:?} is not known")),
    };
    Ok(Payload::Commands(Asked {
        event: event.to_owned(),
        commands,
        cwd: directory(payload, "cwd")?,
        session: None,
        input,
        keys: keys(payload, &["session_id", "prompt_id", "tool_use_id", "agent_id"]),
        transcript: None,
        unattended: matches!(
            payload.get("permission_mode").and_then(Value::as_str),
            Some("bypassPermissions" | "dontAsk")
        ),
        lasting: payload.get("tool_name").and_then(Value::as_str) == Some(TERMINAL),
    }))
}

pub(super) fn answer(asked: Option<&Asked>, verdict: &Verdict) -> Reply {
    let Some(asked) = asked else { return Reply::blocked(verdict.reason()) };
    let event = asked.event.as_str();
    if event == "PermissionRequest" {
        return permission(asked, verdict);
    }
    let mut output = json!({ "hookEventName": event });
    let decision = match verdict {
        Verdict::Allow { .. } | Verdict::Rewrite { .. } => "allow",
        Verdict::Ask { .. } | Verdict::AskRewrite { .. } => "ask",
        Verdict::Deny { .. } => "deny",
    };
    // A skill's command cannot be changed, and whatever is not allow blocks it.
    let rewritten = matches!(verdict, Verdict::Rewrite { .. });
    let decision = if rewritten && event == "PreSkillShellCommand" { "ask" } else { decision };
    insert(&mut output, "permissionDecision", json!(decision));
    insert(&mut output, "permissionDecisionReason", json!(signed(verdict.reason())));
    // Changed input counts with allow and, since 2.1.0, with ask.
    if let Verdict::Rewrite { commands, .. } | Verdict::AskRewrite { commands, .. } = verdict
        && event != "PreSkillShellCommand"
    {
        insert(&mut output, "updatedInput", with_command(asked, "command", commands));
    }
    Reply::json(&json!({ "hookSpecificOutput": output }))
}

/// The dialog is about to be shown: silence shows it.
fn permission(asked: &Asked, verdict: &Verdict) -> Reply {
    let decision = match verdict {
        Verdict::Allow { .. } => json!({ "behavior": "allow" }),
        Verdict::Rewrite { commands, .. } => {
            json!({ "behavior": "allow", "updatedInput": with_command(asked, "command", commands) })
        }
        Verdict::Ask { .. } | Verdict::AskRewrite { .. } => return Reply::default(),
        Verdict::Deny { reason } => {
            json!({ "behavior": "deny", "message": signed(reason), "interrupt": false })
        }
    };
    Reply::json(
        &json!({ "hookSpecificOutput": { "hookEventName": "PermissionRequest", "decision": decision } }),
    )
}
