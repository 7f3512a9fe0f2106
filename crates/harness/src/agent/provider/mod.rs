//! Where the model's answers come from.

mod chat;
mod openrouter;
mod scripted;

pub use openrouter::{OpenRouter, Retry, Told};
pub use scripted::Scripted;

use super::message::{Message, Turn};
use crate::session::Session;
use crate::tools::TOOLS;
use serde_json::Value;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

/// The future that a provider returns.
pub type ProviderFuture<'a> = Pin<Box<dyn Future<Output = Result<Turn, ProviderError>> + Send + 'a>>;

/// A model.
pub trait Provider: Send + Sync {
    /// The next answer in a conversation.
    fn next<'a>(&'a self, conversation: &'a [Message], tools: &'a [OfferedTool]) -> ProviderFuture<'a>;
}

/// A tool as a model is told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedTool {
    /// The name by which the model calls it.
    pub name: &'static str,
    /// What it does.
    pub description: &'static str,
    /// The JSON Schema of its arguments (2020-12).
    pub parameters: Value,
}

impl OfferedTool {
    /// Every tool, with the time limits of this session: a model that is told others has its calls refused.
    pub fn all_in(session: &Session) -> Vec<Self> {
        let offered = TOOLS.iter().map(|tool| Self {
            name: tool.name,
            description: tool.description,
            parameters: tool.parameters_in(session),
        });
        offered.collect()
    }
}

/// Why there is no answer. The key is in none of them, and what a server wrote is shortened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// A script has fewer answers than the run asked for.
    #[error("the script has {0} answers, and one more was asked for")]
    ScriptEnded(usize),
    /// There is no key.
    #[error(
        "there is no key for it: set OPENROUTER_API_KEY (to any text, where OPENROUTER_BASE_URL names a server that wants none)"
    )]
    NoKey,
    /// A setting cannot be used.
    #[error("{name} cannot be used: it {problem}")]
    Setting {
        /// The environment variable that holds it.
        name: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// The server cannot be reached, or the connection broke.
    #[error("{url} cannot be asked: {what} (tried {attempts} times)")]
    Transport {
        /// Where.
        url: String,
        /// What went wrong.
        what: String,
        /// How often it was tried.
        attempts: u32,
    },
    /// The time for an answer was up.
    #[error("{url} gave no answer: {what} (tried {attempts} times, {waited:?} in all)")]
    Timeout {
        /// Where.
        url: String,
        /// Which time was up.
        what: String,
        /// How often it was tried.
        attempts: u32,
        /// How long it took altogether.
        waited: Duration,
    },
    /// The server refused.
    #[error("{url} answered {status}: {message}{} (tried {attempts} times)", remedy(*status))]
    Status {
        /// Where.
        url: String,
        /// The HTTP status, or the one that the body names.
        status: u16,
        /// What the server says.
        message: String,
        /// How often it was tried.
        attempts: u32,
    },
    /// The server sends the caller elsewhere; the key is not sent there.
    #[error("{url} redirects to {to}, and is not followed: set OPENROUTER_BASE_URL to where the server is")]
    Redirect {
        /// Where.
        url: String,
        /// Where to.
        to: String,
    },
    /// The answer is longer than any answer.
    #[error("{url} answered with more than {limit} bytes")]
    TooLarge {
        /// Where.
        url: String,
        /// How much is read.
        limit: u64,
    },
    /// The answer is not what the form says.
    #[error(
        "{url} answered with what is no answer: {what} (tried {attempts} times); does OPENROUTER_BASE_URL name a server that speaks OpenAI's chat API?"
    )]
    Nonsense {
        /// Where.
        url: String,
        /// What is wrong with it.
        what: String,
        /// How often it was tried.
        attempts: u32,
    },
    /// The model wrote nothing, or was stopped before its end.
    #[error("the model did not finish: {what} (tried {attempts} times)")]
    Unfinished {
        /// How.
        what: String,
        /// How often it was tried.
        attempts: u32,
    },
}

/// What to do about a status.
const fn remedy(status: u16) -> &'static str {
    match status {
        401 | 403 => "; check OPENROUTER_API_KEY",
        402 => "; the account has no credit",
        404 => "; check OPENROUTER_MODEL and OPENROUTER_BASE_URL",
        408 | 429 | 500..=599 => "; try again later",
        _ => "",
    }
}
