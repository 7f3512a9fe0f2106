//! One rule.

use crate::act::{Act, Effect};
use crate::error::Location;
use crate::instant::Timestamp;
use crate::pattern::Pattern;

/// One row of a policy: for this act, on targets like this, answer that.
///
/// ```
/// use cmdgate_policy::{Act, Effect, Rule};
/// let rule = Rule::new(Act::Exec, Effect::Deny, "git push **")?.because("a person pushes");
/// assert!(rule.matches("git push origin"));
/// assert!(rule.matches("/usr/bin/git push"), "a deny also sees the program by its basename");
/// # Ok::<(), cmdgate_policy::PatternError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// What it is about.
    pub act: Act,
    /// What it answers.
    pub effect: Effect,
    /// Which targets.
    pub pattern: Pattern,
    /// Targets that the pattern matches and the rule does not. They only ever narrow this one rule.
    pub except: Vec<Pattern>,
    /// Only the whole target counts, not a program without its arguments nor the last component of a path:
    /// a rule for `make` then speaks about `make` alone and not about `make install`.
    pub whole: bool,
    /// For an allow: the spaces of the pattern stand between words. A rule for `git status` then does not speak
    /// about the two words `git` and `status x`, which read the same once they are joined; a `*` still stands for
    /// any words, with spaces in them or not. A deny or an ask goes by any reading, and this is for its exceptions:
    /// none of them spares a command by a reading that the words do not have. Without known words
    /// ([`crate::Policy::check`]) it changes nothing.
    pub words: bool,
    /// Why it is there, in its author's words; shown with every answer it gives.
    pub reason: Option<String>,
    /// Targets that this rule must match; checked when a file is read.
    pub matches: Vec<String>,
    /// Targets that this rule must not match; checked when a file is read.
    pub not_matches: Vec<String>,
    /// From when on the rule counts no more.
    pub expires: Option<Timestamp>,
    /// Where it stands in its file.
    pub location: Option<Location>,
}

impl Rule {
    /// A rule with nothing but its three essentials.
    pub fn new(act: Act, effect: Effect, pattern: &str) -> Result<Self, crate::PatternError> {
        Ok(Self::with_pattern(act, effect, Pattern::new(pattern)?))
    }

    /// The same from a pattern that was read already.
    pub fn with_pattern(act: Act, effect: Effect, pattern: Pattern) -> Self {
        Self {
            act,
            effect,
            pattern,
            except: Vec::new(),
            whole: false,
            words: false,
            reason: None,
            matches: Vec::new(),
            not_matches: Vec::new(),
            expires: None,
            location: None,
        }
    }

    /// Says why the rule is there.
    #[must_use]
    pub fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Takes targets out of the rule.
    #[must_use]
    pub fn except(mut self, pattern: Pattern) -> Self {
        self.except.push(pattern);
        self
    }

    /// Makes only the whole target count: see [`Rule::whole`]. What a person approves once and for all as
    /// this very command is `Rule::new(Act::Exec, Effect::Allow, &escape(command))?.whole()`.
    #[must_use]
    pub fn whole(mut self) -> Self {
        self.whole = true;
        self
    }

    /// Makes the spaces of an allow's pattern stand between words: see [`Rule::words`].
    ///
    /// ```
    /// use cmdgate_policy::{Act, Effect, Policy, Rule};
    /// let rule = Rule::new(Act::Exec, Effect::Allow, "git commit -m *")?.words();
    /// let policy = Policy::deny_all().rule(rule);
    /// assert_eq!(policy.check_exec(&["git", "commit", "-m", "two words"]).effect, Effect::Allow);
    /// assert_eq!(policy.check_exec(&["git", "commit -m", "x"]).effect, Effect::Deny);
    /// # Ok::<(), cmdgate_policy::PatternError>(())
    /// ```
    #[must_use]
    pub fn words(mut self) -> Self {
        self.words = true;
        self
    }

    /// Sets from when on the rule counts no more.
    #[must_use]
    pub fn until(mut self, expires: Timestamp) -> Self {
        self.expires = Some(expires);
        self
    }

    /// Whether this rule, alone and unexpired, speaks about the target.
    pub fn matches(&self, target: &str) -> bool {
        crate::index::Alone::new(self).matches(target)
    }

    /// Whether the rule has ended at that time.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|end| now >= end)
    }

    /// What stands in the way of using the rule as written, if anything.
    pub fn problem(&self) -> Option<&crate::PatternError> {
        std::iter::once(&self.pattern).chain(&self.except).find_map(Pattern::problem)
    }
}
