//! The jq validator against jq itself: what it admits shows nothing of the environment, reads nothing else, and ends.
//! Needs the Debian packages `jq` and `coreutils`.

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

fn has_jq() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let found =
            Command::new("timeout").args(["5", "jq", "--version"]).status().is_ok_and(|s| s.success());
        assert!(found || std::env::var_os("CI").is_none(), "the comparison needs jq and timeout");
        found
    })
}

const SECRET: &str = "s3cr3t-in-the-environment";

/// What went wrong when the filter ran over a small document.
fn harm(filter: &str) -> Option<&'static str> {
    let mut child = Command::new("timeout")
        .args(["5", "jq", filter])
        .env("SECRET", SECRET)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // jq may be gone before it has read anything.
    let _ =
        child.stdin.take().unwrap().write_all(b"{\"a\":[1,2,{\"b\":null}],\"env\":{\"x\":\"y\"},\"n\":3}");
    let output = child.wait_with_output().unwrap();
    let shown = [output.stdout, output.stderr].concat();
    if output.status.code() == Some(124) {
        Some("does not end")
    } else if String::from_utf8_lossy(&shown).contains(SECRET) {
        Some("shows the environment")
    } else {
        None
    }
}

fn filter() -> impl Strategy<Value = String> {
    let piece = proptest::sample::select(
        &[
            ".",
            ".a",
            ".env",
            "env",
            "$ENV",
            "$",
            "ENV",
            "..",
            "..",
            "1.",
            ".5",
            "[",
            "]",
            "{",
            "}",
            "(",
            ")",
            "|",
            ",",
            ":",
            ";",
            "?",
            "//",
            "\"",
            "\\(",
            "\\\"",
            "\"x\"",
            "#",
            "\n",
            "\\\n",
            " ",
            "as $x",
            "$x",
            "$__loc__",
            "def f: ",
            "f",
            "def f(g): ",
            "g",
            "map(",
            "select(",
            "range(3)",
            "range(",
            "recurse",
            "recurse(",
            "keys",
            "length",
            "reduce .[] as $i (0; . + 1)",
            "if . then 1 else 2 end",
            "try ",
            "limit(2; ",
            "input",
            "inputs",
            "repeat(.)",
            "@base64",
            "@json \"\\(.)\"",
            "to_entries",
            "walk(",
            "tojson",
            "1",
            "-",
            "*",
            "=",
            "|=",
            "==",
            "and ",
            "{env}",
            "{env: 1}",
            "{a: env}",
            "{$ENV}",
            "[.[]?]",
            ".[]",
            "first(",
            "paths",
            "getpath([\"a\"])",
            "debug",
        ][..],
    );
    proptest::collection::vec(piece, 1..10).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn what_is_admitted_shows_nothing_and_ends(filter in filter()) {
        // contract: S12
        if has_jq() && admits(&["jq", &filter, "a.json"]) {
            let harm = harm(&filter);
            prop_assert!(harm.is_none(), "{filter:?} {}", harm.unwrap_or_default());
        }
    }

    #[test]
    fn no_text_makes_it_panic(filter in any::<String>()) {
        let _ = admits(&["jq", &filter, "a.json"]);
        let _ = admits(&["yq", &filter, "a.yml"]);
    }
}

#[test]
fn the_comparison_sees_harm() {
    // contract: S12
    if has_jq() {
        for filter in
            ["env", "$ENV", "\"\\(env)\"", "def f: f; f", "[.. | env]", "last(repeat(1))", "recurse(.x)"]
        {
            assert!(harm(filter).is_some(), "{filter}");
            assert!(!admits(&["jq", filter, "a.json"]), "{filter}");
        }
    }
}
