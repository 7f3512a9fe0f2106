//! Asks the person at the terminal (contract P7).

use super::remember::{self, Remember, Scope};
use super::{Answer, AnswerFuture, Approver, Question};
use crate::diagnose;
use crate::gate::Action;
use crate::present::printable;
use cmdgate_classifier::{Context, Effects, Grammar, classify, classify_argv};
use cmdgate_policy::{Policy, Rule, SandboxMode, Settings, Timestamp};
use dialoguer::{Input, Select};
use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

/// Asks at the terminal: once, this session, always, no, no with a message.
///
/// Whatever goes wrong with the terminal, and a key that ends the program, counts as no.
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
    NoWith,
}

impl TerminalApprover {
    /// For questions under this policy, which says which rules can be remembered, and these settings, which say in what
    /// sandbox a command would run.
    pub fn new(policy: &Policy, settings: &Settings) -> Self {
        Self { policy: policy.clone(), bounds: bounds(settings) }
    }

    fn ask(&self, question: Question<'_>) -> Option<Answer> {
        anstream::eprintln!("{}", diagnose::decision(question.request, question.decision));
        anstream::eprintln!("{}", touches(&question.request.action));
        anstream::eprintln!("sandbox: {}", printable(&self.bounds));
        let rule = remember::propose(question.decision, &self.policy);
        let mut choices = vec![(Choice::No, "no".to_owned()), (Choice::Once, "yes, once".to_owned())];
        match &rule {
            Ok(rule) => {
                let pattern = printable(rule.pattern.as_str());
                choices.push((Choice::Session, format!("yes, and `{pattern}` until this program ends")));
                choices.push((Choice::Always, format!("yes, and `{pattern}` always …")));
            }
            Err(why) => anstream::eprintln!("only once: {}", printable(&why.to_string())),
        }
        choices.push((Choice::NoWith, "no, with a message".to_owned()));
        let lines: Vec<&str> = choices.iter().map(|(_, line)| line.as_str()).collect();
        let at = Select::new().with_prompt("Run it?").items(&lines).default(0).interact_opt().ok()??;
        let (choice, _) = choices.get(at)?;
        let yes = |scope, rule: Rule| Answer::Approve {
            modified: None,
            remember: vec![Remember { rule: rule.because("approved at the terminal"), scope }],
        };
        Some(match (choice, rule) {
            (Choice::Once, _) => Answer::yes(),
            (Choice::Session, Ok(rule)) => yes(Scope::Session, rule),
            (Choice::Always, Ok(rule)) => {
                let (scope, rule) = always(question, rule)?;
                yes(scope, rule)
            }
            (Choice::NoWith, _) => {
                let reason: String =
                    Input::new().with_prompt("Message").allow_empty(true).interact_text().ok()?;
                Answer::Deny { reason }
            }
            (Choice::No | Choice::Session | Choice::Always, _) => return None,
        })
    }
}

impl Approver for TerminalApprover {
    fn answer<'a>(&'a self, question: Question<'a>) -> AnswerFuture<'a> {
        let answer = self.ask(question).unwrap_or(Answer::Deny { reason: String::new() });
        Box::pin(std::future::ready(answer))
    }
}

/// Shows the rule with what else it would let pass, and asks where and how long it counts.
fn always(question: Question<'_>, rule: Rule) -> Option<(Scope, Rule)> {
    let whole = if rule.whole { ", as the whole command only" } else { "" };
    let mut text = format!("the rule: allow exec `{}`{whole}", printable(rule.pattern.as_str()));
    let argv = question.decision.commands.argvs.first().map_or(&[][..], Vec::as_slice);
    for example in remember::also_matches(&rule, argv) {
        let _ = write!(text, "\n  also lets pass: {}", printable(&example));
    }
    anstream::eprintln!("{text}");
    let choices = [
        (Scope::Project, None, "in this project"),
        (Scope::Project, Some(30), "in this project, for 30 days"),
        (Scope::User, None, "in all projects"),
        (Scope::User, Some(30), "in all projects, for 30 days"),
    ];
    let lines = choices.map(|(_, _, line)| line);
    let at = Select::new().with_prompt("Where?").items(lines).default(0).interact_opt().ok()??;
    let (scope, days, _) = choices.get(at)?;
    let rule = match days {
        Some(days) => rule.until(Timestamp::from(SystemTime::now() + Duration::from_hours(24 * days))),
        None => rule,
    };
    Some((*scope, rule))
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
        ("runs", effects.runs.iter().map(|run| printable(&run.argv.join(" "))).collect()),
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
