//! `harness policy` and `harness config`: look at the rules without deciding anything.

use super::decide::{DecideArgs, ProfileArg, config_failed};
use super::log::{print, print_json};
use super::out::say;
use crate::config::{self, ConfigError, Loaded, OriginState, UserDirs};
use crate::exit::Exit;
use crate::present::printable;
use crate::wire::SCHEMA_VERSION;
use crate::wire::config::{ConfigShown, PolicyChecked, PolicyLinted, PolicyShown, WireOrigin};
use clap::Subcommand;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use cmdgate_policy::{
    Act, Effect, Policy, PolicyErrorKind, PolicyErrors, PolicyFile, Severity, Timestamp, lint_at,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::SystemTime;

/// Test, check and show the policy
///
/// Exit status: 0 done or allow, 1 an example fails or the lint warns, 3 a file is wrong; `check`: 0, 10 ask, 20 deny.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  harness policy test .cmdgate.toml\n  harness policy lint\n  harness policy show\n  \
    harness policy check exec 'npm test'\n  harness policy schema > policy.schema.json\n  \
    harness policy profile hardened > mine.toml"
)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
enum PolicyCommand {
    /// Try the examples of rules: of these files, or of all effective ones
    Test {
        /// Policy files
        files: Vec<PathBuf>,
        #[command(flatten)]
        decide: DecideArgs,
    },
    /// Say which rules hardly do what was meant
    Lint {
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        decide: DecideArgs,
    },
    /// Show the effective layers, rules and settings
    Show {
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        decide: DecideArgs,
    },
    /// Print the JSON Schema of policy files
    Schema,
    /// Print the rows of a profile as a policy file, to be read, or changed and passed with --policy
    Profile {
        /// The profile
        #[arg(value_enum)]
        name: ProfileArg,
    },
    /// Ask the rules alone, without classifier and settings
    Check {
        /// What would be done
        #[arg(value_parser = act())]
        act: Act,
        /// A path, a command, or a host
        target: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        decide: DecideArgs,
    },
}

/// Show the effective configuration
///
/// From the weakest voice to the strongest: built in, `/etc/cmdgate/policy.toml`, `$XDG_CONFIG_HOME/cmdgate/policy.toml` with
/// what was remembered beside it, `.cmdgate.toml` of the project, `--policy` files, flags.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  harness config show\n  harness config show --origin --json")]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// The effective settings
    Show {
        /// Also where each setting comes from, the files that were looked for, and what became of each
        #[arg(long)]
        origin: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        decide: DecideArgs,
    },
}

/// The acts by their names, for completions too.
fn act() -> impl TypedValueParser<Value = Act> {
    PossibleValuesParser::new(Act::ALL.map(Act::as_str)).try_map(|name| name.parse::<Act>())
}

pub(crate) fn policy(args: &PolicyArgs) -> Exit {
    let done = match &args.command {
        PolicyCommand::Test { files, decide } => test(files, decide),
        PolicyCommand::Lint { json, decide } => lint(*json, decide),
        PolicyCommand::Show { json, decide } => show(*json, decide),
        PolicyCommand::Schema => print(cmdgate_policy::SCHEMA),
        PolicyCommand::Profile { name } => print(match name {
            ProfileArg::Default => cmdgate_policy::Profile::standard_text(),
            ProfileArg::Hardened => cmdgate_policy::Profile::hardened_text(),
        }),
        PolicyCommand::Check { act, target, json, decide } => check(*act, target, *json, decide),
    };
    done.unwrap_or_else(|exit| exit)
}

pub(crate) fn config(args: &ConfigArgs) -> Exit {
    let ConfigCommand::Show { origin, json, decide } = &args.command;
    config_show(*origin, *json, decide).unwrap_or_else(|exit| exit)
}

fn load(decide: &DecideArgs) -> Result<Loaded, Exit> {
    decide.load(&decide.root()?, None)
}

