//! The committed JSON Schema is the one that the types give.

use super::{agent, agents, config, rules, trace};
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};
use std::path::Path;

fn add<T: JsonSchema>(generator: &mut SchemaGenerator, forms: &mut Vec<Value>, by: &str) {
    let mut form = generator.subschema_for::<T>().to_value();
    if let Value::Object(form) = &mut form {
        form.insert("description".to_owned(), json!(by));
    }
    forms.push(form);
}

/// The schema as it should stand in `wire.schema.json`.
fn generate() -> String {
    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut forms = Vec::new();
    let g = &mut generator;
    add::<super::Classified<'_>>(g, &mut forms, "harness classify --json, one a line with --batch");
    add::<super::BadLine>(g, &mut forms, "harness classify --batch, for a line that is not a command");
    add::<super::Decided<'_>>(g, &mut forms, "harness check --json");
    add::<super::Replied<'_>>(
        g,
        &mut forms,
        "harness run --json, harness exec --json, harness approvals resume --json, and what the tools of harness mcp \
         answer beside the text",
    );
    add::<super::Health<'_>>(g, &mut forms, "harness doctor --json");
    add::<agents::AgentsHealth<'_>>(g, &mut forms, "harness doctor --agents --json");
    add::<agent::AgentRun<'_>>(g, &mut forms, "harness agent --json");
    add::<config::ConfigShown>(g, &mut forms, "harness config show --json");
    add::<config::PolicyShown>(g, &mut forms, "harness policy show --json");
    add::<config::PolicyChecked>(g, &mut forms, "harness policy check --json");
    add::<config::PolicyLinted>(g, &mut forms, "harness policy lint --json");
    add::<rules::Approvals<'_>>(g, &mut forms, "harness approvals list --json");
    add::<rules::Approval<'_>>(
        g,
        &mut forms,
        "harness approvals show --json, approve --json, and deny --json, one a line",
    );
    add::<rules::Rules<'_>>(g, &mut forms, "harness rules list --json");
    add::<rules::ImportReport<'_>>(g, &mut forms, "harness import --report --json");
    add::<rules::Learned<'_>>(g, &mut forms, "harness learn --json");
    add::<trace::Log<'_>>(g, &mut forms, "harness log --json");
    add::<trace::LogLine<'_>>(g, &mut forms, "harness log tail --json, one a line");
    add::<trace::StepDetail>(g, &mut forms, "harness log show --json");
    add::<trace::Exported<'_>>(g, &mut forms, "harness log export, one a line");
    add::<trace::WireVerified<'_>>(g, &mut forms, "harness log verify --json");
    add::<trace::WirePruned>(g, &mut forms, "harness log prune --json");
    let mut definitions = Value::Object(generator.take_definitions(true));
    tidy(&mut definitions);
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What harness prints as JSON",
        "description": "Each form says which subcommand prints it. A breaking change raises schema_version.",
        "anyOf": forms,
        "$defs": definitions,
    });
    let mut text = serde_json::to_string_pretty(&schema).unwrap();
    text.push('\n');
    text
}

/// The version is a certain one, and of what is said to programmers the first paragraph is enough.
fn tidy(value: &mut Value) {
    match value {
        Value::Object(map) => {
            if let Some(Value::Object(properties)) = map.get_mut("properties")
                && let Some(version) = properties.get_mut("schema_version")
            {
                *version = json!({ "const": super::SCHEMA_VERSION });
            }
            describe(map);
            map.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn describe(map: &mut Map<String, Value>) {
    if let Some(Value::String(text)) = map.get_mut("description") {
        let first = text.split("\n\n").next().unwrap_or_default().replace('\n', " ");
        *text = first.replace("[`SCHEMA_VERSION`]", "The version of the form");
    }
}

#[test]
fn the_committed_schema_is_the_one_of_the_types() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("wire.schema.json");
    let generated = generate();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &generated).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == generated,
        "wire.schema.json is stale; run `UPDATE=1 cargo test -p cmdgate-harness --lib wire::schema` and commit it"
    );
}
