//! The run loop: a goal goes in, a model calls tools until it is done, and the project's own command says whether it is.

mod contract;
mod message;
mod observer;
pub mod provider;
mod run;

pub use contract::{TaskContract, Verification};
pub use message::{Message, ToolCall, Turn};
pub use observer::{Event, Observer};
pub use provider::{OfferedTool, OpenRouter, Provider, ProviderError, ProviderFuture, Retry, Scripted};
pub(crate) use run::{Kept, bounded, run_loaded};
pub use run::{RunError, RunOutcome, RunResult, resume, run_with};
