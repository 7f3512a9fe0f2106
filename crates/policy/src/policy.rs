//! The stack of layers, and the question.

use crate::act::{Act, Defaults, Effect};
use crate::error::{PolicyError, PolicyErrorKind, PolicyErrors};
use crate::glob::Token;
use crate::index::{Hit, Index, Indexed};
use crate::instant::Timestamp;
use crate::layer::Layer;
use crate::pattern::Pattern;
use crate::rule::Rule;
use crate::ruling::{DEFAULT_LAYER, MatchedOn, RuleRef, Ruling};
use crate::settings::Settings;
use crate::target::{Forms, last_component};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// The name of the layer that rules go to when none was started.
const UNNAMED_LAYER: &str = "base";

/// Layers of rules, and what is answered where no rule matches.
///
/// A deny in any layer beats an ask in any other, an ask beats an allow, and an allow beats the default.
///
/// ```
/// use cmdgate_policy::{Act, Effect, Policy};
/// let policy = Policy::permissive()
///     .layer("ops")
///     .allow_exec("cargo*")
///     .deny_exec("cargo publish*");
/// assert_eq!(policy.check(Act::Exec, "cargo test").effect, Effect::Allow);
/// assert_eq!(policy.check(Act::Exec, "cargo publish --token x").effect, Effect::Deny);
/// ```
///
/// The builder never fails. A rule whose pattern cannot be read errs to the strict side until it is mended
/// (a deny or an ask covers all of its act, an allow nothing), and [`Policy::errors`] lists it.
pub struct Policy {
    base: Defaults,
    layers: Vec<Layer>,
    /// The layer that builder calls add to.
    open: Option<usize>,
    /// Compiled act by act at the first check, for this policy and for its clones.
    index: Arc<Index>,
}

/// Generates the twelve builder methods, one for each effect and act.
macro_rules! builders {
    ($($name:ident($act:ident, $effect:ident) $doc:literal;)+) => {
        impl Policy {
            $(
                #[doc = $doc]
                ///
                /// See [`Pattern`] for the language, and [`Policy`] for what a bad pattern does.
                #[must_use]
                pub fn $name(self, pattern: &str) -> Self {
                    self.rule(Rule::with_pattern(Act::$act, Effect::$effect, Pattern::lenient(pattern)))
                }
            )+
        }
    };
}

builders! {
    allow_read(Read, Allow) "Allows reading paths like this.";
    ask_read(Read, Ask) "Asks before reading paths like this.";
    deny_read(Read, Deny) "Denies reading paths like this.";
    allow_write(Write, Allow) "Allows writing paths like this.";
    ask_write(Write, Ask) "Asks before writing paths like this.";
    deny_write(Write, Deny) "Denies writing paths like this.";
    allow_exec(Exec, Allow) "Allows programs, or whole commands, like this.";
    ask_exec(Exec, Ask) "Asks before programs, or whole commands, like this.";
    deny_exec(Exec, Deny) "Denies programs, or whole commands, like this; `rm` also denies `/bin/rm`.";
    allow_net(Net, Allow) "Allows hosts like this.";
    ask_net(Net, Ask) "Asks before hosts like this.";
    deny_net(Net, Deny) "Denies hosts like this.";
}

impl Policy {
    /// No layers; everything is allowed that no rule holds back.
    pub fn permissive() -> Self {
        Self::with_defaults(Defaults::all(Effect::Allow))
    }

    /// No layers; nothing is allowed that no rule allows.
    pub fn deny_all() -> Self {
        Self::with_defaults(Defaults::all(Effect::Deny))
    }

    /// No layers, and these answers where no rule matches. An act left out is denied.
    pub fn with_defaults(base: Defaults) -> Self {
        Self { base, layers: Vec::new(), open: None, index: Arc::default() }
    }

    /// Starts a layer; the rules that follow go into it. A name used before starts another layer.
    #[must_use]
    pub fn layer(mut self, name: &str) -> Self {
        self.layers.push(Layer::new(name));
        self.open = Some(self.layers.len() - 1);
        self.changed()
    }

