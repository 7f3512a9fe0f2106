//! Whole runs of an agent whose answers are scripted, on real projects, with the real sandbox.

use cmdgate_harness::agent::{Event, Message, Turn};
use cmdgate_harness::approve::DeferAll;
use cmdgate_harness::{
    ApproveAll, DenyAll, Policy, RunError, RunOutcome, Scripted, Store, TaskContract, Verification, resume,
    run_with,
};
use cmdgate_tests::Project;
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A Node project whose only test fails.
fn failing_project() -> Project {
    let project = Project::new();
    project.write(
        "package.json",
        r#"{ "name": "sum", "version": "1.0.0", "scripts": { "test": "node test.js" } }"#,
    );
    project.write("sum.js", "module.exports = (a, b) => a - b;\n");
    project.write(
        "test.js",
        "const sum = require('./sum');\nif (sum(2, 3) !== 5) { console.error('2 + 3 is ' + sum(2, 3)); process.exit(1); }\nconsole.log('ok');\n",
    );
    project
}

/// The policy of the first example of source b.
fn example_policy() -> Policy {
    Policy::permissive()
        .layer("app")
        .allow_exec("npm*")
        .allow_exec("node*")
        .deny_exec("rm*")
        .deny_exec("git push*")
}

fn npm_test() -> Verification {
    Verification::Command { argv: vec!["npm".into(), "test".into()], expect_exit: 0 }
}

fn store(project: &Project) -> Store {
    Store::open(project.scratch().join("runs.db")).unwrap()
}

/// Rows of the trace as JSON texts.
fn rows(store: &Store, query: &str) -> Vec<Vec<String>> {
    let connection = rusqlite::Connection::open(store.path()).unwrap();
    let mut statement = connection.prepare(query).unwrap();
    let columns = statement.column_count();
    statement
        .query_map([], |row| {
            (0..columns)
                .map(|at| row.get::<_, Option<String>>(at).map(|text| text.unwrap_or_default()))
                .collect()
        })
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap()
}

/// The last reply of a tool that the model was told before its answer number `at`.
fn told(model: &Scripted, at: usize) -> String {
    match model.told()[at].last().unwrap() {
        Message::Tool { text, .. } | Message::User { text } => text.clone(),
        other => panic!("{other:?}"),
    }
}

