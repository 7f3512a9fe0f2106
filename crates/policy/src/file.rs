//! Policy files: reading them with the place of every fault, and writing them.

use crate::act::{Act, Defaults, Effect};
use crate::error::{Location, PolicyError, PolicyErrorKind, PolicyErrors};
use crate::index::Alone;
use crate::instant::Moment;
use crate::layer::Layer;
use crate::pattern::Pattern;
use crate::policy::Policy;
use crate::program::Program;
use crate::rule::Rule;
use crate::settings::{
    ApprovalPolicy, Environment, Grammar, Limits, Network, ProfileName, SandboxMode, Settings, Trace,
};
use regex_lite::Regex;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;
use std::ops::Range;
use toml::Spanned;

/// The largest policy, in bytes.
pub(crate) const MAX_FILE_BYTES: usize = 64 * 1024 * 1024;

/// A policy file as it is written.
#[derive(Debug, Default, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Policy"))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RawFile {
    /// The name of the layer, shown with every answer it gives. Without one, the name the program gives it.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// The layer's allows are ignored, and its settings count only where they are stricter.
    #[serde(skip_serializing_if = "is_false")]
    tighten_only: bool,
    /// Layers above may make these settings stricter, and not looser.
    #[serde(skip_serializing_if = "is_false")]
    lock: bool,
    /// The ready-made set of rules to start from.
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<ProfileName>,
    /// What the kernel lets a command do.
    #[serde(skip_serializing_if = "Option::is_none")]
    sandbox: Option<SandboxMode>,
    /// When a person is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<ApprovalPolicy>,
    /// Which command lines are read at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    grammar: Option<Grammar>,
    /// A list of commands ends at the first that fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_at_first_failure: Option<bool>,
    /// Outcomes carry advice where a dedicated tool would have done.
    #[serde(skip_serializing_if = "Option::is_none")]
    hints: Option<bool>,
    /// Folders besides the project that commands may read: absolute, `~/…`, or relative to the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<Vec<String>>"))]
    read_roots: Option<Vec<Spanned<String>>>,
    /// Folders besides the project that commands may write.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<Vec<String>>"))]
    write_roots: Option<Vec<Spanned<String>>>,
    /// Paths inside the project that stay read-only, as patterns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    protected_paths: Vec<Spanned<String>>,
    /// Entries of `protected_paths` of lower layers that are taken out again, by their exact text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<Vec<String>>"))]
    unprotected_paths: Option<Vec<Spanned<String>>>,
    /// Files that are neither read nor written, as patterns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    secrets: Vec<Spanned<String>>,
    /// Folders that are neither read nor written, with all that is in them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    blocked_paths: Vec<Spanned<String>>,
    /// What is answered where no rule matches.
    #[serde(skip_serializing_if = "Defaults::is_empty")]
    defaults: Defaults,
    /// Network hosts.
    #[serde(skip_serializing_if = "RawNetwork::is_empty")]
    network: RawNetwork,
    /// The environment of commands.
    #[serde(skip_serializing_if = "RawEnvironment::is_empty")]
    environment: RawEnvironment,
    /// Time, output and kernel limits.
    #[serde(skip_serializing_if = "is_default")]
    limits: Limits,
    /// What the record of runs holds, and how long.
    #[serde(skip_serializing_if = "RawTrace::is_empty")]
    trace: RawTrace,
    /// Programs that may start, each with what is to be known of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    program: Vec<RawProgram>,
    /// The rules.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rule: Vec<RawRule>,
    /// Further layers, on top of this one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(with = "Vec<RawFile>"))]
    layer: Vec<Spanned<RawFile>>,
}

/// Which network hosts may be reached.
#[derive(Debug, Default, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Network"))]
#[serde(default, deny_unknown_fields)]
struct RawNetwork {
    /// Hosts that may be reached: `crates.io`, `*.github.com`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<Vec<String>>"))]
    allow_domains: Option<Vec<Spanned<String>>>,
    /// Hosts that may not, and all below them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    deny_domains: Vec<Spanned<String>>,
}

impl RawNetwork {
    fn is_empty(&self) -> bool {
        self.allow_domains.is_none() && self.deny_domains.is_empty()
    }
}

