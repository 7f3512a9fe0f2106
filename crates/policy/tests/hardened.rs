//! The hardened profile, row by row of what it is to hold.

use cmdgate_policy::{
    Act, ApprovalPolicy, Effect, Grammar, Layer, Policy, Profile, ProfileName, Rule, SandboxMode,
};

fn argv(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

fn effect(text: &str) -> Effect {
    Profile::hardened().policy().check_exec(&argv(text)).effect
}

// contract: H1
#[test]
fn the_listed_programs_may_start() {
    for program in [
        "ls", "find", "stat", "file", "du", "wc", "head", "tail", "cat", "grep", "rg", "ag", "awk", "sed",
        "jq", "yq", "python", "node", "npx", "uv", "cargo", "go", "ast-grep", "repomix", "tree", "tokei",
        "cloc", "scc", "make", "xargs", "env",
    ] {
        for command in [program.to_owned(), format!("{program} --some src/file")] {
            assert_eq!(effect(&command), Effect::Allow, "{command}");
        }
    }
    let profile = Profile::hardened();
    let names: Vec<&str> = profile.programs().map(|program| program.name.as_str()).collect();
    assert!(names.len() >= 50, "{} programs", names.len());
    let mut unique = names.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), names.len(), "a program stands once");
    assert!(profile.programs().all(|program| program.purpose.is_some()), "every row says what it is for");
}

// contract: H1
#[test]
fn everything_else_is_denied_and_not_asked() {
    for command in [
        "curl https://example.com",
        "wget x",
        "rm -rf x",
        "mv a b",
        "cp a b",
        "dd of=x",
        "sudo ls",
        "bash -c ls",
        "sh",
        "ssh host",
        "nc -l 1",
        "perl -e 1",
        "python3.12 x.py",
        "lsof",
        "catx",
        "./ls",
        "/tmp/cat x",
        "bin/rg x",
        "eval ls",
        "exec ls",
        "source x",
        ". x",
        "chmod +x a",
        "tee x",
        "docker ps",
        "npm test",
        "vim x",
        "",
    ] {
        assert_eq!(effect(command), Effect::Deny, "{command}");
    }
    let profile = Profile::hardened();
    for (act, target, wanted) in [
        (Act::Read, "src/main.rs", Effect::Allow),
        (Act::Write, "src/main.rs", Effect::Deny),
        (Act::Net, "example.com", Effect::Deny),
        (Act::Read, ".env", Effect::Deny),
    ] {
        assert_eq!(profile.policy().check(act, target).effect, wanted, "{act} {target}");
    }
}

// contract: H1
#[test]
fn git_only_reads() {
    for command in [
        "log --oneline -5",
        "diff HEAD~1 -- src",
        "show HEAD:x",
        "blame src/a.rs",
        "status --short",
        "branch",
        "branch -a",
        "branch --list feature/*",
        "branch --show-current",
        "tag",
        "tag -l v1*",
        "rev-parse HEAD",
        "rev-list --count HEAD",
        "shortlog -sn",
        "ls-files",
        "ls-tree -r HEAD",
        "describe --tags",
        "remote -v",
        "stash list",
        "reflog",
        "worktree list",
        "config --get user.name",
        "config --list",
        "config -l",
        "cat-file -p HEAD:x",
        "grep -n text",
        "--version",
    ] {
        assert_eq!(effect(&format!("git {command}")), Effect::Allow, "git {command}");
    }
    for command in [
        "",
        "push",
        "commit -m x",
        "checkout main",
        "reset --hard",
        "clean -fd",
        "rebase",
        "merge x",
        "pull",
        "fetch",
        "clone x",
        "init",
        "add x",
        "rm x",
        "mv a b",
        "apply x",
        "am x",
        "gc",
        "stash",
        "stash pop",
        "stash drop",
        "branch new",
        "branch -d old",
        "branch -D old",
        "branch -m a b",
        "branch -v new",
        "branch -f a b",
        "tag v1",
        "tag -d v1",
        "tag -a v1",
        "remote add o u",
        "remote show o",
        "worktree add x",
        "reflog expire --all",
        "config user.name x",
        "config --unset x",
        "config --global --get x",
        "config --get x --add y",
        "config set a b",
        "config -e",
        "config --edit",
        "-c core.pager=x log",
        "-C /tmp log",
        "--exec-path=. log",
        "--git-dir=x log",
        "diff --output=x",
        "log --output x",
        "show --outpu=x",
        "diff --ext-diff",
        "log -p --ext-diff",
        "show --textconv HEAD:x",
        "cat-file --textconv HEAD:x",
        "cat-file -p x --filters",
        "cat-file --batch",
        "grep -O x",
        "grep --open-files-in-pager x",
        "logx",
        "upload-pack .",
        "bisect start",
        "submodule update",
        "filter-branch",
        "notes add",
        "update-ref x y",
        "hash-object -w x",
        "archive HEAD",
    ] {
        assert_eq!(effect(format!("git {command}").trim_end()), Effect::Deny, "git {command}");
    }
}

