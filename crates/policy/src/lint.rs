//! Rules that are read without an error and yet do not say what their author meant.

use crate::act::{Act, Effect};
use crate::error::Location;
use crate::glob::{self, Token};
use crate::instant::Timestamp;
use crate::layer::Layer;
use crate::pattern::{Pattern, fold_for};
use crate::policy::Policy;
use crate::rule::Rule;
use serde::Serialize;
use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;

/// What a lint is about. The names do not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum LintCode {
    /// A pattern that cannot be used; the rule errs to the strict side.
    BrokenPattern,
    /// `cargo test*` also matches `cargo testify`.
    UnboundWord,
    /// No target is ever spelled like this.
    NeverMatches,
    /// An allow that a deny always beats.
    ShadowedByDeny,
    /// An allow that an ask always beats.
    ShadowedByAsk,
    /// The same rule stands further down.
    DuplicateRule,
    /// An allow for a program that runs whatever its arguments say.
    AllowsAnyProgram,
    /// An allow for every program, or for every host.
    AllowsEverything,
    /// An allow in a layer that may only tighten.
    IgnoredAllow,
    /// A rule that has ended.
    Expired,
}

impl LintCode {
    /// Every code.
    pub const ALL: [Self; 10] = [
        Self::BrokenPattern,
        Self::UnboundWord,
        Self::NeverMatches,
        Self::ShadowedByDeny,
        Self::ShadowedByAsk,
        Self::DuplicateRule,
        Self::AllowsAnyProgram,
        Self::AllowsEverything,
        Self::IgnoredAllow,
        Self::Expired,
    ];

    /// The name, as it is printed and serialised.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BrokenPattern => "broken-pattern",
            Self::UnboundWord => "unbound-word",
            Self::NeverMatches => "never-matches",
            Self::ShadowedByDeny => "shadowed-by-deny",
            Self::ShadowedByAsk => "shadowed-by-ask",
            Self::DuplicateRule => "duplicate-rule",
            Self::AllowsAnyProgram => "allows-any-program",
            Self::AllowsEverything => "allows-everything",
            Self::IgnoredAllow => "ignored-allow",
            Self::Expired => "expired",
        }
    }

    /// How much it matters.
    pub const fn severity(self) -> Severity {
        match self {
            Self::BrokenPattern => Severity::Error,
            Self::UnboundWord
            | Self::NeverMatches
            | Self::ShadowedByDeny
            | Self::ShadowedByAsk
            | Self::AllowsAnyProgram
            | Self::AllowsEverything => Severity::Warning,
            Self::DuplicateRule | Self::IgnoredAllow | Self::Expired => Severity::Note,
        }
    }
}

impl fmt::Display for LintCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How much a lint matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// The rule hardly does what was meant.
    Warning,
    /// The rule cannot be used.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// One doubtful rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Lint {
    /// What it is about.
    pub code: LintCode,
    /// How much it matters.
    pub severity: Severity,
    /// The layer's name.
    pub layer: String,
    /// The rule's place in its layer, from 0.
    pub index: usize,
    /// The rule's pattern.
    pub pattern: String,
    /// The file the layer was read from.
    pub file: Option<PathBuf>,
    /// Where the rule stands in it.
    pub location: Option<Location>,
    /// What is doubtful.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
}

impl fmt::Display for Lint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.severity, self.code)?;
        if let Some(file) = &self.file {
            write!(f, " {}", file.display())?;
            if let Some(location) = &self.location {
                write!(f, ":{}:{}", location.line, location.column)?;
            }
        }
        write!(f, ": layer {}, rule `{}`: {}", self.layer, self.pattern, self.message)?;
        if let Some(help) = &self.help {
            write!(f, "; {help}")?;
        }
        Ok(())
    }
}