    /// Adds a rule to the layer started last; without one, to a layer named `base`.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Self {
        if self.open.is_none() {
            self = self.layer(UNNAMED_LAYER);
        }
        if let Some(layer) = self.open.and_then(|open| self.layers.get_mut(open)) {
            layer.rules.push(rule);
        }
        self.changed()
    }

    /// Adds a layer on top. Rules that follow do not go into it.
    #[must_use]
    pub fn with_layer(mut self, layer: Layer) -> Self {
        self.push_layer(layer);
        self
    }

    /// Adds a layer on top.
    pub fn push_layer(&mut self, layer: Layer) {
        self.layers.push(layer);
        self.open = None;
        self.index = Arc::default();
    }

    /// Leaves out every layer of that name, for those who embed the crate and bring rules of their own in
    /// place of the built-in ones.
    #[must_use]
    pub fn without_layer(mut self, name: &str) -> Self {
        self.layers.retain(|layer| layer.name != name);
        self.open = None;
        self.changed()
    }

    /// Adds all layers of another policy on top; of the two base answers, the stricter counts.
    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        for act in Act::ALL {
            let stricter = self.base_effect(act).max(other.base_effect(act));
            self.base.set(act, Some(stricter));
        }
        self.layers.extend(other.layers);
        self.open = None;
        self.changed()
    }

    /// The same policy without the rules that have ended by then.
    #[must_use]
    pub fn without_expired(mut self, now: impl Into<Timestamp>) -> Self {
        let now = now.into();
        for layer in &mut self.layers {
            layer.rules.retain(|rule| !rule.is_expired(now));
        }
        self.changed()
    }

    fn changed(mut self) -> Self {
        self.index = Arc::default();
        self
    }

    /// The layers, the lowest first.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Every rule with its layer, the lowest layer first.
    pub fn rules(&self) -> impl Iterator<Item = (&Layer, &Rule)> {
        self.layers.iter().flat_map(|layer| layer.rules.iter().map(move |rule| (layer, rule)))
    }

    /// The answers where no rule matches and no layer has a default.
    pub fn base_defaults(&self) -> Defaults {
        self.base
    }

    fn base_effect(&self, act: Act) -> Effect {
        self.base.get(act).unwrap_or(Effect::Deny)
    }

    /// What is answered where no rule matches, and the layer that says so.
    ///
    /// Of the layers that set a default, the strictest counts; the base counts only when none does. A layer
    /// that may only tighten counts only when it is stricter than what the others come to.
    pub fn default_effect(&self, act: Act) -> (Effect, &str) {
        let strictest = |tighten_only: bool| {
            self.layers
                .iter()
                .filter(move |layer| layer.tighten_only == tighten_only)
                .filter_map(|layer| Some((layer.defaults.get(act)?, layer.name.as_str())))
                // The lowest of the equally strict is named: `max_by_key` alone would take the last.
                .rev()
                .max_by_key(|(effect, _)| *effect)
        };
        let trusted = strictest(false).unwrap_or((self.base_effect(act), DEFAULT_LAYER));
        match strictest(true) {
            Some(tighter) if tighter.0 > trusted.0 => tighter,
            _ => trusted,
        }
    }

    /// The settings that all layers come to, over the built-in ones.
    ///
    /// Each layer's count over those below it; a layer that may only tighten only tightens, and nothing
    /// above a layer with a lock is looser than what the layers up to there came to.
    pub fn settings(&self) -> Settings {
        let mut settings = Settings::builtin().clone();
        let mut floor: Option<Settings> = None;
        for layer in &self.layers {
            settings = if layer.tighten_only {
                settings.tighten(&layer.settings)
            } else {
                settings.overlay(&layer.settings)
            };
            if let Some(floor) = &floor {
                settings = floor.tighten(&settings);
            }
            if layer.lock {
                floor = Some(settings.clone());
            }
        }
        settings
    }

    /// What the policy says about an act on a target, with the rule and layer that say it.
    ///
    /// For [`Act::Exec`] the target is a command: the program is what stands before the first space, and the
    /// rules see the program and the whole. Use [`Policy::check_exec`] where the words are known.
    ///
    /// Rules with an end only tighten here, because without a clock they may be over: see
    /// [`Policy::check_at`].
    pub fn check(&self, act: Act, target: &str) -> Ruling {
        self.decide(act, target, &Forms::of(act, target), None)
    }

    /// The same function as [`Policy::check`].
    pub fn explain(&self, act: Act, target: &str) -> Ruling {
        self.check(act, target)
    }

    /// [`Policy::check`] at a known time: rules that have ended by then do not count, others count in full.
    pub fn check_at(&self, act: Act, target: &str, now: impl Into<Timestamp>) -> Ruling {
        self.decide(act, target, &Forms::of(act, target), Some(now.into()))
    }

    /// What the policy says about starting a program: a rule may speak about the program or about the whole
    /// argv joined by spaces, and the strictest that does counts. Denies and asks also know the program by
    /// its basename; allows do not, so a rule for `cargo` does not let `./cargo` start.
    ///
    /// An empty argv is denied.
    ///
    /// ```
    /// use cmdgate_policy::{Effect, Policy};
    /// let policy = Policy::default().layer("app").allow_exec("cargo test **").deny_exec("rm");
    /// assert_eq!(policy.check_exec(&["cargo", "test", "--all"]).effect, Effect::Allow);
    /// assert_eq!(policy.check_exec(&["cargo", "testify"]).effect, Effect::Ask);
    /// assert_eq!(policy.check_exec(&["/bin/rm", "-r", "x"]).effect, Effect::Deny);
    /// ```
    pub fn check_exec(&self, argv: &[impl AsRef<str>]) -> Ruling {
        self.check_exec_with(argv, None)
    }

    /// [`Policy::check_exec`] at a known time.
    pub fn check_exec_at(&self, argv: &[impl AsRef<str>], now: impl Into<Timestamp>) -> Ruling {
        self.check_exec_with(argv, Some(now.into()))
    }

    fn check_exec_with(&self, argv: &[impl AsRef<str>], now: Option<Timestamp>) -> Ruling {
        let joined = argv.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(" ");
        if argv.is_empty() {
            return Ruling {
                effect: Effect::Deny,
                act: Act::Exec,
                target: joined,
                layer: DEFAULT_LAYER.to_owned(),
                rule: None,
                only_in_sandbox: false,
            };
        }
        self.decide(Act::Exec, &joined, &Forms::of_argv(argv, &joined), now)
    }

    /// What the policy says about one thing that goes by several names, such as a file by its absolute path
    /// and by its path in the project. A rule counts whichever of the names it is written for, so the names
    /// must be for the very same thing: check a symlink and what it leads to one by one, and take
    /// [`Ruling::stricter`]. The first name is the one in the answer; without any name the answer is deny.
    pub fn check_names(&self, act: Act, names: &[impl AsRef<str>], now: Option<Timestamp>) -> Ruling {
        let Some((first, others)) = names.split_first() else {
            return Ruling {
                effect: Effect::Deny,
                act,
                target: String::new(),
                layer: DEFAULT_LAYER.to_owned(),
                rule: None,
                only_in_sandbox: false,
            };
        };
        let mut forms = Forms::of(act, first.as_ref());
        for name in others {
            forms.add_target(act, name.as_ref());
        }
        self.decide(act, first.as_ref(), &forms, now)
    }

    /// Every rule that matches a target, the lowest layer first, each with its layer's name: what an
    /// explanation shows beside the one that decided.
    pub fn matching(&self, act: Act, target: &str, now: Option<Timestamp>) -> Vec<(&str, RuleRef)> {
        let forms = Forms::of(act, target);
        let hits = self.index().all(act, &forms, now);
        hits.into_iter().filter_map(|hit| self.describe(&hit, &forms)).collect()
    }

    /// Whether a program, by its name or path, runs inside the read-only sandbox or not at all, because some
    /// layer says so.
    pub fn runs_only_in_sandbox(&self, program: &str) -> bool {
        self.index().is_only_in_sandbox(&Forms::of_argv(&[program], program))
    }

    /// The advice for a program, by its name or path: the tool that would have done. The highest layer that
    /// has any counts; whether advice is wanted, [`Settings::hints`] says.
    pub fn hint(&self, program: &str) -> Option<&str> {
        let name = last_component(program)?;
        let programs = self.layers.iter().rev().flat_map(|layer| &layer.programs);
        programs.filter(|program| program.name == name).find_map(|program| program.hint.as_deref())
    }

    /// The places of the rules that may match everything that these token lists do.
    pub(crate) fn rules_that_may_cover(&self, act: Act, lists: &[Vec<Token>]) -> Vec<(usize, usize)> {
        self.index().may_cover(act, lists)
    }

    /// Compiles the rules now rather than at the first check.
    pub fn compile(&self) {
        self.index().compile();
    }

    fn index(&self) -> Indexed<'_> {
        Indexed { index: &self.index, layers: &self.layers }
    }

    fn decide(&self, act: Act, target: &str, forms: &Forms<'_>, now: Option<Timestamp>) -> Ruling {
        let hits = self.index().look_up(act, forms, now);
        let (default, default_layer) = self.default_effect(act);
        let (effect, hit) = match (hits.deny, hits.ask, hits.allow) {
            (Some(deny), _, _) => (Effect::Deny, Some(deny)),
            (None, Some(ask), _) => (Effect::Ask, Some(ask)),
            (None, None, Some(allow)) => (Effect::Allow, Some(allow)),
            (None, None, None) => (default, None),
        };
        let (effect, hit) = match hits.tightening_ask {
            Some(ask) if effect == Effect::Allow => (Effect::Ask, Some(ask)),
            _ => (effect, hit),
        };
        let named = hit.and_then(|hit| self.describe(&hit, forms));
        let (layer, rule) = match named {
            Some((layer, rule)) => (layer, Some(rule)),
            None => (default_layer, None),
        };
        Ruling {
            effect,
            act,
            target: target.to_owned(),
            layer: layer.to_owned(),
            rule,
            only_in_sandbox: act == Act::Exec && self.index().is_only_in_sandbox(forms),
        }
    }

    fn describe(&self, hit: &Hit, forms: &Forms<'_>) -> Option<(&str, RuleRef)> {
        let layer = self.layers.get(hit.layer)?;
        let on = forms.all().get(hit.form).map_or(MatchedOn::Target, |form| form.on);
        // Beyond the rules that are written come those that the layer's settings imply.
        let implied =
            hit.rule.checked_sub(layer.rules.len()).map(|past| layer.implied_rules().into_iter().nth(past));
        let rule = layer.rules.get(hit.rule).or(implied.as_ref().and_then(Option::as_ref))?;
        let described = RuleRef {
            pattern: rule.pattern.as_str().to_owned(),
            effect: rule.effect,
            index: hit.rule,
            reason: rule.reason.clone(),
            file: layer.origin.clone(),
            line: rule.location.as_ref().map(|location| location.line),
            on,
        };
        Some((&layer.name, described))
    }

    /// The rules that cannot be used as written, and what they do until they are mended: see [`Policy`].
    pub fn errors(&self) -> Vec<PolicyError> {
        let mut errors = Vec::new();
        for layer in &self.layers {
            for rule in layer.rules.iter().chain(&layer.implied_rules()) {
                let broken = std::iter::once(&rule.pattern).chain(&rule.except);
                for (pattern, problem) in broken.filter_map(|pattern| Some((pattern, pattern.problem()?))) {
                    let kind = PolicyErrorKind::Pattern {
                        pattern: pattern.as_str().to_owned(),
                        problem: problem.clone(),
                    };
                    let source = layer.origin.as_deref().map(Path::to_string_lossy);
                    errors.push(PolicyError::known(kind, source.as_deref(), rule.location.clone()));
                }
            }
        }
        errors
    }

    /// The policy itself, or what is wrong with it: for those who would rather stop than run with a rule
    /// that errs to the strict side.
    pub fn validate(self) -> Result<Self, PolicyErrors> {
        match PolicyErrors::from_list(self.errors()) {
            Some(errors) => Err(errors),
            None => Ok(self),
        }
    }

    /// The policy as TOML, which [`Policy::from_toml`] reads back to one that answers the same.
    ///
    /// Fails for a policy with rules that cannot be read: see [`Policy::errors`].
    pub fn to_toml(&self) -> Result<String, PolicyErrors> {
        crate::file::write(self)
    }

    /// Reads a policy of its own from TOML: defaults, settings, rules and layers. A file that is to be one
    /// layer among others is read with [`crate::PolicyFile::parse`].
    ///
    /// `source_name` is what errors and answers call the file.
    pub fn from_toml(source_name: &str, text: &str) -> Result<Self, PolicyErrors> {
        Ok(crate::PolicyFile::parse(source_name, text)?.into_policy())
    }
}

/// The built-in policy: reads are allowed, writes and programs ask, the network is denied; files that hold
/// secrets (`.env`, `*.pem`, `*.key`, `id_rsa`, `id_ed25519` and their like) are denied by the layer
/// `builtin-secrets`.
impl Default for Policy {
    fn default() -> Self {
        crate::builtin::policy()
    }
}

impl Clone for Policy {
    fn clone(&self) -> Self {
        Self { base: self.base, layers: self.layers.clone(), open: self.open, index: Arc::clone(&self.index) }
    }
}

impl PartialEq for Policy {
    /// Whether both say the same; what was compiled of it does not matter.
    fn eq(&self, other: &Self) -> bool {
        self.base == other.base && self.layers == other.layers
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy")
            .field("base", &self.base)
            .field("layers", &self.layers)
            .finish_non_exhaustive()
    }
}
