//! Agents' hooks: recorded payloads both ways, the agents' own schemas, and payloads that no agent ever sent.

mod mutated;
mod tools;

use cmdgate_harness::config::{self, Overrides, UserDirs};
use cmdgate_harness::gate::Request;
use cmdgate_harness::hook::{self, Agent, Containment, Payload, Verdict};
use cmdgate_harness::session::Session;
use cmdgate_policy::{Effect, Grammar, SandboxMode};
use cmdgate_tests::{Project, Ran, start_hook, workspace};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

fn data() -> PathBuf {
    workspace().join("tests/data/integrations")
}

fn fixture(name: &str) -> Value {
    let text = std::fs::read_to_string(data().join("fixtures").join(name)).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The recorded payloads, and where in each the command and the directory stand.
const RECORDED: [(Agent, &str, &str, &str); 13] = [
    (Agent::ClaudeCode, "claude-code.PreToolUse.stdin.json", "/tool_input/command", "/cwd"),
    (Agent::ClaudeCode, "claude-code.PermissionRequest.stdin.json", "/tool_input/command", "/cwd"),
    (Agent::Codex, "codex.PreToolUse.stdin.json", "/tool_input/command", "/cwd"),
    (Agent::Codex, "codex.PermissionRequest.stdin.json", "/tool_input/command", "/cwd"),
    (Agent::Gemini, "gemini.BeforeTool.stdin.json", "/tool_input/command", "/cwd"),
    (Agent::Cursor, "cursor.beforeShellExecution.stdin.json", "/command", "/cwd"),
    (Agent::Copilot, "copilot.preToolUse.stdin.json", "/toolArgs/command", "/cwd"),
    (Agent::Copilot, "copilot.PreToolUse.stdin.json", "/tool_input/command", "/cwd"),
    (Agent::Windsurf, "windsurf.pre_run_command.stdin.json", "/tool_info/command_line", "/tool_info/cwd"),
    (Agent::Cline, "cline.PreToolUse.stdin.json", "/tool_call/input/commands/0", "/workspaceRoots/0"),
    (Agent::Goose, "goose.PreToolUse.stdin.json", "/tool_input/command", "/working_dir"),
    // As 1.52.0 sent it.
    (Agent::Goose, "goose.PreToolUse.live.stdin.json", "/tool_input/command", "/working_dir"),
    (Agent::Opencode, "", "/args/command", "/cwd"),
];

fn recorded(name: &str) -> Value {
    if name.is_empty() {
        return json!({"sessionID": "s", "callID": "c", "tool": "bash", "cwd": "/p", "args": {"command": "x", "timeout": 5}});
    }
    fixture(name)
}

/// A recorded payload with another command, in this project.
fn payload(project: &Project, row: (Agent, &str, &str, &str), command: &str) -> Value {
    let (_, name, command_at, cwd_at) = row;
    let mut payload = recorded(name);
    *payload.pointer_mut(command_at).unwrap() = json!(command);
    *payload.pointer_mut(cwd_at).unwrap() = json!(project.root());
    if let Some(roots) = payload.get_mut("workspace_roots") {
        *roots = json!([project.root()]);
    }
    if row.0 == Agent::Codex {
        session_of_codex(project, &mut payload, "workspace-write");
    }
    payload
}

/// Codex's own record of the session, as 0.171.0 wrote it.
fn session_of_codex(project: &Project, payload: &mut Value, sandbox: &str) {
    let profile = if sandbox == "danger-full-access" { "disabled" } else { "managed" };
    let context = |turn: &Value, sandbox: &str| {
        json!({"timestamp": "2026-11-30T20:01:39.480Z", "ordinal": 5, "type": "turn_context", "payload": {
            "turn_id": turn, "cwd": project.root(), "approval_policy": "on-request",
            "permission_profile": {"type": profile}, "model": "m", "sandbox_policy": {"type": sandbox}}})
    };
    let lines = [
        json!({"type": "session_meta", "payload": {"text": "\"turn_context\""}}),
        context(&json!("another"), "read-only"),
        context(&payload["turn_id"], sandbox),
        context(&json!("later"), "read-only"),
    ];
    let path = project.scratch().join("rollout.jsonl");
    std::fs::write(&path, lines.map(|line| format!("{line}\n")).concat()).unwrap();
    payload["transcript_path"] = json!(path);
}

fn send(project: &Project, agent: Agent, options: &[&str], payload: &[u8]) -> Ran {
    let mut child = start_hook(&mut project.command([&["hook", agent.name()], options].concat()));
    // It may answer before it has read all of a payload that is too long.
    let _ = child.stdin.take().unwrap().write_all(payload);
    child.wait_with_output().unwrap().into()
}

/// What the agent would do on this answer: `allow`, `ask` (its own prompt), `deny`, or `rewrite`.
fn effect(agent: Agent, event: &str, ran: &Ran) -> &'static str {
    // A no in any event, for what cannot be read.
    if ran.code == 2 && matches!(agent, Agent::ClaudeCode | Agent::Codex | Agent::Copilot) {
        return "deny";
    }
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap_or(Value::Null);
    let output = &answer["hookSpecificOutput"];
    let by_word = |word: Option<&str>| match word {
        Some("allow") => "allow",
        Some("ask") => "ask",
        Some("deny" | "block") => "deny",
        other => panic!("{agent:?} {other:?} {ran:?}"),
    };
    match agent {
        Agent::ClaudeCode | Agent::Codex if event == "PermissionRequest" => {
            match output["decision"]["behavior"].as_str() {
                Some("allow") if output["decision"].get("updatedInput").is_some() => "rewrite",
                Some(word) => by_word(Some(word)),
                None => "ask",
            }
        }
        Agent::ClaudeCode => {
            if output.get("updatedInput").is_some() {
                "rewrite"
            } else {
                by_word(output["permissionDecision"].as_str())
            }
        }
        Agent::Codex => match output["permissionDecision"].as_str() {
            Some("allow") => {
                assert!(output.get("updatedInput").is_some(), "a bare allow fails open: {ran:?}");
                "rewrite"
            }
            Some(word) => by_word(Some(word)),
            None => "ask",
        },
        Agent::Gemini => {
            if answer.pointer("/hookSpecificOutput/tool_input").is_some() {
                "rewrite"
            } else {
                by_word(answer["decision"].as_str())
            }
        }
        Agent::Cursor => by_word(answer["permission"].as_str()),
        Agent::Copilot => {
            let rewritten = answer.get("modifiedArgs").is_some() || output.get("updatedInput").is_some();
            let word = answer["permissionDecision"].as_str().or(output["permissionDecision"].as_str());
            if rewritten { "rewrite" } else { by_word(word) }
        }
        Agent::Opencode => match (&answer["deny"], answer.get("args")) {
            (Value::String(_), _) => "deny",
            (_, Some(_)) => "rewrite",
            (_, None) => {
                assert_eq!(answer["allow"], true, "{ran:?}");
                "allow"
            }
        },
        Agent::Windsurf => {
            if ran.code == 2 {
                "deny"
            } else {
                "allow"
            }
        }
        Agent::Cline => {
            if answer.get("cancel").is_some() {
                "deny"
            } else if answer.get("review").is_some() {
                "ask"
            } else if answer.get("overrideInput").is_some() {
                "rewrite"
            } else {
                "allow"
            }
        }
        Agent::Goose => by_word(answer["decision"].as_str()),
    }
}

