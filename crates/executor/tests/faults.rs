//! Everything that goes wrong with commands: they do not end, they flood, they hide, they take their sandbox along;
//! and everything that goes wrong around them.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod common;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cmdgate_executor::output::CutBy;
use cmdgate_executor::{
    CancellationToken, ExecError, Executor, Finished, Keep, NotStarted, Outcome, OutputMode, PrivateTmp,
    Sandbox, Stage,
};
use common::{Fixture, all_text, both, eventually, processes_with, shown, stdout, unique, worked};

const TIMED_OUT: Outcome = Outcome::TimedOut { kill_incomplete: false };

/// A number of seconds that nobody else sleeps for.
fn mark() -> String {
    format!("6{}", unique())
}

/// Runs a command with a time limit of one second.
async fn hurried(fixture: &Fixture, sandbox: Sandbox, command: &str) -> Finished {
    fixture.executor(sandbox).shell(command).timeout(Duration::from_secs(1)).run().await.unwrap()
}

/// Nothing with the mark in its command line is alive: now, not later.
fn gone(mark: &str, finished: &Finished) {
    let left = processes_with(mark);
    assert!(left.is_empty(), "still there: {left:?}\n{}", shown(finished));
}

/// The ways not to die, each in a sandbox and without one.
// contract: S23, S28
#[test]
fn x01_to_x05_nothing_survives_a_timeout() {
    both(|| async {
        let fixture = Fixture::new();
        for sandbox in [Sandbox::workspace_write(), Sandbox::danger_full_access()] {
            for command in [
                "sleep MARK",
                "setsid sh -c 'sleep MARK' & wait; sleep MARK",
                "trap '' TERM INT HUP QUIT; sleep MARK; sleep MARK",
                "sh -c 'kill -STOP $$; sleep MARK' & sleep MARK & kill -STOP 0; sleep MARK",
                "(setsid nohup sh -c 'trap \"\" TERM; sleep MARK' >/dev/null 2>&1 &); (sleep MARK &); sleep MARK",
            ] {
                let mark = mark();
                let finished = hurried(&fixture, sandbox.clone(), &command.replace("MARK", &mark)).await;
                assert_eq!(finished.outcome, TIMED_OUT, "{command}: {}", shown(&finished));
                gone(&mark, &finished);
            }
        }
    });
}

// contract: S28
#[test]
fn x03_daemons_are_dead_when_the_command_returns() {
    both(|| async {
        let fixture = Fixture::new();
        for sandbox in [Sandbox::workspace_write(), Sandbox::danger_full_access()] {
            let mark = mark();
            let command = format!(
                "(setsid nohup sh -c 'sleep {mark}; sleep {mark}' >/dev/null 2>&1 &) ; sleep {mark} & exit 3"
            );
            let finished = fixture.run(sandbox, command).await;
            assert_eq!(finished.outcome, Outcome::Exited(3), "{}", shown(&finished));
            gone(&mark, &finished);
        }
    });
}

/// Neither a cleaned environment and a session of its own, nor a first thread that has ended (`/proc` then says "zombie"),
/// hides a process; nor do both.
// contract: S28
// promise: 9
#[test]
fn x03_what_hides_is_found() {
    both(|| async {
        let fixture = Fixture::new();
        for sandbox in [Sandbox::workspace_write(), Sandbox::danger_full_access()] {
            let mark = mark();
            let command = format!("(env -i setsid sh -c 'sleep {mark} & sleep {mark}' &) ; sleep 0.3");
            let finished = fixture.run(sandbox.clone(), command).await;
            assert_eq!(finished.outcome, Outcome::Exited(0), "{}", shown(&finished));
            gone(&mark, &finished);

            for hidden in ["$SC headless beat &", "(env -i setsid $SC headless beat &)"] {
                let beat = fixture.project.join("beat");
                let command = format!("{hidden}\nuntil [ -s beat ]; do sleep 0.02; done");
                let finished = fixture.run(sandbox.clone(), command).await;
                assert_eq!(finished.outcome, Outcome::Exited(0), "{}", shown(&finished));
                let beats = fs::metadata(&beat).unwrap().len();
                tokio::time::sleep(Duration::from_millis(200)).await;
                assert_eq!(fs::metadata(&beat).unwrap().len(), beats, "{hidden} went on");
                fs::remove_file(&beat).unwrap();
            }
        }
    });
}

