//! The behaviour matrix of the shell tool and the cases that its description names, through the program itself.

use cmdgate_tests::{Project, Ran};
use std::os::unix::fs::symlink;

const SANDBOXES: [&str; 3] = ["read_only", "workspace_write", "danger_full_access"];
const APPROVALS: [&str; 3] = ["never", "on_request", "strict"];

fn check(project: &Project, sandbox: &str, approval: &str, command: &str) -> serde_json::Value {
    project.harness(["check", "--json", "--sandbox", sandbox, "--approval", approval, "--", command]).json()
}

fn assert_refused(ran: &Ran, code: &str) {
    assert_eq!(ran.code, 126, "{ran:?}");
    assert!(ran.stderr.contains(code), "{ran:?}");
}

/// One row of the matrix: command, sandboxes, approvals, effect, source.
type Row = (&'static str, &'static [&'static str], &'static [&'static str], &'static str, &'static str);

#[test]
fn the_matrix_holds_row_by_row() {
    // contract: S14, S15, S16
    let rows: &[Row] = &[
        ("git status", &SANDBOXES, &APPROVALS, "allow", "tool_override"),
        ("npm test", &["read_only"], &APPROVALS, "deny", "tool_override"),
        ("npm test", &["workspace_write", "danger_full_access"], &["never"], "allow", "policy"),
        ("npm test", &["workspace_write", "danger_full_access"], &["on_request", "strict"], "ask", "policy"),
    ];
    let project = Project::new();
    for (command, sandboxes, approvals, effect, source) in rows {
        for sandbox in *sandboxes {
            for approval in *approvals {
                let decided = check(&project, sandbox, approval, command);
                assert_eq!(decided["effect"], *effect, "{command} {sandbox} {approval}: {decided}");
                assert_eq!(decided["source"], *source, "{command} {sandbox} {approval}: {decided}");
            }
        }
    }
}

#[test]
fn an_escaping_workdir_is_denied_in_every_mode() {
    // contract: S16, S20
    let project = Project::new();
    for sandbox in SANDBOXES {
        for approval in APPROVALS {
            for workdir in ["..", "/", "src/../.."] {
                let options = ["--sandbox", sandbox, "--approval", approval, "--workdir", workdir];
                assert_refused(&project.run(&options, "pwd"), "PATH_OUTSIDE_ALLOWED_ROOT");
            }
        }
    }
}

#[test]
fn a_workdir_symlink_that_leads_out_is_denied() {
    // contract: S20
    let project = Project::new();
    symlink("../outside", project.root().join("door")).unwrap();
    symlink("src", project.root().join("inner")).unwrap();
    for approval in APPROVALS {
        let options = ["--sandbox", "workspace_write", "--approval", approval, "--workdir", "door"];
        assert_refused(&project.run(&options, "pwd"), "PATH_OUTSIDE_ALLOWED_ROOT");
    }
    assert_refused(&project.run(&["--workdir", "missing"], "pwd"), "PATH_NOT_FOUND");
    assert_refused(&project.run(&["--workdir", "a.txt"], "pwd"), "PATH_NOT_A_DIRECTORY");
    let inner = project.run(&["--workdir", "inner"], "pwd");
    assert_eq!(inner.code, 0, "{inner:?}");
    assert!(inner.stdout.contains("Workdir: src\n"), "{inner:?}");
}

#[test]
fn read_only_runs_allow_safe_commands_and_deny_the_rest() {
    // contract: S14, S16
    let project = Project::new();
    let safe = project.run(&[], "grep -c alpha a.txt | cat");
    assert_eq!((safe.code, safe.stdout.contains("\nstdout:\n1\n")), (0, true), "{safe:?}");
    for held in
        ["touch x", "cat a.txt | sh", "cat /etc/passwd", "sort -o x a.txt", "cat ../outside/secret.txt"]
    {
        assert_refused(&project.run(&[], held), "PERMISSION_DENIED");
    }
    assert!(!project.root().join("x").exists());
}

#[test]
fn unsafe_commands_need_an_approval_in_workspace_write() {
    // contract: S17
    let project = Project::new();
    let ran = project.run(&["--sandbox", "workspace_write"], "touch x");
    assert_refused(&ran, "APPROVAL_REQUIRED");
    assert!(!project.root().join("x").exists());
}

#[test]
fn an_empty_command_is_a_validation_error() {
    // contract: S1, S14
    let project = Project::new();
    for command in ["", "   ", "\t\n"] {
        let ran = project.run(&[], command);
        assert!(ran.code == 2 && ran.stderr.contains("VALIDATION_ERROR"), "{command:?}: {ran:?}");
        let decided = check(&project, "danger_full_access", "never", command);
        assert_eq!((&decided["effect"], &decided["code"]), (&"deny".into(), &"VALIDATION_ERROR".into()));
    }
}

#[test]
fn the_timeout_has_a_range_and_a_ceiling() {
    // contract: S1, S3
    let project = Project::new();
    for wrong in ["999", "60001", "0", "-1", "1.5", "ten"] {
        let ran = project.run(&["--timeout-ms", wrong], "pwd");
        assert_eq!(ran.code, 2, "{wrong}: {ran:?}");
        assert!(ran.stderr.contains("--timeout-ms"), "{wrong}: {ran:?}");
    }
    let short = project.run(&["--timeout-ms", "500"], "pwd");
    assert!(short.code == 2 && short.stderr.contains("1000 to 60000"), "{short:?}");
    assert_eq!(project.run(&["--timeout-ms", "60000"], "pwd").code, 0);
}

#[test]
fn secrets_of_the_parent_reach_nothing() {
    // contract: S19
    // promise: 10
    let project = Project::new();
    let ran: Ran = project
        .command([
            "run",
            "--sandbox",
            "workspace_write",
            "--approval",
            "never",
            "--",
            "env; cat /proc/self/environ",
        ])
        .env("OPENAI_API_KEY", "sk-canary-7f3a")
        .output()
        .unwrap()
        .into();
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("PATH="), "{ran:?}");
    assert!(!ran.stdout.contains("sk-canary-7f3a"), "{ran:?}");
    let trace = std::fs::read(project.scratch().join("state/cmdgate/trace.db")).unwrap();
    assert!(!trace.windows(14).any(|window| window == b"sk-canary-7f3a"));
}

#[test]
fn a_failing_command_is_information() {
    // contract: S23, S24
    let project = Project::new();
    let ran = project
        .run(&["--sandbox", "workspace_write", "--approval", "never"], "echo out; echo err >&2; exit 3");
    assert_eq!(ran.code, 3);
    let (head, tail) = ran.stdout.split_once(" (").unwrap();
    assert_eq!(head, "Command: echo out; echo err >&2; exit 3\nWorkdir: .\nExit code: 3");
    let (time, tail) = tail.split_once("ms)\n").unwrap();
    assert!(time.parse::<u32>().is_ok(), "{time}");
    assert_eq!(tail, "\nstdout:\nout\n\nstderr:\nerr\n");
    let silent = project.run(&["--grammar", "pipeline"], "true");
    assert!(silent.stdout.ends_with("\nstdout:\n(empty)\n\nstderr:\n(empty)\n"), "{silent:?}");
}

#[test]
fn oversized_output_is_cut_and_says_so() {
    // contract: S21
    let project = Project::new();
    let many = "x".repeat(99) + "\n";
    project.write("big.txt", &many.repeat(400));
    let ran = project.run(&[], "cat big.txt");
    assert_eq!(ran.code, 0);
    assert!(ran.stdout.contains("[stdout truncated to "), "{}", ran.stdout);
    assert!(ran.stdout.chars().count() < 10_240 + 600);
    let lines = project.run(&["--sandbox", "workspace_write", "--approval", "never"], "seq 1000");
    assert!(lines.stdout.contains("\n256\n") && !lines.stdout.contains("\n257\n"), "{}", lines.stdout);
    let json = project.harness(["run", "--json", "--", "cat big.txt"]).json();
    assert_eq!(json["run"]["stdout"]["truncated"], true);
    assert_eq!(json["run"]["stdout"]["total_bytes"], 40_000);
    assert_eq!(json["run"]["stdout"]["total_lines"], 400);
}

#[test]
fn the_per_call_timeout_kills_and_keeps_the_tail() {
    // contract: S3, S23, S28
    // promise: 9
    let project = Project::new();
    let options = ["--sandbox", "workspace_write", "--approval", "never", "--timeout-ms", "1000"];
    let mark = format!("{}", 4_000_000 + std::process::id());
    let ran = project.run(&options, &format!("echo begun; trap '' TERM; setsid sleep {mark} & sleep {mark}"));
    assert_eq!(ran.code, 124, "{ran:?}");
    assert!(ran.stdout.contains("TIMEOUT") && ran.stdout.contains("begun"), "{ran:?}");
    let left = std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        std::fs::read(entry.path().join("cmdline"))
            .is_ok_and(|line| String::from_utf8_lossy(&line).contains(&mark))
    });
    assert!(!left, "a process of the killed tree is still there");
}

