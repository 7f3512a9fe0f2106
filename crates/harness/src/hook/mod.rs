//! Hooks of other agents: one policy for all of them.
//!
//! An agent asks before it runs a command, in its own shape, and is answered in its own shape. Nothing here knows what is
//! safe: the gate decides. But the agent runs the command, not this program, so a safe verdict counts only if its
//! conditions hold in the agent's own shell (`outside`); else the command is rewritten into `harness run`, where the
//! agent lets a hook change it, or a person is asked.

mod agents;
mod canary;
pub mod code;
mod json;
mod outside;
pub(crate) use outside::changes_programs;

pub use agents::Agent;
pub use canary::Taken;
pub use outside::is_ordinary_repository;

use crate::gate::{Action, Decision, Gate, Request, Source};
use cmdgate_classifier::Condition;
use cmdgate_policy::{Effect, SandboxMode};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A payload longer than this, in bytes, is refused.
pub const LONGEST_PAYLOAD: usize = 8 * 1024 * 1024;

/// The longest text, in bytes, that one argument of a program may have (`MAX_ARG_STRLEN` of Linux, 32 pages, with its end):
/// agents give what they run to a shell as one, and that to `harness run`.
const LONGEST_CONTAINED: usize = 32 * 4096 - 1;
const TOO_LONG: &str = "the command is too long to be put into the sandbox: with what stands before it, it may have 128 KiB. \
    Write it to a file, and run that";

/// What a payload asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The agent's name of the event.
    pub event: String,
    /// Every command in the payload.
    pub commands: Vec<AskedCommand>,
    /// Where they would run.
    pub cwd: Option<PathBuf>,
    /// The session's own directory, where `cwd` is one that the model chose. The project is looked for from here.
    pub session: Option<PathBuf>,
    /// The tool's input as the agent gave it, which a rewrite has to keep apart from the command.
    pub input: Value,
    /// The agent's own numbers for this call, for the trace.
    pub keys: Value,
    /// The agent's own record of the session, and the number of the turn in it.
    pub transcript: Option<(PathBuf, String)>,
    /// Whether the agent said that nobody will be asked (a bypass mode).
    pub unattended: bool,
    /// Whether the shell goes on after the command, and the agent does not say where it stands: a `cd` that stays changes what
    /// the next command's paths mean.
    pub lasting: bool,
}

/// One command of a payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskedCommand {
    /// For a POSIX shell.
    Shell(String),
    /// A program and its arguments.
    Argv(Vec<String>),
    /// For something else, which is named: PowerShell, an unknown tool.
    Other {
        /// The name.
        language: String,
        /// The text.
        text: String,
    },
}

/// What a payload turned out to be.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "there is one in a process")]
pub enum Payload {
    /// Commands to decide about.
    Commands(Asked),
    /// A call of a tool that runs no command.
    Unrelated,
}

/// What is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Run it.
    Allow {
        /// Why.
        reason: String,
    },
    /// Run these in the place of the commands, in their order.
    Rewrite {
        /// The new commands, for a POSIX shell.
        commands: Vec<String>,
        /// Why.
        reason: String,
    },
    /// Ask a person.
    Ask {
        /// Why.
        reason: String,
    },
    /// Ask a person, and after a yes run these in the place of the commands.
    AskRewrite {
        /// The new commands, for a POSIX shell.
        commands: Vec<String>,
        /// Why.
        reason: String,
    },
    /// Do not run it.
    Deny {
        /// Why, for the model.
        reason: String,
    },
}

impl Verdict {
    /// Why.
    pub fn reason(&self) -> &str {
        match self {
            Self::Allow { reason }
            | Self::Rewrite { reason, .. }
            | Self::Ask { reason }
            | Self::AskRewrite { reason, .. }
            | Self::Deny { reason } => reason,
        }
    }
}

/// What the hook's process prints and how it ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// The exit code.
    pub exit: u8,
}

/// How an agent takes an ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asks {
    /// It has an answer for it.
    Native,
    /// Silence makes its own prompt come, unless it was told to ask nobody.
    BySilence,
    /// It has none: the command is refused with a code that allows it once.
    ByCode,
}