/// What the program around has started by itself is left alone, and so is what it has not waited for yet.
#[test]
fn x03_children_of_the_caller_are_left_alone() {
    both(|| async {
        let fixture = Fixture::new();
        let mut child = std::process::Command::new("setsid").args(["sleep", "60"]).spawn().unwrap();
        let mut ended = std::process::Command::new("false").spawn().unwrap();
        let mark = mark();
        let command = format!("(env -i setsid sleep {mark} &) ; sleep 0.2");
        let finished = fixture.run(Sandbox::danger_full_access(), command).await;
        assert_eq!(finished.outcome, Outcome::Exited(0), "{}", shown(&finished));
        gone(&mark, &finished);
        assert_eq!(child.try_wait().unwrap(), None);
        assert_eq!(ended.wait().unwrap().code(), Some(1));
        child.kill().unwrap();
        child.wait().unwrap();
    });
}

/// Two commands at once do not end each other's processes.
#[test]
fn x03_a_tree_ends_itself_alone() {
    both(|| async {
        let fixture = Fixture::new();
        let executor = fixture.executor(Sandbox::danger_full_access());
        let long = tokio::spawn(
            executor.shell("(env -i PATH=$PATH setsid sh -c 'sleep 1; touch done' &) ; sleep 2").run(),
        );
        tokio::time::sleep(Duration::from_millis(300)).await;
        for command in ["true", "(setsid sleep 50 &) ; exit 0"] {
            executor.shell(command).run().await.unwrap();
        }
        assert_eq!(long.await.unwrap().unwrap().outcome, Outcome::Exited(0));
        assert!(fixture.project.join("done").exists());
    });
}

/// A program finds no signal blocked and none handled, and is ended by a broken pipe, which Rust programs ignore.
#[test]
fn x03_signals_are_as_a_shell_would_have_them() {
    both(|| async {
        let fixture = Fixture::new();
        for sandbox in [Sandbox::read_only(), Sandbox::danger_full_access()] {
            let executor = fixture.executor(sandbox);
            let finished = executor.argv(["cat", "/proc/self/status"]).run().await.unwrap();
            let set = |name: &str| {
                let line = stdout(&finished).lines().find_map(|line| line.strip_prefix(name)).unwrap();
                u64::from_str_radix(line.trim_start_matches(':').trim(), 16).unwrap()
            };
            assert_eq!((set("SigBlk"), set("SigCgt")), (0, 0), "{}", shown(&finished));
            assert_eq!(set("SigIgn") & (1 << 12), 0, "{}", shown(&finished));
        }
    });
}

// contract: S28
#[test]
fn x06_x07_a_held_pipe_holds_nobody_up() {
    both(|| async {
        let fixture = Fixture::new();
        for sandbox in [Sandbox::workspace_write(), Sandbox::danger_full_access()] {
            for command in ["sleep MARK & echo parent", "exec > >(tee t) 2>&1; echo parent; (sleep MARK &)"] {
                let mark = mark();
                let finished = fixture.run(sandbox.clone(), command.replace("MARK", &mark)).await;
                assert_eq!(finished.outcome, Outcome::Exited(0), "{}", shown(&finished));
                assert!(
                    finished.duration < Duration::from_secs(50),
                    "waited for the pipe: {:?}",
                    finished.duration
                );
                gone(&mark, &finished);
            }
            let finished = fixture.run(sandbox, "echo parent | tee t").await;
            worked(&finished, &["parent"]);
        }
    });
}

// contract: S18
#[test]
fn x08_standard_input_is_empty() {
    both(|| async {
        let fixture = Fixture::new();
        for sandbox in [Sandbox::read_only(), Sandbox::danger_full_access()] {
            worked(
                &fixture.run(sandbox, "cat; read x; echo rc=$?; readlink /proc/self/fd/0").await,
                &["rc=1", "/dev/null"],
            );
        }
    });
}

fn resident_kilobytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

// contract: S21, S22
#[test]
fn x09_x10_x15_a_flood_stays_bounded_in_memory() {
    both(|| async {
        let fixture = Fixture::new();
        let executor = fixture
            .builder(Sandbox::read_only())
            .output(OutputMode { keep: Keep::HeadAndTail, ..OutputMode::default() })
            .build()
            .unwrap();
        executor.shell("true").run().await.unwrap();
        let before = resident_kilobytes();
        let flood = executor.shell("yes").timeout(Duration::from_secs(1)).run().await.unwrap();
        assert_eq!(flood.outcome, TIMED_OUT, "{:?}", flood.outcome);
        assert!(
            flood.stdout.total_bytes > 1 << 20 && flood.stdout.total_lines == flood.stdout.total_bytes / 2
        );
        let both = executor.shell("yes & yes >&2").timeout(Duration::from_secs(1)).run().await.unwrap();
        assert!(both.stdout.total_bytes > 1 << 20 && both.stderr.total_bytes > 1 << 20, "{both:?}");
        let line = executor.shell("head -c 200000000 /dev/zero | tr '\\0' x").run().await.unwrap();
        assert_eq!((line.stdout.total_bytes, line.stdout.total_lines), (200_000_000, 1));
        let grown = resident_kilobytes() - before;
        assert!(grown < 32 * 1024, "{grown} KiB more");
    });
}

