//! The conversation with a model.

use serde::{Deserialize, Serialize};

/// One message, in the order in which the model sees them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// How the model is to work.
    System {
        /// The text.
        text: String,
    },
    /// The goal, or what the verification printed.
    User {
        /// The text.
        text: String,
    },
    /// The model's answer.
    Assistant(Turn),
    /// What came of a call.
    Tool {
        /// The call.
        call: String,
        /// The text.
        text: String,
    },
}

/// One answer of a model.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Turn {
    /// What it says.
    pub text: String,
    /// The tools it calls; none when it thinks it is done.
    pub calls: Vec<ToolCall>,
    /// Tokens that the question and this answer cost, 0 where the provider does not say.
    pub tokens: u64,
}

/// One call of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The model's name for this call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments as JSON, as the model wrote them.
    pub arguments: String,
}

impl Turn {
    /// An answer without calls.
    pub fn says(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// An answer that calls one tool.
    ///
    /// ```
    /// use cmdgate_harness::agent::Turn;
    /// let turn = Turn::calls("exec", serde_json::json!({ "argv": ["npm", "test"] })).and("list_dir", serde_json::json!({}));
    /// assert_eq!(turn.calls.len(), 2);
    /// ```
    pub fn calls(tool: impl Into<String>, arguments: serde_json::Value) -> Self {
        Self::default().and(tool, arguments)
    }

    /// One call more.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "made on the spot by json!")]
    pub fn and(mut self, tool: impl Into<String>, arguments: serde_json::Value) -> Self {
        let id = format!("call-{}", self.calls.len() + 1);
        self.calls.push(ToolCall { id, name: tool.into(), arguments: arguments.to_string() });
        self
    }

    /// The same at a price.
    #[must_use]
    pub const fn costing(mut self, tokens: u64) -> Self {
        self.tokens = tokens;
        self
    }
}
