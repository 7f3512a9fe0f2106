//! Imported rules against small models of the agents they come from.
//!
//! Each model is written here from what its agent documents, knows nothing of the import, and decides about command
//! lines that are put together from parts. What must hold for every line: what the agent's rules deny or ask about, the
//! import does not allow; and what a rule of the import allows, the agent allows in some spelling of the same words.

mod claude;
mod cli;
mod codex;
mod copilot;
mod cursor;
mod gemini;
mod learn;
mod opencode;

use cmdgate_harness::gate::{Gate, Request, Source as DecidedBy};
use cmdgate_harness::import::{Source, SourceFile, import};
use cmdgate_policy::{ApprovalPolicy, Effect, Policy, SandboxMode};
use std::fmt::Debug;

/// How many rule sets are tried for each agent, each with [`LINES`] command lines.
const SETS: u64 = 400;
const LINES: usize = 12;

/// Pseudo-random choices that a number repeats.
pub struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % end
    }

    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

pub const PROGRAMS: &[&str] = &["npm", "cargo", "git", "rm", "mk", "find", "watch", "docker", "ls"];
pub const WORDS: &[&str] = &[
    "run",
    "test",
    "status",
    "push",
    "main",
    "-rf",
    "--force",
    "x",
    "a b",
    "it's",
    "src/a.rs",
    "-exec",
    "deploy",
    "",
    "test:unit",
    "$X",
    "log",
];

const REDIRECTS: &[&str] =
    &["> out.txt", ">> src/a.rs", "2>/dev/null", "> /dev/null", "< a.txt", "<<< x", "&> out.txt", "2>&1"];
/// Ends of what stands behind a redirection, and of words: a pattern that ends like this may mean either.
pub const ENDS: &[&str] = &["out.txt", "a.rs", "null", "1", "&1", "x", " x", ".txt", "txt"];

/// How a word is spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Without quotes where that is possible, else in single quotes.
    Plain,
    Single,
    Double,
    Backslash,
    /// As it is.
    Verbatim,
}

pub const STYLES: [Style; 4] = [Style::Plain, Style::Single, Style::Double, Style::Backslash];

fn spell(word: &str, style: Style) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    match style {
        Style::Plain if !word.is_empty() && word.chars().all(plain) => word.to_owned(),
        Style::Plain | Style::Single => format!("'{}'", word.replace('\'', "'\\''")),
        Style::Double => {
            format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\"").replace('$', "\\$"))
        }
        Style::Verbatim => word.to_owned(),
        Style::Backslash if word.is_empty() => "''".to_owned(),
        Style::Backslash => {
            word.chars().map(|c| if plain(c) { c.to_string() } else { format!("\\{c}") }).collect()
        }
    }
}

/// One command of a line.
#[derive(Debug, Clone)]
pub struct Part {
    pub assignment: Option<&'static str>,
    /// Words before the command that only run it.
    pub wrapper: Option<&'static str>,
    pub words: Vec<(String, Style)>,
    pub redirect: Option<&'static str>,
    /// The redirection stands before the words.
    pub redirect_first: bool,
    /// It stands in `$( … )` as an argument of this program.
    pub inside: Option<&'static str>,
}

impl Part {
    /// The words as they are spelled.
    pub fn text(&self) -> String {
        let words: Vec<String> = self.words.iter().map(|(word, style)| spell(word, *style)).collect();
        words.join(" ")
    }

    pub fn words(&self) -> Vec<&str> {
        self.words.iter().map(|(word, _)| word.as_str()).collect()
    }

    /// The whole text, with all that stands before and behind the words.
    pub fn whole(&self) -> String {
        Self { inside: None, ..self.clone() }.render()
    }

    /// The text with all that stands before the words.
    pub fn before(&self) -> String {
        Self { inside: None, redirect: None, ..self.clone() }.render()
    }

    fn render(&self) -> String {
        let mut out = String::new();
        for before in [self.assignment, self.wrapper].into_iter().flatten() {
            out += before;
            out += " ";
        }
        let words = self.text();
        match self.redirect {
            None => out += &words,
            Some(redirect) if self.redirect_first => out += &format!("{redirect} {words}"),
            Some(redirect) => out += &format!("{words} {redirect}"),
        }
        match self.inside {
            Some(program) => format!("{program} $({out})"),
            None => out,
        }
    }
}

/// A command line.
#[derive(Debug, Clone)]
pub struct Line {
    pub parts: Vec<Part>,
    joins: Vec<&'static str>,
    /// All of it in `( … )`.
    pub subshell: bool,
}

