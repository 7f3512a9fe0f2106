//! Nine things that broke sandboxes before this one, each by name.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::Duration;

use cmdgate_executor::sandbox::bwrap::{Descriptors, Features, arguments};
use cmdgate_executor::{Outcome, Rung, Sandbox};
use common::{Fixture, all_text, both, shown, stdout, unique, worked};

/// The arguments of the line that would be built, as text.
fn line(fixture: &Fixture) -> Vec<String> {
    let plan = fixture.executor(Sandbox::workspace_write()).shell("true").plan().unwrap();
    let features = Features { rung: Rung::Full, size: true, root: common::is_root() };
    let descriptors = Descriptors { seccomp: [10, 11], status: 12, block: 13, terminal: false };
    let words = arguments(&plan, features, descriptors, &["true".into()]);
    words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// 1. As root, `--ro-bind / /` is no sandbox: only a user namespace *and* dropped capabilities hold.
#[test]
fn nine_1_root_needs_the_user_namespace_and_dropped_capabilities() {
    both(|| async {
        let mut fixture = Fixture::new();
        let line = line(&fixture).join(" ");
        assert!(line.contains("--unshare-user") && line.contains("--cap-drop ALL"), "{line}");
        let command = "grep -h Cap /proc/self/status; grep NoNewPrivs /proc/self/status; mount -o remount,rw,bind / && touch $OUT/rw; \
                       readlink /proc/self/ns/user";
        let finished = fixture.run(Sandbox::workspace_write(), command).await;
        for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            assert!(stdout(&finished).contains(&format!("{set}:\t0000000000000000")), "{}", shown(&finished));
        }
        let own = fs::read_link("/proc/self/ns/user").unwrap();
        assert!(!stdout(&finished).contains(own.to_str().unwrap()), "{}", shown(&finished));
        fixture.unharmed(&finished);
        // Each half alone leaves root its powers: the attack works with the half left out.
        if common::is_root() {
            let bare = Command::new("bwrap")
                .args([
                    "--ro-bind",
                    "/",
                    "/",
                    "--",
                    "sh",
                    "-c",
                    "mount -o remount,rw,bind / && touch \"$0\"/rw",
                ])
                .arg(&fixture.outside)
                .output()
                .unwrap();
            assert!(fixture.outside.join("rw").exists(), "{bare:?}");
        }
    });
}

/// 2. bubblewrap does not cover `/proc/sys`, and root can write it whatever its capabilities.
#[test]
fn nine_2_proc_sys_cannot_be_written() {
    both(|| async {
        let mut fixture = Fixture::new();
        let line = line(&fixture).join(" ");
        assert!(line.contains("--proc /proc --ro-bind /proc/sys /proc/sys"), "{line}");
        let command = "for s in kernel/core_pattern kernel/hostname vm/overcommit_memory kernel/modprobe; do \
                       (: >> /proc/sys/$s) 2>/dev/null && echo OPENED $s; done; echo end";
        let finished = fixture.run(Sandbox::workspace_write(), command).await;
        worked(&finished, &["end"]);
        assert!(!stdout(&finished).contains("OPENED"), "{}", shown(&finished));
        fixture.unharmed(&finished);
        if common::is_root() {
            // Without the second mount it can be opened, though all capabilities are gone.
            let bare = Command::new("bwrap")
                .args([
                    "--unshare-user",
                    "--cap-drop",
                    "ALL",
                    "--ro-bind",
                    "/",
                    "/",
                    "--proc",
                    "/proc",
                    "--dev",
                    "/dev",
                    "--",
                ])
                .args(["sh", "-c", "(: >> /proc/sys/kernel/core_pattern) && echo OPENED"])
                .output()
                .unwrap();
            assert_eq!(String::from_utf8_lossy(&bare.stdout), "OPENED\n");
        }
    });
}

/// 3. A read-only mount does not stop `connect()` to a unix socket.
#[test]
fn nine_3_unix_sockets_on_a_read_only_tree_are_out_of_reach() {
    both(|| async {
        let mut fixture = Fixture::new();
        let command = "$SC unix $OUT/u.sock; $SC unix $HOME/.sbx.sock; $SC unix $PWD/w.sock; cat < $OUT/u.sock; echo end";
        for sandbox in [Sandbox::read_only(), Sandbox::workspace_write()] {
            let finished = fixture.run(sandbox, command).await;
            worked(&finished, &["end"]);
            fixture.unharmed(&finished);
        }
    });
}

/// 4. Protecting `.git/hooks` without pinning `.git` is void.
#[test]
fn nine_4_git_is_pinned_against_renaming() {
    both(|| async {
        let mut fixture = Fixture::new();
        let words = line(&fixture);
        let git = fixture.project.join(".git").to_string_lossy().into_owned();
        let pin =
            words.windows(3).position(|words| *words == ["--bind".to_owned(), git.clone(), git.clone()]);
        let hooks = words.iter().position(|word| *word == format!("{git}/hooks"));
        assert!(pin.is_some() && pin < hooks, "{words:?}");
        let command = "mv .git x; mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit; ls -d x";
        let finished = fixture.run(Sandbox::workspace_write(), command).await;
        assert!(all_text(&finished).contains("Device or resource busy"), "{}", shown(&finished));
        fixture.unharmed(&finished);
    });
}

