use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};

fn plan(agent: Agent, home: &Path, contain: bool) -> Plan {
    Plan::new(
        agent,
        Scope::User,
        &Home::new(home),
        Path::new("/nowhere"),
        Path::new("/opt/bin/harness"),
        contain,
    )
}

fn apply(changes: &[Change]) {
    for change in changes.iter().filter(|change| change.is_needed()) {
        change.apply().unwrap();
    }
}

/// The agents whose hooks stand in a settings file of JSON, with two of their events.
const JSON: [(Agent, &str, &str); 6] = [
    (Agent::ClaudeCode, "PreToolUse", "Stop"),
    (Agent::Codex, "PreToolUse", "PermissionRequest"),
    (Agent::Gemini, "BeforeTool", "AfterTool"),
    (Agent::Cursor, "beforeShellExecution", "stop"),
    (Agent::Copilot, "preToolUse", "postToolUse"),
    (Agent::Windsurf, "pre_run_command", "post_run_command"),
];

/// Space and comments between two tokens.
fn trivia() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => Just(" ".to_owned()),
        3 => Just("\n  ".to_owned()),
        1 => Just("\t".to_owned()),
        1 => Just("\r\n".to_owned()),
        1 => "[a-z ]{0,8}".prop_map(|text| format!(" // c-{text}\n")),
        1 => "[a-z\n]{0,8}".prop_map(|text| format!(" /* c-{text} */ ")),
    ]
}

/// A handler of somebody else.
fn foreign() -> impl Strategy<Value = Value> {
    ("[a-z]{1,6}", any::<bool>()).prop_map(|(name, nested)| {
        let handler = json!({ "type": "command", "command": format!("/opt/{name} hook"), "timeout": 3 });
        if nested { json!({ "matcher": "Bash", "hooks": [handler] }) } else { handler }
    })
}

/// A document as people leave it: comments, odd spaces, trailing commas, foreign hooks before and after.
fn document() -> impl Strategy<Value = (usize, String)> {
    let list = || prop::collection::vec(foreign(), 0..3);
    (
        0..JSON.len(),
        prop::collection::vec(("[a-z]{1,5}", "[^\\x00-\\x1f\"\\\\]{0,8}"), 0..4),
        prop::option::of((list(), prop::option::of(list()), any::<bool>())),
        prop::collection::vec(trivia(), 24),
        any::<bool>(),
    )
        .prop_map(|(at, others, hooks, trivia, trailing)| {
            let mut spaces = trivia.into_iter().cycle();
            let mut space = move || spaces.next().unwrap_or_default();
            let comma = if trailing { "," } else { "" };
            let mut parts: Vec<String> = Vec::new();
            let mut names: Vec<String> = vec!["hooks".to_owned(), "version".to_owned()];
            for (name, text) in others {
                if !names.contains(&name) {
                    parts.push(format!("{:?}{}:{}{}", name, space(), space(), json!(text)));
                    names.push(name);
                }
            }
            if let Some((first, second, early)) = hooks {
                let list = |items: Vec<Value>, space: &mut dyn FnMut() -> String| {
                    let comma = if trailing && !items.is_empty() { "," } else { "" };
                    let items: Vec<String> =
                        items.iter().map(|item| format!("{}{item}{}", space(), space())).collect();
                    format!("[{}{comma}{}]", items.join(","), space())
                };
                let mut events = vec![format!("{:?}:{}", JSON[at].1, list(first, &mut space))];
                if let Some(second) = second {
                    events.push(format!("{}{:?}:{}", space(), JSON[at].2, list(second, &mut space)));
                }
                let text =
                    format!("\"hooks\":{}{{{}{}{comma}{}}}", space(), space(), events.join(","), space());
                parts.insert(if early { 0 } else { parts.len() }, text);
            }
            let spaced: Vec<String> =
                parts.iter().map(|part| format!("{}{part}{}", space(), space())).collect();
            let comma = if parts.is_empty() { "" } else { comma };
            (at, format!("{}{{{}{comma}{}}}{}", space(), spaced.join(","), space(), space()))
        })
}

