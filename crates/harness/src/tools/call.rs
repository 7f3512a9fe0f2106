//! One call of a tool: arguments, decision, record, deed, and what the model is told.

use super::arguments::{Arguments, Invalid};
use super::background::{self, Backgrounds};
use super::{Tool, ToolSpec, files};
use crate::approve::Approver;
use crate::gate::{Action, Decision, DecisionCode, Request};
use crate::session::{Admitted, Recorder, Reply, RunOptions, Session};
use crate::wire::{Replied, WireBackground};
use crate::{diagnose, present};
use cmdgate_executor::{NotStarted, Outcome, State};
use cmdgate_policy::Effect;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The shortest time that a command may ask for, in milliseconds (contract S1).
const SHORTEST: u64 = 1000;
/// As many lines of a file are shown at once.
const MOST_LINES: u64 = 2000;
/// As many characters of a file are shown at once.
const MOST_CHARS: usize = 64 * 1024;

/// No more of a command is repeated, in bytes.
const LONGEST_SHOWN: usize = 4096;

/// What the model is told of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolReply {
    /// For the model.
    pub text: String,
    /// A stable code, when the call did not do what it should: `VALIDATION_ERROR`, `PERMISSION_DENIED`,
    /// `APPROVAL_REQUIRED`, `TIMEOUT`, `UNAVAILABLE`, `EXECUTION_ERROR`, …
    pub code: Option<&'static str>,
    /// For a program: [`crate::wire::Replied`] as JSON, of the tools that answer more than text.
    pub structured: Option<Value>,
}

impl ToolReply {
    pub(super) const fn done(text: String) -> Self {
        Self { text, code: None, structured: None }
    }

    pub(crate) fn failed(code: &'static str, text: impl Into<String>) -> Self {
        let text = text.into();
        let structured = Replied::without_decision(code, &text);
        let structured = serde_json::to_value(&structured).ok();
        Self { text, code: Some(code), structured }
    }

    pub(super) fn with(self, replied: &Replied<'_>) -> Self {
        Self { structured: serde_json::to_value(replied).ok(), ..self }
    }
}

impl From<Invalid> for ToolReply {
    fn from(invalid: Invalid) -> Self {
        Self::failed("VALIDATION_ERROR", invalid.to_string())
    }
}

/// The tools of one session, with whoever answers asks and whatever writes the record.
///
/// Background commands end with [`Toolbox::end`], and at the latest with the session.
pub struct Toolbox<'t> {
    session: &'t Session,
    approver: &'t dyn Approver,
    recorder: &'t dyn Recorder,
    options: RunOptions,
    tools: &'static [ToolSpec],
    backgrounds: Arc<Backgrounds>,
}

impl std::fmt::Debug for Toolbox<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Toolbox").field("session", &self.session).finish_non_exhaustive()
    }
}

impl<'t> Toolbox<'t> {
    /// The tools of `session`. Each command runs with `options`, but for the time, which a call may name.
    pub fn new(
        session: &'t Session,
        approver: &'t dyn Approver,
        recorder: &'t dyn Recorder,
        options: RunOptions,
    ) -> Self {
        Self { session, approver, recorder, options, tools: super::TOOLS, backgrounds: Arc::default() }
    }

    /// The same with other tools than [`super::TOOLS`].
    #[must_use]
    pub fn offering(mut self, tools: &'static [ToolSpec]) -> Self {
        self.tools = tools;
        self
    }

    /// The same with background commands that outlive this toolbox. Whoever shares them ends them.
    #[must_use]
    pub fn sharing(mut self, backgrounds: Arc<Backgrounds>) -> Self {
        self.backgrounds = backgrounds;
        self
    }

    /// Calls a tool with arguments as JSON. It never fails: what went wrong is in the reply.
    pub async fn call(&self, name: &str, arguments: &str) -> ToolReply {
        let Some(spec) = self.tools.iter().find(|tool| tool.name == name) else {
            let name: String = name.chars().take(64).collect();
            let known: Vec<&str> = self.tools.iter().map(|tool| tool.name).collect();
            return ToolReply::failed(
                "VALIDATION_ERROR",
                format!("VALIDATION_ERROR: there is no tool `{name}`; there are {}", known.join(", ")),
            );
        };
        match self.dispatch(spec.tool, arguments).await {
            Ok(reply) => reply,
            Err(invalid) => invalid.into(),
        }
    }

    /// Ends every background command and records its end.
    pub async fn end(&self) {
        self.backgrounds.end_all(self.recorder).await;
    }

