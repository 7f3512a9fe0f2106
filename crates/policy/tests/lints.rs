//! What `lint` finds, and what it leaves alone.

use cmdgate_policy::{
    Act, Effect, Layer, Lint, LintCode, Pattern, Policy, PolicyFile, Profile, Rule, Severity, lint, lint_at,
};
use std::fmt::Write;

fn codes(policy: &Policy) -> Vec<LintCode> {
    lint(policy).into_iter().map(|lint| lint.code).collect()
}

#[test]
fn what_is_built_in_is_clean() {
    assert_eq!(lint(&Policy::default()), Vec::<Lint>::new());
    assert_eq!(lint(&Policy::permissive()), Vec::<Lint>::new());
    assert_eq!(lint(Profile::hardened().policy()), Vec::<Lint>::new());
}

#[test]
fn every_doubtful_rule_is_named_with_its_place() {
    let text = r#"
[[rule]]
act = "exec"
effect = "allow"
pattern = "cargo test*"

[[rule]]
act = "exec"
effect = "allow"
pattern = "bash **"

[[rule]]
act = "exec"
effect = "allow"
pattern = "sudo"

[[rule]]
act = "exec"
effect = "allow"
pattern = "*"

[[rule]]
act = "net"
effect = "allow"
pattern = "*"

[[rule]]
act = "exec"
effect = "deny"
pattern = "cd * && rm *"

[[rule]]
act = "exec"
effect = "deny"
pattern = "git commit -m \"*\""

[[rule]]
act = "exec"
effect = "deny"
pattern = "FORCE=1 make"

[[rule]]
act = "exec"
effect = "deny"
pattern = "rm  -rf"

[[rule]]
act = "read"
effect = "deny"
pattern = "~/.ssh/*"

[[rule]]
act = "read"
effect = "deny"
pattern = "src/../private/*"

[[rule]]
act = "net"
effect = "deny"
pattern = "evil.test/path"

[[rule]]
act = "read"
effect = "deny"
pattern = "notes*"
except = ["*"]

[[rule]]
act = "read"
effect = "allow"
pattern = "config/.env"

[[rule]]
act = "write"
effect = "ask"
pattern = "docs/*"

[[rule]]
act = "write"
effect = "allow"
pattern = "docs/guide/*"

[[rule]]
act = "exec"
effect = "deny"
pattern = "npm"

[[rule]]
act = "exec"
effect = "allow"
pattern = "npm test **"

[[rule]]
act = "exec"
effect = "deny"
pattern = "npm"

[[rule]]
act = "exec"
effect = "allow"
pattern = "make old **"
expires = 2001-01-01T00:00:00Z
"#;
    let layer = PolicyFile::parse("team.toml", text).unwrap().into_layers("team").remove(0);
    let policy = Policy::default().with_layer(layer.clone());
    let now = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_800_000_001);
    let mut report = String::new();
    for lint in lint_at(&policy, now) {
        assert_eq!(lint.severity, lint.code.severity());
        writeln!(report, "{lint}").unwrap();
    }
    insta::assert_snapshot!("doubtful", report);

    let untrusted = Policy::default().with_layer(layer.with_tighten_only(true));
    let ignored = codes(&untrusted).into_iter().filter(|code| *code == LintCode::IgnoredAllow).count();
    assert_eq!(ignored, 9);
}

#[test]
fn a_broken_pattern_is_an_error() {
    let lints = lint(&Policy::permissive().layer("app").deny_exec("").allow_exec("["));
    assert_eq!(lints.iter().map(|lint| lint.code).collect::<Vec<_>>(), [LintCode::BrokenPattern; 2]);
    assert!(lints.iter().all(|lint| lint.severity == Severity::Error));
}

