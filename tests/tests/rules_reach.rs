//! How far a rule that allows a program reaches: to its arguments, not to what the line around it does; and what an
//! agent's own shell, which no sandbox bounds, is allowed.

use cmdgate_tests::{Project, start_hook};
use serde_json::{Value, json};
use std::io::Write;

const ALLOW_LS: &str = "[[rule]]\nact = \"exec\"\neffect = \"allow\"\npattern = \"ls **\"\n";

fn project(policy: &str) -> Project {
    let project = Project::new();
    project.write_beside("config/cmdgate/policy.toml", policy);
    project
}

/// What `check` says in this sandbox: the effect, and the reason.
fn check(project: &Project, sandbox: &str, command: &str) -> (String, String) {
    let ran = project.harness(["check", "--json", "--sandbox", sandbox, "--", command]);
    let said = ran.json();
    (said["effect"].as_str().unwrap().to_owned(), said["reason"].as_str().unwrap().to_owned())
}

/// What Claude Code is told: `allow`, `ask`, `deny`, or `rewrite` with the new command.
fn hook(project: &Project, command: &str) -> (String, String) {
    let payload = json!({
        "session_id": "s", "cwd": project.root(), "hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_input": {"command": command}, "tool_use_id": "t",
    });
    let mut child = start_hook(&mut project.command(["hook", "claude-code"]));
    child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
    let answer: Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
    let output = &answer["hookSpecificOutput"];
    match output["updatedInput"]["command"].as_str() {
        Some(text) => ("rewrite".to_owned(), text.to_owned()),
        None => (output["permissionDecision"].as_str().unwrap().to_owned(), String::new()),
    }
}

// contract: S13, S15
#[test]
fn a_rule_for_a_program_does_not_cover_variables_that_change_what_runs() {
    let project = project(ALLOW_LS);
    for command in [
        "PATH=. ls --frob",
        "LD_PRELOAD=./x.so ls --frob",
        "BASH_ENV=./x ls --frob",
        "PATH=.; ls --frob",
        "CI=$(cat a.txt) ls --frob",
        "ls --frob | LD_PRELOAD=./x.so ls --frob",
        "{ IFS=/; ls --frob; }",
    ] {
        let (effect, reason) = check(&project, "workspace_write", command);
        assert_eq!(effect, "ask", "{command}: {reason}");
        assert_eq!(check(&project, "read_only", command).0, "deny", "{command}");
        assert_eq!(hook(&project, command).0, "ask", "{command}");
    }
    for command in ["ls --frob", "CI=1 ls --frob", "LANG=C RUST_BACKTRACE=1 ls --frob", "x=1; ls --frob"] {
        let (effect, reason) = check(&project, "workspace_write", command);
        assert_eq!(effect, "allow", "{command}: {reason}");
        assert_eq!(hook(&project, command).0, "allow", "{command}");
    }
}

// contract: P8, X1
#[test]
fn a_rule_for_a_program_does_not_cover_a_redirection_that_leads_out_where_no_sandbox_stops_it() {
    let project = project(ALLOW_LS);
    std::os::unix::fs::symlink("/etc/passwd", project.root().join("link")).unwrap();
    for command in [
        "ls --frob > /etc/x",
        "ls --frob >> ~/.bashrc",
        "ls --frob > .git/hooks/pre-commit",
        "ls --frob > link",
        "ls --frob &> ../x",
        "ls --frob > sub/../../x",
        "ls --frob > $WHERE",
        "ls --frob > \"a$WHERE\"",
        "ls --frob > a*",
        "ls --frob 3> x",
        "{ ls --frob; } > /etc/x",
        "ls --frob | ls --frob 2> /etc/x",
    ] {
        assert_eq!(
            check(&project, "workspace_write", command).0,
            "allow",
            "the sandbox bounds it: {command}"
        );
        assert_eq!(check(&project, "danger_full_access", command).0, "ask", "{command}");
        let (effect, text) = hook(&project, command);
        assert_eq!(effect, "rewrite", "{command}");
        assert!(text.contains(" run --passthrough ") && text.contains("workspace_write"), "{text}");
    }
    for command in ["ls --frob > out.txt", "ls --frob >> src/log 2>&1", "ls --frob 2>/dev/null"] {
        assert_eq!(check(&project, "danger_full_access", command).0, "allow", "{command}");
        assert_eq!(hook(&project, command).0, "allow", "{command}");
    }
    // A rule for the file does.
    let file = "[[rule]]\nact = \"write\"\neffect = \"allow\"\npattern = \"../log.txt\"\n";
    project.write_beside("config/cmdgate/policy.toml", &format!("{ALLOW_LS}{file}"));
    assert_eq!(check(&project, "danger_full_access", "ls --frob > ../log.txt").0, "ask", "a name outside");
    let file = file.replace("../log.txt", &format!("{}/log.txt", project.scratch().display()));
    project.write_beside("config/cmdgate/policy.toml", &format!("{ALLOW_LS}{file}"));
    assert_eq!(check(&project, "danger_full_access", "ls --frob > ../log.txt").0, "allow");
}

