//! Commands on a pseudo terminal.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(
    unsafe_code,
    reason = "what happens between fork and exec is set through an unsafe function of std"
)]

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::sync::Mutex;
use std::time::Duration;

use cmdgate_executor::output::{Capture, Captured, Keep, OutputMode, Stream, pump};
use cmdgate_executor::pty::{Pty, Terminal, TerminalSize, take_control};
use tokio::io::AsyncReadExt as _;

fn start(size: TerminalSize, program: &str, arguments: &[&str]) -> (Child, Terminal) {
    let pty = Pty::open(size).unwrap();
    let [input, output, error] = pty.streams().unwrap();
    let mut command = Command::new(program);
    command.args(arguments).env("TERM", "dumb").stdin(input).stdout(output).stderr(error);
    // SAFETY: `take_control` makes system calls only.
    unsafe { command.pre_exec(take_control) };
    let child = command.spawn().unwrap();
    // `Command` holds descriptors of the terminal's end too.
    drop(command);
    (child, pty.into_reader().unwrap())
}

async fn run(size: TerminalSize, program: &str, arguments: &[&str], mode: &OutputMode) -> Captured {
    let (mut child, mut terminal) = start(size, program, arguments);
    let capture = Mutex::new(Capture::new(mode, Stream::Stdout));
    pump(&mut terminal, &capture).await.unwrap();
    assert!(child.wait().unwrap().success());
    capture.into_inner().unwrap().finish()
}

async fn bash(script: &str) -> String {
    run(TerminalSize { rows: 33, columns: 111 }, "bash", &["--norc", "-c", script], &OutputMode::default())
        .await
        .head
}

#[tokio::test]
async fn a_program_sees_a_terminal_of_the_size_asked_for() {
    let text =
        bash("test -t 0 && test -t 1 && test -t 2 && stty size && echo err >&2 && echo to the tty >/dev/tty")
            .await;
    assert_eq!(text, "33 111\nerr\nto the tty\n");
}

#[tokio::test]
async fn job_control_works() {
    assert_eq!(bash("set -m; sleep 9 & kill %1; wait %1; echo $?").await.lines().last(), Some("143"));
}

// contract: P10
#[tokio::test]
async fn output_is_bounded_as_everywhere() {
    let mode = OutputMode { keep: Keep::HeadAndTail, max_lines: Some(4), ..OutputMode::default() };
    let captured = run(TerminalSize::default(), "seq", &["200000"], &mode).await;
    assert_eq!((captured.head.as_str(), captured.tail.as_str()), ("1\n2\n", "199999\n200000\n"));
    assert_eq!(captured.total_lines, 200_000);
}

#[tokio::test]
async fn typing_and_resizing_reach_the_program() {
    let script = "trap 'stty size' WINCH; echo ready; while :; do read -r line || break; echo got $line; done; echo end";
    let (mut child, mut terminal) = start(TerminalSize::default(), "bash", &["--norc", "-c", script]);
    let mut seen = Vec::new();
    while !seen.ends_with(b"ready\n") {
        terminal.read_buf(&mut seen).await.unwrap();
    }
    terminal.resize(TerminalSize { rows: 5, columns: 6 }).unwrap();
    terminal.type_in(b"hello\n\x04").await.unwrap();
    tokio::time::timeout(Duration::from_secs(20), terminal.read_to_end(&mut seen)).await.unwrap().unwrap();
    child.wait().unwrap();
    let text = String::from_utf8(seen).unwrap();
    assert!(text.contains("5 6\n") && text.contains("got hello\n") && text.ends_with("end\n"), "{text}");
}

#[tokio::test]
async fn dropping_the_terminal_hangs_the_program_up() {
    use std::os::unix::process::ExitStatusExt as _;
    // Under `nohup` the signal is ignored, and so it is for every child until `env` has run.
    let sleep = ["--default-signal=HUP", "sh", "-c", "echo ready; exec sleep 60"];
    let (mut child, mut terminal) = start(TerminalSize::default(), "env", &sleep);
    let mut ready = [0; 6];
    terminal.read_exact(&mut ready).await.unwrap();
    assert_eq!(&ready, b"ready\n");
    drop(terminal);
    let status = tokio::task::spawn_blocking(move || child.wait().unwrap()).await.unwrap();
    assert_eq!(status.signal(), Some(1));
}

