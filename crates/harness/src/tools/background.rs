//! Background commands of one toolbox (contract P16).

use super::call::ToolReply;
use crate::gate::Request;
use crate::present::not_started;
use crate::session::{RecordId, Recorder};
use crate::wire::{Replied, WireBackground};
use cmdgate_executor::{Background, Finished, Outcome, State, output::Chunk};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

/// A started command whose end is to be recorded.
#[derive(Debug)]
struct Open {
    background: Background,
    record: RecordId,
    request: Request,
}

/// The background commands whose ends have not been recorded yet.
#[derive(Debug, Default)]
pub struct Backgrounds {
    open: Mutex<Vec<Open>>,
}

impl Backgrounds {
    pub(super) fn add(&self, background: Background, record: RecordId, request: Request) {
        self.lock().push(Open { background, record, request });
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the end of `id`, once, if it has one.
    pub(super) fn note_end(&self, id: u64, state: &State, recorder: &dyn Recorder) -> Option<String> {
        let end = match state {
            State::Running => return None,
            State::Ended(finished) => Ok(Finished::clone(finished)),
            State::Failed(error) => Err(cmdgate_executor::ExecError::Io {
                doing: "run it in the background",
                source: std::io::Error::other(error.to_string()),
            }),
        };
        let mut open = self.lock();
        let at = open.iter().position(|open| open.background.id() == id)?;
        let Open { record, request, .. } = open.swap_remove(at);
        drop(open);
        recorder.ended(record, &request, &end).err().map(|error| error.to_string())
    }

    /// Ends all of them, and records that.
    pub async fn end_all(&self, recorder: &dyn Recorder) {
        let open: Vec<Background> = self.lock().iter().map(|open| open.background.clone()).collect();
        for background in open {
            let state = background.kill().await;
            // The run is over; what cannot be written down now has nobody left to hear of it.
            let _ = self.note_end(background.id(), &state, recorder);
        }
    }
}

/// What a poll or a kill says.
pub(super) fn shown(id: u64, background: &Background) -> ToolReply {
    let poll = background.poll();
    let structured = Replied::background("", WireBackground::polled(id, &poll));
    let mut text = String::new();
    let _ = writeln!(text, "Background {id}: {}", state_of(&poll.state));
    for (name, chunk) in [("stdout", &poll.stdout), ("stderr", &poll.stderr)] {
        new_text(&mut text, name, chunk);
    }
    ToolReply::done(text).with(&structured)
}

fn new_text(text: &mut String, name: &str, chunk: &Chunk) {
    let _ = writeln!(text, "\nnew {name}:");
    if chunk.skipped_bytes > 0 {
        let _ = writeln!(text, "[… {} bytes skipped …]", chunk.skipped_bytes);
    }
    let shown = chunk.text.strip_suffix('\n').unwrap_or(&chunk.text);
    text.push_str(if shown.is_empty() { "(nothing)" } else { shown });
    text.push('\n');
}

fn state_of(state: &State) -> String {
    match state {
        State::Running => "running".to_owned(),
        State::Failed(error) => format!("EXECUTION_ERROR: {error}"),
        State::Ended(finished) => ended(finished),
    }
}

fn ended(finished: &Arc<Finished>) -> String {
    match &finished.outcome {
        Outcome::Exited(code) => format!("ended with exit code {code}"),
        Outcome::Signaled(signal) => format!("ended by signal {signal}"),
        Outcome::TimedOut { .. } => "TIMEOUT: killed".to_owned(),
        Outcome::Cancelled { .. } => "ended: killed".to_owned(),
        Outcome::SandboxFailed { stage, text, remedy } => {
            format!("EXECUTION_ERROR: the sandbox failed at {}: {text}; {remedy}", stage.name())
        }
        Outcome::NotStarted(why) => format!("EXECUTION_ERROR: {}", not_started(why)),
    }
}