fn event_of(name: &str) -> &str {
    name.split('.').nth(1).unwrap_or("")
}

#[test]
fn every_agent_gets_every_answer_in_its_own_shape() {
    // contract: X6
    let project = Project::new();
    project.write_beside(
        "config/cmdgate/policy.toml",
        "[[rule]]\nact = \"exec\"\neffect = \"deny\"\npattern = \"rm **\"\nreason = \"never\"\n",
    );
    for row in RECORDED {
        let (agent, name, _, _) = row;
        let event = event_of(name);
        let effect_of = |command: &str| {
            let ran = send(&project, agent, &[], payload(&project, row, command).to_string().as_bytes());
            (effect(agent, event, &ran), ran)
        };
        // Harmless wherever it runs.
        let (got, ran) = effect_of("grep -c alpha a.txt");
        assert!(
            got == "allow" || (got == "ask" && agent == Agent::Codex),
            "{agent:?} {event}: {got} {ran:?}"
        );
        // Harmless only in the sandbox.
        let (got, ran) = effect_of("git status");
        let expected = match agent {
            // Its own sandbox bounds it.
            Agent::Codex => "ask",
            _ if agent.rewrites() => "rewrite",
            _ => "deny",
        };
        assert_eq!(got, expected, "{agent:?} {event}: {ran:?}");
        // Not known to be harmless.
        let (got, ran) = effect_of("npm test");
        let expected = match agent {
            Agent::Cursor | Agent::Opencode | Agent::Windsurf | Agent::Cline | Agent::Goose => "deny",
            Agent::ClaudeCode | Agent::Codex | Agent::Gemini | Agent::Copilot => "ask",
        };
        assert_eq!(got, expected, "{agent:?} {event}: {ran:?}");
        // Denied by a rule, also behind other commands.
        for denied in ["rm -rf build", "git status && rm -rf build", "bash -c 'rm -rf build'"] {
            let (got, ran) = effect_of(denied);
            assert_eq!(got, "deny", "{agent:?} {event} {denied}: {ran:?}");
        }
    }
}

