//! What a caller sees: environment, working directory, time, what is said to be enforced, what can be read, domains,
//! background commands.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod common;

use std::fs;
use std::path::Path;
use std::time::Duration;

use cmdgate_executor::background::MAX_LIVE;
use cmdgate_executor::probe::CheckStatus;
use cmdgate_executor::{
    Backend, Certainty, DeniedOperation, DomainRules, Environment, ExecError, Executor, KillStrength, Mode,
    Network, NetworkEnforced, Outcome, PathList, Reads, Rung, Sandbox, State, UnixSockets, WorkdirProblem,
};
use common::{Fixture, all_text, both, eventually, processes_with, shown, stdout, unique, worked};

// contract: S19
#[test]
fn only_listed_variables_reach_a_command() {
    both(|| async {
        let fixture = Fixture::new();
        for sandbox in [Sandbox::read_only(), Sandbox::danger_full_access()] {
            let executor = Executor::builder(&fixture.project).sandbox(sandbox).build().unwrap();
            let finished = executor.shell("env").env("ADDED", "yes").run().await.unwrap();
            worked(&finished, &["ADDED=yes", "GIT_TERMINAL_PROMPT=0", "PATH=/"]);
            assert!(!stdout(&finished).contains(common::TOKEN), "{}", shown(&finished));
            let named = Environment::allowlist().pass("SBX_TOKEN");
            let finished = executor.shell("env").environment(named).run().await.unwrap();
            assert!(
                stdout(&finished).contains("SBX_TOKEN") && !stdout(&finished).contains("OPENAI"),
                "{}",
                shown(&finished)
            );
            let finished = executor.shell("env").inherit_environment().run().await.unwrap();
            worked(&finished, &["OPENAI_API_KEY="]);
        }
    });
}

/// The text is a command, whatever it begins with: bash is never given options by it.
// contract: S18
#[test]
fn a_command_that_looks_like_an_option_is_run_as_a_command() {
    both(|| async {
        let fixture = Fixture::new();
        let words =
            ["-x", "+x", "-", "--", "+", "--version", "-c", "-i", "-s", "-ec", "-O", "+B", "--help", "-o"];
        for sandbox in [Sandbox::read_only(), Sandbox::workspace_write(), Sandbox::danger_full_access()] {
            let executor = fixture.executor(sandbox);
            for word in words {
                // The first line is no command that there is; the second is reached all the same.
                let text = format!("{word} 'echo taken'\necho rc=$?:$0:$#");
                let finished = executor.shell(&text).run().await.unwrap();
                let bash = cmdgate_executor::sandbox::bwrap::shell_words(Path::new("bash"), text.as_ref());
                assert_eq!(bash.iter().filter(|argument| **argument == *text).count(), 1);
                assert_eq!(stdout(&finished).trim_end(), "rc=127:/bin/bash:0", "{}", shown(&finished));
                // Too long for an argument, and so read from a file.
                let long = format!("{text}\n#{}", "x".repeat(150_000));
                let finished = executor.shell(long).run().await.unwrap();
                assert!(stdout(&finished).starts_with("rc=127:"), "{}", shown(&finished));
            }
            let finished = executor.shell("-e").run().await.unwrap();
            assert_eq!(finished.outcome, Outcome::Exited(127), "{}", shown(&finished));
        }
    });
}

/// A script that does not name its interpreter is run by the shell, as execvp(3) has it, with and without a sandbox.
#[test]
fn a_script_without_an_interpreter_is_run_by_the_shell() {
    use std::os::unix::fs::PermissionsExt as _;
    both(|| async {
        let fixture = Fixture::new();
        let script = fixture.project.join("script");
        fs::write(&script, "echo \"by $1\"\n").unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        for sandbox in [Sandbox::read_only(), Sandbox::danger_full_access()] {
            let executor = fixture.executor(sandbox);
            worked(&executor.argv(["./script", "the shell"]).run().await.unwrap(), &["by the shell"]);
        }
    });
}