// contract: S21, S22
#[test]
fn x11_to_x16_odd_output_is_counted_and_cut_between_characters() {
    both(|| async {
        let fixture = Fixture::new();
        let mode = OutputMode {
            keep: Keep::HeadAndTail,
            max_chars: 64 << 10,
            max_lines: None,
            ..OutputMode::default()
        };
        let executor = fixture.builder(Sandbox::read_only()).output(mode).build().unwrap();
        let run = async |command: &str| executor.shell(command).run().await.unwrap();

        assert_eq!(run("seq 30000").await.stdout.total_lines, 30_000);
        let many = run("seq 2000000").await.stdout;
        assert_eq!(many.total_lines, 2_000_000);
        assert!(
            many.truncated && many.head.starts_with("1\n2\n") && many.tail.ends_with("1999999\n2000000\n"),
            "{many:?}"
        );
        assert!(many.head.chars().count() + many.tail.chars().count() <= 64 << 10);
        let invalid = run("printf 'a\\377\\376b'").await.stdout;
        assert!(
            invalid.head.starts_with('a') && invalid.head.contains('\u{fffd}') && invalid.head.ends_with('b')
        );
        assert_eq!(run("printf 'a\\0b'").await.stdout.head, "a\0b");
        let wide = run("for i in $(seq 40000); do printf '\u{65e5}\u{672c}'; done").await.stdout;
        assert!(wide.truncated && wide.cut == Some(CutBy::Characters(64 << 10)), "{:?}", wide.cut);
        assert!(!wide.head.contains('\u{fffd}') && !wide.tail.contains('\u{fffd}'));
    });
}

/// The same things work in a project of any name.
#[test]
fn x17_to_x22_odd_project_paths() {
    both(|| async {
        let fixture = Fixture::new();
        let names: [&[u8]; 8] = [
            b"sp ace dir",
            b"new\nline",
            "uni-\u{e9}\u{65e5}\u{672c}-\u{1f642}".as_bytes(),
            b"-dash --bind",
            b"quote'\"$(touch pwn)`x`;*?[a]\\",
            b"not-utf8-\xff\xfe",
            b"--",
            b"tab\tand\\040octal",
        ];
        for name in names {
            let project = fixture.base.join(OsStr::from_bytes(name));
            fs::create_dir_all(project.join(".vscode")).unwrap();
            fs::create_dir(project.join("sub")).unwrap();
            let executor = Executor::builder(&project).sandbox(Sandbox::workspace_write()).build().unwrap();
            let command =
                "touch made && pwd -P && ! touch ../beside && ! touch .vscode/x 2>/dev/null; echo rc=$?";
            let finished = executor.shell(command).run().await.unwrap();
            worked(&finished, &["rc=0"]);
            assert!(
                project.join("made").exists() && !fixture.base.join("beside").exists(),
                "{}",
                shown(&finished)
            );
            assert!(!project.join(".vscode/x").exists());
            let argv = executor.argv(["sh", "-c", "touch \"$1\"", "sh"]).run().await.unwrap();
            assert_eq!(argv.outcome, Outcome::Exited(1));
            let below = executor
                .argv([OsString::from("touch"), "made-too".into()])
                .workdir("sub")
                .run()
                .await
                .unwrap();
            worked(&below, &[]);
            assert!(project.join("sub/made-too").exists());
        }
    });
}

#[test]
fn x23_a_project_under_a_symlink() {
    both(|| async {
        let fixture = Fixture::new();
        let link = fixture.base.join("link");
        std::os::unix::fs::symlink(&fixture.project, &link).unwrap();
        for reads in [cmdgate_executor::Reads::Everything, cmdgate_executor::Reads::ProjectAndSystem] {
            let sandbox = Sandbox { reads, ..Sandbox::workspace_write() };
            let executor = Executor::builder(&link).sandbox(sandbox).build().unwrap();
            assert_eq!(executor.root(), fixture.project);
            let command = format!("cat {}/f; echo two > {}/g", link.display(), link.display());
            let finished = executor.shell(command).workdir(&link).run().await.unwrap();
            worked(&finished, &["one"]);
            assert_eq!(fs::read_to_string(fixture.project.join("g")).unwrap(), "two\n");
        }
    });
}

