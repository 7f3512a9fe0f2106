//! Asks the person at the terminal (contract P7).

use super::menu::{self, Line};
use super::remember::{self, Remember, Scope};
use super::{Answer, AnswerFuture, Approver, Question};
use crate::diagnose;
use crate::gate::Action;
use crate::present::{self, is_unseen, printable};
use crate::words;
use cmdgate_classifier::{Context, Effects, Grammar, classify, classify_argv};
use cmdgate_policy::{Policy, Rule, SandboxMode, Settings, Timestamp};
use console::Term;
use dialoguer::Input;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::time::{Duration, SystemTime};

/// So many lines of what a file tool would write are shown.
const SHOWN_LINES: usize = 60;
/// The longest command that can be changed at the prompt, in characters.
const LONGEST_CHANGED: usize = 2000;

/// Asks at the terminal: no, once, this session, always, another command, no with a message.
///
/// Whatever goes wrong with the terminal, and a key that ends the program, counts as no. What is asked stands on standard
/// error, so that standard output can be something else.
#[derive(Debug, Clone)]
pub struct TerminalApprover {
    policy: Policy,
    bounds: String,
}

/// One line of the choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    No,
    Once,
    Session,
    Always,
    Edit,
    NoWith,
}

impl Choice {
    const fn word(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::Once => "yes",
            Self::Session => "session",
            Self::Always => "always",
            Self::Edit => "edit",
            Self::NoWith => "message",
        }
    }
}

impl TerminalApprover {
    /// For questions under this policy, which says which rules can be remembered, and these settings, which say in what
    /// sandbox a command would run.
    pub fn new(policy: &Policy, settings: &Settings) -> Self {
        Self { policy: policy.clone(), bounds: bounds(settings) }
    }

    fn ask(&self, question: Question<'_>) -> Option<Answer> {
        menu::forget_typed();
        // Nobody says yes to what was not shown.
        show(&diagnose::decision(question.request, question.decision)).ok()?;
        show(&touches(&question.request.action)).ok()?;
        match (&question.request.action, question.content) {
            // A file tool works for this program; the sandbox is not around it.
            (Action::Write(path), Some(content)) => {
                let change = present::written(&question.decision.workdir.join(path), content);
                show(&at_most(&change, SHOWN_LINES)).ok()?;
            }
            (_, _) => show(&format!("sandbox: {}", printable(&self.bounds))).ok()?,
        }
        let rule = remember::propose(question.decision, &self.policy);
        match &rule {
            Ok(rule) => show(&rule_text(question, rule)),
            Err(why) => show(&format!("only once: {}", printable(&why.to_string()))),
        }
        .ok()?;
        let term = Term::stderr();
        let mut changed: Option<Action> = None;
        loop {
            // A rule is about what was asked, not about what it was changed to.
            let rule = rule.as_ref().ok().filter(|_| changed.is_none());
            let shown = changed.as_ref().unwrap_or(&question.request.action);
            let lines = choices(rule, editable(shown).is_some(), changed.is_some());
            let yes = |scope, rule: Rule| Answer::Approve {
                modified: None,
                remember: vec![Remember { rule: rule.because("approved at the terminal"), scope }],
            };
            return match (menu::choose(&term, "Run it?", &lines).ok()??, rule) {
                (Choice::Once, _) => Some(Answer::Approve { modified: changed, remember: Vec::new() }),
                (Choice::Session, Some(rule)) => Some(yes(Scope::Session, rule.clone())),
                (Choice::Always, Some(rule)) => {
                    let (scope, rule) = always(&term, rule.clone())?;
                    Some(yes(scope, rule))
                }
                (Choice::Edit, _) => {
                    if let Some(action) = edit(&term, shown).ok()? {
                        let text = printable(&words::of(&action));
                        show(&format!("changed to: {text}\n{}", touches(&action))).ok()?;
                        changed = Some(action).filter(|action| *action != question.request.action);
                    }
                    continue;
                }
                (Choice::NoWith, _) => {
                    let message = Input::new().with_prompt("Message").allow_empty(true);
                    Some(Answer::Deny { reason: message.interact_text_on(&term).ok()? })
                }
                (Choice::No | Choice::Session | Choice::Always, _) => None,
            };
        }
    }
}

impl Approver for TerminalApprover {
    fn answer<'a>(&'a self, question: Question<'a>) -> AnswerFuture<'a> {
        let answer = self.ask(question).unwrap_or(Answer::Deny { reason: String::new() });
        Box::pin(std::future::ready(answer))
    }
}

/// The first lines of a text, and how many more there are.
fn at_most(text: &str, lines: usize) -> String {
    let more = text.lines().count().saturating_sub(lines);
    let mut shown = text.lines().take(lines).collect::<Vec<_>>().join("\n");
    if more > 0 {
        let _ = write!(shown, "\n  … {more} more lines");
    }
    shown
}