// contract: H2
#[test]
fn one_simple_command_is_all_the_grammar_there_is() {
    assert_eq!(Profile::hardened().settings().grammar, Some(Grammar::Single));
    // The words that run text say why they are refused.
    for word in ["eval", "exec", "source", "."] {
        let ruling = Profile::hardened().policy().check_exec(&[word, "x"]);
        assert_eq!(ruling.layer, "hardened", "{word}");
        assert!(ruling.rule.is_some_and(|rule| rule.reason.is_some()), "{word}");
    }
}

// contract: H3
#[test]
fn system_folders_are_closed_in_every_spelling_the_text_can_tell() {
    let profile = Profile::hardened();
    let settings = profile.settings();
    for folder in ["/etc", "/root", "/boot", "/usr/sbin", "/proc", "/sys"] {
        for path in [
            folder.to_owned(),
            format!("{folder}/"),
            format!("{folder}/x"),
            format!("{folder}/a/b.c"),
            format!("/{folder}/x"),
            format!("/.{folder}/x"),
            format!("/tmp/..{folder}/x"),
            format!("{folder}/../..{folder}/x"),
            format!("/usr/share/../..{folder}//./x"),
            folder.to_uppercase(),
            format!("{folder}/with space"),
        ] {
            for act in [Act::Read, Act::Write] {
                let ruling = profile.policy().check(act, &path);
                assert_eq!(ruling.effect, Effect::Deny, "{act} {path}");
                assert_eq!(ruling.layer, "hardened", "{act} {path}");
                assert!(ruling.rule.is_some(), "{act} {path}");
            }
            assert_eq!(settings.blocking(&path), Some(folder), "{path}");
        }
    }
    for open in
        ["/etcetera", "/usr/share/doc", "etc/x", "src/proc/x", "/usr/sbinx", "/home/root/x", "/home/etc"]
    {
        assert_eq!(profile.policy().check(Act::Read, open).effect, Effect::Allow, "{open}");
        assert_eq!(settings.blocking(open), None, "{open}");
    }
}

// contract: H4
#[test]
fn what_can_start_anything_runs_in_the_sandbox_or_not_at_all() {
    let profile = Profile::hardened();
    for program in
        ["python", "python3", "node", "npx", "uv", "cargo", "go", "make", "awk", "sed", "xargs", "env"]
    {
        assert!(profile.policy().runs_only_in_sandbox(program), "{program}");
        let ruling = profile.policy().check_exec(&[program, "x"]);
        assert!(ruling.only_in_sandbox && ruling.is_allow(), "{program}");
        assert!(profile.policy().check_exec(&[program]).only_in_sandbox, "{program} alone");
        assert!(
            profile.policy().check(Act::Exec, &format!("{program} x")).only_in_sandbox,
            "{program} as text"
        );
    }
    for spelling in ["/usr/bin/python", "./PYTHON", "Env"] {
        assert!(profile.policy().runs_only_in_sandbox(spelling), "{spelling}");
    }
    for program in ["ls", "cat", "git", "wc"] {
        assert!(!profile.policy().runs_only_in_sandbox(program), "{program}");
        assert!(!profile.policy().check_exec(&[program, "python"]).only_in_sandbox, "{program}");
    }
    let settings = profile.settings();
    assert_eq!(settings.sandbox, Some(SandboxMode::ReadOnly));
    assert_eq!(settings.approval, Some(ApprovalPolicy::Never), "the rules decide, nobody is asked");
    assert_eq!(profile.policy().default_effect(Act::Net), (Effect::Deny, "default"));
}