#[test]
fn x24_a_project_below_tmp() {
    both(|| async {
        let project = tempfile::tempdir().unwrap();
        let beside = tempfile::tempdir().unwrap();
        let executor = Executor::builder(project.path()).sandbox(Sandbox::workspace_write()).build().unwrap();
        let command = format!(
            "echo x > made; echo y > /tmp/private; ls {} && echo SEEN; touch {}/z; ls /tmp",
            beside.path().display(),
            beside.path().display()
        );
        let finished = executor.shell(command).run().await.unwrap();
        assert!(project.path().join("made").exists(), "{}", shown(&finished));
        assert!(!Path::new("/tmp/private").exists() && !beside.path().join("z").exists());
        assert!(!stdout(&finished).contains("SEEN"), "{}", shown(&finished));
        let read_only =
            executor.shell("touch no; cat made").sandbox(Sandbox::read_only()).run().await.unwrap();
        worked(&read_only, &["x"]);
        assert!(!project.path().join("no").exists());
    });
}

// contract: S26
#[test]
fn x25_the_home_as_project_keeps_its_secrets_and_rc_files() {
    both(|| async {
        let mut fixture = Fixture::new();
        fs::write(fixture.home.join(".bashrc"), "rc\n").unwrap();
        fixture.settle();
        let executor = Executor::builder(&fixture.home)
            .homes(vec![fixture.home.clone()])
            .sandbox(Sandbox::workspace_write())
            .build()
            .unwrap();
        let command = "cat .ssh/id_test .npmrc .netrc; echo x >> .bashrc; echo added >> .gitconfig; echo x > .profile; \
                       echo x > .ssh/authorized_keys; mv .ssh s; mv .config c; mkdir .config; cat c/gh/hosts.yml; touch fine";
        let finished = executor.shell(command).run().await.unwrap();
        assert!(!all_text(&finished).contains(common::SECRET), "{}", shown(&finished));
        assert_eq!(fs::read_to_string(fixture.home.join(".bashrc")).unwrap(), "rc\n");
        assert!(!fs::read_to_string(fixture.home.join(".gitconfig")).unwrap().contains("added"));
        assert!(
            !fixture.home.join(".profile").exists() && !fixture.home.join(".ssh/authorized_keys").exists()
        );
        assert!(fixture.home.join("fine").exists() && fixture.home.join(".ssh/id_test").exists());
    });
}