/// The environment of commands.
#[derive(Debug, Default, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Environment"))]
#[serde(default, deny_unknown_fields)]
struct RawEnvironment {
    /// Names of variables that are passed on besides the harmless ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<Vec<String>>"))]
    add: Option<Vec<Spanned<String>>>,
}

impl RawEnvironment {
    fn is_empty(&self) -> bool {
        self.add.is_none()
    }
}

/// What the record of runs holds, and how long.
#[derive(Debug, Default, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Trace"))]
#[serde(default, deny_unknown_fields)]
struct RawTrace {
    /// Regular expressions for texts that are taken out before anything is written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    redact: Vec<Spanned<String>>,
    /// Runs that are older, in days, are removed; left out, none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    keep_days: Option<NonZeroU64>,
    /// The oldest runs are removed when the record uses more bytes; left out, none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_bytes: Option<NonZeroU64>,
}

impl RawTrace {
    fn is_empty(&self) -> bool {
        self.redact.is_empty() && self.keep_days.is_none() && self.max_bytes.is_none()
    }
}

/// One program that may start.
#[derive(Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Program"))]
#[serde(deny_unknown_fields)]
struct RawProgram {
    /// Its name, as PATH knows it.
    #[cfg_attr(test, schemars(with = "String"))]
    name: Spanned<String>,
    /// What it is for; shown as the reason of its rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    purpose: Option<String>,
    /// It can start other programs or write: it runs inside the read-only sandbox with the network off, or
    /// not at all.
    #[serde(default, skip_serializing_if = "is_false")]
    only_in_sandbox: bool,
    /// The arguments that are allowed, each a pattern for all of them, an empty one for none; left out, any
    /// are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<Vec<String>>"))]
    arguments: Option<Vec<Spanned<String>>>,
    /// The dedicated tool that would have done, as a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

/// One rule.
#[derive(Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Rule"))]
#[serde(deny_unknown_fields)]
struct RawRule {
    /// What it is about.
    act: Act,
    /// What it answers.
    effect: Effect,
    /// Which targets: `*` is anything, `?` one character, ` **` at the end is bound at a word.
    #[cfg_attr(test, schemars(with = "String"))]
    pattern: Spanned<String>,
    /// Targets that the pattern matches and the rule does not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    except: Vec<Spanned<String>>,
    /// Only the whole target counts, not a program without its arguments nor the last component of a path.
    #[serde(default, skip_serializing_if = "is_false")]
    whole: bool,
    /// For an allow, the spaces of the pattern stand between words, and not within one; for a deny or an ask, those of
    /// its exceptions.
    #[serde(default, skip_serializing_if = "is_false")]
    words: bool,
    /// Why it is there; shown with every answer it gives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Targets that the rule must match; checked when the file is read.
    #[serde(default, rename = "match", skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    matches: Vec<Spanned<String>>,
    /// Targets that the rule must not match; checked when the file is read.
    #[serde(default, rename = "not_match", skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    not_matches: Vec<Spanned<String>>,
    /// From when on the rule counts no more: a date with a time and a time zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<ExpiresSchema>"))]
    expires: Option<Spanned<Moment>>,
}

/// A date with a time and a time zone, bare or in quotes.
#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[schemars(rename = "Expires", extend("format" = "date-time"))]
#[expect(dead_code, reason = "only its schema is used")]
struct ExpiresSchema(String);

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A policy file that was read: its layers, each with rules and settings.
///
/// ```
/// use cmdgate_policy::{Effect, Policy, PolicyFile};
/// let file = PolicyFile::parse("project.toml", r#"
///     [[rule]]
///     act = "exec"
///     effect = "allow"
///     pattern = "cargo test **"
///     reason = "the tests are ours"
///     match = ["cargo test", "cargo test --all"]
///     not_match = ["cargo testify"]
/// "#)?;
/// let policy = Policy::default().with_layer(file.into_layers("project").remove(0));
/// let ruling = policy.check_exec(&["cargo", "test"]);
/// assert_eq!(ruling.effect, Effect::Allow);
/// assert_eq!(ruling.to_string(), "allow exec: rule `cargo test **` of layer project (project.toml:5): the tests are ours");
/// # Ok::<(), cmdgate_policy::PolicyErrors>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyFile {
    source_name: String,
    /// The file's own layer, with an empty name where the file gives none.
    own: Layer,
    /// Its `[[layer]]` entries.
    more: Vec<Layer>,
}

