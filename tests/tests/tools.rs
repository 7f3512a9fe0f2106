//! The tools that a model calls: arguments, decisions, and what comes of them.

use cmdgate_harness::approve::{Answer, AnswerFuture, ApproveAll, DenyAll, Question, Remember, Scope};
use cmdgate_harness::config::Loaded;
use cmdgate_harness::gate::Action;
use cmdgate_harness::session::{RunOptions, Session};
use cmdgate_harness::store::RunInfo;
use cmdgate_harness::tools::{TOOLS, ToolReply, Toolbox};
use cmdgate_harness::{Approver, Policy, Store};
use cmdgate_policy::{Act, Effect, Layer, Rule, SandboxMode};
use cmdgate_tests::Project;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

struct Bench {
    project: Project,
    session: Session,
    store: Store,
}

impl Bench {
    fn new(policy: Policy, sandbox: SandboxMode) -> Self {
        let project = Project::new();
        let mut layer = Layer::new("test");
        layer.settings.sandbox = Some(sandbox);
        let policy = policy.with_layer(layer);
        let settings = policy.settings();
        let session =
            Session::new(&project.root(), Loaded { policy, settings, origins: Vec::new() }).unwrap();
        let store = Store::open(project.scratch().join("trace.db")).unwrap();
        Self { project, session, store }
    }

    async fn calls(&self, approver: &dyn Approver, calls: &[(&str, Value)]) -> Vec<ToolReply> {
        let recorder = self
            .store
            .begin(&RunInfo {
                kind: "agent",
                goal: None,
                root: String::new(),
                sandbox: "workspace_write",
                approval: "on_request",
            })
            .unwrap();
        let toolbox = Toolbox::new(&self.session, approver, &recorder, RunOptions::default());
        let mut replies = Vec::new();
        for (tool, arguments) in calls {
            replies.push(toolbox.call(tool, &arguments.to_string()).await);
        }
        toolbox.end().await;
        replies
    }

    fn steps(&self) -> i64 {
        let connection = rusqlite::Connection::open(self.store.path()).unwrap();
        connection.query_row("SELECT count(*) FROM steps", [], |row| row.get(0)).unwrap()
    }
}

// contract: S1 P1
#[tokio::test]
async fn bad_arguments_name_the_field_and_start_nothing() {
    let bench = Bench::new(Policy::permissive(), SandboxMode::WorkspaceWrite);
    let cases = [
        ("shell", json!({}), "command"),
        ("shell", json!({ "command": "" }), "command"),
        ("shell", json!({ "command": " \t\n" }), "command"),
        ("shell", json!({ "command": 7 }), "command"),
        ("shell", json!({ "command": ["touch", "made"] }), "command"),
        ("shell", json!({ "command": null }), "command"),
        ("shell", json!({ "command": "touch made\u{0}" }), "command"),
        ("shell", json!({ "command": "touch made", "timeoutMs": 999 }), "timeoutMs"),
        ("shell", json!({ "command": "touch made", "timeoutMs": 60_001 }), "timeoutMs"),
        ("shell", json!({ "command": "touch made", "timeoutMs": -1 }), "timeoutMs"),
        ("shell", json!({ "command": "touch made", "timeoutMs": 1000.5 }), "timeoutMs"),
        ("shell", json!({ "command": "touch made", "timeoutMs": "2000" }), "timeoutMs"),
        ("shell", json!({ "command": "touch made", "timeoutMs": 1e300 }), "timeoutMs"),
        ("shell", json!({ "command": "touch made", "workdir": 1 }), "workdir"),
        ("shell", json!({ "command": "touch made", "workdir": "" }), "workdir"),
        ("shell", json!({ "command": "touch made", "timeout": 2000 }), "timeout"),
        ("shell", json!({ "command": "touch made", "Command": "x" }), "Command"),
        ("shell", json!(["touch made"]), "arguments"),
        ("shell", json!("touch made"), "arguments"),
        ("exec", json!({ "argv": [] }), "argv"),
        ("exec", json!({ "argv": [""] }), "argv[0]"),
        ("exec", json!({ "argv": ["touch", 7] }), "argv[1]"),
        ("exec", json!({ "argv": ["touch", "ma\u{0}de"] }), "argv[1]"),
        ("exec", json!({ "argv": ["touch", ["made"]] }), "argv[1]"),
        ("exec", json!({ "argv": "touch made" }), "argv"),
        ("exec", json!({ "argv": ["touch", "made"], "timeoutMs": 900_001 }), "timeoutMs"),
        ("shell_start", json!({ "command": "touch made", "timeoutMs": 2000 }), "timeoutMs"),
        ("shell_poll", json!({}), "id"),
        ("shell_kill", json!({ "id": 0 }), "id"),
        ("read_file", json!({ "path": "a.txt", "limit": 0 }), "limit"),
        ("write_file", json!({ "path": "made" }), "content"),
        ("list_dir", json!({ "path": "src", "all": true }), "all"),
    ];
    let calls: Vec<(&str, Value)> =
        cases.iter().map(|(tool, arguments, _)| (*tool, arguments.clone())).collect();
    let replies = bench.calls(&ApproveAll, &calls).await;
    for ((tool, arguments, field), reply) in cases.iter().zip(&replies) {
        assert_eq!(reply.code, Some("VALIDATION_ERROR"), "{tool} {arguments}: {reply:?}");
        assert!(reply.text.contains(&format!("`{field}`")), "{tool} {arguments}: {reply:?}");
    }
    assert_eq!(bench.steps(), 0, "a malformed call is no step");
    assert!(!bench.project.root().join("made").exists());
}