/// Nothing is promised without a sandbox that only a sandbox could keep: it is refused, in the foreground and in the
/// background, and nothing runs.
// contract: S25
// promise: 7
#[test]
fn what_only_a_sandbox_enforces_is_refused_without_one() {
    both(|| async {
        let fixture = Fixture::new();
        let open = Sandbox::danger_full_access();
        let domains = Network::Domains(DomainRules::allowing(["example.com"]));
        for (sandbox, said) in [
            (Sandbox { network: Network::Off, ..open.clone() }, "network cannot be closed"),
            (Sandbox { mode: Mode::DangerFullAccess, ..Sandbox::default() }, "network cannot be closed"),
            (Sandbox { network: domains, ..open.clone() }, "restricted to domains"),
            (Sandbox { reads: Reads::ProjectAndSystem, ..open.clone() }, "reads cannot be confined"),
        ] {
            let executor = fixture.executor(sandbox);
            let errors = [
                executor.shell("touch ran").run().await.unwrap_err(),
                executor.argv(["touch", "ran"]).start().await.unwrap_err(),
                executor.shell("touch ran").plan().unwrap_err(),
            ];
            for error in errors {
                assert!(matches!(error, ExecError::SandboxUnavailable { .. }), "{error:?}");
                assert!(error.to_string().contains(said), "{error}");
                assert!(error.to_string().contains("danger_full_access"), "{error}");
            }
            assert!(!fixture.project.join("ran").exists());
        }
        let finished = fixture.run(open, "true").await;
        assert_eq!(finished.enforced.network, NetworkEnforced::Open);
    });
}

// contract: S19
#[test]
fn a_loader_variable_acts_inside_only() {
    both(|| async {
        let fixture = Fixture::new();
        let finished = fixture
            .executor(Sandbox::read_only())
            .shell("echo preload=$LD_PRELOAD")
            .env("LD_PRELOAD", "/no/such/library.so")
            .run()
            .await
            .unwrap();
        worked(&finished, &["preload=/no/such/library.so"]);
    });
}

// contract: S20
#[test]
fn the_working_directory_stays_in_the_project() {
    both(|| async {
        let fixture = Fixture::new();
        let project = &fixture.project;
        fs::create_dir_all(project.join("a/b")).unwrap();
        std::os::unix::fs::symlink(&fixture.outside, project.join("out")).unwrap();
        std::os::unix::fs::symlink("a/b", project.join("in")).unwrap();
        std::os::unix::fs::symlink("a", project.join("broken-into-dots")).unwrap();
        for sandbox in [Sandbox::read_only(), Sandbox::workspace_write(), Sandbox::danger_full_access()] {
            let executor = fixture.executor(sandbox);
            for (given, real) in [("a/b", "a/b"), ("in", "a/b"), (".", ""), ("a/../a/./b", "a/b")] {
                let finished = executor.shell("pwd -P").workdir(given).run().await.unwrap();
                let expected = project.join(real);
                worked(&finished, &[expected.to_str().unwrap().trim_end_matches('/')]);
                assert_eq!(finished.workdir, fs::canonicalize(&expected).unwrap());
            }
            let refused = async |given: &Path| {
                let error = executor.shell("touch ran").workdir(given).run().await.unwrap_err();
                let ExecError::Workdir { problem, .. } = error else { panic!("{given:?}: {error}") };
                problem
            };
            for outside in ["..", "out", "/", "/etc", "a/../../x", "out/.."] {
                assert_eq!(
                    refused(Path::new(outside)).await,
                    WorkdirProblem::OutsideAllowedRoot,
                    "{outside}"
                );
            }
            assert_eq!(refused(&fixture.outside).await.code(), "PATH_OUTSIDE_ALLOWED_ROOT");
            assert_eq!(refused(Path::new("missing")).await, WorkdirProblem::Missing);
            assert_eq!(refused(Path::new("f")).await, WorkdirProblem::NotADirectory);
            assert_eq!(refused(Path::new("f/x")).await, WorkdirProblem::NotADirectory);
            assert!(!fixture.outside.join("ran").exists());
        }
        let sandbox = Sandbox { writable_roots: vec![fixture.outside.clone()], ..Sandbox::workspace_write() };
        let finished =
            fixture.executor(sandbox).shell("touch allowed").workdir(&fixture.outside).run().await.unwrap();
        worked(&finished, &[]);
        assert!(fixture.outside.join("allowed").exists());
    });
}

