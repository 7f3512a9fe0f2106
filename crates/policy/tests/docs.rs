//! The examples in the documentation are policies.

use cmdgate_policy::{LintCode, Policy, PolicyFile, Settings, lint};

#[test]
fn every_example_in_the_guide_is_read_and_clean() {
    let guide = include_str!("../../../docs/policy.md");
    let examples: Vec<&str> =
        guide.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(examples.len() >= 6);
    for example in examples {
        let file = PolicyFile::parse("docs/policy.md", example)
            .unwrap_or_else(|errors| panic!("{errors}\n{example}"));
        assert!(file.run_examples().iter().all(cmdgate_policy::ExampleResult::passed));
        let policy = file.into_layers("example").into_iter().fold(Policy::default(), Policy::with_layer);
        assert_eq!(lint(&policy), [], "{example}");
    }
}

#[test]
fn every_lint_and_every_key_stands_in_the_guide() {
    let guide = include_str!("../../../docs/policy.md");
    for code in LintCode::ALL {
        assert!(guide.contains(&format!("`{code}`")), "{code}");
    }
    let schema: serde_json::Value = serde_json::from_str(cmdgate_policy::SCHEMA).unwrap();
    let tables = schema["$defs"].as_object().unwrap().values().chain([&schema]);
    for key in
        tables.filter_map(|table| table["properties"].as_object()).flat_map(|properties| properties.keys())
    {
        assert!(guide.contains(key.as_str()), "{key}");
    }
}

#[test]
fn what_the_guide_calls_built_in_is() {
    let guide = include_str!("../../../docs/policy.md");
    let said = guide.split("is built in:").nth(1).unwrap().split("the others").next().unwrap();
    let builtin = Settings::builtin();
    for wanted in [
        format!("`sandbox = \"{}\"`", builtin.sandbox.unwrap()),
        format!("`approval = \"{}\"`", builtin.approval.unwrap()),
        format!("`grammar = \"{}\"`", builtin.grammar.unwrap()),
    ] {
        assert!(said.contains(&wanted), "{wanted}");
    }
    let limits = serde_json::to_value(builtin.limits).unwrap();
    let limits = limits.as_object().unwrap();
    assert_eq!(limits.len(), 5, "{limits:?}");
    for (name, bound) in limits {
        assert!(said.contains(&format!("`{name} = {bound}`")), "{name} = {bound}");
    }
}
