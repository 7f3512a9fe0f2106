//! The rows of the contract that are this crate's, one after the other.

use cmdgate_policy::{Act, ApprovalPolicy, Effect, Grammar, Pattern, Policy, Rule, SandboxMode, Settings};

fn effect(policy: &Policy, act: Act, target: &str) -> Effect {
    policy.check(act, target).effect
}

// contract: P2
#[test]
fn every_builder_answers_for_its_act_and_no_other() {
    type Build = fn(Policy, &str) -> Policy;
    let builders: [(Act, Effect, Build); 12] = [
        (Act::Read, Effect::Allow, Policy::allow_read),
        (Act::Read, Effect::Ask, Policy::ask_read),
        (Act::Read, Effect::Deny, Policy::deny_read),
        (Act::Write, Effect::Allow, Policy::allow_write),
        (Act::Write, Effect::Ask, Policy::ask_write),
        (Act::Write, Effect::Deny, Policy::deny_write),
        (Act::Exec, Effect::Allow, Policy::allow_exec),
        (Act::Exec, Effect::Ask, Policy::ask_exec),
        (Act::Exec, Effect::Deny, Policy::deny_exec),
        (Act::Net, Effect::Allow, Policy::allow_net),
        (Act::Net, Effect::Ask, Policy::ask_net),
        (Act::Net, Effect::Deny, Policy::deny_net),
    ];
    for (act, wanted, build) in builders {
        for base in [Policy::permissive(), Policy::deny_all()] {
            let untouched = base.check(act, "thing").effect;
            let policy = build(base.layer("app"), "thing");
            for other in Act::ALL {
                let ruling = policy.check(other, "thing");
                if other == act {
                    assert_eq!((ruling.effect, ruling.layer.as_str()), (wanted, "app"), "{act} {wanted}");
                    assert_eq!(ruling.rule.unwrap().pattern, "thing");
                } else {
                    assert_eq!(
                        (ruling.effect, ruling.layer.as_str()),
                        (untouched, "default"),
                        "{act} {wanted}"
                    );
                }
            }
        }
    }
}

// contract: P3
#[test]
fn deny_beats_ask_beats_allow_in_any_order_of_layers() {
    let layers: [fn(Policy) -> Policy; 3] = [
        |policy| policy.layer("allows").allow_exec("npm*"),
        |policy| policy.layer("asks").ask_exec("npm run*"),
        |policy| policy.layer("denies").deny_exec("npm run deploy*"),
    ];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let policy = order.iter().fold(Policy::deny_all(), |policy, at| layers[*at](policy));
        for (target, wanted, layer) in [
            ("npm test", Effect::Allow, "allows"),
            ("npm run lint", Effect::Ask, "asks"),
            ("npm run deploy --prod", Effect::Deny, "denies"),
            ("yarn", Effect::Deny, "default"),
        ] {
            let ruling = policy.check(Act::Exec, target);
            assert_eq!((ruling.effect, ruling.layer.as_str()), (wanted, layer), "{order:?} {target}");
            assert_eq!(policy.explain(Act::Exec, target), ruling);
        }
    }
}

// contract: P4
#[test]
fn the_built_in_policy() {
    let policy = Policy::default();
    assert_eq!(effect(&policy, Act::Read, "src/main.rs"), Effect::Allow);
    assert_eq!(effect(&policy, Act::Write, "src/main.rs"), Effect::Ask);
    assert_eq!(effect(&policy, Act::Exec, "make"), Effect::Ask);
    assert_eq!(effect(&policy, Act::Net, "example.com"), Effect::Deny);
    let secrets = [
        ".env",
        "app/.env",
        "/p/.env",
        "./.env",
        "x/../.env",
        "server.pem",
        "tls/server.pem",
        "a.key",
        "b/a.key",
        "id_rsa",
        "/home/me/.ssh/id_rsa",
        "id_ed25519",
        "k/id_ed25519",
        ".env.local",
        ".ENV",
        "ID_RSA",
    ];
    for act in [Act::Read, Act::Write] {
        for secret in secrets {
            let ruling = policy.check(act, secret);
            assert_eq!(
                (ruling.effect, ruling.layer.as_str()),
                (Effect::Deny, "builtin-secrets"),
                "{act} {secret}"
            );
        }
    }
    for open in [".env.example", "app/.env.sample", "id_rsa.pub", "keys.md", "environment", "src/env.rs"] {
        assert_eq!(effect(&policy, Act::Read, open), Effect::Allow, "{open}");
    }
    let open = Policy::permissive();
    for act in Act::ALL {
        assert_eq!(effect(&open, act, ".env"), Effect::Allow);
    }
}

