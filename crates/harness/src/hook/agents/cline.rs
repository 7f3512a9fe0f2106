//! Cline: `PreToolUse` scripts. The exit code is ignored; only the JSON counts.

use super::tools::like_a_shell;
use super::{directory, elsewhere, keys, roots, signed, text, with_more};
use crate::hook::{Asked, AskedCommand, Payload, Reply, Verdict};
use serde_json::{Map, Value, json};

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
            Some(alike) => commands.extend(alike),
            None => return Ok(Payload::Unrelated),
        }
    }
    if commands.is_empty() {
        return Err("`input` holds no command".to_owned());
    }
    let cwd = match directory(payload, "cwd")? {
        Some(cwd) => Some(cwd),
        None => roots(payload, "workspaceRoots")?.into_iter().next(),
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
        // In an editor its terminal goes on.
        lasting: true,
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
            let before = commands.len();
            let program = object.get("command").or_else(|| object.get("cmd"));
            match (object.get("commands"), program, object.get("args")) {
                (Some(list), _, None) => collect(list, commands)?,
                (Some(_), _, Some(_)) => return Err("there are `args` beside `commands`".to_owned()),
                (None, Some(Value::String(program)), Some(Value::Array(args))) => {
                    let words: Option<Vec<String>> =
                        args.iter().map(|word| word.as_str().map(ToOwned::to_owned)).collect();
                    let mut argv = vec![program.clone()];
                    argv.extend(words.ok_or("`args` holds something that is not a text")?);
                    commands.push(AskedCommand::Argv(argv));
                }
                (None, Some(Value::String(text)), None) => commands.push(AskedCommand::Shell(text.clone())),
                (None, Some(list @ Value::Array(_)), None) => collect(list, commands)?,
                (None, Some(_), _) => return Err("`command` is not a text".to_owned()),
                (None, None, _) => return Err("`command` is missing".to_owned()),
            }
            if let Some(key) = elsewhere(input, &[]) {
                for command in commands.iter_mut().skip(before) {
                    *command = with_more("run_commands", key, command, input);
                }
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
