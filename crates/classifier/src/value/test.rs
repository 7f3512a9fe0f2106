//! `test`, `[` and `[[`.

use crate::arg::{Arg, Shape};
use crate::finding::Code;
use crate::script::Judge;
use cmdgate_lexer::Span;

/// Whether the word tests the file that the next word names.
fn is_file_test(text: &str) -> bool {
    matches!(
        text,
        "-a" | "-b"
            | "-c"
            | "-d"
            | "-e"
            | "-f"
            | "-g"
            | "-h"
            | "-k"
            | "-p"
            | "-r"
            | "-s"
            | "-u"
            | "-w"
            | "-x"
            | "-G"
            | "-L"
            | "-N"
            | "-O"
            | "-S"
    )
}

/// Whether the word compares the files before and after it.
fn is_file_comparison(text: &str) -> bool {
    matches!(text, "-nt" | "-ot" | "-ef")
}

/// Whether the word compares the texts or numbers before and after it.
fn is_text_comparison(text: &str) -> bool {
    matches!(text, "=" | "==" | "!=" | "<" | ">" | "=~") || is_number_comparison(text)
}

fn is_number_comparison(text: &str) -> bool {
    matches!(text, "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge")
}

/// Judges the words of `test`. How they group depends on their number and on words that look like operators, so every
/// reading is judged: a word is a path wherever some reading makes it one.
pub(crate) fn expression<'a>(judge: &mut Judge<'a>, args: &[Arg<'a>]) {
    files_and_names(judge, args);
    for (at, arg) in args.iter().enumerate() {
        if !arg.may_begin_with('-') || arg.literal().is_some() {
            continue;
        }
        // A word of unknown text is an operand for certain when an operator stands beside it.
        let neighbour = |at: Option<usize>| at.and_then(|at| args.get(at)).and_then(Arg::literal);
        let before = neighbour(at.checked_sub(1));
        let after = neighbour(at.checked_add(1));
        // Of two words the first is the operator, and of three after `!` the second.
        let short = matches!((args.len(), at), (2, 1))
            || matches!((args.len(), at), (3, 2)) && args.first().and_then(Arg::literal) == Some("!");
        let operand = before.is_some_and(|text| {
            matches!(text, "-n" | "-z") || is_text_comparison(text) || short && is_file_test(text)
        }) || after.is_some_and(is_text_comparison);
        if arg.is_many() || !operand {
            judge.report(Code::MayBeFlag, arg.span, "might become an operator that evaluates or opens", None);
        }
    }
}

/// Judges the words between `[[` and `]]`. Number comparisons evaluate their operands as expressions, in which a
/// subscript may hold a command substitution (`[[ 'a[$(x)]' -eq 0 ]]` runs x), so both must be plain numbers.
pub(crate) fn conditional<'a>(judge: &mut Judge<'a>, args: &[Arg<'a>], span: Span) {
    files_and_names(judge, args);
    for (at, arg) in args.iter().enumerate() {
        if !arg.literal().is_some_and(is_number_comparison) {
            continue;
        }
        let neighbours = [at.checked_sub(1).and_then(|before| args.get(before)), args.get(at + 1)];
        for neighbour in neighbours {
            let plain = neighbour.is_some_and(|arg| {
                arg.shape == Shape::Exact
                    && !arg.text.is_empty()
                    && arg.text.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit())
            });
            if !plain {
                judge.report(
                    Code::Script,
                    neighbour.map_or(span, |arg| arg.span),
                    "is evaluated as an expression",
                    None,
                );
            }
        }
    }
}

/// Judges what may be a path or a variable's name. Tests only look at a file's state; but that tells whether it
/// exists, so a path outside is held back like one that is read.
fn files_and_names<'a>(judge: &mut Judge<'a>, args: &[Arg<'a>]) {
    for (at, arg) in args.iter().enumerate() {
        let Some(text) = arg.literal() else {
            continue;
        };
        let next = args.get(at + 1);
        if is_file_test(text)
            && let Some(next) = next
        {
            judge.read_path(next);
        }
        if is_file_comparison(text) {
            for operand in [at.checked_sub(1).and_then(|before| args.get(before)), next].into_iter().flatten()
            {
                judge.read_path(operand);
            }
        }
        if matches!(text, "-v" | "-R")
            && let Some(next) = next
        {
            judge.report(
                Code::Script,
                next.span,
                "is looked up as a variable, its subscript evaluated",
                None,
            );
        }
    }
}
