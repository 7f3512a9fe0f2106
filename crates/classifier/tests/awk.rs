//! The awk validator against the awks themselves: what it admits leaves no trace in the directory, shows nothing of the
//! environment, and ends. Uses whichever are installed of the Debian packages `gawk`, `mawk`, `original-awk`, `busybox`.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use cmdgate_classifier::{Context, Grammar, Verdict, classify_argv};
use proptest::prelude::*;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

fn admits(argv: &[&str]) -> bool {
    let context = Context::new(Grammar::Sequence).with_root("/p");
    classify_argv(argv, &context).verdict() == Verdict::Safe
}

/// The awks of this machine, each as the words that start it.
fn awks() -> &'static [&'static [&'static str]] {
    static FOUND: OnceLock<Vec<&'static [&'static str]>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let all: [&'static [&'static str]; 4] =
            [&["gawk"], &["mawk"], &["original-awk"], &["busybox", "awk"]];
        let runs = |words: &&'static [&'static str]| {
            Command::new("timeout")
                .arg("5")
                .args(*words)
                .arg("BEGIN{exit 7}")
                .status()
                .is_ok_and(|s| s.code() == Some(7))
        };
        let found: Vec<_> = all.into_iter().filter(runs).collect();
        assert!(!found.is_empty() || std::env::var_os("CI").is_none(), "the comparison needs an awk");
        found
    })
}

const SECRET: &str = "s3cr3t-in-the-environment";

/// What went wrong when the program ran in `directory`; none when it left no trace.
fn harm(awk: &[&str], program: &str, directory: &Path) -> Option<String> {
    let before = fs::read_dir(directory).unwrap().count();
    let output = Command::new("timeout")
        .arg("5")
        .args(awk)
        .args([program, "a.txt"])
        .current_dir(directory)
        .env("SECRET", SECRET)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    if output.status.code() == Some(124) {
        return Some("does not end".to_owned());
    }
    if String::from_utf8_lossy(&output.stdout).contains(SECRET) {
        return Some("shows the environment".to_owned());
    }
    (fs::read_dir(directory).unwrap().count() != before).then(|| "writes or runs".to_owned())
}

fn project() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("a.txt"), "one two 3\n4 5 6\n\n/x/ \"y\" z\n").unwrap();
    let script = directory.path().join("pwn.sh");
    fs::write(&script, "#!/bin/sh\necho ran > mark.$$\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    directory
}

fn piece() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(
        &[
            "{",
            "}",
            "(",
            ")",
            "[",
            "]",
            ";",
            "\n",
            " ",
            "print ",
            "printf ",
            "$1",
            "$NF",
            "i",
            "x",
            "a[i]",
            "NF",
            "=",
            "==",
            ">",
            ">=",
            "<",
            "+=",
            "++",
            "--",
            "/",
            "/re/",
            "/[/]/",
            "/[[:alpha:]]/",
            "\"out\"",
            "\"./pwn.sh\"",
            "\"",
            "\\",
            "|",
            "||",
            "&&",
            "if (",
            "if (1) ",
            "else ",
            "for (",
            "for(i=1;i<=NF;i++) ",
            "for (k in a) ",
            "while (",
            "BEGIN",
            "END",
            "BEGIN{",
            "length",
            "length(",
            "substr($0,1,2)",
            "gsub(/a/,\"b\")",
            "system(",
            "system(\"./pwn.sh\")",
            "getline",
            "ENVIRON",
            "ENVIRON[\"SECRET\"]",
            ",",
            "#",
            "in ",
            "!",
            "~",
            "?",
            ":",
            "1",
            "2.5",
            "/=",
            "*",
            "-",
            "%",
            "^",
            "next",
            "exit",
            "delete a",
            "@f(",
            "print > \"out\"",
        ][..],
    )
}

fn noise() -> impl Strategy<Value = String> {
    proptest::collection::vec(piece(), 1..14).prop_map(|pieces| pieces.concat())
}

/// Statements that are nearly right, so that many programs are admitted.
fn program() -> impl Strategy<Value = String> {
    let expression = || {
        proptest::sample::select(
            &[
                "$1",
                "x",
                "i++",
                "length($0)",
                "/o/",
                "$2 / 2",
                "x / 2 / 1",
                "\"a/b\"",
                "($1 > 2)",
                "$1 > 2",
                "!x",
                "x ? 1 : 2",
                "a[$1]++",
                "$1 ~ /[a-z]/",
                "substr($0, 2)",
                "NF-1",
                "/\\// ",
                "/\"/",
                "length /\"/",
                "i++ /\"/",
                "x /=2",
                "\"./pwn.sh\"",
                "$NF \"/\" $1",
                "(x)(2)",
            ][..],
        )
    };
    let statement = (
        proptest::sample::select(
            &[
                "print E",
                "print E, E",
                "print(E)",
                "printf \"%s\\n\", E",
                "if (E) print E; else print E",
                "x = E",
                "for (i=1;i<=NF;i++) print E",
                "for (k in a) print k, E",
                "print E > \"out\"",
                "print (E) > E",
                "if (E) E",
                "$2 = E",
                "E",
                "n = split(E, b); for(i=1;i<=n;i++) print b[i]",
                "print E | \"./pwn.sh\"",
                "for(i=NF;i>0;i--) $i = E",
                "gsub(/o/, E)",
                "next",
                "{ E }",
                "for(i=0;i<5;i++) E",
            ][..],
        ),
        proptest::collection::vec(expression(), 3),
    )
        .prop_map(|(shape, fillings)| {
            let mut fillings = fillings.into_iter();
            shape.split('E').enumerate().fold(String::new(), |mut text, (at, part)| {
                if at > 0 {
                    text.push_str(fillings.next().unwrap_or("x"));
                }
                text.push_str(part);
                text
            })
        });
    let rule = (
        proptest::sample::select(&["", "BEGIN", "END", "NR > 1", "/o/", "/o/,/x/", "$1 > 3"][..]),
        proptest::collection::vec(statement, 1..4),
        proptest::sample::select(&[";", "\n", " ; "][..]),
    )
        .prop_map(|(pattern, statements, end)| format!("{pattern} {{ {} }}", statements.join(end)));
    proptest::collection::vec(rule, 1..3).prop_map(|rules| rules.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn what_is_admitted_leaves_no_trace(program in prop_oneof![noise(), program(), program()]) {
        // contract: S12
        if admits(&["awk", &program, "a.txt"]) {
            let directory = project();
            for awk in awks() {
                let harm = harm(awk, &program, directory.path());
                prop_assert!(harm.is_none(), "{awk:?} {program:?} {}", harm.unwrap_or_default());
            }
        }
    }

    #[test]
    fn no_text_makes_it_panic(program in any::<String>(), value in any::<String>()) {
        let _ = admits(&["awk", "-v", &value, &program, "a.txt"]);
    }
}

#[test]
fn the_comparison_sees_harm() {
    // contract: S12
    for awk in awks() {
        for program in [
            "BEGIN{system(\"./pwn.sh\")}",
            "{print > \"out\"}",
            "BEGIN{print ENVIRON[\"SECRET\"]}",
            "BEGIN{while(1)x++}",
            "BEGIN{print 1 | \"./pwn.sh\"}",
            "{print $1 > 2}",
        ] {
            let directory = project();
            assert!(harm(awk, program, directory.path()).is_some(), "{awk:?} {program}");
            assert!(!admits(&["awk", program, "a.txt"]), "{program}");
        }
    }
}
