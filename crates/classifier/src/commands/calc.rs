//! Programs that only calculate: `expr`, `factor`, `cal`

use crate::argv::{Reader, Tail};
use crate::finding::Code;
use crate::spec::{CommandSpec, Operands, Role, Syntax, inert};

/// All of its words are texts and operators; none is a file.
pub(super) static EXPR: CommandSpec = CommandSpec {
    names: &["expr"],
    about: "evaluates an expression",
    checked: "GNU coreutils 9.1",
    syntax: Syntax::OPERANDS_ONLY,
    operands: Operands::TEXTS,
    ..CommandSpec::JUDGED
};

/// Short numbers only, since long ones take for ever.
pub(super) static FACTOR: CommandSpec = CommandSpec {
    names: &["factor"],
    about: "prints the prime factors of numbers",
    checked: "GNU coreutils 9.1",
    syntax: Syntax { own: Some(factor), ..Syntax::GNU },
    flags: &[
        inert(&["-h", "--exponents"]).elsewhere(),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
    ],
    operands: Operands::all(Role::Number),
    ..CommandSpec::JUDGED
};

fn factor(reader: &mut Reader<'_, '_>) {
    let at = reader.flags_before_operand();
    let args = reader.args;
    let rest = args.get(at..).unwrap_or(&[]);
    if reader.saw(&["--help", "--version"]) {
        return;
    }
    let short = |text: &str| text.len() <= 20 && text.bytes().all(|byte| byte.is_ascii_digit());
    let known = rest.iter().all(|arg| arg.literal().is_some_and(short));
    if rest.is_empty() || !known || reader.around.tail != Tail::None {
        reader.report(
            Code::BadValue,
            reader.name,
            None,
            "takes for ever for long numbers, which these may be",
        );
    }
}

/// Operands are months and years.
pub(super) static CAL: CommandSpec = CommandSpec {
    names: &["cal", "ncal"],
    about: "prints a calendar",
    checked: "ncal 12.1.8",
    flags: &[
        inert(&["-1"]),
        inert(&["-3"]),
        inert(&["-A"]).takes_number(),
        inert(&["-B"]).takes_number(),
        inert(&["-C"]),
        inert(&["-d"]).takes_number(),
        inert(&["-e"]),
        inert(&["-H"]).takes_number(),
        inert(&["-J"]),
        inert(&["-j"]),
        inert(&["-M"]),
        inert(&["-m"]).takes_text(),
        inert(&["-o"]),
        inert(&["-p"]),
        inert(&["-S"]),
        inert(&["-s"]).takes_text(),
        inert(&["-W"]).takes_number(),
        inert(&["-w"]),
        inert(&["-y"]),
        inert(&["-N"]).elsewhere(),
        inert(&["-b"]),
        inert(&["-h"]),
    ],
    operands: Operands::TEXTS,
    ..CommandSpec::JUDGED
};
