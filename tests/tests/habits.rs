//! Habits of a command line: examples, completions, pages, schema, colours.

use cmdgate_tests::{Project, Ran, workspace};
use serde_json::{Value, json};
use std::process::{Command, Stdio};

fn schema(project: &Project) -> Value {
    let printed = project.harness(["schema"]);
    assert_eq!(printed.code, 0, "{printed:?}");
    let committed = std::fs::read_to_string(workspace().join("crates/harness/wire.schema.json")).unwrap();
    assert_eq!(printed.stdout, committed);
    printed.json()
}

/// A validator for the one form that says it is printed by this subcommand.
fn form(schema: &Value, by: &str) -> jsonschema::Validator {
    let forms = schema["anyOf"].as_array().unwrap();
    let form = forms
        .iter()
        .find(|form| form["description"].as_str().unwrap().split(',').any(|part| part.trim().starts_with(by)))
        .unwrap_or_else(|| panic!("no form for {by}"));
    jsonschema::validator_for(&json!({ "$ref": form["$ref"], "$defs": schema["$defs"] })).unwrap()
}

#[test]
fn what_is_printed_as_json_is_what_the_schema_says() {
    let project = Project::new();
    let schema = schema(&project);
    project.write(".env", "A=1\n");
    assert_eq!(project.harness(["install", "gemini"]).code, 0);
    project.write_beside(
        "config/cmdgate/remembered.toml",
        "[[rule]]\nact = \"exec\"\neffect = \"allow\"\npattern = \"touch **\"\nexpires = 2099-01-01T00:00:00Z\n",
    );
    project.write_beside(
        "settings.json",
        r#"{"permissions": {"allow": ["Bash(npm test:*)"], "deny": ["Read(x)"]}}"#,
    );
    let commands: [&[&str]; 22] = [
        &["classify", "--json", "--", "grep -n x a.txt | head; rm b"],
        &["check", "--json", "--", "cat .env"],
        &["check", "--json", "--", "git status"],
        &["run", "--json", "--", "cat a.txt; no-such-program"],
        &["run", "--json", "--", "cat .env"],
        &["run", "--json", "--sandbox", "workspace_write", "--", "npm test"],
        &["exec", "--json", "--", "wc", "-l", "a.txt"],
        &["doctor", "--json"],
        &["doctor", "--agents", "--json"],
        &["config", "show", "--json"],
        &["config", "show", "--origin", "--json"],
        &["policy", "show", "--json"],
        &["policy", "check", "exec", "npm test", "--json"],
        &["policy", "lint", "--json"],
        &["approvals", "list", "--json"],
        &["approvals", "show", "1", "--json"],
        &["approvals", "approve", "1", "--json"],
        &["rules", "list", "--json"],
        &["import", "claude", "../settings.json", "--report", "--json"],
        &["learn", "--from", "trace", "--json"],
        &["log", "--json"],
        &["log", "verify", "--json"],
    ];
    for command in commands {
        let ran = project.harness(command);
        let name: Vec<&str> = command.iter().take_while(|word| !word.starts_with("--")).copied().collect();
        let name = match command {
            ["doctor", "--agents", ..] => "harness doctor --agents".to_owned(),
            ["approvals", "show" | "approve", ..] => "harness approvals show".to_owned(),
            ["import", ..] => "harness import".to_owned(),
            ["policy", "check", ..] => "harness policy check".to_owned(),
            _ => format!("harness {}", name.join(" ")),
        };
        let answer = ran.json();
        assert_eq!(answer["schema_version"], 1, "{command:?} {ran:?}");
        let form = form(&schema, &name);
        let errors: Vec<String> = form.iter_errors(&answer).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{command:?}: {errors:?}\n{answer}");
        // A form that takes anything would prove nothing.
        assert!(!form.is_valid(&json!({ "schema_version": 1 })), "{command:?}");
        let mut changed = answer.clone();
        changed["schema_version"] = json!(2);
        assert!(!form.is_valid(&changed), "{command:?}");
    }
}

