//! Recorded trees and refusals, to be read by people.
// contract: S4, X5

#![expect(clippy::unwrap_used, clippy::string_slice, reason = "the helpers of a test fail by panicking")]

use cmdgate_lexer::{Grammar, Script, lex};
use std::fmt::Write;

fn tree(source: &str) -> Script<'_> {
    lex(source, Grammar::Sequence).unwrap()
}

#[test]
fn a_pipeline_of_quoted_words() {
    insta::assert_debug_snapshot!(tree("grep -rn 'a;b' \"src\" | head -20"));
}

#[test]
fn words_that_depend_on_other_things() {
    insta::assert_debug_snapshot!(tree("ls ~/\"a b\"/*.[ch] {x,y}? $HOME\"$(date +%F)\""));
}

#[test]
fn a_loop_with_redirections_and_a_here_document() {
    insta::assert_debug_snapshot!(tree(
        "! for f in a b; do cat <<-E \"$f\" 2>&1; done >/dev/null || x=1 y\n\tone $f\n\tE\n"
    ));
}

/// Every refusal in a sentence, with the deciding characters marked.
#[test]
fn refusals_say_where_and_why() {
    const REFUSED: &[&str] = &[
        "",
        "ls \u{7}",
        "ls; rm x",
        "ls &",
        "ls > x",
        "ls $HOME",
        "ls \"`x`\"",
        "ls {a,b}",
        "ls a\\ b",
        "grep \"a\\.b\" x",
        "ls 'a",
        "ls \"a b",
        "ls | | wc",
        "ls || ",
        "ls 2> ",
        "if ls; then",
        "( ls",
        "ls )",
        "f() { ls; }",
        "function f { ls; }",
        "x[0]=1",
        "x=(1 2)",
        "echo ${x:-y}",
        "echo $((x + 1))",
        "cat >(ls)",
        "cat <(ls)x",
        "cat <<EOF\nno end",
        "case x in a) ls;& esac",
        "echo {1..1000}",
        "echo {1..x}",
        "echo a[b",
    ];
    let mut text = String::new();
    for source in REFUSED {
        for grammar in [Grammar::Pipeline, Grammar::Sequence] {
            let Err(error) = lex(source, grammar) else { continue };
            let before = source[..error.span.start as usize].escape_debug().count();
            let marked = error.span.of(source).escape_debug().count().max(1);
            writeln!(text, "{grammar:?}: {}", source.escape_debug()).unwrap();
            writeln!(
                text,
                "{}{} {}: {}\n",
                " ".repeat(before + format!("{grammar:?}: ").len()),
                "^".repeat(marked),
                error.kind.as_str(),
                error.message
            )
            .unwrap();
        }
    }
    insta::assert_snapshot!(text);
}