/// Puts a stand-in for bubblewrap where nobody else could have put one.
fn stand_in(fixture: &Fixture, script: &str) -> PathBuf {
    let path = fixture.base.join("bwrap");
    fs::write(&path, format!("#!/bin/bash\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

async fn refused(fixture: &Fixture, bwrap: PathBuf, stage: Stage, part: &str) {
    let executor = fixture.builder(Sandbox::workspace_write()).bwrap(bwrap).build().unwrap();
    let error = executor.shell("touch ran; touch $OUT/ran").run().await.unwrap_err();
    let ExecError::SandboxUnavailable { stage: failed, text, remedy } = &error else { panic!("{error}") };
    assert_eq!(*failed, stage, "{error}");
    assert!(text.contains(part), "{text:?} lacks {part:?}");
    assert!(!remedy.is_empty());
    assert!(
        !fixture.project.join("ran").exists() && !fixture.outside.join("ran").exists(),
        "it ran all the same"
    );
}

// contract: S25
#[test]
fn x26_x30_x31_a_sandbox_that_is_missing_too_old_or_none_at_all_runs_nothing() {
    both(|| async {
        let fixture = Fixture::new();
        let missing = fixture.base.join("no-such-bwrap");
        refused(&fixture, missing, Stage::Find, "No such file").await;
        let broken = stand_in(&fixture, "exit 3");
        refused(&fixture, broken, Stage::Start, "exit status: 3").await;
        let old = stand_in(
            &fixture,
            "case $1 in --version) echo bubblewrap 0.3.1;; --help) echo --ro-bind --proc;; *) exit 1;; esac",
        );
        refused(&fixture, old, Stage::SetUp, "0.3.1 does not know --add-seccomp-fd").await;
        let unable = stand_in(
            &fixture,
            "case $1 in --version|--help) exec /usr/bin/bwrap \"$@\";; *) echo 'bwrap: No permissions to create new namespace' >&2; exit 1;; esac",
        );
        refused(&fixture, unable, Stage::SetUp, "No permissions to create new namespace").await;
        let pass_through = stand_in(
            &fixture,
            "case $1 in --version|--help) exec /usr/bin/bwrap \"$@\";; esac; while [ \"$1\" != -- ]; do shift; done; shift; exec \"$@\"",
        );
        refused(&fixture, pass_through, Stage::SetUp, "").await;
        // One that even forges the report is caught by what the canary sees of itself.
        let forger = stand_in(
            &fixture,
            "case $1 in --version|--help) exec /usr/bin/bwrap \"$@\";; esac\n\
             while [ \"$1\" != -- ]; do [ \"$1\" = --json-status-fd ] && fd=$2; shift; done; shift\n\
             \"$@\"; eval \"echo '{ \\\"exit-code\\\": 0 }' >&$fd\"",
        );
        refused(&fixture, forger, Stage::Canary, "").await;
        fs::set_permissions(fixture.base.join("bwrap"), fs::Permissions::from_mode(0o777)).unwrap();
        refused(&fixture, fixture.base.join("bwrap"), Stage::Find, "can be written by others").await;
        fs::copy("/usr/bin/bwrap", fixture.project.join("bwrap")).unwrap();
        refused(&fixture, fixture.project.join("bwrap"), Stage::Find, "which commands may write").await;
    });
}

// contract: S25
#[test]
fn a_set_user_id_bubblewrap_reaches_the_reduced_rung_or_nothing() {
    both(|| async {
        let fixture = Fixture::new();
        // Owned by whom the test runs as: the set-user-id bit then gains nothing, but is seen.
        let copy = fixture.base.join("bwrap");
        fs::copy("/usr/bin/bwrap", &copy).unwrap();
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o4755)).unwrap();
        let builder = || fixture.builder(Sandbox::workspace_write()).bwrap(&copy);
        let finished =
            builder().build().unwrap().shell("unshare -U true || echo refused").run().await.unwrap();
        worked(&finished, &["refused"]);
        assert_eq!(finished.enforced.rung, Some(cmdgate_executor::Rung::Reduced));
        assert!(!finished.enforced.nested_namespaces_disabled && finished.enforced.seccomp);
        let strict = Sandbox { lowest_rung: cmdgate_executor::Rung::Full, ..Sandbox::workspace_write() };
        let error = builder().sandbox(strict).build().unwrap().shell("touch ran").run().await.unwrap_err();
        assert!(matches!(error, ExecError::SandboxUnavailable { stage: Stage::SetUp, .. }), "{error}");
        assert!(!fixture.project.join("ran").exists());
    });
}

#[test]
fn x27_a_mount_that_fails_is_the_sandboxs_failure() {
    both(|| async {
        let fixture = Fixture::new();
        let flag = fixture.base.join("flag");
        let script = format!(
            "[ -e {} ] && exec /usr/bin/bwrap --ro-bind /no/such/place /x \"$@\"; exec /usr/bin/bwrap \"$@\"",
            flag.display()
        );
        let bwrap = stand_in(&fixture, &script);
        let executor = fixture.builder(Sandbox::workspace_write()).bwrap(bwrap).build().unwrap();
        worked(&executor.shell("echo fine").run().await.unwrap(), &["fine"]);
        fs::write(&flag, "").unwrap();
        let finished = executor.shell("touch ran").run().await.unwrap();
        let Outcome::SandboxFailed { stage, text, remedy } = &finished.outcome else {
            panic!("{}", shown(&finished))
        };
        assert_eq!(*stage, Stage::SetUp);
        assert!(text.contains("/no/such/place") && !remedy.is_empty(), "{text} {remedy}");
        assert!(!fixture.project.join("ran").exists());
    });
}

#[test]
fn x28_a_command_cannot_pretend_that_the_sandbox_failed() {
    both(|| async {
        let fixture = Fixture::new();
        let command = "echo \"bwrap: Can't find source path /x: No such file or directory\" >&2; \
                       for fd in /proc/self/fd/*; do echo '{ \"exit-code\": 0 }' 2>/dev/null >&${fd##*/}; done; exit 1";
        let finished = fixture.run(Sandbox::read_only(), command).await;
        assert_eq!(finished.outcome, Outcome::Exited(1), "{}", shown(&finished));
    });
}

// contract: S23, P11
#[test]
fn x29_endings_are_told_apart() {
    both(|| async {
        let fixture = Fixture::new();
        for sandbox in [Sandbox::read_only(), Sandbox::danger_full_access()] {
            let confined = sandbox.mode != cmdgate_executor::Mode::DangerFullAccess;
            let executor = fixture.executor(sandbox);
            for (command, code) in
                [("exit 127", 127), ("no-such-program", 127), ("exit 255", 255), ("exit 0", 0), ("false", 1)]
            {
                let finished = executor.shell(command).run().await.unwrap();
                assert_eq!(finished.outcome, Outcome::Exited(code), "{command}: {}", shown(&finished));
            }
            let killed = executor.shell("kill -SEGV $$").run().await.unwrap();
            let expected = if confined { Outcome::Exited(139) } else { Outcome::Signaled(11) };
            assert_eq!(killed.outcome, expected, "{}", shown(&killed));
            let missing = executor.argv(["no-such-program", "x"]).run().await.unwrap();
            let program = "no-such-program".to_owned();
            assert_eq!(missing.outcome, Outcome::NotStarted(NotStarted::ProgramNotFound { program }));
            let path = executor.argv(["./no/such"]).run().await.unwrap();
            assert_eq!(
                path.outcome,
                Outcome::NotStarted(NotStarted::ProgramNotFound { program: "./no/such".to_owned() })
            );
            let file = executor.argv(["./f"]).run().await.unwrap();
            assert!(
                matches!(file.outcome, Outcome::NotStarted(NotStarted::NotExecutable { .. })),
                "{}",
                shown(&file)
            );
            let directory = executor.argv(["/usr"]).run().await.unwrap();
            assert!(
                matches!(directory.outcome, Outcome::NotStarted(NotStarted::NotExecutable { .. })),
                "{}",
                shown(&directory)
            );
            worked(
                &executor.argv(["printf", "%s|", "a;b", "$(id)", "*", ""]).run().await.unwrap(),
                &["a;b|$(id)|*||"],
            );
        }
    });
}

/// The same test again, as the executor that is going to be killed.
const HOLD: &str = "CMDGATE_TEST_HOLD";

#[test]
fn x32_nothing_survives_the_executor() {
    both(|| async {
        if let Some(mark) = std::env::var_os(HOLD) {
            let project = tempfile::tempdir().unwrap();
            let executor =
                Executor::builder(project.path()).sandbox(Sandbox::workspace_write()).build().unwrap();
            let mut command = OsString::from("setsid sh -c 'sleep ");
            command.push(&mark);
            command.push("' & sleep ");
            command.push(&mark);
            let background = executor.shell(&command).start().await.unwrap();
            executor.shell(&command).run().await.unwrap();
            drop(background);
            return;
        }
        let mark = mark();
        let mut holder = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "x32_nothing_survives_the_executor", "--nocapture"])
            .env(HOLD, &mark)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let sleepers = || processes_with(&format!("sleep\0{mark}")).len();
        assert!(eventually(|| sleepers() >= 4).await, "only {} came up", sleepers());
        holder.kill().unwrap();
        holder.wait().unwrap();
        assert!(eventually(|| sleepers() == 0).await, "{} survived", sleepers());
    });
}