#[test]
fn roots_that_cannot_hold_are_refused() {
    both(|| async {
        let fixture = Fixture::new();
        for root in ["/", "/proc", "/sys/kernel", "/dev", "/no/such/place", "/etc/passwd"] {
            let error = Executor::builder(root).build().unwrap_err();
            assert!(matches!(error, ExecError::Root { .. }), "{root}: {error}");
        }
        for root in ["relative", "/", "/no/such/place"] {
            let sandbox = Sandbox { writable_roots: vec![root.into()], ..Sandbox::workspace_write() };
            let error = fixture.executor(sandbox).shell("true").run().await.unwrap_err();
            assert!(matches!(error, ExecError::ExtraRoot { .. }), "{root}: {error}");
        }
    });
}

// contract: S3, S23
#[test]
fn no_job_lifts_the_ceiling() {
    both(|| async {
        let fixture = Fixture::new();
        for sandbox in [Sandbox::read_only(), Sandbox::danger_full_access()] {
            let executor = fixture
                .builder(sandbox)
                .timeout(Duration::from_secs(90))
                .ceiling(Duration::from_secs(1))
                .build()
                .unwrap();
            let job = executor
                .shell("echo early; sleep 30")
                .timeout(Duration::from_secs(50))
                .ceiling(Duration::from_secs(40));
            let finished = job.run().await.unwrap();
            assert_eq!(finished.outcome, Outcome::TimedOut { kill_incomplete: false });
            assert!(
                all_text(&finished).contains("early") && finished.duration < Duration::from_secs(25),
                "{:?}",
                finished.duration
            );
        }
    });
}

// contract: S25
#[test]
fn what_is_enforced_is_said() {
    both(|| async {
        let fixture = Fixture::new();
        let enforced = fixture.run(Sandbox::read_only(), "true").await.enforced;
        assert!(
            matches!(&enforced.backend, Backend::Bubblewrap { path, version } if path.is_absolute() && !version.is_empty())
        );
        assert_eq!((enforced.mode, enforced.rung), (Mode::ReadOnly, Some(Rung::Full)));
        assert!(
            enforced.user_namespace
                && enforced.pid_namespace
                && enforced.seccomp
                && enforced.nested_namespaces_disabled
        );
        assert_eq!((enforced.network, enforced.kill), (NetworkEnforced::Closed, KillStrength::Namespace));
        assert_eq!(enforced.unix_sockets, UnixSockets::OwnOnly);
        let online = Sandbox { network: Network::On, ..Sandbox::read_only() };
        let enforced = fixture.run(online, "true").await.enforced;
        assert_eq!(enforced.network, NetworkEnforced::Open);
        assert!(matches!(enforced.unix_sockets, UnixSockets::Refused(_)));
        let enforced = fixture.run(Sandbox::danger_full_access(), "true").await.enforced;
        assert!(
            !enforced.user_namespace
                && !enforced.seccomp
                && enforced.rung.is_none()
                && enforced.backend == Backend::None
        );
    });
}

#[test]
fn the_probe_finds_this_machine_fit() {
    both(|| async {
        let fixture = Fixture::new();
        let report = fixture.executor(Sandbox::read_only()).probe().await;
        assert_eq!(report.rung, Some(Rung::Full), "{report:#?}");
        assert!(
            report.works() && report.checks.iter().all(|check| check.status != CheckStatus::Failed),
            "{report:#?}"
        );
        let names: Vec<&str> = report.checks.iter().map(|check| check.name).collect();
        assert_eq!(
            names,
            ["bwrap", "bash", "user_namespaces", "seccomp", "canary", "limits", "kill_unsandboxed"]
        );
        let missing =
            fixture.builder(Sandbox::read_only()).bwrap("/no/such/bwrap").build().unwrap().probe().await;
        let failed = missing.checks.iter().find(|check| check.status == CheckStatus::Failed).unwrap();
        assert!(
            !missing.works()
                && failed.name == "bwrap"
                && failed.remedy.as_deref().unwrap().contains("install"),
            "{missing:#?}"
        );
    });
}

