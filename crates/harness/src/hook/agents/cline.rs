//! Cline: `PreToolUse` scripts. The exit code is ignored; only the JSON counts.

use super::tools::like_a_shell;
use super::{directory, keys, signed, text};
use crate::hook::{Asked, AskedCommand, Payload, Reply, Verdict};
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// They edit files.
const NO_SHELLS: &[&str] = &["editor", "str_replace_editor"];
/// Where the tool's input may hold commands.
const KEYS: [&str; 3] = ["commands", "command", "cmd"];

pub(super) fn parse(payload: &Value) -> Result<Payload, String> {
    let event = text(payload, "hookName")?;
    if event != "tool_call" {
        return Err(format!("the event {event:?} is not known"));
    }
    let call = payload.get("tool_call").ok_or("`tool_call` is missing")?;
    let tool = text(call, "name")?;
    let input = call.get("input").cloned().unwrap_or(Value::Null);
    let mut commands = Vec::new();
    if matches!(tool, "run_commands" | "execute_command" | "bash") {
        collect(&input, &mut commands)?;
    } else {
        match like_a_shell(tool, &input, NO_SHELLS) {
            Some(command) => commands.push(command),
            None => return Ok(Payload::Unrelated),
        }
    }
    if commands.is_empty() {
        return Err("`input` holds no command".to_owned());
    }
    let root = payload.get("workspaceRoots").and_then(|roots| roots.as_array()?.first()?.as_str());
    let cwd = match directory(payload, "cwd")? {
        Some(cwd) => Some(cwd),
        None => root.filter(|root| root.starts_with('/')).map(PathBuf::from),
    };
    Ok(Payload::Commands(Asked {
        event: event.to_owned(),
        commands,
        cwd,
        session: None,
        input,
        keys: keys(payload, &["taskId", "agent_id"]),
        transcript: None,
        unattended: false,
    }))
}

/// A text, a list, `{commands}`, `{command}` with or without `args`, or `{cmd}`.
fn collect(input: &Value, commands: &mut Vec<AskedCommand>) -> Result<(), String> {
    match input {
        Value::String(text) => commands.push(AskedCommand::Shell(text.clone())),
        Value::Array(items) => items.iter().try_for_each(|item| collect(item, commands))?,
        Value::Object(object) => {
            if KEYS.iter().filter(|key| object.contains_key(**key)).count() > 1 {
                // Which of them counts is a matter of the version.
                return Err("there are commands under several names".to_owned());
            }
            if let Some(list) = object.get("commands") {
                return match object.get("args") {
                    None => collect(list, commands),
                    Some(_) => Err("there are `args` beside `commands`".to_owned()),
                };
            }
            let program =
                object.get("command").or_else(|| object.get("cmd")).ok_or("`command` is missing")?;
            match (program, object.get("args")) {
                (Value::String(program), Some(Value::Array(args))) => {
                    let words: Option<Vec<String>> =
                        args.iter().map(|word| word.as_str().map(ToOwned::to_owned)).collect();
                    let mut argv = vec![program.clone()];
                    argv.extend(words.ok_or("`args` holds something that is not a text")?);
                    commands.push(AskedCommand::Argv(argv));
                }
                (Value::String(text), None) => commands.push(AskedCommand::Shell(text.clone())),
                (Value::Array(_), None) => collect(program, commands)?,
                (_, _) => return Err("`command` is not a text".to_owned()),
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => return Err("a command is not a text".to_owned()),
    }
    Ok(())
}

/// It reads `review` and, in the version that this was read from, does nothing with it; so an ask is a refusal with a code.
pub(super) fn answer(asked: Option<&Asked>, verdict: &Verdict) -> Reply {
    Reply::json(&match (verdict, asked) {
        (Verdict::Allow { .. }, _) => json!({}),
        (Verdict::Rewrite { commands, .. }, Some(asked)) => {
            json!({ "overrideInput": with_commands(&asked.input, commands) })
        }
        (Verdict::Rewrite { reason, .. }, None)
        | (Verdict::Ask { reason } | Verdict::AskRewrite { reason, .. } | Verdict::Deny { reason }, _) => {
            json!({ "cancel": true, "errorMessage": signed(reason) })
        }
    })
}

/// The tool's input with other commands: it is replaced as a whole, so what else is in it is kept.
fn with_commands(input: &Value, commands: &[String]) -> Value {
    let mut object = match input {
        Value::Object(object) => object.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    };
    for key in ["command", "cmd", "args"] {
        object.remove(key);
    }
    object.insert("commands".to_owned(), json!(commands));
    Value::Object(object)
}
