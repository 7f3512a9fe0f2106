//! `harness mcp`, driven by the Python SDK: a client that others wrote, in both protocol revisions.

use cmdgate_harness::tools::SERVED;
use cmdgate_tests::{Project, harness_binary, workspace};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Instant;

/// A client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sdk {
    /// `initialize`, server requests: revision 2025-11-25.
    One,
    /// Version 2 in the same way.
    TwoAsOne,
    /// Requests that stand for themselves: revision 2026-07-28.
    Two,
}

const ALL: [Sdk; 3] = [Sdk::One, Sdk::TwoAsOne, Sdk::Two];

impl Sdk {
    const fn version(self) -> &'static str {
        match self {
            Self::One => "1.30.0",
            Self::TwoAsOne | Self::Two => "2.3.0",
        }
    }

    const fn mode(self) -> &'static str {
        match self {
            Self::One | Self::TwoAsOne => "legacy",
            Self::Two => "2026-07-28",
        }
    }

    /// The Python that has it, installed once for all runs; nothing where it cannot be had, which in CI is a failure.
    fn python(self) -> Option<&'static Path> {
        static ONE: OnceLock<Option<PathBuf>> = OnceLock::new();
        static TWO: OnceLock<Option<PathBuf>> = OnceLock::new();
        let place = match self {
            Self::One => &ONE,
            Self::TwoAsOne | Self::Two => &TWO,
        };
        let python = place.get_or_init(|| match install(self.version()) {
            Ok(python) => Some(python),
            Err(why) => {
                let why = format!("the Python SDK {} cannot be installed: {why}", self.version());
                assert!(std::env::var_os("CI").is_none(), "{why}");
                eprintln!("not tested: {why}");
                None
            }
        });
        python.as_deref()
    }
}

fn install(version: &str) -> Result<PathBuf, String> {
    let here = std::env::current_exe().expect("a test has a path");
    let target = here.ancestors().nth(3).expect("tests stand in target/<profile>/deps");
    let venv = target.join(format!("python-mcp-{version}"));
    let python = venv.join("bin/python");
    let runs = |args: &[&str]| {
        let program = if args[0] == "-m" && args[1] == "venv" { Path::new("python3") } else { &python };
        match Command::new(program).args(args).output() {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(error) => Err(error.to_string()),
        }
    };
    if runs(&["-c", "import mcp"]).is_err() {
        runs(&["-m", "venv", "--clear", venv.to_str().ok_or("a path that is not UTF-8")?])?;
        let package = format!("mcp=={version}");
        runs(&["-m", "pip", "install", "--quiet", "--disable-pip-version-check", &package])?;
    }
    Ok(python)
}

/// What a client does and what came of it.
struct Session<'p> {
    project: &'p Project,
    plan: Value,
}

impl<'p> Session<'p> {
    fn new(project: &'p Project, args: &[&str]) -> Self {
        let args = [&["mcp"], args].concat();
        let scratch = project.scratch();
        let plan = json!({
            "command": harness_binary(),
            "args": args,
            "cwd": project.root(),
            "env": {
                "PATH": std::env::var("PATH").unwrap(),
                "HOME": project.home(),
                "XDG_STATE_HOME": scratch.join("state"),
                "XDG_CONFIG_HOME": scratch.join("config"),
            },
        });
        Self { project, plan }
    }

    fn with(mut self, key: &str, value: Value) -> Self {
        self.plan[key] = value;
        self
    }

