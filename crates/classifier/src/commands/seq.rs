//! `seq`

use crate::argv::{Reader, Tail};
use crate::finding::Code;
use crate::spec::{CommandSpec, Operands, Role, Syntax, inert};
use alloc::vec::Vec;

/// More numbers than this are held back, since there may be no end to them (`seq inf`).
const MOST: f64 = 1_000_000.0;

pub(super) static SPEC: CommandSpec = CommandSpec {
    names: &["seq"],
    about: "prints numbers",
    checked: "GNU coreutils 9.1",
    syntax: Syntax { own: Some(read), ..Syntax::STOPS },
    flags: &[
        inert(&["-f", "--format"]).takes_text(),
        inert(&["-s", "--separator"]).takes_text(),
        inert(&["-w", "--equal-width"]),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
    ],
    operands: Operands::at_most(&[Role::Number, Role::Number, Role::Number], "takes three numbers"),
    ..CommandSpec::JUDGED
};

fn read(reader: &mut Reader<'_, '_>) {
    let at = reader.flags_before_operand();
    let args = reader.args;
    let rest = args.get(at..).unwrap_or(&[]);
    if reader.saw(&["--help", "--version"]) {
        return;
    }
    let numbers: Vec<Option<f64>> = rest.iter().map(|arg| arg.literal().and_then(decimal)).collect();
    let count = match numbers.as_slice() {
        [Some(last)] => last - 1.0,
        [Some(first), Some(last)] => last - first,
        [Some(first), Some(step), Some(last)] => (last - first) / step,
        _ => f64::INFINITY,
    };
    // A step of zero is an error of the program, and gives no finite count here.
    if reader.around.tail != Tail::None || !count.is_finite() || count > MOST {
        reader.report(
            Code::BadValue,
            reader.name,
            None,
            "is not known to print a million numbers at the most",
        );
    }
}

/// A plain decimal number: a sign, digits, and at most one point.
pub(super) fn decimal(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+'));
    if plain && text.bytes().any(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::decimal;

    #[test]
    fn decimals() {
        for (text, number) in [("5", 5.0), ("-1", -1.0), ("0.5", 0.5), (".5", 0.5), ("+3", 3.0)] {
            assert_eq!(decimal(text), Some(number), "{text}");
        }
        for text in ["", "inf", "nan", "1e9", "0x10", "-", "1-2", ".", "1.2.3", "infinity"] {
            assert_eq!(decimal(text), None, "{text}");
        }
    }
}