// contract: P4
#[test]
fn nothing_stacked_on_top_opens_a_secret() {
    let policy = Policy::default().layer("app").allow_read("*").allow_read(".env").allow_write("*");
    assert_eq!(effect(&policy, Act::Read, ".env"), Effect::Deny);
    assert_eq!(effect(&policy, Act::Write, "deploy/server.pem"), Effect::Deny);
    assert_eq!(effect(&policy, Act::Write, "src/main.rs"), Effect::Allow);
}

// contract: P5
#[test]
fn globs_span_everything_and_question_marks_one_character() {
    let policy =
        Policy::deny_all().layer("app").allow_read("src/*.rs").allow_read("doc?.md").allow_exec("git * main");
    for target in ["src/a.rs", "src/deep/er/a.rs", "src/with space.rs", "doc1.md", "docé.md", "sub/doc1.md"]
    {
        assert_eq!(effect(&policy, Act::Read, target), Effect::Allow, "{target}");
    }
    for target in ["src/a.rs.bak", "xsrc/a.rs", "doc.md", "doc12.md", "src/../../a.rs"] {
        assert_eq!(effect(&policy, Act::Read, target), Effect::Deny, "{target}");
    }
    assert_eq!(effect(&policy, Act::Exec, "git push --force origin main"), Effect::Allow);
    assert_eq!(effect(&policy, Act::Exec, "git push\nmain"), Effect::Deny);
}

// contract: P6
#[test]
fn programs_are_checked_by_name_and_by_command() {
    let policy = Policy::default()
        .layer("ops")
        .allow_exec("cargo test*")
        .allow_exec("rg")
        .deny_exec("cargo publish*")
        .deny_exec("rm")
        .deny_exec("git push*");
    for (argv, wanted) in [
        (&["cargo", "test", "--all"][..], Effect::Allow),
        (&["cargo", "publish"], Effect::Deny),
        (&["cargo", "publish", "--token", "x"], Effect::Deny),
        (&["cargo", "build"], Effect::Ask),
        (&["rg", "pattern", "src"], Effect::Allow),
        (&["rm"], Effect::Deny),
        (&["rm", "-rf", "x"], Effect::Deny),
        (&["/bin/rm", "-rf", "x"], Effect::Deny),
        (&["../../bin/rm", "x"], Effect::Deny),
        (&["//bin/./rm"], Effect::Deny),
        (&["RM", "x"], Effect::Deny),
        (&["rmdir", "x"], Effect::Ask),
        (&["/usr/bin/git", "push", "origin"], Effect::Deny),
        (&["git", "", "push"], Effect::Deny),
        (&["git", "status"], Effect::Ask),
        // A name allows what PATH finds under it, and nothing that an agent could have put elsewhere.
        (&["./cargo", "test"], Effect::Ask),
        (&["/tmp/rg", "x"], Effect::Ask),
    ] {
        assert_eq!(policy.check_exec(argv).effect, wanted, "{argv:?}");
        assert_eq!(effect(&policy, Act::Exec, &argv.join(" ")), wanted, "{argv:?} as one text");
    }
}

// contract: P1 P6
#[test]
fn no_argv_is_denied_and_nothing_in_an_argument_is_parsed() {
    let none: [&str; 0] = [];
    assert_eq!(Policy::permissive().check_exec(&none).effect, Effect::Deny);
    let policy = Policy::deny_all().layer("app").allow_exec("rustc **");
    assert_eq!(policy.check_exec(&["rustc", "a;b && c $(id).rs"]).effect, Effect::Allow);
}

#[test]
fn a_word_prefix_is_bound_at_the_word() {
    let policy = Policy::deny_all().layer("app").allow_exec("cargo test **");
    for target in ["cargo test", "cargo test --all", "cargo test  x"] {
        assert_eq!(effect(&policy, Act::Exec, target), Effect::Allow, "{target}");
    }
    for target in ["cargo testify", "cargo tes", "cargo", "xcargo test", "cargo test\tx"] {
        assert_eq!(effect(&policy, Act::Exec, target), Effect::Deny, "{target}");
    }
}

