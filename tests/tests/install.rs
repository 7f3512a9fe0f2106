//! Installing in front of an agent, and taking it away again.

use cmdgate_harness::hook::Agent;
use cmdgate_tests::Project;
use serde_json::Value;

fn file_of(agent: Agent) -> &'static str {
    match agent {
        Agent::ClaudeCode => ".claude/settings.json",
        Agent::Codex => ".codex/hooks.json",
        Agent::Gemini => ".gemini/settings.json",
        Agent::Cursor => ".cursor/hooks.json",
        Agent::Copilot => ".copilot/hooks/cmdgate.json",
        // In `XDG_CONFIG_HOME`, which stands beside the home directory here.
        Agent::Opencode => "../config/opencode/plugins/cmdgate.js",
        Agent::Windsurf => ".codeium/windsurf/hooks.json",
        Agent::Cline => ".cline/hooks/PreToolUse",
        Agent::Goose => panic!("its name is not known beforehand"),
    }
}

fn path_of(project: &Project, agent: Agent) -> std::path::PathBuf {
    if agent == Agent::Goose {
        return gooses_plugin(project).join("hooks/hooks.json");
    }
    project.home().join(file_of(agent))
}

/// The one plugin of the user for goose; a name of nothing when there is none.
fn gooses_plugin(project: &Project) -> std::path::PathBuf {
    let plugins = project.home().join(".agents/plugins");
    let found: Vec<_> =
        std::fs::read_dir(&plugins).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    assert!(found.len() < 2, "{found:?}");
    found.into_iter().next().unwrap_or_else(|| plugins.join("none"))
}

#[test]
fn installing_twice_is_installing_once_and_uninstalling_undoes_it() {
    for agent in Agent::ALL {
        let project = Project::new();
        let dry = project.harness(["install", agent.name(), "--dry-run"]);
        assert_eq!(dry.code, 0, "{dry:?}");
        assert!(!path_of(&project, agent).exists(), "{agent:?}");
        assert_eq!(project.harness(["install", agent.name()]).code, 0, "{agent:?}");
        let file = path_of(&project, agent);
        let once = std::fs::read_to_string(&file).unwrap();
        assert!(once.contains("hook"), "{once}");
        let again = project.harness(["install", agent.name()]);
        assert!(again.stdout.contains("nothing to change"), "{agent:?} {again:?}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), once);
        assert_eq!(project.harness(["uninstall", agent.name()]).code, 0);
        let left = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(!left.contains(agent.name()), "{agent:?}: {left}");
    }
}

#[test]
fn settings_that_an_agents_own_variable_puts_elsewhere_are_found_there() {
    // contract: X6
    let project = Project::new();
    let elsewhere = project.scratch().join("elsewhere");
    for (agent, variable, file) in [
        (Agent::ClaudeCode, "CLAUDE_CONFIG_DIR", "settings.json"),
        (Agent::Codex, "CODEX_HOME", "hooks.json"),
        (Agent::Gemini, "GEMINI_CLI_HOME", ".gemini/settings.json"),
        (Agent::Copilot, "COPILOT_HOME", "hooks/cmdgate.json"),
        (Agent::Opencode, "XDG_CONFIG_HOME", "opencode/plugins/cmdgate.js"),
    ] {
        let directory = elsewhere.join(agent.name());
        let run = |arguments: &[&str], value: &std::path::Path| {
            let mut command = project.command(arguments);
            command.env(variable, value).env("PATH", "/usr/bin:/bin");
            cmdgate_tests::Ran::from(command.output().unwrap())
        };
        assert_eq!(run(&["install", agent.name()], &directory).code, 0);
        assert!(directory.join(file).is_file(), "{agent:?}");
        assert!(!path_of(&project, agent).exists(), "{agent:?}");
        let report = run(&["doctor", "--agents", "--json"], &directory).json();
        let found = report["agents"].as_array().unwrap().iter().find(|known| known["agent"] == agent.name());
        assert!(found.unwrap()["checks"].to_string().contains("was refused in"), "{report}");
        // Without the variable the agent does not read it, and with one that is no whole path neither of them knows where it is.
        let report = project.harness(["doctor", "--agents", "--json"]).json();
        assert!(!report.to_string().contains(agent.name()), "{report}");
        assert_eq!(run(&["uninstall", agent.name()], &directory).code, 0);
        assert!(!directory.join(file).exists(), "{agent:?}");
        if agent != Agent::Opencode {
            let shown = run(&["install", agent.name(), "--dry-run"], std::path::Path::new("relative"));
            assert!(shown.stdout.contains(&*path_of(&project, agent).to_string_lossy()), "{shown:?}");
        }
    }
}

#[test]
fn foreign_entries_stay_in_their_order() {
    let project = Project::new();
    let before = r#"{
  "model": "x",
  "hooks": {
    "PreToolUse": [
      { "matcher": "Bash", "hooks": [{ "type": "command", "command": "/opt/audit" }] }
    ],
    "Stop": [{ "hooks": [{ "type": "command", "command": "say done" }] }]
  },
  "permissions": { "deny": ["Bash(rm *)"] }
}
"#;
    project.write_beside("home/.claude/settings.json", before);
    let path = project.home().join(".claude/settings.json");
    assert_eq!(project.harness(["install", "claude-code", "--contain"]).code, 0);
    let installed: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let entries = installed["hooks"]["PreToolUse"].as_array().unwrap();
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[0]["hooks"][0]["command"], "/opt/audit");
    assert_eq!(entries[1]["hooks"][0]["onFailure"], "block");
    let line = entries[1]["hooks"][0]["command"].as_str().unwrap();
    assert!(line.contains("harness hook claude-code --contain || "), "{line}");
    assert_eq!(
        std::fs::read_to_string(project.home().join(".claude/settings.json.before-cmdgate")).unwrap(),
        before
    );
    assert_eq!(project.harness(["uninstall", "claude-code"]).code, 0);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), before);
    assert!(!project.home().join(".claude/settings.json.before-cmdgate").exists());
}

