//! The committed JSON Schema is the one that the types give.

use crate::file::RawFile;
use serde_json::{Map, Value};
use std::path::Path;

/// The schema as it should stand in `policy.schema.json`.
fn generate() -> String {
    let mut schema = schemars::schema_for!(RawFile).to_value();
    let title = "A policy file of cmdgate";
    if let Value::Object(root) = &mut schema {
        root.insert("title".to_owned(), Value::from(title));
    }
    tidy(&mut schema);
    let mut text = serde_json::to_string_pretty(&schema).unwrap();
    text.push('\n');
    text
}

/// What is left out of a file is left out, not `null`: TOML has none. Neither has it 64-bit unsigned numbers.
fn tidy(value: &mut Value) {
    match value {
        Value::Object(map) => {
            drop_null(map);
            // Of what is said to programmers, an editor shows the first paragraph.
            if let Some(Value::String(text)) = map.get_mut("description") {
                let first = text.split("\n\n").next().unwrap_or_default().replace('\n', " ");
                *text = first.replace(" Ordered by strictness.", "");
            }
            if map.get("default").is_some_and(Value::is_null) {
                map.remove("default");
            }
            if map.get("format").and_then(Value::as_str) == Some("uint64") {
                map.remove("format");
            }
            map.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn drop_null(map: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = map.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            map.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(choices)) = map.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type").and_then(Value::as_str) != Some("null"));
        if let [Value::Object(only)] = choices.as_slice() {
            let only = only.clone();
            map.remove("anyOf");
            map.extend(only);
        }
    }
}

#[test]
fn the_committed_schema_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("policy.schema.json");
    let wanted = generate();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap();
    assert!(
        found == wanted,
        "policy.schema.json is stale; run `UPDATE=1 cargo test -p cmdgate-policy --lib schema` and commit it"
    );
}

#[test]
fn every_valid_case_fits_the_schema_and_the_keys_are_the_same() {
    let schema: Value = serde_json::from_str(&generate()).unwrap();
    let check = |name: &str, text: &str| {
        let value: toml::Table = toml::from_str(text).unwrap();
        let faults = validate(&schema, &schema, &json(&toml::Value::Table(value)));
        assert!(faults.is_empty(), "{name}: {faults:?}");
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases/valid");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        check(&path.display().to_string(), &std::fs::read_to_string(&path).unwrap());
    }
    check("default.toml", include_str!("default.toml"));
    check("hardened.toml", include_str!("hardened.toml"));
    for (text, part) in [
        (r#"sandbocks = "read_only""#, "sandbocks"),
        (r#"sandbox = "readonly""#, "sandbox"),
        ("[[rule]]\nact = \"exec\"\neffect = \"deny\"", "pattern"),
        ("[limits]\ntimeout_ms = 0", "timeout_ms"),
        ("[[rule]]\nact = \"exec\"\neffect = \"deny\"\npattern = 7", "pattern"),
    ] {
        let value: toml::Table = toml::from_str(text).unwrap();
        let faults = validate(&schema, &schema, &json(&toml::Value::Table(value)));
        assert!(faults.iter().any(|fault| fault.contains(part)), "{text}: {faults:?}");
    }
}

/// TOML as editors hand it to a schema: moments are text.
fn json(value: &toml::Value) -> Value {
    match value {
        toml::Value::String(text) => Value::from(text.clone()),
        toml::Value::Integer(number) => Value::from(*number),
        toml::Value::Float(number) => Value::from(*number),
        toml::Value::Boolean(flag) => Value::from(*flag),
        toml::Value::Datetime(moment) => Value::from(moment.to_string()),
        toml::Value::Array(items) => items.iter().map(json).collect(),
        toml::Value::Table(table) => table.iter().map(|(key, value)| (key.clone(), json(value))).collect(),
    }
}

/// As much of JSON Schema as the schema above uses; what it does not know is a fault.
fn validate(root: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    for (keyword, wanted) in schema.as_object().into_iter().flatten() {
        match keyword.as_str() {
            "$ref" => {
                let pointer = wanted.as_str().unwrap().trim_start_matches('#');
                faults.extend(validate(root, root.pointer(pointer).unwrap(), value));
            }
            "type" => {
                let fits = match wanted.as_str().unwrap() {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "integer" => value.is_i64(),
                    "boolean" => value.is_boolean(),
                    other => panic!("type {other}"),
                };
                if !fits {
                    faults.push(format!("{value} is not of type {wanted}"));
                }
            }
            "properties" => {
                for (key, inner) in value.as_object().into_iter().flatten() {
                    match wanted.get(key) {
                        Some(schema) => {
                            let inner = validate(root, schema, inner);
                            faults.extend(inner.into_iter().map(|fault| format!("{key}: {fault}")));
                        }
                        None => faults.push(format!("{key} is unknown")),
                    }
                }
            }
            "required" => {
                for key in wanted.as_array().unwrap() {
                    if value.get(key.as_str().unwrap()).is_none() {
                        faults.push(format!("{key} is missing"));
                    }
                }
            }
            "items" => {
                for item in value.as_array().into_iter().flatten() {
                    faults.extend(validate(root, wanted, item));
                }
            }
            "enum" => {
                if !wanted.as_array().unwrap().contains(value) {
                    faults.push(format!("{value} is none of {wanted}"));
                }
            }
            "const" => {
                if wanted != value {
                    faults.push(format!("{value} is not {wanted}"));
                }
            }
            "oneOf" | "anyOf" => {
                if !wanted.as_array().unwrap().iter().any(|choice| validate(root, choice, value).is_empty()) {
                    faults.push(format!("{value} fits none of the choices"));
                }
            }
            "minimum" => {
                if value.as_i64().unwrap_or_default() < wanted.as_i64().unwrap() {
                    faults.push(format!("{value} is less than {wanted}"));
                }
            }
            "additionalProperties" => assert_eq!(wanted, &Value::Bool(false)),
            "$schema" | "$defs" | "title" | "description" | "default" | "format" => {}
            other => panic!("the schema uses `{other}`, which this test does not know"),
        }
    }
    faults
}
