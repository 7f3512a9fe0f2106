//! Where the model's answers come from.

mod scripted;

pub use scripted::Scripted;

use super::message::{Message, Turn};
use crate::tools::ToolSpec;
use std::future::Future;
use std::pin::Pin;

/// The future that a provider returns.
pub type ProviderFuture<'a> = Pin<Box<dyn Future<Output = Result<Turn, ProviderError>> + Send + 'a>>;

/// A model.
pub trait Provider: Send + Sync {
    /// The next answer in a conversation.
    fn next<'a>(&'a self, conversation: &'a [Message], tools: &'a [ToolSpec]) -> ProviderFuture<'a>;
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// A script has fewer answers than the run asked for.
    #[error("the script has {0} answers, and one more was asked for")]
    ScriptEnded(usize),
}
