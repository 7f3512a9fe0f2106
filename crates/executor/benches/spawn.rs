//! What the executor costs beside what it builds on, all in one run and taking turns, so that a loaded machine slows
//! all of them alike.
//!
//! `cargo bench -p cmdgate-executor --bench spawn` times each by itself; with `-- --paired` they take turns, and medians
//! and ratios are printed. The executor should not take more than 1.3 times the bare bubblewrap line, nor, without a
//! sandbox, 1.2 times a plain start.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark that cannot start has nothing to say"
)]

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use cmdgate_executor::plan::Plan;
use cmdgate_executor::sandbox::bwrap::{Descriptors, Features, arguments};
use cmdgate_executor::sandbox::seccomp;
use cmdgate_executor::{Executor, Outcome, Rung, Sandbox};
use command_fds::{CommandFdExt as _, FdMapping};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

struct Set {
    directory: TempDir,
    runtime: Runtime,
    executor: Executor,
    plan: Mutex<Plan>,
}

fn set() -> &'static Set {
    static SET: OnceLock<Set> = OnceLock::new();
    SET.get_or_init(|| {
        // Not below /tmp, which a sandbox does not see.
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        std::fs::create_dir(directory.path().join("project")).unwrap();
        let project = directory.path().join("project");
        let executor = Executor::builder(&project).sandbox(Sandbox::workspace_write()).build().unwrap();
        let plan = executor.argv(["true"]).plan().unwrap();
        for (name, filter) in ["refuse", "absent"].iter().zip(seccomp::filters(true).unwrap()) {
            std::fs::write(directory.path().join(name), filter).unwrap();
        }
        // The preflight is not part of what is measured.
        runtime.block_on(executor.argv(["true"]).run()).unwrap();
        Set { directory, runtime, executor, plan: Mutex::new(plan) }
    })
}

/// The program alone.
fn bare(program: &str) {
    let status =
        Command::new(program).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(status.unwrap().success());
}

/// Plans anew: a socket of another program may have come or gone.
fn plan_again() {
    let Set { executor, plan, .. } = set();
    *plan.lock().unwrap() = executor.argv(["true"]).plan().unwrap();
}

/// bubblewrap with exactly the line that the executor builds, started by std and waited for.
fn bare_line() {
    let Set { directory, plan, .. } = set();
    let plan = plan.lock().unwrap();
    let root = rustix::process::geteuid().is_root();
    let features = Features { rung: Rung::Full, size: true, root };
    let descriptors = Descriptors { seccomp: [10, 11], status: 12, block: 13, terminal: false };
    let open = |path: &Path| OwnedFd::from(File::open(path).unwrap());
    let map = |parent_fd, child_fd| FdMapping { parent_fd, child_fd };
    // Reading the end of an empty file lets the block go at once.
    let null = || open(Path::new("/dev/null"));
    let status = OwnedFd::from(File::options().write(true).open("/dev/null").unwrap());
    let status = Command::new("/usr/bin/bwrap")
        .args(arguments(&plan, features, descriptors, &["true".into()]))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .fd_mappings(vec![
            map(open(&directory.path().join("refuse")), 10),
            map(open(&directory.path().join("absent")), 11),
            map(status, 12),
            map(null(), 13),
        ])
        .unwrap()
        .status();
    assert!(status.unwrap().success());
}

fn executor_run(sandbox: Sandbox) {
    let Set { runtime, executor, .. } = set();
    let finished = runtime.block_on(executor.argv(["true"]).sandbox(sandbox).run()).unwrap();
    assert_eq!(finished.outcome, Outcome::Exited(0), "{finished:?}");
}

/// The usual way to start a program from async code and take its output.
fn tokio_output() {
    let Set { runtime, directory, .. } = set();
    let output = runtime.block_on(async {
        tokio::process::Command::new("true").current_dir(directory.path()).stdin(Stdio::null()).output().await
    });
    assert!(output.unwrap().status.success());
}

#[divan::bench]
fn a_bare_true() {
    bare("true");
}

#[divan::bench]
fn b_bare_bwrap_line() {
    bare_line();
}

#[divan::bench]
fn c_sandboxed_run() {
    executor_run(Sandbox::workspace_write());
}

#[divan::bench]
fn d_plain_tokio_output() {
    tokio_output();
}

#[divan::bench]
fn e_danger_full_access() {
    executor_run(Sandbox::danger_full_access());
}

/// The tenth and the middle of a hundred: what a quiet machine gives, and what this one gave.
fn low_and_median(mut times: Vec<Duration>) -> [Duration; 2] {
    times.sort();
    [times.len() / 10, times.len() / 2].map(|index| times.get(index).copied().unwrap_or_default())
}

type Action = (&'static str, fn());

/// Takes turns, and prints the times of each action beside those of the one that it is compared with.
fn take_turns(title: &str, rounds: usize, actions: &[(Action, usize)]) {
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); actions.len()];
    for _ in 0..rounds {
        for (((_, action), _), times) in actions.iter().zip(&mut times) {
            plan_again();
            let start = Instant::now();
            action();
            times.push(start.elapsed());
        }
    }
    let times: Vec<[Duration; 2]> = times.into_iter().map(low_and_median).collect();
    println!("{title:<30} {:>17}   {:>17}", "10th percentile", "median");
    for (((name, _), beside), own) in actions.iter().zip(&times) {
        let [low, median] = [0, 1].map(|index: usize| {
            let (Some(time), Some(beside)) =
                (own.get(index), times.get(*beside).and_then(|row| row.get(index)))
            else {
                return (0.0, 0.0);
            };
            (time.as_secs_f64() * 1000.0, time.as_secs_f64() / beside.as_secs_f64())
        });
        println!("{name:<30} {:>7.2} ms ({:.2})   {:>7.2} ms ({:.2})", low.0, low.1, median.0, median.1);
    }
}

/// Takes turns and prints medians.
fn paired() {
    let plain: Action = ("tokio::process output()", tokio_output);
    let danger: Action = ("executor, danger_full_access", || executor_run(Sandbox::danger_full_access()));
    take_turns("without a sandbox", 400, &[(("bare true", || bare("true")), 0), (plain, 1), (danger, 1)]);
    // What fork(2) would have to copy.
    let ballast = vec![1_u8; 200 << 20];
    take_turns("in a process of 200 MiB", 200, &[(plain, 0), (danger, 0)]);
    drop(std::hint::black_box(ballast));
    let bwrap: [(Action, usize); 3] = [
        (("bwrap, the line it builds", bare_line), 0),
        (("executor, workspace_write", || executor_run(Sandbox::workspace_write())), 0),
        (("executor, read_only", || executor_run(Sandbox::read_only())), 0),
    ];
    take_turns("in a sandbox", 200, &bwrap);
    // bubblewrap's first processes are orphans. The executor adopts orphans, and those of `bare_line` are not its own.
    take_turns("with 200 foreign orphans", 200, &[(plain, 0), (danger, 0)]);
}

fn main() {
    if std::env::args().any(|argument| argument == "--paired") {
        paired();
    } else {
        divan::main();
    }
}