// contract: S1
#[tokio::test]
async fn arguments_that_are_not_json_or_deep_or_huge_are_refused() {
    let bench = Bench::new(Policy::permissive(), SandboxMode::WorkspaceWrite);
    let recorder = bench
        .store
        .begin(&RunInfo { kind: "agent", goal: None, root: String::new(), sandbox: "x", approval: "x" })
        .unwrap();
    let toolbox = Toolbox::new(&bench.session, &ApproveAll, &recorder, RunOptions::default());
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let huge = format!(r#"{{"command":"touch made","pad":"{}"}}"#, "x".repeat(5 << 20));
    for text in ["{", "touch made", r#"{"command":"touch made"} x"#, deep.as_str(), huge.as_str()] {
        let reply = toolbox.call("shell", text).await;
        assert_eq!(reply.code, Some("VALIDATION_ERROR"), "{}", reply.text);
        assert!(reply.text.contains("`arguments`") && reply.text.len() < 500, "{}", reply.text);
    }
    let unknown = toolbox.call("launch", "{}").await;
    assert!(unknown.code == Some("VALIDATION_ERROR") && unknown.text.contains("list_dir"), "{unknown:?}");
    assert_eq!(bench.steps(), 0);
    assert!(!bench.project.root().join("made").exists());
}

// contract: S2 S16
#[tokio::test]
async fn the_shell_is_offered_in_a_read_only_run_and_runs_what_reads() {
    assert!(TOOLS.iter().any(|tool| tool.name == "shell"));
    let bench = Bench::new(Policy::default(), SandboxMode::ReadOnly);
    let replies = bench
        .calls(
            &ApproveAll,
            &[
                ("shell", json!({ "command": "sort a.txt | head -1", "timeoutMs": 60_000 })),
                ("shell", json!({ "command": "ls", "workdir": "src" })),
                ("shell", json!({ "command": "touch made" })),
                ("write_file", json!({ "path": "made", "content": "" })),
                ("read_file", json!({ "path": "a.txt", "offset": 2, "limit": 1 })),
                ("list_dir", json!({})),
            ],
        )
        .await;
    assert!(replies[0].code.is_none() && replies[0].text.contains("alpha"), "{replies:?}");
    assert!(replies[1].text.contains("Workdir: src") && replies[1].text.contains("main.py"), "{replies:?}");
    assert_eq!(replies[2].code, Some("PERMISSION_DENIED"));
    assert_eq!(replies[3].code, Some("PERMISSION_DENIED"));
    assert_eq!(replies[4].text, "alpha\n[lines 2 to 2 of 3]");
    assert!(replies[5].text.contains("src/") && replies[5].text.contains("a.txt"), "{replies:?}");
    assert!(!bench.project.root().join("made").exists());
}

// contract: S13
#[tokio::test]
async fn what_the_generic_decision_denies_no_proof_of_harmlessness_lifts() {
    for (policy, expected) in [
        (Policy::deny_all(), Some("PERMISSION_DENIED")),
        (Policy::default().layer("app").deny_exec("sort"), Some("PERMISSION_DENIED")),
        (Policy::default().layer("app").deny_read("a.txt"), Some("PERMISSION_DENIED")),
        (Policy::default(), None),
    ] {
        let bench = Bench::new(policy, SandboxMode::WorkspaceWrite);
        let replies = bench
            .calls(
                &ApproveAll,
                &[
                    ("shell", json!({ "command": "sort a.txt" })),
                    ("exec", json!({ "argv": ["sort", "a.txt"] })),
                ],
            )
            .await;
        assert_eq!([replies[0].code, replies[1].code], [expected; 2], "{replies:?}");
    }
}

// contract: P1
#[tokio::test]
async fn nothing_parses_an_argument_list() {
    let bench = Bench::new(Policy::permissive(), SandboxMode::WorkspaceWrite);
    let odd = "a;b && touch made $(touch made) `touch made` | x > y";
    let replies = bench.calls(&ApproveAll, &[("exec", json!({ "argv": ["printf", "%s", odd] }))]).await;
    assert!(replies[0].text.contains(&format!("stdout:\n{odd}\n")), "{replies:?}");
    assert!(!bench.project.root().join("made").exists() && !bench.project.root().join("y").exists());
}

// contract: P16
#[tokio::test]
async fn a_background_command_tells_what_is_new_and_can_be_killed() {
    let bench = Bench::new(Policy::permissive(), SandboxMode::WorkspaceWrite);
    let start =
        ("shell_start", json!({ "command": "echo first; sleep 2; echo second; sleep 100; touch made" }));
    let wait = |seconds: u32| ("shell", json!({ "command": format!("sleep {seconds}") }));
    let poll = ("shell_poll", json!({ "id": 1 }));
    let calls =
        [start, wait(1), poll.clone(), wait(3), poll.clone(), ("shell_kill", json!({ "id": 1 })), poll];
    let replies = bench.calls(&ApproveAll, &calls).await;
    assert!(replies[0].text.starts_with("Background 1: started"), "{replies:?}");
    assert!(replies[2].text.contains("running") && replies[2].text.contains("first"), "{replies:?}");
    assert!(replies[4].text.contains("second") && !replies[4].text.contains("first"), "{replies:?}");
    assert!(replies[5].text.contains("ended: killed"), "{replies:?}");
    assert!(
        replies[6].text.contains("ended: killed") && replies[6].text.contains("(nothing)"),
        "{replies:?}"
    );
    assert!(!bench.project.root().join("made").exists());
}

// contract: P16
#[tokio::test]
async fn at_most_eight_run_at_once_and_all_end_with_the_run() {
    let bench = Bench::new(Policy::permissive(), SandboxMode::WorkspaceWrite);
    let start = ("shell_start", json!({ "command": "sleep 97.25" }));
    let calls = vec![start; 9];
    let begun = Instant::now();
    let replies = bench.calls(&ApproveAll, &calls).await;
    assert!(replies[..8].iter().all(|reply| reply.code.is_none()), "{replies:?}");
    assert!(replies[8].code == Some("EXECUTION_ERROR") && replies[8].text.contains('8'), "{replies:?}");
    assert!(begun.elapsed() < Duration::from_mins(1), "they were waited for");
    let ps = std::process::Command::new("ps").args(["-eo", "args"]).output().unwrap();
    let left =
        String::from_utf8_lossy(&ps.stdout).lines().filter(|line| line.contains("sleep 97.25")).count();
    assert_eq!(left, 0, "{left} processes outlived the run");
    let connection = rusqlite::Connection::open(bench.store.path()).unwrap();
    let open: i64 = connection
        .query_row("SELECT count(*) FROM steps WHERE result IS NULL", [], |row| row.get(0))
        .unwrap();
    assert_eq!(open, 0, "every end is recorded");
}

// contract: P7 P8
#[tokio::test]
async fn files_follow_the_read_and_write_rules_and_their_approver() {
    let policy = Policy::default().layer("app").deny_read("secrets/*").allow_write("notes/*");
    let bench = Bench::new(policy, SandboxMode::WorkspaceWrite);
    bench.project.write("secrets/prod.env", "CANARY");
    std::os::unix::fs::symlink("secrets/prod.env", bench.project.root().join("harmless")).unwrap();
    let replies = bench
        .calls(
            &DenyAll,
            &[
                ("read_file", json!({ "path": "secrets/prod.env" })),
                ("read_file", json!({ "path": "harmless" })),
                ("read_file", json!({ "path": "src/../secrets/./prod.env" })),
                ("write_file", json!({ "path": "other.txt", "content": "x" })),
                ("write_file", json!({ "path": "notes/deep/er.txt", "content": "x" })),
                ("read_file", json!({ "path": "not-there.txt" })),
            ],
        )
        .await;
    for reply in &replies[..4] {
        assert_eq!(reply.code, Some("PERMISSION_DENIED"), "{replies:?}");
        assert!(!reply.text.contains("CANARY"));
    }
    assert!(replies[4].code.is_none(), "{replies:?}");
    assert_eq!(std::fs::read_to_string(bench.project.root().join("notes/deep/er.txt")).unwrap(), "x");
    assert_eq!(replies[5].code, Some("EXECUTION_ERROR"));
    assert!(!bench.project.root().join("other.txt").exists());
}

/// Gives the same answer to every question, and counts them.
struct Answers(Answer, AtomicUsize);

impl Answers {
    fn new(modified: Option<Action>, rules: &[(Effect, &str)]) -> Self {
        let remember = rules.iter().map(|(effect, pattern)| Remember {
            rule: Rule::new(Act::Exec, *effect, pattern).unwrap(),
            scope: Scope::Session,
        });
        Self(Answer::Approve { modified, remember: remember.collect() }, AtomicUsize::new(0))
    }

    fn asked(&self) -> usize {
        self.1.load(Ordering::Relaxed)
    }
}

impl Approver for Answers {
    fn answer<'a>(&'a self, _: Question<'a>) -> AnswerFuture<'a> {
        self.1.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::ready(self.0.clone()))
    }
}