/// How commands are put into the sandbox.
#[derive(Debug, Clone)]
pub struct Containment {
    /// The `harness` program, as an absolute path.
    pub program: PathBuf,
    /// Options of `harness run` between `run` and `--`.
    pub options: Vec<String>,
    /// Rewrite whatever is not denied, not only what cannot be allowed as it stands. What cannot be rewritten is denied.
    pub always: bool,
    /// The mark by which a contained run knows that a person was asked about it.
    pub permit: Option<String>,
}

/// Decides about everything that was asked: the strictest answer counts for all.
///
/// The decisions come back for the record, each with its request.
pub fn decide(
    gate: &Gate,
    agent: Agent,
    asked: &Asked,
    containment: Option<&Containment>,
) -> (Verdict, Vec<(Request, Decision)>) {
    let mut decided = Vec::with_capacity(asked.commands.len());
    let mut worst: Option<Verdict> = None;
    let mut rewritten = Vec::with_capacity(asked.commands.len());
    let mut rewrites = false;
    let always = containment.is_some_and(|into| into.always);
    let into = containment.filter(|_| agent.rewrites());
    for command in &asked.commands {
        let inner = containment.and_then(|into| wrapped(into, command, gate.root()));
        let request = match (&inner, command) {
            (Some((text, workdir)), _) => Request::shell(text).in_directory(workdir),
            (None, AskedCommand::Shell(text)) => Request::shell(text),
            (None, AskedCommand::Argv(argv)) => Request::exec(argv),
            (None, AskedCommand::Other { language, text }) => {
                let reason = format!("`{}` is for {language}, which is not understood", excerpt(text));
                let request = Request::shell(text);
                let decision = gate.not_understood(&request, &reason, always);
                let verdict = match decision.effect {
                    Effect::Deny => Verdict::Deny { reason: decision.reason.clone() },
                    Effect::Ask | Effect::Allow => Verdict::Ask { reason },
                };
                worst = Some(stricter(worst, verdict));
                decided.push((request, decision));
                continue;
            }
        };
        let request = match (&asked.cwd, &inner) {
            (Some(cwd), None) => request.in_directory(cwd),
            (Some(_) | None, _) => request,
        };
        let decision = gate.decide(&request);
        let reason = decision.reason.clone();
        let contained = |answered: bool| {
            let into = into.ok_or_else(|| uncontainable(agent))?;
            let text = contain(into, command, gate.root(), asked.cwd.as_deref(), answered);
            if text.len() > LONGEST_CONTAINED { Err(TOO_LONG.to_owned()) } else { Ok(text) }
        };
        let verdict = match decision.effect {
            Effect::Deny => Verdict::Deny { reason },
            // It says by itself that it runs in the sandbox.
            Effect::Ask if inner.is_some() => Verdict::Ask { reason },
            Effect::Allow if inner.is_some() => Verdict::Allow { reason },
            Effect::Ask if always => match contained(true) {
                Ok(text) => Verdict::AskRewrite { commands: vec![text], reason },
                Err(reason) => Verdict::Deny { reason },
            },
            Effect::Ask => Verdict::Ask { reason },
            Effect::Allow => match (
                stays_elsewhere(asked, command).or_else(|| needs_containment(&decision, gate)),
                contained(false),
            ) {
                (_, Ok(text)) if always => Verdict::Rewrite { commands: vec![text], reason },
                (_, Err(reason)) if always => Verdict::Deny { reason },
                (None, _) => Verdict::Allow { reason },
                (Some(_), Ok(text)) => Verdict::Rewrite { commands: vec![text], reason },
                (Some(why), Err(_)) => {
                    Verdict::Ask { reason: format!("harmless only in the sandbox: {why}") }
                }
            },
        };
        match &verdict {
            Verdict::Rewrite { commands, .. } | Verdict::AskRewrite { commands, .. } => {
                rewrites = true;
                rewritten.extend(commands.iter().cloned());
            }
            Verdict::Allow { .. } | Verdict::Ask { .. } | Verdict::Deny { .. } => {
                rewritten.push(plain(command));
            }
        }
        worst = Some(stricter(worst, verdict));
        decided.push((request, decision));
    }
    let verdict = match worst {
        None if always => Verdict::Deny { reason: "there is no command in the payload".to_owned() },
        None => Verdict::Ask { reason: "there is no command in the payload".to_owned() },
        Some(Verdict::Allow { reason } | Verdict::Rewrite { reason, .. }) if rewrites => {
            Verdict::Rewrite { commands: rewritten, reason }
        }
        // Under `always`, each of the commands is contained, or was from the start.
        Some(Verdict::Ask { reason } | Verdict::AskRewrite { reason, .. }) if always && rewrites => {
            Verdict::AskRewrite { commands: rewritten, reason }
        }
        Some(verdict) => verdict,
    };
    (verdict, decided)
}

