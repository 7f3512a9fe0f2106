//! The permission rules of other agents, read into a layer of this program's own.
//!
//! Every source has its way of combining rules: the strictest counts (Codex), deny before ask before allow (Claude
//! Code, Cursor, Copilot), the highest priority (Gemini), the last one (opencode). A [`Layer`] has one, deny before
//! ask before allow, so each source's own is worked out here, rule against rule. Where that cannot be done exactly,
//! what is carried over is *stricter*, and the report says so: what the source denies or asks about, the import never
//! allows. Nothing is executed and no file but the named ones is read.

mod claude;
#[cfg(feature = "import-codex")]
mod codex;
mod copilot;
mod cursor;
mod gemini;
mod json;
mod opencode;
mod ordered;
mod path;
mod text;

use cmdgate_policy::{Act, Defaults, Effect, Layer, Pattern, Policy, PolicyErrors, Rule};
use std::collections::HashSet;
use std::fmt;
use text::Wild;

/// A source file larger than this, in bytes, is refused: people write rules by hand.
pub const LARGEST_FILE: u64 = 4 * 1024 * 1024;
/// Programs that only run another, and variables before it; agents that go by the text see those in the first place.
const WRAPPERS: &[&str] = &["assignment", "command", "ionice", "nice", "stdbuf", "time", "timeout"];
const BEYOND: &str = "what a rule denies or asks about with a wildcard may also stand behind a redirection or in a comment; \
     such lines are asked about";
/// The most rules that are taken from all files together.
const MOST_RULES: usize = 20_000;

/// Whose rules they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// Claude Code: `permissions` of its `settings.json`.
    Claude,
    /// Codex: its `.rules` files.
    Codex,
    /// Gemini CLI: its policy files.
    Gemini,
    /// Cursor: `permissions.json`, and `cli-config.json` or `cli.json` of its command line.
    Cursor,
    /// opencode: `permission` or `permissions` of its configuration.
    Opencode,
    /// Copilot CLI: a file with its options, or its saved permissions.
    Copilot,
}

impl Source {
    /// The name on the command line, also that of the imported layer after `imported-`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Cursor => "cursor",
            Self::Opencode => "opencode",
            Self::Copilot => "copilot",
        }
    }

    /// How the source combines rules that match the same command.
    pub const fn combines(self) -> &'static str {
        match self {
            Self::Claude => "a deny beats an ask, an ask beats an allow",
            Self::Codex => "the strictest rule that matches counts",
            Self::Gemini => "the rule with the highest priority counts",
            Self::Cursor | Self::Copilot => "a deny beats an allow, and what no rule allows is asked about",
            Self::Opencode => "the last rule that matches counts",
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One file to import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// What errors and reasons call it.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// How faithfully a rule was carried over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Carried {
    /// It means the same here.
    Exactly,
    /// It allows less here, or denies or asks about more.
    Stricter,
    /// Not at all.
    Not,
}

impl Carried {
    /// The stable spelling.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exactly => "exactly",
            Self::Stricter => "stricter",
            Self::Not => "not",
        }
    }
}

/// What became of one rule or setting of the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The file.
    pub file: String,
    /// The line in it, from 1.
    pub line: usize,
    /// The rule as the source has it, on one line.
    pub source: String,
    /// How faithfully it was carried over.
    pub carried: Carried,
    /// Why not exactly; empty where it was.
    pub why: String,
    /// The rules it became, as `effect act pattern`.
    pub became: Vec<String>,
}

/// What was read from the source's files.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// Whose rules they were.
    pub source: Source,
    /// The rules.
    pub layer: Layer,
    /// What became of each rule of the source, in the order of the files.
    pub entries: Vec<Entry>,
    /// What differs for all of them.
    pub remarks: Vec<&'static str>,
}

/// Why nothing was imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {what}; nothing was imported")]
#[non_exhaustive]
pub struct ImportError {
    /// The file.
    pub file: String,
    /// The line in it, from 1.
    pub line: usize,
    /// What is wrong, and what to do about it.
    pub what: String,
}

impl ImportError {
    fn new(file: &SourceFile, line: usize, what: impl Into<String>) -> Self {
        Self { file: file.name.clone(), line, what: what.into() }
    }
}

