//! Bounds hold, or are said not to.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod common;

use std::time::Duration;

use cmdgate_executor::{ExecError, Finished, Holds, LimitKind, Limits, Outcome, Sandbox, Stage};
use common::{Fixture, both, eventually, is_root, processes_with, shown, stdout, unique, worked};

fn holds(finished: &Finished, kind: LimitKind) -> Holds {
    let status = finished.enforced.limits.iter().find(|status| status.kind == kind);
    status.unwrap_or_else(|| panic!("{kind:?} is not reported\n{}", shown(finished))).holds.clone()
}

async fn run(fixture: &Fixture, limits: Limits, command: &str) -> Finished {
    fixture
        .executor(Sandbox::workspace_write())
        .shell(command)
        .limits(limits)
        .timeout(Duration::from_secs(100))
        .run()
        .await
        .unwrap()
}

fn grouped() -> Limits {
    Limits { group: true, ..Limits::default() }
}

/// A control group that bounds processes can be made here.
async fn groups(fixture: &Fixture) -> bool {
    let limits = Limits { memory: Some(1 << 30), ..grouped() };
    holds(&run(fixture, limits, "true").await, LimitKind::Memory) == Holds::ControlGroup
}

#[test]
fn open_files_file_size_data_and_processor_time_are_bounded() {
    both(|| async {
        let fixture = Fixture::new();
        let limits = Limits {
            open_files: Some(100),
            file_size: Some(1 << 20),
            data: Some(200 << 20),
            cpu_seconds: Some(1),
            ..Limits::default()
        };
        let finished = run(&fixture, limits.clone(), "ulimit -n; ulimit -c; ulimit -Hn").await;
        worked(&finished, &["100\n0\n100"]);
        for kind in [
            LimitKind::OpenFiles,
            LimitKind::FileSize,
            LimitKind::Data,
            LimitKind::CpuSeconds,
            LimitKind::CoreFiles,
        ] {
            assert_eq!(holds(&finished, kind), Holds::ResourceLimit);
        }
        assert_eq!(holds(&finished, LimitKind::SharedMemory), Holds::Mount);

        let big =
            run(&fixture, limits.clone(), "head -c 8M /dev/zero > big; echo rc=$?; stat -c %s big").await;
        worked(&big, &["rc=153", "1048576"]);
        let data = run(&fixture, limits.clone(), "python3 -c 'x = bytearray(400 << 20)'; echo rc=$?").await;
        worked(&data, &["rc=1"]);
        let busy = run(&fixture, limits, "while :; do :; done").await;
        // SIGXCPU, or the SIGKILL that follows it.
        assert!(matches!(busy.outcome, Outcome::Exited(152 | 137)), "{}", shown(&busy));
    });
}

#[test]
fn memory_of_the_whole_tree_is_bounded_by_a_control_group_or_said_not_to_be() {
    both(|| async {
        let fixture = Fixture::new();
        let limits = Limits { memory: Some(128 << 20), ..Limits::default() };
        let finished =
            run(&fixture, limits.clone(), "python3 -c 'x = bytearray(512 << 20); print(len(x))'; echo rc=$?")
                .await;
        match holds(&finished, LimitKind::Memory) {
            Holds::ControlGroup => assert!(
                stdout(&finished).contains("rc=137") || finished.outcome == Outcome::Exited(137),
                "{}",
                shown(&finished)
            ),
            Holds::Unenforced(reason) => {
                assert!(!is_root() && reason.contains("control group"), "{reason}");
                let required = Limits { required: true, ..limits };
                let executor = fixture.executor(Sandbox::workspace_write());
                let error = executor.shell("touch ran").limits(required).run().await.unwrap_err();
                assert!(
                    matches!(error, ExecError::SandboxUnavailable { stage: Stage::Limits, .. }),
                    "{error}"
                );
                assert!(!fixture.project.join("ran").exists());
            }
            other @ (Holds::ResourceLimit | Holds::Mount) => panic!("{other:?}"),
        }
    });
}

#[test]
fn processes_are_bounded_for_everybody_or_said_not_to_be() {
    both(|| async {
        let fixture = Fixture::new();
        let limits = Limits { processes: Some(60), ..grouped() };
        let command = "for i in $(seq 200); do sleep 5 & done 2>err; wc -l < err; head -1 err";
        let finished = run(&fixture, limits, command).await;
        let holds_by = holds(&finished, LimitKind::Processes);
        if is_root() && !groups(&fixture).await {
            assert!(matches!(holds_by, Holds::Unenforced(_)), "{holds_by:?}");
        } else {
            let expected = if is_root() { Holds::ControlGroup } else { Holds::ResourceLimit };
            assert_eq!(holds_by, expected);
            assert!(
                finished.outcome != Outcome::Exited(0) || !stdout(&finished).starts_with("0\n"),
                "{}",
                shown(&finished)
            );
        }
        // Without a group the kernel does not bound root, and that is said.
        let plain = run(&fixture, Limits::default(), "true").await;
        match (is_root(), holds(&plain, LimitKind::Processes)) {
            (true, Holds::Unenforced(reason)) => assert!(reason.contains("for root"), "{reason}"),
            (false, Holds::ResourceLimit) => {}
            (_, other) => panic!("{other:?}"),
        }
    });
}

#[test]
fn a_fork_bomb_is_survived() {
    both(|| async {
        let fixture = Fixture::new();
        if is_root() && !groups(&fixture).await {
            return;
        }
        let limits = Limits { processes: Some(100), ..grouped() };
        let executor = fixture.executor(Sandbox::workspace_write());
        let command = "bomb() { bomb | bomb & }; bomb; sleep 600";
        let finished =
            executor.shell(command).limits(limits).timeout(Duration::from_secs(2)).run().await.unwrap();
        assert!(
            !matches!(finished.outcome, Outcome::TimedOut { kill_incomplete: true }),
            "{:?}",
            finished.outcome
        );
        worked(&executor.shell("echo next").run().await.unwrap(), &["next"]);
    });
}

// contract: S28
#[test]
fn a_thousand_processes_die_at_once() {
    both(|| async {
        let fixture = Fixture::new();
        let mark = format!("6{}", unique());
        let executor = fixture.executor(Sandbox::workspace_write());
        let command = format!("for i in $(seq 1000); do sleep {mark} & done; touch up; wait");
        let run = tokio::spawn(executor.shell(&command).timeout(Duration::from_secs(10)).run());
        let finished = run.await.unwrap().unwrap();
        assert_eq!(finished.outcome, Outcome::TimedOut { kill_incomplete: false }, "{}", shown(&finished));
        assert!(fixture.project.join("up").exists(), "a thousand processes could not be started in time");
        assert!(eventually(|| processes_with(&format!("sleep\0{mark}")).is_empty()).await);
    });
}

/// A control group ends what left its session and its parent, without a PID namespace.
// contract: S28
#[test]
fn a_control_group_ends_an_unconfined_tree() {
    both(|| async {
        let fixture = Fixture::new();
        let executor = fixture.executor(Sandbox::danger_full_access());
        let mark = format!("6{}", unique());
        let command = format!("env -i setsid sh -c 'sleep {mark} & sleep {mark}' & sleep 0.3");
        let finished = executor.shell(&command).limits(grouped()).run().await.unwrap();
        assert_eq!(finished.outcome, Outcome::Exited(0), "{}", shown(&finished));
        assert!(processes_with(&mark).is_empty(), "{:?}", processes_with(&mark));
        if is_root() && groups(&fixture).await {
            assert_eq!(finished.enforced.kill, cmdgate_executor::KillStrength::ControlGroup);
        }
    });
}