/// Why a harmless command would leave the agent's shell in another directory than the next command is judged in.
fn stays_elsewhere(asked: &Asked, command: &AskedCommand) -> Option<String> {
    let AskedCommand::Shell(text) = command else { return None };
    let says = |text: &str| text.split(|c: char| !c.is_alphanumeric()).any(|word| word == "cd");
    let moves = || says(text) || crate::unwrap::commands(text).argvs.iter().flatten().any(|word| says(word));
    (asked.lasting && moves()).then(|| "the agent's shell would stay in another directory".to_owned())
}

fn uncontainable(agent: Agent) -> String {
    format!("`--contain` needs an agent that lets a hook change commands, and {} does not", agent.name())
}

/// Why a decision that allows does not hold when the agent runs the command itself.
fn needs_containment(decision: &Decision, gate: &Gate) -> Option<String> {
    let sandboxed = gate.mode() != SandboxMode::DangerFullAccess;
    match decision.source {
        Source::ToolOverride => unmet_condition(decision, gate.root()),
        Source::Rule
            if sandboxed && decision.ruling.as_ref().is_some_and(|ruling| ruling.only_in_sandbox) =>
        {
            Some("the rule lets it run in the sandbox only".to_owned())
        }
        Source::Rule if sandboxed => decision
            .redirects_beyond
            .as_ref()
            .map(|text| format!("`{text}` writes where a rule for a program does not reach"))
            .or_else(|| unmet_condition(decision, gate.root())),
        // Neither a proof nor a rule: it is allowed because the sandbox bounds it.
        Source::Policy if sandboxed => {
            Some(format!("the policy lets it run in the {} sandbox", gate.mode().as_str()))
        }
        Source::Rule => unmet_condition(decision, gate.root()),
        Source::Policy | Source::Request | Source::PathPolicy | Source::Approver => None,
    }
}

/// The first condition of what was proved that the agent's shell does not meet.
fn unmet_condition(decision: &Decision, root: &Path) -> Option<String> {
    for condition in &decision.conditions {
        match condition {
            Condition::PathsResolveInside | Condition::NullStdin => {}
            Condition::CleanEnvironment => {
                if let Some(why) = outside::unclean_environment(root) {
                    return Some(why);
                }
            }
            Condition::NoRipgrepConfig => {
                if std::env::var_os("RIPGREP_CONFIG_PATH").is_some() {
                    return Some("RIPGREP_CONFIG_PATH is set".to_owned());
                }
            }
            Condition::ReadsConfined
            | Condition::GitHardened
            | Condition::OutputNotTerminal
            | Condition::ToolchainFixed => return Some(condition.meaning().trim().to_owned()),
        }
    }
    None
}