// contract: H5
#[test]
fn time_output_and_order() {
    let settings = Profile::hardened().settings();
    let number = |value: Option<std::num::NonZeroU64>| value.map(std::num::NonZeroU64::get);
    assert_eq!(number(settings.limits.timeout_ms), Some(900_000));
    assert_eq!(number(settings.limits.max_timeout_ms), Some(900_000));
    assert_eq!(number(settings.limits.output_chars), Some(100_000));
    assert!(
        settings.limits.output_lines >= settings.limits.output_chars,
        "lines do not cut before characters"
    );
    assert_eq!(settings.stop_at_first_failure, Some(true));
}

// contract: H6
#[test]
fn advice_where_a_tool_would_do() {
    let profile = Profile::hardened();
    for program in ["cat", "head", "tail", "grep", "rg", "ls", "/bin/cat"] {
        assert!(profile.policy().hint(program).is_some(), "{program}");
    }
    assert_eq!(profile.policy().hint("git"), None);
    assert_eq!(profile.settings().hints, Some(true));
    let mut quiet = Layer::new("quiet");
    quiet.settings.hints = Some(false);
    assert_eq!(Policy::default().with_layer(quiet.clone()).settings().hints, Some(false));
    assert_eq!(profile.with_layers([quiet]).settings().hints, Some(false), "advice can be switched off");
}

// contract: H1
#[test]
fn the_rows_can_be_read_and_changed_and_nothing_above_loosens_them() {
    let more =
        format!("{}\n[[program]]\nname = \"hexyl\"\npurpose = \"shows bytes\"\n", Profile::hardened_text());
    let changed = Profile::hardened_from_toml("mine.toml", &more).unwrap();
    assert_eq!(changed.name(), ProfileName::Hardened);
    let ruling = changed.policy().check_exec(&["hexyl", "x"]);
    assert_eq!(ruling.effect, Effect::Allow);
    let line = more.lines().position(|line| line.contains("hexyl")).unwrap() + 1;
    assert_eq!(ruling.rule.unwrap().line, Some(line));
    assert_eq!(Profile::hardened().policy().check_exec(&["hexyl", "x"]).effect, Effect::Deny);

    let mut user = Layer::new("user").with_rule(Rule::new(Act::Exec, Effect::Allow, "curl **").unwrap());
    user.rules.push(Rule::new(Act::Exec, Effect::Deny, "find **").unwrap());
    user.defaults.exec = Some(Effect::Allow);
    user.settings.sandbox = Some(SandboxMode::DangerFullAccess);
    let policy = Profile::hardened().with_layers([user.clone()]);
    assert_eq!(policy.check_exec(&["curl", "x"]).effect, Effect::Deny);
    assert_eq!(policy.check_exec(&["make-anything"]).effect, Effect::Deny);
    assert_eq!(policy.check_exec(&["find", "."]).effect, Effect::Deny);
    assert_eq!(policy.settings().sandbox, Some(SandboxMode::ReadOnly));
    // On the standard profile the same layer is what a person says.
    let policy = Profile::named(ProfileName::Default).with_layers([user]);
    assert_eq!(policy.check_exec(&["curl", "x"]).effect, Effect::Allow);
    assert_eq!(policy.settings().sandbox, Some(SandboxMode::DangerFullAccess));
}