#[test]
fn codex_is_left_to_itself_only_where_its_sandbox_bounds_the_command() {
    let project = Project::new();
    project.write_beside(
        "config/cmdgate/policy.toml",
        "[[rule]]\nact = \"exec\"\neffect = \"ask\"\npattern = \"touch **\"\n",
    );
    let rows = RECORDED.iter().filter(|row| row.0 == Agent::Codex);
    for row in rows {
        let event = event_of(row.1);
        let answer = |command: &str, sandbox: &str, mode: &str, options: &[&str]| {
            let mut sent = payload(&project, *row, command);
            session_of_codex(&project, &mut sent, sandbox);
            sent["permission_mode"] = json!(mode);
            match sandbox {
                "null" => sent["transcript_path"] = Value::Null,
                "gone" => sent["transcript_path"] = json!("/not/there.jsonl"),
                "other" => sent["turn_id"] = json!("a turn that is not in it"),
                _ => {}
            }
            effect(Agent::Codex, event, &send(&project, Agent::Codex, options, sent.to_string().as_bytes()))
        };
        let prompts = event == "PermissionRequest";
        for sandbox in ["read-only", "workspace-write"] {
            assert_eq!(answer("npm test", sandbox, "default", &[]), "ask", "{event} {sandbox}");
            assert_eq!(answer("git status", sandbox, "default", &[]), "ask", "{event} {sandbox}");
            assert_eq!(answer("git status", sandbox, "bypassPermissions", &[]), "ask", "{event} {sandbox}");
            assert_eq!(answer("npm test", sandbox, "bypassPermissions", &[]), "deny", "{event} {sandbox}");
            // Its sandbox does not ask what a rule asks.
            let expected = if prompts { "ask" } else { "deny" };
            assert_eq!(answer("touch made", sandbox, "default", &[]), expected, "{event} {sandbox}");
            assert_eq!(answer("npm test", sandbox, "default", &["--contain"]), "deny", "{event} {sandbox}");
        }
        for sandbox in ["danger-full-access", "external-sandbox", "null", "gone", "other"] {
            let expected = if prompts { "ask" } else { "deny" };
            assert_eq!(answer("npm test", sandbox, "default", &[]), expected, "{event} {sandbox}");
            assert_eq!(answer("touch made", sandbox, "default", &[]), expected, "{event} {sandbox}");
            let expected = if prompts { "ask" } else { "rewrite" };
            assert_eq!(answer("git status", sandbox, "default", &[]), expected, "{event} {sandbox}");
            assert_eq!(answer("npm test", sandbox, "default", &["--contain"]), expected, "{event} {sandbox}");
        }
    }
}

