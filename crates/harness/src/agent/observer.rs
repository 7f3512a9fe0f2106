//! What others are told while a run goes on.

use super::run::RunOutcome;

/// Something that happened in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event<'e> {
    /// The run began, under this number in the trace.
    Started {
        /// The run's number.
        run: i64,
    },
    /// Old runs were removed from the trace, as the settings say, or could not be.
    Pruned {
        /// What was removed, or why nothing was.
        text: &'e str,
    },
    /// The model answered.
    Answer {
        /// Which answer, counted from 1.
        step: u32,
        /// What it said.
        text: &'e str,
    },
    /// The model calls a tool; nothing has been decided about it yet.
    ToolCall {
        /// Which answer of the model holds the call.
        step: u32,
        /// The tool.
        name: &'e str,
        /// The arguments, as the model wrote them.
        arguments: &'e str,
    },
    /// What the model is told of the call.
    ToolReply {
        /// Which answer of the model held the call.
        step: u32,
        /// The tool.
        name: &'e str,
        /// A stable code, when the call did not do what it should.
        code: Option<&'static str>,
        /// The text.
        text: &'e str,
    },
    /// The verification came to an end.
    Verified {
        /// Whether it passed.
        passed: bool,
    },
    /// The run ended.
    Ended {
        /// How.
        outcome: RunOutcome,
    },
}

/// Is told what happens, in order, on the task that does it; must not block.
pub trait Observer: Send + Sync {
    /// One event.
    fn observe(&self, event: &Event<'_>);
}

impl<F: Fn(&Event<'_>) + Send + Sync> Observer for F {
    fn observe(&self, event: &Event<'_>) {
        self(event);
    }
}