#[test]
fn x33_the_thread_that_starts_a_command_may_end() {
    both(|| async {
        let fixture = Fixture::new();
        let executor = fixture.executor(Sandbox::workspace_write());
        let handle = tokio::runtime::Handle::current();
        let mut run = Box::pin(executor.shell("echo $$ > started; sleep 2; echo alive").run());
        let started = fixture.project.join("started");
        let run = std::thread::spawn(move || {
            handle.block_on(async {
                tokio::select! {
                    finished = &mut run => panic!("ended early: {finished:?}"),
                    up = eventually(|| started.exists()) => assert!(up),
                }
            });
            run
        })
        .join()
        .unwrap();
        // The thread is gone; what it started is not.
        worked(&run.await.unwrap(), &["alive"]);
    });
}

#[test]
fn x34_twenty_four_at_once() {
    both(|| async {
        let fixture = Fixture::new();
        let executor = fixture.executor(Sandbox::workspace_write());
        let runs: Vec<_> = (0..24)
            .map(|number| {
                tokio::spawn(
                    executor.shell(format!("echo {number}; echo {number} > n{number}; echo /tmp/*")).run(),
                )
            })
            .collect();
        for (number, run) in runs.into_iter().enumerate() {
            let finished = run.await.unwrap().unwrap();
            worked(&finished, &[&format!("{number}\n")]);
            assert!(fixture.project.join(format!("n{number}")).exists());
        }
    });
}