    /// Takes the steps with one client; nothing where that cannot be had.
    fn steps(mut self, sdk: Sdk, steps: Value) -> Option<Done> {
        let python = sdk.python()?;
        let before = steps_of(self.project).len();
        self.plan["steps"] = steps;
        self.plan["mode"] = sdk.mode().into();
        let mut child = Command::new(python)
            .args(["-W", "ignore"])
            .arg(workspace().join("tests/data/mcp/client.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(self.plan.to_string().as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{sdk:?}: {stderr}");
        let value: Value = serde_json::from_slice(&output.stdout).unwrap();
        for (step, result) in
            self.plan["steps"].as_array().unwrap().iter().zip(value["results"].as_array().unwrap())
        {
            conforms(step, result);
        }
        Some(Done { value, stderr, steps: steps_of(self.project).split_off(before) })
    }
}

/// What a tool answers for a program is what its schema says, also where it is an error.
fn conforms(step: &Value, result: &Value) {
    if let (Some(steps), Some(results)) = (step["parallel"].as_array(), result.as_array()) {
        return steps.iter().zip(results).for_each(|(step, result)| conforms(step, result));
    }
    let Some(tool) = SERVED.iter().find(|tool| step["call"] == tool.name) else { return };
    if let Some(structured) = result.get("structured") {
        let schema = tool.output().unwrap();
        let checked = jsonschema::validate(&schema, structured);
        assert!(checked.is_ok(), "{}: {checked:?}: {structured:#}", tool.name);
    }
}

/// What came of a client's steps.
#[derive(Debug)]
struct Done {
    value: Value,
    /// Of client and server.
    stderr: String,
    /// The steps that came into the trace.
    steps: Vec<Value>,
}

impl Done {
    fn result(&self, at: usize) -> &Value {
        &self.value["results"][at]
    }

    fn text(&self, at: usize) -> &str {
        self.result(at)["text"].as_str().unwrap_or_else(|| panic!("{self:#?}"))
    }