/// One `match` or `not_match` example, tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ExampleResult {
    /// The layer's name.
    pub layer: String,
    /// The rule's pattern.
    pub pattern: String,
    /// The rule's act.
    pub act: Act,
    /// The example.
    pub example: String,
    /// Whether the rule is to match it.
    pub expected: bool,
    /// Whether the rule does.
    pub matched: bool,
    /// Where the rule stands.
    pub location: Option<Location>,
}

impl ExampleResult {
    /// Whether the rule does what the example says.
    pub fn passed(&self) -> bool {
        self.expected == self.matched
    }
}

impl PolicyFile {
    /// Reads a policy file. `source_name` is what errors and answers call it, usually its path.
    ///
    /// A key or value that policies do not have ends the reading; of patterns, times and examples that are
    /// wrong, all are reported at once.
    pub fn parse(source_name: &str, text: &str) -> Result<Self, PolicyErrors> {
        if text.len() > MAX_FILE_BYTES {
            let kind = PolicyErrorKind::TooLarge { bytes: text.len(), limit: MAX_FILE_BYTES };
            return Err(PolicyError::known(kind, Some(source_name), None).into());
        }
        let raw: RawFile = toml::from_str(text).map_err(|error| {
            let at = error.span().and_then(|span| text.get(span)).unwrap_or_default();
            let kind = syntax_error(error.message(), at);
            match error.span() {
                Some(span) => PolicyError::at(kind, source_name, text, span),
                None => PolicyError::known(kind, Some(source_name), None),
            }
        })?;
        let mut reader = Reader { source_name, text, lines: LineIndex::new(text), errors: Vec::new() };
        let (own, more) = reader.file(raw);
        match PolicyErrors::from_list(reader.errors) {
            Some(errors) => Err(errors),
            None => Ok(Self { source_name: source_name.to_owned(), own, more }),
        }
    }

    /// A file that was read when the crate was tested.
    pub(crate) fn of_parts(source_name: &str, own: Layer, more: Vec<Layer>) -> Self {
        Self { source_name: source_name.to_owned(), own, more }
    }

    #[cfg(test)]
    pub(crate) fn parts(&self) -> (&str, &Layer, &[Layer]) {
        (&self.source_name, &self.own, &self.more)
    }

    /// What the file was called.
    pub fn source_name(&self) -> &str {
        &self.source_name
    }

    /// The file's own settings; its `[[layer]]` entries have theirs.
    pub fn settings(&self) -> &Settings {
        &self.own.settings
    }

    /// The layers of the file, its own first. `name` is for a file that gives itself none.
    pub fn into_layers(self, name: &str) -> Vec<Layer> {
        let mut own = self.own;
        if own.name.is_empty() {
            name.clone_into(&mut own.name);
        }
        std::iter::once(own).chain(self.more).collect()
    }

    /// The file as a policy of its own: its defaults are the base, an act left out is denied.
    pub fn into_policy(self) -> Policy {
        let base = self.own.defaults;
        let mut layers = self.into_layers("policy");
        if let Some(own) = layers.first_mut() {
            own.defaults = Defaults::default();
        }
        if layers.first().is_some_and(is_hollow) {
            layers.remove(0);
        }
        layers.into_iter().fold(Policy::with_defaults(base), Policy::with_layer)
    }

    /// Tries every example of every rule again, for a report.
    pub fn run_examples(&self) -> Vec<ExampleResult> {
        let layers = std::iter::once(&self.own).chain(&self.more);
        layers.flat_map(|layer| layer.rules.iter().flat_map(|rule| examples(&layer.name, rule))).collect()
    }
}

/// The reader's message in the words of a policy file, with a guess at what was meant.
fn syntax_error(said: &str, at: &str) -> PolicyErrorKind {
    let message = said
        .replace("a nonzero u64", "a whole number from 1")
        .replace("wanted string or table", "expected one word in quotes")
        .replace("invalid type: map, expected a sequence", "expected a list");
    let help = if said.starts_with("unknown ") {
        // "unknown field `x`, expected one of `a`, `b`": what stands between backticks are the names.
        let mut names = said.split('`').skip(1).step_by(2);
        let given = names.next().unwrap_or_default();
        let nearest = names.max_by(|a, b| likeness(given, a).total_cmp(&likeness(given, b)));
        nearest.filter(|name| likeness(given, name) > 0.7).map(|name| format!("did you mean `{name}`?"))
    } else if matches!(at, "[rule]" | "[layer]" | "[program]") {
        Some(format!("each one is written in double brackets: [{at}]"))
    } else {
        None
    };
    PolicyErrorKind::Syntax { message, help }
}