    async fn dispatch(&self, tool: Tool, text: &str) -> Result<ToolReply, Invalid> {
        match tool {
            Tool::Shell | Tool::ShellRead => {
                let mut arguments = Arguments::parse(text, &["command", "workdir", "timeoutMs"])?;
                let request = Request { action: Action::Shell(arguments.text("command")?), workdir: None };
                let workdir = arguments.optional_text("workdir")?;
                let timeout =
                    arguments.number("timeoutMs", SHORTEST..=millis(self.session.shell_ceiling()))?;
                Ok(self.run(request, workdir, timeout, tool == Tool::ShellRead).await)
            }
            Tool::ShellCheck => {
                let mut arguments = Arguments::parse(text, &["command", "workdir"])?;
                let action = Action::Shell(arguments.text("command")?);
                let workdir = arguments.optional_text("workdir")?.map(PathBuf::from);
                Ok(self.check(&Request { action, workdir }))
            }
            Tool::Exec => {
                let mut arguments = Arguments::parse(text, &["argv", "workdir", "timeoutMs"])?;
                let request = Request { action: Action::Exec(arguments.argv("argv")?), workdir: None };
                let workdir = arguments.optional_text("workdir")?;
                let timeout =
                    arguments.number("timeoutMs", SHORTEST..=millis(self.session.exec_ceiling()))?;
                Ok(self.run(request, workdir, timeout, false).await)
            }
            Tool::ShellStart => {
                let mut arguments = Arguments::parse(text, &["command", "workdir"])?;
                let action = Action::Shell(arguments.text("command")?);
                let workdir = arguments.optional_text("workdir")?.map(PathBuf::from);
                Ok(self.start(Request { action, workdir }).await)
            }
            Tool::ShellPoll => {
                let id = id_of(text)?;
                Ok(match self.session.executor().background(id) {
                    Err(error) => ToolReply::failed("NOT_FOUND", error.to_string()),
                    Ok(background) => {
                        let mut reply = background::shown(id, &background);
                        self.note(&mut reply, id, &background.state());
                        reply
                    }
                })
            }
            Tool::ShellKill => {
                let id = id_of(text)?;
                Ok(match self.session.executor().background(id) {
                    Err(error) => ToolReply::failed("NOT_FOUND", error.to_string()),
                    Ok(background) => {
                        let state = background.kill().await;
                        let mut reply = background::shown(id, &background);
                        self.note(&mut reply, id, &state);
                        reply
                    }
                })
            }
            Tool::ReadFile => {
                let mut arguments = Arguments::parse(text, &["path", "offset", "limit"])?;
                let path = arguments.text("path")?;
                let offset = arguments.number("offset", 1..=u64::MAX)?.unwrap_or(1);
                let limit = arguments.number("limit", 1..=MOST_LINES)?.unwrap_or(MOST_LINES);
                Ok(self.read_file(path, offset, limit).await)
            }
            Tool::WriteFile => {
                let mut arguments = Arguments::parse(text, &["path", "content"])?;
                let path = arguments.text("path")?;
                let content = arguments.any_text("content")?;
                Ok(self.write_file(path, &content).await)
            }
            Tool::ListDir => {
                let mut arguments = Arguments::parse(text, &["path"])?;
                let path = arguments.optional_text("path")?.unwrap_or_else(|| ".".to_owned());
                Ok(self.list_dir(path).await)
            }
        }
    }

    /// What would be decided, for the model.
    fn check(&self, request: &Request) -> ToolReply {
        let decision = self.session.decide(request);
        let command = request.action.text();
        let what = match decision.effect {
            Effect::Allow => "allow: it would run at once",
            Effect::Ask => "ask: a person would be asked",
            Effect::Deny => "deny: it would not run",
        };
        let text = if command.len() > LONGEST_SHOWN {
            format!("{what}\n{}{}", decision.reason, decided_by(&decision))
        } else {
            format!("{what}\n{}", diagnose::plain_decision(request, &decision))
        };
        ToolReply::done(text).with(&Replied::decided(&short(&command), &decision))
    }

    async fn run(
        &self,
        mut request: Request,
        workdir: Option<String>,
        timeout: Option<u64>,
        only_harmless: bool,
    ) -> ToolReply {
        request.workdir = workdir.map(PathBuf::from);
        let asked = shown(&request.action);
        let options = RunOptions { timeout: timeout.map(Duration::from_millis), ..self.options.clone() };
        let reply = if only_harmless {
            self.session.perform_harmless(request, options, self.recorder).await
        } else {
            self.session.perform(request, options, self.approver, self.recorder).await
        };
        match &reply {
            Reply::Ran { decision, finished, unrecorded, action } => {
                let root = self.session.gate().root();
                let ran = shown(action);
                let shown = short(&ran);
                let mut text = present::report(&shown, root, finished);
                if ran != asked {
                    text.push_str("\n[the approver changed the command: what ran is the one above]\n");
                }
                let hint = self.session.hint(decision);
                if let Some(hint) = &hint {
                    let _ = writeln!(text, "\n[{hint}]");
                }
                if let Some(error) = unrecorded {
                    let _ = writeln!(text, "\n[{error}]");
                }
                let warnings = self.session.warnings();
                for warning in &warnings {
                    let _ = writeln!(text, "\n[{warning}]");
                }
                let code = code_of(&finished.outcome);
                let replied = Replied { code, hint, warnings, ..Replied::new(&shown, root, &reply) };
                ToolReply { code, ..ToolReply::done(text) }.with(&replied)
            }
            Reply::Refused(_) | Reply::ApprovalRequired { .. } | Reply::Failed(_) | Reply::NotRecorded(_) => {
                self.refused(&short(&asked), &reply)
            }
        }
    }