// contract: P13 P14
#[tokio::test]
async fn the_first_example_of_the_source_mends_a_failing_project() {
    let project = failing_project();
    let store = store(&project);
    let model = Scripted::new([
        Turn::calls("exec", json!({ "argv": ["npm", "test"] })),
        // It claims to be done before it is: the gate says no.
        Turn::says("It should pass."),
        Turn::calls("read_file", json!({ "path": "sum.js" })),
        Turn::calls(
            "write_file",
            json!({ "path": "sum.js", "content": "module.exports = (a, b) => a + b;\n" }),
        ),
        Turn::says("The sum was a difference."),
    ]);
    let calls = Arc::new(Mutex::new(Vec::new()));
    let seen = calls.clone();
    let contract =
        TaskContract::workspace("the test suite is failing; find out why and fix it", project.root())
            .with_verification(npm_test())
            .with_observer(Arc::new(move |event: &Event<'_>| {
                if let Event::ToolCall { name, .. } = event {
                    seen.lock().unwrap().push((*name).to_owned());
                }
            }));
    let result = run_with(&contract, &model, &store, &example_policy(), &ApproveAll).await.unwrap();
    assert_eq!((result.outcome, result.steps), (RunOutcome::Done, 5), "{:?}", model.told().last());
    assert_eq!(result.answer, "The sum was a difference.");
    assert_eq!(*calls.lock().unwrap(), ["exec", "read_file", "write_file"]);
    assert_eq!(
        std::fs::read_to_string(project.root().join("sum.js")).unwrap(),
        "module.exports = (a, b) => a + b;\n"
    );
    assert!(told(&model, 1).contains("2 + 3 is -1"), "{}", told(&model, 1));
    assert!(told(&model, 2).contains("The verification failed"), "{}", told(&model, 2));
    assert!(told(&model, 3).contains("a - b"), "{}", told(&model, 3));

    let gates = rows(&store, "SELECT kind, detail FROM sandbox_events WHERE kind LIKE 'gate%' ORDER BY id");
    let kinds: Vec<&str> = gates.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(kinds, ["gate_output", "gate_phase_failed", "gate_output"]);
    assert!(gates[0][1].contains("2 + 3 is -1") && gates[1][1].contains(r#""phase":"exit""#), "{gates:?}");
    // Each of the five steps, the two gates among them, stands in the trace with its call.
    let steps = rows(&store, "SELECT tool, tool_call, effect FROM steps ORDER BY id");
    assert_eq!(
        steps.iter().map(|row| row[0].as_str()).collect::<Vec<_>>(),
        ["exec", "exec", "read_file", "write_file", "exec"]
    );
    assert!(steps.iter().all(|row| row[2] == "allow"), "{steps:?}");
    // The gate ran in the sandbox with the network off, as everything did.
    let enforced = rows(&store, "SELECT detail FROM sandbox_events WHERE kind = 'enforced'");
    assert_eq!(enforced.len(), 3);
    assert!(
        enforced.iter().all(|row| row[0].contains("workspace_write") && row[0].contains("Closed")),
        "{enforced:?}"
    );
    assert_eq!(store.outcome(result.run_id).unwrap().as_deref(), Some("done"));
    assert!(store.verify().unwrap().faults.is_empty());
}

// contract: P14 S20
#[tokio::test]
async fn what_a_model_must_not_do_is_refused_with_rule_and_layer() {
    let project = failing_project();
    project.write(".env", "TOKEN=CANARY-ENV\n");
    std::os::unix::fs::symlink(project.scratch().join("outside"), project.root().join("way-out")).unwrap();
    let store = store(&project);
    let attempts = [
        Turn::calls("exec", json!({ "argv": ["git", "push", "--force"] })),
        Turn::calls("shell", json!({ "command": "cd src && git   push" })),
        Turn::calls("exec", json!({ "argv": ["/bin/rm", "-rf", "src"] })),
        Turn::calls("shell", json!({ "command": "bash -c 'r''m -rf src'" })),
        Turn::calls("read_file", json!({ "path": ".env" })),
        Turn::calls("shell", json!({ "command": "cat ./src/../.env" })),
        Turn::calls("read_file", json!({ "path": "way-out/secret.txt" })),
        Turn::calls("write_file", json!({ "path": "way-out/new.txt", "content": "x" })),
        Turn::calls("list_dir", json!({ "path": "way-out" })),
        Turn::calls("shell", json!({ "command": "ls", "workdir": "way-out" })),
        Turn::calls("write_file", json!({ "path": ".git/hooks/pre-commit", "content": "x" })),
        Turn::calls("shell_start", json!({ "command": "rm -rf src" })),
    ];
    let model = Scripted::new(attempts.into_iter().chain([Turn::says("I give up.")]));
    let policy = Policy::default().layer("app").allow_exec("npm*").deny_exec("rm*").deny_exec("git push*");
    let contract = TaskContract::workspace("misbehave", project.root());
    let result = run_with(&contract, &model, &store, &policy, &ApproveAll).await.unwrap();
    assert_eq!((result.outcome, result.steps), (RunOutcome::Done, 13));
    let events = rows(
        &store,
        "SELECT effect, act, coalesce(rule, '-'), layer, source FROM policy_events WHERE kind = 'decision' ORDER BY id",
    );
    let of = |at: usize| events[at].join(" ");
    assert_eq!(of(0), "deny exec git push* app rule");
    assert_eq!(of(1), "deny exec git push* app rule");
    assert_eq!(of(2), "deny exec rm* app rule");
    assert_eq!(of(3), "deny exec rm* app rule");
    assert!(of(4).starts_with("deny read ") && of(4).ends_with(" builtin-secrets rule"), "{}", of(4));
    assert!(of(5).starts_with("deny read ") && of(5).ends_with(" builtin-secrets rule"), "{}", of(5));
    for at in 6..10 {
        assert!(of(at).starts_with("deny ") && of(at).ends_with(" path_policy"), "{at}: {}", of(at));
    }
    assert_eq!(of(10), "deny write - built-in path_policy");
    assert_eq!(of(11), "deny exec rm* app rule");
    assert_eq!(events.len(), 12);
    // Nothing of it happened, and the model saw nothing of what it must not see.
    assert!(project.root().join("src/main.py").exists());
    assert!(!project.scratch().join("outside/new.txt").exists());
    assert!(!project.root().join(".git/hooks/pre-commit").exists());
    let all = format!("{:?}", model.told());
    assert!(!all.contains("CANARY-ENV") && !all.contains("CANARY-SECRET"));
    for at in 1..13 {
        let text = told(&model, at);
        assert!(
            text.starts_with("PERMISSION_DENIED") || text.starts_with("PATH_OUTSIDE_ALLOWED_ROOT"),
            "{text}"
        );
    }
    assert!(told(&model, 1).contains("git push*") && told(&model, 1).contains("app"), "{}", told(&model, 1));
}

// contract: P13
#[tokio::test]
async fn a_gate_that_the_exec_policy_does_not_allow_refuses_the_run_before_it_begins() {
    let project = failing_project();
    for (policy, argv) in [
        (Policy::default(), vec!["npm", "test"]),
        (Policy::default().layer("app").ask_exec("npm*"), vec!["npm", "test"]),
        (Policy::permissive().layer("app").deny_exec("npm*"), vec!["npm", "test"]),
        (Policy::permissive().layer("app").deny_exec("rm*"), vec!["bash", "-c", "rm x"]),
        // Known to be harmless is not the same as allowed.
        (Policy::default(), vec!["cat", "a.txt"]),
    ] {
        let store = Store::open(project.scratch().join("gate.db")).unwrap();
        let model = Scripted::default();
        let argv: Vec<String> = argv.into_iter().map(Into::into).collect();
        let contract = TaskContract::workspace("x", project.root())
            .with_verification(Verification::Command { argv: argv.clone(), expect_exit: 0 });
        let error = run_with(&contract, &model, &store, &policy, &ApproveAll).await.unwrap_err();
        assert!(matches!(error, RunError::Gate { .. }), "{argv:?}: {error}");
        assert!(model.told().is_empty(), "the model was asked: {argv:?}");
        let last = rows(&store, "SELECT effect FROM policy_events ORDER BY id DESC LIMIT 1");
        assert_eq!(last, [["deny"]], "{argv:?}");
    }
}

// contract: P13
#[tokio::test]
async fn the_gate_is_confined_where_the_run_is_not() {
    let project = failing_project();
    let store = store(&project);
    let outside = project.scratch().join("outside/made");
    let touch = vec!["touch".to_owned(), outside.to_string_lossy().into_owned()];
    let contract = TaskContract::workspace("x", project.root())
        .with_verification(Verification::Command { argv: touch.clone(), expect_exit: 0 })
        .with_max_steps(1)
        .unsandboxed();
    let model = Scripted::new([Turn::says("done")]);
    let result = run_with(&contract, &model, &store, &Policy::permissive(), &ApproveAll).await.unwrap();
    assert_eq!(result.outcome, RunOutcome::OutOfSteps);
    assert!(!outside.exists(), "the gate wrote outside the project");
    // The same command of the model, which is not confined, works (contract P15).
    let model = Scripted::new([Turn::calls("exec", json!({ "argv": touch })), Turn::says("done")]);
    let contract = TaskContract::workspace("x", project.root()).unsandboxed();
    run_with(&contract, &model, &store, &Policy::permissive(), &ApproveAll).await.unwrap();
    assert!(outside.exists());
}

// contract: P15
#[tokio::test]
async fn commands_are_confined_and_their_environment_is_the_allowlist_unless_opted_out() {
    let project = failing_project();
    let store = store(&project);
    // Cargo sets this for every test.
    let show = json!({ "argv": ["node", "-e", "console.log('got ' + process.env.CARGO_MANIFEST_DIR)"] });
    let touch = json!({ "argv": ["touch", project.scratch().join("outside/made").to_string_lossy()] });
    let script = || {
        Scripted::new([Turn::calls("exec", show.clone()), Turn::calls("exec", touch.clone()), Turn::says("")])
    };
    let contract = TaskContract::workspace("x", project.root());
    let model = script();
    run_with(&contract, &model, &store, &Policy::permissive(), &ApproveAll).await.unwrap();
    assert!(told(&model, 1).contains("got undefined"), "{}", told(&model, 1));
    assert!(!project.scratch().join("outside/made").exists());
    let model = script();
    let open = contract.clone().inherit_environment().unsandboxed();
    run_with(&open, &model, &store, &Policy::permissive(), &ApproveAll).await.unwrap();
    assert!(told(&model, 1).contains(&format!("got {}", env!("CARGO_MANIFEST_DIR"))), "{}", told(&model, 1));
    assert!(project.scratch().join("outside/made").exists());
    // Under a profile that is locked there is no opting out.
    let model = script();
    let hardened = cmdgate_policy::Profile::hardened().with_layers([]);
    run_with(&open, &model, &store, &hardened, &ApproveAll).await.unwrap();
    assert!(told(&model, 2).starts_with("PERMISSION_DENIED"), "{}", told(&model, 2));
    let modes = rows(&store, "SELECT sandbox FROM runs ORDER BY id");
    assert_eq!(modes, [["workspace_write"], ["danger_full_access"], ["read_only"]]);
}

// contract: P11
#[tokio::test]
async fn a_program_that_is_not_there_is_unavailable_and_the_run_goes_on() {
    let project = failing_project();
    let store = store(&project);
    let model = Scripted::new([
        Turn::calls("exec", json!({ "argv": ["no-such-program-here", "x"] })),
        Turn::calls("exec", json!({ "argv": ["node", "-e", "console.log(6 * 7)"] })),
        Turn::says("done"),
    ]);
    let contract = TaskContract::workspace("x", project.root());
    let result = run_with(&contract, &model, &store, &Policy::permissive(), &ApproveAll).await.unwrap();
    assert_eq!(result.outcome, RunOutcome::Done);
    assert!(told(&model, 1).contains("`no-such-program-here` is not available"), "{}", told(&model, 1));
    assert!(told(&model, 2).contains("42"), "{}", told(&model, 2));
}

// contract: P10
#[tokio::test]
async fn exec_has_fifteen_minutes_unless_the_contract_says_otherwise_and_keeps_head_and_tail() {
    let project = failing_project();
    let store = store(&project);
    let contract = TaskContract::workspace("x", project.root());
    assert_eq!(contract.exec_timeout(), Duration::from_mins(15));
    let model = Scripted::new([
        Turn::calls("exec", json!({ "argv": ["sleep", "60"] })),
        Turn::calls("exec", json!({ "argv": ["sleep", "1"], "timeoutMs": 3000 })),
        Turn::calls("exec", json!({ "argv": ["seq", "1", "20000"] })),
        Turn::says("done"),
    ]);
    let contract = contract.with_exec_timeout(Duration::from_secs(2));
    run_with(&contract, &model, &store, &Policy::permissive(), &ApproveAll).await.unwrap();
    assert!(told(&model, 1).contains("TIMEOUT: killed after 2"), "{}", told(&model, 1));
    assert!(told(&model, 2).contains("VALIDATION_ERROR: `timeoutMs`"), "{}", told(&model, 2));
    let long = told(&model, 3);
    assert!(
        long.contains("\n1\n2\n") && long.contains("\n20000\n") && long.contains("lines omitted"),
        "{long}"
    );
}

// contract: P14
#[tokio::test]
async fn every_budget_ends_the_run() {
    let project = failing_project();
    let store = store(&project);
    let list = || Turn::calls("list_dir", json!({})).costing(100);
    let contract = TaskContract::workspace("x", project.root());
    let run = async |contract: TaskContract, turns: Vec<Turn>| {
        run_with(&contract, &Scripted::new(turns), &store, &Policy::default(), &DenyAll).await.unwrap()
    };
    let steps = run(contract.clone().with_max_steps(2), vec![list(), list(), list()]).await;
    assert_eq!((steps.outcome, steps.steps), (RunOutcome::OutOfSteps, 2));
    let tokens = run(contract.clone().with_token_budget(150), vec![list(), list(), list()]).await;
    assert_eq!((tokens.outcome, tokens.tokens), (RunOutcome::OutOfTokens, 200));
    let begun = std::time::Instant::now();
    let sleeps = Turn::calls("shell", json!({ "command": "sleep 50", "timeoutMs": 60_000 }));
    let contract = contract.with_time_budget(Duration::from_secs(2));
    let time =
        run_with(&contract, &Scripted::new([sleeps, list()]), &store, &Policy::permissive(), &DenyAll).await;
    assert_eq!(time.unwrap().outcome, RunOutcome::OutOfTime);
    assert!(begun.elapsed() < Duration::from_secs(20));
    let ended = rows(&store, "SELECT outcome FROM runs ORDER BY id");
    assert_eq!(ended, [["out_of_steps"], ["out_of_tokens"], ["out_of_time"]]);
}

// contract: S17
#[tokio::test]
async fn an_ask_that_nobody_answers_is_told_to_the_model_and_nothing_runs() {
    let project = failing_project();
    let store = store(&project);
    let write = || Turn::calls("write_file", json!({ "path": "new.txt", "content": "x" }));
    let contract = TaskContract::workspace("x", project.root());
    let model = Scripted::new([write(), Turn::says("")]);
    run_with(&contract, &model, &store, &Policy::default(), &DeferAll).await.unwrap();
    assert!(told(&model, 1).starts_with("APPROVAL_REQUIRED"), "{}", told(&model, 1));
    assert!(!project.root().join("new.txt").exists());
    let model = Scripted::new([write(), Turn::says("")]);
    run_with(&contract, &model, &store, &Policy::default(), &ApproveAll).await.unwrap();
    assert!(project.root().join("new.txt").exists());
}

// contract: P14
#[tokio::test]
async fn a_run_that_was_cut_off_goes_on_at_the_step_it_had_reached() {
    let project = failing_project();
    let store = store(&project);
    let contract = TaskContract::workspace("mend it", project.root()).with_verification(npm_test());
    let mend = Turn::calls(
        "write_file",
        json!({ "path": "sum.js", "content": "module.exports = (a, b) => a + b;\n" }),
    );
    // The process dies while the second call runs.
    let model = Scripted::new([mend.clone(), Turn::calls("exec", json!({ "argv": ["sleep", "60"] }))]);
    let policy = example_policy();
    let cut = tokio::time::timeout(
        Duration::from_secs(6),
        run_with(&contract, &model, &store, &policy, &ApproveAll),
    );
    assert!(cut.await.is_err(), "it was to be cut off");
    assert_eq!(model.told().len(), 2, "{:?}", model.told());
    let model = Scripted::new([Turn::says("It is mended.")]);
    let result = resume(1, &contract, &model, &store, &policy, &ApproveAll).await.unwrap();
    assert_eq!((result.outcome, result.run_id, result.steps), (RunOutcome::Done, 1, 3));
    assert!(told(&model, 0).starts_with("INTERRUPTED"), "{}", told(&model, 0));
    // Done is done, another goal is another run, and what is not there cannot go on.
    for (run, contract) in
        [(1, contract.clone()), (1, TaskContract::workspace("else", project.root())), (77, contract)]
    {
        let again = resume(run, &contract, &model, &store, &policy, &ApproveAll).await;
        assert!(matches!(again, Err(RunError::Resume { .. })), "{again:?}");
    }
}

// contract: P13
#[tokio::test]
async fn a_file_can_be_the_verification() {
    let project = failing_project();
    let store = store(&project);
    let contract = TaskContract::workspace("x", project.root())
        .with_verification(Verification::FileContains { file: "note.txt".into(), needle: "done".into() });
    let write = |content: &str| Turn::calls("write_file", json!({ "path": "note.txt", "content": content }));
    let model = Scripted::new([write("not yet"), Turn::says(""), write("it is done"), Turn::says("")]);
    let result = run_with(&contract, &model, &store, &Policy::permissive(), &ApproveAll).await.unwrap();
    assert_eq!((result.outcome, result.steps), (RunOutcome::Done, 4));
    let failed = rows(&store, "SELECT detail FROM sandbox_events WHERE kind = 'gate_phase_failed'");
    assert!(failed.len() == 1 && failed[0][0].contains("content"), "{failed:?}");
}