#[test]
fn a_broken_rule_errs_to_the_strict_side_and_is_reported() {
    let broken = Policy::permissive().layer("app").deny_exec("rm [");
    assert_eq!(effect(&broken, Act::Exec, "ls"), Effect::Deny);
    assert_eq!(effect(&broken, Act::Read, "x"), Effect::Allow);
    assert_eq!(broken.errors().len(), 1);
    assert!(broken.validate().is_err());

    let ask = Policy::permissive().layer("app").ask_exec("");
    assert_eq!(effect(&ask, Act::Exec, "ls"), Effect::Ask);
    let ask = Policy::deny_all().layer("app").ask_exec("");
    assert_eq!(effect(&ask, Act::Exec, "ls"), Effect::Deny, "a broken ask opens nothing");

    let allow = Policy::deny_all().layer("app").allow_exec("a{b");
    assert_eq!(effect(&allow, Act::Exec, "a{b"), Effect::Deny);
    assert_eq!(allow.errors().len(), 1);
}

// contract: P2 P6
#[test]
fn the_policy_of_an_agent_that_mends_tests() {
    let policy = Policy::permissive()
        .layer("app")
        .allow_exec("npm*")
        .allow_exec("node*")
        .deny_exec("rm*")
        .deny_exec("git push*");
    assert_eq!(policy.check_exec(&["npm", "test"]).layer, "app");
    assert_eq!(effect(&policy, Act::Exec, "npm test"), Effect::Allow);
    assert_eq!(effect(&policy, Act::Exec, "node --test"), Effect::Allow);
    for denied in ["rm -rf /", "/bin/rm x", "rmdir x", "git push", "git push --force", "/usr/bin/git push"] {
        assert_eq!(effect(&policy, Act::Exec, denied), Effect::Deny, "{denied}");
    }
    assert_eq!(policy.check(Act::Exec, "git status").layer, "default");
}

// contract: S14 S15
#[test]
fn modes_go_by_the_names_of_the_matrix_and_are_ordered_by_strictness() {
    let sandbox = [SandboxMode::DangerFullAccess, SandboxMode::WorkspaceWrite, SandboxMode::ReadOnly];
    assert!(sandbox.is_sorted() && sandbox == *SandboxMode::ALL);
    let approval = [ApprovalPolicy::Never, ApprovalPolicy::OnRequest, ApprovalPolicy::Strict];
    assert!(approval.is_sorted() && approval == *ApprovalPolicy::ALL);
    let grammar = [Grammar::Sequence, Grammar::Pipeline, Grammar::Single];
    assert!(grammar.is_sorted() && grammar == *Grammar::ALL);
    assert_eq!(sandbox.map(SandboxMode::as_str), ["danger_full_access", "workspace_write", "read_only"]);
    assert_eq!(approval.map(ApprovalPolicy::as_str), ["never", "on_request", "strict"]);
    for mode in sandbox {
        assert_eq!(serde_json::to_value(mode).unwrap(), mode.as_str());
        assert_eq!(mode.as_str().parse::<SandboxMode>().unwrap(), mode);
    }
    assert!("full".parse::<SandboxMode>().is_err());
}

// contract: S1 S3 S21 P10
#[test]
fn the_built_in_bounds() {
    let limits = Settings::builtin().limits;
    let number = |value: Option<std::num::NonZeroU64>| value.unwrap().get();
    assert_eq!(number(limits.timeout_ms), 10_000);
    assert_eq!(number(limits.max_timeout_ms), 60_000);
    assert_eq!(number(limits.exec_timeout_ms), 15 * 60 * 1000);
    assert_eq!(number(limits.output_chars), 10_240);
    assert_eq!(number(limits.output_lines), 256);
}

// contract: S26
#[test]
fn protected_paths_are_closed_until_opened_by_name() {
    let mut settings = Settings::builtin().clone();
    for path in [
        ".git",
        ".git/config",
        ".git/hooks/pre-commit",
        "sub/.git/config",
        ".GIT/config",
        "./.git/x",
        ".env",
        ".env.local",
        ".claude/settings.json",
        ".codex/config.toml",
        ".cursor/rules",
        ".gemini/x",
        ".cmdgate.toml",
        ".vscode/tasks.json",
        ".mcp.json",
        "lefthook.yml",
    ] {
        assert!(settings.protecting(path).is_some(), "{path}");
    }
    for path in ["src/main.rs", "gitignore", ".github/workflows/ci.yml", ".gitignore", "environment"] {
        assert_eq!(settings.protecting(path), None, "{path}");
    }
    settings.unprotected_paths = Some(vec![".git".to_owned()]);
    assert_eq!(settings.protecting(".git/config"), None);
    assert!(settings.protecting(".claude/x").is_some());
}

