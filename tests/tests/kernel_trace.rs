//! What is called safe is run under a kernel trace in a hostile repository, and does nothing.

use xtask::audit::trace::{Fixture, Traced, collect, trace_all};

/// So many commands in one run of the tests; `cargo xtask audit trace` runs all of them.
const SAMPLE: usize = 240;

#[test]
fn safe_commands_do_nothing_in_a_hostile_repository() {
    // contract: X3, X1
    // promise: 1
    cmdgate_tests::harness_binary();
    let fixture = Fixture::make().unwrap();
    let commands = collect(None, &fixture, Some(SAMPLE)).unwrap();
    assert!(commands.len() >= 200, "{} commands are safe", commands.len());
    let Traced { clean, not_run, faults } = trace_all(&fixture, &commands).unwrap();
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(
        clean * 10 >= commands.len() * 9,
        "{clean} of {} ran, these did not: {not_run:#?}",
        commands.len()
    );
}

#[test]
fn the_trace_sees_what_it_looks_for() {
    // contract: X3
    cmdgate_tests::harness_binary();
    let fixture = Fixture::make().unwrap();
    // Allowed by a rule of the user, so that commands run that are not safe.
    let config = fixture.project().parent().unwrap().join("home/.config/cmdgate");
    std::fs::create_dir_all(&config).unwrap();
    let rule = "[[rule]]\nact = \"exec\"\neffect = \"allow\"\npattern = \"*\"\n";
    std::fs::write(config.join("policy.toml"), rule).unwrap();
    for (command, seen) in [
        ("touch made.txt", "tried to write"),
        ("mkdir made", "tried to change"),
        ("cat ../secret.txt", "read "),
        ("env -i date", "started "),
        ("python3 -c \"import socket; socket.socket()\"", "made a socket"),
    ] {
        let found = fixture.trace(command, 0).unwrap();
        assert!(found.faults.iter().any(|fault| fault.starts_with(seen)), "{command}: {found:?}");
    }
    // What stands in the place of a substitution is a pipe of the command's own shell.
    let found = fixture.trace("cat <(echo x)", 0).unwrap();
    assert!(found.faults.is_empty() && found.not_run.is_none(), "{found:?}");
}