/// Programs that run whatever their arguments say.
const RUNS_ANYTHING: &[(&str, &[&str])] = &[
    ("a shell", &["sh", "bash", "dash", "zsh", "fish", "ksh", "busybox", "pwsh"]),
    (
        "an interpreter",
        &[
            "python",
            "python2",
            "python3",
            "perl",
            "ruby",
            "node",
            "deno",
            "bun",
            "php",
            "lua",
            "tclsh",
            "awk",
            "gawk",
            "osascript",
        ],
    ),
    (
        "a program that starts others",
        &[
            "env",
            "xargs",
            "nohup",
            "timeout",
            "nice",
            "ionice",
            "setsid",
            "stdbuf",
            "time",
            "watch",
            "parallel",
            "command",
            "eval",
            "exec",
            "npx",
            "uvx",
            "ssh",
            "docker",
            "podman",
            "chroot",
            "unshare",
            "nsenter",
            "systemd-run",
            "strace",
            "gdb",
        ],
    ),
    ("a program that becomes another user", &["sudo", "doas", "su", "pkexec", "runuser"]),
];

/// Whether a program is known to run whatever its arguments say: a shell, an interpreter, a program that starts others, or
/// one that becomes another user. A rule that allows it with any arguments allows everything.
///
/// ```
/// assert!(cmdgate_policy::runs_anything("bash"));
/// assert!(!cmdgate_policy::runs_anything("ls"));
/// ```
pub fn runs_anything(program: &str) -> bool {
    RUNS_ANYTHING.iter().any(|(_, programs)| programs.contains(&program))
}

/// What is doubtful about a policy, in the order of its layers and rules.
///
/// ```
/// use cmdgate_policy::{LintCode, Policy, lint};
/// let policy = Policy::default().layer("app").allow_exec("cargo test*");
/// let lints = lint(&policy);
/// assert_eq!(lints[0].code, LintCode::UnboundWord);
/// assert_eq!(lints[0].help.as_deref(), Some("write `cargo test **`"));
/// ```
pub fn lint(policy: &Policy) -> Vec<Lint> {
    lint_with(policy, None)
}

/// [`lint`] at a known time, which also finds the rules that have ended.
pub fn lint_at(policy: &Policy, now: impl Into<Timestamp>) -> Vec<Lint> {
    lint_with(policy, Some(now.into()))
}

fn lint_with(policy: &Policy, now: Option<Timestamp>) -> Vec<Lint> {
    let layers: Vec<(&Layer, Vec<Rule>)> =
        policy.layers().iter().map(|layer| (layer, layer.all_rules())).collect();
    let mut seen: HashMap<RuleKey<'_>, &str> = HashMap::new();
    let mut lints = Vec::new();
    for (layer, rules) in &layers {
        for (index, rule) in rules.iter().enumerate() {
            let mut report = |code: LintCode, message: String, help: Option<String>| {
                lints.push(Lint {
                    code,
                    severity: code.severity(),
                    layer: layer.name.clone(),
                    index,
                    pattern: rule.pattern.as_str().to_owned(),
                    file: layer.origin.clone(),
                    location: rule.location.clone(),
                    message,
                    help,
                });
            };
            if let Some(problem) = rule.problem() {
                let meanwhile = match rule.effect {
                    Effect::Allow => "until then it allows nothing".to_owned(),
                    Effect::Ask | Effect::Deny => format!("until then it holds for every {}", rule.act),
                };
                report(LintCode::BrokenPattern, problem.to_string(), Some(meanwhile));
                continue;
            }
            if rule.effect == Effect::Allow && layer.tighten_only {
                let message = "this layer may only tighten, so its allows do not count".to_owned();
                report(LintCode::IgnoredAllow, message, None);
                continue;
            }
            if let (Some(end), Some(now)) = (rule.expires, now)
                && now >= end
            {
                report(LintCode::Expired, format!("the rule ended at {end}"), Some("remove it".to_owned()));
                continue;
            }
            if let Some(first) = seen.insert(RuleKey::of(rule), &layer.name) {
                seen.insert(RuleKey::of(rule), first);
                report(LintCode::DuplicateRule, format!("the same rule stands in layer {first}"), None);
                continue;
            }
            if let Some((message, help)) = never_matches(rule) {
                report(LintCode::NeverMatches, message, help);
                continue;
            }
            if rule.effect == Effect::Allow
                && let Some((code, message)) = shadow(policy, &layers, rule)
            {
                report(code, message, Some("remove it, or narrow the other".to_owned()));
                continue;
            }
            if let Some((code, message, help)) = too_wide(policy, rule) {
                report(code, message, help);
                continue;
            }
            if let Some((message, help)) = unbound_word(rule) {
                report(LintCode::UnboundWord, message, Some(help));
            }
        }
    }
    lints
}

