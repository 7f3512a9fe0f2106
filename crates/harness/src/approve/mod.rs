//! Who answers an ask.

mod menu;
pub mod pending;
pub mod remember;
pub mod terminal;

pub use remember::{Remember, Scope};
pub use terminal::TerminalApprover;

use crate::gate::{Action, Decision, Request};
use std::future::Future;
use std::pin::Pin;

/// What an approver is shown.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The request.
    pub request: &'a Request,
    /// The decision that asks.
    pub decision: &'a Decision,
    /// What a file tool would write.
    pub content: Option<&'a str>,
}

/// What an approver says.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Yes.
    Approve {
        /// Another action in the place of the one that was asked about. It is decided anew.
        modified: Option<Action>,
        /// Rules to remember. They are checked before they are kept, and none crosses a deny.
        remember: Vec<Remember>,
    },
    /// No, with a reason for the model.
    Deny {
        /// The reason; may be empty.
        reason: String,
    },
    /// Not now: the question is kept, and another process can answer it.
    Defer,
}

impl Answer {
    /// A plain yes.
    pub const fn yes() -> Self {
        Self::Approve { modified: None, remember: Vec::new() }
    }
}

/// The future that an approver returns.
pub type AnswerFuture<'a> = Pin<Box<dyn Future<Output = Answer> + Send + 'a>>;

/// Answers asks. A deny never reaches an approver.
pub trait Approver: Send + Sync {
    /// Answers one question. It may wait for ever.
    fn answer<'a>(&'a self, question: Question<'a>) -> AnswerFuture<'a>;
}

/// Says yes to every ask.
#[derive(Debug, Clone, Copy, Default)]
pub struct ApproveAll;

/// Says no to every ask.
#[derive(Debug, Clone, Copy, Default)]
pub struct DenyAll;

/// Nobody is there: every ask is kept for later.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeferAll;

impl Approver for ApproveAll {
    fn answer<'a>(&'a self, _: Question<'a>) -> AnswerFuture<'a> {
        Box::pin(std::future::ready(Answer::yes()))
    }
}

impl Approver for DenyAll {
    fn answer<'a>(&'a self, _: Question<'a>) -> AnswerFuture<'a> {
        Box::pin(std::future::ready(Answer::Deny { reason: String::new() }))
    }
}

impl Approver for DeferAll {
    fn answer<'a>(&'a self, _: Question<'a>) -> AnswerFuture<'a> {
        Box::pin(std::future::ready(Answer::Defer))
    }
}
