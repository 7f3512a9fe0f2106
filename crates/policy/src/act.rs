//! What can be asked for, and what can be answered.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A kind of thing an agent asks to do.
///
/// ```
/// use cmdgate_policy::Act;
/// assert_eq!(Act::Exec.to_string(), "exec");
/// assert_eq!("net".parse::<Act>().unwrap(), Act::Net);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Act {
    /// Read a file or a folder; the target is a path.
    Read,
    /// Create, change or remove a file or a folder; the target is a path.
    Write,
    /// Start a program; the target is a program, or an argv joined by spaces.
    Exec,
    /// Reach a network host; the target is `host` or `host:port`.
    Net,
}

impl Act {
    /// Every act, in the order they are declared.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Exec, Self::Net];

    /// The name used in policy files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Exec => "exec",
            Self::Net => "net",
        }
    }

    /// Whether the target is a path.
    pub const fn is_path(self) -> bool {
        match self {
            Self::Read | Self::Write => true,
            Self::Exec | Self::Net => false,
        }
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that names no act, effect or setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not one of {expected}")]
pub struct UnknownName {
    /// What was given.
    pub given: String,
    /// The words that would have done.
    pub expected: &'static str,
}

impl std::str::FromStr for Act {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        Self::ALL
            .into_iter()
            .find(|act| act.as_str() == text)
            .ok_or_else(|| UnknownName { given: text.to_owned(), expected: "read, write, exec, net" })
    }
}

/// What a policy answers. Ordered by strictness: `Allow < Ask < Deny`, so the stricter of two is
/// their maximum.
///
/// ```
/// use cmdgate_policy::Effect;
/// assert_eq!(Effect::Allow.max(Effect::Deny), Effect::Deny);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// Go ahead.
    Allow,
    /// A person, or whoever approves for them, decides.
    Ask,
    /// No; nobody is asked.
    Deny,
}

impl Effect {
    /// Every effect, from the loosest to the strictest.
    pub const ALL: [Self; 3] = [Self::Allow, Self::Ask, Self::Deny];

    /// The name used in policy files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for Effect {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        Self::ALL
            .into_iter()
            .find(|effect| effect.as_str() == text)
            .ok_or_else(|| UnknownName { given: text.to_owned(), expected: "allow, ask, deny" })
    }
}

/// What is answered when no rule matches, for each act that a layer speaks about.
///
/// An act left out is left to the layers below, and in the end to the policy's base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    /// For reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<Effect>,
    /// For writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<Effect>,
    /// For programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exec: Option<Effect>,
    /// For network hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net: Option<Effect>,
}

impl Defaults {
    /// The same effect for every act.
    pub const fn all(effect: Effect) -> Self {
        Self { read: Some(effect), write: Some(effect), exec: Some(effect), net: Some(effect) }
    }

    /// The effect set for an act, if any.
    pub const fn get(&self, act: Act) -> Option<Effect> {
        match act {
            Act::Read => self.read,
            Act::Write => self.write,
            Act::Exec => self.exec,
            Act::Net => self.net,
        }
    }

    /// Sets the effect for an act.
    pub fn set(&mut self, act: Act, effect: Option<Effect>) {
        match act {
            Act::Read => self.read = effect,
            Act::Write => self.write = effect,
            Act::Exec => self.exec = effect,
            Act::Net => self.net = effect,
        }
    }

    /// Whether no act is spoken about.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