/// Reads the rules of all files into one layer.
///
/// ```
/// use cmdgate_harness::import::{Carried, Source, SourceFile, import};
/// use cmdgate_policy::{Effect, Policy};
/// let text = r#"{"permissions":{"allow":["Bash(npm run *)"],"deny":["Bash(npm run deploy *)"]}}"#;
/// let file = SourceFile { name: "settings.json".to_owned(), text: text.to_owned() };
/// let imported = import(Source::Claude, &[file])?;
/// assert!(imported.entries.iter().all(|entry| entry.carried == Carried::Exactly));
/// let policy = Policy::default().with_layer(imported.layer);
/// assert_eq!(policy.check_exec(&["npm", "run", "build"]).effect, Effect::Allow);
/// assert_eq!(policy.check_exec(&["npm", "run", "deploy", "now"]).effect, Effect::Deny);
/// # Ok::<(), cmdgate_harness::import::ImportError>(())
/// ```
///
/// # Errors
///
/// The first thing in a file that is not what its source would accept there. Nothing is imported then.
pub fn import(source: Source, files: &[SourceFile]) -> Result<Imported, ImportError> {
    let mut draft = Draft::new(source);
    for file in files {
        let size = u64::try_from(file.text.len()).unwrap_or(u64::MAX);
        if size > LARGEST_FILE {
            let what = format!("the file has {size} bytes, and at most {LARGEST_FILE} are read");
            return Err(ImportError::new(file, 1, what));
        }
    }
    match source {
        Source::Claude => claude::read(files, &mut draft)?,
        #[cfg(feature = "import-codex")]
        Source::Codex => codex::read(files, &mut draft)?,
        #[cfg(not(feature = "import-codex"))]
        Source::Codex => {
            let what =
                "this program was built without the feature import-codex, so it does not read Starlark";
            let file =
                files.first().cloned().unwrap_or(SourceFile { name: String::new(), text: String::new() });
            return Err(ImportError::new(&file, 1, what));
        }
        Source::Gemini => gemini::read(files, &mut draft)?,
        Source::Cursor => cursor::read(files, &mut draft)?,
        Source::Opencode => opencode::read(files, &mut draft)?,
        Source::Copilot => copilot::read(files, &mut draft)?,
    }
    Ok(draft.imported)
}

impl Imported {
    /// The layer as a policy file, with a comment that says where it comes from.
    ///
    /// # Errors
    ///
    /// When a rule cannot be written; every rule was read by the policy's own reader before, so that is a fault of
    /// this program.
    pub fn to_toml(&self) -> Result<String, PolicyErrors> {
        let policy = Policy::with_defaults(Defaults::default()).with_layer(self.layer.clone());
        let rules = policy.to_toml()?;
        let mut files: Vec<&str> = self.entries.iter().map(|entry| entry.file.as_str()).collect();
        files.dedup();
        let files = files.join(", ");
        let files: String = files.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        Ok(format!(
            "# Imported from the rules of {} ({files}) by `harness import`.\n\
             # Look at what became of each rule with `harness import {} FILE --report`.\n\n{rules}",
            self.source, self.source
        ))
    }

    /// How many rules of the source were carried over that way.
    pub fn count(&self, carried: Carried) -> usize {
        self.entries.iter().filter(|entry| entry.carried == carried).count()
    }
}

/// The layer while it is being put together.
struct Draft {
    imported: Imported,
    /// What its rules say, so that none is there twice.
    said: HashSet<String>,
}

/// Where a rule stands in its source.
struct Place<'f> {
    file: &'f SourceFile,
    line: usize,
    source: String,
}

impl<'f> Place<'f> {
    fn new(file: &'f SourceFile, line: usize, source: impl AsRef<str>) -> Self {
        Self { file, line, source: one_line(source.as_ref()) }
    }
}

impl Draft {
    fn new(source: Source) -> Self {
        let layer = Layer::new(format!("imported-{source}"));
        let imported = Imported { source, layer, entries: Vec::new(), remarks: Vec::new() };
        Self { imported, said: HashSet::new() }
    }

    /// What a rule became. Rules that the layer has already are not added again.
    fn carry(
        &mut self,
        place: &Place<'_>,
        carried: Carried,
        why: &str,
        rules: Vec<Rule>,
    ) -> Result<(), ImportError> {
        if self.imported.entries.len() >= MOST_RULES || self.imported.layer.rules.len() >= MOST_RULES {
            let what = format!("there are more than {MOST_RULES} rules");
            return Err(ImportError::new(place.file, place.line, what));
        }
        let became =
            rules.iter().map(|rule| format!("{} {} {}", rule.effect, rule.act, rule.pattern)).collect();
        for mut rule in rules {
            let from = format!("{}:{}: {}", place.file.name, place.line, place.source);
            let reason =
                rule.reason.take().map_or_else(|| from.clone(), |reason| format!("{reason} ({from})"));
            rule.reason = Some(one_line(&reason));
            self.push(rule);
        }
        self.imported.entries.push(Entry {
            file: place.file.name.clone(),
            line: place.line,
            source: place.source.clone(),
            carried,
            why: why.to_owned(),
            became,
        });
        Ok(())
    }

