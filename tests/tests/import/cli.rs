//! `harness import` as a person uses it.

use cmdgate_tests::Project;

const SETTINGS: &str = r#"{
  // mine
  "permissions": {
    "allow": ["Bash(npm run *)", "Bash(cargo test:*)", "Bash(git commit -m \"*\")", "Edit(/src/**)", "mcp__x"],
    "ask": ["Bash(git push *)"],
    "deny": ["Bash(rm -rf *)", "Read(./secrets/**)", "Bash(run_in_background:true)"],
    "defaultMode": "acceptEdits",
  },
}"#;

fn decides(project: &Project, command: &str) -> i32 {
    let options = ["check", "--sandbox", "workspace_write", "--policy", "imported.toml", "--", command];
    project.harness(options).code
}

#[test]
fn claudes_settings_become_a_policy() {
    let project = Project::new();
    project.write("settings.json", SETTINGS);
    let written = project.harness(["import", "claude", "settings.json", "--out", "imported.toml"]);
    assert_eq!(written.code, 0, "{written:?}");
    for (command, expected) in [
        ("npm run build", 0),
        ("npm run", 0),
        ("npm run build && cargo test", 0),
        ("npm run build 2>/dev/null", 0),
        ("npm run build > out.txt", 10),
        ("PATH=/tmp npm run build", 10),
        ("npm 'run build'", 10),
        ("npm runx", 10),
        ("git push origin", 10),
        ("npm run build && git push", 10),
        ("bash -c 'rm -rf x'", 20),
        ("env rm -rf x", 20),
        ("cat secrets/a", 20),
        ("cargo testify", 10),
    ] {
        assert_eq!(decides(&project, command), expected, "{command}");
    }
    assert_eq!(project.harness(["policy", "test", "imported.toml"]).code, 0);
}

#[test]
fn the_report_says_what_became_of_each_rule() {
    let project = Project::new();
    project.write("settings.json", SETTINGS);
    let report = project.harness(["import", "claude", "settings.json", "--report", "--json"]).json();
    let entries = report["entries"].as_array().unwrap();
    let carried = |rule: &str| {
        let entry = entries.iter().find(|entry| entry["rule"].as_str().unwrap().contains(rule)).unwrap();
        (entry["line"].as_u64().unwrap(), entry["carried"].as_str().unwrap().to_owned())
    };
    assert_eq!(carried("npm run"), (4, "exactly".to_owned()));
    assert_eq!(carried("git commit"), (4, "not".to_owned()));
    assert_eq!(carried("git push"), (5, "exactly".to_owned()));
    assert_eq!(carried("secrets"), (6, "stricter".to_owned()));
    assert_eq!(carried("run_in_background"), (6, "not".to_owned()));
    assert_eq!(carried("defaultMode"), (7, "not".to_owned()));
    let table = project.harness(["import", "claude", "settings.json", "--report"]);
    assert!(
        table.stdout.contains("not carried over") && table.stdout.contains("settings.json:6"),
        "{table:?}"
    );
}

#[test]
fn a_file_that_exists_is_not_written_over() {
    let project = Project::new();
    project.write("settings.json", SETTINGS);
    project.write("imported.toml", "mine");
    let refused = project.harness(["import", "claude", "settings.json", "--out", "imported.toml"]);
    assert!(refused.code == 2 && refused.stderr.contains("--force"), "{refused:?}");
    let read = || std::fs::read_to_string(project.root().join("imported.toml")).unwrap();
    assert_eq!(read(), "mine");
    let forced = project.harness(["import", "claude", "settings.json", "--out", "imported.toml", "--force"]);
    assert_eq!(forced.code, 0, "{forced:?}");
    assert!(read().contains("npm run **"));
}

