//! `harness doctor --agents`: is each agent behind this program, and would it refuse what it must?

use cmdgate_harness::hook::Agent;
use cmdgate_tests::{Project, Ran, harness_binary};
use serde_json::Value;
use std::path::Path;

/// Runs the doctor with nothing on PATH but the system and `bin` beside the project.
fn doctor(project: &Project, options: &[&str]) -> Ran {
    let bin = project.scratch().join("bin");
    let mut command = project.command([&["doctor", "--agents"], options].concat());
    command.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
    command.output().unwrap().into()
}

/// The checks of one agent with this name: status and detail.
fn checks(report: &Value, agent: &str, name: &str) -> Vec<(String, String)> {
    let agents = report["agents"].as_array().unwrap();
    let agent = agents.iter().find(|known| known["agent"] == agent).unwrap_or_else(|| panic!("{report}"));
    let text = |check: &Value, key: &str| check[key].as_str().unwrap().to_owned();
    agent["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| check["name"] == name)
        .map(|check| (text(check, "status"), text(check, "detail")))
        .collect()
}

fn only(report: &Value, agent: &str, name: &str) -> (String, String) {
    let mut found = checks(report, agent, name);
    assert_eq!(found.len(), 1, "{agent} {name}: {report}");
    found.remove(0)
}

fn script(project: &Project, path: impl AsRef<Path>, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    project.write_beside(&path, text);
    let path = project.scratch().join(path);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Changes the registered program in every file of settings below a directory.
fn replace_program(directory: &Path, with: &str) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            replace_program(&path, with);
        } else if let Ok(text) = std::fs::read_to_string(&path) {
            let program = harness_binary().to_string_lossy().into_owned();
            let mode = std::fs::metadata(&path).unwrap().permissions();
            std::fs::write(&path, text.replace(&program, with)).unwrap();
            std::fs::set_permissions(&path, mode).unwrap();
        }
    }
}

/// A file below the home directory; for the directory of goose's plugins that of the only one, whose name is not known.
fn settings_of(project: &Project, file: &str) -> std::path::PathBuf {
    let path = project.home().join(file);
    if !path.is_dir() {
        return path;
    }
    std::fs::read_dir(path).unwrap().next().unwrap().unwrap().path().join("hooks/hooks.json")
}

fn trust_codex(project: &Project) {
    let hooks = project.home().join(".codex/hooks.json");
    let key = |event: &str| {
        format!("[hooks.state.\"{}:{event}:0:0\"]\ntrusted_hash = \"sha256:x\"\n", hooks.display())
    };
    project.write_beside(
        "home/.codex/config.toml",
        &format!("model = \"x\"\n{}{}", key("pre_tool_use"), key("permission_request")),
    );
}

#[test]
fn without_agents_there_is_nothing_to_say() {
    let project = Project::new();
    let ran = doctor(&project, &[]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("no agent is here"), "{ran:?}");
}

#[test]
fn an_installed_hook_refuses_the_canary_for_every_agent() {
    // contract: X6
    let project = Project::new();
    for agent in Agent::ALL {
        for options in [&[][..], &["--contain"]] {
            let installed = project.harness([&["install", agent.name()], options].concat());
            if installed.code != 0 {
                assert!(!agent.rewrites() && !options.is_empty(), "{agent:?} {installed:?}");
                continue;
            }
            let report = doctor(&project, &["--json"]).json();
            let canary = only(&report, agent.name(), "canary");
            assert_eq!(canary.0, "ok", "{agent:?}: {canary:?}");
            assert_eq!(only(&report, agent.name(), "program").0, "ok", "{report}");
            assert_eq!(only(&report, agent.name(), "registered").0, "ok", "{report}");
        }
    }
    let untrusted = doctor(&project, &["--json"]);
    assert_eq!(untrusted.code, 1, "Codex skips what nobody approved: {untrusted:?}");
    assert_eq!(only(&untrusted.json(), "codex", "trusted").0, "failed");
    trust_codex(&project);
    let trusted = doctor(&project, &["--json"]);
    assert_eq!(trusted.code, 0, "{trusted:?}");
    assert_eq!(only(&trusted.json(), "codex", "trusted").0, "ok");
    project.write_beside("home/.codex/config.toml", "features = { hooks = false }\n");
    assert_eq!(only(&doctor(&project, &["--json"]).json(), "codex", "trusted").0, "failed");
}

