//! The rows of the contract that are this crate's, one after the other.

use cmdgate_policy::{Act, Effect, Policy};

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
