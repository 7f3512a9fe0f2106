//! Answers.

use crate::act::{Act, Effect};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// The name given as the layer when no rule matched and no layer set a default of its own.
pub const DEFAULT_LAYER: &str = "default";

/// What a policy says about one act on one target, and why.
///
/// ```
/// use cmdgate_policy::{Act, Policy};
/// let ruling = Policy::default().check(Act::Read, "config/.env");
/// assert_eq!(ruling.layer, "builtin-secrets");
/// assert_eq!(ruling.rule.unwrap().pattern, ".env");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Ruling {
    /// The answer.
    pub effect: Effect,
    /// What was asked.
    pub act: Act,
    /// About what; for [`crate::Policy::check_exec`], the argv joined by spaces.
    pub target: String,
    /// The layer that decided, or [`DEFAULT_LAYER`].
    pub layer: String,
    /// The rule that decided; `None` when a default did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rule: Option<RuleRef>,
    /// For a program that runs inside the read-only sandbox with the network off, or not at all: an allow
    /// holds only there. Always false for other acts.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub only_in_sandbox: bool,
}

/// Which rule decided, and where a person finds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RuleRef {
    /// Its pattern, as written.
    pub pattern: String,
    /// Its effect.
    pub effect: Effect,
    /// Its place among the rules of its layer, from 0.
    pub index: usize,
    /// Why the rule is there, in its author's words.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
    /// The file it was read from.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub file: Option<PathBuf>,
    /// The line in that file, from 1.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub line: Option<usize>,
    /// Which spelling of the target it matched.
    pub on: MatchedOn,
}

/// Which spelling of a target a rule matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum MatchedOn {
    /// The whole target.
    Target,
    /// The last component of the path, or of the program's path.
    Basename,
    /// The program, whatever its arguments.
    Program,
    /// The program with its arguments, joined by spaces.
    Command,
    /// The host, whatever the port.
    Host,
}

impl Ruling {
    /// Whether a rule, and not a default, allows it.
    pub fn allows_by_rule(&self) -> bool {
        self.rule.is_some() && self.effect == Effect::Allow
    }

    /// Whether the answer is [`Effect::Allow`].
    pub fn is_allow(&self) -> bool {
        self.effect == Effect::Allow
    }

    /// Whether the answer is [`Effect::Ask`].
    pub fn is_ask(&self) -> bool {
        self.effect == Effect::Ask
    }

    /// Whether the answer is [`Effect::Deny`].
    pub fn is_deny(&self) -> bool {
        self.effect == Effect::Deny
    }

    /// The stricter of two answers; this one when they are equally strict. What holds only in the sandbox for
    /// one, does for both.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        let only_in_sandbox = self.only_in_sandbox || other.only_in_sandbox;
        let stricter = if other.effect > self.effect { other } else { self };
        Self { only_in_sandbox, ..stricter }
    }
}

impl fmt::Display for Ruling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: ", self.effect, self.act)?;
        match &self.rule {
            None if self.layer == DEFAULT_LAYER => write!(f, "no rule matches, this is the default"),
            None => write!(f, "no rule matches, this is the default set by layer {}", self.layer),
            Some(rule) => {
                write!(f, "rule `{}` of layer {}", rule.pattern, self.layer)?;
                if let Some(file) = &rule.file {
                    write!(f, " ({}", file.display())?;
                    if let Some(line) = rule.line {
                        write!(f, ":{line}")?;
                    }
                    write!(f, ")")?;
                }
                if let Some(reason) = &rule.reason {
                    write!(f, ": {reason}")?;
                }
                Ok(())
            }
        }
    }
}