    /// An allow for commands: carried over exactly, or not at all.
    fn allow(&mut self, wild: &Wild, place: &Place<'_>) -> Result<(), ImportError> {
        let made = wild.for_allowing().and_then(|translated| {
            let rules = translated.patterns.iter().map(|pattern| command_rule(Effect::Allow, pattern));
            rules.collect::<Result<Vec<_>, _>>()
        });
        match made {
            Ok(rules) => self.carry(place, Carried::Exactly, "", rules),
            Err(why) => self.leave(place, &why),
        }
    }

    /// A deny or ask for commands. `stricter` says why it holds for more than the source's rule, where it does for other
    /// reasons than its wildcards.
    fn tighten(
        &mut self,
        effect: Effect,
        wild: &Wild,
        place: &Place<'_>,
        is_exact: bool,
        stricter: &str,
    ) -> Result<(), ImportError> {
        let translated = wild.for_tightening();
        let rules: Vec<_> =
            translated.patterns.iter().filter_map(|pattern| command_rule(effect, pattern).ok()).collect();
        if rules.len() != translated.patterns.len() {
            let rules = command_rule(effect, "*").into_iter().collect();
            let why = "its text is too long: it holds for every command";
            return self.carry(place, Carried::Stricter, why, rules);
        }
        match (translated.exact && is_exact, wild.beyond_words()) {
            (true, None) => self.carry(place, Carried::Exactly, "", rules)?,
            (true, Some(_)) => self.carry(place, Carried::Stricter, BEYOND, rules)?,
            (false, _) => self.carry(place, Carried::Stricter, stricter, rules)?,
        }
        self.ask_beyond_words(wild);
        Ok(())
    }

    /// Asks about a line in which a rule that denies or asks may match what is in no word.
    fn ask_beyond_words(&mut self, wild: &Wild) {
        if let Some((names, pattern)) = wild.beyond_words() {
            self.ask_with_syntax_of(&pattern, &names, BEYOND);
        }
    }

    /// A rule that is left out.
    fn leave(&mut self, place: &Place<'_>, why: &str) -> Result<(), ImportError> {
        self.carry(place, Carried::Not, why, Vec::new())
    }

    /// A rule that stands for no single one of the source, but for how the source treats all of them.
    fn guard(&mut self, rule: Rule, why: &'static str) {
        self.push(rule.because(why));
        if !self.imported.remarks.contains(&why) {
            self.imported.remarks.push(why);
        }
    }

    fn push(&mut self, rule: Rule) {
        let except: Vec<&str> = rule.except.iter().map(Pattern::as_str).collect();
        let says = format!(
            "{} {} {} {} {} {}",
            rule.effect,
            rule.act,
            rule.whole,
            rule.words,
            rule.pattern,
            except.join("\n")
        );
        if self.said.insert(says) {
            self.imported.layer.rules.push(rule);
        }
    }

    /// For every command that is allowed, an ask where the line has such syntax: see [`crate::syntax`].
    fn ask_with_syntax(&mut self, names: &[&str], why: &'static str) {
        let allowed = |rule: &&Rule| rule.act == Act::Exec && rule.effect == Effect::Allow;
        let rules = self.imported.layer.rules.iter().filter(allowed);
        let patterns: Vec<String> = rules.map(|rule| rule.pattern.as_str().to_owned()).collect();
        for pattern in patterns {
            self.ask_with_syntax_of(&pattern, names, why);
        }
    }

    /// The same for one command.
    fn ask_with_syntax_of(&mut self, pattern: &str, names: &[&str], why: &'static str) {
        let names = match names {
            [] => return,
            [name] => (*name).to_owned(),
            names if names.len() == crate::syntax::NAMES.len() => "*".to_owned(),
            names => format!("{{{}}}", names.join(",")),
        };
        // With any syntax, or even for any command, where the alternatives are too many.
        let texts = [format!("syntax:{names} {pattern}"), format!("syntax:* {pattern}")];
        let pattern = texts.into_iter().find_map(|text| Pattern::new(text).ok());
        let pattern = pattern.unwrap_or_else(|| Pattern::lenient("syntax:*"));
        self.guard(Rule::with_pattern(Act::Exec, Effect::Ask, pattern).whole(), why);
    }
}

/// A rule about whole commands: a rule for `npm run build` says nothing about `npm`.
fn command_rule(effect: Effect, pattern: &str) -> Result<Rule, String> {
    let rule = Rule::new(Act::Exec, effect, pattern).map_err(|error| error.to_string())?.whole();
    Ok(if effect == Effect::Allow { rule.words() } else { rule })
}

/// The same text without line breaks, and not longer than a person reads.
fn one_line(text: &str) -> String {
    const LONGEST: usize = 200;
    let mut line: String = text.chars().take(LONGEST).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(LONGEST).is_some() {
        line.push('…');
    }
    line
}

/// What every import has to say where a pattern cannot be read.
fn pattern_of(text: &str) -> Result<Pattern, String> {
    Pattern::new(text).map_err(|error| error.to_string())
}
