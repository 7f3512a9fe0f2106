//! The chat form that OpenAI's API set and most servers of models speak: what is sent, and what an answer holds.
//!
//! An answer is read leniently where servers are known to differ (arguments as an object, a text in parts, no ids, no
//! usage) and named where it is none.

use super::OfferedTool;
use crate::agent::message::{Message, ToolCall, Turn};
use serde_json::{Map, Value, json};

/// Why a body is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// The server says what is wrong, sometimes under a status that says nothing is.
    Refused {
        /// The status that it names.
        status: Option<u16>,
        /// What it says.
        message: String,
    },
    /// It is not what the form says: the place, and what is there.
    Nonsense(String),
    /// The model wrote nothing, or was stopped before its end.
    Unfinished(String),
}

/// What is sent for the next answer in a conversation.
pub(super) fn question(model: &str, conversation: &[Message], tools: &[OfferedTool]) -> Value {
    let messages: Vec<Value> = conversation.iter().map(message).collect();
    let mut question = json!({ "model": model, "messages": messages, "stream": false });
    if !tools.is_empty() {
        let tools: Vec<Value> = tools
            .iter()
            .map(|tool| {
                json!({
                    "type": "function",
                    "function": {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": tool.parameters,
                    },
                })
            })
            .collect();
        if let Some(object) = question.as_object_mut() {
            object.insert("tools".to_owned(), Value::from(tools));
        }
    }
    question
}

fn message(message: &Message) -> Value {
    match message {
        Message::System { text } => json!({ "role": "system", "content": text }),
        Message::User { text } => json!({ "role": "user", "content": text }),
        Message::Tool { call, text } => json!({ "role": "tool", "tool_call_id": call, "content": text }),
        Message::Assistant(turn) => {
            let mut said = json!({ "role": "assistant", "content": turn.text });
            if let Some(object) = said.as_object_mut().filter(|_| !turn.calls.is_empty()) {
                let calls: Vec<Value> = turn.calls.iter().map(call).collect();
                object.insert("tool_calls".to_owned(), Value::from(calls));
            }
            said
        }
    }
}

fn call(call: &ToolCall) -> Value {
    // Servers that read the arguments of earlier calls refuse a conversation in which they are no JSON.
    let arguments = match serde_json::from_str::<Map<String, Value>>(&call.arguments) {
        Ok(_) => call.arguments.clone(),
        Err(_) => json!({ "malformed": call.arguments }).to_string(),
    };
    json!({
        "id": call.id,
        "type": "function",
        "function": { "name": call.name, "arguments": arguments },
    })
}

/// Reads the body of an answer.
pub(super) fn answer(body: &[u8]) -> Result<Turn, NoAnswer> {
    let value: Value = serde_json::from_slice(body)
        .map_err(|error| NoAnswer::Nonsense(format!("not JSON ({error}): {}", start_of(body))))?;
    if let Some(refused) = refusal(&value) {
        return Err(refused);
    }
    let choices = value.get("choices").ok_or_else(|| nonsense("choices", None, "an array"))?;
    let choices = choices.as_array().ok_or_else(|| nonsense("choices", Some(choices), "an array"))?;
    let choice = choices.first().ok_or_else(|| NoAnswer::Unfinished("`choices` is empty".to_owned()))?;
    if let Some(refused) = refusal(choice) {
        return Err(refused);
    }
    let place = "choices[0].message";
    let said = choice.get("message");
    let said = said.and_then(Value::as_object).ok_or_else(|| nonsense(place, said, "an object"))?;
    let text = match said.get("content").filter(|content| !content.is_null()) {
        Some(content) => text_of(content)?,
        None => said.get("refusal").and_then(Value::as_str).unwrap_or_default().to_owned(),
    };
    let calls = match said.get("tool_calls").filter(|calls| !calls.is_null()) {
        None => Vec::new(),
        Some(Value::Array(calls)) => calls_of(calls)?,
        Some(other) => return Err(nonsense(&format!("{place}.tool_calls"), Some(other), "an array")),
    };
    let finish = choice.get("finish_reason").and_then(Value::as_str).unwrap_or_default();
    if calls.is_empty() {
        // A text without its end would be taken for the model's word that it is done.
        if matches!(finish, "length" | "content_filter" | "error") {
            return Err(NoAnswer::Unfinished(format!("the answer ended early (finish_reason `{finish}`)")));
        }
        if text.trim().is_empty() {
            return Err(NoAnswer::Unfinished("the answer is empty".to_owned()));
        }
    }
    let tokens = value.pointer("/usage/total_tokens").and_then(Value::as_u64).unwrap_or(0);
    Ok(Turn { text, calls, tokens })
}

