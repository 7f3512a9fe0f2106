//! Which tools of an agent run a command, where, and what their arguments change.

use super::*;

#[test]
fn what_runs_no_command_is_left_alone() {
    let project = Project::new();
    let mut reading = recorded("claude-code.PreToolUse.stdin.json");
    reading["tool_name"] = json!("Read");
    let ran = send(&project, Agent::ClaudeCode, &[], reading.to_string().as_bytes());
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{ran:?}");
    let mut powershell = payload(&project, RECORDED[0], "Get-ChildItem");
    powershell["tool_name"] = json!("PowerShell");
    let ran = send(&project, Agent::ClaudeCode, &[], powershell.to_string().as_bytes());
    assert_eq!(effect(Agent::ClaudeCode, "PreToolUse", &ran), "ask", "{ran:?}");
}

/// A payload of the agent for another tool of this name.
fn of_tool(project: &Project, row: (Agent, &str, &str, &str), tool: &str, input: &Value) -> Value {
    let mut sent = payload(project, row, "cat a.txt");
    let (name_at, input_at) = match row.0 {
        Agent::Copilot if sent.get("toolName").is_some() => ("/toolName", "/toolArgs"),
        Agent::ClaudeCode | Agent::Codex | Agent::Gemini | Agent::Copilot | Agent::Goose => {
            ("/tool_name", "/tool_input")
        }
        Agent::Opencode => ("/tool", "/args"),
        Agent::Cline => ("/tool_call/name", "/tool_call/input"),
        Agent::Cursor | Agent::Windsurf => panic!("their events are for commands alone"),
    };
    *sent.pointer_mut(name_at).unwrap() = json!(tool);
    *sent.pointer_mut(input_at).unwrap() = input.clone();
    sent
}

#[test]
fn a_tool_that_looks_like_a_shell_is_asked_about_and_one_that_does_not_is_left_alone() {
    let project = Project::new();
    project.write_beside(
        "config/cmdgate/policy.toml",
        "[[rule]]\nact = \"exec\"\neffect = \"allow\"\npattern = \"*\"\n\
         [[rule]]\nact = \"exec\"\neffect = \"deny\"\npattern = \"rm **\"\n",
    );
    for row in RECORDED.into_iter().filter(|row| !matches!(row.0, Agent::Cursor | Agent::Windsurf)) {
        let (agent, name, _, _) = row;
        let event = event_of(name);
        for (tool, input) in [
            ("write_stdin", json!({"session_id": 7, "chars": "rm x\n"})),
            ("write_bash", json!({"sessionId": "1", "input": "rm x"})),
            ("start_process", json!({"timeout_ms": 5})),
            ("mcp__pc__start", json!({"command": "cat a.txt"})),
            ("batch", json!({"tool_calls": [{"tool": "bash", "parameters": {"command": "cat a.txt"}}]})),
            ("fooTerminal", json!({})),
        ] {
            let sent = of_tool(&project, row, tool, &input).to_string();
            let ran = send(&project, agent, &[], sent.as_bytes());
            let got = effect(agent, event, &ran);
            // Where Codex is silent about a tool, it asks nobody.
            let expected = match (agent, agent.asks()) {
                (Agent::Codex, _) | (_, hook::Asks::ByCode) => "deny",
                _ => "ask",
            };
            assert_eq!(got, expected, "{agent:?} {event} {tool}: {ran:?}");
        }
        for input in
            [json!({"command": "rm x"}), json!({"calls": [{"command": "ls"}, {"deep": {"cmd": "rm x"}}]})]
        {
            let denied = of_tool(&project, row, "mcp__pc__start", &input).to_string();
            let ran = send(&project, agent, &[], denied.as_bytes());
            assert_eq!(effect(agent, event, &ran), "deny", "{agent:?} {event} {input}: {ran:?}");
            let said = format!("{}{}", ran.stdout, ran.stderr);
            assert!(said.contains("deny exec"), "{agent:?} {event} {input}: {ran:?}");
        }
        let own = match agent {
            Agent::ClaudeCode => [("BashOutput", "bash_id"), ("KillShell", "shell_id"), ("Skill", "command")],
            Agent::Codex => [("apply_patch", "command"), ("view_image", "path"), ("update_plan", "plan")],
            Agent::Copilot => [("read_bash", "sessionId"), ("stop_bash", "sessionId"), ("view", "path")],
            Agent::Opencode => [("task", "command"), ("read", "filePath"), ("edit", "filePath")],
            Agent::Goose => [
                ("developer__text_editor", "command"),
                ("developer__analyze", "path"),
                ("todo__write", "content"),
            ],
            Agent::Cline => [("editor", "command"), ("read_files", "paths"), ("fetch_web_content", "url")],
            Agent::Gemini => [("read_file", "path"), ("write_file", "path"), ("replace", "path")],
            Agent::Cursor | Agent::Windsurf => unreachable!(),
        };
        for (tool, key) in own.into_iter().chain([("mcp__github__create_issue", "title")]) {
            let sent = of_tool(&project, row, tool, &json!({key: "x"})).to_string();
            let ran = send(&project, agent, &[], sent.as_bytes());
            let silent = match agent {
                Agent::Opencode => "{\"allow\":true}\n",
                Agent::Cline => "{}\n",
                _ => "",
            };
            assert_eq!((ran.code, ran.stdout.as_str()), (0, silent), "{agent:?} {event} {tool}: {ran:?}");
        }
    }
}

