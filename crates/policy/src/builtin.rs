//! The built-in policy and the hardened profile.
//!
//! `default.toml` and `hardened.toml` are their only home. A process that decides about one command would spend a good
//! part of its time on reading them, so the tests write what they say as Rust values, into `ready_made.rs`, and fail
//! when that is not what the files say.

use crate::pattern::Pattern;
use crate::policy::Policy;
use crate::profile;
use crate::settings::{ApprovalPolicy, Grammar, SandboxMode, Settings};
use std::sync::LazyLock;

/// The text of the built-in policy.
pub(crate) const TEXT: &str = include_str!("default.toml");

#[rustfmt::skip]
#[expect(clippy::unreadable_literal, reason = "numbers as the files have them")]
#[path = "ready_made.rs"]
mod ready_made;

static POLICY: LazyLock<Policy> = LazyLock::new(|| ready_made::default_file().into_policy());

static HARDENED: LazyLock<Policy> = LazyLock::new(|| profile::over_builtin(ready_made::hardened_file()));

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

pub(crate) fn hardened() -> Policy {
    HARDENED.clone()
}

pub(crate) fn settings() -> &'static Settings {
    &SETTINGS
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn patterns(texts: &[&str]) -> Vec<Pattern> {
    texts.iter().map(|text| Pattern::known_good(text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::act::Defaults;
    use crate::error::Location;
    use crate::file::PolicyFile;
    use crate::layer::Layer;
    use crate::program::Program;
    use crate::rule::Rule;
    use crate::settings::{Environment, Limits, Network, Trace};
    use std::fmt::{Debug, Write};
    use std::path::Path;

    #[test]
    fn the_built_in_policy_reads_and_its_examples_hold() {
        let file = PolicyFile::parse("default.toml", TEXT).unwrap();
        let results = file.run_examples();
        assert!(!results.is_empty() && results.iter().all(crate::ExampleResult::passed));
        let settings = Settings::builtin();
        assert!(settings.sandbox.is_some() && settings.approval.is_some() && settings.grammar.is_some());
        assert!(settings.limits.timeout_ms.is_some() && settings.limits.output_chars.is_some());
    }

    #[test]
    fn what_is_built_in_is_what_the_files_say() {
        let default = PolicyFile::parse("default.toml", TEXT).unwrap();
        let hardened = PolicyFile::parse("hardened.toml", crate::Profile::hardened_text()).unwrap();
        let wanted = rust(&[("default_file", &default), ("hardened_file", &hardened)]);
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/ready_made.rs");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, &wanted).unwrap();
            return;
        }
        let stale =
            "ready_made.rs is stale; run `UPDATE=1 cargo test -p cmdgate-policy --lib builtin` and commit it";
        assert!(std::fs::read_to_string(&path).unwrap() == wanted, "{stale}");
        assert!(ready_made::default_file() == default, "{stale}");
        assert!(ready_made::hardened_file() == hardened, "{stale}");
    }

    /// The source text of functions that give these files.
    fn rust(files: &[(&str, &PolicyFile)]) -> String {
        let mut out = String::from(
            "//! Made from `default.toml` and `hardened.toml`; do not edit.\n//!\n\
             //! `UPDATE=1 cargo test -p cmdgate-policy --lib builtin` writes it anew.\n\n\
             use super::{patterns, texts};\n\
             use crate::act::{Act, Defaults, Effect};\n\
             use crate::error::Location;\n\
             use crate::file::PolicyFile;\n\
             use crate::layer::Layer;\n\
             use crate::pattern::Pattern;\n\
             use crate::program::Program;\n\
             use crate::rule::Rule;\n\
             use crate::settings::{\n    \
             ApprovalPolicy, Environment, Grammar, Limits, Network, ProfileName, SandboxMode, Settings, Trace,\n};\n\
             use std::num::NonZeroU64;\n",
        );
        for (function, file) in files {
            let (name, own, more) = file.parts();
            let more: Vec<String> = more.iter().map(layer).collect();
            writeln!(
                out,
                "\npub(super) fn {function}() -> PolicyFile {{\n    PolicyFile::of_parts({name:?}, {}, vec![{}])\n}}",
                layer(own),
                more.join(", ")
            )
            .unwrap();
        }
        out
    }

    fn layer(layer: &Layer) -> String {
        let Layer { name, rules, programs, defaults, settings: own, origin, tighten_only, lock } = layer;
        let rules: Vec<String> = rules.iter().map(|row| format!("\n        {},", rule(row))).collect();
        let programs: Vec<String> =
            programs.iter().map(|row| format!("\n        {},", program(row))).collect();
        let Defaults { read, write, exec, net } = defaults;
        let effect = |effect: &Option<crate::act::Effect>| named("Effect", *effect);
        format!(
            "Layer {{\n    name: {name:?}.to_owned(),\n    rules: vec![{}],\n    programs: vec![{}],\n    \
             defaults: Defaults {{ read: {}, write: {}, exec: {}, net: {} }},\n    settings: {},\n    \
             origin: Some({:?}.into()),\n    tighten_only: {tighten_only},\n    lock: {lock},\n}}",
            rules.concat(),
            programs.concat(),
            effect(read),
            effect(write),
            effect(exec),
            effect(net),
            settings(own),
            origin.as_ref().unwrap(),
        )
    }

    fn rule(rule: &Rule) -> String {
        let Rule {
            act,
            effect,
            pattern,
            except,
            whole,
            words,
            reason,
            matches,
            not_matches,
            expires,
            location: place,
        } = rule;
        assert!(rule.problem().is_none() && expires.is_none(), "what is built in is sound and does not end");
        let except: Vec<&str> = except.iter().map(Pattern::as_str).collect();
        format!(
            "Rule {{ act: Act::{act:?}, effect: Effect::{effect:?}, pattern: Pattern::known_good({:?}), \
             except: patterns(&{except:?}), whole: {whole}, words: {words}, reason: {}, matches: texts(&{matches:?}), \
             not_matches: texts(&{not_matches:?}), expires: None, location: {} }}",
            pattern.as_str(),
            text(reason.as_ref()),
            location(place.as_ref()),
        )
    }

    fn program(program: &Program) -> String {
        let Program { name, purpose, only_in_sandbox, arguments, hint, location: place } = program;
        format!(
            "Program {{ name: {name:?}.to_owned(), purpose: {}, only_in_sandbox: {only_in_sandbox}, arguments: {}, \
             hint: {}, location: {} }}",
            text(purpose.as_ref()),
            list(arguments.as_ref()),
            text(hint.as_ref()),
            location(place.as_ref()),
        )
    }

    fn settings(settings: &Settings) -> String {
        let Settings {
            profile,
            sandbox,
            approval,
            grammar,
            stop_at_first_failure,
            hints,
            read_roots,
            write_roots,
            protected_paths,
            unprotected_paths,
            secrets,
            blocked_paths,
            network: Network { allow_domains, deny_domains },
            environment: Environment { add },
            limits: bounds,
            trace: Trace { redact, keep_days, max_bytes },
        } = settings;
        format!(
            "Settings {{\n        profile: {}, sandbox: {}, approval: {}, grammar: {},\n        \
             stop_at_first_failure: {stop_at_first_failure:?}, hints: {hints:?},\n        read_roots: {}, \
             write_roots: {},\n        protected_paths: texts(&{protected_paths:?}),\n        unprotected_paths: {}, \
             secrets: texts(&{secrets:?}), blocked_paths: texts(&{blocked_paths:?}),\n        \
             network: Network {{ allow_domains: {}, deny_domains: texts(&{deny_domains:?}) }},\n        \
             environment: Environment {{ add: {} }},\n        limits: {},\n        \
             trace: Trace {{ redact: texts(&{redact:?}), keep_days: {}, max_bytes: {} }},\n    }}",
            named("ProfileName", *profile),
            named("SandboxMode", *sandbox),
            named("ApprovalPolicy", *approval),
            named("Grammar", *grammar),
            list(read_roots.as_ref()),
            list(write_roots.as_ref()),
            list(unprotected_paths.as_ref()),
            list(allow_domains.as_ref()),
            list(add.as_ref()),
            limits(bounds),
            number(*keep_days),
            number(*max_bytes),
        )
    }

    fn limits(limits: &Limits) -> String {
        let members: Vec<String> = limits
            .each()
            .into_iter()
            .map(|(name, bound)| format!("{}: {}", name.trim_start_matches("limits."), number(bound)))
            .collect();
        format!("Limits {{ {} }}", members.join(", "))
    }

    fn number(number: Option<std::num::NonZeroU64>) -> String {
        number.map_or_else(|| "None".to_owned(), |number| format!("NonZeroU64::new({number})"))
    }

    fn named(kind: &str, value: Option<impl Debug>) -> String {
        value.map_or_else(|| "None".to_owned(), |value| format!("Some({kind}::{value:?})"))
    }

    fn text(text: Option<&String>) -> String {
        text.map_or_else(|| "None".to_owned(), |text| format!("Some({text:?}.to_owned())"))
    }

    fn list(list: Option<&Vec<String>>) -> String {
        list.map_or_else(|| "None".to_owned(), |list| format!("Some(texts(&{list:?}))"))
    }

    fn location(location: Option<&Location>) -> String {
        let Location { span, line, column } = location.unwrap();
        format!("Some(Location {{ span: {span:?}, line: {line}, column: {column} }})")
    }
}