/// What makes two rules the same.
#[derive(PartialEq, Eq, Hash)]
struct RuleKey<'a> {
    act: Act,
    effect: Effect,
    pattern: &'a str,
    except: Vec<&'a str>,
    whole: bool,
    words: bool,
    expires: Option<Timestamp>,
}

impl<'a> RuleKey<'a> {
    fn of(rule: &'a Rule) -> Self {
        Self {
            act: rule.act,
            effect: rule.effect,
            pattern: rule.pattern.as_str(),
            except: rule.except.iter().map(Pattern::as_str).collect(),
            whole: rule.whole,
            words: rule.words,
            expires: rule.expires,
        }
    }
}

/// Why no target is spelled the way the rule wants.
fn never_matches(rule: &Rule) -> Option<(String, Option<String>)> {
    if rule.except.iter().any(|except| except.covers(&rule.pattern, rule.act)) {
        return Some(("its own `except` takes everything out of it".to_owned(), None));
    }
    let text = rule.pattern.as_str();
    match rule.act {
        Act::Read | Act::Write => {
            if text.starts_with('~') || text.starts_with('$') {
                let message = "paths are checked as the shell has expanded them".to_owned();
                return Some((message, Some("write the folder's path, or start with `*/`".to_owned())));
            }
            let mut below = false;
            for part in text.split('/') {
                if part == ".." && below {
                    return Some(("paths are checked without `..` after a folder".to_owned(), None));
                }
                below |= !matches!(part, ".." | "." | "");
            }
            None
        }
        Act::Exec => {
            if text.starts_with(' ') || text.ends_with(' ') || text.contains("  ") {
                let message = "only a command with an empty argument has such spaces".to_owned();
                return Some((message, Some("write single spaces between words".to_owned())));
            }
            let words: Vec<&str> = text.split(' ').collect();
            if let Some(operator) = words
                .iter()
                .find(|word| matches!(**word, "&&" | "||" | ";" | "|" | "&" | ">" | ">>" | "<" | "2>"))
            {
                let message =
                    format!("each command of a line is checked on its own, so none holds a `{operator}`");
                return Some((message, Some("write a rule for each command".to_owned())));
            }
            let quote = |mark: char| words.iter().any(|word| word.starts_with(mark) || word.ends_with(mark));
            if quote('"') || quote('\'') {
                let message = "the words of a command are checked without their quotes".to_owned();
                return Some((message, Some("leave the quotes out".to_owned())));
            }
            let assigns = |word: &str| {
                word.split_once('=').is_some_and(|(name, _)| {
                    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
                })
            };
            if words.len() > 1 && words.first().is_some_and(|word| assigns(word)) {
                let message = "an assignment before a command is no part of what is checked".to_owned();
                return Some((message, Some("start with the program".to_owned())));
            }
            None
        }
        Act::Net => {
            let host = text.split_once("://").map_or(text, |(_, rest)| rest);
            let bad = host.contains(|c: char| c.is_whitespace() || c == '@')
                || (!text.contains("://") && text.contains('/'));
            bad.then(|| {
                let message = "what is checked is a host, or a host and a port".to_owned();
                (message, Some("write it like `example.com` or `example.com:443`".to_owned()))
            })
        }
    }
}

/// The deny, or else the ask, that always beats an allow.
fn shadow(policy: &Policy, layers: &[(&Layer, Vec<Rule>)], rule: &Rule) -> Option<(LintCode, String)> {
    let inner = rule.pattern.spelled_out(rule.act);
    let mut asked = None;
    for (layer_number, rule_number) in policy.rules_that_may_cover(rule.act, &inner) {
        let Some((layer, rules)) = layers.get(layer_number) else { continue };
        let Some(other) = rules.get(rule_number) else { continue };
        let stricter = other.effect > Effect::Allow && other.problem().is_none();
        if !stricter || !other.except.is_empty() || other.expires.is_some() || !rule_covers(other, &inner) {
            continue;
        }
        let message =
            format!("the {} `{}` of layer {} beats it always", other.effect, other.pattern, layer.name);
        if other.effect == Effect::Deny {
            return Some((LintCode::ShadowedByDeny, message));
        }
        asked.get_or_insert((LintCode::ShadowedByAsk, message));
    }
    asked
}