// contract: P13
#[test]
fn confined_reads_show_only_the_project_and_the_system() {
    both(|| async {
        let mut fixture = Fixture::new();
        fs::write(fixture.outside.join("private"), common::SECRET).unwrap();
        std::os::unix::fs::symlink(&fixture.outside, fixture.project.join("out")).unwrap();
        std::os::unix::fs::symlink(fixture.outside.join("private"), fixture.project.join("link")).unwrap();
        fixture.settle();
        for mode in [Mode::ReadOnly, Mode::WorkspaceWrite] {
            let sandbox = Sandbox { mode, reads: Reads::ProjectAndSystem, ..Sandbox::read_only() };
            let command = "cat f link out/private $OUT/private ~/.ssh/id_test ~/.gitconfig; ls -A ~ $OUT /root /srv /home /mnt /var; ls / | tr '\\n' ' '; \
                           touch /x /etc/x /srv/x $OUT/x; cat /etc/hostname >/dev/null; /usr/bin/env true && echo env-ok";
            let finished = fixture.run(sandbox, command).await;
            worked(&finished, &["one\n", "env-ok"]);
            fixture.unharmed(&finished);
            for name in ["home", "root", "mnt", "media", "boot", "work"] {
                assert!(
                    !stdout(&finished).split_whitespace().any(|word| word == name),
                    "{name} exists: {}",
                    shown(&finished)
                );
            }
        }
        let sandbox = Sandbox {
            reads: Reads::ProjectAndSystem,
            read_roots: vec![fixture.outside.clone()],
            ..Sandbox::read_only()
        };
        let finished = fixture
            .run(sandbox, "cat out/victim; touch $OUT/x; git status --short >/dev/null && git log --oneline")
            .await;
        worked(&finished, &["untouched", "one"]);
        assert!(!fixture.outside.join("x").exists());
    });
}

// contract: S26
#[test]
fn hidden_files_of_the_project_are_named_by_the_caller() {
    both(|| async {
        let fixture = Fixture::new();
        fs::write(fixture.project.join(".env.local"), "KEY=2\n").unwrap();
        let sandbox =
            Sandbox { hidden: PathList::default_hidden().with(".env*"), ..Sandbox::workspace_write() };
        let finished = fixture.run(sandbox, "cat .env .env.local; cat f").await;
        assert!(
            !all_text(&finished).contains("KEY=") && stdout(&finished).contains("one"),
            "{}",
            shown(&finished)
        );
        let denial = finished
            .denials
            .iter()
            .find(|denial| denial.operation == DeniedOperation::Read(fixture.project.join(".env")));
        assert!(
            denial.is_some_and(|denial| denial.rule == "hidden" && denial.certainty == Certainty::Likely),
            "{}",
            shown(&finished)
        );
    });
}

#[test]
fn a_denied_write_is_explained() {
    both(|| async {
        let fixture = Fixture::new();
        let finished = fixture.run(Sandbox::read_only(), "touch new; echo x > $OUT/y").await;
        let lines: Vec<String> = finished.denials.iter().map(cmdgate_executor::Denial::line).collect();
        assert!(
            lines
                .iter()
                .any(|line| line.contains("/new (rule read_only)") && line.contains("workspace_write")),
            "{lines:#?}"
        );
        assert!(lines.iter().any(|line| line.contains("outside/y")), "{lines:#?}");
        assert_eq!(fixture.run(Sandbox::read_only(), "cat missing; false").await.denials, []);
    });
}