#[test]
fn the_shell_is_bash_and_standard_input_is_empty() {
    // contract: S18
    let project = Project::new();
    let options = ["--sandbox", "workspace_write", "--approval", "never"];
    let ran = project.run(
        &options,
        "[[ $BASH_VERSION ]] && shopt -q login_shell; echo login=$?; wc -c; test -p /dev/stdout && echo pipe",
    );
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("login=1\n0\npipe\n"), "{ran:?}");
}

#[test]
fn a_missing_sandbox_refuses_to_run() {
    // contract: S25
    // promise: 7
    let project = Project::new();
    // A PATH without bwrap does not matter: only fixed places and vetted entries are looked at. What does is a machine
    // without it, which the executor's own tests make.
    let opted_out = project.run(&["--sandbox", "danger_full_access", "--approval", "never"], "touch made");
    assert_eq!(opted_out.code, 0, "{opted_out:?}");
    assert!(project.root().join("made").exists());
    let confined =
        project.run(&["--sandbox", "workspace_write", "--approval", "never"], "touch ../outside/made");
    assert_ne!(confined.code, 0);
    assert!(!project.scratch().join("outside/made").exists());
}

#[test]
fn protected_paths_stay_read_only() {
    // contract: S26
    // promise: 8
    let project = Project::new();
    project.write(".vscode/tasks.json", "{}\n");
    project.write(".env", "SECRET=1\n");
    let options = ["--sandbox", "workspace_write", "--approval", "never"];
    for path in [".git/hooks/pre-commit", ".vscode/tasks.json", ".env"] {
        let before = std::fs::read(project.root().join(path)).ok();
        project.run(&options, &format!("echo planted > {path}"));
        assert_eq!(std::fs::read(project.root().join(path)).ok(), before, "{path}");
    }
    // Not there yet: made, then found and undone when the run is over.
    project.run(&options, "mkdir -p .claude && echo '{}' > .claude/settings.json");
    assert!(!project.root().join(".claude/settings.json").exists());
}

