//! `harness agent` as a whole process, against a server of models on this machine.

use cmdgate_tests::model::{Behaviour, ModelServer, calls, raw, says, silent, status};
use cmdgate_tests::{Project, Ran, harness_binary};
use serde_json::json;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const KEY: &str = "sk-canary-4242";
const MEND: &str = r#"{"path": "sum.sh", "content": "echo $(($1 + $2))\n"}"#;

/// A project whose only test fails, and a policy that lets it run.
fn failing_project() -> Project {
    let project = Project::new();
    project.write("sum.sh", "echo $(($1 - $2))\n");
    project.write("test.sh", "[ \"$(bash sum.sh 2 3)\" = 5 ] || { echo '2 + 3 is wrong'; exit 1; }\n");
    project.write_beside(
        "config/cmdgate/policy.toml",
        "[[rule]]\nact = \"exec\"\neffect = \"allow\"\npattern = \"bash test.sh\"\nwhole = true\n\
         [[rule]]\nact = \"exec\"\neffect = \"deny\"\npattern = \"git push **\"\n",
    );
    project
}

/// A `harness agent` command that asks this server.
fn agent(project: &Project, server: &ModelServer, args: &[&str]) -> Command {
    let mut command = project.command([&["agent"], args].concat());
    command
        .env("OPENROUTER_API_KEY", KEY)
        .env("OPENROUTER_MODEL", "some/model")
        .env("OPENROUTER_BASE_URL", server.url())
        .stdin(Stdio::null());
    command
}

fn run(project: &Project, script: Vec<Behaviour>, args: &[&str]) -> (Ran, ModelServer) {
    let server = ModelServer::start(script);
    let ran: Ran = agent(project, &server, args).output().unwrap().into();
    assert!(!ran.stdout.contains(KEY) && !ran.stderr.contains(KEY), "{ran:?}");
    (ran, server)
}

