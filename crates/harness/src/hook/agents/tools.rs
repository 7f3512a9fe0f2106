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

/// The call of a tool as something to ask about, if it looks like one that runs commands: each of the commands in it, so that
/// a rule that denies the last of them holds as well. `known` are names of tools that look like it and are not.
pub(super) fn like_a_shell(name: &str, input: &Value, known: &[&str]) -> Option<Vec<AskedCommand>> {
    if known.contains(&name) {
        return None;
    }
    let mut commands = Vec::new();
    commands_in(input, &mut commands);
    if commands.is_empty() {
        if !words(name).iter().any(|word| NAMES.contains(&word.as_str())) {
            return None;
        }
        commands.push(input.to_string());
    } else if !input.as_object().is_some_and(|object| object.len() == 1 && commands.len() == 1) {
        // What else the tool is given belongs to what a person says yes to.
        for command in &mut commands {
            *command = format!("{command} # {input}");
        }
    }
    let shown: String = name.chars().take(64).collect();
    let language = format!("the tool {shown:?}");
    Some(commands.into_iter().map(|text| AskedCommand::Other { language: language.clone(), text }).collect())
}

/// The words of a name: `mcp__pty__runCommand2` has `mcp`, `pty`, `run`, `command`, `2`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let (mut after_lower, mut after_digit) = (false, false);
    for c in name.chars() {
        let begins = !c.is_alphanumeric()
            || (c.is_uppercase() && after_lower)
            || (c.is_alphabetic() && after_digit)
            || (c.is_numeric() && !after_digit);
        if begins && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
        (after_lower, after_digit) = (c.is_lowercase(), c.is_numeric());
    }
    words
}

/// The commands among the arguments, however deep.
fn commands_in(input: &Value, commands: &mut Vec<String>) {
    match input {
        Value::Object(object) => {
            for (key, value) in object {
                let plain: String = key.chars().filter(|c| !matches!(c, '_' | '-')).collect();
                let is_one = ARGUMENTS.contains(&plain.to_lowercase().as_str());
                match text(value).filter(|_| is_one) {
                    Some(text) => commands.push(text),
                    None => commands_in(value, commands),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| commands_in(item, commands)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
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

    fn texts(commands: Vec<AskedCommand>) -> Vec<String> {
        let text = |command| match command {
            AskedCommand::Other { text, .. } => text,
            other @ (AskedCommand::Shell(_) | AskedCommand::Argv(_)) => panic!("{other:?}"),
        };
        commands.into_iter().map(text).collect()
    }

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
            ("bash2", json!({}), Some("{}")),
            ("Exec3Tool", json!({}), Some("{}")),
            ("sha256", json!({}), None),
        ] {
            let found = like_a_shell(name, &input, &[]).map(texts);
            assert_eq!(found, expected.map(|text| vec![text.to_owned()]), "{name} {input}");
        }
        let several = json!([{ "command": "ls" }, { "deep": [{ "cmd": "rm x" }, { "script": { "a": 1 } }] }]);
        let found: Vec<String> = like_a_shell("batch", &several, &[]).map(texts).unwrap();
        let firsts: Vec<&str> = found.iter().map(|text| text.split_once(" # ").unwrap().0).collect();
        assert_eq!(firsts, ["ls", "rm x", "{\"a\":1}"]);
        assert_eq!(like_a_shell("editor", &json!({ "command": "view" }), &["editor"]), None);
    }
}