    async fn start(&self, request: Request) -> ToolReply {
        let asked = shown(&request.action);
        let Admitted { approved, record, .. } =
            match self.session.admit(request, self.approver, self.recorder).await {
                Ok(admitted) => admitted,
                Err(reply) => return self.refused(&short(&asked), &reply),
            };
        // Whoever cancels the call that starts it does not end it any more.
        let options = RunOptions { cancel: None, ..self.options.clone() };
        match self.session.start(&approved, options).await {
            Ok(background) => {
                let id = background.id();
                self.backgrounds.add(background, record, approved.request().clone());
                let ran = shown(&approved.request().action);
                let started = short(&ran);
                let mut text = format!("Background {id}: started. shell_poll shows what it prints.");
                if ran != asked {
                    let _ = write!(text, " The approver changed the command to: {started}");
                }
                let replied = Replied::background(&started, WireBackground::started(id));
                ToolReply::done(text).with(&replied)
            }
            Err(error) => {
                let text = format!("EXECUTION_ERROR: {error}");
                let end = Err(error);
                let mut reply = ToolReply::failed("EXECUTION_ERROR", text);
                if let Err(error) = self.recorder.ended(record, approved.request(), &end) {
                    let _ = write!(reply.text, "\n[{error}]");
                }
                reply
            }
        }
    }

    /// What the model is told when nothing ran.
    fn refused(&self, shown: &str, reply: &Reply) -> ToolReply {
        refused(reply).with(&Replied::new(shown, self.session.gate().root(), reply))
    }

    fn note(&self, reply: &mut ToolReply, id: u64, state: &State) {
        if let Some(error) = self.backgrounds.note_end(id, state, self.recorder) {
            let _ = write!(reply.text, "\n[{error}]");
        }
    }

    async fn read_file(&self, path: String, offset: u64, limit: u64) -> ToolReply {
        let read = self
            .file(Action::Read(PathBuf::from(path)), None, |real| {
                files::read(real).map(|content| (content.len() as u64, content))
            })
            .await;
        match read {
            Err(reply) => reply,
            Ok(content) if content.contains(&0) => {
                ToolReply::done(format!("(a binary file of {} bytes)", content.len()))
            }
            Ok(content) => ToolReply::done(lines_of(&String::from_utf8_lossy(&content), offset, limit)),
        }
    }

    async fn write_file(&self, path: String, content: &str) -> ToolReply {
        let bytes = content.len() as u64;
        let written = self
            .file(Action::Write(PathBuf::from(&path)), Some(content), |real| {
                files::write(real, content.as_bytes()).map(|()| (bytes, ()))
            })
            .await;
        match written {
            Err(reply) => reply,
            Ok(()) => ToolReply::done(format!("wrote {bytes} bytes to {path}")),
        }
    }

    async fn list_dir(&self, path: String) -> ToolReply {
        let listed = self
            .file(Action::Read(PathBuf::from(path)), None, |real| {
                files::list(real).map(|(names, more)| (names.len() as u64, (names, more)))
            })
            .await;
        match listed {
            Err(reply) => reply,
            Ok((names, 0)) if names.is_empty() => ToolReply::done("(empty)".to_owned()),
            Ok((names, more)) => {
                let mut text = names.join("\n");
                if more > 0 {
                    let _ = write!(text, "\n[… {more} more …]");
                }
                ToolReply::done(text)
            }
        }
    }