// contract: S15
#[test]
fn what_is_allowed_because_a_sandbox_bounds_it_is_rewritten_into_that_sandbox() {
    let project = project("approval = \"never\"\nsandbox = \"workspace_write\"\n");
    for command in ["cargo test", "rm -rf x", "PATH=. ls"] {
        assert_eq!(check(&project, "workspace_write", command).0, "allow", "{command}");
        let (effect, text) = hook(&project, command);
        assert_eq!(effect, "rewrite", "{command}");
        assert!(text.contains("--sandbox workspace_write"), "{text}");
    }
    assert_eq!(hook(&project, "ls -la").0, "allow", "a proof needs no sandbox");
}

// contract: S13, P3
#[test]
fn a_line_of_allowed_and_harmless_commands_is_allowed() {
    let rule = ALLOW_LS.replace("ls **", "npm test **");
    let project = project(&format!("grammar = \"sequence\"\n{rule}"));
    std::os::unix::fs::symlink("/etc/passwd", project.root().join("link")).unwrap();
    for command in [
        "npm test | tail -20",
        "npm test 2>&1 | tail -20",
        "cd src && npm test",
        "npm test && ls -la",
        "npm test \"$(ls)\" | tail",
        "npm test *.js | tail",
        "timeout 60 npm test | grep -c ok",
        "for i in 1 2; do npm test; ls; done",
        "ls | xargs npm test",
    ] {
        let (effect, reason) = check(&project, "workspace_write", command);
        assert_eq!(effect, "allow", "{command}: {reason}");
        assert!(reason.contains("npm test"), "{reason}");
        assert_eq!(hook(&project, command).0, "allow", "{command}");
    }
    for command in [
        "npm test; rm x",
        "npm test $(rm x) | tail",
        // The shell takes the names for patterns, which may lead out.
        "npm test $(ls) | tail",
        "npm test | xargs cat",
        "npm test | sh",
        "npm test | tee log",
        "npm testing | tail",
        "npm test; cat ../outside/secret.txt",
        "npm test; cat link",
        "cd .. && npm test | tail",
        "PATH=. npm test | tail",
        "npm test; ls > out",
        "find . -name x -exec npm test \\;",
        // The variables that keep git from running anything would reach the tests too.
        "npm test && git status",
    ] {
        let (effect, reason) = check(&project, "workspace_write", command);
        assert_eq!(effect, "ask", "{command}: {reason}");
        assert_eq!(hook(&project, command).0, "ask", "{command}");
    }
}

// contract: S13, P3
#[test]
fn a_rule_for_what_changes_the_shell_covers_nothing_else() {
    let rules: String = ["cd", "source", "export", "alias"]
        .map(|word| ALLOW_LS.replace("ls **", &format!("{word} **")))
        .concat();
    let project = project(&format!("grammar = \"sequence\"\n{rules}"));
    for command in
        ["cd /etc && cat passwd", "source ./x && ls", "export PATH=. && ls", "alias ls=rm; ls a.txt"]
    {
        let (effect, reason) = check(&project, "workspace_write", command);
        assert_eq!(effect, "ask", "{command}: {reason}");
    }
}