fn comments(text: &str) -> Vec<&str> {
    let mut found: Vec<&str> =
        text.match_indices("c-").map(|(at, _)| text.get(at..at + 3).unwrap_or_default().trim_end()).collect();
    found.sort_unstable();
    found
}

/// Every handler of others, in order.
fn others(agent: Agent, value: &Value) -> Vec<Value> {
    let events = value.get("hooks").and_then(Value::as_object).cloned().unwrap_or_default();
    events
        .values()
        .flat_map(|list| list.as_array().cloned().unwrap_or_default())
        .flat_map(|entry| match entry.get("hooks") {
            Some(Value::Array(inner)) => inner.clone(),
            _ => vec![entry],
        })
        .filter(|handler| !found::is_ours(handler, agent))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn installing_and_uninstalling_changes_no_byte((at, text) in document(), again in any::<bool>()) {
        let (agent, _, _) = JSON[at];
        let scratch = tempfile::tempdir().unwrap();
        let plain = plan(agent, scratch.path(), false);
        fs::create_dir_all(plain.file.parent().unwrap()).unwrap();
        fs::write(&plain.file, &text).unwrap();
        let before = document::value(&plain.file, &text).unwrap();

        apply(&plain.install().unwrap());
        let once = fs::read_to_string(&plain.file).unwrap();
        let value = document::value(&plain.file, &once).unwrap();
        prop_assert!(plain.is_installed().unwrap(), "{}", once);
        let ours = found::in_text(agent, Scope::User, &plain.file, &once).unwrap();
        prop_assert_eq!(ours.len(), plain.events().len(), "{}", once);
        prop_assert_eq!(others(agent, &value), others(agent, &before), "{}", once);
        prop_assert_eq!(comments(&once), comments(&text), "{}", once);
        for (key, known) in before.as_object().unwrap() {
            prop_assert!(key == "hooks" || value.get(key) == Some(known));
        }

        if again && agent.rewrites() {
            let contained = plan(agent, scratch.path(), true);
            apply(&contained.install().unwrap());
            prop_assert!(contained.is_installed().unwrap());
            prop_assert_eq!(
                found::in_text(agent, Scope::User, &plain.file, &fs::read_to_string(&plain.file).unwrap()).unwrap().len(),
                plain.events().len()
            );
        }
        apply(&plain.uninstall().unwrap());
        prop_assert_eq!(fs::read_to_string(&plain.file).unwrap(), text);
        prop_assert!(!backup_of(&plain.file).exists());
    }

    #[test]
    fn without_the_copy_the_settings_stay_what_they_were((at, text) in document()) {
        let (agent, _, _) = JSON[at];
        let scratch = tempfile::tempdir().unwrap();
        let plan = plan(agent, scratch.path(), false);
        fs::create_dir_all(plan.file.parent().unwrap()).unwrap();
        fs::write(&plan.file, &text).unwrap();
        let before = document::value(&plan.file, &text).unwrap();
        apply(&plan.install().unwrap());
        // Somebody has changed something else meanwhile.
        let installed = fs::read_to_string(&plan.file).unwrap();
        fs::write(&plan.file, format!("{installed}\n// c-z\n")).unwrap();
        apply(&plan.uninstall().unwrap());
        let Ok(left) = fs::read_to_string(&plan.file) else {
            prop_assert!(others(agent, &before).is_empty());
            return Ok(());
        };
        let after = document::value(&plan.file, &left).unwrap();
        prop_assert!(found::in_text(agent, Scope::User, &plan.file, &left).unwrap().is_empty());
        prop_assert_eq!(others(agent, &after), others(agent, &before), "{}", left);
        for (key, known) in before.as_object().unwrap() {
            prop_assert!(key == "hooks" || after.get(key) == Some(known), "{key}: {left}");
        }
        prop_assert_eq!(comments(&left).len(), comments(&text).len() + 1, "{}\n---\n{}", text, left);
    }
}

