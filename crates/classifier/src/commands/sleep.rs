//! `sleep`

use crate::argv::{Reader, Tail};
use crate::finding::Code;
use crate::spec::{CommandSpec, Operands, Role, Syntax, inert};

/// Longer than this, a pause is held back: ten minutes, in seconds.
const LONGEST: f64 = 600.0;

/// It only passes time, which a bounded pause shows in the command itself.
pub(super) static SPEC: CommandSpec = CommandSpec {
    names: &["sleep"],
    about: "waits for a time",
    checked: "GNU coreutils 9.1",
    syntax: Syntax::own(read),
    flags: &[inert(&["--help"]).ends(), inert(&["--version"]).ends()],
    operands: Operands::all(Role::Number),
    ..CommandSpec::JUDGED
};

fn read(reader: &mut Reader<'_, '_>) {
    let at = reader.flags_before_operand();
    let args = reader.args;
    let mut total = 0.0;
    let mut known = reader.around.tail == Tail::None;
    for arg in args.get(at..).unwrap_or(&[]) {
        match arg.literal().and_then(seconds) {
            Some(seconds) => total += seconds,
            None => known = false,
        }
    }
    if !known || total > LONGEST {
        reader.report(Code::BadValue, reader.name, None, "is not known to wait for ten minutes at the most");
    }
}

/// A plain decimal number with a unit.
fn seconds(text: &str) -> Option<f64> {
    let (number, unit) = match text.as_bytes().last()? {
        b's' => (text.strip_suffix('s')?, 1.0),
        b'm' => (text.strip_suffix('m')?, 60.0),
        b'h' => (text.strip_suffix('h')?, 3600.0),
        b'd' => (text.strip_suffix('d')?, 86400.0),
        _ => (text, 1.0),
    };
    super::seq::decimal(number).filter(|number| *number >= 0.0).map(|number| number * unit)
}