#[test]
fn the_answers_have_the_recorded_shape() {
    let project = Project::new();
    let answer = |row: (Agent, &str, &str, &str), command: &str| {
        let ran = send(&project, row.0, &[], payload(&project, row, command).to_string().as_bytes());
        serde_json::from_str::<Value>(&ran.stdout).unwrap_or(Value::Null)
    };
    let keys = |value: &Value| -> Vec<String> {
        fn walk(value: &Value, path: &str, into: &mut Vec<String>) {
            if let Some(object) = value.as_object() {
                for (key, value) in object {
                    into.push(format!("{path}/{key}"));
                    walk(value, &format!("{path}/{key}"), into);
                }
            }
        }
        let mut found = Vec::new();
        walk(value, "", &mut found);
        found.sort();
        found
    };
    let at = |agent: Agent, event: &str| {
        *RECORDED.iter().find(|row| row.0 == agent && event_of(row.1) == event).unwrap()
    };
    for (row, command, expected) in [
        (at(Agent::ClaudeCode, "PreToolUse"), "npm test", "claude-code.PreToolUse.ask.json"),
        (at(Agent::ClaudeCode, "PreToolUse"), "git status", "claude-code.PreToolUse.rewrite.json"),
        (at(Agent::ClaudeCode, "PermissionRequest"), "cat a.txt", "claude-code.PermissionRequest.allow.json"),
        (at(Agent::ClaudeCode, "PermissionRequest"), "cat .env", "claude-code.PermissionRequest.deny.json"),
        (at(Agent::Codex, "PreToolUse"), "cat .env", "codex.PreToolUse.deny.json"),
        (at(Agent::Codex, "PermissionRequest"), "cat .env", "codex.PermissionRequest.deny.json"),
        (at(Agent::Gemini, "BeforeTool"), "npm test", "gemini.BeforeTool.ask.json"),
        (at(Agent::Gemini, "BeforeTool"), "cat .env", "gemini.BeforeTool.deny.json"),
        (at(Agent::Cursor, "beforeShellExecution"), "cat a.txt", "cursor.beforeShellExecution.allow.json"),
        (at(Agent::Cursor, "beforeShellExecution"), "cat .env", "cursor.beforeShellExecution.deny.json"),
        (at(Agent::Copilot, "preToolUse"), "cat .env", "copilot.preToolUse.deny.json"),
        // It reads `review`, which the recorded answer has, and does nothing with it.
        (at(Agent::Cline, "PreToolUse"), "npm test", "cline.PreToolUse.deny.json"),
        (at(Agent::Cline, "PreToolUse"), "cat .env", "cline.PreToolUse.deny.json"),
        (at(Agent::Goose, "PreToolUse"), "cat .env", "goose.PreToolUse.deny.json"),
    ] {
        let answered = answer(row, command);
        assert_eq!(keys(&answered), keys(&fixture(expected)), "{expected}: {answered}");
    }
    // Codex rewrites where it has no sandbox of its own.
    let mut sent = payload(&project, at(Agent::Codex, "PreToolUse"), "git status");
    session_of_codex(&project, &mut sent, "danger-full-access");
    let ran = send(&project, Agent::Codex, &[], sent.to_string().as_bytes());
    let answered: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(keys(&answered), keys(&fixture("codex.PreToolUse.rewrite.json")), "{answered}");
    // A rewrite keeps what else the tool was given.
    let rewritten = answer(at(Agent::ClaudeCode, "PreToolUse"), "git status");
    let input = &rewritten["hookSpecificOutput"]["updatedInput"];
    assert_eq!(input["timeout"], 120_000, "{rewritten}");
    assert!(input["command"].as_str().unwrap().ends_with("-- 'git status'"), "{rewritten}");
    // Gemini takes what is under `tool_input` for the whole input.
    let mut sent = payload(&project, at(Agent::Gemini, "BeforeTool"), "git status");
    sent["tool_input"]["is_background"] = json!(true);
    let ran = send(&project, Agent::Gemini, &[], sent.to_string().as_bytes());
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    let input = &answer["hookSpecificOutput"]["tool_input"];
    assert_eq!(input["is_background"], true, "{answer}");
    assert!(input["command"].as_str().unwrap().ends_with("-- 'git status'"), "{answer}");
}