#[test]
fn a_path_is_judged_as_what_it_resolves_to_by_its_text() {
    let policy =
        Policy::default().layer("app").allow_write("src/*").deny_read("secrets/").deny_write("./gen/*.rs");
    for (act, target, wanted) in [
        (Act::Write, "src/a.rs", Effect::Allow),
        (Act::Write, "./src//a.rs", Effect::Allow),
        (Act::Write, "src/../../etc/passwd", Effect::Ask),
        (Act::Write, "src/../Makefile", Effect::Ask),
        (Act::Write, "docs/../src/a.rs", Effect::Allow),
        (Act::Read, "secrets", Effect::Deny),
        (Act::Read, "secrets/", Effect::Deny),
        (Act::Read, "./secrets/x/y", Effect::Deny),
        (Act::Read, "docs/../secrets/x", Effect::Deny),
        // Through a link, `..` could lead anywhere: a deny holds for what is written, too.
        (Act::Read, "secrets/../docs/x", Effect::Deny),
        (Act::Read, "docs/secrets", Effect::Allow),
        (Act::Write, "gen/x.rs", Effect::Deny),
        (Act::Write, "./gen/deep/x.rs", Effect::Deny),
    ] {
        assert_eq!(effect(&policy, act, target), wanted, "{act} {target}");
    }
}

#[test]
fn a_host_is_allowed_only_where_it_is_plainly_that_host() {
    let policy = Policy::default()
        .layer("app")
        .allow_net("*.example.com")
        .allow_net("example.org:443")
        .deny_net("bad.example.com");
    for (target, wanted) in [
        ("api.example.com", Effect::Allow),
        ("API.Example.COM.", Effect::Allow),
        ("api.example.com:8443", Effect::Allow),
        ("https://api.example.com/v1?x=y", Effect::Allow),
        ("example.com", Effect::Deny),
        ("example.org:443", Effect::Allow),
        ("example.org:80", Effect::Deny),
        ("example.org", Effect::Deny),
        ("bad.example.com", Effect::Deny),
        ("BAD.example.com.:443", Effect::Deny),
        ("https://x@bad.example.com/", Effect::Deny),
        ("evil.test/.example.com", Effect::Deny),
        ("evil.test#.example.com", Effect::Deny),
        ("evil.test\\.example.com", Effect::Deny),
        ("https://api.example.com@evil.test/", Effect::Deny),
        ("https://evil.test\\@api.example.com/", Effect::Deny),
        ("api.example.com evil.test", Effect::Deny),
        ("", Effect::Deny),
    ] {
        assert_eq!(effect(&policy, Act::Net, target), wanted, "{target}");
    }
}

#[test]
fn merging_keeps_the_stricter_base_and_all_layers() {
    let merged = Policy::permissive().layer("a").allow_net("x").merge(Policy::default());
    assert_eq!(effect(&merged, Act::Net, "y"), Effect::Deny);
    assert_eq!(effect(&merged, Act::Net, "x"), Effect::Allow);
    assert_eq!(effect(&merged, Act::Exec, "x"), Effect::Ask);
    assert_eq!(effect(&merged, Act::Read, ".env"), Effect::Deny);
    // A rule after that goes into a layer of its own, not into the secrets.
    let more = merged.deny_exec("x");
    assert_eq!(more.check(Act::Exec, "x").layer, "base");
    assert_eq!(more.without_layer("base").check(Act::Exec, "x").layer, "default");
}

