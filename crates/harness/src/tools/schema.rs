//! The JSON Schemas of the tools' arguments, and of what they answer beside the text.

use crate::wire::SCHEMA_VERSION;
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

pub(super) fn shell_check() -> Value {
    object(
        &json!({
            "command": { "type": "string", "minLength": 1, "description": "The command line" },
            "workdir": workdir(),
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

pub(super) fn check_output() -> Value {
    reply(&["decided", "invalid"])
}

pub(super) fn run_output() -> Value {
    reply(&["ran", "refused", "approval_required", "failed", "not_recorded", "invalid"])
}

pub(super) fn start_output() -> Value {
    reply(&["background", "refused", "approval_required", "failed", "not_recorded", "invalid"])
}

pub(super) fn background_output() -> Value {
    reply(&["background", "failed", "invalid"])
}

/// The serialised form of [`crate::wire::Replied`] with these kinds of reply. New fields may come, so that it is open.
fn reply(kinds: &[&str]) -> Value {
    let text = |description: &str| json!({ "type": "string", "description": description });
    let whole = |description: &str| json!({ "type": "integer", "description": description });
    let stream = json!({
        "type": "object",
        "properties": {
            "text": text("What is shown of it"),
            "truncated": { "type": "boolean" },
            "total_bytes": { "type": "integer" },
            "total_lines": { "type": "integer" },
        },
        "required": ["text", "truncated", "total_bytes", "total_lines"],
    });
    let new = json!({
        "type": "object",
        "properties": {
            "text": text("What came since the last poll"),
            "skipped_bytes": whole("How much before it is not shown"),
        },
        "required": ["text", "skipped_bytes"],
    });
    json!({
        "type": "object",
        "properties": {
            "schema_version": { "type": "integer", "const": SCHEMA_VERSION },
            "command": text("What it is about, as one line"),
            "reply": { "type": "string", "enum": kinds },
            "effect": { "type": "string", "enum": ["allow", "ask", "deny"] },
            "code": text("Stable code of what went wrong, such as PERMISSION_DENIED"),
            "reason": text("Why it was decided so, or what went wrong"),
            "rule": text("The rule that decided"),
            "layer": text("The layer that decided"),
            "verdict": { "type": "string", "enum": ["safe", "needs_review"] },
            "conditions": { "type": "array", "items": { "type": "string" } },
            "findings": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "code": { "type": "string" },
                        "message": { "type": "string" },
                        "span": {
                            "type": "array", "items": { "type": "integer", "minimum": 0 }, "minItems": 2, "maxItems": 2,
                            "description": "Where it is in the command: the first byte, and the one after the last",
                        },
                    },
                    "required": ["code", "message", "span"],
                },
            },
            "approval": whole("The number of the stored question, when a person has to answer it elsewhere"),
            "hint": text("Which other tool would have done"),
            "run": {
                "type": "object",
                "properties": {
                    "outcome": {
                        "type": "string",
                        "enum": ["exited", "signaled", "timed_out", "cancelled", "sandbox_failed", "not_started"],
                    },
                    "exit_code": { "type": "integer" },
                    "signal": { "type": "integer" },
                    "kill_incomplete": { "type": "boolean" },
                    "duration_ms": { "type": "integer" },
                    "workdir": text("Relative to the project root"),
                    "stdout": stream,
                    "stderr": stream,
                    "enforced": { "type": "object", "description": "What the sandbox enforced" },
                    "denials": { "type": "array", "items": { "type": "string" } },
                },
                "required": ["outcome", "duration_ms", "workdir", "stdout", "stderr", "enforced", "denials"],
            },
            "background": {
                "type": "object",
                "properties": {
                    "id": whole("For shell_poll and shell_kill"),
                    "state": { "type": "string", "enum": ["running", "ended", "failed"] },
                    "outcome": text("How it ended"),
                    "exit_code": { "type": "integer" },
                    "signal": { "type": "integer" },
                    "stdout": new,
                    "stderr": new,
                },
                "required": ["id", "state"],
            },
        },
        "required": ["schema_version", "reply", "reason"],
    })
}
