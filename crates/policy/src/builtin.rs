//! The built-in policy, read once from `default.toml`.

use crate::file::PolicyFile;
use crate::policy::Policy;
use crate::settings::{ApprovalPolicy, Grammar, SandboxMode, Settings};
use std::sync::LazyLock;

/// The text of the built-in policy.
pub(crate) const TEXT: &str = include_str!("default.toml");

static POLICY: LazyLock<Policy> = LazyLock::new(|| {
    // A test reads this very text, so the second arm is not reached; if it were, nothing would be allowed.
    let file = PolicyFile::parse_built_in("default.toml", TEXT);
    file.map_or_else(|_| Policy::deny_all(), PolicyFile::into_policy)
});

static SETTINGS: LazyLock<Settings> = LazyLock::new(|| {
    let strictest = Settings {
        sandbox: Some(SandboxMode::ReadOnly),
        approval: Some(ApprovalPolicy::Strict),
        grammar: Some(Grammar::Single),
        ..Settings::default()
    };
    POLICY.layers().first().map_or(strictest, |layer| layer.settings.clone())
});

pub(crate) fn policy() -> Policy {
    POLICY.clone()
}

pub(crate) fn settings() -> &'static Settings {
    &SETTINGS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_policy_reads_and_its_examples_hold() {
        let file = crate::PolicyFile::parse("default.toml", TEXT).unwrap();
        let results = file.run_examples();
        assert!(!results.is_empty() && results.iter().all(crate::ExampleResult::passed));
        let settings = Settings::builtin();
        assert!(settings.sandbox.is_some() && settings.approval.is_some() && settings.grammar.is_some());
        assert!(settings.limits.timeout_ms.is_some() && settings.limits.output_chars.is_some());
    }
}