#[test]
fn double_stars_stand_for_folders_also_for_none() {
    for (pattern, matched, unmatched) in [
        ("a/**/b", &["a/b", "a/x/b", "a/x/y/b", "./a//b"][..], &["ab", "a/xb", "xa/b", "a/b/c"][..]),
        ("**/**/b", &["b", "x/b", "x/y/b"], &["xb", "b/x"]),
        ("a/**/**/b", &["a/b", "a/x/b"], &["ab"]),
        ("a/**", &["a/x", "a/x/y"], &["a", "ab"]),
    ] {
        // The last component alone would match `b` anywhere.
        let rule = Rule::new(Act::Read, Effect::Allow, pattern).unwrap().whole();
        let policy = Policy::deny_all().layer("app").rule(rule);
        for target in matched {
            assert_eq!(effect(&policy, Act::Read, target), Effect::Allow, "{pattern} on {target}");
        }
        for target in unmatched {
            assert_eq!(effect(&policy, Act::Read, target), Effect::Deny, "{pattern} on {target}");
        }
    }
}

#[test]
fn a_word_prefix_may_hold_stars() {
    let policy = Policy::deny_all().layer("app").allow_exec("git * main **");
    for target in ["git push main", "git push origin main", "git push main --force", "git mainx main"] {
        assert_eq!(effect(&policy, Act::Exec, target), Effect::Allow, "{target}");
    }
    for target in ["git push mainx", "git push mainx y", "git main", "git push domain"] {
        assert_eq!(effect(&policy, Act::Exec, target), Effect::Deny, "{target}");
    }
}

#[test]
fn exceptions_narrow_generously_from_an_allow_and_to_the_letter_from_a_deny() {
    let except =
        |effect| Rule::new(Act::Read, effect, "*").unwrap().except(Pattern::new("private.md").unwrap());
    let allow = Policy::deny_all().layer("app").rule(except(Effect::Allow));
    let deny = Policy::permissive().layer("app").rule(except(Effect::Deny));
    for (target, allowed, denied) in [
        ("open.md", Effect::Allow, Effect::Deny),
        ("private.md", Effect::Deny, Effect::Allow),
        ("PRIVATE.md", Effect::Deny, Effect::Deny),
    ] {
        assert_eq!(effect(&allow, Act::Read, target), allowed, "allow, {target}");
        assert_eq!(effect(&deny, Act::Read, target), denied, "deny, {target}");
    }
}

// contract: P6
#[test]
fn a_deny_on_a_path_holds_for_its_other_spellings() {
    let policy = Policy::permissive().layer("app").deny_exec("/bin/rm");
    for denied in ["/bin/rm", "/bin/rm x", "//bin/./rm x", "/usr/../bin/rm x", "/BIN/rm x"] {
        assert_eq!(effect(&policy, Act::Exec, denied), Effect::Deny, "{denied}");
    }
    assert_eq!(effect(&policy, Act::Exec, "/usr/bin/rm x"), Effect::Allow);
}

#[test]
fn of_two_asks_the_one_for_the_very_target_is_named() {
    let policy = Policy::permissive().layer("loose").ask_exec("rm").layer("firm").ask_exec("/bin/rm **");
    assert_eq!(policy.check_exec(&["/bin/rm", "x"]).layer, "firm");
    assert_eq!(policy.check_exec(&["/usr/bin/rm", "x"]).layer, "loose");
}

#[test]
fn what_is_opened_by_name_is_closed_by_name() {
    let mut own = Settings::builtin().clone();
    own.unprotected_paths = Some(vec![".git".to_owned(), ".vscode".to_owned()]);
    let mut other = Settings::default();
    other.protected_paths = vec![".git".to_owned()];
    for settings in [own.tighten(&other), own.overlay(&other)] {
        assert_eq!(settings.protecting(".git/config"), Some(".git"));
        assert_eq!(settings.protecting(".vscode/tasks.json"), None);
    }
    // Naming fewer openings closes the rest, naming more opens nothing.
    other.unprotected_paths = Some(vec![".idea".to_owned()]);
    let settings = own.tighten(&other);
    assert!(settings.protecting(".vscode/tasks.json").is_some() && settings.protecting(".idea/x").is_some());
}

#[test]
fn the_stricter_of_two_rulings_keeps_the_sandbox_of_both() {
    let hardened = cmdgate_policy::Profile::hardened();
    let (python, list) = (hardened.policy().check_exec(&["python"]), hardened.policy().check_exec(&["ls"]));
    assert!(list.clone().stricter(python.clone()).only_in_sandbox);
    assert!(python.clone().stricter(list.clone()).only_in_sandbox);
    let denied = hardened.policy().check_exec(&["curl"]);
    assert_eq!(list.stricter(denied.clone()).effect, Effect::Deny);
    assert_eq!(denied.stricter(python).effect, Effect::Deny);
}
