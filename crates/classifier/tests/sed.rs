//! The sed validator against GNU sed itself: what it admits must not be something that `sed --sandbox` refuses, and
//! must end. Needs the Debian packages `sed` and `coreutils`.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use cmdgate_classifier::{Context, Grammar, Verdict, classify_argv};
use proptest::prelude::*;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

fn admits(argv: &[&str]) -> bool {
    let context = Context::new(Grammar::Sequence).with_root("/p");
    classify_argv(argv, &context).verdict() == Verdict::Safe
}

/// GNU sed is not everywhere: the other seds have no sandbox to compare with.
fn is_gnu() -> bool {
    static GNU: OnceLock<bool> = OnceLock::new();
    *GNU.get_or_init(|| {
        let version = Command::new("timeout").args(["5", "sed", "--version"]).output();
        let gnu = version.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("GNU sed"));
        assert!(gnu || std::env::var_os("CI").is_none(), "the comparison needs GNU sed and timeout");
        gnu
    })
}

/// Runs the script over a few lines in GNU sed's own sandbox mode; the exit status and what it said on stderr.
fn run(script: &str) -> (Option<i32>, String) {
    let mut child = Command::new("timeout")
        .args(["5", "sed", "--sandbox", "-e", script])
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // sed may be gone before it has read anything.
    let _ = child.stdin.take().unwrap().write_all(b"one two\nw out\n\n  a/b[c]\nend\n");
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn one_of(choices: &'static [&'static str]) -> impl Strategy<Value = String> {
    proptest::sample::select(choices).prop_map(str::to_owned)
}

/// Pieces that matter to the grammar, thrown together.
fn noise() -> impl Strategy<Value = String> {
    let piece = one_of(&[
        "s", "y", "/", "/", "|", "[", "]", "[^", "[:", ":]", "[[:a:]", "\\", "\\]", "\\/", "\n", "\\\n", ";",
        "{", "}", "a", "a\\", "i", "c", "w", "w out", "e", "r x", "W", "R", "p", "d", "D", "N", "n", "G",
        "x", "b", "t", ":", ":a", "ba", "ta", "$", "$!", "!", "1", ",", "1,2", "~", "+", "#", " ", "&",
        "\\1", "\\n", "g", "I", "q", "=", "l", "v", "F", "z", "one", "é",
    ]);
    proptest::collection::vec(piece, 1..12).prop_map(|pieces| pieces.concat())
}

/// Scripts that are nearly right, so that many are admitted.
fn script() -> impl Strategy<Value = String> {
    let regex = || {
        one_of(&[
            "/x/",
            "/[/]/",
            "/[^]/]*/",
            "\\|a|",
            "\\,[,],",
            "/\\//",
            "/[[:space:]]/",
            "/a[\\/b]/",
            "/[a\\]/",
        ])
    };
    let address = prop_oneof![
        Just(String::new()),
        one_of(&["1", "$", "$!", "1!", "2,3", "1~2", "0,/w/", "2,+1", "2,~4", "1,$"]),
        regex(),
        (regex(), regex()).prop_map(|(from, to)| format!("{from},{to}I")),
    ];
    let command = one_of(&[
        "p",
        "d",
        "D",
        "n",
        "N",
        "G",
        "H",
        "x",
        "h",
        "g",
        "q",
        "q5",
        "=",
        "l",
        "P",
        "z",
        "F",
        "b",
        "t",
        "ba",
        "ta",
        "bb",
        ":a",
        ":b",
        "{",
        "}",
        "s/o/0/",
        "s/[/]/w/",
        "s/o/\\n/g",
        "s/[^/]*$/&&/2p",
        "s|a/b|w out|",
        "s/x/\\\nw/",
        "y/abc/def/",
        "y/a\\/b/x\\ny/",
        "a text",
        "a\\\ntext",
        "i\\\none\\\ntwo",
        "c w out",
        "s/a/b/w out",
        "s/a/b/e",
        "w out",
        "r in",
        "e",
        "# w out",
        "s/a/b/ g p",
        "s/[[:alpha:]]*/x/",
        "s/[a\\]w out/b/",
    ]);
    let end = one_of(&[";", "\n", "", " ;", "}", " # c\n", "\n\n"]);
    let step = (address, command, end).prop_map(|(address, command, end)| format!("{address}{command}{end}"));
    proptest::collection::vec(step, 1..6).prop_map(|steps| steps.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn what_is_admitted_passes_the_sandbox_of_sed_and_ends(script in prop_oneof![noise(), script()]) {
        // contract: S12
        if is_gnu() && admits(&["sed", "-n", &script, "a.txt"]) {
            let (status, said) = run(&script);
            prop_assert!(!said.contains("sandbox"), "{script:?}: {said}");
            prop_assert!(status != Some(124), "{script:?} does not end");
            prop_assert!(said.is_empty() || !said.contains("unknown command"), "{script:?}: {said}");
        }
    }

    #[test]
    fn pieces_are_judged_as_what_they_are_together(first in script(), second in script()) {
        // contract: S10
        let joined = format!("{first}\n{second}");
        prop_assert_eq!(
            admits(&["sed", "-e", &first, "--expression", &second, "a.txt"]),
            admits(&["sed", &joined, "a.txt"])
        );
    }

    #[test]
    fn no_text_makes_it_panic(script in any::<String>()) {
        let _ = admits(&["sed", &script, "a.txt"]);
    }
}

#[test]
fn the_comparison_sees_what_the_sandbox_refuses() {
    // contract: S12
    if is_gnu() {
        for script in ["w out", "1e", "s/a/b/w x", "s/a/b/e", "r in", "R in", "W out", "1{w out\n}"] {
            assert!(run(script).1.contains("sandbox"), "{script}");
            assert!(!admits(&["sed", script, "a.txt"]), "{script}");
        }
        assert_eq!(run("s/^/x/;:a;ba").0, Some(124));
    }
}

#[test]
fn scripts_that_end_and_those_that_may_not() {
    // contract: S12
    for script in [
        ":a;N;$!ba;s/\\n/ /g",
        ":a;$!{N;ba};s/\\n/,/g",
        ":a;$!N;$!ba;s/\\n/ /g",
        "$!N;P;D",
        "$!N;/^\\(.*\\)\\n\\1$/!P;D",
        "/a/b;p",
        "/a/bx;s/b/c/;:x;p",
        "N;N;s/\\n/ /g;P;D",
        "/^$/{n;b};p",
        ":l;n;bl",
    ] {
        assert!(admits(&["sed", script, "a.txt"]), "{script}");
    }
    for script in [
        ":a;s/^/x/;ta",
        ":a;ba",
        ":a;/y/N;/x/ba;ta",
        "G;D",
        "s/x/\\n/;D",
        "s/\\(.\\n\\)/\\1\\1/;D",
        "s/x/\\x0a/;D",
        ":a;/x/N;ba",
        ":a;$N;ba",
        "x;G;D",
    ] {
        assert!(!admits(&["sed", script, "a.txt"]), "{script}");
    }
}