/// Whether a deny or an ask holds for every target of a pattern.
fn rule_covers(outer: &Rule, inner: &[Vec<Token>]) -> bool {
    let act = outer.act;
    let outer_lists: Vec<_> =
        outer.pattern.spelled_out(act).iter().map(|tokens| fold_for(act, tokens)).collect();
    inner.iter().all(|tokens| {
        let folded = fold_for(act, tokens);
        let anchored = outer.whole || outer.pattern.as_str().ends_with('/');
        let part = if anchored { None } else { named_part(act, &folded) };
        outer_lists
            .iter()
            .any(|outer| glob::covers(outer, &folded) || part.is_some_and(|part| glob::covers(outer, part)))
    })
}

/// The part of a pattern that is the program, or the last component, of every target it matches.
pub(crate) fn named_part(act: Act, tokens: &[Token]) -> Option<&[Token]> {
    let open =
        |token: &Token| matches!(token, Token::Star | Token::StarStar | Token::AnyChar | Token::Class(_));
    match act {
        Act::Exec => {
            let program = tokens.split(|token| *token == Token::Char(' ')).next()?;
            (!program.iter().any(open)).then_some(program)
        }
        Act::Read | Act::Write => {
            let name = tokens.rsplit(|token| *token == Token::Char('/')).next()?;
            (name.len() < tokens.len() && !name.is_empty() && !name.iter().any(open)).then_some(name)
        }
        Act::Net => None,
    }
}

/// An allow for programs that run anything, or for all there is.
fn too_wide(policy: &Policy, rule: &Rule) -> Option<(LintCode, String, Option<String>)> {
    if rule.effect != Effect::Allow {
        return None;
    }
    let everything = rule.pattern.covers(&Pattern::lenient("*"), rule.act);
    match rule.act {
        Act::Read | Act::Write => None,
        Act::Net => everything.then(|| {
            (LintCode::AllowsEverything, "it allows every host".to_owned(), Some("name the hosts".to_owned()))
        }),
        Act::Exec if everything && !rule.whole => {
            let help = Some("name the programs".to_owned());
            Some((LintCode::AllowsEverything, "it allows every program".to_owned(), help))
        }
        Act::Exec => {
            let (kind, program) = RUNS_ANYTHING.iter().find_map(|(kind, programs)| {
                let program = programs.iter().find(|program| {
                    let with_arguments = Pattern::lenient(format!("{program} *"));
                    (!rule.whole && rule.pattern.matches(Act::Exec, program))
                        || rule.pattern.covers(&with_arguments, Act::Exec)
                });
                program.map(|program| (kind, program))
            })?;
            if policy.runs_only_in_sandbox(program) {
                return None;
            }
            let message =
                format!("it allows `{program}` with any arguments, {kind}: it runs whatever they say");
            let help = "name the arguments too, or leave it to be asked".to_owned();
            Some((LintCode::AllowsAnyProgram, message, Some(help)))
        }
    }
}

/// `cargo test*`: the star runs on into the word.
fn unbound_word(rule: &Rule) -> Option<(String, String)> {
    if rule.act != Act::Exec || rule.effect != Effect::Allow {
        return None;
    }
    let stem = rule.pattern.as_str().strip_suffix('*')?;
    let word = stem.rsplit(' ').next()?;
    // `--flag=*`, `src/*` and `v1.*` mean what they say; so does an escaped star.
    let last = word.chars().next_back().filter(|c| c.is_alphanumeric())?;
    if word.starts_with('-') || word.contains(['/', '*', '?', '[', '{', '\\']) {
        return None;
    }
    let other = format!("{stem}{}", if last == 'x' { "y" } else { "x" });
    Some((format!("it also matches `{other}`, another word"), format!("write `{stem} **`")))
}
