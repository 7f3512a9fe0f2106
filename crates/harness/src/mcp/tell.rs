//! What goes wrong, on standard error: from a thread of its own, because a client that does not read it must hold nothing
//! up.

use crate::present::printable;
use std::io::Write as _;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// As many lines wait to be written; what comes then is dropped.
const MOST: usize = 256;
/// At the end, the last lines get so long.
const LAST: Duration = Duration::from_millis(500);

enum Said {
    Line(String),
    /// Whoever waits is told when all before is written.
    Flush(SyncSender<()>),
}

static TELLER: OnceLock<SyncSender<Said>> = OnceLock::new();

fn teller() -> &'static SyncSender<Said> {
    TELLER.get_or_init(|| {
        let (sender, said) = sync_channel(MOST);
        // Without a thread nothing is said.
        let _ = std::thread::Builder::new().name("stderr".to_owned()).spawn(move || write_all(&said));
        sender
    })
}

fn write_all(said: &Receiver<Said>) {
    for said in said {
        match said {
            // A client that is gone hears nothing.
            Said::Line(text) => {
                let _ = writeln!(anstream::stderr(), "harness: {text}");
            }
            Said::Flush(waiting) => {
                let _ = waiting.try_send(());
            }
        }
    }
}

/// Says something on one line; a part of it that comes from the client cannot move a terminal's cursor.
pub(super) fn tell(text: &str) {
    let _ = teller().try_send(Said::Line(printable(text)));
}

/// Waits, but not for long, until all is written.
pub(super) fn flush() {
    let (waiting, told) = sync_channel(1);
    if TELLER.get().is_some_and(|teller| teller.try_send(Said::Flush(waiting)).is_ok()) {
        let _ = told.recv_timeout(LAST);
    }
}
