//! The reader of `find` against GNU find itself: what it admits changes nothing and runs nothing of the project's own.
//! Needs the Debian packages `findutils` and `coreutils`.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use cmdgate_classifier::{Context, Grammar, Verdict, classify_argv};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

fn admits(argv: &[&str]) -> bool {
    let context = Context::new(Grammar::Sequence).with_root("/p");
    classify_argv(argv, &context).verdict() == Verdict::Safe
}

/// Whether this is GNU find, and `timeout` is there.
fn is_gnu() -> bool {
    static GNU: OnceLock<bool> = OnceLock::new();
    *GNU.get_or_init(|| {
        let version = Command::new("timeout").args(["5", "find", "--version"]).output();
        let gnu =
            version.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("GNU findutils"));
        assert!(gnu || std::env::var_os("CI").is_none(), "the comparison needs GNU find and timeout");
        gnu
    })
}

/// A small project whose script leaves a mark when it runs, and some of whose files have the names of predicates.
fn project() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    fs::create_dir(root.join("sub")).unwrap();
    for name in ["a.txt", "b.txt", "sub/c.txt", "-delete", "sub/-exec", "+", ";", "out"] {
        fs::write(root.join(name), "text\n").unwrap();
    }
    fs::write(root.join("pwn.sh"), "#!/bin/sh\necho ran >> mark\n").unwrap();
    fs::set_permissions(root.join("pwn.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    directory
}

fn contents(root: &Path) -> BTreeMap<String, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        let name = path.to_string_lossy().into_owned();
        if path.is_dir() {
            found.extend(contents(&path));
            found.insert(name, None);
        } else {
            found.insert(name, fs::read(&path).ok());
        }
    }
    found
}

fn word() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(
        &[
            ".",
            "sub",
            "a.txt",
            "-name",
            "-path",
            "-delete",
            "-exec",
            "./pwn.sh",
            "{}",
            "+",
            ";",
            "cat",
            "echo",
            "-o",
            "!",
            "(",
            ")",
            ",",
            "-print",
            "-fprint",
            "out",
            "-fprintf",
            "-fls",
            "-newer",
            "-newermt",
            "2020-01-01",
            "-maxdepth",
            "1",
            "-type",
            "f",
            "-H",
            "-L",
            "-P",
            "-D",
            "tree",
            "-O3",
            "-regex",
            ".*",
            "-execdir",
            "-ok",
            "-files0-from",
            "-prune",
            "-quit",
            "-printf",
            "%p",
            "-ls",
            "-size",
            "-1",
            "-depth",
            "-true",
            "-a",
            "grep",
            "-l",
            "text",
            "x{}",
            "-fprint0",
            "-follow",
            "--",
            "-",
            "-xdev",
            "-daystart",
        ][..],
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn what_is_admitted_changes_nothing(words in proptest::collection::vec(word(), 0..9)) {
        // contract: S11, S12
        let mut argv = vec!["find"];
        argv.extend(&words);
        if is_gnu() && admits(&argv) {
            let directory = project();
            let before = contents(directory.path());
            let status = Command::new("timeout")
                .arg("10")
                .args(&argv)
                .current_dir(directory.path())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .unwrap();
            prop_assert!(status.code() != Some(124), "{argv:?} does not end");
            prop_assert_eq!(before, contents(directory.path()), "{:?}", argv);
        }
    }

    #[test]
    fn no_words_make_it_panic(words in proptest::collection::vec(any::<String>(), 0..6)) {
        let mut argv = vec!["find"];
        argv.extend(words.iter().map(String::as_str));
        let _ = admits(&argv);
    }
}

#[test]
fn the_comparison_sees_a_change() {
    // contract: S11
    if !is_gnu() {
        return;
    }
    for words in [&["-name", "a.txt", "-delete"][..], &["-exec", "./pwn.sh", ";"], &["-fprint", "new"]] {
        let directory = project();
        let before = contents(directory.path());
        let status =
            Command::new("find").args(words).current_dir(directory.path()).stdin(Stdio::null()).status();
        assert!(status.is_ok());
        assert_ne!(before, contents(directory.path()), "{words:?}");
        let mut argv = vec!["find"];
        argv.extend(words);
        assert!(!admits(&argv));
    }
}
