//! The cost of a verdict over what an agent typically asks for.

use cmdgate_classifier::{Context, Grammar, classify};
use divan::{Bencher, black_box, counter::ItemsCount};

fn main() {
    divan::main();
}

/// Shapes and shares as agents use them: reading slices of files first, then searching, listing and git.
const TYPICAL: [&str; 31] = [
    "sed -n '1,240p' src/components/App.tsx",
    "sed -n '240,520p' src/lib/server.ts",
    "nl -ba src/main.py | sed -n '1,200p'",
    "rg -n \"fn main\" src",
    "rg --files docs",
    "rg -n \"TODO|FIXME\" -g '*.rs' crates",
    "ls -la",
    "ls src/components",
    "cat package.json",
    "cat README.md | head -50",
    "grep -rn \"import os\" --include='*.py' .",
    "grep -n \"class .*Controller\" app/controllers/users.rb",
    "find . -name '*.py' -type f | head -30",
    "find src -maxdepth 2 -type d",
    "git status",
    "git diff --stat HEAD",
    "git log --oneline -20",
    "git show --stat HEAD~1 | head -40",
    "git branch -a",
    "wc -l src/*.ts",
    "head -n 40 server/index.js",
    "tail -25 logs/build.txt",
    "sort counts.txt | uniq -c | sort -nr | head -10",
    "cut -d: -f1 list.txt | sort -u",
    "which cargo rustc",
    "pwd",
    "echo done",
    "du -sh docs",
    "test -f src/lib.rs",
    "stat -c %s a.txt",
    "date",
];

const SEQUENCES: [&str; 5] = [
    "cd src && grep -n main *.rs 2>/dev/null | head -5",
    "git diff --stat; git status --short",
    "ls docs 2>/dev/null || echo none",
    "for f in a.md b.md; do echo \"== $f\"; cat \"$f\"; done",
    "rg --files -g '*.ts' | xargs wc -l | sort -nr | head -n 40",
];

#[divan::bench(args = ["without_root", "with_root_and_cwd"])]
fn typical(bencher: Bencher, place: &str) {
    let mut context = Context::new(Grammar::Pipeline);
    if place == "with_root_and_cwd" {
        context = context.with_root("/home/user/project").with_cwd("/home/user/project/packages/app");
    }
    bencher.counter(ItemsCount::new(TYPICAL.len())).bench(|| {
        for command in TYPICAL {
            black_box(classify(black_box(command), &context));
        }
    });
}

#[divan::bench(args = TYPICAL)]
fn each(bencher: Bencher, command: &str) {
    let context = Context::new(Grammar::Pipeline);
    bencher.bench(|| classify(black_box(command), &context));
}

#[divan::bench(args = SEQUENCES)]
fn sequence(bencher: Bencher, command: &str) {
    let context = Context::new(Grammar::Sequence).with_root("/home/user/project");
    bencher.bench(|| classify(black_box(command), &context));
}

/// Linear: twice the text takes twice the time.
#[divan::bench(args = [10_000, 20_000])]
fn many_segments(bencher: Bencher, count: usize) {
    let text = vec!["cat a.txt"; count].join("; ");
    let context = Context::new(Grammar::Sequence);
    bencher.bench(|| classify(black_box(&text), &context));
}

#[divan::bench(args = [500_000, 1_000_000])]
fn one_long_word(bencher: Bencher, bytes: usize) {
    let text = ["echo ", &"x".repeat(bytes)].concat();
    let context = Context::new(Grammar::Sequence);
    bencher.bench(|| classify(black_box(&text), &context));
}