// contract: P13 P14
#[test]
fn a_goal_is_worked_on_until_the_verification_passes() {
    let project = failing_project();
    let script = vec![
        calls("exec", r#"{"argv": ["bash", "test.sh"]}"#),
        calls("exec", r#"{"argv": ["git", "push"]}"#),
        says("It should pass."),
        calls("write_file", MEND),
        says("The sum was a\u{1b}[2J difference."),
    ];
    let args = ["mend the tests", "--verify", "bash test.sh", "--approval", "never"];
    let (ran, server) = run(&project, script, &args);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.stdout, "The sum was a\\u{1b}[2J difference.\n");
    for line in [
        "model some/model at http://127.0.0.1",
        "  1  exec bash test.sh",
        "Exit code: 1",
        "  2  exec git push",
        "PERMISSION_DENIED",
        "the verification failed",
        "  4  write_file sum.sh",
        "     verified",
        "harness: done after 5 answers and 50 tokens",
    ] {
        assert!(ran.stderr.contains(line), "{line}: {}", ran.stderr);
    }
    // Without a terminal there is nothing that moves.
    assert!(!ran.stderr.contains('\u{1b}') && !ran.stderr.contains('\r'), "{:?}", ran.stderr);
    assert_eq!(server.asked().len(), 5);
    let told = server.asked()[3].body["messages"].to_string();
    assert!(told.contains("The verification failed") && told.contains("2 + 3 is wrong"), "{told}");
    let log = project.harness(["log", "--refused", "--json"]).json();
    assert_eq!(
        (&log["steps"][0]["command"], &log["steps"][0]["rule"]),
        (&json!("git push"), &json!("git push **"))
    );
    assert_eq!(project.harness(["log", "verify"]).code, 0);
    for file in std::fs::read_dir(project.scratch().join("state/cmdgate")).unwrap() {
        let path = file.unwrap().path();
        if path.is_file() {
            let bytes = std::fs::read(path).unwrap();
            assert!(!String::from_utf8_lossy(&bytes).contains(KEY));
        }
    }
}

// contract: P14
#[test]
fn json_says_how_it_ended_and_the_exit_code_too() {
    let project = failing_project();
    let list = || calls("list_dir", "{}");
    let (done, _) = run(&project, vec![says("It is fine.")], &["look", "--json"]);
    let value = done.json();
    assert_eq!((done.code, &value["outcome"], &value["answer"]), (0, &json!("done"), &json!("It is fine.")));
    assert_eq!(
        (&value["model"], &value["steps"], &value["tokens"]),
        (&json!("some/model"), &json!(1), &json!(10))
    );
    let (steps, _) = run(&project, vec![list(), list(), list()], &["look", "--json", "--max-steps", "2"]);
    assert_eq!((steps.code, &steps.json()["outcome"]), (1, &json!("out_of_steps")), "{steps:?}");
    let (tokens, _) = run(&project, vec![list(), list()], &["look", "--json", "--max-tokens", "5"]);
    assert_eq!((tokens.code, &tokens.json()["outcome"]), (1, &json!("out_of_tokens")), "{tokens:?}");
    let (failed, server) = run(
        &project,
        vec![status(401, "", r#"{"error":"no"}"#)],
        &["look", "--json", "--model", "other/one"],
    );
    assert_eq!((failed.code, &failed.json()["outcome"]), (125, &json!("failed")), "{failed:?}");
    assert!(failed.json()["error"].as_str().unwrap().contains("OPENROUTER_API_KEY"), "{failed:?}");
    assert_eq!(server.asked()[0].body["model"], "other/one");
}

// contract: P14
#[test]
fn between_two_attempts_the_cause_the_wait_and_the_number_are_said() {
    let project = failing_project();
    let busy = || status(429, "retry-after: 0\r\n", r#"{"error":{"message":"too many\u001b[2J of you"}}"#);
    let script = vec![busy(), raw("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{"), says("done")];
    let (ran, server) = run(&project, script, &["x", "--json"]);
    assert_eq!((ran.code, server.asked().len()), (0, 3), "{ran:?}");
    for line in [
        "the server answered 429: too many\\u{1b}[2J of you\n     again in 0.0 s: attempt 2 of 5\n",
        "again in 2.",
        "attempt 3 of 5\n",
    ] {
        assert!(ran.stderr.contains(line), "{line}: {}", ran.stderr);
    }
    assert_eq!(ran.json()["outcome"], "done");
}

// contract: P13
#[test]
fn what_cannot_be_begun_is_said_before_anything_is_asked() {
    let project = failing_project();
    let (gate, server) = run(&project, vec![says("x")], &["x", "--verify", "npm test"]);
    assert!(gate.code == 126 && gate.stderr.contains("npm test"), "{gate:?}");
    assert!(server.asked().is_empty());
    for (args, named) in [
        (&["x", "--verify", "npm test && ls"][..], "one program"),
        (&["x", "--expect-exit", "1"], "--verify"),
        (&[" "], "goal is empty"),
        (&[], "GOAL"),
        (&["x", "--workdir", "src"], "--root"),
        (&["x", "--max-steps", "0"], "max-steps"),
    ] {
        let (ran, server) = run(&project, vec![says("x")], args);
        assert!(ran.code == 2 && ran.stderr.contains(named), "{args:?}: {ran:?}");
        assert!(server.asked().is_empty());
    }
    let server = ModelServer::start([says("x")]);
    let ran: Ran = agent(&project, &server, &["x"]).env_remove("OPENROUTER_API_KEY").output().unwrap().into();
    assert!(ran.code == 2 && ran.stderr.contains("OPENROUTER_API_KEY"), "{ran:?}");
    let ran: Ran =
        agent(&project, &server, &["x"]).env("OPENROUTER_BASE_URL", "no address").output().unwrap().into();
    assert!(ran.code == 2 && ran.stderr.contains("OPENROUTER_BASE_URL"), "{ran:?}");
    project.write_beside("config/cmdgate/policy.toml", "nonsense = 1\n");
    let (ran, _) = run(&project, vec![says("x")], &["x"]);
    assert_eq!(ran.code, 3, "{ran:?}");
}

// contract: P14
#[test]
fn a_run_whose_server_failed_is_resumed() {
    let project = failing_project();
    let bad = || status(402, "", r#"{"error":{"message":"no credit"}}"#);
    let args = ["mend it", "--verify", "bash test.sh", "--approval", "never"];
    let (failed, _) = run(&project, vec![calls("write_file", MEND), bad()], &args);
    assert!(failed.code == 125 && failed.stderr.contains("no credit"), "{failed:?}");
    assert!(failed.stderr.contains("harness agent --resume 1"), "{failed:?}");
    let args = ["--resume", "1", "--verify", "bash test.sh", "--json"];
    let (resumed, server) = run(&project, vec![says("mended")], &args);
    assert_eq!((resumed.code, &resumed.json()["run"]), (0, &json!(1)), "{resumed:?}");
    assert!(server.asked()[0].body["messages"].to_string().contains("mend it"));
    let (again, _) = run(&project, vec![says("x")], &args);
    assert!(again.code == 1 && again.json()["error"].as_str().unwrap().contains("it is done"), "{again:?}");
    let other = project.scratch().join("outside");
    let elsewhere = [&args[..], &["--root", other.to_str().unwrap()]].concat();
    let (elsewhere, _) = run(&project, vec![says("x")], &elsewhere);
    assert!(elsewhere.code == 1 && elsewhere.stdout.contains("it worked in"), "{elsewhere:?}");
    let (none, _) = run(&project, vec![says("x")], &["--resume", "99"]);
    assert!(none.code == 1 && none.stderr.contains("99"), "{none:?}");
}

// contract: S17 P9
#[test]
fn without_a_terminal_a_question_is_kept_for_later() {
    let project = failing_project();
    let script = vec![calls("shell", r#"{"command": "touch made.txt"}"#), says("I could not.")];
    let (ran, server) = run(&project, script, &["x"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let told = server.asked()[1].body["messages"].to_string();
    assert!(told.contains("APPROVAL_REQUIRED") && told.contains("approval 1"), "{told}");
    assert!(!project.root().join("made.txt").exists());
    // That a run has other settings than a single command is no change.
    let show = project.harness(["approvals", "show", "1"]);
    assert!(show.code == 0 && !show.stdout.contains("changed since"), "{show:?}");
    assert_eq!(project.harness(["approvals", "approve", "1"]).code, 0);
    let resumed = project.harness(["approvals", "resume", "1"]);
    assert!(resumed.code == 0 && !resumed.stderr.contains("changed"), "{resumed:?}");
    assert!(project.root().join("made.txt").exists());
}

// contract: P9 S17
#[test]
fn a_file_to_write_is_kept_with_its_content_shown_as_a_difference_and_written_once() {
    let project = failing_project();
    let mut sent = vec![calls("write_file", MEND)];
    let new = |content: &str| {
        calls("write_file", &json!({ "path": "deep/new.txt", "content": content }).to_string())
    };
    sent.extend([new("one\n\u{1b}[2Jtwo\n"), new(&format!("{}{}", "ghp_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4"))]);
    sent.extend([new(&"x".repeat((1 << 20) + 1)), calls("read_file", r#"{"path": "a.txt"}"#), says("done")]);
    let (ran, server) = run(&project, sent, &["x"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let told = server.asked().last().unwrap().body["messages"].to_string();
    assert!(told.contains("approval 3") && !told.contains("approval 4"), "{told}");
    let list = project.harness(["approvals", "list"]).stdout;
    assert!(list.contains("write sum.sh") && list.contains("write deep/new.txt"), "{list}");
    let show = |id: &str| project.harness(["approvals", "show", id]).stdout;
    assert!(show("1").contains("\n  -echo $(($1 - $2))\n  +echo $(($1 + $2))\n"), "{}", show("1"));
    assert!(show("2").contains("a new file:\n  +one\n  +\\u{1b}[2Jtwo\n"), "{}", show("2"));
    assert!(!show("3").contains("ghp_"), "{}", show("3"));
    let json = project.harness(["approvals", "show", "1", "--json"]).json();
    assert_eq!((&json["command"], &json["content"]), (&json!("write sum.sh"), &json!("echo $(($1 + $2))\n")));
    let secret = project.harness(["approvals", "approve", "3"]);
    assert!(secret.code == 1 && secret.stderr.contains("secret"), "{secret:?}");
    for id in ["1", "2"] {
        assert_eq!(project.harness(["approvals", "approve", id]).code, 0);
    }
    // The file that would be replaced is another one by now.
    project.write("sum.sh", "echo other\n");
    let resume = |args: &[&str]| project.harness([&["approvals", "resume"], args].concat());
    let ran = resume(&["1"]);
    assert!(ran.code == 126 && ran.stderr.contains("sum.sh has another content"), "{ran:?}");
    let ran = resume(&["1", "--force"]);
    assert!(ran.code == 0 && ran.stdout.contains("wrote 18 bytes to sum.sh"), "{ran:?}");
    assert_eq!(std::fs::read_to_string(project.root().join("sum.sh")).unwrap(), "echo $(($1 + $2))\n");
    assert_eq!(resume(&["1"]).code, 1, "once");
    // A deny that came meanwhile holds.
    project.write_beside(
        "config/cmdgate/policy.toml",
        "[[rule]]\nact = \"write\"\neffect = \"deny\"\npattern = \"deep/*\"\n",
    );
    let ran = resume(&["2", "--json"]);
    assert_eq!((ran.code, &ran.json()["reply"]), (126, &json!("refused")), "{ran:?}");
    assert!(ran.json()["reason"].as_str().unwrap().contains("deep/*"), "{ran:?}");
    assert!(!project.root().join("deep").exists());
    let log = project.harness(["log", "--json"]).json();
    let outcome = |at: usize| log["steps"].as_array().unwrap()[at].clone();
    let steps = log["steps"].as_array().unwrap().len();
    assert_eq!(
        (&outcome(steps - 2)["status"], &outcome(steps - 1)["status"]),
        (&json!("approved"), &json!("denied"))
    );
    assert_eq!(project.harness(["log", "verify"]).code, 0);
}

/// Whether a process with this argument is there.
#[cfg(target_os = "linux")]
fn lives(argument: &str) -> bool {
    std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == argument.as_bytes())
    })
}

#[cfg(target_os = "linux")]
fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

// contract: P14 P16
#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_ends_the_run_and_everything_it_started() {
    for (mode, signal, time) in
        [("workspace_write", "-INT", "4713.25"), ("danger_full_access", "-TERM", "4714.25")]
    {
        let project = failing_project();
        let script = vec![
            calls("shell_start", &json!({ "command": format!("sleep {time}1") }).to_string()),
            calls("exec", &json!({ "argv": ["sleep", format!("{time}2")] }).to_string()),
        ];
        let server = ModelServer::start(script);
        let args = ["x", "--approval", "never", "--sandbox", mode];
        let mut child = agent(&project, &server, &args);
        let child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_until("both run", || lives(&format!("{time}1")) && lives(&format!("{time}2")));
        let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        let begun = Instant::now();
        let ran: Ran = child.wait_with_output().unwrap().into();
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
        assert!(ran.code == 125 && ran.stderr.contains("called off"), "{ran:?}");
        wait_until("nothing is left", || !lives(&format!("{time}1")) && !lives(&format!("{time}2")));
        let log = project.harness(["log", "--json"]).json();
        let outcomes: Vec<_> =
            log["steps"].as_array().unwrap().iter().map(|step| step["outcome"].clone()).collect();
        assert_eq!(outcomes, ["cancelled", "cancelled"], "{log}");
        assert_eq!(project.harness(["log", "verify"]).code, 0);
    }
}

// contract: P14
#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_does_not_wait_for_a_server_that_never_answers() {
    let project = failing_project();
    let server = ModelServer::start([silent(Duration::from_secs(120))]);
    let mut child = agent(&project, &server, &["x", "--json"]);
    let child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("the model is asked", || !server.asked().is_empty());
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let begun = Instant::now();
    let ran: Ran = child.wait_with_output().unwrap().into();
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!((ran.code, &ran.json()["outcome"]), (125, &json!("cancelled")), "{ran:?}");
}

// contract: P7 P14
#[cfg(unix)]
#[test]
fn at_a_terminal_there_is_a_spinner_and_a_person_is_asked() {
    let project = failing_project();
    let script =
        [calls("shell", r#"{"command": "touch made.txt"}"#), calls("write_file", MEND), says("made")];
    let server = ModelServer::start(script);
    let script = r"
import os, pty, select, sys, time
pid, fd = pty.fork()
if pid == 0:
    os.environ['TERM'] = 'xterm'
    os.execv(sys.argv[1], sys.argv[1:])
out, keys, end = b'', [b'\x1b[B', b'\r', b'yes\r'], time.time() + 60
while time.time() < end:
    ready, _, _ = select.select([fd], [], [], 0.3)
    if ready:
        try:
            data = os.read(fd, 65536)
        except OSError:
            break
        if not data:
            break
        out += data
    elif keys and out.count(b'Run it?') > (len(keys) == 1):
        os.write(fd, keys.pop(0))
_, status = os.waitpid(pid, 0)
sys.stdout.buffer.write(out)
sys.exit(os.waitstatus_to_exitcode(status))
";
    let mut python = Command::new("python3");
    python.args(["-c", script, harness_binary().to_str().unwrap(), "agent", "make a file"]);
    python.current_dir(project.root());
    for (name, value) in agent(&project, &server, &[]).get_envs() {
        if let Some(value) = value {
            python.env(name, value);
        }
    }
    let ran: Ran = python.output().unwrap().into();
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("runs: touch made.txt") && ran.stdout.contains("made\r\n"), "{ran:?}");
    assert!(ran.stdout.contains("the model") && ran.stdout.contains("\u{1b}["), "{ran:?}");
    assert!(ran.stdout.contains("sandbox: workspace_write, network off"), "what it runs in: {ran:?}");
    // Of a file, what would change in it.
    assert!(ran.stdout.contains("  -echo $(($1 - $2))\r\n  +echo $(($1 + $2))\r\n"), "{ran:?}");
    assert!(std::fs::read_to_string(project.root().join("sum.sh")).unwrap().contains('+'));
    assert!(project.root().join("made.txt").exists());
}

// contract: P14 P15
#[cfg(target_os = "linux")]
#[test]
fn a_run_that_was_killed_goes_on_at_the_step_it_had_reached_whichever_that_was() {
    type Reached = fn(&ModelServer) -> bool;
    let done = || says("It is mended.");
    let write = || calls("write_file", MEND);
    let never = || silent(Duration::from_secs(300));
    let sleep = |time: &str| calls("exec", &json!({ "argv": ["sleep", time] }).to_string());
    // What was answered before it is killed, when it is, and what is answered after that.
    let rows: [(&str, Vec<Behaviour>, Reached, Vec<Behaviour>); 5] = [
        ("asked", vec![never()], |server| server.asked().len() == 1, vec![write(), done()]),
        ("written", vec![write(), never()], |server| server.asked().len() == 2, vec![done()]),
        ("calling", vec![write(), sleep("4719.25")], |_| lives("4719.25"), vec![done()]),
        // Two calls of one answer, of which the second one was running.
        (
            "background",
            vec![calls("shell_start", r#"{"command": "sleep 4719.75"}"#), sleep("4719.5")],
            |_| lives("4719.5") && lives("4719.75"),
            vec![write(), done()],
        ),
        // The model has nothing more to say: the verification is what is left.
        ("verifying", vec![write(), done()], |_| lives("4720.25"), vec![]),
    ];
    for (name, before, reached, after) in rows {
        let project = failing_project();
        let slow = project.root().join("slow");
        project.write(
            "test.sh",
            "[ -e slow ] && exec sleep 4720.25\n[ \"$(bash sum.sh 2 3)\" = 5 ] || exit 1\n",
        );
        std::fs::write(&slow, "").unwrap();
        let args = ["mend it", "--verify", "bash test.sh", "--approval", "never"];
        let server = ModelServer::start(before);
        let mut child = agent(&project, &server, &args);
        let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait_until(name, || reached(&server));
        child.kill().unwrap();
        child.wait().unwrap();
        let times = ["4719.25", "4719.5", "4719.75", "4720.25"];
        wait_until("nothing is left", || !times.iter().any(|time| lives(time)));
        std::fs::remove_file(&slow).unwrap();
        let args = ["--resume", "1", "--verify", "bash test.sh", "--approval", "never", "--json"];
        let answers = after.len();
        let (ran, server) = run(&project, after, &args);
        assert_eq!((ran.code, &ran.json()["outcome"]), (0, &json!("done")), "{name}: {ran:?}");
        assert_eq!(server.asked().len(), answers, "{name}");
        if let Some(asked) = server.asked().first() {
            let told = asked.body["messages"].to_string();
            assert_eq!(
                told.contains("INTERRUPTED"),
                matches!(name, "calling" | "background"),
                "{name}: {told}"
            );
        }
        // Nothing was done twice, and the trace is whole.
        let log = project.harness(["log", "--json"]).json();
        let steps = log["steps"].as_array().unwrap();
        let count = |tool: &str| steps.iter().filter(|step| step["tool"] == tool).count();
        assert_eq!(count("write_file"), 1, "{name}: {log}");
        assert_eq!(project.harness(["log", "verify"]).code, 0, "{name}");
    }
}