// contract: P7
#[tokio::test]
async fn an_approver_can_change_what_runs_and_cross_no_deny() {
    let policy = || Policy::default().layer("app").deny_exec("rm **").deny_write("locked/*");
    let bench = Bench::new(policy(), SandboxMode::WorkspaceWrite);
    let made = |name: &str| bench.project.root().join(name).exists();
    let shell = |command: &str| Action::Shell(command.to_owned());
    let asked = ("shell", json!({ "command": "touch asked" }));
    let calls = std::slice::from_ref(&asked);
    let changed = bench.calls(&Answers::new(Some(shell("touch changed")), &[]), calls).await;
    assert!(made("changed") && !made("asked"), "{changed:?}");
    assert!(
        changed[0].text.contains("Command: touch changed")
            && changed[0].text.contains("the approver changed")
    );
    for (action, what) in [
        (shell("rm a.txt"), "rm **"),
        (shell("touch x && bash -c 'rm a.txt'"), "rm **"),
        (Action::Exec(vec!["/bin/rm".into(), "a.txt".into()]), "rm **"),
        (Action::Write("locked/x".into()), "locked/*"),
        (shell(""), ""),
        (Action::Exec(Vec::new()), ""),
    ] {
        let replies = bench.calls(&Answers::new(Some(action.clone()), &[]), calls).await;
        assert!(replies[0].code.is_some() && replies[0].text.contains(what), "{action:?}: {replies:?}");
        assert!(made("a.txt") && !made("x"), "{action:?}");
    }
    // What was asked is harmless by then, another deed of a file tool is not done.
    let write = ("write_file", json!({ "path": "w.txt", "content": "x" }));
    let replies = bench.calls(&Answers::new(Some(Action::Read("a.txt".into())), &[]), &[write]).await;
    assert!(replies[0].code.is_some() && !made("w.txt"), "{replies:?}");
    let start = ("shell_start", json!({ "command": "touch asked" }));
    let started = bench.calls(&Answers::new(Some(shell("touch started")), &[]), &[start]).await;
    assert!(started[0].text.contains("changed the command to: touch started"), "{started:?}");
    assert!(!made("asked"));
}

