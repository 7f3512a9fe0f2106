//! `test`, `[` and `[[`.

use crate::arg::{Arg, Shape};
use crate::finding::Code;
use crate::script::Judge;
use cmdgate_lexer::Span;

/// Judges the words between `[[` and `]]`. Arithmetic comparisons evaluate their operands as expressions, in which a
/// subscript may hold a command substitution (`[[ 'a[$(x)]' -eq 0 ]]` runs x), so both must be plain numbers; `-v`
/// evaluates a subscript too.
pub(crate) fn conditional<'a>(judge: &mut Judge<'a>, args: &[Arg<'a>], span: Span) {
    for arg in args {
        if arg.literal() == Some("-v") || arg.literal() == Some("-R") {
            judge.report(Code::Script, arg.span, "evaluates the text of a variable's name", None);
        }
    }
    for (at, arg) in args.iter().enumerate() {
        if !matches!(arg.literal(), Some("-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge")) {
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
    for arg in args {
        // File tests only look at a file's state; the paths are judged all the same, since a test tells whether a
        // file exists.
        if let Some(text) = arg.literal()
            && text.contains('/')
            && !text.contains([' ', '*'])
        {
            judge.read_path(arg);
        }
    }
}
