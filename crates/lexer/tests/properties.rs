//! Properties of every input: no panic, and a tree that fits its source.

use cmdgate_lexer::{
    ErrorKind, Grammar, MAX_COMMANDS, MAX_DEPTH, MAX_LENGTH, MAX_STAGES, check_invariants, lex,
};
use proptest::collection::vec;
use proptest::prelude::*;
use std::time::Instant;

/// What shells care about, to be strung together.
const FRAGMENTS: &[&str] = &[
    "'",
    "\"",
    "\\",
    "\n",
    "\\\n",
    "{",
    "}",
    "(",
    ")",
    ";",
    "&",
    "|",
    "<",
    ">",
    "$",
    "`",
    "#",
    "!",
    "~",
    "*",
    "?",
    "[",
    "]",
    " ",
    "\t",
    "if ",
    "then ",
    "else ",
    "elif ",
    "fi",
    "do ",
    "done",
    "case ",
    "esac",
    " in ",
    "for x in ",
    "while ",
    "until ",
    "time ",
    "time -p ",
    "[[ ",
    " ]]",
    "((",
    "))",
    "<<E\n",
    "\nE\n",
    "<<-'E'\n",
    "2>&1",
    ">/dev/null",
    "&>/dev/null",
    ">&2",
    "<<<",
    "=",
    "+=",
    "x=",
    ",",
    "..",
    "\u{a0}",
    "\u{3000}",
    "$'",
    "$'\\x41'",
    "$x",
    "${x}",
    "\"$x\"",
    "$(",
    "$((",
    "&&",
    "||",
    ";;",
    "|&",
    "ls ",
    "a",
    "b",
    "1",
    "-",
    ":",
    "/",
    "é",
    "{a,b}",
    "{1..3}",
    "${",
    "# c\n",
    "a[1]=",
    "\\{",
    "'{'",
    "`w`",
    "$(w a)",
    "; }",
    "\r",
    "\0",
    "\u{7f}",
    "\u{85}",
    "-eq",
    "==",
    "=~",
    "日",
    "{a..z}",
    "\"\"",
    "''",
];

fn shellish() -> impl Strategy<Value = String> {
    vec(prop::sample::select(FRAGMENTS), 0..24).prop_map(|fragments| fragments.concat())
}

/// Something well-formed, with holes for strange words.
fn wellformed() -> impl Strategy<Value = String> {
    let word = vec(
        prop::sample::select(vec![
            "a",
            "b c",
            "'a b'",
            "\"$x\"",
            "\"a b\"",
            "\\é",
            "{a,b}",
            "{1..3}",
            "*.rs",
            "~/x",
            "$x",
            "$(w a)",
            "`w`",
            "x=1",
            "#c",
            "[ab]",
            "\"$(w \"a\" | v)\"",
            "$'\\t'",
            "\\\n",
        ]),
        1..3,
    )
    .prop_map(|pieces| pieces.concat());
    let simple = vec(word, 1..4).prop_map(|words| format!("w {}", words.join(" ")));
    simple.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a} | {b}")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a} && {b}")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a}\n{b}")),
            inner.clone().prop_map(|a| format!("( {a} )")),
            inner.clone().prop_map(|a| format!("{{ {a}; }} 2>&1")),
            inner.clone().prop_map(|a| format!("! {a}")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("if {a}; then {b}; fi")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("while {a}; do {b}; done >/dev/null")),
            inner.clone().prop_map(|a| format!("for x in a {{b,c}}; do {a}; done")),
            inner.clone().prop_map(|a| format!("case $x in a|*) {a};; esac")),
            inner.clone().prop_map(|a| format!("cat <<E\n$x\nE\n{a}")),
            inner.prop_map(|a| format!("w \"$({a})\"")),
        ]
    })
}