    fn structured(&self, at: usize) -> &Value {
        &self.result(at)["structured"]
    }
}

fn steps_of(project: &Project) -> Vec<Value> {
    let log = project.harness(["log", "--json", "--limit", "100000"]).json();
    let steps = log["steps"].as_array().unwrap().clone();
    assert!(steps.iter().all(|step| step["kind"] == "mcp" || step["kind"] == "command"), "{steps:#?}");
    steps
}

/// How many processes have this in their command line.
fn running(mark: &str) -> usize {
    let ps = Command::new("ps").args(["-eo", "args"]).output().unwrap();
    String::from_utf8_lossy(&ps.stdout).lines().filter(|line| line.contains(mark)).count()
}

fn call(tool: &str, arguments: Value) -> Value {
    json!({ "call": tool, "arguments": arguments })
}

fn run(command: &str) -> Value {
    call("shell_run", json!({ "command": command }))
}

/// The names that an object of this schema requires without describing them, at whatever depth.
fn undescribed(schema: &Value) -> Vec<String> {
    let mut names = Vec::new();
    if let Some(required) = schema["required"].as_array() {
        let properties = schema["properties"].as_object();
        let is_missing = |name: &&str| properties.is_none_or(|properties| !properties.contains_key(*name));
        names
            .extend(required.iter().map(|name| name.as_str().unwrap()).filter(is_missing).map(str::to_owned));
    }
    match schema {
        Value::Object(fields) => names.extend(fields.values().flat_map(undescribed)),
        Value::Array(items) => names.extend(items.iter().flat_map(undescribed)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    names
}

// contract: S2
#[test]
fn the_tools_are_listed_with_their_schemas_and_hints() {
    let project = Project::new();
    for sdk in ALL {
        let Some(done) = Session::new(&project, &[]).steps(sdk, json!([{ "list": true }])) else { continue };
        let expected = if sdk == Sdk::Two { "2026-07-28" } else { "2025-11-25" };
        assert_eq!(done.value["protocol"], expected, "{sdk:?}");
        let tools = done.result(0).as_array().unwrap();
        let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(
            names,
            ["shell_check", "shell_read", "shell_run", "exec", "shell_start", "shell_poll", "shell_kill"]
        );
        for tool in tools {
            let name = tool["name"].as_str().unwrap();
            assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{name}");
            assert_eq!(tool["outputSchema"]["type"], "object", "{name}");
            // A strict validator refuses a schema that requires what it does not describe.
            for schema in [&tool["inputSchema"], &tool["outputSchema"]] {
                let undescribed = undescribed(schema);
                assert!(undescribed.is_empty(), "{name}: {undescribed:?}");
            }
            let hints = &tool["annotations"];
            let hint = |name: &str| hints[name].as_bool().unwrap();
            let reads = ["shell_check", "shell_read", "shell_poll"].contains(&name);
            assert_eq!(hint("readOnlyHint"), reads, "{name}");
            assert_eq!(hint("destructiveHint"), !reads, "{name}");
            assert_eq!(hint("openWorldHint"), ["shell_run", "exec", "shell_start"].contains(&name), "{name}");
            assert!(hints["idempotentHint"].is_boolean(), "{name}");
        }
    }
}

// contract: S1 S13 X6
#[test]
fn looking_says_what_would_happen_and_reading_runs_nothing_else() {
    let project = Project::new();
    for sdk in ALL {
        let session = Session::new(&project, &["--sandbox", "workspace_write", "--approval", "never"]);
        let steps = json!([
            call("shell_check", json!({ "command": "sort a.txt | head -1" })),
            call("shell_check", json!({ "command": "touch made" })),
            call("shell_check", json!({ "command": "ls", "workdir": "../outside" })),
            call("shell_read", json!({ "command": "sort a.txt | head -1" })),
            call("shell_read", json!({ "command": "ls", "workdir": "src" })),
            call("shell_read", json!({ "command": "touch made" })),
            call("shell_read", json!({ "command": "cat ../outside/secret.txt" })),
            call("shell_read", json!({ "command": "git -c core.pager='touch made' log" })),
            call("shell_read", json!({ "command": "ls\ntouch made" })),
        ]);
        let Some(done) = session.steps(sdk, steps) else { continue };
        assert!(done.text(0).starts_with("allow"), "{done:#?}");
        assert_eq!(done.structured(0)["verdict"], "safe", "{done:#?}");
        assert_eq!(
            (&done.structured(1)["effect"], &done.structured(1)["verdict"]),
            (&json!("allow"), &json!("needs_review"))
        );
        assert_eq!(done.structured(2)["code"], "PATH_OUTSIDE_ALLOWED_ROOT", "{done:#?}");
        assert!(done.text(3).contains("stdout:\nalpha\n"), "{done:#?}");
        let ran = &done.structured(3)["run"];
        assert_eq!(ran["exit_code"], 0, "{done:#?}");
        assert_eq!(
            (&ran["enforced"]["mode"], &ran["enforced"]["network"]),
            (&json!("read_only"), &json!("closed")),
            "{ran}"
        );
        assert!(done.text(4).contains("main.py"), "{done:#?}");
        for at in 5..9 {
            assert_eq!(done.structured(at)["code"], "PERMISSION_DENIED", "{at}: {done:#?}");
            assert_eq!(done.result(at)["error"], true, "{at}: {done:#?}");
            assert!(!done.text(at).contains("CANARY"), "{at}: {done:#?}");
        }
        assert!(!project.root().join("made").exists());
        assert_eq!(done.steps.len(), 6, "a look is no step, whatever runs or is refused is one");
    }
}

// contract: S1 P1 X6
#[test]
fn the_whole_policy_counts_for_what_runs() {
    let project = Project::new();
    project.write_beside(
        "config/cmdgate/policy.toml",
        "[[rule]]\nact = \"exec\"\neffect = \"deny\"\npattern = \"curl **\"\n",
    );
    for sdk in ALL {
        let session = Session::new(&project, &["--sandbox", "workspace_write", "--approval", "never"]);
        let odd = "a;b && touch made $(touch made) | x > y";
        let steps = json!([
            run("touch made-by-shell && ls"),
            call("exec", json!({ "argv": ["printf", "%s", odd] })),
            run("bash -c 'curl example.com'"),
            call("exec", json!({ "argv": ["env", "curl", "example.com"] })),
            call("shell_start", json!({ "command": "curl example.com" })),
            run("false"),
            call("exec", json!({ "argv": ["no-such-program-here"] })),
            call("shell_run", json!({ "command": "sleep 30", "timeoutMs": 1000 })),
        ]);
        let Some(done) = session.steps(sdk, steps) else { continue };
        assert!(done.text(0).contains("made-by-shell"), "{done:#?}");
        std::fs::remove_file(project.root().join("made-by-shell")).unwrap();
        assert_eq!(done.structured(1)["run"]["stdout"]["text"], odd, "{done:#?}");
        for at in 2..5 {
            assert_eq!(done.structured(at)["code"], "PERMISSION_DENIED", "{at}: {done:#?}");
            assert!(done.structured(at)["rule"].as_str().unwrap().contains("curl"), "{at}: {done:#?}");
        }
        // A command that says no has run.
        assert_eq!(
            (&done.structured(5)["run"]["exit_code"], &done.result(5)["error"]),
            (&json!(1), &json!(false))
        );
        assert_eq!(done.structured(6)["code"], "UNAVAILABLE", "{done:#?}");
        assert_eq!(
            (&done.structured(7)["code"], &done.structured(7)["run"]["outcome"]),
            (&json!("TIMEOUT"), &json!("timed_out"))
        );
        assert!(!project.root().join("made").exists() && !project.root().join("y").exists());
        let step = done.steps.last().unwrap();
        assert_eq!((&step["effect"], &step["outcome"]), (&json!("allow"), &json!("timed_out")), "{done:#?}");
    }
}

// contract: S1 P1
#[test]
fn bad_arguments_name_the_field_and_start_nothing() {
    let project = Project::new();
    let cases = [
        ("shell_run", json!({}), "command"),
        ("shell_run", json!({ "command": " \n" }), "command"),
        ("shell_run", json!({ "command": 7 }), "command"),
        ("shell_run", json!({ "command": "touch made", "timeoutMs": 60_001 }), "timeoutMs"),
        ("shell_run", json!({ "command": "touch made", "timeoutMs": "2000" }), "timeoutMs"),
        ("shell_run", json!({ "command": "touch made", "force": true }), "force"),
        ("shell_run", json!({ "command": "touch made\u{0}" }), "command"),
        ("shell_read", json!({ "command": "ls", "sandbox": "none" }), "sandbox"),
        ("shell_check", json!({ "command": "ls", "timeoutMs": 2000 }), "timeoutMs"),
        ("exec", json!({ "argv": "touch made" }), "argv"),
        ("exec", json!({ "argv": ["touch", 7] }), "argv[1]"),
        ("shell_start", json!({ "command": "touch made", "timeoutMs": 2000 }), "timeoutMs"),
        ("shell_poll", json!({}), "id"),
        ("shell_kill", json!({ "id": "1" }), "id"),
    ];
    let steps: Vec<Value> = cases.iter().map(|(tool, arguments, _)| call(tool, arguments.clone())).collect();
    for sdk in ALL {
        let session = Session::new(&project, &["--sandbox", "workspace_write", "--approval", "never"]);
        let mut steps = steps.clone();
        steps.push(call("shell_kill", json!({ "id": 99 })));
        steps.push(call("launch_missiles", json!({})));
        steps.push(call("shell", json!({ "command": "ls" })));
        let Some(done) = session.steps(sdk, json!(steps)) else { continue };
        for (at, (tool, arguments, field)) in cases.iter().enumerate() {
            assert_eq!(done.structured(at)["code"], "VALIDATION_ERROR", "{tool} {arguments}: {done:#?}");
            assert_eq!(
                (&done.structured(at)["reply"], &done.result(at)["error"]),
                (&json!("invalid"), &json!(true))
            );
            assert!(done.text(at).contains(&format!("`{field}`")), "{tool} {arguments}: {done:#?}");
        }
        assert_eq!(done.structured(cases.len())["code"], "NOT_FOUND", "{done:#?}");
        for at in [cases.len() + 1, cases.len() + 2] {
            assert!(
                done.result(at)["raised"].is_string() && done.text(at).contains("shell_check"),
                "{done:#?}"
            );
        }
        assert_eq!(done.steps.len(), 0, "a malformed call is no step");
        assert!(!project.root().join("made").exists());
    }
}

// contract: S17 P7
#[test]
fn a_person_is_asked_through_the_client() {
    let project = Project::new();
    let yes = json!({ "action": "accept", "content": { "decision": "allow_once" } });
    for (answer, runs, told) in [
        (yes.clone(), true, ""),
        (
            json!({ "action": "accept", "content": { "decision": "deny", "feedback": "use make" } }),
            false,
            "use make",
        ),
        (json!({ "action": "decline" }), false, "declined"),
        (json!({ "action": "cancel" }), false, "closed the question"),
        (json!({ "action": "accept", "content": { "decision": "maybe" } }), false, "no decision"),
    ] {
        for sdk in ALL {
            let session =
                Session::new(&project, &["--sandbox", "workspace_write"]).with("elicit", answer.clone());
            let steps =
                json!([call("shell_run", json!({ "command": "touch made; echo done", "workdir": "src" }))]);
            let Some(done) = session.steps(sdk, steps) else { continue };
            let asked = done.value["elicited"].as_array().unwrap();
            assert_eq!(asked.len(), 1, "{sdk:?}: {done:#?}");
            let message = asked[0]["message"].as_str().unwrap();
            for part in ["touch made; echo done", "in src of", "not known to be harmless", "runs: touch made"]
            {
                assert!(message.contains(part), "{part}: {message}");
            }
            assert_eq!(asked[0]["schema"]["required"], json!(["decision"]), "{asked:?}");
            let made = project.root().join("src/made");
            assert_eq!(made.exists(), runs, "{sdk:?} {answer}: {done:#?}");
            let step = done.steps.last().unwrap();
            assert_eq!((&step["effect"], &step["kind"]), (&json!("ask"), &json!("mcp")), "{done:#?}");
            if runs {
                std::fs::remove_file(made).unwrap();
                assert!(done.text(0).contains("stdout:\ndone"), "{done:#?}");
                assert_eq!(step["outcome"], "exited", "{done:#?}");
            } else {
                assert_eq!(done.structured(0)["code"], "PERMISSION_DENIED", "{done:#?}");
                assert!(done.text(0).contains(told), "{told}: {done:#?}");
            }
        }
    }
    let left = project.harness(["approvals", "list", "--json"]).json();
    assert_eq!(left["approvals"], json!([]), "what was answered does not wait");
}

// contract: S17 P9
#[test]
fn a_client_that_cannot_ask_gets_the_number_of_the_kept_question() {
    let project = Project::new();
    for sdk in ALL {
        let session = Session::new(&project, &["--sandbox", "workspace_write"]);
        let Some(done) = session
            .steps(sdk, json!([run("touch made"), call("exec", json!({ "argv": ["touch", "made"] }))]))
        else {
            continue;
        };
        for at in 0..2 {
            assert_eq!(done.structured(at)["code"], "APPROVAL_REQUIRED", "{done:#?}");
            let id = done.structured(at)["approval"].as_i64().unwrap().to_string();
            assert!(done.text(at).contains(&format!("as approval {id}")), "{done:#?}");
            assert!(!project.root().join("made").exists());
            let shown = project.harness(["approvals", "approve", &id]);
            assert_eq!(shown.code, 0, "{shown:?}");
            let resumed = project.harness(["approvals", "resume", &id]);
            assert_eq!(resumed.code, 0, "{resumed:?}");
            std::fs::remove_file(project.root().join("made")).unwrap();
        }
    }
}

// contract: S17 P7
#[test]
fn a_person_who_does_not_answer_in_time_finds_the_question_kept() {
    let project = Project::new();
    // Version 1 reads nothing while its person thinks, and hears of no end.
    for sdk in [Sdk::TwoAsOne] {
        let args = ["--sandbox", "workspace_write", "--answer-timeout-ms", "1000"];
        let session = Session::new(&project, &args).with("elicit", json!("silence"));
        let begun = Instant::now();
        let Some(done) = session.steps(sdk, json!([run("touch made")])) else { continue };
        assert_eq!(done.structured(0)["code"], "APPROVAL_REQUIRED", "{done:#?}");
        assert!(done.structured(0)["approval"].is_i64(), "{done:#?}");
        assert!(begun.elapsed().as_secs() < 60, "{done:#?}");
        assert!(!project.root().join("made").exists());
    }
}

// contract: P7
#[test]
fn a_rule_for_the_session_ends_with_the_server() {
    let project = Project::new();
    let session = json!({ "action": "accept", "content": { "decision": "allow_session" } });
    let no = json!({ "action": "decline" });
    for sdk in ALL {
        let answers = json!([session, no]);
        let client =
            || Session::new(&project, &["--sandbox", "workspace_write"]).with("elicit", answers.clone());
        let steps =
            json!([run("cargo --version"), run("cargo --version"), run("cargo new x"), run("touch made")]);
        let Some(done) = client().steps(sdk, steps) else { continue };
        let asked = done.value["elicited"].as_array().unwrap();
        assert_eq!(asked.len(), 3, "the same command is asked about once: {done:#?}");
        assert!(asked[0]["message"].as_str().unwrap().contains("allow_session also lets"), "{asked:?}");
        assert_eq!(done.structured(1)["effect"], "allow", "{done:#?}");
        assert_eq!(done.structured(2)["code"], "PERMISSION_DENIED", "{done:#?}");
        assert_eq!(done.structured(3)["code"], "PERMISSION_DENIED", "{done:#?}");
        let again = client().with("elicit", json!([no])).steps(sdk, json!([run("cargo --version")])).unwrap();
        assert_eq!(again.structured(0)["code"], "PERMISSION_DENIED", "{again:#?}");
    }
}

// contract: P16
#[test]
fn background_commands_are_polled_killed_and_die_with_the_server() {
    let project = Project::new();
    for sdk in ALL {
        let session = Session::new(&project, &["--sandbox", "workspace_write", "--approval", "never"]);
        let start = |command: &str| call("shell_start", json!({ "command": command }));
        let poll = call("shell_poll", json!({ "id": 1 }));
        let kill = call("shell_kill", json!({ "id": 1 }));
        let mut steps = vec![
            start("echo first; sleep 93.5; touch made"),
            json!({ "sleep": 1.0 }),
            poll.clone(),
            poll.clone(),
            kill,
            poll,
        ];
        steps.extend(vec![start("sleep 93.5"); 9]);
        let Some(done) = session.steps(sdk, json!(steps)) else { continue };
        assert_eq!(done.structured(0)["background"]["id"], 1, "{done:#?}");
        let polled = &done.structured(2)["background"];
        assert_eq!(
            (&polled["state"], &polled["stdout"]["text"]),
            (&json!("running"), &json!("first\n")),
            "{done:#?}"
        );
        assert_eq!(done.structured(3)["background"]["stdout"]["text"], "", "told once: {done:#?}");
        assert_eq!(done.structured(4)["background"]["outcome"], "cancelled", "{done:#?}");
        assert_eq!(done.structured(5)["background"]["state"], "ended", "{done:#?}");
        for at in 6..14 {
            assert_eq!(done.structured(at)["reply"], "background", "{at}: {done:#?}");
        }
        assert_eq!(done.structured(14)["code"], "EXECUTION_ERROR", "the ninth: {done:#?}");
        assert_eq!(running("sleep 93.5"), 0, "nothing outlives the server");
        assert!(!project.root().join("made").exists());
        for step in &done.steps {
            assert!(step["outcome"].is_string(), "every end is recorded: {done:#?}");
        }
    }
}

// contract: X6
#[test]
fn ten_calls_at_once_are_all_answered() {
    let project = Project::new();
    for sdk in ALL {
        let session = Session::new(&project, &["--sandbox", "workspace_write", "--approval", "never"]);
        let mut calls: Vec<Value> = (0..5)
            .map(|at| run(&format!("test ! -e busy && touch busy && sleep 0.2 && rm busy && echo did-{at}")))
            .collect();
        calls.extend((0..3).map(|_| call("shell_read", json!({ "command": "sort a.txt" }))));
        calls.push(call("shell_check", json!({ "command": "ls" })));
        calls.push(call("exec", json!({ "argv": ["touch", 7] })));
        let Some(done) = session.steps(sdk, json!([{ "parallel": calls }])) else { continue };
        let results = done.result(0).as_array().unwrap();
        for (at, result) in results.iter().take(5).enumerate() {
            // One after the other: none found another one at work.
            assert!(result["text"].as_str().unwrap().contains(&format!("did-{at}")), "{done:#?}");
        }
        for result in results.iter().skip(5).take(3) {
            assert!(result["text"].as_str().unwrap().contains("alpha"), "{done:#?}");
        }
        assert_eq!(results[8]["structured"]["effect"], "allow", "{done:#?}");
        assert_eq!(results[9]["structured"]["code"], "VALIDATION_ERROR", "{done:#?}");
    }
}

// contract: S1
#[test]
fn a_long_command_tells_its_progress_and_dies_when_its_call_is_cancelled() {
    let project = Project::new();
    for sdk in ALL {
        let session = Session::new(&project, &["--sandbox", "workspace_write", "--approval", "never"]);
        let steps = json!([
            { "call": "shell_run", "arguments": { "command": "sleep 3.5" }, "progress": true },
            { "call": "shell_run", "arguments": { "command": "sleep 94.5 & sleep 94.5; touch made", "timeoutMs": 60_000 },
              "cancel_after": 1.5 },
            { "sleep": 1.5 },
            call("exec", json!({ "argv": ["pgrep", "-fc", "sleep 94.5"] })),
            { "call": "shell_run", "arguments": { "command": "sleep 94.5", "timeoutMs": 60_000 }, "cancel_after": 1.5 },
        ]);
        let Some(done) = session.steps(sdk, steps) else { continue };
        let told = done.result(0)["progress"].as_array().unwrap();
        assert!(told.len() >= 2, "{sdk:?}: {done:#?}");
        let seconds: Vec<f64> = told.iter().map(|one| one[0].as_f64().unwrap()).collect();
        assert!(seconds.windows(2).all(|pair| pair[0] < pair[1]), "progress grows: {seconds:?}");
        assert!(told[0][1].as_str().unwrap().contains("running"), "{told:?}");
        assert_eq!(running("sleep 94.5"), 0, "{sdk:?}: {done:#?}");
        assert!(!project.root().join("made").exists());
        let cancelled = done.steps.iter().filter(|step| step["outcome"] == "cancelled").count();
        assert_eq!(cancelled, 2, "{sdk:?}: {done:#?}");
    }
}

// contract: S16 S20
#[test]
fn the_clients_root_is_the_project() {
    let project = Project::new();
    project.write_beside("other place/b.txt", "B\n");
    let uri = |path: &str| format!("file://{}", project.scratch().join(path).display());
    let read = |command: &str| call("shell_read", json!({ "command": command }));
    for sdk in ALL {
        let session = || Session::new(&project, &[]).with("cwd", json!("/"));
        // One root, with a space in its name.
        let Some(done) = session()
            .with("roots", json!([uri("other%20place")]))
            .steps(sdk, json!([read("ls"), read("ls ../outside")]))
        else {
            continue;
        };
        assert!(done.text(0).contains("b.txt"), "{done:#?}");
        assert_eq!(done.structured(1)["code"], "PERMISSION_DENIED", "{done:#?}");
        // Several: the first.
        let roots = json!([uri("project"), uri("other%20place")]);
        let done = session()
            .with("roots", roots)
            .steps(
                sdk,
                json!([
                    read("ls"),
                    call(
                        "shell_read",
                        json!({ "command": "ls", "workdir": project.scratch().join("other place") })
                    )
                ]),
            )
            .unwrap();
        assert!(done.text(0).contains("a.txt"), "{done:#?}");
        assert_eq!(done.structured(1)["code"], "PATH_OUTSIDE_ALLOWED_ROOT", "{done:#?}");
        assert!(done.stderr.contains("of the client's 2 roots, the first is the project"), "{done:#?}");
        // None that can be a project.
        for (roots, told) in [
            (json!(["file:///"]), "the whole file system is no project"),
            (json!(["https://example.com/project"]), "not a file URI"),
            (json!(["file://elsewhere/project"]), "on another host"),
            (json!([uri("project/a.txt")]), "not a directory"),
            (json!([uri("nowhere")]), "cannot be the project"),
            // No root at all: the working directory, which is / here.
            (json!([]), "the working directory is /"),
        ] {
            let done =
                session().with("roots", roots.clone()).steps(sdk, json!([read("ls"), read("ls")])).unwrap();
            for at in 0..2 {
                assert_eq!(done.structured(at)["code"], "NO_PROJECT", "{roots}: {done:#?}");
                assert!(done.text(at).contains(told), "{roots}: {done:#?}");
            }
        }
        // A client without roots: the working directory, and the repository around it.
        let done = Session::new(&project, &[])
            .with("cwd", json!(project.root().join("src")))
            .steps(sdk, json!([read("ls")]))
            .unwrap();
        assert!(done.text(0).contains("a.txt"), "{done:#?}");
        // The command line is stronger.
        let root = project.root();
        let args = ["--root", root.to_str().unwrap()];
        let done = Session::new(&project, &args)
            .with("cwd", json!("/"))
            .with("roots", json!(["file:///"]))
            .steps(sdk, json!([read("ls")]))
            .unwrap();
        assert!(done.text(0).contains("a.txt"), "{done:#?}");
    }
}

// contract: P16 S16
#[test]
fn a_root_that_changes_makes_another_project() {
    let project = Project::new();
    project.write_beside("other/b.txt", "B\n");
    project.write_beside(
        "other/.cmdgate.toml",
        "[[rule]]\nact = \"exec\"\neffect = \"deny\"\npattern = \"head **\"\n",
    );
    let uri = |path: &str| format!("file://{}", project.scratch().join(path).display());
    let read = |command: &str| call("shell_read", json!({ "command": command }));
    for sdk in [Sdk::One, Sdk::TwoAsOne] {
        let session = Session::new(&project, &["--sandbox", "workspace_write", "--approval", "never"])
            .with("roots", json!([uri("project")]));
        let steps = json!([
            read("head -1 a.txt"),
            call("shell_start", json!({ "command": "sleep 95.5" })),
            { "roots": [uri("other")] },
            { "sleep": 0.3 },
            read("head -1 b.txt"),
            read("cat b.txt"),
            call("shell_poll", json!({ "id": 1 })),
            call("shell_run", json!({ "command": "pgrep -c -f 'sleep 95.[5]'" })),
            { "roots": ["file:///"] },
            { "sleep": 0.3 },
            read("cat b.txt"),
            { "roots": [uri("project")] },
            { "sleep": 0.3 },
            read("cat a.txt"),
        ]);
        let Some(done) = session.steps(sdk, steps) else { continue };
        assert!(done.text(0).contains("gamma"), "{done:#?}");
        assert_eq!(
            done.structured(4)["code"],
            "PERMISSION_DENIED",
            "the other project's own rule: {done:#?}"
        );
        assert!(done.text(5).contains("stdout:\nB"), "{done:#?}");
        assert_eq!(
            done.structured(6)["code"],
            "NOT_FOUND",
            "what ran in the old project has ended: {done:#?}"
        );
        assert_eq!(done.structured(10)["code"], "NO_PROJECT", "{done:#?}");
        assert!(done.text(13).contains("gamma"), "{done:#?}");
        assert_eq!(running("sleep 95.5"), 0);
    }
}