#[test]
fn handlers_of_others_in_the_same_entry_stay() {
    let scratch = tempfile::tempdir().unwrap();
    let plan = plan(Agent::ClaudeCode, scratch.path(), false);
    fs::create_dir_all(plan.file.parent().unwrap()).unwrap();
    let text = r#"{
  "hooks": {
    // mine
    "PreToolUse": [
      {
        "matcher": "Bash",
        "hooks": [
          { "type": "command", "command": "/old/harness hook claude-code" }, // old
          { "type": "command", "command": "/opt/audit" } // audit
        ]
      }
    ]
  }
}
"#;
    fs::write(&plan.file, text).unwrap();
    apply(&plan.install().unwrap());
    let installed = fs::read_to_string(&plan.file).unwrap();
    assert!(
        !installed.contains("/old/harness") && installed.contains("\"/opt/audit\" } // audit"),
        "{installed}"
    );
    assert!(installed.contains("// mine"), "{installed}");
    assert!(plan.is_installed().unwrap(), "{installed}");
    apply(&plan.uninstall().unwrap());
    let left = fs::read_to_string(&plan.file).unwrap();
    assert!(left.contains("/opt/audit") && !left.contains("harness"), "{left}");
}

#[test]
fn codex_hooks_that_are_kept_in_toml_stay_there() {
    for text in [
        "# mine\nmodel = \"x\" # fast\n\n[[hooks.PreToolUse]]\nmatcher = \"^Bash$\" # all\n\n[[hooks.PreToolUse.hooks]]\n\
         type = \"command\"\ncommand = \"/opt/audit\"\n\n[hooks.state.\"x:pre_tool_use:0:0\"]\ntrusted_hash = \"h\"\n",
        "hooks = { PreToolUse = [{ matcher = \"x\", hooks = [{ type = \"command\", command = \"/opt/audit\" }] }] } # one line\n",
        "[hooks]\n# first\nStop = [{ hooks = [{ type = \"command\", command = \"/opt/audit\" }] }]\n[tui]\ntheme = 1\n",
    ] {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join(".codex/config.toml");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        let plan = plan(Agent::Codex, scratch.path(), false);
        assert_eq!(plan.file, file);
        apply(&plan.install().unwrap());
        let installed = fs::read_to_string(&file).unwrap();
        assert!(plan.is_installed().unwrap(), "{installed}");
        let (found, _) = found::registrations(Agent::Codex, &[(Scope::User, file.clone())]);
        assert_eq!(found.len(), 2, "{installed}");
        assert!(installed.contains("/opt/audit"), "{installed}");
        for comment in
            ["# mine", "# fast", "# all", "# first"].iter().filter(|comment| text.contains(**comment))
        {
            assert!(installed.contains(comment), "{comment}: {installed}");
        }
        // Without the copy: the same settings, whatever the bytes.
        fs::remove_file(backup_of(&file)).unwrap();
        fs::write(&file, &installed).unwrap();
        apply(&plan.uninstall().unwrap());
        let left = fs::read_to_string(&file).unwrap();
        assert_eq!(document::value(&file, &left).unwrap(), document::value(&file, text).unwrap(), "{left}");
        fs::write(&file, text).unwrap();
        apply(&plan.install().unwrap());
        apply(&plan.uninstall().unwrap());
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
}

#[test]
fn a_key_that_stands_twice_is_left_alone() {
    for text in [
        r#"{ "hooks": {}, "hooks": {} }"#,
        r#"{ "hooks": { "PreToolUse": [], "PreToolUse": [] } }"#,
        r#"{ "hooks": { "PreToolUse": {} } }"#,
        r#"{ "hooks": 1 }"#,
        "[]",
        "{ // open",
        "{ a: 1 }",
    ] {
        let scratch = tempfile::tempdir().unwrap();
        let plan = plan(Agent::ClaudeCode, scratch.path(), false);
        fs::create_dir_all(plan.file.parent().unwrap()).unwrap();
        fs::write(&plan.file, text).unwrap();
        assert!(plan.install().is_err(), "{text}");
        assert_eq!(fs::read_to_string(&plan.file).unwrap(), text);
    }
}

#[cfg(unix)]
#[test]
fn links_are_followed_for_the_user_and_not_out_of_a_project() {
    let scratch = tempfile::tempdir().unwrap();
    let (home, project) = (scratch.path().join("home"), scratch.path().join("project"));
    for directory in [&home, &project] {
        fs::create_dir_all(directory.join(".gemini")).unwrap();
    }
    let real = scratch.path().join("dotfiles.json");
    fs::write(&real, "{}").unwrap();
    let program = Path::new("/opt/bin/harness");
    for (scope, base) in [(Scope::User, &home), (Scope::Project, &project)] {
        std::os::unix::fs::symlink(&real, base.join(".gemini/settings.json")).unwrap();
        let plan = Plan::new(Agent::Gemini, scope, &Home::new(&home), &project, program, false);
        if scope == Scope::Project {
            assert!(matches!(plan.install(), Err(InstallError::LeadsOut { .. })));
            continue;
        }
        apply(&plan.install().unwrap());
        assert!(fs::symlink_metadata(&plan.file).unwrap().is_symlink());
        assert!(fs::read_to_string(&real).unwrap().contains("BeforeTool"));
        apply(&plan.uninstall().unwrap());
        assert_eq!(fs::read_to_string(&real).unwrap(), "{}");
    }
}

fn project_plan(agent: Agent, project: &Path) -> Plan {
    let home = project.with_file_name("home");
    Plan::new(agent, Scope::Project, &Home::new(&home), project, Path::new("/opt/bin/harness"), false)
}

#[cfg(unix)]
#[test]
fn nothing_is_written_through_a_linked_directory_of_a_project() {
    for agent in Agent::ALL {
        for (there, dangling) in [(false, false), (true, false), (false, true)] {
            let scratch = tempfile::tempdir().unwrap();
            let (project, elsewhere) = (scratch.path().join("project"), scratch.path().join("elsewhere"));
            fs::create_dir(&project).unwrap();
            let plan = project_plan(agent, &project);
            let below = plan.file.strip_prefix(&project).unwrap().to_path_buf();
            let first = below.components().next().unwrap();
            let inner: PathBuf = below.components().skip(1).collect();
            if !dangling {
                fs::create_dir(&elsewhere).unwrap();
            }
            if there {
                fs::create_dir_all(elsewhere.join(&inner).parent().unwrap()).unwrap();
                fs::write(elsewhere.join(&inner), "{}").unwrap();
            }
            std::os::unix::fs::symlink(&elsewhere, project.join(first)).unwrap();
            let refused = |outcome: Result<Vec<Change>, InstallError>| match outcome {
                Err(InstallError::LeadsOut { .. }) => !dangling,
                Err(InstallError::InTheWay { .. }) => dangling,
                Err(_) | Ok(_) => false,
            };
            assert!(refused(plan.install()), "{agent:?} {there} {dangling}: {:?}", plan.install());
            assert!(refused(plan.uninstall()), "{agent:?} {there} {dangling}: {:?}", plan.uninstall());
            if there {
                assert_eq!(fs::read_to_string(elsewhere.join(&inner)).unwrap(), "{}");
            } else if !dangling {
                assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0, "{agent:?}");
            }
        }
    }
}

