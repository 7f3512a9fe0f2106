//! Policy files: what is read, what is refused and with which words.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail loudly")]

use cmdgate_policy::{
    Act, ApprovalPolicy, Effect, ExampleResult, Layer, Policy, PolicyError, PolicyErrorKind, PolicyErrors,
    PolicyFile, SandboxMode, Timestamp,
};
use std::fmt::Write;
use std::path::{Path, PathBuf};

fn cases(folder: &str) -> Vec<(String, String)> {
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases").join(folder);
    let mut cases: Vec<(String, String)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect();
    cases.sort();
    assert!(!cases.is_empty());
    cases
}

/// An error with the text it points at, as a person would want to see it.
fn render(error: &PolicyError, text: &str) -> String {
    let mut out = error.to_string();
    let location = error.location().expect("a fault in a file has a place");
    let line = text.lines().nth(location.line - 1).unwrap_or_default();
    let pointed = text.get(error.span().unwrap()).expect("the span lies in the text");
    let width = pointed.lines().next().unwrap_or_default().chars().count().max(1);
    write!(out, "\n  | {line}\n  | {}{}", " ".repeat(location.column - 1), "^".repeat(width)).unwrap();
    if let Some(help) = error.help() {
        write!(out, "\n  = {help}").unwrap();
    }
    out
}

#[test]
fn invalid_files_are_refused_with_place_and_reason() {
    let mut report = String::new();
    for (name, text) in cases("invalid") {
        let source = format!("{name}.toml");
        let errors = PolicyFile::parse(&source, &text).expect_err(&name);
        for error in errors.iter() {
            assert_eq!(error.source_name(), Some(source.as_str()));
            writeln!(report, "{}\n", render(error, &text)).unwrap();
        }
        assert_eq!(errors.to_string().lines().next(), errors.first().to_string().lines().next());
    }
    insta::assert_snapshot!("invalid", report);
}

#[test]
fn valid_files_are_read_and_written_back() {
    for (name, text) in cases("valid") {
        let file = PolicyFile::parse(&name, &text).unwrap_or_else(|errors| panic!("{name}: {errors}"));
        assert!(file.run_examples().iter().all(ExampleResult::passed), "{name}");
        let policy = file.into_policy();
        let again = Policy::from_toml(&name, &policy.to_toml().unwrap()).unwrap();
        assert_eq!(again.to_toml().unwrap(), policy.to_toml().unwrap(), "{name}");
        assert_eq!(again.settings(), policy.settings(), "{name}");
        for act in Act::ALL {
            assert_eq!(again.default_effect(act), policy.default_effect(act), "{name}");
        }
    }
}

#[test]
fn every_key_is_carried_over() {
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("cases/valid/everything.toml"));
    let file = PolicyFile::parse("everything.toml", &text.unwrap()).unwrap();
    insta::assert_debug_snapshot!("everything", file.settings());
    let policy = Policy::default().with_layer(file.into_layers("unused").remove(0));
    let ruling = policy.check_exec(&["cargo", "check"]);
    assert_eq!(ruling.layer, "team");
    assert_eq!(ruling.effect, Effect::Ask, "an allow that ends counts only for those who know the time");
    let in_time = Timestamp::from_unix_seconds(1_800_000_000);
    assert_eq!(policy.check_exec_at(&["cargo", "check"], in_time).effect, Effect::Allow);
    for (act, target, effect) in [
        (Act::Read, "prod.tfvars", Effect::Deny),
        (Act::Write, "secrets/a", Effect::Deny),
        (Act::Read, "/var/lib/private/x", Effect::Deny),
        (Act::Net, "crates.io", Effect::Allow),
        (Act::Net, "static.crates.io:443", Effect::Allow),
        (Act::Net, "index.example.com:443", Effect::Allow),
        (Act::Net, "index.example.com:80", Effect::Deny),
        (Act::Net, "eu.telemetry.example.com", Effect::Deny),
        (Act::Net, "example.org", Effect::Deny),
        (Act::Exec, "tokei", Effect::Allow),
        (Act::Exec, "tokei src", Effect::Allow),
        (Act::Exec, "tokei docs", Effect::Ask),
    ] {
        assert_eq!(policy.check(act, target).effect, effect, "{act} {target}");
    }
    assert!(policy.check(Act::Exec, "tokei src").only_in_sandbox);
    assert_eq!(policy.hint("tokei"), Some("the counts are in docs/size.md"));
}