// contract: P7 P3
#[tokio::test]
async fn a_rule_of_this_session_counts_in_it_alone_and_crosses_no_deny() {
    let policy = || Policy::default().layer("app").deny_exec("touch secret");
    let bench = Bench::new(policy(), SandboxMode::WorkspaceWrite);
    let touch = |name: &str| ("shell", json!({ "command": format!("touch {name}") }));
    let approver = Answers::new(None, &[(Effect::Allow, "touch **")]);
    let replies = bench.calls(&approver, &[touch("a"), touch("b"), touch("secret")]).await;
    // The deny beats it, so the lint lets the rule pass, and the deny holds.
    assert_eq!((replies[2].code, approver.asked()), (Some("PERMISSION_DENIED"), 1), "{replies:?}");
    assert!(bench.project.root().join("b").exists() && !bench.project.root().join("secret").exists());
    let other = Bench::new(policy(), SandboxMode::WorkspaceWrite);
    other.calls(&approver, &[touch("c")]).await;
    assert_eq!(approver.asked(), 2, "another session asks again");
    // Rules that say nothing, that a deny covers, or that are for what runs anything, are left out: it asks each time.
    for rule in ["*", "bash **", "touch secret", "t*"] {
        let bench = Bench::new(policy(), SandboxMode::WorkspaceWrite);
        let approver = Answers::new(None, &[(Effect::Allow, rule)]);
        let replies = bench.calls(&approver, &[touch("a"), touch("b")]).await;
        assert!(
            approver.asked() == 2 && replies.iter().all(|reply| reply.code.is_none()),
            "{rule}: {replies:?}"
        );
    }
    // One that denies is kept as well.
    let approver = Answers::new(None, &[(Effect::Deny, "touch b")]);
    let bench = Bench::new(policy(), SandboxMode::WorkspaceWrite);
    let replies = bench.calls(&approver, &[touch("a"), touch("b")]).await;
    assert_eq!((replies[0].code, replies[1].code), (None, Some("PERMISSION_DENIED")), "{replies:?}");
}