#[test]
fn a_sandbox_in_the_sandbox_of_codex_is_warned_of() {
    let project = Project::new();
    assert_eq!(project.harness(["install", "codex"]).code, 0);
    let report = || doctor(&project, &["--json"]).json();
    assert!(checks(&report(), "codex", "nested").is_empty());
    assert_eq!(project.harness(["install", "codex", "--contain"]).code, 0);
    for (mode, expected) in [
        ("", "warning"),
        ("sandbox_mode = \"workspace-write\"\n", "warning"),
        ("sandbox_mode = \"danger-full-access\"\n", "ok"),
    ] {
        project.write_beside("home/.codex/config.toml", mode);
        assert_eq!(only(&report(), "codex", "nested").0, expected, "{mode}");
    }
    // The project's own counts more.
    project.write(".codex/config.toml", "sandbox_mode = \"read-only\"\n");
    assert_eq!(only(&report(), "codex", "nested").0, "warning");
}

#[test]
fn a_hook_that_says_nothing_or_allows_fails() {
    for answer in ["", "echo '{}'", "echo '{\"decision\":\"allow\",\"permission\":\"allow\"}'", "exit 1"] {
        let project = Project::new();
        for agent in Agent::ALL {
            assert_eq!(project.harness(["install", agent.name()]).code, 0);
        }
        script(&project, "fake/harness", &format!("#!/bin/sh\n{answer}\n"));
        for settings in [project.home(), project.scratch().join("config")] {
            replace_program(&settings, &project.scratch().join("fake/harness").to_string_lossy());
        }
        let ran = doctor(&project, &["--json"]);
        assert_eq!(ran.code, 1, "{ran:?}");
        for agent in Agent::ALL {
            let canary = only(&ran.json(), agent.name(), "canary");
            // The plugin of opencode refuses by itself, and a crash blocks with Copilot, and where the line says so.
            let on_crash = [
                Agent::ClaudeCode,
                Agent::Codex,
                Agent::Copilot,
                Agent::Gemini,
                Agent::Windsurf,
                Agent::Goose,
            ];
            let refuses = agent == Agent::Opencode || (on_crash.contains(&agent) && answer == "exit 1");
            assert_eq!(canary.0, if refuses { "ok" } else { "failed" }, "{agent:?} {answer:?}: {canary:?}");
        }
    }
}

#[test]
fn a_program_that_is_gone_relative_or_hangs_fails() {
    let project = Project::new();
    assert_eq!(project.harness(["install", "gemini"]).code, 0);
    replace_program(&project.home(), "/nowhere/harness");
    let ran = doctor(&project, &["--json"]);
    assert_eq!(ran.code, 1);
    assert_eq!(only(&ran.json(), "gemini", "program").0, "failed");
    let file = project.home().join(".gemini/settings.json");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("/nowhere/harness", "harness")).unwrap();
    let ran = doctor(&project, &["--json"]);
    let program = only(&ran.json(), "gemini", "program");
    assert!(program.0 == "failed" && program.1.contains("not an absolute path"), "{program:?}");
    script(&project, "fake/harness", "#!/bin/sh\nsleep 60\n");
    std::fs::write(
        &file,
        text.replace("/nowhere/harness", &project.scratch().join("fake/harness").to_string_lossy()),
    )
    .unwrap();
    let begun = std::time::Instant::now();
    let ran = doctor(&project, &["--json"]);
    assert!(begun.elapsed().as_secs() < 30, "{:?}", begun.elapsed());
    assert_eq!(only(&ran.json(), "gemini", "canary").0, "failed");
    assert_eq!(ran.code, 1);
}

#[test]
fn duplicates_missing_events_and_changed_entries_are_named() {
    let project = Project::new();
    assert_eq!(project.harness(["install", "claude-code"]).code, 0);
    assert_eq!(project.harness(["install", "claude-code", "--scope", "project"]).code, 0);
    let report = doctor(&project, &["--json"]).json();
    let found = checks(&report, "claude-code", "registered");
    assert!(found.iter().any(|(status, text)| status == "warning" && text.contains("2 times")), "{report}");
    assert_eq!(project.harness(["uninstall", "claude-code", "--scope", "project"]).code, 0);
    let file = project.home().join(".claude/settings.json");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(
        &file,
        text.replace("Bash|Monitor|PowerShell", "Bash").replace("PreSkillShellCommand", "Stop"),
    )
    .unwrap();
    let ran = doctor(&project, &["--json"]);
    let found = checks(&ran.json(), "claude-code", "registered");
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(found.iter().any(|(status, text)| status == "failed" && text.contains("PreSkillShellCommand")));
    assert!(found.iter().any(|(status, text)| status == "failed" && text.contains("matcher")), "{found:?}");
    std::fs::write(&file, text.replace("\"block\"", "\"continue\"")).unwrap();
    let report = doctor(&project, &["--json"]).json();
    assert_eq!(only(&report, "claude-code", "fail_closed").0, "warning");
}