/// The command's namespace has one door, and it asks the rules.
#[test]
fn domains_are_let_through_by_name() {
    both(|| async {
        let mut fixture = Fixture::new();
        let rules = DomainRules::allowing(["allowed.invalid"]);
        let sandbox = Sandbox { network: Network::Domains(rules), ..Sandbox::workspace_write() };
        let command = "env | grep -c -i ^https*_proxy=; curl -sS -m 10 http://denied.example/ ; echo; curl -sS -m 10 http://allowed.invalid/; echo; \
                       curl -sS -m 5 --noproxy '*' http://127.0.0.1:$TCP/; $SC tcp 127.0.0.1 $TCP; $SC abstract $ABSTRACT; ls /sys/class/net >/dev/null; cat /proc/net/dev | tail -n +3";
        let finished = fixture.run(sandbox, command).await;
        fixture.unharmed(&finished);
        assert_eq!(finished.enforced.network, NetworkEnforced::ProxyOnly);
        let hosts: Vec<(&str, bool)> =
            finished.network.iter().map(|decision| (decision.host.as_str(), decision.allowed)).collect();
        assert!(hosts.contains(&("denied.example", false)), "{hosts:?}\n{}", shown(&finished));
        assert!(hosts.iter().any(|(host, _)| *host == "allowed.invalid"), "{hosts:?}\n{}", shown(&finished));
        let denial = finished
            .denials
            .iter()
            .find(|denial| denial.operation == DeniedOperation::Network("denied.example:80".to_owned()));
        assert!(denial.is_some_and(|denial| denial.certainty == Certainty::Certain), "{}", shown(&finished));
        let bad = Sandbox {
            network: Network::Domains(DomainRules::allowing(["not a host"])),
            ..Sandbox::read_only()
        };
        let error = fixture.executor(bad).shell("true").run().await.unwrap_err();
        assert!(matches!(error, ExecError::SandboxUnavailable { .. }), "{error}");
    });
}

// contract: P16
#[test]
fn background_commands_are_started_polled_and_killed() {
    both(|| async {
        let fixture = Fixture::new();
        for sandbox in [Sandbox::workspace_write(), Sandbox::danger_full_access()] {
            let executor = fixture.executor(sandbox);
            let mark = format!("6{}", unique());
            let job = executor.shell(format!(
                "echo first; while [ ! -e go ]; do sleep 0.02; done; echo second; echo err >&2; sleep {mark}"
            ));
            let background = job.start().await.unwrap();
            let mut seen = String::new();
            assert!(
                eventually(|| {
                    seen += &background.poll().stdout.text;
                    seen == "first\n"
                })
                .await,
                "{seen:?}"
            );
            assert!(matches!(background.poll().state, State::Running));
            assert_eq!(background.poll().stdout.text, "", "nothing is given out twice");
            fs::write(fixture.project.join("go"), "").unwrap();
            let (mut out, mut err) = (String::new(), String::new());
            let again = executor.background(background.id()).unwrap();
            assert!(
                eventually(|| {
                    let poll = again.poll();
                    out += &poll.stdout.text;
                    err += &poll.stderr.text;
                    out == "second\n" && err == "err\n"
                })
                .await,
                "{out:?} {err:?}"
            );
            let State::Ended(finished) = background.kill().await else { panic!("it runs on") };
            assert!(
                matches!(finished.outcome, Outcome::Cancelled { kill_incomplete: false }),
                "{:?}",
                finished.outcome
            );
            assert!(processes_with(&mark).is_empty());
            assert!(all_text(&finished).contains("first\nsecond\n"));
            fs::remove_file(fixture.project.join("go")).unwrap();

            let short = executor.shell("echo last; exit 7").start().await.unwrap();
            let State::Ended(finished) = short.wait().await else { panic!("not ended") };
            assert_eq!(finished.outcome, Outcome::Exited(7));
            assert_eq!(short.poll().stdout.text, "last\n", "what came at the very end is still given out");
            assert!(matches!(executor.background(999), Err(ExecError::NoSuchBackground { id: 999 })));
        }
    });
}

// contract: P16
#[test]
fn background_output_is_bounded_and_what_is_skipped_is_said() {
    both(|| async {
        let fixture = Fixture::new();
        let output = cmdgate_executor::OutputMode { max_chars: 1000, ..Default::default() };
        let executor = fixture.builder(Sandbox::read_only()).output(output).build().unwrap();
        let background = executor.shell("seq 100000").start().await.unwrap();
        background.wait().await;
        let poll = background.poll();
        assert!(
            poll.stdout.text.chars().count() <= 1000 && poll.stdout.text.ends_with("100000\n"),
            "{:?}",
            poll.stdout.text
        );
        assert_eq!(poll.stdout.skipped_bytes, 588_895 - poll.stdout.text.len() as u64);
    });
}