// contract: S18, P1
#[test]
fn x35_x36_long_commands_run_and_nul_bytes_do_not() {
    both(|| async {
        let fixture = Fixture::new();
        for sandbox in [Sandbox::read_only(), Sandbox::danger_full_access()] {
            let executor = fixture.executor(sandbox);
            let long = format!(": {}; echo ${{#BASH_SOURCE}}; cat; echo long-ok", "x".repeat(300_000));
            worked(&executor.shell(&long).run().await.unwrap(), &["long-ok"]);
            let nul = executor.shell("echo a\0b").run().await.unwrap_err();
            assert!(matches!(nul, ExecError::NulByte { .. }), "{nul}");
            let nul = executor.argv(["echo", "a\0b"]).run().await.unwrap_err();
            assert!(matches!(nul, ExecError::NulByte { .. }), "{nul}");
            for empty in ["", "  \n\t "] {
                let error = executor.shell(empty).run().await.unwrap_err();
                assert!(matches!(error, ExecError::EmptyCommand), "{error}");
            }
            let error = executor.argv(Vec::<String>::new()).run().await.unwrap_err();
            assert!(matches!(error, ExecError::EmptyCommand), "{error}");
            let huge = executor.argv(["true", &"x".repeat(3_000_000)]).run().await.unwrap();
            assert!(
                matches!(huge.outcome, Outcome::NotStarted(NotStarted::System { .. })),
                "{}",
                shown(&huge)
            );
        }
    });
}

#[test]
fn x37_no_zombies_are_left() {
    both(|| async {
        let fixture = Fixture::new();
        cmdgate_executor::adopt_orphans().unwrap();
        for sandbox in [Sandbox::workspace_write(), Sandbox::danger_full_access()] {
            for command in
                ["true", "sleep 0 & (env -i setsid sleep 0 &) ; sleep 0.1; exit 1", "(sleep 3 &); exit"]
            {
                for group in [false, true] {
                    let limits = cmdgate_executor::Limits { group, ..cmdgate_executor::Limits::default() };
                    fixture.executor(sandbox.clone()).shell(command).limits(limits).run().await.unwrap();
                }
            }
            hurried(&fixture, sandbox, "sleep 60").await;
        }
        let own = std::process::id().to_string();
        let zombies = || {
            fs::read_dir("/proc")
                .unwrap()
                .flatten()
                .filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok())
                .filter(|stat| {
                    stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with(&format!("Z {own} ")))
                })
                .collect::<Vec<String>>()
        };
        assert!(eventually(|| zombies().is_empty()).await, "{:?}", zombies());
    });
}

#[test]
fn x38_memory_file_systems_are_bounded() {
    both(|| async {
        let fixture = Fixture::new();
        let sandbox = Sandbox { tmp: PrivateTmp::Memory(16 << 20), ..Sandbox::workspace_write() };
        let limits =
            cmdgate_executor::Limits { shared_memory: 16 << 20, ..cmdgate_executor::Limits::default() };
        let command = "for place in /tmp /dev/shm; do head -c 64M /dev/zero > $place/fill; stat -c '%n %s' $place/fill; done; \
                       head -c 64M /dev/zero > /dev/fill || echo dev-sealed; df --output=target,size -B1 /run /var/tmp";
        let finished = fixture.executor(sandbox).shell(command).limits(limits).run().await.unwrap();
        worked(
            &finished,
            &["/tmp/fill 16777216", "/dev/shm/fill 16777216", "dev-sealed", "67108864", "1073741824"],
        );
    });
}

#[test]
fn x40_x41_nesting_fails_cleanly_and_a_removed_directory_is_survived() {
    both(|| async {
        let mut fixture = Fixture::new();
        let finished = fixture.run(Sandbox::workspace_write(), "bwrap --ro-bind / / true; echo rc=$?").await;
        assert!(!stdout(&finished).contains("rc=0"), "{}", shown(&finished));
        let finished = fixture
            .run(Sandbox::workspace_write(), "mkdir d && cd d && rmdir ../d && pwd; ls; echo end")
            .await;
        worked(&finished, &["end"]);
        fixture.unharmed(&finished);
    });
}

#[test]
fn x42_a_command_that_kills_all_it_can() {
    both(|| async {
        let mut fixture = Fixture::new();
        for command in ["kill -9 -1; kill -9 1; kill -TERM 1; exit 4", "kill -9 1; kill -9 $PPID; kill -9 $$"]
        {
            let finished = fixture.run(Sandbox::workspace_write(), command).await;
            assert!(
                matches!(finished.outcome, Outcome::Exited(_) | Outcome::Signaled(_)),
                "{}",
                shown(&finished)
            );
            fixture.unharmed(&finished);
        }
    });
}