#[test]
fn a_hook_that_the_agent_does_not_run_fails_though_it_would_refuse() {
    type Edit = fn(&mut Value);
    let edits: [(&str, &str, Edit); 12] = [
        ("claude-code", ".claude/settings.json", |all| all["disableAllHooks"] = true.into()),
        ("claude-code", ".claude/settings.json", |all| {
            all["hooks"]["PreToolUse"][0]["hooks"][0]["if"] = "Bash(git *)".into();
        }),
        ("claude-code", ".claude/settings.json", |all| {
            all["hooks"]["PreToolUse"][0]["hooks"][0]["async"] = true.into();
        }),
        ("claude-code", ".claude/settings.json", |all| {
            all["hooks"]["PreToolUse"][0]["hooks"][0]["type"] = "prompt".into();
        }),
        ("claude-code", ".claude/settings.json", |all| {
            all["hooks"]["PreToolUse"][0]["matcher"] = "Edit|Bash|Monitor".into();
        }),
        ("codex", ".codex/hooks.json", |all| {
            all["hooks"]["PreToolUse"][0]["matcher"] = "^apply_patch$".into();
        }),
        ("gemini", ".gemini/settings.json", |all| all["hooksConfig"]["enabled"] = false.into()),
        ("gemini", ".gemini/settings.json", |all| {
            all["hooksConfig"]["disabled"] = vec![Value::from("other"), Value::from("cmdgate")].into();
        }),
        ("copilot", ".copilot/hooks/cmdgate.json", |all| all["disableAllHooks"] = true.into()),
        ("cursor", ".cursor/hooks.json", |all| {
            all["hooks"]["beforeShellExecution"][0]["matcher"] = "^git".into();
        }),
        ("goose", ".agents/plugins", |all| {
            all["hooks"]["PreToolUse"][0]["matcher"] = "developer__shell".into();
        }),
        ("goose", ".agents/plugins", |all| {
            all["hooks"]["PreToolUse"][0]["matcher"] = "*".into();
        }),
    ];
    // One edit of each agent at a time.
    let mut left = edits.to_vec();
    while !left.is_empty() {
        let project = Project::new();
        let mut now: Vec<(&str, &str, Edit)> = Vec::new();
        let mut later = Vec::new();
        for row in left {
            let taken = now.iter().any(|(agent, ..)| *agent == row.0);
            if taken { &mut later } else { &mut now }.push(row);
        }
        for (agent, file, edit) in &now {
            assert_eq!(project.harness(["install", agent]).code, 0);
            let file = settings_of(&project, file);
            let mut settings: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
            edit(&mut settings);
            std::fs::write(&file, settings.to_string()).unwrap();
        }
        let ran = doctor(&project, &["--json"]);
        assert_eq!(ran.code, 1, "{ran:?}");
        for (agent, file, _) in &now {
            let text = std::fs::read_to_string(settings_of(&project, file)).unwrap();
            let found = checks(&ran.json(), agent, "registered");
            assert!(found.iter().any(|(status, _)| status == "failed"), "{text}: {found:?}");
            assert_eq!(checks(&ran.json(), agent, "canary")[0].0, "ok", "{text}");
        }
        left = later;
    }
    // What a project says counts for Claude Code and Gemini CLI, and not for the user's file of Copilot.
    let project = Project::new();
    project.write(".claude/settings.json", "{\"disableAllHooks\": true}");
    project.write(".gemini/settings.json", "{\"hooksConfig\": {\"enabled\": false}}");
    project.write(".github/copilot/settings.json", "{\"disableAllHooks\": true}");
    for (agent, status) in [("claude-code", "failed"), ("gemini", "failed"), ("copilot", "ok")] {
        assert_eq!(project.harness(["install", agent]).code, 0);
        let report = doctor(&project, &["--json"]).json();
        assert_eq!(only(&report, agent, "registered").0, status, "{agent}");
    }
    // A matcher that shows more is as good.
    let project = Project::new();
    assert_eq!(project.harness(["install", "claude-code"]).code, 0);
    let file = project.home().join(".claude/settings.json");
    let text = std::fs::read_to_string(&file).unwrap();
    for wider in ["*", "", "Edit, PowerShell, Bash, Monitor"] {
        std::fs::write(&file, text.replace("Bash|Monitor|PowerShell", wider)).unwrap();
        let report = doctor(&project, &["--json"]).json();
        assert_eq!(only(&report, "claude-code", "registered").0, "ok", "{wider}");
    }
    // A plugin or script is this program's as a whole.
    for (agent, file) in
        [("opencode", "../config/opencode/plugins/cmdgate.js"), ("cline", ".cline/hooks/PreToolUse")]
    {
        assert_eq!(project.harness(["install", agent]).code, 0);
        let file = project.home().join(file);
        assert_eq!(only(&doctor(&project, &["--json"]).json(), agent, "registered").0, "ok");
        let text = std::fs::read_to_string(&file).unwrap();
        let mode = std::fs::metadata(&file).unwrap().permissions();
        std::fs::write(&file, text.replacen('\n', "\n\n", 1)).unwrap();
        assert_eq!(only(&doctor(&project, &["--json"]).json(), agent, "registered").0, "failed");
        std::fs::write(&file, text).unwrap();
        if agent == "cline" {
            std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
            assert_eq!(only(&doctor(&project, &["--json"]).json(), agent, "registered").0, "failed");
            std::fs::set_permissions(&file, mode).unwrap();
        }
    }
}