#[cfg(unix)]
#[test]
fn a_directory_that_becomes_a_link_meanwhile_is_not_followed() {
    let scratch = tempfile::tempdir().unwrap();
    let (project, elsewhere) = (scratch.path().join("project"), scratch.path().join("elsewhere"));
    fs::create_dir(&project).unwrap();
    fs::create_dir(&elsewhere).unwrap();
    let changes = project_plan(Agent::Cursor, &project).install().unwrap();
    std::os::unix::fs::symlink(&elsewhere, project.join(".cursor")).unwrap();
    assert!(matches!(changes[0].apply(), Err(InstallError::LeadsOut { .. })));
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
}

#[cfg(unix)]
#[test]
fn a_link_back_into_the_project_does_not_let_the_copy_out() {
    let scratch = tempfile::tempdir().unwrap();
    let (project, elsewhere) = (scratch.path().join("project"), scratch.path().join("elsewhere"));
    fs::create_dir(&project).unwrap();
    fs::create_dir(&elsewhere).unwrap();
    fs::write(project.join("real.json"), "{}").unwrap();
    std::os::unix::fs::symlink(project.join("real.json"), elsewhere.join("settings.json")).unwrap();
    std::os::unix::fs::symlink(&elsewhere, project.join(".claude")).unwrap();
    let outcome = project_plan(Agent::ClaudeCode, &project).install();
    assert!(matches!(outcome, Err(InstallError::LeadsOut { .. })), "{outcome:?}");
}

