//! What hooks write down, and what they do when they cannot: a decision that is not recorded allows nothing.
#![cfg(target_os = "linux")]

use cmdgate_tests::{Project, Ran, harness_binary, start_hook};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

/// What Claude Code sends before it runs a command.
fn payload(project: &Project, command: &str) -> String {
    json!({
        "session_id": "s",
        "cwd": project.root(),
        "permission_mode": "default",
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": { "command": command },
        "tool_use_id": "toolu_1",
    })
    .to_string()
}

/// Starts `harness hook claude-code` at the end of these words, and gives it the payload.
fn start(project: &Project, before: &[&str], command: &str) -> Child {
    let harness = harness_binary().to_str().unwrap();
    let words = [before, &[harness, "hook", "claude-code"]].concat();
    let mut child = start_hook(&mut project_command(project, &words));
    child.stdin.take().unwrap().write_all(payload(project, command).as_bytes()).unwrap();
    child
}

/// These words as a command in the project, with what the tests set in the environment.
fn project_command(project: &Project, words: &[&str]) -> Command {
    let mut child = Command::new(words[0]);
    child.args(&words[1..]).current_dir(project.root());
    for (name, value) in project.command([""; 0]).get_envs() {
        match value {
            Some(value) => child.env(name, value),
            None => child.env_remove(name),
        };
    }
    child
}

fn answered(child: Child) -> (String, Ran) {
    let ran: Ran = child.wait_with_output().unwrap().into();
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap_or(Value::Null);
    let decision = answer["hookSpecificOutput"]["permissionDecision"].as_str().unwrap_or_default();
    (decision.to_owned(), ran)
}

