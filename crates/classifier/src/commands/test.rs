//! `test` and `[`

use crate::argv::{Reader, Tail};
use crate::finding::Code;
use crate::spec::{CommandSpec, Operands, Syntax};

/// An expression: files are looked at, texts and numbers compared. `-v` evaluates the subscript of a variable's name,
/// even between single quotes; numbers are not evaluated, unlike in `[[`.
pub(super) static SPEC: CommandSpec = CommandSpec {
    names: &["test", "["],
    about: "tests files and texts",
    checked: "GNU bash 5.2.15",
    syntax: Syntax::own(read),
    operands: Operands::TEXTS,
    ..CommandSpec::JUDGED
};

fn read(reader: &mut Reader<'_, '_>) {
    if reader.around.tail != Tail::None {
        let why = "words of unknown origin are appended to this expression";
        reader.report(Code::MayBeFlag, reader.name, None, why);
        return;
    }
    let args = match reader.args.split_last() {
        Some((last, args)) if last.literal() == Some("]") => args,
        Some(_) | None => reader.args,
    };
    crate::value::test::expression(reader.judge, args);
}