#[cfg(unix)]
#[test]
fn a_link_or_pipe_with_the_name_of_a_copy_is_an_error() {
    use rustix::fs::{CWD, Mode};
    for scope in [Scope::User, Scope::Project] {
        for number in 0..2 {
            for pipe in [false, true] {
                let scratch = tempfile::tempdir().unwrap();
                let base = scratch.path().join("base");
                let keys = scratch.path().join("authorized_keys");
                fs::write(&keys, "mine").unwrap();
                let plan = Plan::new(
                    Agent::ClaudeCode,
                    scope,
                    &Home::new(&base),
                    &base,
                    Path::new("/opt/harness"),
                    false,
                );
                fs::create_dir_all(plan.file.parent().unwrap()).unwrap();
                fs::write(&plan.file, "{ \"model\": \"ssh-ed25519 AAAA\" }").unwrap();
                let copy = copies::numbered(&plan.file, number);
                let planned = plan.install().unwrap();
                if pipe {
                    rustix::fs::mkfifoat(CWD, &copy, Mode::from_raw_mode(0o600)).unwrap();
                } else {
                    std::os::unix::fs::symlink(&keys, &copy).unwrap();
                }
                let outcome = plan.install();
                assert!(matches!(outcome, Err(InstallError::InTheWay { .. })), "{outcome:?}");
                // Also when it came after the plan was made.
                assert_eq!(planned[0].apply().is_err(), number == 0);
                if number > 0 {
                    let outcome = plan.uninstall();
                    assert!(matches!(outcome, Err(InstallError::InTheWay { .. })), "{outcome:?}");
                }
                assert_eq!(fs::read_to_string(&keys).unwrap(), "mine");
                assert!(!fs::symlink_metadata(&copy).unwrap().is_file());
            }
        }
    }
}

#[cfg(unix)]
#[test]
fn a_pipe_in_the_place_of_settings_is_an_error() {
    use rustix::fs::{CWD, Mode};
    for agent in Agent::ALL {
        let scratch = tempfile::tempdir().unwrap();
        let plan = plan(agent, scratch.path(), false);
        fs::create_dir_all(plan.file.parent().unwrap()).unwrap();
        rustix::fs::mkfifoat(CWD, &plan.file, Mode::from_raw_mode(0o600)).unwrap();
        assert!(matches!(plan.install(), Err(InstallError::Unreadable { .. })), "{agent:?}");
        assert!(matches!(plan.uninstall(), Err(InstallError::Unreadable { .. })), "{agent:?}");
    }
}