impl Line {
    fn render(&self) -> String {
        let mut out = String::new();
        for (at, part) in self.parts.iter().enumerate() {
            if at > 0 {
                out += self.joins[at - 1];
            }
            out += &part.render();
        }
        if self.subshell { format!("({out})") } else { out }
    }

    /// Every word in this style.
    fn spelled(&self, style: Style) -> Self {
        let mut line = self.clone();
        for (_, spelled) in line.parts.iter_mut().flat_map(|part| &mut part.words) {
            if *spelled != Style::Verbatim {
                *spelled = style;
            }
        }
        line
    }
}

/// A line that has something to do with one of these texts, in which `*` stands for anything.
fn line(dice: &mut Dice, templates: &[String]) -> Line {
    let count = 1 + dice.below(6) / 4 + dice.below(6) / 5;
    let parts: Vec<Part> = (0..count).map(|_| part(dice, templates)).collect();
    let joins = parts.iter().map(|_| dice.pick(&[" && ", " || ", "; ", " | ", "\n", " &&"])).collect();
    Line { parts, joins, subshell: dice.one_in(25) }
}

fn part(dice: &mut Dice, templates: &[String]) -> Part {
    let mut words: Vec<String> = Vec::new();
    if templates.is_empty() || dice.one_in(5) {
        words.push(dice.pick(PROGRAMS).to_owned());
        for _ in 0..dice.below(4) {
            words.push(dice.pick(WORDS).to_owned());
        }
    } else {
        let template = &templates[dice.below(templates.len())];
        for word in template.split_whitespace() {
            let filled: Vec<&str> = word.split('*').collect();
            match dice.below(12) {
                // Less than the pattern wants, or more, or something else.
                0 => {}
                1 => words.push(dice.pick(WORDS).to_owned()),
                2 => words.extend([filled.join(dice.pick(WORDS)), dice.pick(WORDS).to_owned()]),
                _ => words.push(filled.join(dice.pick(WORDS))),
            }
        }
        if dice.one_in(4) {
            words.push(dice.pick(WORDS).to_owned());
        }
        // Two words as one.
        if words.len() > 1 && dice.one_in(12) {
            let second = words.remove(1);
            words[0] = format!("{} {second}", words[0]);
        }
    }
    if words.first().is_none_or(|program| program.is_empty() || program.starts_with('-')) {
        words.insert(0, dice.pick(PROGRAMS).to_owned());
    }
    let rare = |dice: &mut Dice, of: &[&'static str]| dice.one_in(16).then(|| dice.pick(of));
    Part {
        assignment: rare(dice, &["FOO=1", "PATH=/tmp", "LD_PRELOAD=x"]),
        wrapper: rare(
            dice,
            &["timeout 5", "nice", "ionice", "env", "sudo", "time", "nohup", "setsid", "command"],
        ),
        words: words
            .into_iter()
            .map(|word| (word, if dice.one_in(5) { dice.pick(&STYLES) } else { Style::Plain }))
            .collect(),
        redirect: if dice.one_in(8) { Some(dice.pick(REDIRECTS)) } else { None },
        redirect_first: dice.one_in(4),
        inside: rare(dice, &["mk", "npm"]),
    }
}

/// What an agent's rules say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says {
    Allow,
    /// A rule asks.
    Ask,
    Deny,
    /// No rule speaks; the agent asks, or has a judgement of its own.
    Nothing,
}

/// What is said about a line when every command in it is looked at: the strictest.
pub fn every_part(line: &Line, says: impl Fn(&Part) -> Says) -> Says {
    let mut all = Vec::new();
    for part in &line.parts {
        all.push(says(&Part { inside: None, ..part.clone() }));
        if let Some(program) = part.inside {
            let argument = format!("$({})", part.whole());
            let words = vec![(program.to_owned(), Style::Plain), (argument, Style::Verbatim)];
            all.push(says(&Part {
                words,
                assignment: None,
                wrapper: None,
                redirect: None,
                redirect_first: false,
                inside: None,
            }));
        }
    }
    all.into_iter().fold(Says::Allow, stricter)
}

/// The stricter of two.
pub fn stricter(one: Says, other: Says) -> Says {
    let strict = [Says::Deny, Says::Ask, Says::Nothing];
    strict.into_iter().find(|says| [one, other].contains(says)).unwrap_or(Says::Allow)
}