// contract: P3, P8
#[test]
fn what_a_pattern_matches_is_judged_as_if_it_were_named() {
    let project = project(
        "[[rule]]\nact = \"read\"\neffect = \"ask\"\npattern = \"customers/*.csv\"\n\n\
         [[rule]]\nact = \"exec\"\neffect = \"allow\"\npattern = \"strings **\"\n",
    );
    project.write(".env", "SECRET=1");
    project.write("sub/.env", "SECRET=1");
    project.write("customers/eu.csv", "a,b");
    std::os::unix::fs::symlink(project.root().join(".env"), project.root().join("settings")).unwrap();
    for command in [
        "cat .env",
        "cat .en?",
        "cat .e*",
        "cat .[e]nv",
        "cat sub/.*",
        "cd sub && cat .e*",
        "head < .e*",
        "for f in .e*; do cat \"$f\"; done",
        "cat sett*",
        "strings .e*",
    ] {
        for sandbox in ["read_only", "workspace_write", "danger_full_access"] {
            let ran = project.harness([
                "check",
                "--json",
                "--grammar",
                "sequence",
                "--sandbox",
                sandbox,
                "--",
                command,
            ]);
            let said = ran.json();
            assert_eq!((&said["effect"], &said["rule"]), (&json!("deny"), &json!(".env")), "{said}");
        }
        assert_eq!(hook(&project, command).0, "deny", "{command}");
    }
    assert_eq!(hook(&project, "cat cust*/*").0, "ask");
    // Without a leading dot a pattern matches no hidden file.
    for command in ["cat sub/*", "cat customers/*.txt"] {
        assert_eq!(hook(&project, command).0, "allow", "{command}");
    }
}

// contract: P3, P8
#[test]
fn a_rule_for_a_path_outside_holds_against_a_rule_for_the_program() {
    let rule = |act: &str, effect: &str, pattern: &str| {
        format!("[[rule]]\nact = \"{act}\"\neffect = \"{effect}\"\npattern = \"{pattern}\"\n\n")
    };
    let rules = [
        rule("exec", "allow", "{cat,head,bash,env,timeout} **"),
        rule("read", "deny", "/home/*/.aws/**"),
        rule("read", "ask", "/srv/books/**"),
    ];
    let project = project(&format!("grammar = \"sequence\"\n\n{}", rules.concat()));
    project.write(".env", "SECRET=1");
    for command in [
        "cat /home/u/.aws/credentials",
        "cat /home/u/.aws/cred*",
        "cat /home/u/x/../.aws/credentials",
        "cat < /home/u/.aws/credentials",
        "cat a.txt && head -1 /home/u/.aws/config | cat",
        "env FOO=1 cat /home/u/.aws/credentials",
        "bash -c 'cat /home/u/.aws/credentials'",
        "timeout 5 bash -c 'head -c 10 /home/u/.aws/credentials'",
        "bash -c 'cat .env'",
        "env cat .e*",
    ] {
        for sandbox in ["workspace_write", "danger_full_access"] {
            let (effect, reason) = check(&project, sandbox, command);
            assert_eq!(effect, "deny", "{command}: {reason}");
            assert!(reason.contains("deny read"), "{command}: {reason}");
        }
        assert_eq!(hook(&project, command).0, "deny", "{command}");
    }
    let ran = project.harness(["exec", "--json", "--", "env", "cat", "/home/u/.aws/x"]);
    assert!(ran.code == 126 && ran.stdout.contains("deny read"), "{ran:?}");
    assert_eq!(check(&project, "workspace_write", "bash -c 'cat /srv/books/a'").0, "ask");
    // The rule for the program goes on to cover everything else outside.
    assert_eq!(check(&project, "workspace_write", "cat /usr/share/dict/words | head -3").0, "allow");
}