fn recorded(project: &Project) -> Vec<String> {
    let log = project.harness(["log", "--json"]).json();
    let steps = log["steps"].as_array().unwrap().iter();
    steps.map(|step| step["command"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn ten_hooks_at_once_lose_nothing() {
    // contract: P12
    let project = Project::new();
    // Also when there is no trace yet.
    for round in 0..3 {
        let children: Vec<_> =
            (0..10).map(|n| start(&project, &[], &format!("cat a.txt {round}-{n}"))).collect();
        for child in children {
            let (decision, ran) = answered(child);
            assert_eq!((decision.as_str(), ran.stderr.as_str()), ("allow", ""), "{ran:?}");
        }
    }
    let mut commands = recorded(&project);
    commands.sort();
    let expected: Vec<String> =
        (0..3).flat_map(|round| (0..10).map(move |n| format!("cat a.txt {round}-{n}"))).collect();
    assert_eq!(commands, expected);
    assert_eq!(project.harness(["log", "verify"]).code, 0);
}

#[test]
fn a_trace_that_cannot_be_written_allows_nothing() {
    // contract: P12
    let project = Project::new();
    assert_eq!(answered(start(&project, &[], "cat a.txt")).0, "allow");
    let state = project.scratch().join("state");
    let state = state.to_str().unwrap();
    // Also for root, whom permissions do not stop.
    let behind = ["bwrap", "--dev-bind", "/", "/", "--ro-bind", state, state];
    let (decision, ran) = answered(start(&project, &behind, "cat README.md"));
    assert_eq!(decision, "ask", "{ran:?}");
    assert!(
        ran.stderr.contains("must be writable") && ran.stdout.contains("the trace cannot be used"),
        "{ran:?}"
    );
    assert_eq!(recorded(&project), ["cat a.txt"]);
}

#[test]
fn a_full_disk_allows_nothing_unrecorded() {
    // contract: P12
    let project = Project::new();
    let (mut allowed, mut asked) = (0, 0);
    assert_eq!(answered(start(&project, &[], "cat a.txt")).0, "allow");
    for kilobytes in (0..100).step_by(4).chain([4096]) {
        let command = format!("cat a.txt {kilobytes}");
        // What the disk cannot take fails instead of ending the process.
        let script = format!("trap '' XFSZ; ulimit -f {kilobytes}; exec \"$@\"");
        let (decision, ran) = answered(start(&project, &["bash", "-c", &script, "bash"], &command));
        let is_recorded = recorded(&project).contains(&command);
        match decision.as_str() {
            "allow" => {
                assert!(is_recorded, "{kilobytes}: {ran:?}");
                allowed += 1;
            }
            "ask" => {
                assert!(!is_recorded && ran.stderr.contains("trace"), "{kilobytes}: {ran:?}");
                asked += 1;
            }
            _ => panic!("{kilobytes}: {ran:?}"),
        }
    }
    assert!(allowed > 0 && asked > 0, "{allowed} allowed, {asked} asked");
    assert_eq!(project.harness(["log", "verify"]).code, 0);
}

#[test]
fn an_answer_waits_for_no_disk_and_no_other_program() {
    let project = Project::new();
    assert_eq!(answered(start(&project, &[], "cat a.txt")).0, "allow");
    let seen = project.scratch().join("calls");
    let watched = [
        "strace",
        "-f",
        "-qq",
        "-o",
        seen.to_str().unwrap(),
        "-e",
        "trace=/^(execve|openat|f.*sync|p?write)",
    ];
    let (decision, ran) = answered(start(&project, &watched, "git log --oneline | head -5"));
    assert_eq!(decision, "allow", "{ran:?}");
    let calls = std::fs::read_to_string(&seen).unwrap();
    let count = |name: &str| calls.lines().filter(|line| line.contains(name)).count();
    assert_eq!((count("execve("), count("sync(")), (1, 0), "{calls}");
    // The trace stays closed: a line is added beside it, and the answer is given.
    assert_eq!((count("trace.db\""), count("trace.db-spool\""), count("write")), (0, 1, 2), "{calls}");
    assert_eq!(recorded(&project), ["cat a.txt", "git log --oneline | head -5"]);
}

#[test]
fn whoever_follows_the_log_sees_what_hooks_decide() {
    // contract: P12
    let project = Project::new();
    assert_eq!(answered(start(&project, &[], "cat a.txt 1")).0, "allow");
    let mut follow = project.command(["log", "tail", "--follow", "--json"]);
    let mut follow = follow.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines();
    let mut next = || {
        let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        line["command"].as_str().unwrap().to_owned()
    };
    assert_eq!(next(), "cat a.txt 1");
    for command in ["cat a.txt 2", "cat a.txt 3"] {
        assert_eq!(answered(start(&project, &[], command)).0, "allow");
        assert_eq!(next(), command);
    }
    follow.kill().unwrap();
    follow.wait().unwrap();
}

#[test]
fn a_standard_error_that_takes_nothing_keeps_no_answer() {
    // contract: P12
    let project = Project::new();
    let state = project.scratch().join("state");
    for errors in ["2>/dev/full", "2>&-"] {
        let script = format!("exec \"$@\" {errors}");
        let shell = ["bash", "-c", &script, "bash"];
        let (decision, ran) = answered(start(&project, &shell, "cat a.txt"));
        assert_eq!((decision.as_str(), ran.code), ("allow", 0), "{errors}: {ran:?}");
        // Also where there is something to say: the trace cannot be written.
        let state = state.to_str().unwrap();
        let behind = ["bwrap", "--dev-bind", "/", "/", "--ro-bind", state, state];
        let words = [&shell[..], &behind[..]].concat();
        let (decision, ran) = answered(start(&project, &words, "cat README.md"));
        assert_eq!((decision.as_str(), ran.code), ("ask", 0), "{errors}: {ran:?}");
        // And where the payload is none, which blocks by the exit code.
        let harness = harness_binary().to_str().unwrap();
        let mut child = project_command(&project, &[&shell[..], &[harness, "hook", "claude-code"]].concat());
        let mut child = start_hook(&mut child);
        child.stdin.take().unwrap().write_all(b"{").unwrap();
        let (decision, ran) = answered(child);
        assert_eq!((decision.as_str(), ran.code), ("", 2), "{errors}: {ran:?}");
    }
}

#[test]
fn a_payload_that_does_not_end_is_refused_and_it_is_said_why() {
    // contract: P12
    let project = Project::new();
    let harness = harness_binary().to_str().unwrap();
    let cases =
        ["claude-code", "cursor", "gemini"].map(|agent| [(agent, ""), (agent, "2>/dev/full")]).concat();
    // All at once: each waits for the end of the agent's patience.
    let waiting = cases.into_iter().map(|(agent, errors)| {
        let script = format!("exec \"$@\" {errors}");
        let words = ["bash", "-c", &script, "bash", harness, "hook", agent];
        let mut child = start_hook(&mut project_command(&project, &words));
        (agent, errors, child.stdin.take(), child)
    });
    for (agent, errors, open, child) in waiting.collect::<Vec<_>>() {
        let ran = answered(child).1;
        drop(open);
        // Refused by the exit code, or by what stands on standard output.
        assert!(ran.code == 2 || ran.stdout.contains("no decision in time"), "{agent} {errors}: {ran:?}");
        let said = ran.stderr.matches("no decision in time").count();
        assert_eq!(said, usize::from(errors.is_empty()), "{agent} {errors}: {ran:?}");
    }
}