#[test]
fn a_file_that_has_the_name_of_a_copy_stays() {
    for agent in Agent::ALL {
        for (scope, foreign) in [Scope::User, Scope::Project].into_iter().zip(["{}", "notes"]) {
            let scratch = tempfile::tempdir().unwrap();
            let base = scratch.path();
            let plan = Plan::new(agent, scope, &Home::new(base), base, Path::new("/opt/bin/harness"), false);
            // For Cline only a script of this program may be there.
            let text = if agent == Agent::Cline {
                "#!/bin/sh\n# exec harness hook cline\n"
            } else if agent == Agent::Opencode {
                "export const mine = 1\n"
            } else {
                "{ \"model\": \"x\" }"
            };
            fs::create_dir_all(plan.file.parent().unwrap()).unwrap();
            fs::write(&plan.file, text).unwrap();
            fs::write(backup_of(&plan.file), foreign).unwrap();
            let changes = plan.install().unwrap();
            apply(&changes);
            assert_eq!(fs::read_to_string(backup_of(&plan.file)).unwrap(), foreign, "{agent:?}");
            let copy = copies::numbered(&plan.file, 1);
            assert_eq!(fs::read_to_string(&copy).unwrap(), text, "{agent:?}");
            assert_eq!(changes[0].kept().as_ref(), Some(&copy));
            assert!(plan.is_installed().unwrap());
            apply(&plan.uninstall().unwrap());
            assert_eq!(fs::read_to_string(&plan.file).unwrap(), text, "{agent:?}");
            assert_eq!(fs::read_to_string(backup_of(&plan.file)).unwrap(), foreign, "{agent:?}");
            assert!(!copy.exists(), "{agent:?}");
        }
    }
}

#[test]
fn what_would_pass_for_the_copy_of_a_file_that_never_was_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let plan = plan(Agent::Opencode, scratch.path(), false);
    fs::create_dir_all(plan.file.parent().unwrap()).unwrap();
    fs::write(backup_of(&plan.file), "export const theirs = 1\n").unwrap();
    let outcome = plan.install();
    assert!(matches!(outcome, Err(InstallError::InTheWay { .. })), "{outcome:?}");
    assert!(!plan.file.exists());
}

#[test]
fn a_script_or_plugin_that_was_edited_is_copied_before_it_goes() {
    for agent in [Agent::Cline, Agent::Opencode] {
        for taken in [false, true] {
            let scratch = tempfile::tempdir().unwrap();
            let plan = plan(agent, scratch.path(), false);
            apply(&plan.install().unwrap());
            let mut edited = fs::read_to_string(&plan.file).unwrap();
            edited.push_str(if agent == Agent::Cline { "# mine\n" } else { "// mine\n" });
            for uninstall in [false, true] {
                fs::write(&plan.file, &edited).unwrap();
                if taken {
                    fs::write(backup_of(&plan.file), "").unwrap();
                }
                let changes = if uninstall { plan.uninstall() } else { plan.install() }.unwrap();
                apply(&changes);
                let kept = changes[0].kept().unwrap();
                assert_eq!(fs::read_to_string(&kept).unwrap(), edited, "{agent:?} {uninstall}");
                assert_eq!(plan.file.exists(), !uninstall, "{agent:?}");
            }
        }
    }
}

#[test]
fn a_relative_home_is_refused() {
    let plan = plan(Agent::Gemini, Path::new("relative-home"), false);
    for outcome in [plan.install(), plan.uninstall()] {
        let error = outcome.unwrap_err();
        assert!(matches!(error, InstallError::Relative { .. }), "{error}");
        assert!(error.to_string().contains("set HOME"), "{error}");
    }
}

#[cfg(unix)]
#[test]
fn a_copy_is_as_private_as_its_original() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = tempfile::tempdir().unwrap();
    let plan = plan(Agent::ClaudeCode, scratch.path(), false);
    fs::create_dir_all(plan.file.parent().unwrap()).unwrap();
    fs::write(&plan.file, "{}").unwrap();
    fs::set_permissions(&plan.file, fs::Permissions::from_mode(0o600)).unwrap();
    apply(&plan.install().unwrap());
    assert_eq!(fs::metadata(backup_of(&plan.file)).unwrap().permissions().mode() & 0o777, 0o600);
}