#[test]
fn the_origin_of_every_setting_is_shown() {
    let project = Project::new();
    project.write_beside(
        "config/cmdgate/policy.toml",
        "sandbox = \"workspace_write\"\n[limits]\noutput_lines = 9\n",
    );
    project.write(".cmdgate.toml", "approval = \"strict\"\nsandbox = \"danger_full_access\"\n");
    let shown = project.harness(["config", "show", "--origin"]);
    assert_eq!(shown.code, 0, "{shown:?}");
    let line = |name: &str| {
        shown
            .stdout
            .lines()
            .find(|line| line.starts_with(&format!("{name} = ")))
            .unwrap_or_else(|| panic!("{shown:?}"))
    };
    assert!(line("sandbox").ends_with("# user"), "{}", line("sandbox"));
    assert!(line("approval").ends_with("# project"), "an untrusted file may tighten: {}", line("approval"));
    assert!(line("grammar").ends_with("# builtin"), "{}", line("grammar"));
    assert!(line("limits").ends_with("# user"), "{}", line("limits"));
    let policy = project.scratch().join("config/cmdgate/policy.toml");
    assert!(shown.stdout.contains(&format!("# user: {} (read)", policy.display())), "{shown:?}");
    assert!(shown.stdout.contains("(only_tightens)"), "{shown:?}");
    let flag = project.harness(["config", "show", "--origin", "--sandbox", "read_only", "--json"]).json();
    assert_eq!(flag["set_by"]["sandbox"], "command-line", "{flag}");
}

#[test]
fn completions_are_scripts_of_their_shells() {
    let project = Project::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = project.harness(["completions", shell]);
        assert_eq!(ran.code, 0, "{ran:?}");
        for word in ["classify", "allow-once", "passthrough"] {
            assert!(ran.stdout.contains(word), "{shell}: {word}");
        }
    }
    let script = project.harness(["completions", "bash"]).stdout;
    project.write("c.bash", &script);
    let completed = Command::new("bash")
        .args(["-c", ". ./c.bash && COMP_WORDS=(harness hook cl) COMP_CWORD=2 && _harness harness cl hook && echo ${COMPREPLY[@]}"])
        .current_dir(project.root())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&completed.stdout), "claude-code cline\n", "{completed:?}");
}