/// 5. One file, `.git/commondir`, gives git another configuration, and no mount can keep it from being made.
#[test]
fn nine_5_commondir_is_taken_out_again() {
    both(|| async {
        let mut fixture = Fixture::new();
        let command = "mkdir e && cp -r .git/* e/ && echo '[core]fsmonitor=touch $OUT/ran' >> e/config && printf ../e > .git/commondir";
        let finished = fixture.run(Sandbox::workspace_write(), command).await;
        worked(&finished, &[]);
        assert!(!fixture.project.join(".git/commondir").exists(), "{}", shown(&finished));
        let status = Command::new("git")
            .arg("-C")
            .arg(&fixture.project)
            .arg("status")
            .env("OUT", &fixture.outside)
            .output()
            .unwrap();
        assert!(status.status.success(), "{status:?}");
        fixture.unharmed(&finished);
    });
}

/// 6. `--die-with-parent` is about the thread that started the sandbox, and pool threads retire after ten seconds.
#[test]
fn nine_6_the_sandbox_outlives_the_thread_that_asked_for_it() {
    both(|| async {
        let fixture = Fixture::new();
        let executor = fixture.executor(Sandbox::read_only());
        let handle = tokio::runtime::Handle::current();
        let background = std::thread::spawn(move || {
            let background = handle.block_on(executor.shell("sleep 2; echo alive").start()).unwrap();
            (background, executor)
        });
        let (background, _executor) = background.join().unwrap();
        let cmdgate_executor::State::Ended(finished) = background.wait().await else { panic!("not ended") };
        worked(&finished, &["alive"]);
    });
}

/// 7. Only the report on the status descriptor tells the sandbox's failure from the command's; text can be forged.
#[test]
fn nine_7_the_exit_code_in_the_report_decides() {
    both(|| async {
        let fixture = Fixture::new();
        let executor = fixture.executor(Sandbox::read_only());
        let forged = executor
            .shell("echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1")
            .run()
            .await
            .unwrap();
        assert_eq!(forged.outcome, Outcome::Exited(1));
        let killed = executor.shell("kill -SEGV $$").run().await.unwrap();
        assert_eq!(killed.outcome, Outcome::Exited(139));
        // A stand-in that fails only once it is to run something, saying nothing at all.
        let flag = fixture.base.join("flag");
        let path = fixture.base.join("bwrap");
        fs::write(
            &path,
            format!("#!/bin/bash\n[ -e {} ] && exit 1; exec /usr/bin/bwrap \"$@\"\n", flag.display()),
        )
        .unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let executor = fixture.builder(Sandbox::read_only()).bwrap(&path).build().unwrap();
        worked(&executor.shell("true").run().await.unwrap(), &[]);
        fs::write(flag, "").unwrap();
        let failed = executor.shell("exit 1").run().await.unwrap();
        assert!(matches!(failed.outcome, Outcome::SandboxFailed { .. }), "{}", shown(&failed));
    });
}

/// 8. bubblewrap hands inherited descriptors on: one of a directory writes outside.
#[test]
fn nine_8_inherited_descriptors_are_closed() {
    both(|| async {
        let mut fixture = Fixture::new();
        for sandbox in [Sandbox::workspace_write(), Sandbox::danger_full_access()] {
            let command = "ls /proc/self/fd; $SC fdwrite $LEAKED leak; echo end";
            let finished = fixture.run(sandbox, command).await;
            worked(&finished, &["0\n1\n2\n3\n", "end"]);
            assert!(
                !stdout(&finished)
                    .contains(&format!("\n{}\n", std::os::fd::AsRawFd::as_raw_fd(&fixture.leaked))),
                "{}",
                shown(&finished)
            );
            fixture.unharmed(&finished);
        }
    });
}

/// 9. Placeholders for names that do not exist yet cost more than they protect.
#[test]
fn nine_9_no_placeholder_appears_and_a_vanishing_file_breaks_nothing() {
    both(|| async {
        let fixture = Fixture::new();
        let names = || {
            let mut names: Vec<_> =
                fs::read_dir(&fixture.project).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let before = names();
        let executor = fixture.executor(Sandbox::workspace_write());
        let run = tokio::spawn(executor.shell("touch /tmp/up; sleep 1; ls -A").run());
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(names(), before, "while it runs");
        let finished = run.await.unwrap().unwrap();
        assert_eq!(names(), before, "after it has run");
        assert_eq!(stdout(&finished).lines().count(), before.len(), "{}", shown(&finished));
        // Files that come and go while sandboxes are put together end no command.
        let flicker = fixture.project.join(".env.flicker");
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let flickering = {
            let (stop, flicker) = (stop.clone(), flicker.clone());
            std::thread::spawn(move || {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    fs::write(&flicker, "x").unwrap();
                    std::thread::sleep(Duration::from_micros(unique() % 3000));
                    let _ = fs::remove_file(&flicker);
                    std::thread::sleep(Duration::from_millis(3));
                }
            })
        };
        let mut failed = Vec::new();
        for _ in 0..20 {
            let sandbox =
                Sandbox { after_run: cmdgate_executor::AfterRun::Report, ..Sandbox::workspace_write() };
            let finished = executor.shell("true").sandbox(sandbox).run().await.unwrap();
            if finished.outcome != Outcome::Exited(0) {
                failed.push(shown(&finished));
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        flickering.join().unwrap();
        let _ = fs::remove_file(&flicker);
        assert!(failed.is_empty(), "{} of 20 failed, the first: {}", failed.len(), failed[0]);
    });
}