/// A text that rules are made from: a program and some words.
pub fn start(dice: &mut Dice) -> String {
    let mut words = vec![dice.pick(PROGRAMS).to_owned()];
    for _ in 0..dice.below(3) {
        words.push(dice.pick(WORDS).to_owned());
    }
    words.join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// An agent's rules, made up, and what the agent says with them.
pub trait Model: Debug + Sized {
    const SOURCE: Source;
    /// Whether what is denied or asked about in one spelling is so in all. Where a rule that allows overrides one that
    /// denies, needless quotes keep it from matching: then it is the command that counts, and not how it is spelled.
    const IN_EVERY_SPELLING: bool = true;
    fn make(dice: &mut Dice) -> Self;
    /// The rules as the agent's own file.
    fn file(&self) -> String;
    /// Texts that lines are made from.
    fn templates(&self) -> Vec<String>;
    fn says(&self, line: &Line) -> Says;
}

/// Tries a model, and gives back the share of what the agent's rules allow that the import allows too.
fn hold<M: Model>() -> f64 {
    let root = tempfile::tempdir().unwrap();
    let (mut allowed, mut carried) = (0_u32, 0_u32);
    for seed in 0..SETS {
        let mut dice = Dice::new(seed + 1);
        let model = M::make(&mut dice);
        let file = SourceFile { name: "rules".to_owned(), text: model.file() };
        let imported = import(M::SOURCE, &[file]).unwrap_or_else(|error| panic!("{error}\n{}", model.file()));
        let toml = imported.to_toml().unwrap();
        // What counts is what a person would load.
        let layers = cmdgate_policy::PolicyFile::parse("imported", &toml).unwrap().into_layers("imported");
        let policy = layers.into_iter().fold(Policy::default(), Policy::with_layer);
        let mut settings = policy.settings();
        settings.sandbox = Some(SandboxMode::WorkspaceWrite);
        settings.approval = Some(ApprovalPolicy::OnRequest);
        let gate = Gate::new(root.path(), policy, settings).unwrap();
        let templates = model.templates();
        for _ in 0..LINES {
            let line = line(&mut dice, &templates);
            let text = line.render();
            let decision = gate.decide(&Request::shell(text.clone()));
            let says = model.says(&line);
            let context = || format!("seed {seed}: {text}\n{line:?}\n{model:?}\n{toml}\n{}", decision.reason);
            let somehow = STYLES.iter().any(|style| model.says(&line.spelled(*style)) == Says::Allow);
            if matches!(says, Says::Ask | Says::Deny) && (M::IN_EVERY_SPELLING || !somehow) {
                assert_ne!(
                    decision.effect,
                    Effect::Allow,
                    "{says:?}, and the import allows it: {}",
                    context()
                );
            }
            // Where the rest of a line only reads, no rule is needed for it: that is no rule of the import.
            let by_rules_alone = !decision.reason.ends_with("; the rest only reads");
            if decision.effect == Effect::Allow && decision.source == DecidedBy::Rule && by_rules_alone {
                assert!(
                    says == Says::Allow || somehow,
                    "{says:?}, and a rule of the import allows it: {}",
                    context()
                );
            }
            if says == Says::Allow {
                allowed += 1;
                carried += u32::from(decision.effect == Effect::Allow);
            }
        }
    }
    assert!(allowed > 100, "the test says something only if the rules allow something: {allowed}");
    let share = f64::from(carried) / f64::from(allowed);
    eprintln!("{}: of {allowed} allowed lines, {share:.2} are allowed", M::SOURCE);
    share
}

/// Whether a pattern with `*` for any text matches a whole text.
pub fn wild(pattern: &str, text: &str) -> bool {
    wild_with(pattern, text, None)
}

/// The same with a character for any one character.
pub fn wild_with(pattern: &str, text: &str, one: Option<char>) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let mut reached = vec![false; text.len() + 1];
    reached[0] = true;
    for p in pattern {
        if p == '*' {
            let first = reached.iter().position(|here| *here).unwrap_or(reached.len());
            reached[first..].fill(true);
        } else {
            for at in (0..text.len()).rev() {
                reached[at + 1] = reached[at] && (text[at] == p || one == Some(p));
            }
            reached[0] = false;
        }
    }
    reached[text.len()]
}

#[test]
fn the_models_own_matcher_matches() {
    for (pattern, text, expected) in [
        ("", "", true),
        ("*", "", true),
        ("a*c", "abc", true),
        ("a*c", "ab", false),
        ("a", "ab", false),
        ("*b*", "abc", true),
        ("a*b*c", "acb", false),
        ("a b", "a b", true),
    ] {
        assert_eq!(wild(pattern, text), expected, "{pattern} {text}");
    }
}