#[test]
fn a_directory_that_the_model_chose_does_not_choose_the_project() {
    // contract: X6
    let project = Project::new();
    project.write_beside("elsewhere/private.txt", "private\n");
    let elsewhere = project.scratch().join("elsewhere");
    let root = project.root().to_string_lossy().into_owned();
    // Codex says where the command runs (`workdir` of its tool), and starts its hook where the session is.
    let row = RECORDED[2];
    let sent = |command: &str, cwd: &Path| {
        let mut sent = payload(&project, row, command);
        session_of_codex(&project, &mut sent, "danger-full-access");
        sent["cwd"] = json!(cwd);
        sent.to_string()
    };
    let answer = |command: &str, cwd: &Path, options: &[&str]| {
        let ran = send(&project, Agent::Codex, options, sent(command, cwd).as_bytes());
        (effect(Agent::Codex, "PreToolUse", &ran), ran)
    };
    assert_eq!(answer("cat a.txt", &project.root(), &[]).0, "ask", "silence, which runs it");
    assert_eq!(answer("cat private.txt", &elsewhere, &[]).0, "deny");
    let (got, ran) = answer("touch private.txt", &elsewhere, &["--contain"]);
    assert!(got == "deny" || ran.stdout.contains(&format!("--root {root} ")), "{got} {ran:?}");
}

#[test]
fn a_terminal_that_goes_on_does_not_stay_in_another_directory() {
    let project = Project::new();
    project.write("sub/b.txt", "b\n");
    let vs_code = RECORDED[7];
    let answer = |row: (Agent, &str, &str, &str), command: &str, change: fn(&mut Value)| {
        let mut sent = payload(&project, row, command);
        change(&mut sent);
        effect(row.0, event_of(row.1), &send(&project, row.0, &[], sent.to_string().as_bytes()))
    };
    for terminal in ["Bash", "run_in_terminal"] {
        let mut sent = payload(&project, vs_code, "x");
        sent["tool_name"] = json!(terminal);
        let of = |command: &str| {
            let mut sent = sent.clone();
            sent["tool_input"]["command"] = json!(command);
            effect(
                Agent::Copilot,
                "PreToolUse",
                &send(&project, Agent::Copilot, &[], sent.to_string().as_bytes()),
            )
        };
        assert_eq!(of("cat a.txt"), "allow");
        for moving in ["cd sub", "cd sub && cat b.txt", "c\\d sub", "{ cd sub; }"] {
            assert!(matches!(of(moving), "rewrite" | "ask"), "{terminal} {moving}");
        }
    }
    let row = |agent| *RECORDED.iter().find(|row| row.0 == agent).unwrap();
    assert_eq!(answer(row(Agent::Cline), "cd sub", |_| {}), "rewrite");
    assert_eq!(answer(row(Agent::Cursor), "cd sub", |_| {}), "allow", "it says where it is each time");
    assert_eq!(answer(row(Agent::Cursor), "cd sub", |sent| sent["cwd"] = json!("")), "deny");
    assert_eq!(answer(row(Agent::Goose), "cd sub", |_| {}), "allow", "each command has its own shell");
}

#[test]
fn a_tool_of_goose_whose_commands_no_hook_sees_is_refused_with_a_code() {
    let project = Project::new();
    let row = *RECORDED.iter().find(|row| row.0 == Agent::Goose).unwrap();
    for (tool, input) in [
        ("delegate", json!({"instructions": "touch x"})),
        ("summon__delegate", json!({"instructions": "touch x"})),
        ("execute_typescript", json!({"code": "Developer.shell({command: 'touch x'})", "tool_graph": []})),
        ("code_execution__execute_typescript", json!({"code": "x"})),
        ("platform__manage_schedule", json!({"action": "create"})),
    ] {
        let sent = of_tool(&project, row, tool, &input).to_string();
        let ran = send(&project, Agent::Goose, &[], sent.as_bytes());
        assert_eq!(effect(Agent::Goose, "PreToolUse", &ran), "deny", "{tool}: {ran:?}");
        assert!(ran.stdout.contains("harness allow-once"), "{tool}: {ran:?}");
    }
    for tool in ["load", "load_skill", "edit", "undelegate"] {
        let sent = of_tool(&project, row, tool, &json!({"name": "x"})).to_string();
        assert_eq!(send(&project, Agent::Goose, &[], sent.as_bytes()).stdout, "", "{tool}");
    }
}