fn likeness(a: &str, b: &str) -> f64 {
    strsim::jaro_winkler(a, b)
}

/// Whether leaving the layer out changes nothing.
fn is_hollow(layer: &Layer) -> bool {
    layer.rules.is_empty()
        && layer.programs.is_empty()
        && layer.defaults.is_empty()
        && layer.settings == Settings::default()
        && !layer.lock
}

fn examples(layer: &str, rule: &Rule) -> Vec<ExampleResult> {
    if rule.matches.is_empty() && rule.not_matches.is_empty() {
        return Vec::new();
    }
    let alone = Alone::new(rule);
    let wanted = rule.matches.iter().map(|example| (example, true));
    let unwanted = rule.not_matches.iter().map(|example| (example, false));
    wanted
        .chain(unwanted)
        .map(|(example, expected)| ExampleResult {
            layer: layer.to_owned(),
            pattern: rule.pattern.as_str().to_owned(),
            act: rule.act,
            example: example.clone(),
            expected,
            matched: alone.matches(example),
            location: rule.location.clone(),
        })
        .collect()
}

/// Where lines start, so that a place is found without counting from the top each time.
struct LineIndex {
    starts: Vec<usize>,
}

impl LineIndex {
    fn new(text: &str) -> Self {
        let after_newlines =
            text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Self { starts: std::iter::once(0).chain(after_newlines).collect() }
    }

    fn locate(&self, text: &str, span: Range<usize>) -> Location {
        let line = self.starts.partition_point(|start| *start <= span.start);
        let start = self.starts.get(line.saturating_sub(1)).copied().unwrap_or(0);
        let column = text.get(start..span.start).unwrap_or_default().chars().count() + 1;
        Location { span, line, column }
    }
}

/// What turns the written form into layers, and keeps what is wrong.
struct Reader<'a> {
    source_name: &'a str,
    text: &'a str,
    lines: LineIndex,
    errors: Vec<PolicyError>,
}