/// A project with a repository, and a policy file that opens some protected paths.
fn opened(project: &Project, paths: &str) -> String {
    let git = |args: &[&str]| {
        let mut command = std::process::Command::new("git");
        assert!(command.arg("-C").arg(project.root()).args(args).status().unwrap().success());
    };
    git(&["init", "-q"]);
    git(&["config", "user.name", "a"]);
    git(&["config", "user.email", "a@example.com"]);
    let policy = project.scratch().join("opened.toml");
    std::fs::write(&policy, format!("unprotected_paths = {paths}\n")).unwrap();
    policy.to_str().unwrap().to_owned()
}

#[test]
fn git_is_read_only_until_it_is_opened_by_name() {
    // contract: S26
    // promise: 8
    let project = Project::new();
    let policy = opened(&project, "[\".git\"]");
    let closed = ["--sandbox", "workspace_write", "--approval", "never"];
    let open = [&closed[..], &["--policy", &policy]].concat();
    let commit = "git commit -q --allow-empty -m first && git log --oneline";

    let ran = project.run(&closed, commit);
    assert_ne!(ran.code, 0, "{ran:?}");
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(said.contains("unprotected_paths = [\".git\"]"), "{said}");

    let ran = project.run(&open, commit);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("first"), "{ran:?}");

    for path in [".git/hooks/pre-commit", ".git/config", ".git/config.worktree", ".git/commondir"] {
        let before = std::fs::read(project.root().join(path)).ok();
        project.run(&open, &format!("echo planted > {path}"));
        assert_eq!(std::fs::read(project.root().join(path)).ok(), before, "{path}");
    }
    let ran = project.run(&open, "echo planted > .git/config");
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(said.contains("writing ") && said.contains("/.git/config (rule protected)"), "{said}");
    assert!(!said.contains("unprotected_paths"), "nothing opens it: {said}");
}

#[test]
fn a_built_in_protected_path_is_opened_by_name() {
    // contract: S26
    let project = Project::new();
    project.write(".vscode/tasks.json", "{}\n");
    project.write(".idea/x", "{}\n");
    let policy = opened(&project, "[\".vscode\"]");
    let options = ["--sandbox", "workspace_write", "--approval", "never", "--policy", &policy];
    let ran = project.run(&options, "echo changed > .vscode/tasks.json; echo changed > .idea/x");
    assert_eq!(std::fs::read_to_string(project.root().join(".vscode/tasks.json")).unwrap(), "changed\n");
    assert_eq!(std::fs::read_to_string(project.root().join(".idea/x")).unwrap(), "{}\n");
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(said.contains("unprotected_paths = [\".idea\"]"), "{said}");
}
