//! Times the lexer beside tree-sitter-bash over the same command lines, and prints both and their ratio.
//!
//! ```text
//! cargo run --release --manifest-path crates/lexer/benches/compare/Cargo.toml
//! ```
//!
//! The other parser gives a syntax tree and no words, so it does less; its parser object is made once and reused.

use cmdgate_lexer::{Grammar, lex};
use std::hint::black_box;
use std::time::Instant;
use tree_sitter::Parser;

const COMMANDS: &str = include_str!("../../commands.txt");

/// Nanoseconds per call: the median of many rounds.
fn measure(mut call: impl FnMut()) -> f64 {
    let mut rounds: Vec<f64> = (0..101)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..200 {
                call();
            }
            start.elapsed().as_secs_f64() * 1e9 / 200.0
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[rounds.len() / 2]
}

fn main() {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).expect("the grammar fits the library");
    println!("{:>10} {:>15} {:>7}  command", "lexer, ns", "tree-sitter, ns", "ratio");
    let mut ratios = Vec::new();
    for command in COMMANDS.lines() {
        let ours = measure(|| drop(black_box(lex(black_box(command), Grammar::Sequence))));
        let theirs = measure(|| drop(black_box(parser.parse(black_box(command), None))));
        ratios.push(theirs / ours);
        println!("{ours:>10.0} {theirs:>15.0} {:>7.1}  {command}", theirs / ours);
    }
    ratios.sort_by(f64::total_cmp);
    println!("median ratio: {:.1}", ratios[ratios.len() / 2]);
}