#[test]
fn an_argument_that_says_where_or_with_what_a_command_runs_is_not_passed_over() {
    let project = Project::new();
    for row in RECORDED.into_iter().filter(|row| !matches!(row.0, Agent::Cursor | Agent::Windsurf)) {
        let (agent, name, command_at, _) = row;
        let (input_at, _) = command_at.split_once("/command").unwrap();
        for key in ["cwd", "workdir", "working_directory", "dir_path", "env", "shell"] {
            let mut sent = payload(&project, row, "grep -c alpha a.txt");
            let input = sent.pointer_mut(input_at).unwrap().as_object_mut().unwrap();
            input.insert(key.to_owned(), json!("/etc"));
            let ran = send(&project, agent, &[], sent.to_string().as_bytes());
            let got = effect(agent, event_of(name), &ran);
            let left_to_codex = agent == Agent::Codex && got == "ask";
            assert!(matches!(got, "ask" | "deny") || left_to_codex, "{agent:?} {name} {key}: {got} {ran:?}");
            assert!(
                !ran.stdout.is_empty() || agent == Agent::Codex || got == "ask",
                "{agent:?} {key}: {ran:?}"
            );
        }
    }
    let gemini = *RECORDED.iter().find(|row| row.0 == Agent::Gemini).unwrap();
    let mut sent = payload(&project, gemini, "grep -c alpha a.txt");
    sent["tool_input"]["dir_path"] = json!("");
    sent["tool_input"]["directory"] = json!("/etc");
    let ran = send(&project, Agent::Gemini, &[], sent.to_string().as_bytes());
    assert_eq!(effect(Agent::Gemini, "BeforeTool", &ran), "deny", "{ran:?}");
}

#[test]
fn every_command_of_a_payload_counts() {
    let project = Project::new();
    let row = |agent| *RECORDED.iter().find(|row| row.0 == agent).unwrap();
    let cline = row(Agent::Cline);
    for (input, expected) in [
        (json!({"commands": ["cat a.txt", "grep -c alpha a.txt"]}), "allow"),
        (json!(["cat a.txt", {"command": "cat", "args": ["a.txt"]}]), "allow"),
        (json!({"commands": ["cat a.txt", "rm x"]}), "deny"),
        (json!({"commands": ["cat a.txt", {"command": "rm", "args": ["x"]}]}), "deny"),
        (json!({"commands": ["cat a.txt"], "command": "rm x"}), "deny"),
        (json!({"commands": ["cat a.txt"], "cmd": "cat a.txt"}), "deny"),
        (json!({"command": "cat a.txt", "cmd": "rm x"}), "deny"),
        (json!({"commands": [{"command": "cat a.txt", "commands": ["rm x"]}]}), "deny"),
        (json!({"commands": ["cat"], "args": ["a.txt"]}), "deny"),
        (json!({"commands": [["cat a.txt"], "rm x"]}), "deny"),
    ] {
        let sent = of_tool(&project, cline, "run_commands", &input).to_string();
        let ran = send(&project, Agent::Cline, &[], sent.as_bytes());
        assert_eq!(effect(Agent::Cline, "PreToolUse", &ran), expected, "{input}: {ran:?}");
    }
    // A list of words is no text, and might be joined to one.
    for row in RECORDED.into_iter().filter(|row| !matches!(row.0, Agent::Codex | Agent::Cline)) {
        let mut sent = payload(&project, row, "x");
        *sent.pointer_mut(row.2).unwrap() = json!(["cat", "a.txt"]);
        let ran = send(&project, row.0, &[], sent.to_string().as_bytes());
        let got = effect(row.0, event_of(row.1), &ran);
        assert!(matches!(got, "ask" | "deny"), "{row:?}: {got} {ran:?}");
    }
    // A directory that cannot be read is none that could be left out.
    for (row, key) in [(cline, "workspaceRoots"), (row(Agent::Cursor), "workspace_roots")] {
        for roots in [json!("/p"), json!([7]), json!(["relative"])] {
            let mut sent = payload(&project, row, "cat a.txt");
            sent[key] = roots;
            let ran = send(&project, row.0, &[], sent.to_string().as_bytes());
            assert_eq!(effect(row.0, event_of(row.1), &ran), "deny", "{sent}: {ran:?}");
        }
    }
    let mut nameless = payload(&project, RECORDED[7], "cat a.txt");
    nameless.as_object_mut().unwrap().remove("hook_event_name");
    let ran = send(&project, Agent::Copilot, &[], nameless.to_string().as_bytes());
    assert_eq!((ran.code, effect(Agent::Copilot, "PreToolUse", &ran)), (2, "deny"), "{ran:?}");
    let both = json!({"command": "cat a.txt", "cmd": "rm x"});
    let sent = of_tool(&project, row(Agent::Codex), "exec_command", &both).to_string();
    let ran = send(&project, Agent::Codex, &[], sent.as_bytes());
    assert_eq!(effect(Agent::Codex, "PreToolUse", &ran), "deny", "{ran:?}");
}