#[test]
fn versions_are_asked_for_and_compared() {
    let project = Project::new();
    assert_eq!(project.harness(["install", "claude-code"]).code, 0);
    for (version, known, closed) in [
        ("2.1.332 (Claude Code)", "ok", "ok"),
        ("2.1.290 (Claude Code)", "ok", "warning"),
        ("2.1.100 (Claude Code)", "ok", "warning"),
        ("2.0.1 (Claude Code)", "warning", "warning"),
        ("9.0.0 (Claude Code)", "note", "ok"),
        ("nonsense", "warning", "note"),
    ] {
        script(&project, "bin/claude", &format!("#!/bin/sh\necho '{version}'\n"));
        let report = doctor(&project, &["--json"]).json();
        assert_eq!(only(&report, "claude-code", "version").0, known, "{version}");
        assert_eq!(only(&report, "claude-code", "fail_closed").0, closed, "{version}");
    }
}

#[test]
fn nothing_that_the_project_chose_is_started() {
    let project = Project::new();
    let evil = "#!/bin/sh\ntouch started\nexit 2\n";
    script(&project, "project/evil/harness", evil);
    script(&project, "project/evil/claude", evil);
    script(&project, "elsewhere/harness", evil);
    for line in [
        project.root().join("evil/harness").to_string_lossy().into_owned(),
        project.scratch().join("elsewhere/harness").to_string_lossy().into_owned(),
        format!("touch started; {}", harness_binary().display()),
        format!("FOO=$(touch started) {}", harness_binary().display()),
    ] {
        let settings = serde_json::json!({ "hooks": { "PreToolUse": [{ "matcher": "Bash", "hooks": [
            { "type": "command", "command": format!("{line} hook claude-code") },
        ] }] } });
        project.write(".claude/settings.json", &settings.to_string());
        let mut command = project.command(["doctor", "--agents", "--json"]);
        command.env("PATH", format!("{}:/usr/bin:/bin", project.root().join("evil").display()));
        let ran: Ran = command.output().unwrap().into();
        assert!(!project.root().join("started").exists(), "{line}");
        for (status, detail) in checks(&ran.json(), "claude-code", "canary") {
            assert!(status == "warning" && detail.contains("not tried"), "{line}: {detail}");
        }
    }
}

#[test]
fn settings_that_cannot_be_read_are_named_and_the_report_is_for_people_too() {
    let project = Project::new();
    assert_eq!(project.harness(["install", "cursor"]).code, 0);
    project.write_beside("home/.gemini/settings.json", "{ // half");
    project.write_beside("home/.claude/settings.json", &"[".repeat(100_000));
    let ran = doctor(&project, &[]);
    assert_eq!(ran.code, 0, "{ran:?}");
    for part in [".gemini/settings.json", ".claude/settings.json", "harness install gemini", "was refused in"]
    {
        assert!(ran.stdout.contains(part), "{part}: {ran:?}");
    }
}