#[test]
fn rules_that_mean_what_they_say_are_left_alone() {
    for (act, effect, patterns) in [
        (
            Act::Exec,
            Effect::Allow,
            &[
                "cargo test **",
                "npm run test:*",
                "make -j*",
                "python scripts/check.py **",
                "ls **",
                "git log --format=*",
                "./gradlew **",
                "node_modules/.bin/*",
            ][..],
        ),
        (Act::Exec, Effect::Deny, &["rm*", "git push*", "* --force*", "sh", "python*"]),
        (Act::Read, Effect::Deny, &["secrets/", "*.tfvars", "../other/*", "**/private/**", "a~b"]),
        (Act::Read, Effect::Allow, &["*", "docs/*"]),
        (
            Act::Net,
            Effect::Allow,
            &["*.example.com", "https://example.com/*", "example.com:443", "EXAMPLE.org"],
        ),
    ] {
        for pattern in patterns {
            let rule = Rule::new(act, effect, pattern).unwrap();
            let policy = Policy::permissive().with_layer(Layer::new("app").with_rule(rule));
            assert_eq!(codes(&policy), [], "{act} {effect} {pattern}");
        }
    }
}

#[test]
fn a_shadow_needs_the_whole_of_the_allow() {
    for (deny, allow, shadowed) in [
        ("cargo publish*", "cargo*", false),
        ("cargo*", "cargo publish*", true),
        ("cargo **", "cargo test **", true),
        ("cargo test **", "cargo test", true),
        ("cargo test", "cargo test **", false),
        ("rm", "rm -i **", true),
        ("rm", "rm*", false),
        ("RM", "rm -i **", true),
        ("git ?ush", "git push", true),
        ("git [a-p]ush", "git push", true),
        ("git [a-o]ush", "git push", false),
        ("{npm,yarn} **", "{npm,yarn} test", true),
        ("{npm,yarn} **", "{npm,pnpm} test", false),
        ("*b*a*", "*a*b*", false),
        ("*a*", "*b*a*", true),
    ] {
        let policy = Policy::permissive().layer("deny").deny_exec(deny).layer("allow").allow_exec(allow);
        let found = codes(&policy).contains(&LintCode::ShadowedByDeny);
        assert_eq!(found, shadowed, "deny {deny}, allow {allow}");
    }
    let spared =
        Rule::new(Act::Exec, Effect::Deny, "git **").unwrap().except(Pattern::new("git log **").unwrap());
    let policy = Policy::permissive().layer("a").rule(spared).allow_exec("git log **");
    assert_eq!(codes(&policy), []);
    let anchored = Policy::permissive().layer("a").deny_read("private/").allow_read("src/private");
    assert_eq!(codes(&anchored), []);
    let mut whole = Rule::new(Act::Exec, Effect::Deny, "make").unwrap().whole();
    whole.reason = None;
    let policy = Policy::permissive().layer("a").rule(whole).allow_exec("make install **");
    assert_eq!(codes(&policy), []);
}

#[test]
fn codes_are_unique_and_serialise_as_they_print() {
    let mut names: Vec<_> = LintCode::ALL.iter().map(|code| code.as_str()).collect();
    for code in LintCode::ALL {
        assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), LintCode::ALL.len());
}

#[test]
fn ten_thousand_rules_are_linted_in_reasonable_time() {
    let mut layer = Layer::new("big");
    for number in 0..10_000 {
        let (effect, text) = match number % 2 {
            0 => (Effect::Deny, format!("tool{number} **")),
            _ => (Effect::Allow, format!("tool{} run **", number - 1)),
        };
        layer = layer.with_rule(Rule::with_pattern(Act::Exec, effect, Pattern::new(text).unwrap()));
    }
    let started = std::time::Instant::now();
    let lints = lint(&Policy::permissive().with_layer(layer));
    assert_eq!(lints.len(), 5000);
    assert!(lints.iter().all(|lint| lint.code == LintCode::ShadowedByDeny));
    // A comparison of all with all would take minutes.
    assert!(started.elapsed() < std::time::Duration::from_secs(30));
}
