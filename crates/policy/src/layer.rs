//! Layers: who said it.

use crate::act::Defaults;
use crate::program::Program;
use crate::rule::Rule;
use crate::settings::Settings;
use std::path::PathBuf;

/// A named list of rules with one origin: the built-in ones, an operator's file, a project's file, …
///
/// Layers are stacked, and the strictest rule of all of them wins, so their order tells only which of
/// several equally strict rules is named.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Layer {
    /// Its name, shown with every answer it gives. Names may repeat.
    pub name: String,
    /// Its rules.
    pub rules: Vec<Rule>,
    /// The programs it lets start, with what is to be known of each; for every one there are `allow` rules.
    pub programs: Vec<Program>,
    /// What it answers for acts where no rule matches.
    pub defaults: Defaults,
    /// Its settings.
    pub settings: Settings,
    /// The file it was read from.
    pub origin: Option<PathBuf>,
    /// The layer could have been written by the agent itself: its allows are ignored, its denies and asks
    /// count, and its settings count where they are stricter.
    pub tighten_only: bool,
    /// Layers above may make this layer's settings stricter, and not looser.
    pub lock: bool,
}

impl Layer {
    /// An empty layer.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Says where the layer was read from.
    #[must_use]
    pub fn with_origin(mut self, origin: impl Into<PathBuf>) -> Self {
        self.origin = Some(origin.into());
        self
    }

    /// Says whether the layer may only tighten: see [`Layer::tighten_only`].
    #[must_use]
    pub fn with_tighten_only(mut self, tighten_only: bool) -> Self {
        self.tighten_only = tighten_only;
        self
    }

    /// Adds a rule.
    #[must_use]
    pub fn with_rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Its own rules and those it implies, in the order that [`crate::RuleRef::index`] counts.
    pub fn all_rules(&self) -> Vec<Rule> {
        let mut rules = self.rules.clone();
        rules.append(&mut self.implied_rules());
        rules
    }

    /// The rules that the layer's programs and settings imply: its `secrets` can be neither read nor
    /// written, its `network` domains are allowed or denied, and so on. They count as if they were written
    /// after its own, and [`crate::RuleRef::index`] goes on into them.
    pub fn implied_rules(&self) -> Vec<Rule> {
        let mut rules: Vec<Rule> = self.programs.iter().flat_map(Program::implied_rules).collect();
        rules.append(&mut self.settings.implied_rules());
        rules
    }
}
