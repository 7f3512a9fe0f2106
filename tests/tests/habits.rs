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
    let commands: [&[&str]; 23] = [
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
        &["log", "tail", "--limit", "1", "--json"],
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
    project.write_beside("batch", "{\"command\":\"ls\"}\n3\n");
    let lines = project.harness(["classify", "--batch", "../batch"]);
    let whole = jsonschema::validator_for(&schema).unwrap();
    assert_eq!(lines.stdout.lines().count(), 2, "{lines:?}");
    for line in lines.stdout.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert!(line["schema_version"] == 1 && whole.is_valid(&line), "{line}");
    }
}

#[test]
fn the_origin_of_every_setting_is_shown() {
    let project = Project::new();
    project.write_beside(
        "config/cmdgate/policy.toml",
        "sandbox = \"workspace_write\"\nprotected_paths = [\"infra\"]\n[limits]\noutput_lines = 9\n",
    );
    project.write(".cmdgate.toml", "approval = \"strict\"\nsandbox = \"danger_full_access\"\nprotected_paths = [\"db\"]\nsecrets = [\"*.k\"]\n");
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
    // Each key of a table stands for itself, and a joined list names all that it is joined from.
    assert!(line("limits.output_lines").ends_with("= 9  # user"), "{}", line("limits.output_lines"));
    assert!(line("limits.timeout_ms").ends_with("# builtin"), "{}", line("limits.timeout_ms"));
    assert!(line("protected_paths").ends_with("# builtin, user, project"), "{}", line("protected_paths"));
    assert!(line("secrets").ends_with("# project"), "{}", line("secrets"));
    let policy = project.scratch().join("config/cmdgate/policy.toml");
    assert!(shown.stdout.contains(&format!("# user: {} (read)", policy.display())), "{shown:?}");
    assert!(shown.stdout.contains("(only_tightens)"), "{shown:?}");
    let flag = project.harness(["config", "show", "--origin", "--sandbox", "read_only", "--json"]).json();
    assert_eq!(flag["set_by"]["sandbox"], json!(["command-line"]), "{flag}");
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
    // The generator has none of these for fish.
    let fish = project.harness(["completions", "fish"]).stdout;
    for values in [
        "using_subcommand hook\" -f -a 'cline'",
        "using_subcommand import; and test (count (commandline -opc)) -eq 2\" -f -a 'codex'",
        "seen_subcommand_from check; and test (count (commandline -opc)) -eq 3\" -f -a 'net'",
    ] {
        assert!(fish.contains(values), "{values}");
    }
}

#[test]
fn there_is_a_page_for_every_subcommand() {
    let project = Project::new();
    let page = project.harness(["man"]);
    assert!(page.code == 0 && page.stdout.contains(".TH harness 1"), "{page:?}");
    assert_eq!(project.harness(["man", "pages/man1"]).code, 0);
    let pages = project.root().join("pages/man1");
    let dated = project.command(["man"]).env("SOURCE_DATE_EPOCH", "86400").output().unwrap();
    let dated = String::from_utf8_lossy(&dated.stdout);
    assert!(dated.contains(".TH harness 1 1970-01-02 \"harness 0.1.0\" \"User Commands\"\n"), "{dated}");
    for name in ["harness", "harness-run", "harness-hook", "harness-policy-test", "harness-init"] {
        let text = std::fs::read_to_string(pages.join(format!("{name}.1"))).unwrap();
        assert!(
            text.contains(".SH SYNOPSIS") && (name == "harness" || text.contains(".SH EXAMPLES\n.nf\n")),
            "{name}: {text}"
        );
        // What is typed stands on lines of its own, and a break beside a space is one that `mandoc` warns of.
        for doubled in [".br\n.sp\n", ".sp\n.br\n", "\n\n"] {
            assert!(!text.contains(doubled), "{name}: {text}");
        }
    }
    project.write("taken", "");
    let refused = project.harness(["man", "taken"]);
    assert!(refused.code == 125 && refused.stderr.contains("name a directory"), "{refused:?}");
}