    /// Decides about a file, does `deed` to its real place, and records how much it moved.
    async fn file<T>(
        &self,
        action: Action,
        content: Option<&str>,
        deed: impl FnOnce(&std::path::Path) -> std::io::Result<(u64, T)>,
    ) -> Result<T, ToolReply> {
        let act = action.act();
        let request = Request { action, workdir: None };
        let Admitted { approved, record, .. } = self
            .session
            .admit_writing(request, content, self.approver, self.recorder)
            .await
            .map_err(|reply| refused(&reply))?;
        // An approver may name another file, and not another deed.
        let done = if approved.request().action.act() == act {
            deed(approved.file())
        } else {
            Err(std::io::Error::other("the approver changed what was to be done"))
        };
        let end = match &done {
            Ok((moved, _)) => Ok(*moved),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = self.recorder.moved(record, &end) {
            return Err(ToolReply::failed("EXECUTION_ERROR", error.to_string()));
        }
        done.map(|(_, value)| value).map_err(|error| {
            let path = approved.request().action.text().into_owned();
            ToolReply::failed("EXECUTION_ERROR", format!("EXECUTION_ERROR: {path}: {error}"))
        })
    }
}

fn id_of(text: &str) -> Result<u64, Invalid> {
    match Arguments::parse(text, &["id"])?.number("id", 1..=u64::MAX)? {
        Some(id) => Ok(id),
        None => Err(Invalid { field: "id".to_owned(), problem: "is required".to_owned() }),
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The code of a run that did not end by itself (contract P11: a program that is not there is unavailable, no more).
const fn code_of(outcome: &Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::Exited(_) | Outcome::Signaled(_) => None,
        Outcome::TimedOut { .. } => Some("TIMEOUT"),
        Outcome::Cancelled { .. } => Some("ABORTED"),
        Outcome::NotStarted(NotStarted::ProgramNotFound { .. }) => Some("UNAVAILABLE"),
        Outcome::NotStarted(NotStarted::NotExecutable { .. } | NotStarted::System { .. })
        | Outcome::SandboxFailed { .. } => Some("EXECUTION_ERROR"),
    }
}

/// An action as one line; an argument list so that its words can be told apart.
fn shown(action: &Action) -> String {
    match action {
        Action::Exec(argv) => serde_json::to_string(argv).unwrap_or_default(),
        Action::Shell(_) | Action::Read(_) | Action::Write(_) => action.text().into_owned(),
    }
}

/// A command as it is repeated to the model, which knows it: a very long one is cut.
fn short(command: &str) -> Cow<'_, str> {
    if command.len() <= LONGEST_SHOWN {
        return Cow::Borrowed(command);
    }
    let start = command.get(..command.floor_char_boundary(LONGEST_SHOWN)).unwrap_or_default();
    Cow::Owned(format!("{start} [… {} bytes in all]", command.len()))
}

/// What the model is told when nothing ran.
fn refused(reply: &Reply) -> ToolReply {
    match reply {
        Reply::Refused(decision) | Reply::ApprovalRequired { decision, .. } => {
            let code = decision.code.map_or("PERMISSION_DENIED", DecisionCode::as_str);
            let mut text = format!("{code}: {}{}", decision.reason, decided_by(decision));
            if let Reply::ApprovalRequired { approval: Some(id), .. } = reply {
                let _ = write!(text, "; a person can answer it later, as approval {id}: go on without it");
            }
            ToolReply::failed(code, text)
        }
        Reply::Failed(error) => ToolReply::failed("EXECUTION_ERROR", format!("EXECUTION_ERROR: {error}")),
        Reply::NotRecorded(error) => {
            ToolReply::failed("EXECUTION_ERROR", format!("EXECUTION_ERROR: {error}"))
        }
        Reply::Ran { .. } => ToolReply::failed("EXECUTION_ERROR", "EXECUTION_ERROR: it ran unexpectedly"),
    }
}

/// Names the rule and layer, where a rule decided, and the first thing the classifier found.
fn decided_by(decision: &Decision) -> String {
    let mut text = String::new();
    if let Some(rule) = decision.rule() {
        let _ = write!(text, " (rule `{rule}` of layer {})", decision.layer());
    } else if let Some(finding) = decision.findings.first() {
        let _ = write!(text, " ({}: {})", finding.code.as_str(), finding.message);
    }
    text
}

/// Some lines of a text, numbered by their place in the file, and what is left.
fn lines_of(text: &str, offset: u64, limit: u64) -> String {
    let skip = usize::try_from(offset - 1).unwrap_or(usize::MAX);
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let total = text.lines().count();
    let mut shown = String::new();
    let mut chars = 0;
    let mut count = 0;
    for line in text.lines().skip(skip).take(most) {
        let length = line.chars().count() + 1;
        if chars + length > MOST_CHARS {
            if count == 0 {
                shown.extend(line.chars().take(MOST_CHARS));
                shown.push_str(" […]\n");
                count = 1;
            }
            break;
        }
        chars += length;
        count += 1;
        shown.push_str(line);
        shown.push('\n');
    }
    let last = skip.saturating_add(count);
    if count == 0 {
        return format!("(no line {offset}; the file has {total})");
    }
    if last < total {
        let _ = write!(shown, "[lines {offset} to {last} of {total}]");
    }
    shown
}
