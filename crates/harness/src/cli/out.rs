//! What this program prints, and what it does when nobody can take it.

use crate::exit::Exit;
use std::fmt::{Arguments, Display};
use std::io::{self, Write};

/// Says one line on standard error, as `eprintln!` does. Where standard error cannot be written (a full disk, a reader that
/// went away), nothing is said, and the program goes on: it must still give its answer and its exit code.
macro_rules! say {
    ($($what:tt)*) => {
        $crate::cli::out::line(format_args!($($what)*))
    };
}
pub(crate) use say;

/// What [`say`] does.
pub(crate) fn line(what: Arguments<'_>) {
    // In one piece, so that lines of several processes do not mix.
    let line = format!("{what}\n");
    let _ = anstream::stderr().lock().write_all(line.as_bytes());
}

/// Writes to standard output, without colours where they do not belong.
///
/// A reader that has seen enough, as `head` has, is no fault: what was decided or run stays what it is, and so does the exit
/// code. That something else took none of it is said, and is a failure.
pub(crate) fn write(text: impl Display) -> Result<(), Exit> {
    let mut out = anstream::stdout().lock();
    taken(out.write_all(text.to_string().as_bytes()).and_then(|()| out.flush()))
}

/// The same, byte for byte: what others wrote keeps its colours.
pub(crate) fn write_raw(bytes: &[u8]) -> Result<(), Exit> {
    let mut out = io::stdout().lock();
    taken(out.write_all(bytes).and_then(|()| out.flush()))
}

/// What the end of writing to standard output means, as in [`write`].
pub(crate) fn taken(written: io::Result<()>) -> Result<(), Exit> {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(super::fail(
            Exit::Failed,
            format_args!("standard output cannot be written: {error}; the answer is lost"),
        )),
        Ok(()) | Err(_) => Ok(()),
    }
}