#[test]
fn a_rewritten_command_runs_with_its_own_output_and_exit_code() {
    let project = Project::new();
    let row = RECORDED[0];
    for (command, options, code, out) in [
        ("git log --oneline | wc -l", &[][..], 0, "1\n"),
        ("echo 'it'\\''s'; exit 3", &["--contain"], 3, "it's\n"),
        ("touch made && cat made && ls made", &["--contain"], 0, "made\n"),
    ] {
        let ran = send(&project, row.0, options, payload(&project, row, command).to_string().as_bytes());
        let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
        let rewritten = answer["hookSpecificOutput"]["updatedInput"]["command"]
            .as_str()
            .unwrap_or_else(|| panic!("{answer}"));
        let output = std::process::Command::new("bash")
            .args(["-c", rewritten])
            .current_dir(project.root())
            .env("HOME", project.home())
            .env("XDG_STATE_HOME", project.scratch().join("state"))
            .env("XDG_CONFIG_HOME", project.scratch().join("config"))
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(code), "{rewritten}: {output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), out, "{rewritten}: {output:?}");
    }
    assert!(project.root().join("made").exists());
}

#[test]
fn codex_answers_satisfy_its_own_schemas() {
    let project = Project::new();
    for row in RECORDED.iter().filter(|row| row.0 == Agent::Codex) {
        let kebab = if event_of(row.1) == "PreToolUse" { "pre-tool-use" } else { "permission-request" };
        let schema = |end: &str| -> Value {
            let path = data().join("codex-schemas").join(format!("{kebab}.command.{end}.json"));
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
        };
        let input = jsonschema::validator_for(&schema("input")).unwrap();
        let output = jsonschema::validator_for(&schema("output")).unwrap();
        for command in ["cat a.txt", "git status", "npm test", "cat .env", "", "\u{0}", "f() { x; }; f"] {
            let mut sent = payload(&project, *row, command);
            assert!(input.is_valid(&sent), "{sent}");
            for sandbox in ["workspace-write", "danger-full-access"] {
                session_of_codex(&project, &mut sent, sandbox);
                let ran = send(&project, Agent::Codex, &[], sent.to_string().as_bytes());
                assert_eq!(ran.code, 0, "{ran:?}");
                if !ran.stdout.is_empty() {
                    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
                    let errors: Vec<String> =
                        output.iter_errors(&answer).map(|error| error.to_string()).collect();
                    assert!(errors.is_empty(), "{command:?} {answer}: {errors:?}");
                }
            }
        }
    }
}

#[test]
fn nonsense_is_never_allowed() {
    // promise: 11
    // contract: X6
    let project = Project::new();
    let huge = format!("{{\"command\":\"{}\"}}", "x".repeat(9 * 1024 * 1024));
    for row in RECORDED {
        let (agent, name, _, _) = row;
        let good = payload(&project, row, "cat a.txt").to_string();
        let first = good.split('"').nth(1).unwrap();
        let twice = good.replacen('{', &format!("{{\"{first}\":1,"), 1);
        for bad in [
            "",
            "null",
            "[]",
            "{}",
            "{",
            "\u{feff}{}",
            &good[..good.len() - 1],
            &huge,
            &twice,
            "\"cat a.txt\"",
        ] {
            let ran = send(&project, agent, &[], bad.as_bytes());
            let event = event_of(name);
            let got = effect(agent, if event == "PermissionRequest" { "PreToolUse" } else { event }, &ran);
            assert!(matches!(got, "ask" | "deny"), "{agent:?} {}: {got} {ran:?}", &bad[..bad.len().min(80)]);
            assert!(!ran.stderr.is_empty(), "{agent:?}: the reason is missing: {ran:?}");
        }
        // Of which event it is cannot be read either, so the answer has to be a no in each.
        let events = match agent {
            Agent::ClaudeCode => &["PreToolUse", "PermissionRequest", "PreSkillShellCommand"][..],
            Agent::Codex => &["PreToolUse", "PermissionRequest"],
            Agent::Copilot => &["preToolUse", "permissionRequest", "PreToolUse", "PermissionRequest"],
            _ => &[agent.first_event()],
        };
        let ran = send(&project, agent, &[], &good.as_bytes()[..good.len() - 1]);
        for event in events {
            let taken = agent.takes(event, &ran.stdout, Some(ran.code));
            assert!(taken.refuses(), "{agent:?} {event}: {taken:?} {ran:?}");
        }
        let ran = send(&project, agent, &[], b"\xff\xfe\x00");
        assert!(matches!(effect(agent, "PreToolUse", &ran), "ask" | "deny"), "{agent:?} {ran:?}");
    }
}