/// What a server says under `error`, whatever its form.
pub(super) fn refusal(value: &Value) -> Option<NoAnswer> {
    let error = value.get("error").filter(|error| !error.is_null())?;
    let message = error
        .get("message")
        .or_else(|| error.pointer("/metadata/raw"))
        .and_then(Value::as_str)
        .or_else(|| error.as_str())
        .map_or_else(|| error.to_string(), ToOwned::to_owned);
    let code = error.get("code").or_else(|| error.get("status"));
    let status = code.and_then(|code| code.as_u64().or_else(|| code.as_str()?.parse().ok()));
    Some(NoAnswer::Refused { status: status.and_then(|status| u16::try_from(status).ok()), message })
}

fn text_of(content: &Value) -> Result<String, NoAnswer> {
    let place = "choices[0].message.content";
    match content {
        Value::String(text) => Ok(text.clone()),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str));
            Ok(texts.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            Err(nonsense(place, Some(content), "a string"))
        }
    }
}

fn calls_of(list: &[Value]) -> Result<Vec<ToolCall>, NoAnswer> {
    let mut calls: Vec<ToolCall> = Vec::with_capacity(list.len());
    for (at, call) in list.iter().enumerate() {
        let place = format!("choices[0].message.tool_calls[{at}].function");
        let function = call.get("function").ok_or_else(|| nonsense(&place, None, "an object"))?;
        let name = function.get("name");
        let name = name
            .and_then(Value::as_str)
            .ok_or_else(|| nonsense(&format!("{place}.name"), name, "a string"))?;
        // What is wrong inside the arguments is the tool's to say, and the model's to mend.
        let arguments = match function.get("arguments") {
            None | Some(Value::Null) => "{}".to_owned(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        let given = call.get("id").and_then(Value::as_str).filter(|id| !id.is_empty());
        let taken = |id: &str| calls.iter().any(|call| call.id == id);
        let id = if let Some(id) = given.filter(|id| !taken(id)) {
            id.to_owned()
        } else {
            let mut number = at + 1;
            while taken(&format!("call-{number}")) {
                number += 1;
            }
            format!("call-{number}")
        };
        calls.push(ToolCall { id, name: name.to_owned(), arguments });
    }
    Ok(calls)
}

fn nonsense(place: &str, found: Option<&Value>, wanted: &str) -> NoAnswer {
    let found = match found {
        None => "missing",
        Some(Value::Null) => "null",
        Some(Value::Bool(_)) => "a boolean",
        Some(Value::Number(_)) => "a number",
        Some(Value::String(_)) => "a string",
        Some(Value::Array(_)) => "an array",
        Some(Value::Object(_)) => "an object",
    };
    NoAnswer::Nonsense(format!("`{place}` is {found}, and must be {wanted}"))
}

/// The start of a body, for a message.
pub(super) fn start_of(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let mut start: String = text.trim().chars().take(200).collect();
    if start.is_empty() {
        return "nothing".to_owned();
    }
    if start.len() < text.trim().len() {
        start.push('…');
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(value: &Value) -> Result<Turn, NoAnswer> {
        answer(value.to_string().as_bytes())
    }

    fn said(message: &Value) -> Value {
        json!({ "choices": [{ "message": message }] })
    }

    // contract: P14
    #[test]
    fn answers_are_read_in_the_forms_that_servers_give_them() {
        let turn = read(&json!({
            "choices": [{ "message": { "content": "hi", "tool_calls": [
                { "id": "a", "function": { "name": "exec", "arguments": "{\"argv\":[\"ls\"]}" } },
                { "id": "a", "function": { "name": "list_dir" } },
                { "function": { "name": "exec", "arguments": { "argv": ["ls"] } } },
            ] } }],
            "usage": { "total_tokens": 12 },
        }))
        .unwrap();
        assert_eq!((turn.text.as_str(), turn.tokens), ("hi", 12));
        let calls: Vec<_> = turn
            .calls
            .iter()
            .map(|call| (call.id.as_str(), call.name.as_str(), call.arguments.as_str()))
            .collect();
        assert_eq!(
            calls,
            [
                ("a", "exec", r#"{"argv":["ls"]}"#),
                ("call-2", "list_dir", "{}"),
                ("call-3", "exec", r#"{"argv":["ls"]}"#)
            ]
        );
        let parts =
            json!({ "content": [{ "type": "text", "text": "a" }, { "type": "image" }, { "text": "b" }] });
        assert_eq!(read(&said(&parts)).unwrap().text, "ab");
        assert_eq!(read(&said(&json!({ "content": null, "refusal": "no" }))).unwrap().text, "no");
    }

    // contract: P14
    #[test]
    fn what_is_no_answer_is_named_with_its_place() {
        let wrong = |value: Value| match read(&value) {
            Err(NoAnswer::Nonsense(what) | NoAnswer::Unfinished(what)) => what,
            Err(NoAnswer::Refused { status, message }) => format!("{status:?} {message}"),
            Ok(turn) => panic!("{turn:?}"),
        };
        for (value, named) in [
            (json!([]), "`choices` is missing"),
            (json!({ "choices": "x" }), "`choices` is a string"),
            (json!({ "choices": [] }), "`choices` is empty"),
            (json!({ "choices": [7] }), "`choices[0].message` is missing"),
            (said(&json!("x")), "`choices[0].message` is a string"),
            (said(&json!({ "content": 7 })), "content` is a number"),
            (said(&json!({ "content": "" })), "the answer is empty"),
            (said(&json!({ "tool_calls": {} })), "tool_calls` is an object"),
            (said(&json!({ "tool_calls": [{}] })), "tool_calls[0].function` is missing"),
            (said(&json!({ "tool_calls": [{ "function": { "name": 1 } }] })), "name` is a number"),
            (
                json!({ "choices": [{ "message": { "content": "half" }, "finish_reason": "length" }] }),
                "length",
            ),
            (json!({ "error": { "message": "no credit", "code": 402 } }), "Some(402) no credit"),
            (json!({ "error": "plain" }), "None plain"),
            (json!({ "choices": [{ "error": { "message": "up", "code": "503" } }] }), "Some(503) up"),
        ] {
            let what = wrong(value.clone());
            assert!(what.contains(named), "{value}: {what}");
        }
        let page = answer(b"<html>a page</html>").unwrap_err();
        assert!(matches!(&page, NoAnswer::Nonsense(what) if what.contains("<html>a page")), "{page:?}");
    }

    // contract: P14
    #[test]
    fn a_conversation_is_sent_with_every_call_and_its_result() {
        let turn = Turn::calls("exec", json!({ "argv": ["ls"] }));
        let mut broken = Turn::says("and");
        broken.calls.push(ToolCall { id: "x".into(), name: "exec".into(), arguments: "{\"argv\": [".into() });
        let conversation = [
            Message::System { text: "s".into() },
            Message::User { text: "u".into() },
            Message::Assistant(turn),
            Message::Tool { call: "call-1".into(), text: "out".into() },
            Message::Assistant(broken),
        ];
        let tools = crate::tools::TOOLS.iter().map(|tool| OfferedTool {
            name: tool.name,
            description: tool.description,
            parameters: json!({ "of": tool.name }),
        });
        let tools: Vec<OfferedTool> = tools.collect();
        let question = question("some/model", &conversation, &tools);
        assert_eq!(question["model"], "some/model");
        let roles: Vec<_> =
            question["messages"].as_array().unwrap().iter().map(|m| m["role"].clone()).collect();
        assert_eq!(roles, ["system", "user", "assistant", "tool", "assistant"]);
        assert_eq!(question["messages"][2]["tool_calls"][0]["function"]["arguments"], r#"{"argv":["ls"]}"#);
        assert_eq!(question["messages"][3]["tool_call_id"], "call-1");
        // Arguments that are no JSON are sent as JSON, because servers refuse the conversation else.
        let sent = question["messages"][4]["tool_calls"][0]["function"]["arguments"].as_str().unwrap();
        assert!(serde_json::from_str::<Value>(sent).unwrap()["malformed"].is_string());
        let names: Vec<_> =
            question["tools"].as_array().unwrap().iter().map(|t| &t["function"]["name"]).collect();
        assert!(names.contains(&&json!("shell")) && names.len() == crate::tools::TOOLS.len());
        assert_eq!(question["tools"][0]["function"]["parameters"], tools[0].parameters);
    }

    proptest! {
        // contract: P14
        #[test]
        fn no_body_ends_the_program(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = answer(&body);
        }

        #[test]
        fn no_json_ends_the_program(text in r#"(\{"choices":\[\{"message":)?[\[\]{}:,"a-z0-9 ]{0,60}"#) {
            let _ = answer(text.as_bytes());
        }
    }
}