#[test]
fn comments_stay_and_what_others_changed_meanwhile_stays() {
    let project = Project::new();
    let before = "{\n  // my model\n  \"model\": \"x\", /* fast */\n}\n";
    project.write_beside("home/.gemini/settings.json", before);
    let path = project.home().join(".gemini/settings.json");
    assert_eq!(project.harness(["install", "gemini"]).code, 0);
    let installed = std::fs::read_to_string(&path).unwrap();
    assert!(installed.contains("// my model") && installed.contains("/* fast */"), "{installed}");
    std::fs::write(&path, installed.replace("\"x\"", "\"y\"")).unwrap();
    assert_eq!(project.harness(["uninstall", "gemini"]).code, 0);
    let left = std::fs::read_to_string(&path).unwrap();
    assert!(left.contains("\"y\"") && left.contains("// my model") && !left.contains("hook"), "{left}");
}

#[test]
fn a_plugin_of_goose_has_a_manifest_and_goes_without_a_trace() {
    let project = Project::new();
    assert_eq!(project.harness(["install", "goose"]).code, 0);
    let plugin = gooses_plugin(&project);
    let manifest = std::fs::read_to_string(plugin.join("plugin.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&manifest).unwrap()["name"], "cmdgate");
    // Its shell is called `shell`; the documentation says `developer__shell`. The expression may match anywhere in the name.
    let hooks: Value =
        serde_json::from_str(&std::fs::read_to_string(plugin.join("hooks/hooks.json")).unwrap()).unwrap();
    let matcher = hooks["hooks"]["PreToolUse"][0]["matcher"].as_str().unwrap();
    let words: Vec<&str> = matcher.strip_prefix("(?i)").unwrap().split('|').collect();
    assert!(words.iter().all(|word| word.chars().all(|c| c.is_ascii_lowercase())), "{matcher}");
    for (tool, shown) in [
        ("shell", true),
        ("developer__shell", true),
        ("computercontroller__automation_script", true),
        ("execute_typescript", true),
        ("delegate", true),
        ("edit", false),
        ("tree", false),
        ("load_skill", false),
    ] {
        assert_eq!(words.iter().any(|word| tool.contains(word)), shown, "{tool}");
    }
    assert!(project.harness(["install", "goose"]).stdout.contains("nothing to change"));
    assert_eq!(project.harness(["uninstall", "goose"]).code, 0);
    assert!(!plugin.join("plugin.json").exists() && !plugin.join("hooks/hooks.json").exists());
}

#[test]
fn no_project_knows_the_name_of_the_users_plugin_for_goose() {
    // contract: X6
    let name = |project: &Project| {
        assert_eq!(project.harness(["install", "goose"]).code, 0);
        gooses_plugin(project).file_name().unwrap().to_string_lossy().into_owned()
    };
    let (one, other) = (Project::new(), Project::new());
    let (first, second) = (name(&one), name(&other));
    assert!(first.starts_with("cmdgate-") && first.len() >= 24 && first != second, "{first} {second}");
    assert_eq!(name(&one), first);
    // What was installed under the name that anybody knows is taken away.
    let old = Project::new();
    let plugin = old.home().join(".agents/plugins/cmdgate");
    std::fs::create_dir_all(plugin.parent().unwrap()).unwrap();
    std::fs::rename(gooses_plugin(&one), &plugin).unwrap();
    let ran = old.harness(["install", "goose"]);
    assert!(ran.code == 0 && ran.stdout.contains("removed: "), "{ran:?}");
    assert!(!plugin.join("plugin.json").exists() && !plugin.join("hooks/hooks.json").exists());
    let mut doctor = old.command(["doctor", "--agents", "--json"]);
    let report = cmdgate_tests::Ran::from(doctor.env("PATH", "/usr/bin:/bin").output().unwrap()).json();
    assert!(!report.to_string().contains("2 times"), "{report}");
    assert!(report.to_string().contains("was refused in"), "{report}");
}

#[test]
fn the_entry_for_copilot_is_one_that_vs_code_runs_too() {
    // contract: X6
    let project = Project::new();
    let file = project.home().join(".copilot/hooks/cmdgate.json");
    assert_eq!(project.harness(["install", "copilot"]).code, 0);
    let text = std::fs::read_to_string(&file).unwrap();
    let entry = |text: &str| {
        let settings: Value = serde_json::from_str(text).unwrap();
        let list = settings["hooks"]["preToolUse"].as_array().unwrap().clone();
        assert_eq!(list.len(), 1, "{text}");
        list[0].clone()
    };
    // VS Code 1.139 looks for one of these texts and skips an entry that has none.
    let line = ["command", "bash", "linux", "osx"]
        .into_iter()
        .find_map(|key| entry(&text)[key].as_str().map(ToOwned::to_owned));
    assert!(line.unwrap().contains(" hook copilot"), "{text}");
    // What was installed before has none, and is replaced.
    let program = cmdgate_tests::harness_binary();
    let before = serde_json::json!({ "version": 1, "hooks": { "preToolUse": [{
        "type": "command", "exec": program, "args": ["hook", "copilot"], "matcher": "bash|powershell", "timeoutSec": 10,
    }] } });
    std::fs::write(&file, before.to_string()).unwrap();
    let mut doctor = project.command(["doctor", "--agents"]);
    let ran: cmdgate_tests::Ran = doctor.env("PATH", "/usr/bin:/bin").output().unwrap().into();
    assert!(ran.code == 1 && ran.stdout.contains("VS Code skips"), "{ran:?}");
    assert_eq!(project.harness(["install", "copilot"]).code, 0);
    assert_eq!(entry(&std::fs::read_to_string(&file).unwrap()), entry(&text));
}

#[test]
fn what_is_to_be_added_by_hand_is_what_would_have_been_written() {
    let project = Project::new();
    for agent in Agent::ALL.into_iter().filter(|agent| *agent != Agent::Cline) {
        assert_eq!(project.harness(["install", agent.name()]).code, 0);
        let file = path_of(&project, agent);
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("/nowhere/at/all", &file).unwrap();
        let ran = project.harness(["install", agent.name()]);
        assert_eq!(ran.code, 125, "{ran:?}");
        assert!(ran.stderr.contains(&text), "{agent:?}: {ran:?}");
    }
}

#[test]
fn files_that_cannot_be_changed_without_loss_are_left_alone() {
    let project = Project::new();
    for (agent, text) in [
        ("claude-code", "{ // mine\n \"hooks\": { }, \"hooks\": {} }"),
        ("cursor", "{\"hooks\": []}"),
        ("gemini", "not json"),
        ("cline", "#!/bin/sh\necho mine\n"),
    ] {
        let agent_type = Agent::ALL.into_iter().find(|known| known.name() == agent).unwrap();
        project.write_beside(std::path::Path::new("home").join(file_of(agent_type)), text);
        let ran = project.harness(["install", agent]);
        assert_eq!(ran.code, 125, "{ran:?}");
        assert!(!ran.stderr.is_empty());
        assert_eq!(std::fs::read_to_string(project.home().join(file_of(agent_type))).unwrap(), text);
    }
}

#[test]
fn the_installed_line_refuses_a_dangerous_payload() {
    // contract: X6
    let project = Project::new();
    assert_eq!(project.harness(["install", "cursor"]).code, 0);
    let text = std::fs::read_to_string(project.home().join(".cursor/hooks.json")).unwrap();
    let installed: Value = serde_json::from_str(&text).unwrap();
    let line = installed["hooks"]["beforeShellExecution"][0]["command"].as_str().unwrap();
    let payload = serde_json::json!({
        "hook_event_name": "beforeShellExecution", "command": "cat .env; curl x", "cwd": project.root(),
    });
    let mut child = std::process::Command::new("sh")
        .args(["-c", line])
        .env("HOME", project.home())
        .env("XDG_STATE_HOME", project.scratch().join("state"))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), payload.to_string().as_bytes()).unwrap();
    let answer: Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(answer["permission"], "deny", "{answer}");
}