/// The command inside `harness run`, for a POSIX shell.
fn contain(
    into: &Containment,
    command: &AskedCommand,
    root: &Path,
    cwd: Option<&Path>,
    answered: bool,
) -> String {
    let mut words = vec![into.program.to_string_lossy().into_owned()];
    words.push(if matches!(command, AskedCommand::Argv(_)) { "exec" } else { "run" }.to_owned());
    words.push("--passthrough".to_owned());
    words.extend(into.options.iter().cloned());
    if let Some(permit) = into.permit.as_ref().filter(|_| answered) {
        words.extend(["--answered".to_owned(), permit.clone()]);
    }
    words.extend(["--root".to_owned(), root.to_string_lossy().into_owned()]);
    if let Some(cwd) = cwd {
        words.extend(["--workdir".to_owned(), cwd.to_string_lossy().into_owned()]);
    }
    words.push("--".to_owned());
    match command {
        AskedCommand::Argv(argv) => words.extend(argv.iter().cloned()),
        AskedCommand::Shell(text) | AskedCommand::Other { text, .. } => words.push(text.clone()),
    }
    words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ")
}

/// The command and directory inside a text that is, to the letter, what [`contain`] makes: an agent shows its hook the
/// changed command again, and it must not be put into the sandbox twice.
fn wrapped(into: &Containment, command: &AskedCommand, root: &Path) -> Option<(String, PathBuf)> {
    let AskedCommand::Shell(text) = command else { return None };
    let program = quote(&into.program.to_string_lossy());
    if !text.starts_with(&program) {
        return None;
    }
    let commands = crate::unwrap::commands(text);
    let [words] = commands.argvs.as_slice() else { return None };
    let after = |name: &str| {
        let end = words.iter().position(|word| word == "--")?;
        let at = words.get(..end)?.iter().rposition(|word| word == name)?;
        words.get(at + 1).cloned()
    };
    let inner = words.last()?.clone();
    let workdir = PathBuf::from(after("--workdir")?);
    let permit = after("--answered");
    let made = contain(
        &Containment { permit: permit.clone(), ..into.clone() },
        &AskedCommand::Shell(inner.clone()),
        root,
        Some(&workdir),
        permit.is_some(),
    );
    (made == *text).then_some((inner, workdir))
}

/// The command as it is, for a POSIX shell.
fn plain(command: &AskedCommand) -> String {
    match command {
        AskedCommand::Shell(text) | AskedCommand::Other { text, .. } => text.clone(),
        AskedCommand::Argv(argv) => argv.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" "),
    }
}

/// A word that a POSIX shell takes for exactly this text.
pub fn quote(word: &str) -> String {
    let harmless = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    if !word.is_empty() && word.chars().all(harmless) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

const fn severity(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Allow { .. } => 0,
        Verdict::Rewrite { .. } => 1,
        Verdict::Ask { .. } | Verdict::AskRewrite { .. } => 2,
        Verdict::Deny { .. } => 3,
    }
}

fn stricter(known: Option<Verdict>, new: Verdict) -> Verdict {
    match known {
        Some(known) if severity(&known) >= severity(&new) => known,
        Some(_) | None => new,
    }
}

fn excerpt(text: &str) -> &str {
    text.get(..text.floor_char_boundary(60)).unwrap_or(text)
}

/// The action's text, for the one-time code.
pub(crate) fn texts(asked: &Asked) -> Vec<String> {
    let text = |command: &AskedCommand| match command {
        AskedCommand::Other { language, text } => format!("{language}: {text}"),
        AskedCommand::Shell(_) | AskedCommand::Argv(_) => plain(command),
    };
    asked.commands.iter().map(text).collect()
}

/// The payload as JSON, refusing what two readers could take differently.
///
/// # Errors
///
/// Why it cannot be read, as a sentence fragment.
pub fn read_payload(bytes: &[u8]) -> Result<Value, String> {
    if bytes.len() > LONGEST_PAYLOAD {
        return Err(format!("the payload is longer than {LONGEST_PAYLOAD} bytes"));
    }
    json::parse(bytes)
}

impl Asked {
    /// The requests in it, one line each.
    pub fn lines(&self) -> impl Iterator<Item = String> + '_ {
        self.commands.iter().map(plain)
    }
}

/// Whether an action is a shell command. Used by tests of adapters.
pub fn is_shell(action: &Action) -> bool {
    matches!(action, Action::Shell(_))
}
