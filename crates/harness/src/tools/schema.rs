//! The JSON Schemas of the tools' arguments.

use serde_json::{Value, json};

fn object(properties: &Value, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn workdir() -> Value {
    json!({ "type": "string", "minLength": 1, "description": "Directory, relative to the project root [default: the root]" })
}

fn path(description: &str) -> Value {
    json!({ "type": "string", "minLength": 1, "description": description })
}

pub(super) fn shell() -> Value {
    object(
        &json!({
            "command": { "type": "string", "minLength": 1, "description": "The command line" },
            "workdir": workdir(),
            "timeoutMs": {
                "type": "integer", "minimum": 1000, "maximum": 60_000, "default": 10_000,
                "description": "Time for the command in milliseconds",
            },
        }),
        &["command"],
    )
}

pub(super) fn exec() -> Value {
    object(
        &json!({
            "argv": {
                "type": "array", "items": { "type": "string" }, "minItems": 1,
                "description": "The program, then its arguments",
            },
            "workdir": workdir(),
            "timeoutMs": {
                "type": "integer", "minimum": 1000,
                "description": "Time for the program in milliseconds [default: 15 minutes]",
            },
        }),
        &["argv"],
    )
}

pub(super) fn shell_start() -> Value {
    object(
        &json!({
            "command": { "type": "string", "minLength": 1, "description": "The command line" },
            "workdir": workdir(),
        }),
        &["command"],
    )
}

pub(super) fn background() -> Value {
    object(
        &json!({ "id": { "type": "integer", "minimum": 1, "description": "The number that shell_start gave" } }),
        &["id"],
    )
}

pub(super) fn read_file() -> Value {
    object(
        &json!({
            "path": path("The file, relative to the project root"),
            "offset": { "type": "integer", "minimum": 1, "default": 1, "description": "The first line, counted from 1" },
            "limit": {
                "type": "integer", "minimum": 1, "maximum": 2000, "default": 2000, "description": "How many lines",
            },
        }),
        &["path"],
    )
}

pub(super) fn write_file() -> Value {
    object(
        &json!({
            "path": path("The file, relative to the project root; missing folders are made"),
            "content": { "type": "string", "description": "The whole new content" },
        }),
        &["path", "content"],
    )
}

pub(super) fn list_dir() -> Value {
    object(&json!({ "path": path("The folder, relative to the project root [default: the root]") }), &[])
}