/// Reading a file tries its examples already; one that fails is an error with its place.
fn test(files: &[PathBuf], decide: &DecideArgs) -> Result<Exit, Exit> {
    let paths: Vec<PathBuf> = if files.is_empty() {
        let loaded = config::load(&decide.root()?, &UserDirs::from_environment(), &decide.overrides(None));
        let loaded = loaded.map_err(|error| {
            let exit = config_failed(&error);
            let examples = matches!(&error, ConfigError::Policy { errors, .. } if only_examples(errors));
            if examples { Exit::Unwell } else { exit }
        })?;
        let read = loaded.origins.into_iter().filter(|origin| origin.state != OriginState::Absent);
        read.map(|origin| origin.path).collect()
    } else {
        files.to_vec()
    };
    let (mut tried, mut failed, mut wrong) = (0, false, false);
    for path in &paths {
        let text = config::policy_text(path).map_err(|error| {
            super::fail(Exit::Policy, format_args!("cannot read {}: {error}", path.display()))
        })?;
        match PolicyFile::parse(&path.display().to_string(), &text) {
            Ok(file) => {
                let results = file.run_examples();
                tried += results.len();
                failed |= !results.iter().all(cmdgate_policy::ExampleResult::passed);
            }
            Err(errors) => {
                say!("{}", crate::diagnose::policy_errors(&text, &errors));
                failed = true;
                wrong |= !only_examples(&errors);
            }
        }
    }
    if wrong {
        return Err(Exit::Policy);
    }
    if failed {
        return Err(Exit::Unwell);
    }
    let counted = |number: usize, what: &str| {
        if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
    };
    let verb = if tried == 1 { "holds" } else { "hold" };
    print(&format!("{} {verb} in {}\n", counted(tried, "example"), counted(paths.len(), "file")))
}

/// Whether nothing is wrong but examples that do not hold.
fn only_examples(errors: &PolicyErrors) -> bool {
    errors.iter().all(|error| {
        matches!(
            error.kind(),
            PolicyErrorKind::ExampleNotMatched { .. } | PolicyErrorKind::ExampleMatched { .. }
        )
    })
}

fn lint(json: bool, decide: &DecideArgs) -> Result<Exit, Exit> {
    let loaded = load(decide)?;
    let lints = lint_at(&loaded.policy, Timestamp::from(SystemTime::now()));
    if json {
        let lints = lints.iter().map(|lint| json!(lint)).collect();
        print_json(&PolicyLinted::new(lints))?;
    } else if lints.is_empty() {
        print("nothing is doubtful\n")?;
    } else {
        let lines: Vec<String> = lints.iter().map(|lint| printable(&lint.to_string())).collect();
        print(&(lines.join("\n") + "\n"))?;
    }
    let doubtful = lints.iter().any(|lint| lint.severity >= Severity::Warning);
    Ok(if doubtful { Exit::Unwell } else { Exit::Success })
}

fn show(json: bool, decide: &DecideArgs) -> Result<Exit, Exit> {
    let loaded = load(decide)?;
    let mut text = String::new();
    let mut layers = Vec::new();
    for layer in loaded.policy.layers() {
        let from = layer.origin.as_ref().map_or_else(String::new, |path| format!(" ({})", path.display()));
        let bound = if layer.tighten_only { ", may only tighten" } else { "" };
        let _ = writeln!(text, "layer {}{}{bound}", printable(&layer.name), printable(&from));
        let mut rules = Vec::new();
        for rule in layer.all_rules() {
            let why = rule.reason.as_deref().map_or_else(String::new, |reason| format!("  # {reason}"));
            let pattern = rule.pattern.as_str();
            let _ = writeln!(
                text,
                "  {:5} {:5} {}{}",
                rule.effect.as_str(),
                rule.act.as_str(),
                printable(pattern),
                printable(&why)
            );
            rules.push(json!({
                "act": rule.act,
                "effect": rule.effect,
                "pattern": pattern,
                "reason": rule.reason,
                "expires": rule.expires,
            }));
        }
        layers.push(json!({
            "name": layer.name,
            "file": layer.origin,
            "tighten_only": layer.tighten_only,
            "lock": layer.lock,
            "rules": rules,
        }));
    }
    let mut defaults = serde_json::Map::new();
    for act in Act::ALL {
        let (effect, layer) = loaded.policy.default_effect(act);
        let _ = writeln!(text, "default {act} {effect} ({layer})");
        defaults.insert(act.as_str().to_owned(), json!({ "effect": effect, "layer": layer }));
    }
    if json {
        return print_json(&PolicyShown {
            schema_version: SCHEMA_VERSION,
            layers,
            defaults,
            settings: json!(loaded.settings),
        });
    }
    print(&text)
}