impl Reader<'_> {
    fn fault(&mut self, kind: PolicyErrorKind, span: Range<usize>) {
        let location = self.lines.locate(self.text, span);
        self.errors.push(PolicyError::known(kind, Some(self.source_name), Some(location)));
    }

    fn file(&mut self, mut raw: RawFile) -> (Layer, Vec<Layer>) {
        let more = std::mem::take(&mut raw.layer);
        let own = self.layer(raw);
        let more = more
            .into_iter()
            .enumerate()
            .map(|(number, entry)| {
                for nested in &entry.get_ref().layer {
                    self.fault(PolicyErrorKind::NestedLayer, nested.span());
                }
                let mut layer = self.layer(entry.into_inner());
                if layer.name.is_empty() {
                    layer.name = format!("layer {}", number + 1);
                }
                layer
            })
            .collect();
        (own, more)
    }

    fn layer(&mut self, raw: RawFile) -> Layer {
        let settings = Settings {
            profile: raw.profile,
            sandbox: raw.sandbox,
            approval: raw.approval,
            grammar: raw.grammar,
            stop_at_first_failure: raw.stop_at_first_failure,
            hints: raw.hints,
            read_roots: raw.read_roots.map(|roots| self.paths("read_roots", roots)),
            write_roots: raw.write_roots.map(|roots| self.paths("write_roots", roots)),
            protected_paths: self.patterns(raw.protected_paths),
            unprotected_paths: raw.unprotected_paths.map(|paths| self.patterns(paths)),
            secrets: self.patterns(raw.secrets),
            blocked_paths: self.paths("blocked_paths", raw.blocked_paths),
            network: Network {
                allow_domains: raw.network.allow_domains.map(|domains| self.patterns(domains)),
                deny_domains: self.patterns(raw.network.deny_domains),
            },
            environment: Environment { add: raw.environment.add.map(|names| self.variables(names)) },
            limits: raw.limits,
            trace: Trace {
                redact: self.expressions(raw.trace.redact),
                keep_days: raw.trace.keep_days,
                max_bytes: raw.trace.max_bytes,
            },
        };
        Layer {
            name: raw.name.unwrap_or_default(),
            programs: raw.program.into_iter().map(|program| self.program(program)).collect(),
            rules: raw.rule.into_iter().map(|rule| self.rule(rule)).collect(),
            defaults: raw.defaults,
            settings,
            origin: Some(self.source_name.into()),
            tighten_only: raw.tighten_only,
            lock: raw.lock,
        }
    }

    fn rule(&mut self, raw: RawRule) -> Rule {
        let faults_before = self.errors.len();
        // Where a person finds the rule: at its pattern.
        let place = self.lines.locate(self.text, raw.pattern.span());
        let pattern = self.pattern(raw.pattern);
        let except = raw.except.into_iter().map(|pattern| self.pattern(pattern)).collect();
        let expires = raw.expires.and_then(|moment| {
            let read = moment.get_ref().read();
            read.map_err(|problem| self.fault(PolicyErrorKind::Expires(problem), moment.span())).ok()
        });
        let example_spans: Vec<_> = raw.matches.iter().chain(&raw.not_matches).map(Spanned::span).collect();
        let rule = Rule {
            except,
            whole: raw.whole,
            words: raw.words,
            reason: raw.reason,
            matches: raw.matches.into_iter().map(Spanned::into_inner).collect(),
            not_matches: raw.not_matches.into_iter().map(Spanned::into_inner).collect(),
            expires,
            location: Some(place),
            ..Rule::with_pattern(raw.act, raw.effect, pattern)
        };
        if self.errors.len() == faults_before {
            for (result, span) in examples("", &rule).into_iter().zip(example_spans) {
                let (pattern, example) = (result.pattern.clone(), result.example.clone());
                match (result.expected, result.matched) {
                    (true, false) => {
                        self.fault(PolicyErrorKind::ExampleNotMatched { pattern, example }, span);
                    }
                    (false, true) => self.fault(PolicyErrorKind::ExampleMatched { pattern, example }, span),
                    (true, true) | (false, false) => {}
                }
            }
        }
        rule
    }

    fn program(&mut self, raw: RawProgram) -> Program {
        let span = raw.name.span();
        let location = Some(self.lines.locate(self.text, span.clone()));
        let name = raw.name.into_inner();
        if let Some(problem) = Program::problem_with_name(&name) {
            let value = name.clone();
            self.fault(PolicyErrorKind::Value { key: "program.name", value, problem }, span);
        }
        let arguments = raw.arguments.map(|arguments| {
            let read = arguments.into_iter().map(|text| {
                // Nothing at all stands for no arguments.
                if text.get_ref().is_empty() { String::new() } else { self.pattern(text).as_str().to_owned() }
            });
            read.collect()
        });
        Program {
            name,
            purpose: raw.purpose,
            only_in_sandbox: raw.only_in_sandbox,
            arguments,
            hint: raw.hint,
            location,
        }
    }

    fn pattern(&mut self, text: Spanned<String>) -> Pattern {
        let span = text.span();
        let pattern = Pattern::lenient(text.into_inner());
        if let Some(problem) = pattern.problem() {
            let kind =
                PolicyErrorKind::Pattern { pattern: pattern.as_str().to_owned(), problem: problem.clone() };
            self.fault(kind, span);
        }
        pattern
    }

    fn patterns(&mut self, texts: Vec<Spanned<String>>) -> Vec<String> {
        texts.into_iter().map(|text| self.pattern(text).as_str().to_owned()).collect()
    }

    fn paths(&mut self, key: &'static str, texts: Vec<Spanned<String>>) -> Vec<String> {
        self.checked(key, texts, |path| {
            if path.trim().is_empty() {
                return Some("it is empty; write `.` for the project itself");
            }
            path.contains('\0').then_some("no path holds a NUL byte")
        })
    }

    fn variables(&mut self, names: Vec<Spanned<String>>) -> Vec<String> {
        self.checked("environment.add", names, |name| {
            let first = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
            let others = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            (!first || !others).then_some("the name of a variable has letters, digits and `_` only")
        })
    }

    fn expressions(&mut self, texts: Vec<Spanned<String>>) -> Vec<String> {
        for text in &texts {
            let problem = match Regex::new(text.get_ref()) {
                Ok(expression) if expression.is_match("") => "it matches the empty text".to_owned(),
                Ok(_) => continue,
                Err(error) => error.to_string(),
            };
            let kind = PolicyErrorKind::Expression { expression: text.get_ref().clone(), problem };
            self.fault(kind, text.span());
        }
        texts.into_iter().map(Spanned::into_inner).collect()
    }

    fn checked(
        &mut self,
        key: &'static str,
        texts: Vec<Spanned<String>>,
        fault: impl Fn(&str) -> Option<&'static str>,
    ) -> Vec<String> {
        for text in &texts {
            if let Some(problem) = fault(text.get_ref()) {
                let kind = PolicyErrorKind::Value { key, value: text.get_ref().clone(), problem };
                self.fault(kind, text.span());
            }
        }
        texts.into_iter().map(Spanned::into_inner).collect()
    }
}

