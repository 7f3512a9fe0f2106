//! The rows of the executor's sandbox tests once more, through `harness run`: the program sets the sandbox up by itself,
//! and what the library can do is worth nothing if the program does not ask for it.
//!
//! Each command stands in a script, so that it is the sandbox and not the gate that has to hold.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "helpers of tests fail as tests do")]

#[path = "../../crates/executor/tests/common/mod.rs"]
mod common;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Fixture, both_with, table};
use serde_json::Value;

/// Where the program lies, for both identities.
const HARNESS: &str = "CMDGATE_TEST_HARNESS";

fn both<F: Future<Output = ()>>(body: impl FnOnce() -> F) {
    both_with(|| vec![(HARNESS, common::reachable(cmdgate_tests::harness_binary()))], body);
}

/// `harness run` on a script in the project; its answer.
fn harness(fixture: &Fixture, options: &[&str], script: &str) -> Value {
    fs::write(fixture.project.join("row.sh"), script).unwrap();
    let output = program(fixture, options, "bash row.sh").output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn program(fixture: &Fixture, options: &[&str], command: &str) -> Command {
    let mut program = Command::new(std::env::var_os(HARNESS).unwrap());
    program
        .args(["run", "--json", "--approval", "never", "--timeout-ms", "60000"])
        .args(options)
        .args(["--", command])
        .current_dir(&fixture.project)
        .envs(fixture.variables())
        .env("XDG_CONFIG_HOME", fixture.base.join("config"))
        .env("XDG_STATE_HOME", fixture.base.join("state"));
    program
}

/// A project for which the program passes the variables of the rows.
fn fixture() -> Fixture {
    fixture_under("")
}

/// The same, with history that can be written: by default all of `.git` is read-only.
fn fixture_with_history() -> Fixture {
    fixture_under("unprotected_paths = [\".git\"]\n\n")
}

fn fixture_under(settings: &str) -> Fixture {
    let mut fixture = Fixture::new();
    let config = fixture.base.join("config/cmdgate");
    fs::create_dir_all(&config).unwrap();
    fs::create_dir(fixture.base.join("state")).unwrap();
    let names: Vec<&str> = fixture.variables().iter().map(|(name, _)| *name).collect();
    let policy = format!(
        "{settings}[[rule]]\nact = \"exec\"\neffect = \"allow\"\npattern = \"bash **\"\n\n[environment]\nadd = {names:?}\n"
    );
    fs::write(config.join("policy.toml"), policy).unwrap();
    fixture.settle();
    fixture
}

/// What both streams held.
fn text(answer: &Value) -> String {
    let stream = |name: &str| {
        let stream = &answer["run"][name];
        [stream["text"].as_str(), stream["tail"].as_str()].into_iter().flatten().collect::<String>()
    };
    stream("stdout") + &stream("stderr")
}

fn denied(rows: &[table::Denied]) {
    denied_in(fixture, rows);
}

fn denied_in(fixture: fn() -> Fixture, rows: &[table::Denied]) {
    let mut failed = Vec::new();
    for (name, command) in rows {
        let mut fixture = fixture();
        let answer = harness(&fixture, &["--sandbox", "workspace_write"], command);
        let harm = fixture.harm_in(&text(&answer));
        if answer["run"]["outcome"] != "exited" || !harm.is_empty() {
            failed.push(format!("{name}: {}\n{answer}", harm.join("\n")));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

fn work(rows: &[table::Works]) {
    let mut failed = Vec::new();
    for (name, mode, command, parts) in rows {
        let mut fixture = fixture_with_history();
        let answer = harness(&fixture, &["--sandbox", mode.name()], command);
        let text = text(&answer);
        let missing: Vec<_> = parts.iter().filter(|part| !text.contains(**part)).collect();
        let harm = fixture.harm_in(&text);
        if answer["run"]["exit_code"] != 0 || !missing.is_empty() || !harm.is_empty() {
            failed.push(format!("{name}: missing {missing:?}, {}\n{answer}", harm.join("\n")));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

// contract: S25
// promise: 7, 8
#[test]
fn escapes_by_file_system() {
    both(|| async { denied(table::ESCAPES) });
}

// contract: S26
// promise: 8
#[test]
fn changes_of_protected_paths() {
    both(|| async {
        denied(table::PROTECTED);
        denied_in(fixture_with_history, table::PROTECTED);
    });
}

// contract: S19, P8
// promise: 10
#[test]
fn reads_of_secrets() {
    both(|| async { denied(table::SECRETS) });
}

// contract: S25
#[test]
fn network_and_sockets() {
    both(|| async { denied(table::SOCKETS) });
}

// contract: S25
#[test]
fn system_calls() {
    both(|| async { denied(table::CALLS) });
}

// contract: S25
#[test]
fn rows_that_tell_by_themselves() {
    both(|| async {
        denied(table::TOLD);
        work(table::READ_ONLY);
    });
}

// contract: S26, P15
#[test]
fn git_npm_and_python_work() {
    both(|| async { work(table::WORK_GIT_NPM_PYTHON) });
}

// contract: P15
#[test]
fn terminals_sockets_and_tools_work() {
    both(|| async { work(table::WORK_TOOLS) });
}

#[test]
fn w04_cargo_builds_and_tests() {
    both(|| async {
        let cargo = Path::new(env!("CARGO"));
        if rustix::fs::access(cargo, rustix::fs::Access::EXEC_OK).is_err() {
            // A toolchain in root's home cannot be reached by another user; the half as root covers it.
            assert!(!common::is_root(), "cargo is needed to build this very test");
            return;
        }
        let mut fixture = fixture();
        let path = cargo.parent().unwrap().display();
        let script = format!(
            "export PATH={path}:/usr/bin:/bin CARGO_HOME=/tmp/cargo\n\
             cargo init -q --vcs none --name x cr && cd cr && cargo build -q --offline && \
             cargo test -q --offline 2>&1 | tail -2 && ./target/debug/x"
        );
        let answer = harness(&fixture, &["--sandbox", "workspace_write"], &script);
        let text = text(&answer);
        assert!(text.contains("test result: ok") && text.contains("Hello, world!"), "{answer}");
        assert_eq!(fixture.harm_in(&text), Vec::<String>::new());
    });
}

#[test]
fn n06_tmux_of_the_host_takes_no_keys() {
    both(|| async {
        let mut fixture = fixture();
        let socket = fixture.outside.join("tmux.sock");
        let tmux = |arguments: &[&str]| {
            let mut command = Command::new("tmux");
            command.arg("-S").arg(&socket).args(arguments).env_remove("TMUX").env("TERM", "dumb");
            command.output().unwrap()
        };
        let started = tmux(&["-f", "/dev/null", "new-session", "-d", "sh"]);
        assert!(started.status.success(), "{started:?}");
        fixture.settle();
        let script = "for s in $OUT/tmux.sock /tmp/tmux-*/default; do \
                      tmux -S $s send-keys 'touch $OUT/tmuxesc' Enter && echo SUCCEEDED; done; \
                      env | grep -E 'TMUX|SSH_AUTH|DBUS|DISPLAY' && echo SUCCEEDED";
        let answer = harness(&fixture, &["--sandbox", "workspace_write"], script);
        tmux(&["kill-server"]);
        assert!(!text(&answer).contains("SUCCEEDED"), "{answer}");
        assert!(!fixture.outside.join("tmuxesc").exists(), "{answer}");
    });
}

#[test]
fn s35_shared_memory_of_the_host_is_not_seen() {
    both(|| async {
        let mut fixture = fixture();
        let key = (common::unique() % 1_000_000 + 1000).to_string();
        let bare = |call: &str| {
            let output = Command::new(&fixture.helper).args([call, &key]).output().unwrap();
            String::from_utf8_lossy(&output.stdout).contains("SUCCEEDED")
        };
        assert!(bare("shmcreate") && bare("shmget"));
        let script = format!("$SC shmget {key}; ipcs -m");
        let answer = harness(&fixture, &["--sandbox", "workspace_write"], &script);
        bare("shmremove");
        assert_eq!(fixture.harm_in(&text(&answer)), Vec::<String>::new(), "{answer}");
    });
}

/// The attacks are real through the program too: without a sandbox the same checks find the damage.
#[test]
fn without_a_sandbox_the_attacks_are_seen_to_work() {
    both(|| async {
        for attack in
            ["touch $OUT/abs", "echo x > .git/hooks/pre-commit", "$SC tcp 127.0.0.1 $TCP", "cat ~/.npmrc"]
        {
            let mut fixture = fixture();
            let answer = harness(&fixture, &["--sandbox", "danger_full_access"], attack);
            assert!(!fixture.harm_in(&text(&answer)).is_empty(), "{attack} did no damage: {answer}");
        }
    });
}

/// The answer says of each bound whether it held, and why not: as root nothing but a control group bounds processes.
#[test]
fn the_answer_says_which_limits_hold() {
    both(|| async {
        let fixture = fixture();
        for mode in ["read_only", "danger_full_access"] {
            let answer = harness(&fixture, &["--sandbox", mode], "ulimit -c; ulimit -u");
            let limits = answer["run"]["enforced"]["limits"].as_array().unwrap();
            let limit = |name: &str| limits.iter().find(|limit| limit["name"] == name);
            let core = limit("core_files").unwrap();
            assert_eq!(
                core,
                &serde_json::json!({ "name": "core_files", "value": 0, "holds": true, "by": "resource_limit" })
            );
            assert!(text(&answer).starts_with("0\n"), "{answer}");
            let processes = limit("processes").unwrap();
            let holds = mode == "read_only" && !common::is_root();
            assert_eq!((&processes["value"], &processes["holds"]), (&4096.into(), &holds.into()), "{answer}");
            if holds {
                assert_eq!(processes["by"], "resource_limit");
                assert_eq!(text(&answer), "0\n4096\n");
            } else {
                assert!(processes["reason"].as_str().unwrap().contains("control group"), "{answer}");
            }
            let shared = limit("shared_memory").map(|limit| &limit["by"]);
            assert_eq!(shared.is_some(), mode == "read_only", "{answer}");
            assert!(shared.is_none_or(|by| by == "mount"), "{answer}");
        }
    });
}

/// What stands by to end the command after a SIGKILL needs programs of the system. Where one is missing the answer says so.
#[test]
fn the_answer_says_when_nothing_could_end_the_command_after_a_sigkill() {
    both(|| async {
        let fixture = fixture();
        fs::write(fixture.project.join("row.sh"), "true").unwrap();
        let without = |hidden: &[&str]| {
            let run = program(&fixture, &["--sandbox", "danger_full_access"], "bash row.sh");
            let mut around = Command::new("bwrap");
            around.args(["--dev-bind", "/", "/"]);
            for path in hidden.iter().filter(|path| Path::new(path).exists()) {
                around.args(["--ro-bind", "/dev/null", path]);
            }
            around.arg("--").arg(run.get_program()).args(run.get_args()).current_dir(&fixture.project);
            for (name, value) in run.get_envs() {
                around.env(name, value.unwrap());
            }
            let output = around.output().unwrap();
            let answer: Value =
                serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
            assert_eq!(answer["run"]["exit_code"], 0, "{answer}");
            let limits = answer["run"]["enforced"]["limits"].as_array().unwrap().clone();
            limits.into_iter().find(|limit| limit["name"] == "ends_with_caller")
        };
        assert_eq!(without(&[]), None);
        let limit = without(&["/usr/bin/grep", "/bin/grep"]).unwrap();
        assert_eq!(limit["holds"], false, "{limit}");
        assert!(limit["reason"].as_str().unwrap().contains("`grep`"), "{limit}");
    });
}

/// Each sandboxed command leaves an orphan, and process 1 of many containers takes none out of the process table.
#[test]
fn no_zombies_are_left_where_nobody_waits_for_orphans() {
    both(|| async {
        let zombies = |parent: u32| {
            let processes = fs::read_dir("/proc").unwrap().flatten();
            let lines = processes.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
            let of_parent = format!("Z {parent} ");
            lines
                .filter(|line| line.rsplit(") ").next().is_some_and(|rest| rest.starts_with(&of_parent)))
                .collect::<Vec<String>>()
        };
        let fixture = fixture();
        // From here on this process is the parent of what the programs leave, and never waits for it.
        cmdgate_executor::adopt_orphans().unwrap();
        for mode in ["read_only", "workspace_write", "danger_full_access"] {
            harness(&fixture, &["--sandbox", mode], "(sleep 3 &); (setsid sleep 3 &); exit 3");
        }
        assert_eq!(zombies(std::process::id()), Vec::<String>::new());
        // A program that stays takes away what it has adopted.
        let like = program(&fixture, &[], "");
        let mut server = Command::new(like.get_program())
            .args(["mcp", "--approval", "never"])
            .envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .current_dir(&fixture.project)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
        let mut input = server.stdin.take().unwrap();
        let mut tell = |message: Value| writeln!(input, "{message}").unwrap();
        let mut answer = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
        tell(serde_json::json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } }));
        answer();
        tell(serde_json::json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        for (id, command) in ["true", "ls | sort", "grep -q nothing row.sh"].into_iter().enumerate() {
            let arguments = serde_json::json!({ "command": command });
            tell(serde_json::json!({ "jsonrpc": "2.0", "id": id + 1, "method": "tools/call",
                "params": { "name": "shell_run", "arguments": arguments } }));
            let answer = answer();
            assert_eq!(answer["result"]["structuredContent"]["reply"], "ran", "{answer}");
            assert!(
                common::eventually(|| zombies(server.id()).is_empty()).await,
                "{:?}",
                zombies(server.id())
            );
        }
        drop(input);
        assert!(server.wait().unwrap().success());
        assert_eq!(zombies(std::process::id()), Vec::<String>::new());
    });
}

/// What a command left of itself: its sandbox, or the sleep that nobody else sleeps.
fn left(fixture: &Fixture, sleep: &str) -> Vec<u32> {
    let project = fixture.project.to_string_lossy();
    [common::processes_with(&project), common::processes_with(&format!("sleep\0{sleep}"))].concat()
}

/// Killed at whatever moment, the program leaves nothing.
// contract: S23
// promise: 9
#[test]
fn nothing_survives_the_program() {
    both(|| async {
        let fixture = fixture();
        harness(&fixture, &[], "true");
        let sleep = format!("6{}", common::unique());
        let script = format!("(env -i setsid sleep {sleep} &)\nsleep {sleep}; touch late");
        fs::write(fixture.project.join("row.sh"), script).unwrap();
        for mode in ["workspace_write", "danger_full_access"] {
            for step in 0..12 {
                let mut running = program(&fixture, &["--sandbox", mode], "bash row.sh")
                    .stdout(std::process::Stdio::null())
                    .stderr(std::process::Stdio::null())
                    .spawn()
                    .unwrap();
                std::thread::sleep(std::time::Duration::from_millis(step * 7));
                running.kill().unwrap();
                running.wait().unwrap();
                let gone = common::eventually(|| left(&fixture, &sleep).is_empty()).await;
                assert!(gone, "{mode}, killed after {} ms: {:?}", step * 7, left(&fixture, &sleep));
            }
        }
        assert!(!fixture.project.join("late").exists());
    });
}

/// A program that runs inside another run has nobody standing by: the run around it ends what is left of it.
// promise: 9
#[test]
fn what_a_nested_program_leaves_goes_with_the_run_around_it() {
    both(|| async {
        let fixture = fixture();
        let sleep = format!("6{}", common::unique());
        let inner = format!("(env -i setsid sleep {sleep} &)\ntouch up; sleep {sleep}");
        fs::write(fixture.project.join("inner.sh"), inner).unwrap();
        for mode in ["workspace_write", "danger_full_access"] {
            let script = format!(
                "export XDG_CONFIG_HOME={base}/config XDG_STATE_HOME={base}/state\n\
                 {harness} run --approval never --timeout-ms 60000 --sandbox {mode} -- 'bash inner.sh' &\n\
                 for i in $(seq 1000); do [ -e up ] && break; sleep 0.02; done\n\
                 kill -9 $!; sleep 0.1; rm up && echo killed",
                base = fixture.base.display(),
                harness = std::env::var(HARNESS).unwrap(),
            );
            let answer = harness(&fixture, &["--sandbox", "danger_full_access"], &script);
            assert!(text(&answer).contains("killed"), "{answer}");
            let gone = common::eventually(|| left(&fixture, &sleep).is_empty()).await;
            assert!(gone, "{mode}: {:?}", left(&fixture, &sleep));
        }
    });
}

/// The project may have any name that the system allows.
#[test]
fn odd_project_paths() {
    both(|| async {
        let fixture = fixture();
        let names: [&[u8]; 7] = [
            b"sp ace dir",
            b"new\nline",
            b"-dash --bind",
            b"quote'\"$(touch pwn)`x`;*?[a]\\",
            b"not-utf8-\xff\xfe",
            b"--",
            b"tab\tand\\040octal",
        ];
        for name in names {
            let project =
                fixture.base.join(std::os::unix::ffi::OsStrExt::from_bytes(name) as &std::ffi::OsStr);
            fs::create_dir_all(project.join(".vscode")).unwrap();
            fs::write(
                project.join("row.sh"),
                "touch made; for no in ../beside .vscode/x ~/x; do touch \"$no\" 2>/dev/null && echo SUCCEEDED; done; echo end",
            )
            .unwrap();
            let output = program(&fixture, &["--sandbox", "workspace_write"], "bash row.sh")
                .current_dir(&project)
                .output()
                .unwrap();
            let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(text(&answer), "end\n", "{answer}");
            assert!(project.join("made").exists() && !project.join(".vscode/x").exists());
            assert!(!fixture.base.join("beside").exists() && !fixture.home.join("x").exists());
        }
    });
}

#[test]
fn twenty_four_programs_at_once() {
    both(|| async {
        let fixture = fixture();
        fs::write(fixture.project.join("row.sh"), "echo $1 > n$1; sleep 0.1; cat n$1").unwrap();
        let running: Vec<_> = (0..24)
            .map(|number| {
                program(&fixture, &["--sandbox", "workspace_write"], &format!("bash row.sh {number}"))
                    .stdout(std::process::Stdio::piped())
                    .spawn()
                    .unwrap()
            })
            .collect();
        for (number, child) in running.into_iter().enumerate() {
            let answer: Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
            assert_eq!(
                (text(&answer), answer["run"]["exit_code"].as_i64()),
                (format!("{number}\n"), Some(0)),
                "{answer}"
            );
        }
    });
}

/// The files in which the program keeps what its preflight found.
fn kept(fixture: &Fixture) -> Vec<PathBuf> {
    let directory = fixture.base.join("state/cmdgate/preflight");
    fs::read_dir(directory).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
}

/// What one process has found is used by the next, only where it holds, and never where a command could have put it.
// promise: 7
#[test]
fn a_preflight_is_kept_for_the_next_process() {
    both(|| async {
        let fixture = fixture();
        let rung = |options: &[&str]| {
            let answer = harness(&fixture, options, "true");
            assert_eq!(answer["run"]["exit_code"], 0, "{answer}");
            answer["run"]["enforced"]["rung"].as_str().unwrap().to_owned()
        };
        let found = rung(&[]);
        let files = kept(&fixture);
        let [file] = files.as_slice() else { panic!("{files:?}") };
        assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
        let text = fs::read_to_string(file).unwrap();
        assert!(text.contains(&format!("\"rung\":\"{found}\"")), "{text}");

        // A lower rung than the one found shows that the file is what is read.
        fs::write(file, text.replace("\"rung\":\"full\"", "\"rung\":\"reduced\"")).unwrap();
        assert_eq!(rung(&[]), "reduced");
        // Not when it is about another boot, when others could have written it, or when it is half written.
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let reduced = text.replace("\"rung\":\"full\"", "\"rung\":\"reduced\"");
        fs::write(file, reduced.replace(boot.trim(), "another")).unwrap();
        assert_eq!(rung(&[]), found);
        fs::write(file, &reduced[..reduced.len() / 2]).unwrap();
        assert_eq!(rung(&[]), found);
        fs::write(file, &reduced).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(0o666)).unwrap();
        assert_eq!(rung(&[]), found);

        // A kept answer that does not hold is found out by the first run, and a new one is made.
        let old = fs::read_to_string(file).unwrap();
        fs::write(
            file,
            old.replace("\"size\":true", "\"size\":false").replace("\"full\"", "\"shared_proc\""),
        )
        .unwrap();
        assert_eq!(rung(&[]), found, "a rung below the floor is not taken");

        // Many processes at once find one answer or make their own.
        fs::remove_file(file).unwrap();
        let children: Vec<_> = (0..6)
            .map(|_| {
                program(&fixture, &[], "bash row.sh").stdout(std::process::Stdio::piped()).spawn().unwrap()
            })
            .collect();
        for child in children {
            let output = child.wait_with_output().unwrap();
            let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(answer["run"]["enforced"]["rung"], found.as_str(), "{answer}");
        }
        assert_eq!(kept(&fixture).len(), 1);
    });
}

// promise: 7, 8
#[test]
fn a_preflight_is_not_kept_where_a_command_may_write() {
    both(|| async {
        let fixture = fixture();
        let state = fixture.project.join("state");
        let plant = "mkdir -p state/cmdgate/preflight && chmod 700 state/cmdgate/preflight && \
                     echo x > state/cmdgate/preflight/preflight-0.json; echo planted";
        fs::write(fixture.project.join("row.sh"), plant).unwrap();
        let output = program(&fixture, &["--sandbox", "workspace_write"], "bash row.sh")
            .env("XDG_STATE_HOME", &state)
            .output()
            .unwrap();
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer["run"]["outcome"], "exited", "{answer}");
        assert!(!state.join("cmdgate/preflight").exists(), "{answer}");
    });
}
