//! Runs builtins that are called safe in bash itself, and looks for what they must not do.
//!
//! Builtins can run code and set variables through the text of their arguments alone: `test -v 'a[$(x)]'`,
//! `printf -v PATH`, `printf %n PATH`. Command lines are made of such words at random; every one that is judged safe
//! is run, and must neither create the file that the hidden code would create nor set the variable it names.

use cmdgate_classifier::{Context, Grammar, Verdict, classify};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::path::Path;
use std::process::{Command, Stdio};

const COMMANDS: &[&str] = &[
    "test",
    "[",
    "[[",
    "printf",
    "printf --",
    "echo",
    "type",
    "command",
    "command -v",
    "command printf",
    "command test",
    "command command",
    "set",
    "exit",
    "wait",
    "help",
    "times",
    "pwd",
    "true",
    ":",
];

#[rustfmt::skip]
/// `CANARY` stands for a file that must not come to exist, `Q` for a variable that must not come to be set.
const WORDS: &[&str] = &[
    "-v", "-R", "-vQ", "-n", "-z", "-o", "-a", "-f", "-e", "-d", "-t", "-eq", "-lt", "-ne", "-nt", "-ef",
    "=", "==", "!=", "!", "'!'", "'('", "')'", "'<'", "'a[$(>CANARY)0]'", "\"a[\\$(>CANARY)]\"", "Q",
    "'Q=1'", "x", "1", "0", "''", "--", "-", "-p", "-P", "-V", "-x", "-u", "+e", "-euo", "pipefail", "-vn",
    "-nv", "-{v,n}", "%n", "'%n'", "'%5n%s'", "'%d'", "'%*d'", "'%s'", "'%b'", "'%(%n)T'", "$'%n'",
    "'\\x25n'", "--help", "\"$(echo -v)\"", "\"$(echo x)\"", "a.txt", "*.txt", "'a[0]'",
];

fn command_line() -> impl Strategy<Value = String> {
    let command = prop::sample::select(COMMANDS);
    let words = prop::collection::vec(prop::sample::select(WORDS), 0..6);
    (command, words).prop_map(|(command, words)| {
        let mut line = command.to_owned();
        for word in words {
            line.push(' ');
            line.push_str(word);
        }
        match command {
            "[" => line.push_str(" ]"),
            "[[" => line.push_str(" ]]"),
            _ => {}
        }
        line
    })
}

/// What `line` did that a safe command does not do.
fn harm(line: &str, directory: &Path) -> std::io::Result<Option<String>> {
    let script = format!("trap '[ -z \"${{Q+set}}\" ] || > SET' EXIT\n{line}\n");
    Command::new("bash")
        .args(["-c", &script])
        .current_dir(directory)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    let mut left = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name != "a.txt" {
            std::fs::remove_file(directory.join(&name))?;
            left.push(name);
        }
    }
    Ok((!left.is_empty()).then(|| left.join(", ")))
}

#[test]
fn a_safe_builtin_runs_nothing_and_sets_nothing() {
    // contract: S12, X3
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.txt"), "x\n").unwrap();
    // The same lines in every run.
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let config = Config { cases: 4000, failure_persistence: None, ..Config::default() };
    let safe = std::cell::Cell::new(0_u32);
    let outcome = TestRunner::new_with_rng(config, rng).run(&command_line(), |line| {
        let context = Context::new(Grammar::Sequence).with_root("/project");
        if classify(&line, &context).verdict() == Verdict::Safe {
            safe.set(safe.get() + 1);
            // Without bash this test is nothing, so it fails.
            let harm = harm(&line, directory.path()).unwrap();
            prop_assert!(harm.is_none(), "`{line}` is called safe and made {}", harm.unwrap_or_default());
        }
        Ok(())
    });
    outcome.unwrap();
    assert!(safe.get() > 500, "only {} lines were safe, so little was tried", safe.get());
}

#[test]
fn the_harm_is_seen_where_it_is_done() {
    // What the test above looks for does happen in bash, or it would prove nothing.
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.txt"), "x\n").unwrap();
    // Version 3.2, which macOS has, does not know all of these.
    let version = Command::new("bash").args(["-c", "exit $BASH_VERSINFO"]).status().unwrap();
    let modern = version.code().is_some_and(|major| major >= 5);
    for (line, made) in [
        ("test -v 'a[$(>CANARY)0]'", "CANARY"),
        ("[[ 'a[$(>CANARY)0]' -eq 0 ]]", "CANARY"),
        ("printf -vQ x", "SET"),
        ("printf 'abc%n' Q", "SET"),
        ("command printf -v Q x", "SET"),
    ] {
        if modern {
            assert_eq!(harm(line, directory.path()).unwrap().as_deref(), Some(made), "{line}");
        }
        let context = Context::new(Grammar::Sequence).with_root("/project");
        assert_eq!(classify(line, &context).verdict(), Verdict::NeedsReview, "{line}");
    }
    assert_eq!(harm("test -f a.txt", directory.path()).unwrap(), None);
}
