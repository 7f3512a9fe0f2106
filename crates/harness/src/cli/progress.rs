//! A sign of life on a terminal, for whatever takes longer than a second.

use std::io::{IsTerminal, Write};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long nothing is said, and how often it is said anew.
const PATIENCE: Duration = Duration::from_secs(1);
/// Takes away what stands on the line.
const CLEAR: &str = "\r\u{1b}[2K";

/// Shows on standard error what is being done and for how long, until it is dropped. Where standard error is no terminal,
/// nothing is shown.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    shown: Option<Shown>,
}

#[derive(Debug)]
struct Shown {
    state: Arc<Mutex<State>>,
    /// Dropped to end the thread.
    until: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct State {
    what: String,
    silent: bool,
    visible: bool,
}

impl State {
    fn clear(&mut self) {
        if std::mem::take(&mut self.visible) {
            let _ = write!(std::io::stderr(), "{CLEAR}");
        }
    }
}

impl Progress {
    /// Begins; the text is a participle: `trying the sandbox`.
    pub(crate) fn begin(what: &str) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self::default();
        }
        let state = Arc::new(Mutex::new(State { what: what.to_owned(), silent: false, visible: false }));
        let (until, ended) = channel::<()>();
        let of_thread = Arc::clone(&state);
        let begun = Instant::now();
        let thread = std::thread::spawn(move || {
            while ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                let mut state = lock(&of_thread);
                if !state.silent {
                    let seconds = begun.elapsed().as_secs();
                    let _ = write!(std::io::stderr(), "{CLEAR}{}… {seconds} s", state.what);
                    state.visible = true;
                }
            }
        });
        Self { shown: Some(Shown { state, until: Some(until), thread: Some(thread) }) }
    }

    /// Something else is being done from now on.
    pub(crate) fn now(&self, what: &str) {
        if let Some(shown) = &self.shown {
            what.clone_into(&mut lock(&shown.state).what);
        }
    }

    /// Says nothing while something else is written to the terminal.
    pub(crate) fn silence(&self, silent: bool) {
        if let Some(shown) = &self.shown {
            let mut state = lock(&shown.state);
            state.silent = silent;
            state.clear();
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Shown {
    fn drop(&mut self) {
        drop(self.until.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        lock(&self.state).clear();
    }
}