#[test]
fn there_is_a_page_for_every_subcommand() {
    let project = Project::new();
    let page = project.harness(["man"]);
    assert!(page.code == 0 && page.stdout.contains(".TH harness 1"), "{page:?}");
    assert_eq!(project.harness(["man", "pages/man1"]).code, 0);
    let pages = project.root().join("pages/man1");
    for name in ["harness", "harness-run", "harness-hook", "harness-policy-test", "harness-init"] {
        let text = std::fs::read_to_string(pages.join(format!("{name}.1"))).unwrap();
        assert!(
            text.contains(".SH SYNOPSIS") && (name == "harness" || text.contains("Examples:")),
            "{name}: {text}"
        );
    }
    project.write("taken", "");
    let refused = project.harness(["man", "taken"]);
    assert!(refused.code == 125 && refused.stderr.contains("name a directory"), "{refused:?}");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_fault() {
    let project = Project::new();
    let binary = cmdgate_tests::harness_binary().display();
    let output = Command::new("bash")
        .args(["-c", &format!("set -o pipefail; {binary} completions zsh | head -1")])
        .current_dir(project.root())
        .output()
        .unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

/// At a terminal, as util-linux's `script` makes one.
fn at_a_terminal(project: &Project, line: &str, environment: &[(&str, &str)]) -> Ran {
    let mut command = Command::new("script");
    command
        .args(["--quiet", "--return", "--command", line, "/dev/null"])
        .current_dir(project.root())
        .env("HOME", project.home())
        .env("XDG_STATE_HOME", project.scratch().join("state"))
        .env("XDG_CONFIG_HOME", project.scratch().join("config"))
        .env("TERM", "xterm-256color")
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE")
        // Where tests run for a log, colours are taken to be wanted.
        .env_remove("CI")
        .stdin(Stdio::null());
    for (name, value) in environment {
        command.env(name, value);
    }
    command.output().unwrap().into()
}

#[test]
fn colours_are_for_terminals_alone() {
    let project = Project::new();
    project.write("bad.toml", "sandbox = 1\n");
    let binary = cmdgate_tests::harness_binary().display();
    let lines = [
        format!("{binary} explain -- 'rm x'"),
        format!("{binary} check --policy bad.toml -- ls"),
        format!("{binary} run -- 'cat .env'"),
        format!("{binary} nonsense"),
        format!("{binary} run --help"),
    ];
    for line in &lines {
        let coloured = at_a_terminal(&project, line, &[]);
        assert!(coloured.stdout.contains("\u{1b}["), "{line}: {coloured:?}");
        for plain in [&[("NO_COLOR", "1")][..], &[("TERM", "dumb")]] {
            let plain = at_a_terminal(&project, line, plain);
            assert!(!plain.stdout.contains("\u{1b}[") && !plain.stdout.is_empty(), "{line}: {plain:?}");
        }
        // Neither into a pipe nor into a file.
        let piped: Ran = project_shell(&project, line).output().unwrap().into();
        assert!(!piped.stdout.contains('\u{1b}') && !piped.stderr.contains('\u{1b}'), "{line}: {piped:?}");
    }
}

fn project_shell(project: &Project, line: &str) -> Command {
    let mut command = Command::new("bash");
    command
        .args(["-c", line])
        .current_dir(project.root())
        .env("HOME", project.home())
        .env("XDG_STATE_HOME", project.scratch().join("state"))
        .env("XDG_CONFIG_HOME", project.scratch().join("config"))
        .env_remove("CLICOLOR_FORCE")
        // Where tests run for a log, colours are taken to be wanted.
        .env_remove("CI")
        .stdin(Stdio::null());
    command
}

#[test]
fn whatever_takes_longer_than_a_second_gives_a_sign_of_life_at_a_terminal() {
    let project = Project::new();
    let binary = cmdgate_tests::harness_binary().display();
    let line = format!("{binary} run --sandbox workspace_write --approval never -- 'sleep 2.5'");
    let shown = at_a_terminal(&project, &line, &[]);
    assert!(shown.stdout.contains("running… "), "{shown:?}");
    let piped: Ran = project_shell(&project, &line).output().unwrap().into();
    assert!(!piped.stderr.contains("running"), "{piped:?}");
    let json = at_a_terminal(&project, &format!("{line} 2>/dev/null"), &[]);
    assert!(!json.stdout.contains("running… "), "{json:?}");
}

#[test]
fn a_project_file_that_nobody_trusted_is_named_where_its_allows_are_missed() {
    // contract: X7
    let project = Project::new();
    let told = |command: &str| {
        let ran = [["check", "--", command], ["explain", "--", command], ["run", "--", command]];
        ran.map(|args| {
            let ran = project.harness(args);
            format!("{}{}", ran.stdout, ran.stderr).contains("`.cmdgate.toml` is not trusted")
        })
    };
    let allow = "[[rule]]\nact = \"exec\"\neffect = \"allow\"\npattern = \"touch **\"\n";
    let deny = allow.replace("\"allow\"", "\"deny\"");
    for (text, missed) in [
        (allow, true),
        ("sandbox = \"workspace_write\"\n", true),
        ("sandbox = \"read_only\"\n", false),
        (deny.as_str(), false),
    ] {
        project.write(".cmdgate.toml", text);
        assert_eq!(told("touch x"), [missed; 3], "{text}");
        assert_eq!(told("ls"), [false; 3], "{text}");
    }
    project.write(".cmdgate.toml", allow);
    assert_eq!(project.harness(["trust", "--yes"]).code, 0);
    assert_eq!(told("touch x"), [false; 3]);
}

#[test]
fn what_bounds_a_run_is_named_where_it_was_reached() {
    // contract: S3
    let project = Project::new();
    let never = ["--sandbox", "workspace_write", "--approval", "never", "--timeout-ms", "1000"];
    let ran = project.run(&never, "sleep 9");
    assert_eq!(ran.code, 124, "{ran:?}");
    assert!(ran.stdout.contains("the limit was 1000ms: `--timeout-ms N`"), "{ran:?}");
    assert!(
        ran.stdout.contains("`limits.timeout_ms`") && ran.stdout.contains("the network was off"),
        "{ran:?}"
    );
    let ran = project.run(&[&never[..], &["--passthrough"]].concat(), "sleep 9");
    let killed = ran.stderr.split("killed after ").nth(1).and_then(|text| text.split("ms").next());
    assert!(killed.is_some_and(|millis| millis.parse::<u32>().is_ok()), "{ran:?}");
    let ran = project.run(&never, "seq 1 5000");
    assert!(ran.stdout.contains("stdout truncated") && ran.stdout.contains("`--spill DIR`"), "{ran:?}");
}

#[test]
fn a_list_of_commands_may_have_comments_and_its_failures_have_a_place() {
    let project = Project::new();
    project.write_beside("list", "# first\necho one\n\n  # then\ncat missing\ntouch x\n");
    let list = project.scratch().join("list");
    let ran = project.harness(["run", "--each", list.to_str().unwrap()]);
    assert_eq!(ran.stdout.matches("Command: ").count(), 2, "{ran:?}");
    let places = [5, 6].map(|line| format!("harness: {}:{line}: ", list.display()));
    assert!(places.iter().all(|place| ran.stderr.contains(place.as_str())), "{ran:?}");
    assert_eq!(ran.stderr.matches("list:").count(), 2, "{ran:?}");
}