#[test]
fn a_hook_that_is_gone_or_crashes_blocks() {
    // contract: X6
    let project = Project::new();
    let stubs = project.scratch().join("stubs");
    std::fs::create_dir(&stubs).unwrap();
    let stub = stubs.join("harness");
    for agent in [
        Agent::ClaudeCode,
        Agent::Codex,
        Agent::Gemini,
        Agent::Copilot,
        Agent::Windsurf,
        Agent::Cline,
        Agent::Goose,
    ] {
        assert_eq!(project.harness(["install", agent.name()]).code, 0);
        let path = path_of(&project, agent);
        let text = std::fs::read_to_string(&path).unwrap();
        let own = text.split('"').chain(text.split('(')).find(|part| part.starts_with('/')).unwrap();
        let own = own.split(" hook").next().unwrap().to_owned();
        let run = |program: &str| {
            let line = if agent == Agent::Cline {
                text.clone()
            } else {
                let settings: Value = serde_json::from_str(&text).unwrap();
                let event = &settings["hooks"][agent.first_event()][0];
                let handler = event["hooks"].get(0).unwrap_or(event);
                handler["command"].as_str().or(handler["bash"].as_str()).unwrap().to_owned()
            };
            let mut child = std::process::Command::new("sh")
                .args(["-c", &line.replace(&own, program)])
                .env("HOME", project.home())
                .env("XDG_STATE_HOME", project.scratch().join("state"))
                .stdin(std::process::Stdio::piped())
                .stdout(std::process::Stdio::piped())
                .stderr(std::process::Stdio::piped())
                .spawn()
                .unwrap();
            let payload = agent.payload("rm -rf x", &project.root()).to_string();
            let _ = std::io::Write::write_all(&mut child.stdin.take().unwrap(), payload.as_bytes());
            child.wait_with_output().unwrap()
        };
        for script in [None, Some("exit 1"), Some("kill -9 $$"), Some("exit 127")] {
            let _ = std::fs::remove_file(&stub);
            if let Some(script) = script {
                std::fs::write(&stub, format!("#!/bin/sh\n{script}\n")).unwrap();
                std::fs::set_permissions(&stub, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
            }
            let output = run(&stub.to_string_lossy());
            let said = String::from_utf8_lossy(&output.stdout);
            let taken = agent.takes(agent.first_event(), &said, output.status.code());
            assert!(taken.refuses(), "{agent:?} {script:?}: {taken:?} {output:?}");
            let reason = if agent == Agent::Cline { &output.stdout } else { &output.stderr };
            assert!(String::from_utf8_lossy(reason).contains("the hook failed"), "{agent:?}: {output:?}");
        }
        // And the hook's own answer comes through as it is.
        let output = run(&own);
        assert!(
            !String::from_utf8_lossy(&output.stderr).contains("the hook failed"),
            "{agent:?}: {output:?}"
        );
        let said = String::from_utf8_lossy(&output.stdout);
        let taken = agent.takes(agent.first_event(), &said, output.status.code());
        assert!(taken.refuses(), "{agent:?}: {taken:?} {output:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_hostile_repository_cannot_have_a_file_outside_written() {
    let project = Project::new();
    project.write_beside("home/.ssh/authorized_keys", "mine");
    let keys = project.home().join(".ssh/authorized_keys");
    project.write(".claude/settings.json", "{ \"model\": \"ssh-ed25519 AAAA\" }");
    let copy = project.root().join(".claude/settings.json.before-cmdgate");
    std::os::unix::fs::symlink(&keys, copy).unwrap();
    std::os::unix::fs::symlink(project.home().join(".ssh"), project.root().join(".cursor")).unwrap();
    for agent in ["claude-code", "cursor"] {
        let ran = project.harness(["install", agent, "--scope", "project"]);
        assert_eq!(ran.code, 125, "{ran:?}");
        assert!(ran.stderr.contains("nothing was changed"), "{ran:?}");
    }
    assert_eq!(std::fs::read_to_string(&keys).unwrap(), "mine");
    assert_eq!(std::fs::read_dir(keys.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn a_relative_home_is_refused() {
    let project = Project::new();
    let ran = project.command(["install", "gemini"]).env("HOME", "home").output().unwrap();
    let stderr = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(ran.status.code(), Some(125), "{stderr}");
    assert!(stderr.contains("not an absolute path"), "{stderr}");
    assert!(!project.root().join("home").exists());
}

#[test]
fn a_file_that_is_no_settings_is_left_as_it_is_and_said() {
    use std::os::unix::fs::{FileTypeExt, symlink};
    let project = Project::new();
    let settings = project.home().join(".claude/settings.json");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    let install = || project.harness(["install", "claude-code"]);
    for (content, said) in [
        (&b"\xef\xbb\xbf{}"[..], "byte order mark"),
        (b"{\"a\":\"\xff\"}", "not UTF-8"),
        (b"[]", "not an object"),
        (b"null", "not an object"),
        (b"{\"hooks\":[]}", "`hooks` is not an object"),
        (b"{\"hooks\":null}", "`hooks` is not an object"),
        (b"{\"hooks\":{\"PreToolUse\":{}}}", "not a list"),
        (b"{\"hooks\":{},\"hooks\":{}}", "stands twice"),
        (b"{\"a\":", "nothing was changed"),
        (b"{'a':1}", "nothing was changed"),
        (b"{\"a\":1} x", "nothing was changed"),
    ] {
        std::fs::write(&settings, content).unwrap();
        let ran = install();
        assert!(ran.code == 125 && ran.stderr.contains(said), "{said}: {ran:?}");
        assert_eq!(std::fs::read(&settings).unwrap(), content);
    }
    std::fs::remove_file(&settings).unwrap();
    symlink("settings.json", &settings).unwrap();
    assert!(install().stderr.contains("nothing was changed"));
    std::fs::remove_file(&settings).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&settings).status().unwrap().success());
    assert!(install().stderr.contains("not a regular file"));
    assert!(std::fs::metadata(&settings).unwrap().file_type().is_fifo());
    std::fs::remove_file(&settings).unwrap();
    std::fs::create_dir(&settings).unwrap();
    assert!(install().stderr.contains("not a regular file"));
    std::fs::remove_dir(&settings).unwrap();
    // What can be read is kept byte by byte, line ends and commas too; also where there is very much of it.
    let many: Vec<String> = (0..5_000)
        .map(|at| {
            format!(
                "{{\"matcher\":\"X{at}\",\"hooks\":[{{\"type\":\"command\",\"command\":\"echo {at}\"}}]}}"
            )
        })
        .collect();
    let many = format!("{{\"hooks\":{{\"PreToolUse\":[{}]}}}}", many.join(",\n"));
    let long = format!("{{\n  // long\n  \"x\": \"{}\",\n}}", "y".repeat(3_000_000));
    for content in ["{\r\n\t// x\r\n\t\"a\": [1, ],\r\n}\r\n", "", " \n", "// only\n", &many, &long] {
        std::fs::write(&settings, content).unwrap();
        assert_eq!(install().code, 0);
        let with = std::fs::read_to_string(&settings).unwrap();
        assert!(with.contains("hook claude-code"), "{}", &with[..with.len().min(300)]);
        assert_eq!(content.contains('\r'), with.contains('\r'));
        assert!(install().stdout.contains("nothing to change"));
        assert_eq!(project.harness(["uninstall", "claude-code"]).code, 0);
        assert_eq!(std::fs::read_to_string(&settings).unwrap(), content);
    }
}
