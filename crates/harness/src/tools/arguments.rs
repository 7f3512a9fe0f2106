//! Reads the arguments of a call, and names the field that is wrong.

use serde_json::{Map, Value};
use std::ops::RangeInclusive;

/// A call whose arguments are larger than this, in bytes, is refused before they are read.
const LARGEST: usize = 4 * 1024 * 1024;

/// What is wrong with a call's arguments.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("VALIDATION_ERROR: `{field}` {problem}")]
pub(crate) struct Invalid {
    pub(crate) field: String,
    pub(crate) problem: String,
}

fn invalid<T>(field: &str, problem: impl Into<String>) -> Result<T, Invalid> {
    Err(Invalid { field: field.to_owned(), problem: problem.into() })
}

/// Arguments of which every one must be taken.
#[derive(Debug)]
pub(crate) struct Arguments {
    fields: Map<String, Value>,
}

impl Arguments {
    /// Reads an object of which no key is there but `known`.
    pub(crate) fn parse(text: &str, known: &[&str]) -> Result<Self, Invalid> {
        if text.len() > LARGEST {
            return invalid("arguments", format!("are {} bytes long, and may be {LARGEST}", text.len()));
        }
        let text = if text.trim().is_empty() { "{}" } else { text };
        let value: Value = match serde_json::from_str(text) {
            Ok(value) => value,
            Err(error) => return invalid("arguments", format!("are not JSON: {error}")),
        };
        let Value::Object(mut fields) = value else {
            return invalid("arguments", format!("must be an object, and are {}", kind(&value)));
        };
        if let Some(unknown) = fields.keys().find(|key| !known.contains(&key.as_str())) {
            let unknown: String = unknown.chars().take(64).collect();
            let known = known.join("`, `");
            return invalid(&unknown, format!("is not known; there are `{known}`"));
        }
        // What is null is not there: some models send every field.
        fields.retain(|_, value| !value.is_null());
        Ok(Self { fields })
    }

    /// A text that must be there and not be blank.
    pub(crate) fn text(&mut self, field: &str) -> Result<String, Invalid> {
        match self.optional_text(field)? {
            Some(text) => Ok(text),
            None => invalid(field, "is required"),
        }
    }

    /// A text that, where it is there, is not blank and holds no NUL byte.
    pub(crate) fn optional_text(&mut self, field: &str) -> Result<Option<String>, Invalid> {
        match self.fields.remove(field) {
            None => Ok(None),
            Some(Value::String(text)) if text.trim().is_empty() => invalid(field, "is empty"),
            Some(Value::String(text)) if text.contains('\0') => invalid(field, "holds a NUL byte"),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => invalid(field, format!("must be a string, and is {}", kind(&other))),
        }
    }

    /// A text that must be there; any text.
    pub(crate) fn any_text(&mut self, field: &str) -> Result<String, Invalid> {
        match self.fields.remove(field) {
            None => invalid(field, "is required"),
            Some(Value::String(text)) => Ok(text),
            Some(other) => invalid(field, format!("must be a string, and is {}", kind(&other))),
        }
    }

    /// A list of texts, the first of them not empty.
    pub(crate) fn argv(&mut self, field: &str) -> Result<Vec<String>, Invalid> {
        let items = match self.fields.remove(field) {
            None => return invalid(field, "is required"),
            Some(Value::Array(items)) => items,
            Some(other) => {
                return invalid(field, format!("must be an array of strings, and is {}", kind(&other)));
            }
        };
        let mut argv = Vec::with_capacity(items.len());
        for (at, item) in items.into_iter().enumerate() {
            let kind = kind(&item);
            match item {
                Value::String(word) if word.contains('\0') => {
                    return invalid(&format!("{field}[{at}]"), "holds a NUL byte");
                }
                Value::String(word) => argv.push(word),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                    return invalid(&format!("{field}[{at}]"), format!("must be a string, and is {kind}"));
                }
            }
        }
        match argv.first() {
            None => invalid(field, "is empty: give the program first"),
            Some(program) if program.trim().is_empty() => invalid(&format!("{field}[0]"), "is empty"),
            Some(_) => Ok(argv),
        }
    }

    /// A whole number within `range`, where it is there.
    pub(crate) fn number(&mut self, field: &str, range: RangeInclusive<u64>) -> Result<Option<u64>, Invalid> {
        let Some(value) = self.fields.remove(field) else { return Ok(None) };
        let (low, high) = (range.start(), range.end());
        let bounds = if *high == u64::MAX { format!("{low} or more") } else { format!("{low} to {high}") };
        match &value {
            Value::Number(number) => match number.as_u64() {
                Some(number) if range.contains(&number) => Ok(Some(number)),
                Some(_) | None => {
                    invalid(field, format!("must be a whole number, {bounds}, and is {number}"))
                }
            },
            Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                invalid(field, format!("must be a whole number, {bounds}, and is {}", kind(&value)))
            }
        }
    }
}

const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
