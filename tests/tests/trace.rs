//! The trace as a whole: what is written, what survives, and what is said when it cannot be.

use cmdgate_tests::{Project, Ran};
use std::path::Path;
use std::process::{Command, Stdio};

const FREE: [&str; 4] = ["--sandbox", "danger_full_access", "--approval", "never"];

#[test]
fn ten_processes_at_once_lose_nothing() {
    // contract: P12
    let project = Project::new();
    let children: Vec<_> = (0..10)
        .map(|n| {
            let command = format!("echo process-{n}");
            let args = [&["run"][..], &FREE, &["--", &command]].concat();
            project.command(args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for child in children {
        let ran: Ran = child.wait_with_output().unwrap().into();
        assert_eq!(ran.code, 0, "{ran:?}");
    }
    let steps = project.harness(["log", "--json", "--ran"]).json();
    let mut commands: Vec<&str> =
        steps["steps"].as_array().unwrap().iter().map(|step| step["command"].as_str().unwrap()).collect();
    commands.sort_unstable();
    let expected: Vec<String> = (0..10).map(|n| format!("echo process-{n}")).collect();
    assert_eq!(commands, expected);
    let verified = project.harness(["log", "verify", "--json"]);
    assert_eq!((verified.code, verified.json()["intact"].as_bool()), (0, Some(true)), "{verified:?}");
}

#[test]
fn the_log_answers_what_was_refused_and_what_ran() {
    // contract: P12
    let project = Project::new();
    assert_eq!(project.run(&[], "cat a.txt").code, 0);
    assert_eq!(project.run(&[], "rm a.txt").code, 126);
    assert_eq!(project.run(&["--sandbox", "workspace_write"], "touch new.txt").code, 126);
    let commands = |flag: &str| {
        let steps = project.harness(["log", "--json", flag]).json();
        assert_eq!(steps["schema_version"], 1);
        let steps = steps["steps"].as_array().unwrap().clone();
        steps.iter().map(|step| step["command"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(commands("--ran"), ["cat a.txt"]);
    assert_eq!(commands("--refused"), ["rm a.txt"]);
    assert_eq!(commands("--asked"), ["touch new.txt"]);
    let table = project.harness(["log"]).stdout;
    assert!(table.contains("cat a.txt") && table.contains("denied") && table.contains("deferred"), "{table}");
    let show = project.harness(["log", "show", "2"]);
    assert!(show.code == 0 && show.stdout.contains("PERMISSION_DENIED"), "{show:?}");
    assert_eq!(project.harness(["log", "show", "99"]).code, 1);
    assert_eq!(project.harness(["log", "tail", "-n", "1"]).stdout.lines().count(), 1);
    let export = project.harness(["log", "export", "--jsonl"]).stdout;
    let tables: Vec<String> = export
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["table"].as_str().unwrap().to_owned()
        })
        .collect();
    for table in ["runs", "steps", "policy_events", "sandbox_events", "chain"] {
        assert!(tables.iter().any(|name| name == table), "{table}");
    }
    let pruned = project.harness(["log", "prune", "--max-size", "0", "--json"]);
    assert!(pruned.code == 0 && pruned.json()["runs"].as_u64() >= Some(2), "{pruned:?}");
    assert_eq!(project.harness(["log", "verify"]).code, 0);
    assert_eq!(project.harness(["log", "prune"]).code, 2, "what to remove must be said");
}

#[test]
fn what_a_command_says_does_not_reach_the_terminal_as_it_is() {
    let project = Project::new();
    project.run(&[], "echo \u{1b}[2J\u{202e}");
    let table = project.harness(["log"]).stdout;
    assert!(
        table.contains("\\u{1b}[2J") && !table.contains('\u{1b}') && !table.contains('\u{202e}'),
        "{table}"
    );
}

#[test]
fn a_secret_of_the_environment_reaches_neither_output_nor_trace() {
    // contract: S19
    let project = Project::new();
    let args = [&["run"][..], &FREE, &["--json", "--", "echo canary-9431; env"]].concat();
    let ran: Ran = project.command(args).env("OPENAI_API_KEY", "canary-9431").output().unwrap().into();
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(!ran.json()["run"]["stdout"]["text"].as_str().unwrap().contains("OPENAI_API_KEY"));
    for file in std::fs::read_dir(project.scratch().join("state/cmdgate")).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("canary-9431"));
    }
    assert!(project.harness(["log"]).stdout.contains("[redacted: OPENAI_API_KEY]"));
}

#[test]
fn patterns_of_the_policy_are_taken_out_and_bad_ones_are_an_error_with_their_place() {
    // contract: P12, X7
    let project = Project::new();
    let policy = "config/cmdgate/policy.toml";
    project.write_beside(policy, "[trace]\nredact = ['CUST-[0-9]{6}']\n");
    let ran = project.run(&[], "grep CUST-104711 a.txt");
    assert_eq!(ran.code, 1, "{ran:?}");
    let log = project.harness(["log"]).stdout;
    assert!(log.contains("grep [redacted: custom] a.txt") && !log.contains("104711"), "{log}");
    // Whoever wrote the project's own file cannot hide commands with it until it is trusted.
    project.write(".cmdgate.toml", "[trace]\nredact = ['.+']\nkeep_days = 1\n");
    assert_eq!(project.run(&[], "cat a.txt").code, 0);
    assert!(project.harness(["log"]).stdout.contains("cat a.txt"));
    let settings = project.harness(["config", "show", "--json"]).json();
    assert!(settings["settings"]["trace"].get("keep_days").is_none(), "{settings}");
    project.write_beside(policy, "[trace]\nredact = ['CUST', '(']\n");
    let ran = project.run(&[], "cat a.txt");
    assert!(ran.code == 3 && ran.stderr.contains("policy.toml:2:19"), "{ran:?}");
}

#[test]
fn a_trace_that_grows_over_its_size_is_pruned_and_that_is_said() {
    // contract: P12
    let project = Project::new();
    project.write_beside("config/cmdgate/policy.toml", "[trace]\nmax_bytes = 250000\n");
    let mut said = 0;
    for n in 0..24 {
        let ran = project.run(&[], &format!("echo {} {n}", "x".repeat(6000)));
        assert_eq!(ran.code, 0, "{ran:?}");
        if ran.stderr.contains("removed") && ran.stderr.contains("trace.max_bytes") {
            said += 1;
        }
    }
    assert!(said > 0, "nothing was removed");
    let verified = project.harness(["log", "verify"]);
    assert_eq!(verified.code, 0, "{verified:?}");
    let steps = project.harness(["log", "--json"]).json();
    let steps = steps["steps"].as_array().unwrap().clone();
    assert!(steps.len() < 24 && steps.last().unwrap()["command"].as_str().unwrap().ends_with(" 23"));
    let export = project.harness(["log", "export", "--jsonl"]).stdout;
    assert!(export.contains(r#""table":"prunings""#), "what was removed stands in the trace");
}

#[cfg(unix)]
#[test]
fn a_full_disk_is_said_and_nothing_runs_unrecorded() {
    // contract: P12
    let project = Project::new();
    assert_eq!(project.run(&[], "cat a.txt").code, 0);
    let harness = cmdgate_tests::harness_binary();
    let (mut refused, mut ran) = (0, 0);
    for blocks in [0, 33, 36, 40, 44, 48, 56, 64, 4096] {
        let mark = project.root().join(format!("mark-{blocks}"));
        // What the disk cannot take fails instead of ending the process.
        let script = format!(
            "trap '' XFSZ; ulimit -f {blocks}; exec {} run {} -- 'touch mark-{blocks}'",
            harness.display(),
            FREE.join(" ")
        );
        let mut command = Command::new("bash");
        command.args(["-c", &script]).current_dir(project.root());
        for (name, value) in project.command([""; 0]).get_envs() {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        let outcome: Ran = command.output().unwrap().into();
        let recorded = project.harness(["log", "--json"]).json()["steps"]
            .as_array()
            .unwrap()
            .iter()
            .any(|step| step["command"] == format!("touch mark-{blocks}"));
        if mark.exists() {
            ran += 1;
            assert!(recorded, "{blocks}: ran unrecorded: {outcome:?}");
        } else {
            refused += 1;
            assert_eq!(outcome.code, 125, "{blocks}: {outcome:?}");
            assert!(outcome.stderr.contains("trace"), "{blocks}: {outcome:?}");
        }
    }
    assert!(refused > 0 && ran > 0, "{refused} refused, {ran} ran");
    assert_eq!(project.harness(["log", "verify"]).code, 0);
}

#[test]
fn a_trace_that_cannot_be_used_refuses_the_run() {
    // contract: P12
    let project = Project::new();
    project.write_beside("bad.db", "no database, only some text that is long enough to be looked at\n");
    let bad = project.scratch().join("bad.db");
    let in_a_file = project.root().join("a.txt/trace.db");
    for trace in [bad.as_path(), in_a_file.as_path(), Path::new("/proc/trace.db")] {
        // The file, or the directory that cannot be made for it.
        let named = [trace, trace.parent().unwrap()].map(|path| format!("{} ", path.display()));
        let trace = trace.to_str().unwrap();
        let args = [&["run"][..], &FREE, &["--trace", trace, "--", "touch never"]].concat();
        let ran = project.harness(args);
        assert_eq!(ran.code, 125, "{ran:?}");
        assert!(
            named.iter().any(|name| ran.stderr.contains(name)) && ran.stderr.contains("--trace"),
            "{ran:?}"
        );
    }
    assert!(!project.root().join("never").exists());
}

#[cfg(target_os = "linux")]
#[test]
fn files_that_rules_deny_to_read_are_hidden_from_every_command() {
    // contract: P8
    let project = Project::new();
    project.write("secrets/prod.env", "SECRET=canary-5150\n");
    project.write(".env", "SECRET=canary-5150\n");
    project.write("deep/in/.env", "SECRET=canary-5150\n");
    project.write("plain.txt", "SECRET=public\n");
    project.write_beside(
        "config/cmdgate/policy.toml",
        "[[rule]]\nact = \"read\"\neffect = \"deny\"\npattern = \"secrets/*\"\n",
    );
    let cat = project.run(&[], "cat secrets/prod.env");
    assert!(cat.code == 126 && cat.stderr.contains("secrets/*"), "{cat:?}");
    for (options, command) in [
        (&[][..], "grep -r SECRET ."),
        (&["--sandbox", "workspace_write", "--approval", "never"][..], "cat $(echo .e)nv; grep -r SECRET ."),
    ] {
        let ran = project.run(options, command);
        assert!(ran.stdout.contains("SECRET=public"), "{ran:?}");
        assert!(!ran.stdout.contains("canary-5150") && !ran.stderr.contains("canary-5150"), "{ran:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_trace_in_the_project_is_out_of_reach_of_what_runs() {
    // contract: S26, P12
    for name in ["trace.db", "deep/t[1]*.db"] {
        let project = Project::new();
        std::fs::create_dir_all(project.root().join("deep")).unwrap();
        let run = |command: &str| {
            project.harness(
                [
                    &["run", "--sandbox", "workspace_write", "--approval", "never", "--trace", name],
                    &["--", command][..],
                ]
                .concat(),
            )
        };
        assert_eq!(run("touch made").code, 0);
        for end in ["", "-wal", "-shm", "-spool"] {
            for command in ["echo x >> '{}'", "rm -f '{}'", "mv made '{}'", "truncate -s 0 '{}'"] {
                let command = command.replace("{}", &format!("{name}{end}"));
                let ran = run(&command);
                assert!(ran.code != 0, "{command}: {ran:?}");
            }
        }
        let verified = project.harness(["log", "verify", "--trace", name]);
        assert!(verified.code == 0 && !verified.stdout.starts_with("0 links"), "{verified:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_trace_that_cannot_be_written_is_read_and_nothing_runs() {
    // contract: P12
    let project = Project::new();
    assert_eq!(project.run(&[], "cat a.txt").code, 0);
    let state = project.scratch().join("state");
    let state = state.to_str().unwrap();
    // Also for root, whom permissions do not stop.
    let behind = |args: &[&str]| -> Ran {
        let mut command = Command::new("bwrap");
        command.args(["--dev-bind", "/", "/", "--ro-bind", state, state]);
        command.arg(cmdgate_tests::harness_binary()).args(args).current_dir(project.root());
        for (name, value) in project.command([""; 0]).get_envs() {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        command.output().unwrap().into()
    };
    let ran = behind(&[&["run"][..], &FREE, &["--", "touch never"]].concat());
    assert!(ran.code == 125 && ran.stderr.contains("must be writable"), "{ran:?}");
    assert!(!project.root().join("never").exists());
    let log = behind(&["log", "--json"]);
    assert_eq!((log.code, log.json()["steps"][0]["command"].as_str()), (0, Some("cat a.txt")), "{log:?}");
    assert_eq!(behind(&["log", "verify"]).code, 0);
    assert!(behind(&["log", "export", "--jsonl"]).stdout.contains("cat a.txt"));
    let pruned = behind(&["log", "prune", "--max-size", "0"]);
    assert!(pruned.code == 125 && pruned.stderr.contains("must be writable"), "{pruned:?}");
    // Rows that are not in the file itself are not passed over in silence.
    std::fs::write(project.scratch().join("state/cmdgate/trace.db-wal"), "rows").unwrap();
    let log = behind(&["log"]);
    assert!(log.code == 125 && log.stderr.contains("-wal"), "{log:?}");
}

#[test]
fn a_trace_of_a_newer_version_is_left_alone() {
    // contract: P12
    let project = Project::new();
    assert_eq!(project.run(&[], "cat a.txt").code, 0);
    let trace = project.scratch().join("state/cmdgate/trace.db");
    let connection = rusqlite::Connection::open(&trace).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    for args in [
        &[&["run"][..], &FREE, &["--", "touch never"]].concat()[..],
        &["log"],
        &["log", "verify"],
        &["log", "prune", "--max-size", "0"],
        &["approvals", "list"],
    ] {
        let ran = project.harness(args);
        assert!(ran.code == 125 && ran.stderr.contains("newer version"), "{args:?}: {ran:?}");
    }
    assert!(!project.root().join("never").exists());
    let steps: i64 = connection.query_row("SELECT count(*) FROM steps", [], |row| row.get(0)).unwrap();
    assert_eq!(steps, 1);
}

#[cfg(target_os = "linux")]
#[test]
fn it_is_said_when_not_every_denied_file_could_be_hidden() {
    // contract: P8
    let project = Project::new();
    let plain = project.run(&["--json"], "cat a.txt");
    assert!(plain.json().get("warnings").is_none() && !plain.stderr.contains("too many"), "{plain:?}");
    for n in 0..=500 {
        project.write(format!("keys/{n}.pem"), "");
    }
    let ran = project.run(&["--json"], "cat a.txt");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.json()["warnings"][0].as_str().unwrap().contains("too many files"), "{ran:?}");
    assert!(ran.stderr.contains("may be visible"), "{ran:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_run_that_is_told_to_end_kills_its_command_and_records_that() {
    // contract: P12
    let project = Project::new();
    for (signal, time) in [("-TERM", "4815.31"), ("-INT", "4815.32")] {
        let args = [&["exec"][..], &FREE, &["--", "sleep", time]].concat();
        let child = project.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lives = || {
            std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
                let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
                let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
                words[0].ends_with(b"sleep") && words.contains(&time.as_bytes())
            })
        };
        let begun = std::time::Instant::now();
        while !lives() {
            assert!(begun.elapsed().as_secs() < 60, "it never started");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
        let ran: Ran = child.wait_with_output().unwrap().into();
        assert!(ran.code == 125 && !lives(), "{ran:?}");
    }
    let log = project.harness(["log", "--json"]).json();
    let outcomes: Vec<_> =
        log["steps"].as_array().unwrap().iter().map(|step| step["outcome"].clone()).collect();
    assert_eq!(outcomes, ["cancelled", "cancelled"], "{log}");
}

#[test]
fn an_argument_list_is_shown_so_that_its_words_can_be_told_apart_and_pasted() {
    // contract: P12, P1
    let project = Project::new();
    let argv = ["printf", "%s|", "a b", "it's", "", "$HOME", "x\ny", "\u{1b}[2J", ";", "`id`"];
    let ran = project.harness([&["exec", "--"], &argv[..]].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    let line = r"printf '%s|' 'a b' 'it'\''s' '' '$HOME' $'x\ny' $'\x1b[2J' ';' '`id`'";
    let line = line.replace("'%s|'", &cmdgate_harness::words::quoted("%s|"));
    for args in [&["log"][..], &["log", "tail"], &["log", "show", "1"]] {
        let shown = project.harness(args).stdout;
        assert!(shown.contains(&line) && !shown.contains('\u{1b}'), "{args:?}: {shown}");
    }
    assert_eq!(project.harness(["log", "--json"]).json()["steps"][0]["command"], line);
    assert!(ran.stdout.contains(&format!("Command: {line}\n")), "{ran:?}");
    // What is shown is what bash takes for these words.
    let pasted = Command::new("bash").args(["-c", &line]).output().unwrap();
    let expected: String = argv[2..].iter().map(|word| format!("{word}|")).collect();
    assert_eq!(String::from_utf8_lossy(&pasted.stdout), expected);
    // The question says it, too.
    let asked = project.harness(["exec", "--sandbox", "workspace_write", "--", "touch", "a b", "c"]);
    assert!(asked.code == 126 && asked.stderr.contains("word by word: touch 'a b' c"), "{asked:?}");
    let list = project.harness(["approvals", "list"]).stdout;
    assert!(list.contains("touch 'a b' c"), "{list}");
}
