//! `printf`

use crate::argv::{Reader, Tail};
use crate::finding::Code;
use crate::spec::{CommandSpec, Operands, Role, ScriptIssue, Syntax, inert, writes};

/// The builtin can set variables in two ways: `-v`, and the conversion `%n`. Numbers among its arguments are not
/// evaluated as expressions.
pub(super) static SPEC: CommandSpec = CommandSpec {
    names: &["printf"],
    about: "prints its arguments in a format",
    checked: "GNU bash 5.2.15",
    syntax: Syntax { own: Some(read), ..Syntax::POSIX },
    flags: &[
        writes(&["-v"], "sets a variable, and evaluates its subscript").takes_text(),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends().elsewhere(),
    ],
    operands: Operands::then(&[Role::Script(format)], Role::Text),
    ..CommandSpec::JUDGED
};

fn read(reader: &mut Reader<'_, '_>) {
    let args = reader.args;
    let mut at = 0;
    if let Some(first) = args.first() {
        match first.literal() {
            Some("--") => at = 1,
            Some(text) if text.starts_with("-v") => {
                let why = "sets a variable, and evaluates its subscript";
                reader.report(Code::FlagWrites, first.span, Some("-v"), why);
                return;
            }
            // Any other option is an error, after which nothing is printed.
            Some(text) if text.len() > 1 && text.starts_with('-') => return,
            None if first.may_begin_with('-') => {
                reader.report(Code::MayBeFlag, first.span, Some("-v"), "might become the flag -v");
                return;
            }
            Some(_) | None => {}
        }
    }
    match args.get(at) {
        Some(text) => reader.value(Role::Script(format), text, None),
        None if reader.around.tail == Tail::None => {}
        None => reader.report(Code::MayBeFlag, reader.name, None, "the format is not known"),
    }
}

/// The format. `%n` stores a number in the variable that its argument names.
pub(crate) fn format(text: &str) -> Result<(), ScriptIssue> {
    let mut chars = text.char_indices().peekable();
    while let Some((start, c)) = chars.next() {
        if c != '%' {
            continue;
        }
        while let Some((_, c)) = chars.peek() {
            if !"#'-+ 0123456789*.hjlLqtz$".contains(*c) {
                break;
            }
            chars.next();
        }
        match chars.next() {
            Some((at, 'n')) => {
                return Err(ScriptIssue::new(start, at + 1, "stores a number in a variable"));
            }
            // `%(…)T` is a time, whose own format has no such conversion.
            Some((_, '(')) => {
                if !chars.by_ref().any(|(_, c)| c == ')') {
                    return Ok(());
                }
            }
            Some(_) | None => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::format;
    use proptest::prelude::*;

    #[test]
    fn only_percent_n_is_refused() {
        // contract: S12
        for harmless in ["", "%", "%s\\n", "%%n", "100%", "%5d%%", "%(%n)T", "%q %b", "a%-10.3sn", "%(n", "n"]
        {
            assert!(format(harmless).is_ok(), "{harmless}");
        }
        for harmful in ["%n", "abc%n", "%5n", "%ln", "%%%n", "%-*.*hhn", "%(%s)T%n", "%s %'n"] {
            assert!(format(harmful).is_err(), "{harmful}");
        }
    }

    proptest! {
        #[test]
        fn never_panics_and_points_into_the_text(text in "[%n(*)a0.\u{e9}]{0,12}") {
            if let Err(issue) = format(&text) {
                prop_assert!(text.get(issue.start..issue.end).is_some_and(|part| part.ends_with('n')));
            }
        }
    }
}