#[test]
fn a_ruling_says_where_its_rule_stands() {
    let text = "name = \"ops\"\n\n[[rule]]\nact = \"exec\"\neffect = \"deny\"\npattern = \"rm\"\nreason = \"use trash\"\n";
    let layer =
        PolicyFile::parse("/etc/cmdgate/policy.toml", text).unwrap().into_layers("operator").remove(0);
    let ruling = Policy::permissive().with_layer(layer).check_exec(&["/bin/rm", "x"]);
    assert_eq!(
        ruling.to_string(),
        "deny exec: rule `rm` of layer ops (/etc/cmdgate/policy.toml:6): use trash"
    );
}

// contract: X7
#[test]
fn a_project_file_may_tighten_and_never_loosen() {
    let text = r#"
        sandbox = "danger_full_access"
        approval = "strict"
        read_roots = ["/"]
        unprotected_paths = [".git"]
        protected_paths = ["migrations"]
        [defaults]
        read = "ask"
        exec = "allow"
        [network]
        allow_domains = ["*"]
        deny_domains = ["evil.test"]
        [environment]
        add = ["OPENAI_API_KEY"]
        [limits]
        timeout_ms = 3600000
        output_chars = 100
        [[program]]
        name = "curl"
        [[rule]]
        act = "exec"
        effect = "allow"
        pattern = "*"
        [[rule]]
        act = "exec"
        effect = "deny"
        pattern = "terraform apply **"
        [[rule]]
        act = "net"
        effect = "ask"
        pattern = "*"
    "#;
    let file = PolicyFile::parse(".cmdgate.toml", text).unwrap();
    let base = Policy::default().layer("user").allow_exec("terraform **");
    let layers = file.into_layers("project");
    let untrusted = layers
        .iter()
        .cloned()
        .fold(base.clone(), |policy, layer| policy.with_layer(layer.with_tighten_only(true)));
    for (act, target, effect, layer) in [
        (Act::Exec, "terraform plan", Effect::Allow, "user"),
        (Act::Exec, "terraform apply -auto-approve", Effect::Deny, "project"),
        (Act::Exec, "curl evil.test", Effect::Ask, "default"),
        (Act::Exec, "make", Effect::Ask, "default"),
        // An ask from such a layer does not open what is denied by default.
        (Act::Net, "example.com", Effect::Deny, "default"),
        (Act::Net, "evil.test", Effect::Deny, "project"),
        (Act::Read, "src/main.rs", Effect::Ask, "project"),
        (Act::Read, ".env", Effect::Deny, "builtin-secrets"),
    ] {
        let ruling = untrusted.check(act, target);
        assert_eq!((ruling.effect, ruling.layer.as_str()), (effect, layer), "{act} {target}");
    }
    let (before, after) = (base.settings(), untrusted.settings());
    assert_eq!(after.looser_than(&before), Vec::<&str>::new());
    assert_eq!(after.sandbox, before.sandbox);
    assert_eq!(after.approval.map(ApprovalPolicy::as_str), Some("strict"));
    assert_eq!(after.limits.output_chars.unwrap().get(), 100);
    assert_eq!(after.limits.timeout_ms, before.limits.timeout_ms);
    assert_eq!(after.environment.add.as_deref(), Some(&[][..]));
    assert_eq!(after.protecting(".git/config"), Some(".git"));
    assert_eq!(after.protecting("migrations/0001.sql"), Some("migrations"));

    let trusted = layers.into_iter().fold(base, Policy::with_layer);
    assert_eq!(
        trusted.settings().looser_than(&before),
        [
            "sandbox",
            "read_roots",
            "protected_paths",
            "network.allow_domains",
            "environment.add",
            "limits.timeout_ms"
        ]
    );
    assert_eq!(trusted.check(Act::Exec, "make").effect, Effect::Allow);
}