/// What prints something, and how it ends.
const PRINTING: [(&[&str], i32); 24] = [
    (&["classify", "--", "ls"], 0),
    (&["classify", "--json", "--", "rm x"], 10),
    (&["classify", "--batch", "../batch"], 0),
    (&["check", "--", "ls"], 0),
    (&["check", "--json", "--", "rm x"], 20),
    (&["explain", "--", "rm x"], 20),
    (&["run", "--", "cat a.txt"], 0),
    (&["run", "--json", "--", "cat missing"], 1),
    (&["run", "--json", "--", "rm x"], 126),
    (&["exec", "--", "ls"], 0),
    (&["log"], 0),
    (&["log", "--json"], 0),
    (&["log", "tail"], 0),
    (&["log", "tail", "--follow"], 0),
    (&["log", "export"], 0),
    (&["log", "verify"], 0),
    (&["approvals", "list"], 0),
    (&["rules", "list"], 0),
    (&["policy", "show"], 0),
    (&["policy", "check", "exec", "ls"], 10),
    (&["policy", "check", "net", "example.com"], 20),
    (&["config", "show"], 0),
    (&["completions", "zsh"], 0),
    (&["man"], 0),
];

fn printing() -> Project {
    let project = Project::new();
    project.write_beside("batch", "{\"command\":\"ls\"}\n");
    assert_eq!(project.run(&[], "ls").code, 0);
    project
}

#[test]
fn a_reader_that_has_seen_enough_is_no_fault_and_changes_no_answer() {
    let project = printing();
    for (args, code) in PRINTING {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ran: Ran = project.command(args).stdout(writer).output().unwrap().into();
        assert!(ran.code == code && ran.stderr.is_empty(), "{args:?} {ran:?}");
    }
}

#[test]
fn an_answer_that_is_lost_is_a_failure_that_says_so() {
    let project = printing();
    for (args, _) in PRINTING {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let ran: Ran = project.command(args).stdout(full).output().unwrap().into();
        assert_eq!(ran.code, 125, "{args:?} {ran:?}");
        assert_eq!(ran.stderr.matches("standard output cannot be written").count(), 1, "{args:?} {ran:?}");
    }
    // Nobody says yes to what was not shown.
    project.write(".cmdgate.toml", "sandbox = \"workspace_write\"\n");
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let ran: Ran = project.command(["trust", "--yes"]).stdout(full).output().unwrap().into();
    assert!(ran.code == 125 && ran.stderr.contains("not trusted"), "{ran:?}");
    assert_eq!(project.harness(["trust", "--list"]).stdout, "nothing is trusted\n");
}

#[test]
fn where_nothing_can_be_said_the_exit_code_still_is() {
    let project = printing();
    project.write_beside("bad.toml", "sandbox = 1\n");
    let wrong: [(&[&str], i32); 8] = [
        (&["run", "--", "rm x"], 126),
        (&["run", "--passthrough", "--", "rm x"], 126),
        (&["run", "--policy", "../missing", "--", "ls"], 3),
        (&["run", "git", "status"], 2),
        (&["check", "--policy", "../bad.toml", "--", "ls"], 3),
        (&["policy", "test", "../bad.toml"], 3),
        (&["log", "show", "99"], 1),
        (&["classify", "--batch", "../missing"], 2),
    ];
    for (args, code) in wrong {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let ran: Ran = project.command(args).stderr(full).output().unwrap().into();
        assert!(ran.code == code && ran.stdout.is_empty(), "{args:?} {ran:?}");
    }
}

