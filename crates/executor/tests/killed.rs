//! What is left of commands when the program that runs them is ended by SIGKILL, at any moment: nothing.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests fail as tests do, and tell their parent"
)]

mod common;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use cmdgate_executor::{DomainRules, Executor, Network, Sandbox, TerminalSize};
use common::{both, eventually, processes_with, unique};

/// Where the same test, as the program that is going to be killed, puts its project.
const PROJECT: &str = "CMDGATE_TEST_KILLED_PROJECT";
/// How many programs are killed; `CMDGATE_TEST_KILLS` asks for more.
const KILLS: usize = 40;
/// How many commands each of them is starting meanwhile, one after the other.
const STARTS: u32 = 6;
/// Within how many microseconds of the first start a program is killed: that is what the starts need.
const WITHIN: u64 = 20_000;

/// The program that is going to be killed. It says when it is ready, and starts once it is told to.
async fn starts_and_starts(project: &Path, sandbox: Sandbox, terminal: bool, command: &str) {
    let executor = Executor::builder(project).sandbox(sandbox).build().unwrap();
    executor.shell("true").run().await.unwrap();
    println!("ready");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    for number in 0..STARTS {
        let job = executor.shell(command.replace("NUMBER", &number.to_string()));
        tokio::spawn(if terminal { job.terminal(TerminalSize::default()) } else { job }.run());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    tokio::time::sleep(Duration::from_mins(10)).await;
}

/// A test of this file, as the program that is going to be killed.
fn program(test: &str, project: &Path) -> Command {
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", test, "--nocapture"]).env(PROJECT, project);
    program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    program
}

/// Kills program after program, and says what is left each time.
async fn kill_and_count(test: &str, project: &Path, mark: &str) -> Vec<String> {
    let kills = std::env::var("CMDGATE_TEST_KILLS").map_or(KILLS, |text| text.parse().unwrap());
    let mut left = Vec::new();
    for round in 0..kills {
        let mut program = program(test, project).env("CMDGATE_TEST_MARK", mark).spawn().unwrap();
        let mut lines = BufReader::new(program.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("ready")), "the program did not come up");
        program.stdin.take().unwrap().write_all(b"\n").unwrap();
        // Every delay once, in an order that has nothing to do with how long the machine takes.
        let delay = WITHIN * (round as u64 * 7919 % kills as u64) / kills as u64;
        std::thread::sleep(Duration::from_micros(delay));
        program.kill().unwrap();
        program.wait().unwrap();
        let text = format!("{mark}-");
        if !eventually(|| processes_with(&text).is_empty()).await {
            let processes = processes_with(&text);
            left.push(format!("killed after {delay} us: {processes:?}"));
            for process in processes {
                let pid = rustix::process::Pid::from_raw(process.cast_signed()).unwrap();
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }
    left
}

fn nothing_survives(test: &'static str, sandbox: Sandbox, terminal: bool, command: &'static str) {
    both(|| async {
        let mark = std::env::var("CMDGATE_TEST_MARK").unwrap_or_else(|_| format!("killed{}", unique()));
        let command = command.replace("MARK", &format!("{mark}-NUMBER"));
        if let Some(project) = std::env::var_os(PROJECT) {
            return starts_and_starts(&PathBuf::from(project), sandbox, terminal, &command).await;
        }
        let fixture = common::Fixture::new();
        let left = kill_and_count(test, &fixture.project, &mark).await;
        assert!(left.is_empty(), "{}", left.join("\n"));
        // Longer than the commands take that nobody ended.
        tokio::time::sleep(Duration::from_millis(600)).await;
        let late: Vec<_> = fs::read_dir(&fixture.project)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .filter(|name| name.to_string_lossy().starts_with("late"))
            .collect();
        assert!(late.is_empty(), "went on to the end: {late:?}");
    });
}

/// The process that ends what a killed program leaves goes with the program, also with one that ends by itself, and is
/// then out of the process table.
#[test]
fn what_stands_by_goes_too() {
    both(|| async {
        if let Some(project) = std::env::var_os(PROJECT) {
            let executor = Executor::builder(project).sandbox(Sandbox::read_only()).build().unwrap();
            let guards = || {
                let standing = |pid: &u32| {
                    fs::read(format!("/proc/{pid}/cmdline"))
                        .is_ok_and(|line| String::from_utf8_lossy(&line).contains("cmdgate-guard"))
                };
                let own = Some(std::process::id());
                let guards = processes_with("cmdgate-guard").into_iter().filter(standing);
                guards.filter(|&pid| parent(pid) == own).collect::<Vec<u32>>()
            };
            let run = async || {
                for sandbox in [Sandbox::read_only(), Sandbox::danger_full_access(), Sandbox::read_only()] {
                    executor.shell("true").sandbox(sandbox).run().await.unwrap();
                }
            };
            run().await;
            // One that somebody kills has a successor before anything else is started.
            let first = guards();
            let [guard] = first.as_slice() else { panic!("{first:?}") };
            let guard = rustix::process::Pid::from_raw(guard.cast_signed()).unwrap();
            rustix::process::kill_process(guard, rustix::process::Signal::KILL).unwrap();
            assert!(eventually(|| guards().is_empty()).await);
            run().await;
            let children = guards();
            println!("\nready {children:?}");
            std::io::stdin().read_line(&mut String::new()).unwrap();
            return;
        }
        let fixture = common::Fixture::new();
        for killed in [false, true] {
            let mut program = program("what_stands_by_goes_too", &fixture.project).spawn().unwrap();
            // Kept to the end: the program goes on to write to it.
            let mut lines = BufReader::new(program.stdout.take().unwrap()).lines().map(Result::unwrap);
            let line = lines.find(|line| line.starts_with("ready")).unwrap();
            let guard: u32 = line.trim_start_matches("ready [").trim_end_matches(']').parse().expect(&line);
            if killed {
                program.kill().unwrap();
            }
            drop(program.stdin.take());
            assert_eq!(program.wait().unwrap().success(), !killed);
            if killed {
                // Where nobody waits for orphans it stays in the process table, but ended.
                let ended = || fs::read_link(format!("/proc/{guard}/exe")).is_err();
                assert!(eventually(ended).await);
            } else {
                assert!(!Path::new(&format!("/proc/{guard}")).exists());
            }
        }
    });
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(") ").next()?.split(' ').nth(1)?.parse().ok()
}

// contract: S23
// promise: 9
#[test]
fn nothing_survives_in_a_sandbox() {
    nothing_survives(
        "nothing_survives_in_a_sandbox",
        Sandbox::workspace_write(),
        false,
        "(setsid sh -c 'sleep 0.5; echo MARK > late-MARK' &); sleep 0.5; echo > late-MARK",
    );
}

// contract: S23
// promise: 9
#[test]
fn nothing_survives_without_a_sandbox() {
    nothing_survives(
        "nothing_survives_without_a_sandbox",
        Sandbox::danger_full_access(),
        false,
        "(env -i setsid sh -c 'sleep 0.5; : MARK > late-MARK' &); sleep 0.5 | cat; echo > late-MARK",
    );
}

/// Where more is done before the command is let go, and it controls a terminal that goes with the program.
// contract: S23
// promise: 9
#[test]
fn nothing_survives_at_a_terminal_behind_a_proxy() {
    let network = Network::Domains(DomainRules::allowing(["example.com"]));
    nothing_survives(
        "nothing_survives_at_a_terminal_behind_a_proxy",
        Sandbox { network, ..Sandbox::workspace_write() },
        true,
        "trap '' HUP; (setsid sh -c 'sleep 0.5; echo MARK > late-MARK' &); sleep 0.5; echo > late-MARK",
    );
}
