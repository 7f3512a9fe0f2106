//! Tools that no adapter knows by name.
//!
//! An agent gets new tools with every version, and more from servers that its user adds. One that is called like a shell, or
//! takes something that is called like a command, is asked about; what only reads and writes files is none of this program's
//! business.

use crate::hook::{AskedCommand, quote};
use serde_json::Value;

/// Words in the name of a tool that runs something or types into it.
const NAMES: &[&str] = &[
    "ash",
    "bash",
    "cmd",
    "command",
    "commands",
    "console",
    "dash",
    "exec",
    "fish",
    "ksh",
    "process",
    "powershell",
    "pty",
    "pwsh",
    "repl",
    "sh",
    "shell",
    "stdin",
    "subprocess",
    "terminal",
    "zsh",
];
/// Arguments that hold a command or what is typed into one, in lower case and without `_` and `-`.
const ARGUMENTS: &[&str] = &[
    "argv",
    "bash",
    "cmd",
    "cmdline",
    "command",
    "commandline",
    "commands",
    "keystrokes",
    "script",
    "shellcommand",
    "stdin",
];

/// The call of a tool as something to ask about, if it looks like one that runs commands. `known` are names of tools that
/// look like it and are not.
pub(super) fn like_a_shell(name: &str, input: &Value, known: &[&str]) -> Option<AskedCommand> {
    if known.contains(&name) {
        return None;
    }
    let command = command_in(input);
    if command.is_none() && !words(name).iter().any(|word| NAMES.contains(&word.as_str())) {
        return None;
    }
    let shown: String = name.chars().take(64).collect();
    let alone = input.as_object().is_some_and(|object| object.len() == 1);
    let text = match command {
        Some(command) if alone => command,
        // What else the tool is given belongs to what a person says yes to.
        Some(command) => format!("{command} # {input}"),
        None => input.to_string(),
    };
    Some(AskedCommand::Other { language: format!("the tool {shown:?}"), text })
}

/// The words of a name: `mcp__pty__runCommand` has `mcp`, `pty`, `run`, `command`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_lower = false;
    for c in name.chars() {
        let begins = !c.is_alphanumeric() || (c.is_uppercase() && after_lower);
        if begins && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
        after_lower = c.is_lowercase();
    }
    words
}

/// The first command among the arguments, however deep.
fn command_in(input: &Value) -> Option<String> {
    match input {
        Value::Object(object) => {
            let is_one = |key: &str| {
                let plain: String = key.chars().filter(|c| !matches!(c, '_' | '-')).collect();
                ARGUMENTS.contains(&plain.to_lowercase().as_str())
            };
            let here = object.iter().filter(|(key, _)| is_one(key)).find_map(|(_, value)| text(value));
            here.or_else(|| object.values().find_map(command_in))
        }
        Value::Array(items) => items.iter().find_map(command_in),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => {
            let words: Option<Vec<String>> = items.iter().map(|item| item.as_str().map(quote)).collect();
            Some(words.map_or_else(|| value.to_string(), |words| words.join(" ")))
        }
        Value::Object(_) => Some(value.to_string()),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_looks_like_a_shell_is_told_from_what_does_not() {
        for (name, input, expected) in [
            ("Read", json!({ "file_path": "bash.md" }), None),
            ("publish", json!({ "push": "x", "finish": true }), None),
            ("hash_file", json!({ "path": "x" }), None),
            ("mcp__github__create_issue", json!({ "title": "a command", "body": "rm -rf x" }), None),
            ("get", json!({ "command": null, "commands": 3 }), None),
            (
                "write_stdin",
                json!({ "session_id": 1, "chars": "x" }),
                Some(r#"{"session_id":1,"chars":"x"}"#),
            ),
            ("RunInTerminal", json!({}), Some("{}")),
            ("mcp__desktop__start_process", json!({ "command": "rm -rf x" }), Some("rm -rf x")),
            ("batch", json!({ "calls": [{ "tool": "x", "parameters": { "command": "ls" } }] }), Some("ls")),
            ("x", json!({ "cmd": "ls", "cwd": "/" }), Some(r#"ls # {"cmd":"ls","cwd":"/"}"#)),
            ("x", json!({ "argv": ["ls", "a b"] }), Some("ls 'a b'")),
            ("x", json!({ "Command_Line": "ls" }), Some("ls")),
            ("x", json!({ "commands": [["ls"]] }), Some(r#"[["ls"]]"#)),
        ] {
            let found = like_a_shell(name, &input, &[]);
            let found = found.map(|command| match command {
                AskedCommand::Other { text, .. } => text,
                other @ (AskedCommand::Shell(_) | AskedCommand::Argv(_)) => panic!("{other:?}"),
            });
            assert_eq!(found.as_deref(), expected, "{name} {input}");
        }
        assert_eq!(like_a_shell("editor", &json!({ "command": "view" }), &["editor"]), None);
    }
}