#[test]
fn a_trace_that_is_not_there_is_neither_made_nor_intact() {
    let project = Project::new();
    for args in [
        &["log"][..],
        &["log", "show", "1"],
        &["log", "tail"],
        &["log", "export"],
        &["log", "prune", "--older-than", "1d"],
        &["approvals", "list"],
    ] {
        let ran = project.harness([args, &["--trace", "../missing.db"]].concat());
        assert!(
            ran.code == 125 && ran.stderr.contains("there is no trace ../missing.db"),
            "{args:?} {ran:?}"
        );
    }
    for args in [&["log", "verify"][..], &["log", "verify", "--trace", "../missing.db"]] {
        let ran = project.harness(args);
        assert!(ran.code == 1 && ran.stdout.is_empty() && ran.stderr.contains("no trace"), "{ran:?}");
    }
    assert!(!project.scratch().join("missing.db").exists());
    assert_eq!(project.harness(["log"]).stdout, "nothing recorded\n");
    assert_eq!(project.run(&[], "ls").code, 0);
    assert_eq!(project.harness(["log", "--refused"]).stdout, "no recorded step is like that\n");
    assert_eq!(project.harness(["log", "verify"]).code, 0);
}

#[test]
fn what_would_be_left_alone_is_refused() {
    let project = Project::new();
    let alone = project.run(&["--keep-going"], "ls");
    assert!(alone.code == 2 && alone.stderr.contains("--keep-going"), "{alone:?}");
    let directory = project.harness(["classify", "--batch", "src"]);
    assert!(directory.code == 2 && directory.stderr.contains("cannot read src"), "{directory:?}");
    let nowhere = project.harness(["init", "--root", "/not/there"]);
    assert!(nowhere.code == 125 && nowhere.stderr.contains("there is no such directory"), "{nowhere:?}");
    // What is there and cannot be read is not called missing, and what is missing is not left out.
    std::os::unix::fs::symlink("loop", project.root().join("loop")).unwrap();
    for (file, what) in
        [("loop", "cannot read loop"), ("a.txt/x", "no policy file"), ("none", "no policy file")]
    {
        let ran = project.harness(["check", "--policy", file, "--", "ls"]);
        assert!(ran.code == 3 && ran.stdout.is_empty() && ran.stderr.contains(what), "{ran:?}");
    }
    let mut resumed = project.command(["agent", "--resume", "3", "--trace", "../none.db"]);
    let resumed: Ran = resumed.env("OPENROUTER_API_KEY", "x").output().unwrap().into();
    assert!(resumed.code == 125 && resumed.stderr.contains("there is no trace"), "{resumed:?}");
    let moving = project.harness(["classify", "--", "ls \u{1b}[2K"]);
    assert!(!moving.stdout.contains('\u{1b}'), "{moving:?}");
}

/// Blocks of a document in which a command is typed and its output shown.
fn shown(document: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for block in document.split("```console\n").skip(1) {
        let block = block.split("\n```").next().unwrap();
        for typed in format!("\n{block}").split("\n$ ").skip(1) {
            if let Some((line, output)) = typed.split_once('\n') {
                found.push((line.to_owned(), format!("{output}\n")));
            }
        }
    }
    found
}

#[test]
fn what_the_documents_show_is_what_is_printed() {
    let mut documents = vec![workspace().join("README.md")];
    documents.extend(std::fs::read_dir(workspace().join("docs")).unwrap().map(|entry| entry.unwrap().path()));
    let mut compared = 0;
    for document in documents {
        let text = std::fs::read_to_string(&document).unwrap();
        for (line, output) in shown(&text) {
            let project = Project::new();
            let line = line.replacen("harness", &cmdgate_tests::harness_binary().display().to_string(), 1);
            let ran: Ran = project_shell(&project, &format!("{line} 2>&1")).output().unwrap().into();
            assert_eq!(ran.stdout, output, "{}: {line}", document.display());
            compared += 1;
        }
        // Policies can be taken from the page. Those of other programs have tables of their own.
        for block in text.split("```toml\n").skip(1).filter(|block| !block.starts_with("[mcp_servers")) {
            let project = Project::new();
            project.write_beside("shown.toml", block.split("```").next().unwrap());
            let ran = project.harness(["policy", "test", "../shown.toml"]);
            assert_eq!(ran.code, 0, "{}: {ran:?}", document.display());
            compared += 1;
        }
    }
    assert!(compared >= 8, "{compared}");
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