/// The lines of the choice; the first one is what happens when nobody looks.
fn choices(rule: Option<&Rule>, editable: bool, changed: bool) -> Vec<Line<Choice>> {
    let mut choices = vec![(Choice::No, "do not run it"), (Choice::Once, "run it once")];
    if rule.is_some() {
        choices.push((Choice::Session, "run it, and allow by this rule until this program ends"));
        choices.push((Choice::Always, "run it, and always allow by this rule …"));
    }
    if editable {
        let text = if changed { "change the command again" } else { "change the command first" };
        choices.push((Choice::Edit, text));
    }
    choices.push((Choice::NoWith, "do not run it, and say why"));
    let line = |(value, text): (Choice, &str)| Line { value, word: value.word(), text: text.to_owned() };
    choices.into_iter().map(line).collect()
}

/// Says on standard error what the person needs to know, without colours where they do not belong.
fn show(text: &str) -> io::Result<()> {
    anstream::stderr().lock().write_all(format!("{text}\n").as_bytes())
}

/// The rule that would be remembered, with what else it would let pass.
fn rule_text(question: Question<'_>, rule: &Rule) -> String {
    let whole = if rule.whole { ", as the whole command only" } else { "" };
    let mut text = format!("the rule: allow exec `{}`{whole}", printable(rule.pattern.as_str()));
    let argv = question.decision.commands.argvs.first().map_or(&[][..], Vec::as_slice);
    for example in remember::also_matches(rule, argv) {
        let _ = write!(text, "\n  also lets pass: {}", printable(&example));
    }
    text
}

/// Asks where and how long the rule counts.
fn always(term: &Term, rule: Rule) -> Option<(Scope, Rule)> {
    let lines = [
        ((Scope::Project, None), "project", "in this project"),
        ((Scope::Project, Some(30)), "month", "in this project, for 30 days"),
        ((Scope::User, None), "all", "in all projects"),
        ((Scope::User, Some(30)), "all-month", "in all projects, for 30 days"),
    ];
    let lines = lines.map(|(value, word, text)| Line { value, word, text: text.to_owned() });
    let (scope, days) = menu::choose(term, "Where?", &lines).ok()??;
    let rule = match days {
        Some(days) => rule.until(Timestamp::from(SystemTime::now() + Duration::from_hours(24 * days))),
        None => rule,
    };
    Some((scope, rule))
}

/// A command as it can be changed on one line.
fn editable(action: &Action) -> Option<String> {
    let text = match action {
        Action::Shell(command) => command.clone(),
        Action::Exec(argv) => words::line(argv),
        // What a file tool would write is the model's, under whatever name.
        Action::Read(_) | Action::Write(_) => return None,
    };
    let fits = text.chars().count() <= LONGEST_CHANGED && !text.chars().any(is_unseen);
    fits.then_some(text)
}

/// Lets the person change a command; nothing when it is none any more.
fn edit(term: &Term, action: &Action) -> dialoguer::Result<Option<Action>> {
    let input =
        Input::<String>::new().with_prompt("Command").with_initial_text(editable(action).unwrap_or_default());
    let text = input.allow_empty(true).interact_text_on(term)?;
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    Ok(match action {
        Action::Exec(_) => match words::parse(text) {
            Ok(argv) => Some(Action::Exec(argv)),
            Err(why) => {
                show(&format!("not changed: {}", printable(&why)))?;
                None
            }
        },
        Action::Shell(_) => Some(Action::Shell(text.to_owned())),
        Action::Read(_) | Action::Write(_) => None,
    })
}

/// What bounds a command under these settings: the mode of the sandbox and the network, on one line.
pub fn bounds(settings: &Settings) -> String {
    let mode = settings.sandbox.unwrap_or(SandboxMode::ReadOnly);
    if mode == SandboxMode::DangerFullAccess {
        return format!("{}: no sandbox: the command can do anything", mode.as_str());
    }
    let network = match settings.network.allow_domains.as_deref() {
        None | Some([]) => "network off".to_owned(),
        Some(hosts) => format!("network: {}", hosts.join(", ")),
    };
    format!("{}, {network}", mode.as_str())
}

/// What an action would touch, as far as that can be told.
pub fn touches(action: &Action) -> String {
    let context = Context::new(Grammar::Sequence);
    match action {
        Action::Shell(command) => effects_of(&classify(command, &context).effects),
        Action::Exec(argv) => {
            let words: Vec<&str> = argv.iter().map(String::as_str).collect();
            effects_of(&classify_argv(&words, &context).effects)
        }
        Action::Read(path) => format!("reads: {}", printable(&path.to_string_lossy())),
        Action::Write(path) => format!("writes: {}", printable(&path.to_string_lossy())),
    }
}

fn effects_of(effects: &Effects<'_>) -> String {
    let list = |texts: Vec<String>| texts.join(", ");
    let paths = |uses: &[cmdgate_classifier::PathUse<'_>]| {
        uses.iter().map(|used| printable(&used.path)).collect::<Vec<_>>()
    };
    let mut lines = Vec::new();
    for (name, texts) in [
        ("runs", effects.runs.iter().map(|run| printable(&words::line(&run.argv))).collect()),
        ("reads", paths(&effects.reads)),
        ("writes", paths(&effects.writes)),
        ("reaches", effects.network.iter().map(|host| printable(host)).collect::<Vec<_>>()),
    ] {
        if !texts.is_empty() {
            lines.push(format!("{name}: {}", list(texts)));
        }
    }
    if lines.is_empty() { "what it touches cannot be told".to_owned() } else { lines.join("\n") }
}