#[test]
fn a_code_allows_one_run() {
    let project = Project::new();
    let row = *RECORDED.iter().find(|row| row.0 == Agent::Windsurf).unwrap();
    let sent = payload(&project, row, "npm test").to_string();
    let refused = send(&project, row.0, &[], sent.as_bytes());
    assert_eq!(refused.code, 2, "{refused:?}");
    let (_, rest) = refused.stderr.split_once("harness allow-once ").unwrap();
    let code = rest.split('`').next().unwrap();
    assert_eq!(project.harness(["allow-once", "--yes", "nosuch"]).code, 1);
    assert_eq!(project.harness(["allow-once", "--yes", code]).code, 0);
    // contract: P12. The person's answer is recorded, and then that the command was allowed because of it.
    let log = || project.harness(["log", "--json"]).json()["steps"].as_array().unwrap().clone();
    let because = format!("allow-once {code}");
    let answered = log();
    assert_eq!(answered.len(), 1, "{answered:?}");
    let is_approved = |step: &Value| {
        assert_eq!(
            (&step["status"], &step["answer_reason"]),
            (&json!("approved"), &json!(because)),
            "{step}"
        );
    };
    is_approved(&answered[0]);
    let other = payload(&project, row, "npm publish").to_string();
    assert_eq!(send(&project, row.0, &[], other.as_bytes()).code, 2);
    assert_eq!(send(&project, row.0, &[], sent.as_bytes()).code, 0);
    is_approved(log().last().unwrap());
    assert_eq!(send(&project, row.0, &[], sent.as_bytes()).code, 2);
    assert_eq!(log().last().unwrap()["status"], "asked");
    let exported = project.harness(["log", "export", "--jsonl"]).stdout;
    assert_eq!(exported.matches(&format!("\"reason\":\"{because}\"")).count(), 2, "{exported}");
    assert_eq!(project.harness(["log", "verify"]).code, 0);
}

// contract: P9
#[test]
fn a_code_is_no_yes_to_a_script_that_changed_meanwhile() {
    let project = Project::new();
    let row = *RECORDED.iter().find(|row| row.0 == Agent::Windsurf).unwrap();
    project.write("job.sh", "echo one\n");
    let sent = payload(&project, row, "bash job.sh").to_string();
    let refused = send(&project, row.0, &[], sent.as_bytes());
    let code = |ran: &Ran| {
        let (_, rest) = ran.stderr.split_once("harness allow-once ").unwrap_or_else(|| panic!("{ran:?}"));
        rest.split('`').next().unwrap().to_owned()
    };
    let first = code(&refused);
    assert_eq!(project.harness(["allow-once", "--yes", &first]).code, 0);
    project.write("job.sh", "echo two\n");
    let again = send(&project, row.0, &[], sent.as_bytes());
    assert_eq!(again.code, 2, "{again:?}");
    assert_ne!(code(&again), first);
    project.write("job.sh", "echo one\n");
    assert_eq!(send(&project, row.0, &[], sent.as_bytes()).code, 0, "the one that was allowed");
}

