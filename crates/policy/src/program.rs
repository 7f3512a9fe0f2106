//! Rows about programs.

use crate::act::{Act, Effect};
use crate::error::Location;
use crate::pattern::Pattern;
use crate::rule::Rule;

/// A program that may start, and what is to be known of it.
///
/// ```
/// use cmdgate_policy::{Effect, Layer, Policy, Program};
/// let mut layer = Layer::new("tools");
/// layer.programs.push(Program::new("tokei").with_arguments(["", "src **"]));
/// let policy = Policy::deny_all().with_layer(layer);
/// assert_eq!(policy.check_exec(&["tokei"]).effect, Effect::Allow);
/// assert_eq!(policy.check_exec(&["tokei", "src", "--files"]).effect, Effect::Allow);
/// assert_eq!(policy.check_exec(&["tokei", "docs"]).effect, Effect::Deny);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Program {
    /// Its name, as PATH knows it.
    pub name: String,
    /// What it is for; shown as the reason of its rules.
    pub purpose: Option<String>,
    /// It can start other programs or write: it runs inside the read-only sandbox with the network off, or
    /// not at all. See [`crate::Ruling::only_in_sandbox`].
    pub only_in_sandbox: bool,
    /// The arguments that are allowed, each a pattern for all of them joined by spaces; an empty one is for
    /// none. `None` allows any.
    pub arguments: Option<Vec<String>>,
    /// The dedicated tool that would have done, as a sentence.
    pub hint: Option<String>,
    /// Where it stands in its file.
    pub location: Option<Location>,
}

impl Program {
    /// A program that may start with any arguments.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            purpose: None,
            only_in_sandbox: false,
            arguments: None,
            hint: None,
            location: None,
        }
    }

    /// Allows these arguments and no others.
    #[must_use]
    pub fn with_arguments(mut self, arguments: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.arguments = Some(arguments.into_iter().map(Into::into).collect());
        self
    }

    /// Says that the program runs inside the sandbox or not at all.
    #[must_use]
    pub fn only_in_sandbox(mut self) -> Self {
        self.only_in_sandbox = true;
        self
    }

    /// What is wrong with a name, if anything: it stands in patterns as it is.
    pub(crate) fn problem_with_name(name: &str) -> Option<&'static str> {
        if name.is_empty() {
            return Some("the name of a program is not empty");
        }
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '+');
        (!name.chars().all(plain))
            .then_some("a program goes by its plain name; write a [[rule]] for anything else")
    }

    /// The rules that let it start.
    pub(crate) fn implied_rules(&self) -> Vec<Rule> {
        let rule = |pattern: String, whole: bool| {
            // A name that is none makes an allow that matches nothing.
            let text = if Self::problem_with_name(&self.name).is_some() { String::new() } else { pattern };
            Rule {
                whole,
                reason: self.purpose.clone(),
                location: self.location.clone(),
                ..Rule::with_pattern(Act::Exec, Effect::Allow, Pattern::lenient(text))
            }
        };
        match &self.arguments {
            None => vec![rule(format!("{} **", self.name), false)],
            Some(arguments) => arguments
                .iter()
                .map(|arguments| rule(format!("{} {arguments}", self.name).trim_end().to_owned(), true))
                .collect(),
        }
    }
}