#[test]
fn x43_stopping_the_first_process_is_bounded_by_the_timeout() {
    both(|| async {
        let fixture = Fixture::new();
        let finished = hurried(&fixture, Sandbox::workspace_write(), "$SC holdpid1").await;
        assert_eq!(finished.outcome, TIMED_OUT, "{}", shown(&finished));
        assert!(eventually(|| processes_with("holdpid1").is_empty()).await);
    });
}

#[test]
fn x44_closing_the_output_is_not_the_end() {
    both(|| async {
        let fixture = Fixture::new();
        for sandbox in [Sandbox::workspace_write(), Sandbox::danger_full_access()] {
            let started = Instant::now();
            let finished = fixture.run(sandbox, "exec >&- 2>&-; sleep 1; touch worked-on; exit 5").await;
            assert_eq!(finished.outcome, Outcome::Exited(5));
            assert!(
                started.elapsed() >= Duration::from_secs(1) && fixture.project.join("worked-on").exists()
            );
            fs::remove_file(fixture.project.join("worked-on")).unwrap();
        }
    });
}

// contract: S23
#[test]
fn cancelling_and_dropping_kill_the_tree() {
    both(|| async {
        let fixture = Fixture::new();
        for sandbox in [Sandbox::workspace_write(), Sandbox::danger_full_access()] {
            let executor = fixture.executor(sandbox);
            let mark = mark();
            let command = format!("trap '' TERM; setsid sh -c 'sleep {mark}' & echo before; sleep {mark}");
            let sleepers = || processes_with(&format!("sleep\0{mark}")).len();

            let token = CancellationToken::new();
            let run = tokio::spawn(executor.shell(&command).cancel(token.clone()).run());
            assert!(eventually(|| sleepers() >= 2).await);
            token.cancel();
            let finished = run.await.unwrap().unwrap();
            assert_eq!(
                finished.outcome,
                Outcome::Cancelled { kill_incomplete: false },
                "{}",
                shown(&finished)
            );
            assert!(all_text(&finished).contains("before"), "{}", shown(&finished));
            gone(&mark, &finished);

            let run = tokio::spawn(executor.shell(&command).run());
            assert!(eventually(|| sleepers() >= 2).await);
            run.abort();
            assert!(run.await.unwrap_err().is_cancelled());
            assert!(eventually(|| sleepers() == 0).await, "{} survived the drop", sleepers());

            // Dropped at every moment of starting, nothing ever gets away.
            for microseconds in (0..40).map(|step| step * 500) {
                let run = executor.shell(&command).run();
                let _ = tokio::time::timeout(Duration::from_micros(microseconds), run).await;
            }
            assert!(eventually(|| processes_with(&mark).is_empty()).await, "{:?}", processes_with(&mark));
        }
    });
}

/// A process that cannot be killed is waited for only so long, and the outcome says so.
#[test]
fn a_frozen_process_is_reported_as_not_killed() {
    both(|| async {
        let freezer = Path::new("/sys/fs/cgroup/freezer");
        let group = freezer.join(format!("cmdgate-test-{}", unique()));
        if fs::create_dir(&group).is_err() {
            // Only root can freeze a process so that even SIGKILL waits, and only where the old freezer is mounted.
            assert!(!common::is_root() || !freezer.join("tasks").exists());
            return;
        }
        let fixture = Fixture::new();
        let mark = mark();
        let command = format!("sleep {mark}");
        let executor = fixture.executor(Sandbox::workspace_write());
        let run = tokio::spawn(executor.shell(&command).timeout(Duration::from_secs(3)).run());
        let sleeper = || {
            processes_with(&format!("{command}\0"))
                .into_iter()
                .chain(processes_with(&format!("sleep\0{mark}")))
                .max()
        };
        assert!(eventually(|| !processes_with(&format!("sleep\0{mark}")).is_empty()).await);
        fs::write(group.join("cgroup.procs"), sleeper().unwrap().to_string()).unwrap();
        fs::write(group.join("freezer.state"), "FROZEN").unwrap();
        let finished = run.await.unwrap().unwrap();
        fs::write(group.join("freezer.state"), "THAWED").unwrap();
        assert!(eventually(|| fs::remove_dir(&group).is_ok()).await);
        assert_eq!(finished.outcome, Outcome::TimedOut { kill_incomplete: true }, "{}", shown(&finished));
        assert!(eventually(|| processes_with(&mark).is_empty()).await);
    });
}