// contract: P12
#[test]
fn a_code_is_for_the_agent_that_asked_and_shows_what_it_allows() {
    let project = Project::new();
    let row = |agent| *RECORDED.iter().find(|row| row.0 == agent).unwrap();
    let (cursor, opencode) = (row(Agent::Cursor), row(Agent::Opencode));
    // What would be a clean `ls` on a terminal that takes it by its word.
    let command = "npm test #\u{1b}[2K\u{1b}[1Gls";
    let sent = payload(&project, opencode, command).to_string();
    let refused = send(&project, Agent::Opencode, &[], sent.as_bytes());
    let (_, rest) = refused.stdout.split_once("harness allow-once ").unwrap();
    let yes = project.harness(["allow-once", "--yes", rest.split('`').next().unwrap()]);
    assert!(yes.code == 0 && !yes.stdout.contains('\u{1b}') && yes.stdout.contains("npm test #"), "{yes:?}");
    let others = payload(&project, cursor, command).to_string();
    let refused = send(&project, Agent::Cursor, &[], others.as_bytes());
    assert!(refused.stdout.contains("\"deny\""), "{refused:?}");
    let contained = send(&project, Agent::Opencode, &["--contain"], sent.as_bytes());
    assert!(!contained.stdout.contains(command), "as it is, outside the sandbox: {contained:?}");
    let taken = send(&project, Agent::Opencode, &[], sent.as_bytes());
    assert!(taken.stdout.contains("\"allow\":true"), "{taken:?}");
}

// contract: P12
#[test]
fn what_is_not_bash_is_recorded_and_a_deny_holds_for_it() {
    let project = Project::new();
    let rule = "[[rule]]\nact = \"exec\"\neffect = \"deny\"\npattern = \"shutdown\"\n";
    project.write_beside("config/cmdgate/policy.toml", rule);
    for (command, expected) in [("Get-ChildItem", "ask"), ("shutdown now", "deny")] {
        let mut powershell = payload(&project, RECORDED[0], command);
        powershell["tool_name"] = json!("PowerShell");
        let ran = send(&project, Agent::ClaudeCode, &[], powershell.to_string().as_bytes());
        assert_eq!(effect(Agent::ClaudeCode, "PreToolUse", &ran), expected, "{ran:?}");
        let log = project.harness(["log", "--json"]).json();
        assert_eq!(log["steps"].as_array().unwrap().last().unwrap()["effect"], expected, "{log}");
    }
}

// contract: P12
#[test]
fn what_cannot_be_read_is_recorded_without_its_secrets() {
    let project = Project::new();
    let rules = "[trace]\nredact = [\"sesame-[0-9]+\"]\n";
    project.write_beside("config/cmdgate/policy.toml", rules);
    let steps = || {
        project.harness(["log", "--limit", "1000", "--json"]).json()["steps"]
            .as_array()
            .cloned()
            .unwrap_or_default()
    };
    let secret = "sesame-12345678";
    let long = format!("{{\"x\":\"{}{secret}", "y".repeat(385));
    for row in RECORDED {
        let agent = row.0;
        let good = payload(&project, row, "cat a.txt").to_string();
        for bad in
            ["", "{\"a\":", &good[..good.len() - 1], &format!("{{\"{secret}\":1,\"{secret}\":2}}"), &long]
        {
            let before = steps().len();
            send(&project, agent, &[], bad.as_bytes());
            let steps = steps();
            assert_eq!(steps.len(), before + 1, "{agent:?} {bad}");
            let step = steps.last().unwrap();
            assert_eq!((&step["effect"], &step["source"]), (&json!("deny"), &json!("request")), "{step}");
            let shown = step.to_string();
            assert!(shown.contains("payload of") && shown.len() < 3000, "{shown}");
        }
    }
    // A policy that cannot be used, and then no text at all.
    project.write_beside("config/cmdgate/policy.toml", "nonsense = [");
    let sent = payload(&project, RECORDED[0], secret).to_string();
    send(&project, Agent::ClaudeCode, &[], sent.as_bytes());
    project.write_beside("config/cmdgate/policy.toml", rules);
    let step = steps().last().unwrap().to_string();
    assert!(step.contains("(a payload of") && step.contains("policy"), "{step}");
    let exported = project.harness(["log", "export", "--jsonl"]).stdout;
    for agent in Agent::ALL {
        assert!(exported.contains(&format!("\"{} unread\"", agent.name())), "{agent:?}: {exported}");
    }
    assert!(!exported.contains("sesame-1") && exported.contains("stands twice"), "{exported}");
    assert_eq!(project.harness(["log", "verify"]).code, 0);
}

