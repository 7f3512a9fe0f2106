//! Answers that were written beforehand, for tests.

use super::{OfferedTool, Provider, ProviderError, ProviderFuture};
use crate::agent::message::{Message, Turn};
use std::sync::{Mutex, PoisonError};

/// Gives its answers one by one, whatever it is told, and keeps what it was told.
#[derive(Debug, Default)]
pub struct Scripted {
    turns: Vec<Turn>,
    told: Mutex<Vec<Vec<Message>>>,
}

impl Scripted {
    /// These answers, in this order.
    pub fn new(turns: impl IntoIterator<Item = Turn>) -> Self {
        Self { turns: turns.into_iter().collect(), told: Mutex::default() }
    }

    /// The conversation as it stood at each question.
    pub fn told(&self) -> Vec<Vec<Message>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Provider for Scripted {
    fn next<'a>(&'a self, conversation: &'a [Message], _: &'a [OfferedTool]) -> ProviderFuture<'a> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = self.turns.get(told.len()).cloned();
        told.push(conversation.to_vec());
        Box::pin(std::future::ready(turn.ok_or(ProviderError::ScriptEnded(self.turns.len()))))
    }
}
