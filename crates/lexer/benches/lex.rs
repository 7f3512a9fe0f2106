//! What lexing costs: single commands, the commands of a typical agent, and large inputs.

use cmdgate_lexer::{Grammar, lex};
use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};

fn main() {
    divan::main();
}

/// The shapes that agents use, one a line; `benches/compare` gives the same lines to another parser.
const COMMANDS: &str = include_str!("commands.txt");

#[divan::bench(args = [
    "git status",
    "grep -rn \"foo bar\" src | head -20",
    "sed -n '1,240p' src/components/App.tsx",
    "rg --files -g '*.ts' | xargs wc -l | sort -nr | head -n 40",
])]
fn pipeline(bencher: Bencher, source: &str) {
    bencher.bench(|| lex(black_box(source), Grammar::Pipeline));
}

#[divan::bench(args = [
    "git status",
    "cd src && grep -n main *.rs 2>/dev/null | head -5",
    "for f in a.md b.md; do echo \"== $f\"; cat \"$f\"; done",
    "ls src/{a,b}/*.ts",
    "echo \"$(git log -1 | head -1)\"",
])]
fn sequence(bencher: Bencher, source: &str) {
    bencher.bench(|| lex(black_box(source), Grammar::Sequence));
}

#[divan::bench]
fn typical_commands(bencher: Bencher) {
    let commands: Vec<&str> = COMMANDS.lines().collect();
    bencher.counter(ItemsCount::new(commands.len())).bench(|| {
        for command in &commands {
            let _ = black_box(lex(black_box(command), Grammar::Sequence));
        }
    });
}

#[divan::bench(args = ["one word", "quoted", "words", "pipeline", "lines", "here-document"])]
fn large(bencher: Bencher, shape: &str) {
    let source = match shape {
        "one word" => "a".repeat(1_000_000),
        "quoted" => format!("echo \"{}\"", "some text, ".repeat(90_000)),
        "words" => "word ".repeat(200_000),
        "pipeline" => vec!["grep -v 'some thing'"; 1_000].join(" | "),
        "lines" => "git log --oneline -1 && echo \"a b\" 2>/dev/null\n".repeat(5_000),
        _ => format!("cat <<'EOF'\n{}EOF\n", "a line of text\n".repeat(60_000)),
    };
    bencher.counter(BytesCount::of_str(&source)).bench(|| lex(black_box(&source), Grammar::Sequence));
}