#[cfg(unix)]
#[test]
fn a_yes_that_cannot_be_recorded_allows_nothing() {
    // contract: P12
    let project = Project::new();
    let row = *RECORDED.iter().find(|row| row.0 == Agent::Cursor).unwrap();
    let sent = payload(&project, row, "npm install x").to_string();
    let trace = project.scratch().join("hook.db");
    let options = ["--trace", trace.to_str().unwrap()];
    let refused = send(&project, row.0, &options, sent.as_bytes());
    let (_, rest) = refused.stdout.split_once("harness allow-once ").unwrap();
    let code = rest.split('`').next().unwrap();
    for beside in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{beside}", trace.display()));
    }
    std::fs::write(&trace, "no trace").unwrap();
    let unrecorded = project.harness(["allow-once", "--yes", code]);
    assert!(unrecorded.code == 125 && unrecorded.stderr.contains("hook.db"), "{unrecorded:?}");
    std::fs::remove_file(&trace).unwrap();
    let again = send(&project, row.0, &options, sent.as_bytes());
    assert!(again.stdout.contains("harness allow-once"), "{again:?}");
}

#[test]
fn an_unclean_environment_is_not_called_safe() {
    // contract: X1
    let project = Project::new();
    let row = *RECORDED.iter().find(|row| row.0 == Agent::Cursor).unwrap();
    let sent = payload(&project, row, "cat a.txt").to_string();
    for (name, value) in
        [("BASH_ENV", "./x"), ("PATH", ".:/usr/bin:/bin"), ("LD_PRELOAD", "./x.so"), ("PATH", ":/usr/bin")]
    {
        let mut child = project
            .command(["hook", "cursor"])
            .env("PATH", "/usr/bin:/bin")
            .env(name, value)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(sent.as_bytes()).unwrap();
        let ran: Ran = child.wait_with_output().unwrap().into();
        assert_eq!(effect(Agent::Cursor, "", &ran), "deny", "{name}={value}: {ran:?}");
    }
}

#[test]
fn a_gate_that_previews_lets_nothing_run() {
    let project = Project::new();
    let dirs = UserDirs { config: None, state: None };
    let loaded = config::load(&project.root(), &dirs, &Overrides::default()).unwrap();
    let session = Session::new(&project.root(), loaded).unwrap().previewing();
    for command in ["git status", "cat a.txt"] {
        let request = Request::shell(command);
        let decision = session.gate().decide(&request);
        assert_eq!(decision.effect, Effect::Allow, "{decision:?}");
        assert!(session.gate().approve(request.clone(), &decision).is_none());
        assert!(session.gate().approve_asked(request).is_err());
    }
}

#[test]
fn what_the_configuration_of_git_names_is_still_asked_about() {
    // contract: X1
    let project = Project::new();
    let row = RECORDED[0];
    let sent = payload(&project, row, "git status").to_string();
    assert_eq!(effect(row.0, "PreToolUse", &send(&project, row.0, &[], sent.as_bytes())), "rewrite");
    project.write(".git/config", "[core]\n\tbare = false\n[alias]\n\twhatchanged = !touch pwned\n");
    assert_eq!(effect(row.0, "PreToolUse", &send(&project, row.0, &[], sent.as_bytes())), "ask");
    assert!(!project.root().join("pwned").exists());
}
