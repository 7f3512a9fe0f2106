//! The escapes that must be denied and the ordinary work that must go on, as root and as an ordinary user.
//!
//! A command of a `denied` row may do what it likes: afterwards nothing outside the project, nothing protected
//! inside it, no listener and no process of the host may have been touched, no secret may stand in the output,
//! and no helper call may have succeeded.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "helpers of tests fail as tests do")]

mod common;

use cmdgate_executor::{GitAccess, Network, Outcome, PrivateTmp, Sandbox};
use common::{Fixture, all_text, both, eventually, shown, stdout, table, worked};

/// Runs one command and says what it damaged; nothing when all is well.
async fn attempt(sandbox: Sandbox, fixture: &mut Fixture, command: &str) -> Vec<String> {
    let finished = fixture.run(sandbox, command).await;
    let mut damage = fixture.harm(&finished);
    if !matches!(finished.outcome, Outcome::Exited(_)) || !damage.is_empty() {
        damage.push(shown(&finished));
    }
    damage
}

async fn denied(sandbox: Sandbox, command: &str) {
    let damage = attempt(sandbox, &mut Fixture::new(), command).await;
    assert!(damage.is_empty(), "{}", damage.join("\n"));
}

/// Every row in turn, each with a project of its own, and all that failed at the end.
async fn all_denied(rows: &[table::Denied]) {
    let mut failed = Vec::new();
    for (name, command) in rows {
        let damage = attempt(Sandbox::workspace_write(), &mut Fixture::new(), command).await;
        if !damage.is_empty() {
            failed.push(format!("{name}: {}", damage.join("\n")));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

async fn all_work(rows: &[table::Works]) {
    for (name, mode, command, parts) in rows {
        let mut fixture = Fixture::new();
        let finished = fixture.run(Sandbox { mode: *mode, ..Sandbox::default() }, command).await;
        eprintln!("{name}");
        worked(&finished, parts);
        fixture.unharmed(&finished);
    }
}

// contract: S25
#[test]
fn escapes_by_file_system() {
    both(|| all_denied(table::ESCAPES));
}

// contract: S26
#[test]
fn changes_of_protected_paths() {
    both(|| all_denied(table::PROTECTED));
}

// contract: S19
#[test]
fn reads_of_secrets() {
    both(|| all_denied(table::SECRETS));
}

// contract: S25
#[test]
fn network_and_sockets() {
    both(|| all_denied(table::SOCKETS));
}

// contract: S25
#[test]
fn system_calls() {
    both(|| all_denied(table::CALLS));
}

#[test]
fn rows_that_tell_by_themselves() {
    both(|| async {
        all_denied(table::TOLD).await;
        all_work(table::READ_ONLY).await;
    });
}

#[test]
fn f16_read_only_refuses_every_kind_of_write() {
    both(|| async {
        let mut fixture = Fixture::new();
        let before = std::fs::read_dir(&fixture.project).unwrap().count();
        let command = "touch a; echo x>f; rm f; mkdir d; chmod 777 f; ln -s x y; touch .git/x; truncate -s 0 f; \
                       mv f g; mkfifo p; cp f h; git commit --allow-empty -qm x";
        let finished = fixture.run(Sandbox::read_only(), command).await;
        fixture.unharmed(&finished);
        assert_eq!(std::fs::read_to_string(fixture.project.join("f")).unwrap(), "one\n");
        assert_eq!(std::fs::read_dir(&fixture.project).unwrap().count(), before, "{}", shown(&finished));
    });
}

#[test]
fn f17_read_only_still_has_a_private_tmp() {
    both(|| async {
        let mut fixture = Fixture::new();
        let command = format!("touch /tmp/a && cat <<E >/tmp/b && wc -c </tmp/b\n{}\nE", "x".repeat(70_000));
        let finished = fixture.run(Sandbox::read_only(), command).await;
        worked(&finished, &["70001"]);
        fixture.unharmed(&finished);
    });
}

#[test]
fn f18_no_disks_in_dev() {
    both(|| async {
        let mut fixture = Fixture::new();
        let finished =
            fixture.run(Sandbox::workspace_write(), "ls /dev | tr '\\n' ' '; find /dev -type b").await;
        fixture.unharmed(&finished);
        let known =
            "core fd full null ptmx pts random shm stderr stdin stdout tty urandom zero console mqueue";
        for device in stdout(&finished).split_whitespace() {
            assert!(known.split(' ').any(|name| name == device), "{device} in /dev: {}", shown(&finished));
        }
    });
}

#[test]
fn r04_the_hosts_processes_are_not_seen() {
    both(|| async {
        let mut fixture = Fixture::new();
        let command =
            "ps aux; cat /proc/*/cmdline | tr '\\0' ' '; ls -d /proc/[0-9]* | wc -l; ls -d /proc/$HOSTPID";
        let finished = fixture.run(Sandbox::workspace_write(), command).await;
        fixture.unharmed(&finished);
        assert!(!stdout(&finished).contains("sleep 600"), "{}", shown(&finished));
        assert!(!stdout(&finished).contains("--exact"), "{}", shown(&finished));
    });
}

#[test]
fn n06_tmux_of_the_host_takes_no_keys() {
    both(|| async {
        let mut fixture = Fixture::new();
        let socket = fixture.outside.join("tmux.sock");
        let tmux = |arguments: &[&str]| {
            std::process::Command::new("tmux")
                .arg("-S")
                .arg(&socket)
                .args(arguments)
                .env_remove("TMUX")
                .env("TERM", "dumb")
                .output()
                .unwrap()
        };
        let started = tmux(&["-f", "/dev/null", "new-session", "-d", "sh"]);
        assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
        fixture.settle();
        let command = "for s in $OUT/tmux.sock /tmp/tmux-*/default; do \
                       tmux -S $s send-keys 'touch $OUT/tmuxesc' Enter && echo SUCCEEDED; done; \
                       env | grep -E 'TMUX|SSH_AUTH|DBUS|DISPLAY' && echo SUCCEEDED";
        let finished = fixture.run(Sandbox::workspace_write(), command).await;
        let text = all_text(&finished);
        tmux(&["kill-server"]);
        assert!(!text.contains("SUCCEEDED"), "{text}");
        assert!(!fixture.outside.join("tmuxesc").exists(), "{text}");
    });
}

#[test]
fn n07_network_on_reaches_the_host() {
    both(|| async {
        let mut fixture = Fixture::new();
        let sandbox = Sandbox { network: Network::On, ..Sandbox::workspace_write() };
        let finished = fixture.run(sandbox, "$SC tcp 127.0.0.1 $TCP").await;
        worked(&finished, &["SUCCEEDED tcp"]);
        assert_eq!(fixture.damage(), ["the TCP listener was reached"]);
    });
}

#[test]
fn n08_with_the_network_on_no_unix_socket_can_be_made() {
    both(|| async {
        let sandbox = Sandbox { network: Network::On, ..Sandbox::workspace_write() };
        denied(sandbox, "$SC abstract $ABSTRACT; $SC unix $OUT/u.sock; $SC sock 1 1; $SC sock 1 2").await;
    });
}

#[test]
fn n09_names_fail_fast_without_a_network() {
    both(|| async {
        let mut fixture = Fixture::new();
        let command = "getent hosts example.com; curl -sSm20 https://example.com; echo rc=$?";
        let finished = fixture.run(Sandbox::workspace_write(), command).await;
        fixture.unharmed(&finished);
        // 6: the name was not resolved. 28 would be curl's own limit of twenty seconds.
        assert!(stdout(&finished).contains("rc=6"), "{}", shown(&finished));
    });
}

#[test]
fn s01_terminal_input_cannot_be_forged() {
    both(|| async {
        let command = "$SC tiocsti; $SC tiocsti64; $SC tiocsti < /dev/tty; script -qec \"$SC tiocsti\" /dev/null; \
                       script -qec \"$SC tiocsti64\" /dev/null";
        denied(Sandbox::workspace_write(), command).await;
    });
}

#[test]
fn s35_shared_memory_of_the_host_is_not_seen() {
    both(|| async {
        let mut fixture = Fixture::new();
        let key = (common::unique() % 1_000_000 + 1000).to_string();
        let bare =
            |call: &str| std::process::Command::new(&fixture.helper).args([call, &key]).output().unwrap();
        assert!(String::from_utf8_lossy(&bare("shmcreate").stdout).contains("SUCCEEDED"));
        assert!(String::from_utf8_lossy(&bare("shmget").stdout).contains("SUCCEEDED"));
        let finished = fixture.run(Sandbox::workspace_write(), format!("$SC shmget {key}; ipcs -m")).await;
        bare("shmremove");
        fixture.unharmed(&finished);
    });
}

// contract: S26, P15
#[test]
fn git_npm_and_python_work() {
    both(|| all_work(table::WORK_GIT_NPM_PYTHON));
}

// contract: P15
#[test]
fn terminals_sockets_and_tools_work() {
    both(|| all_work(table::WORK_TOOLS));
}

#[test]
fn w04_cargo_builds_and_tests() {
    both(|| async {
        let mut fixture = Fixture::new();
        let Some(toolchain) = toolchain() else {
            // A toolchain in root's home cannot be reached by another user; the half as root covers it.
            assert!(!common::is_root(), "cargo is needed to build this very test");
            return;
        };
        let path = format!("{}:/usr/bin:/bin", toolchain.display());
        let command = "cargo init -q --vcs none --name x cr && cd cr && cargo build -q --offline && \
                       cargo test -q --offline 2>&1 | tail -2 && ./target/debug/x";
        let finished = fixture
            .executor(Sandbox::workspace_write())
            .shell(command)
            .env("PATH", path)
            .env("CARGO_HOME", "/tmp/cargo")
            .run()
            .await
            .unwrap();
        worked(&finished, &["test result: ok", "Hello, world!"]);
        fixture.unharmed(&finished);
    });
}

/// The `bin` directory of the toolchain that builds this test, when this user can reach it.
fn toolchain() -> Option<std::path::PathBuf> {
    let cargo = std::path::Path::new(env!("CARGO"));
    rustix::fs::access(cargo, rustix::fs::Access::EXEC_OK).ok()?;
    cargo.parent().map(std::path::Path::to_owned)
}

#[test]
fn w17_becoming_somebody_else_is_refused_cleanly() {
    both(|| async {
        let mut fixture = Fixture::new();
        let command = "sudo -n true; su -c id nobody; ping -c1 -W1 127.0.0.1; echo end";
        let finished = fixture.run(Sandbox::workspace_write(), command).await;
        worked(&finished, &["end"]);
        fixture.unharmed(&finished);
        assert!(!stdout(&finished).contains("uid="), "{}", shown(&finished));
    });
}

// contract: S26
#[test]
fn p08_git_read_only_keeps_the_objects() {
    both(|| async {
        let mut fixture = Fixture::new();
        let sandbox = Sandbox { git: GitAccess::ReadOnly, ..Sandbox::workspace_write() };
        let command = "rm -rf .git; mv .git x; git log --oneline; echo q >> f; git commit -qam x";
        let finished = fixture.run(sandbox, command).await;
        fixture.unharmed(&finished);
        assert!(stdout(&finished).contains("one"), "{}", shown(&finished));
        let log = std::process::Command::new("git")
            .arg("-C")
            .arg(&fixture.project)
            .args(["log", "--oneline"])
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&log.stdout).lines().count(), 1);
    });
}

#[test]
fn a_tmp_in_memory_is_bounded() {
    both(|| async {
        let mut fixture = Fixture::new();
        let sandbox = Sandbox { tmp: PrivateTmp::Memory(8 << 20), ..Sandbox::read_only() };
        let command = "head -c 64M /dev/zero > /tmp/big; stat -c %s /tmp/big";
        let finished = fixture.run(sandbox, command).await;
        worked(&finished, &["8388608"]);
        fixture.unharmed(&finished);
    });
}

/// The attacks are real: without a sandbox the same checks find the damage.
#[test]
fn without_a_sandbox_the_attacks_are_seen_to_work() {
    both(|| async {
        let attacks = [
            "touch $OUT/abs",
            "ln -s $OUT lnk && touch lnk/sym",
            "ln $OUT/victim hard && echo pwn > hard",
            "touch ../outside/dd",
            "echo x > .git/hooks/pre-commit",
            "git config core.fsmonitor /tmp/x",
            "mv .git .git2 && mkdir -p .git && cp -r .git2/* .git/ && echo x > .git/hooks/pre-commit",
            "echo x > .vscode/tasks.json",
            "echo K=2 > .env",
            "mv $PWD $PWD.old",
            "$SC tcp 127.0.0.1 $TCP",
            "$SC udp 127.0.0.1 $UDP",
            "$SC abstract $ABSTRACT",
            "$SC unix $OUT/u.sock",
            "$SC unix $HOME/.sbx.sock",
            "$SC unix $TMPSOCK",
            "$SC unix w.sock",
            "kill -9 $HOSTPID",
        ];
        for attack in attacks {
            let mut fixture = Fixture::new();
            let finished = fixture.run(Sandbox::danger_full_access(), attack).await;
            // A process that was sent a signal may take a moment to end.
            let seen = eventually(|| !fixture.damage().is_empty()).await;
            assert!(seen, "{attack} did no damage: {}", shown(&finished));
        }
        let fixture = Fixture::new();
        let looks = [
            ("cat ~/.ssh/id_test", common::SECRET),
            ("cat $HOSTTMP", common::SECRET),
            ("cat /proc/$PPID/environ", common::TOKEN),
        ];
        for (look, secret) in looks {
            let finished = fixture.run(Sandbox::danger_full_access(), look).await;
            assert!(all_text(&finished).contains(secret), "{look}: {}", shown(&finished));
        }
        let calls =
            ["unshare", "clonens", "suidchmod f", "suidopen so", "kill $HOSTPID", "tcp 127.0.0.1 $TCP"];
        for call in calls {
            let finished = fixture.run(Sandbox::danger_full_access(), format!("$SC {call}")).await;
            assert!(all_text(&finished).contains("SUCCEEDED"), "{call}: {}", shown(&finished));
        }
    });
}