#[cfg(unix)]
#[test]
fn only_a_regular_file_is_replaced() {
    use std::os::unix::fs::{FileTypeExt, symlink};
    let project = Project::new();
    project.write("settings.json", SETTINGS);
    project.write("mine.toml", "mine");
    let pipe = project.root().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    symlink("mine.toml", project.root().join("link")).unwrap();
    for out in ["pipe", "link", "."] {
        for force in [&["--force"][..], &[]] {
            let words = [&["import", "claude", "settings.json", "--out", out], force].concat();
            let ran = project.harness(words);
            assert!(ran.code == 2 && ran.stderr.contains("not a regular file"), "{out}: {ran:?}");
        }
    }
    assert!(std::fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
    assert!(std::fs::symlink_metadata(project.root().join("link")).unwrap().is_symlink());
    assert_eq!(std::fs::read_to_string(project.root().join("mine.toml")).unwrap(), "mine");
}

/// Every bad file gives an error with its line, and no output.
pub fn refuses(source: &str, files: &[(&str, usize)]) {
    let project = Project::new();
    for (text, line) in files {
        project.write("bad", text);
        let ran = project.harness(["import", source, "bad", "--out", "out.toml"]);
        let shown: String = text.chars().take(80).collect();
        // A parser names the last line it saw; 0 is for any.
        let place = if *line == 0 { "bad:".to_owned() } else { format!("bad:{line}: ") };
        assert!(ran.code == 3 && ran.stderr.contains(&place), "{shown}: {ran:?}");
        assert!(ran.stderr.contains("nothing was imported"), "{shown}: {ran:?}");
        assert!(!project.root().join("out.toml").exists(), "{shown}");
    }
}

#[test]
fn bad_settings_of_claude_are_refused_with_their_line() {
    let deep = "[".repeat(100_000);
    let huge = format!("{{\"a\":\"{}\"}}", "x".repeat(5_000_000));
    refuses(
        "claude",
        &[
            ("", 1),
            ("[]", 1),
            ("{\"permissions\":[]}", 1),
            ("{\"permissions\":\n{\"allow\":\"Bash\"}}", 2),
            ("{\"permissions\":\n{\"allow\":[\"Bash\",\n7]}}", 3),
            ("{\"permissions\":{\"deny\":[\"Bash(rm\"]}}", 1),
            ("{\"permissions\":{\"deny\":[\"\"]}}", 1),
            ("{\"permissions\":{\"allow\":[],\n\"allow\":[\"Bash\"]}}", 2),
            ("{\"permissions\":\n{\"allow\":[\"Bash\"]", 2),
            (&deep, 1),
        ],
    );
    let project = Project::new();
    project.write("bad", &huge);
    assert_eq!(project.harness(["import", "claude", "bad"]).code, 3);
    std::fs::write(project.root().join("bad"), b"{\n\xff}").unwrap();
    let ran = project.harness(["import", "claude", "bad"]);
    assert!(ran.code == 3 && ran.stderr.contains("bad:2: it is not UTF-8"), "{ran:?}");
    for missing in ["absent", "."] {
        let ran = project.harness(["import", "claude", missing]);
        assert!(ran.code == 3 && ran.stderr.contains("nothing was imported"), "{ran:?}");
    }
}

#[test]
fn bad_files_of_the_others_are_refused_with_their_line() {
    let deep = format!("a = {}", "[".repeat(100_000));
    refuses(
        "gemini",
        &[
            ("[[rule]]\ndecision = \"allow\"\n", 1),
            ("[[rule]]\npriority = 1\ndecision = \"yes\"\n", 3),
            ("[[rule]]\npriority = 1000\ndecision = \"deny\"\n", 2),
            ("[[rule]]\npriority = 1.5\ndecision = \"deny\"\n", 2),
            ("[[rule]]\npriority = 1\ndecision = \"deny\"\ncommandPrefix = [\"a\", 7]\n", 4),
            ("[[rule]]\npriority = 1\ndecision = \"deny\"\ncommandPrefix = []\n", 4),
            ("[rule]\npriority = 1\n", 1),
            // With these, Gemini CLI reads nothing of the file.
            ("[[rule]]\npriority = 1\ndecision = \"allow\"\n", 1),
            ("[[rule]]\npriority = 1\ndecision = \"allow\"\ntoolName = \"*\"\nmodes = [\"all\"]\n", 5),
            ("a = [\n\n", 1),
            (&deep, 1),
        ],
    );
    refuses(
        "cursor",
        &[
            ("{\"terminalAllowlist\": \"git\"}", 1),
            ("{\"terminalAllowlist\": [\n7]}", 2),
            ("{\"permissions\": {\n\"deny\": [\"rm\"]}}", 2),
            ("{\"permissions\": {\"deny\": [\"Shell(rm\"]}}", 1),
            ("{\"terminalAllowlist\": [\"git\"],\n\"terminalDenylist\": [\"git push\"]}", 2),
            ("nonsense", 1),
        ],
    );
    refuses(
        "opencode",
        &[
            ("{\"permission\": 7}", 1),
            ("{\"permission\": {\"bash\": {\n\"git *\": \"maybe\"}}}", 2),
            ("{\"permission\": {\"bash\": {\"a\": \"ask\",\n\"a\": \"allow\"}}}", 2),
            ("{\"permissions\": [\n{\"action\": \"shell\", \"effect\": \"deny\"}]}", 2),
            (
                "{\"permissions\": [{\"action\": \"shell\", \"resource\": \"*\", \"effect\": \"deny\",\n\"when\": 1}]}",
                2,
            ),
            ("{\"permissions\": [\"x\"]}", 1),
        ],
    );
    refuses(
        "copilot",
        &[
            ("echo hello\n", 1),
            ("copilot \\\n --allow-tool", 2),
            ("copilot --deny-tool 'shell(rm'", 1),
            ("copilot --deny-tool 'shell(rm)", 1),
            ("{\"allowedTools\": \"shell\"}", 1),
            ("{\"allowedTools\": [\"shell(git:*)\"],\n\"denied_tools\": [\"shell(git push)\"]}", 2),
            ("{}", 1),
        ],
    );
}

#[test]
fn a_later_rule_and_a_higher_priority_count() {
    let project = Project::new();
    project.write(
        "opencode.json",
        r#"{"permission": {"bash": {"*": "ask", "git *": "allow", "git push *": "deny", "git push origin docs": "allow"}}}"#,
    );
    project.write(
        "rules.toml",
        "[[rule]]\ntoolName = \"run_shell_command\"\ncommandPrefix = \"git\"\ndecision = \"deny\"\npriority = 10\n\
         [[rule]]\ntoolName = \"run_shell_command\"\ncommandPrefix = [\"git tag\", \"git push\"]\n\
         decision = \"allow\"\npriority = 20\n\
         [[rule]]\ntoolName = \"run_shell_command\"\ncommandPrefix = \"git push --force\"\n\
         decision = \"ask_user\"\npriority = 30\n",
    );
    for (source, file, cases) in [
        (
            "opencode",
            "opencode.json",
            &[
                ("git tag v1", 0),
                ("git commit -m 'two words'", 0),
                ("git push origin main", 20),
                ("git push origin docs", 0),
                ("git 'push origin' docs", 20),
                ("npm test", 10),
                ("ls", 10),
            ][..],
        ),
        (
            "gemini",
            "rules.toml",
            &[
                ("git commit -m x", 20),
                ("git tag v1", 0),
                ("git tag v1 > a", 10),
                ("git push origin", 0),
                ("git push --force", 10),
                ("timeout 5 git push origin", 10),
            ][..],
        ),
    ] {
        let written = project.harness(["import", source, file, "--out", "imported.toml", "--force"]);
        assert_eq!(written.code, 0, "{written:?}");
        for (command, expected) in cases {
            assert_eq!(decides(&project, command), *expected, "{source}: {command}");
        }
    }
}