// contract: P16
#[test]
fn at_most_eight_run_and_all_die_with_the_executor() {
    both(|| async {
        let fixture = Fixture::new();
        for sandbox in [Sandbox::read_only(), Sandbox::danger_full_access()] {
            let executor = fixture.executor(sandbox);
            let mark = format!("6{}", unique());
            let command = format!("setsid sleep {mark} & sleep {mark}");
            let mut started = Vec::new();
            for _ in 0..MAX_LIVE {
                started.push(executor.shell(&command).start().await.unwrap());
            }
            let error = executor.shell(&command).start().await.unwrap_err();
            assert!(matches!(error, ExecError::TooManyBackground { limit: MAX_LIVE }), "{error}");
            let sleepers = || processes_with(&format!("sleep\0{mark}")).len();
            assert!(eventually(|| sleepers() >= MAX_LIVE).await);
            started.pop().unwrap().kill().await;
            executor.shell(&command).start().await.unwrap();
            assert_eq!(executor.backgrounds().len(), MAX_LIVE + 1);
            let clone = executor.clone();
            drop(executor);
            assert!(sleepers() > 0, "a clone keeps them alive");
            // Handles do not keep them alive.
            drop(clone);
            assert!(eventually(|| sleepers() == 0).await, "{} survived", sleepers());
            // None ended by itself; one may have had the time to say that it was cancelled.
            for background in &started {
                if let State::Ended(finished) = background.state() {
                    assert!(matches!(finished.outcome, Outcome::Cancelled { .. }), "{}", shown(&finished));
                }
            }
        }
    });
}

// contract: S22
#[test]
fn the_whole_output_can_be_spilled_to_a_file() {
    both(|| async {
        let fixture = Fixture::new();
        let output = cmdgate_executor::OutputMode { spill: Some(fixture.home.clone()), ..Default::default() };
        let executor = fixture.builder(Sandbox::read_only()).output(output).build().unwrap();
        let finished = executor.shell("seq 50000").run().await.unwrap();
        let spill =
            finished.stdout.spill.clone().unwrap_or_else(|| panic!("{:?}", finished.stdout.spill_error));
        assert_eq!(fs::read_to_string(&spill).unwrap().lines().count(), 50_000);
        assert!(finished.stdout.truncated && finished.stdout.head.starts_with("1\n2\n"));
        let background = executor.shell("seq 50000").start().await.unwrap();
        let State::Ended(finished) = background.wait().await else { panic!("not ended") };
        assert!(finished.stdout.spill.as_ref().is_some_and(|spill| spill.exists()));
    });
}

#[test]
fn a_session_shares_its_tmp_and_takes_it_along() {
    both(|| async {
        let fixture = Fixture::new();
        let executor = fixture.executor(Sandbox::read_only());
        worked(
            &executor
                .shell("echo 'echo from-script' > /tmp/s.sh; mkdir -m 000 /tmp/locked; stat -c %a /tmp")
                .run()
                .await
                .unwrap(),
            &["1777"],
        );
        worked(&executor.shell("sh /tmp/s.sh").run().await.unwrap(), &["from-script"]);
        worked(&executor.argv(["sh", "/tmp/s.sh"]).run().await.unwrap(), &["from-script"]);
        worked(&executor.shell("chmod +x /tmp/s.sh; sed -i 1i#!/bin/sh /tmp/s.sh").run().await.unwrap(), &[]);
        worked(&executor.argv(["/tmp/s.sh"]).run().await.unwrap(), &["from-script"]);
        let plan = executor.shell("true").plan().unwrap();
        let session = plan.session_tmp.unwrap();
        assert!(session.join("s.sh").exists());
        drop(executor);
        assert!(!session.exists());
    });
}