/// With bubblewrap between: the terminal is the one thing that passes, and `--new-session` is not needed for it.
#[tokio::test]
async fn a_sandboxed_program_controls_this_terminal_and_no_other() {
    let script = "test -t 1 && stty size && echo to the tty >/dev/tty";
    let captured = run(
        TerminalSize::default(),
        "bwrap",
        &[
            "--unshare-user",
            "--unshare-pid",
            "--unshare-net",
            "--cap-drop",
            "ALL",
            "--die-with-parent",
            "--ro-bind",
            "/",
            "/",
            "--dev",
            "/dev",
            "--proc",
            "/proc",
            "--",
            "bash",
            "--norc",
            "-c",
            script,
        ],
        &OutputMode::default(),
    )
    .await;
    assert_eq!(captured.head, "24 80\nto the tty\n");
}

/// The whole way: a job with a terminal.
mod jobs {
    use cmdgate_executor::{Executor, Finished, Outcome, Sandbox};

    use super::*;

    async fn finished(sandbox: Sandbox, script: &str) -> Finished {
        let project = tempfile::tempdir().unwrap();
        let executor = Executor::builder(project.path()).sandbox(sandbox).build().unwrap();
        let job = executor.shell(script).terminal(TerminalSize { rows: 30, columns: 100 });
        job.timeout(Duration::from_secs(20)).run().await.unwrap()
    }

    fn sandboxes() -> [Sandbox; 3] {
        [Sandbox::read_only(), Sandbox::workspace_write(), Sandbox::danger_full_access()]
    }

    #[tokio::test]
    async fn a_job_has_a_terminal_of_its_own_in_every_mode() {
        for sandbox in sandboxes() {
            let script = "test -t 0 && test -t 1 && test -t 2 && stty size && echo tty >/dev/tty; echo err >&2; exit 7";
            let finished = finished(sandbox, script).await;
            assert_eq!(finished.outcome, Outcome::Exited(7));
            assert_eq!(
                (finished.stdout.head.as_str(), finished.stderr.head.as_str()),
                ("30 100\ntty\nerr\n", "")
            );
        }
    }

    #[tokio::test]
    async fn whoever_reads_finds_the_end_of_the_input() {
        for sandbox in sandboxes() {
            let finished =
                finished(sandbox, "cat; cat; read x; python3 -c 'print(repr(input()))' 2>&1 | tail -1; cat")
                    .await;
            assert_eq!(finished.stdout.head, "EOFError: EOF when reading a line\n");
        }
    }

    /// Typing into a terminal is refused even where the terminal is one's own.
    #[tokio::test]
    async fn nothing_can_be_typed_into_a_terminal_from_inside() {
        let script =
            "python3 -c 'import fcntl, termios; fcntl.ioctl(0, termios.TIOCSTI, b\"x\")' 2>&1 | tail -1";
        let finished = finished(Sandbox::read_only(), script).await;
        assert_eq!(finished.stdout.head, "PermissionError: [Errno 1] Operation not permitted\n");
    }

    // contract: S23, S28
    #[tokio::test]
    async fn a_timeout_kills_whatever_holds_the_terminal() {
        for sandbox in sandboxes() {
            let project = tempfile::tempdir().unwrap();
            let executor = Executor::builder(project.path()).sandbox(sandbox).build().unwrap();
            let script = "trap '' HUP TERM INT; setsid sleep 60 & nohup sleep 60 & echo begun; sleep 60";
            let job =
                executor.shell(script).terminal(TerminalSize::default()).timeout(Duration::from_secs(1));
            let started = std::time::Instant::now();
            let finished = job.run().await.unwrap();
            assert_eq!(finished.outcome, Outcome::TimedOut { kill_incomplete: false });
            assert!(finished.stdout.tail.contains("begun") || finished.stdout.head.contains("begun"));
            assert!(started.elapsed() < Duration::from_secs(6), "{:?}", started.elapsed());
        }
    }

    // contract: S28
    #[tokio::test]
    async fn a_command_that_leaves_something_behind_on_the_terminal_is_over_when_it_ends() {
        for sandbox in sandboxes() {
            let started = std::time::Instant::now();
            let finished = finished(sandbox, "setsid sleep 60 & disown; echo done").await;
            assert_eq!((finished.outcome, finished.stdout.head.as_str()), (Outcome::Exited(0), "done\n"));
            assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
        }
    }
}