fn check(source: &str) -> Result<(), TestCaseError> {
    for grammar in [Grammar::Pipeline, Grammar::Sequence] {
        match lex(source, grammar) {
            Ok(script) => {
                if let Err(violation) = check_invariants(&script, source) {
                    return Err(TestCaseError::fail(format!("{violation} in {source:?}: {script:#?}")));
                }
                // What the small grammar accepts, the large one reads in the same way.
                if grammar == Grammar::Pipeline {
                    prop_assert_eq!(Ok(script), lex(source, Grammar::Sequence));
                }
            }
            Err(error) => {
                prop_assert!(source.get(error.span.range()).is_some(), "{error:?} points outside {source:?}");
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    // contract: X4
    #[test]
    fn arbitrary_text_does_no_harm(source in any::<String>()) {
        check(&source)?;
    }

    // contract: X4
    #[test]
    fn shell_fragments_do_no_harm(source in shellish()) {
        check(&source)?;
    }

    // contract: X4, X5
    #[test]
    fn wellformed_lines_are_accepted_and_fit(source in wellformed()) {
        check(&source)?;
    }
}

/// Texts that would take quadratic time, or all of the stack, in a careless lexer.
fn hostile(size: usize) -> Vec<(&'static str, String)> {
    [
        "a",
        "'",
        "\"",
        "''",
        "\"\"",
        "\\",
        "\\\n",
        "a ",
        "a|",
        "a;",
        "a\n",
        "#",
        "# \n",
        "(",
        "{ ",
        "[",
        "[''",
        "[[:",
        "[]",
        "a[",
        "{",
        "{a,",
        "{a,b}",
        "{a,b} ",
        "{,",
        "}",
        "{1..9}",
        "{1..256} ",
        "~",
        "a=~:",
        "$",
        "$x",
        "$(",
        "$((",
        "$(a)",
        "\"$(",
        "`",
        "`a` ",
        "${x}",
        "<<E\n",
        "<<E ",
        "a<<E\nE\n",
        "a <<-E\n\tE\n",
        "!",
        "! ",
        "time ",
        "if ",
        "if a;then ",
        "case x in ",
        "for x in ",
        "[[ ! ",
        "[[ ( ",
        "$'",
        "$'\\x41",
        "*",
        "?",
        ">a ",
        "2>&1 ",
        "a=1 ",
        "&&",
        "&& a",
        "if a; then b; el",
        "é",
        "\u{3000}",
        "((1+",
        "1>",
        "elif a; then b; ",
        "\"$x'",
        "<<'E'\n\n",
    ]
    .into_iter()
    .map(|unit| (unit, unit.repeat(size / unit.len())))
    .collect()
}

// contract: S12
#[test]
fn hostile_texts_take_linear_time_and_bounded_stack() {
    for (unit, source) in hostile(1 << 16) {
        for grammar in [Grammar::Pipeline, Grammar::Sequence] {
            let start = Instant::now();
            drop(lex(&source, grammar));
            let taken = start.elapsed();
            // In a debug build this takes milliseconds; a quadratic scan would take minutes.
            assert!(taken.as_secs() < 15, "{unit:?} repeated: {taken:?} in {grammar:?}");
        }
    }
    for (_, source) in hostile(2_000) {
        check(&source).unwrap();
    }
}

// contract: S12
#[test]
fn limits_are_refusals() {
    let kind = |source: &str, grammar| lex(source, grammar).map(drop).map_err(|error| error.kind);
    for grammar in [Grammar::Pipeline, Grammar::Sequence] {
        assert_eq!(kind(&"a".repeat(MAX_LENGTH), grammar), Ok(()));
        assert_eq!(kind(&"a".repeat(MAX_LENGTH + 1), grammar), Err(ErrorKind::TooLarge));
        assert_eq!(kind(&vec!["a"; MAX_STAGES].join("|"), grammar), Ok(()));
        assert_eq!(kind(&vec!["a"; MAX_STAGES + 1].join("|"), grammar), Err(ErrorKind::TooLarge));
        assert_eq!(kind(&vec!["a"; 10_000].join(" | "), grammar), Err(ErrorKind::TooLarge));
    }
    let nested =
        |open: &str, close: &str, depth: usize| format!("{}a{}", open.repeat(depth), close.repeat(depth));
    for (open, close) in
        [("( ", " )"), ("{ ", "; }"), ("a $(", ")"), ("if ", "; then b; fi"), ("a \"$(", ")\"")]
    {
        assert_eq!(kind(&nested(open, close, MAX_DEPTH), Grammar::Sequence), Ok(()), "{open}");
        assert_eq!(
            kind(&nested(open, close, MAX_DEPTH + 1), Grammar::Sequence),
            Err(ErrorKind::TooLarge),
            "{open}"
        );
    }
    assert_eq!(kind(&"a;".repeat(MAX_COMMANDS), Grammar::Sequence), Ok(()));
    assert_eq!(kind(&"a;".repeat(MAX_COMMANDS + 1), Grammar::Sequence), Err(ErrorKind::TooLarge));
    assert_eq!(kind("a {1..256}", Grammar::Sequence), Ok(()));
    assert_eq!(kind("a {1..257}", Grammar::Sequence), Err(ErrorKind::TooLarge));
    assert_eq!(kind(&"a {1..256}\n".repeat(2_000), Grammar::Sequence), Err(ErrorKind::TooLarge));
    assert_eq!(kind(&format!("{}\n", "a <<E ".repeat(17)), Grammar::Sequence), Err(ErrorKind::TooLarge));
}