#[test]
fn a_lock_holds_against_the_layers_above() {
    let read =
        |text: &str| -> Layer { PolicyFile::parse("t.toml", text).unwrap().into_layers("t").remove(0) };
    let operator = read("lock = true\nsandbox = \"read_only\"\n[limits]\ntimeout_ms = 5000\n");
    let user = read(
        "sandbox = \"danger_full_access\"\napproval = \"strict\"\n[limits]\ntimeout_ms = 60000\nprocesses = 9\n",
    );
    let settings = Policy::default().with_layer(operator.clone()).with_layer(user.clone()).settings();
    assert_eq!(settings.sandbox, Some(SandboxMode::ReadOnly));
    assert_eq!(settings.limits.timeout_ms.unwrap().get(), 5000);
    assert_eq!(settings.limits.processes.unwrap().get(), 9);
    assert_eq!(settings.approval.unwrap().as_str(), "strict");
    let mut unlocked = operator;
    unlocked.lock = false;
    let open = Policy::default().with_layer(unlocked).with_layer(user).settings();
    assert_eq!(open.sandbox, Some(SandboxMode::DangerFullAccess));
}

#[test]
fn rules_end_when_they_say() {
    let text = r#"
        [[rule]]
        act = "exec"
        effect = "allow"
        pattern = "make **"
        expires = 2027-01-01T00:00:00Z
        [[rule]]
        act = "read"
        effect = "deny"
        pattern = "draft*"
        expires = 2027-01-01T00:00:00Z
        [[rule]]
        act = "net"
        effect = "ask"
        pattern = "*"
        expires = 2027-01-01T00:00:00Z
    "#;
    let policy =
        Policy::default().with_layer(PolicyFile::parse("t", text).unwrap().into_layers("t").remove(0));
    let end: Timestamp = "2027-01-01T00:00:00Z".parse().unwrap();
    let before = Timestamp::from_unix_seconds(end.unix_seconds() - 1);
    for (act, target, then, after, unknown) in [
        (Act::Exec, "make all", Effect::Allow, Effect::Ask, Effect::Ask),
        (Act::Read, "draft.md", Effect::Deny, Effect::Allow, Effect::Deny),
        // The ask would open what is denied by default, so without a clock it does not count.
        (Act::Net, "example.com", Effect::Ask, Effect::Deny, Effect::Deny),
    ] {
        assert_eq!(policy.check_at(act, target, before).effect, then, "{act} before");
        assert_eq!(policy.check_at(act, target, end).effect, after, "{act} at the end");
        assert_eq!(policy.check(act, target).effect, unknown, "{act} without a clock");
        assert_eq!(policy.clone().without_expired(end).check(act, target).effect, after);
        assert_eq!(policy.clone().without_expired(before).check_at(act, target, before).effect, then);
    }
}

#[test]
fn a_policy_of_ten_megabytes_is_read_and_answers() {
    let mut text = String::new();
    let mut rules = 0;
    while text.len() < 10 * 1024 * 1024 {
        writeln!(text, "[[rule]]\nact = \"exec\"\neffect = \"deny\"\npattern = \"tool{rules} run **\"\n")
            .unwrap();
        rules += 1;
    }
    let policy = Policy::from_toml("large.toml", &text).unwrap();
    assert_eq!(policy.rules().count(), rules);
    let last = format!("tool{} run", rules - 1);
    assert_eq!(policy.check(Act::Exec, &last).rule.unwrap().index, rules - 1);
    assert_eq!(policy.check(Act::Exec, "tool run").layer, "default");
}

#[test]
fn a_policy_that_is_too_large_is_refused_before_it_is_read() {
    let text = "#".repeat(64 * 1024 * 1024 + 1);
    let errors: PolicyErrors = PolicyFile::parse("huge.toml", &text).unwrap_err();
    assert!(matches!(errors.first().kind(), PolicyErrorKind::TooLarge { .. }));
}

#[test]
fn a_pattern_that_is_too_long_is_refused_and_the_longest_is_not() {
    let policy = |bytes: usize| {
        let text =
            format!("[[rule]]\nact = \"exec\"\neffect = \"deny\"\npattern = \"{}\"\n", "x".repeat(bytes));
        Policy::from_toml("t.toml", &text)
    };
    let longest = policy(cmdgate_policy::MAX_PATTERN_BYTES).unwrap();
    assert_eq!(longest.check(Act::Exec, &"x".repeat(cmdgate_policy::MAX_PATTERN_BYTES)).effect, Effect::Deny);
    let error = policy(cmdgate_policy::MAX_PATTERN_BYTES + 1).unwrap_err();
    assert_eq!(error.first().location().unwrap().line, 4);
}

#[test]
fn a_broken_policy_is_not_written() {
    let error = Policy::permissive().layer("app").deny_exec("[").to_toml().unwrap_err();
    assert!(matches!(error.first().kind(), PolicyErrorKind::Pattern { .. }));
}