/// Writes a policy as TOML.
pub(crate) fn write(policy: &Policy) -> Result<String, PolicyErrors> {
    if let Some(errors) = PolicyErrors::from_list(policy.errors()) {
        return Err(errors);
    }
    let raw = RawFile {
        defaults: policy.base_defaults(),
        layer: policy.layers().iter().map(|layer| unspanned(raw_layer(layer))).collect(),
        ..RawFile::default()
    };
    toml::to_string(&raw)
        .map_err(|error| PolicyError::new(PolicyErrorKind::Write { message: error.to_string() }).into())
}

fn unspanned<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
}

fn unspanned_all(values: &[String]) -> Vec<Spanned<String>> {
    values.iter().cloned().map(unspanned).collect()
}

fn raw_layer(layer: &Layer) -> RawFile {
    let settings = &layer.settings;
    let optional = |list: &Option<Vec<String>>| list.as_deref().map(unspanned_all);
    RawFile {
        name: Some(layer.name.clone()),
        tighten_only: layer.tighten_only,
        lock: layer.lock,
        profile: settings.profile,
        sandbox: settings.sandbox,
        approval: settings.approval,
        grammar: settings.grammar,
        stop_at_first_failure: settings.stop_at_first_failure,
        hints: settings.hints,
        read_roots: optional(&settings.read_roots),
        write_roots: optional(&settings.write_roots),
        protected_paths: unspanned_all(&settings.protected_paths),
        unprotected_paths: optional(&settings.unprotected_paths),
        secrets: unspanned_all(&settings.secrets),
        blocked_paths: unspanned_all(&settings.blocked_paths),
        defaults: layer.defaults,
        network: RawNetwork {
            allow_domains: optional(&settings.network.allow_domains),
            deny_domains: unspanned_all(&settings.network.deny_domains),
        },
        environment: RawEnvironment { add: optional(&settings.environment.add) },
        limits: settings.limits,
        trace: RawTrace {
            redact: unspanned_all(&settings.trace.redact),
            keep_days: settings.trace.keep_days,
            max_bytes: settings.trace.max_bytes,
        },
        program: layer.programs.iter().map(raw_program).collect(),
        rule: layer.rules.iter().map(raw_rule).collect(),
        layer: Vec::new(),
    }
}

fn raw_program(program: &Program) -> RawProgram {
    RawProgram {
        name: unspanned(program.name.clone()),
        purpose: program.purpose.clone(),
        only_in_sandbox: program.only_in_sandbox,
        arguments: program.arguments.as_deref().map(unspanned_all),
        hint: program.hint.clone(),
    }
}

fn raw_rule(rule: &Rule) -> RawRule {
    let texts = |patterns: &[Pattern]| {
        patterns.iter().map(|pattern| unspanned(pattern.as_str().to_owned())).collect()
    };
    RawRule {
        act: rule.act,
        effect: rule.effect,
        pattern: unspanned(rule.pattern.as_str().to_owned()),
        except: texts(&rule.except),
        whole: rule.whole,
        words: rule.words,
        reason: rule.reason.clone(),
        matches: unspanned_all(&rule.matches),
        not_matches: unspanned_all(&rule.not_matches),
        expires: rule.expires.map(|end| unspanned(Moment::Quoted(end.to_string()))),
    }
}