fn check(act: Act, target: &str, json: bool, decide: &DecideArgs) -> Result<Exit, Exit> {
    let loaded = load(decide)?;
    let ruling = loaded.policy.check_at(act, target, SystemTime::now());
    if json {
        print_json(&PolicyChecked::new(json!(ruling)))?;
    } else {
        print(&format!("{}\n", printable(&ruling.to_string())))?;
    }
    Ok(match ruling.effect {
        Effect::Allow => Exit::Success,
        Effect::Ask => Exit::Ask,
        Effect::Deny => Exit::Deny,
    })
}

fn config_show(origin: bool, json: bool, decide: &DecideArgs) -> Result<Exit, Exit> {
    let loaded = load(decide)?;
    let state = |state: OriginState| match state {
        OriginState::Absent => "absent",
        OriginState::Read => "read",
        OriginState::OnlyTightens => "only_tightens",
    };
    let settings =
        serde_json::to_value(&loaded.settings).map_err(|error| super::fail(Exit::Failed, error))?;
    let set_by = origin.then(|| set_by(&loaded.policy)).transpose()?;
    if json {
        let origins = loaded.origins.iter().map(|found| WireOrigin {
            layer: found.layer,
            path: found.path.to_string_lossy().into_owned(),
            state: state(found.state),
        });
        return print_json(&ConfigShown {
            schema_version: SCHEMA_VERSION,
            settings,
            origins: origin.then(|| origins.collect()),
            set_by,
        });
    }
    let mut text = String::new();
    for (name, value) in single(&settings) {
        if !value.is_null() {
            let by = set_by.as_ref().and_then(|set_by| set_by.get(&name));
            let by = by.map_or_else(String::new, |by| format!("  # {}", by.join(", ")));
            let _ = writeln!(text, "{name} = {}{}", printable(&toml_of(value)), printable(&by));
        }
    }
    if origin {
        for found in &loaded.origins {
            let _ = writeln!(
                text,
                "# {}: {} ({})",
                found.layer,
                printable(&found.path.to_string_lossy()),
                state(found.state)
            );
        }
    }
    print(&text)
}

/// A setting as TOML writes it, on one line.
fn toml_of(value: &Value) -> String {
    toml::Value::try_from(value).map_or_else(|_| value.to_string(), |value| value.to_string())
}

/// Each single setting under its whole name: `limits.timeout_ms`.
fn single(settings: &Value) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    for (name, value) in settings.as_object().into_iter().flatten() {
        match value {
            Value::Object(fields) => {
                found.extend(fields.iter().map(|(key, value)| (format!("{name}.{key}"), value)));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                found.push((name.clone(), value));
            }
        }
    }
    found
}

/// For each single setting the layers that it comes from: one, or all that a list is joined from.
fn set_by(policy: &Policy) -> Result<BTreeMap<String, Vec<String>>, Exit> {
    let settings = |policy: &Policy| {
        serde_json::to_value(policy.settings()).map_err(|error| super::fail(Exit::Failed, error))
    };
    let mut growing = Policy::with_defaults(policy.base_defaults());
    let mut known = settings(&growing)?;
    let mut set_by: BTreeMap<String, Vec<String>> =
        single(&known).into_iter().map(|(name, _)| (name, vec!["builtin".to_owned()])).collect();
    for layer in policy.layers() {
        growing.push_layer(layer.clone());
        let now = settings(&growing)?;
        let before: BTreeMap<String, &Value> = single(&known).into_iter().collect();
        for (name, value) in single(&now) {
            let before = before.get(&name).copied().unwrap_or(&Value::Null);
            if before == value {
                continue;
            }
            let by = set_by.entry(name).or_default();
            if !is_longer(before, value) {
                by.clear();
            }
            if !by.contains(&layer.name) {
                by.push(layer.name.clone());
            }
        }
        known = now;
    }
    Ok(set_by)
}

/// Whether a list holds what it held before, and more.
fn is_longer(before: &Value, now: &Value) -> bool {
    match (before.as_array(), now.as_array()) {
        (Some(before), Some(now)) => !before.is_empty() && before.iter().all(|item| now.contains(item)),
        (_, _) => false,
    }
}
