//! The gate: one place that decides, and the only maker of [`Approved`].
//!
//! The order is that of the contract: what can never be lifted comes first (a bad request, a working directory that
//! escapes, a rule that denies), then a rule that asks, then a proof that the command is harmless, then rules that allow,
//! then the sandbox mode and the approval policy.

mod places;

use crate::beyond::{self, Beyond};
use crate::hook::changes_programs;
use crate::provide::{self, Provision};
use crate::resolve::{self, ReadableRoots};
use crate::tools::{PermissionSource, compose};
use crate::unwrap;
use cmdgate_classifier::{
    Classification, Condition, Context, Finding, Grammar, Span, Verdict, classify, classify_argv,
};
use cmdgate_executor::ExecError;
use cmdgate_policy::{Act, ApprovalPolicy, Effect, Layer, Policy, Ruling, SandboxMode, Settings, Timestamp};
use places::{lexical_join, real_place};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// A command line for `bash -c`.
    Shell(String),
    /// A program and its arguments; no shell anywhere.
    Exec(Vec<String>),
    /// A file that a tool reads.
    Read(PathBuf),
    /// A file that a tool writes.
    Write(PathBuf),
}

impl Action {
    /// The act whose rules speak first.
    pub const fn act(&self) -> Act {
        match self {
            Self::Shell(_) | Self::Exec(_) => Act::Exec,
            Self::Read(_) => Act::Read,
            Self::Write(_) => Act::Write,
        }
    }

    /// The action as one line of text.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Shell(command) => Cow::Borrowed(command),
            Self::Exec(argv) => Cow::Owned(argv.join(" ")),
            Self::Read(path) | Self::Write(path) => path.to_string_lossy(),
        }
    }
}

/// An action and where it would happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// What is asked for.
    pub action: Action,
    /// The working directory, absolute or relative to the root; the root when absent.
    pub workdir: Option<PathBuf>,
}

impl Request {
    /// A shell command in the project root.
    pub fn shell(command: impl Into<String>) -> Self {
        Self { action: Action::Shell(command.into()), workdir: None }
    }

    /// An argument list in the project root.
    pub fn exec(argv: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { action: Action::Exec(argv.into_iter().map(Into::into).collect()), workdir: None }
    }

    /// The same in another directory.
    #[must_use]
    pub fn in_directory(mut self, workdir: impl Into<PathBuf>) -> Self {
        self.workdir = Some(workdir.into());
        self
    }
}

/// Where a decision comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// The request itself is wrong.
    Request,
    /// The path policy: a working directory or file outside the project.
    PathPolicy,
    /// A rule of a layer.
    Rule,
    /// The shell tool's own judgement: a safe command, or an unsafe one in a read-only run.
    ToolOverride,
    /// The approval policy, or the default of the policy.
    Policy,
    /// A person, or whoever stands in for one.
    Approver,
}

impl Source {
    /// The stable spelling.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::PathPolicy => "path_policy",
            Self::Rule => "rule",
            Self::ToolOverride => "tool_override",
            Self::Policy => "policy",
            Self::Approver => "approver",
        }
    }
}

/// The stable code of a decision that is not a plain allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DecisionCode {
    /// The request is empty or malformed.
    ValidationError,
    /// Not permitted.
    PermissionDenied,
    /// An approval is needed.
    ApprovalRequired,
    /// The working directory or file lies outside the project.
    PathOutsideAllowedRoot,
    /// The working directory does not exist.
    PathNotFound,
    /// The working directory is not a directory.
    PathNotADirectory,
    /// The working directory cannot be entered.
    PathUnreadable,
}

impl DecisionCode {
    /// The stable spelling.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ValidationError => "VALIDATION_ERROR",
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::ApprovalRequired => "APPROVAL_REQUIRED",
            Self::PathOutsideAllowedRoot => "PATH_OUTSIDE_ALLOWED_ROOT",
            Self::PathNotFound => "PATH_NOT_FOUND",
            Self::PathNotADirectory => "PATH_NOT_A_DIRECTORY",
            Self::PathUnreadable => "PATH_UNREADABLE",
        }
    }
}

/// An effect with where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Allow, ask or deny.
    pub effect: Effect,
    /// Where it comes from.
    pub source: Source,
    /// The stable code of an ask or deny.
    pub code: Option<DecisionCode>,
    /// One plain sentence.
    pub reason: String,
    /// The ruling that decided, where one did; it names rule and layer.
    pub ruling: Option<Ruling>,
    /// The classifier's verdict, for commands; safe only if its conditions are met as well.
    pub verdict: Option<Verdict>,
    /// Why the command needs review.
    pub findings: Vec<Finding>,
    /// The conditions of a safe verdict.
    pub conditions: Vec<Condition>,
    /// What the commands inside would run, for messages and remembered rules.
    pub commands: unwrap::Commands,
    /// The real working directory, once it is known.
    pub workdir: PathBuf,
    /// A redirection that writes outside the project, into a protected file, or into one that is not exactly known. Only
    /// a sandbox keeps it in bounds.
    pub redirects_beyond: Option<String>,
    provision: Provision,
    /// For a file tool: the real place of the file.
    file: PathBuf,
}

impl Decision {
    fn new(effect: Effect, source: Source, code: Option<DecisionCode>, reason: impl Into<String>) -> Self {
        Self {
            effect,
            source,
            code,
            reason: reason.into(),
            ruling: None,
            verdict: None,
            findings: Vec::new(),
            conditions: Vec::new(),
            commands: unwrap::Commands::default(),
            workdir: PathBuf::new(),
            redirects_beyond: None,
            provision: Provision::default(),
            file: PathBuf::new(),
        }
    }

    pub(crate) fn deny(source: Source, code: DecisionCode, reason: impl Into<String>) -> Self {
        Self::new(Effect::Deny, source, Some(code), reason)
    }

    /// The layer that decided: that of the ruling, or the built-in order.
    pub fn layer(&self) -> &str {
        self.ruling.as_ref().map_or("built-in", |ruling| ruling.layer.as_str())
    }

    /// The rule that decided, as it is written.
    pub fn rule(&self) -> Option<&str> {
        self.ruling.as_ref().and_then(|ruling| ruling.rule.as_ref()).map(|rule| rule.pattern.as_str())
    }
}

/// A request that was decided to run. Only the gate makes one, and nothing runs without it.
#[derive(Debug)]
pub struct Approved {
    request: Request,
    workdir: PathBuf,
    provision: Provision,
    file: PathBuf,
}

impl Approved {
    /// The request.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// The real working directory.
    pub fn workdir(&self) -> &Path {
        &self.workdir
    }

    /// The real place of a file tool's file, as it was when this was decided: no part of it is a symlink.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// What the executor must provide.
    pub(crate) fn provision(&self) -> &Provision {
        &self.provision
    }
}

/// Decides under one policy and one set of settings.
#[derive(Debug, Clone)]
pub struct Gate {
    root: PathBuf,
    /// The root as it was named, when that is not its real path.
    named_root: Option<PathBuf>,
    policy: Policy,
    settings: Settings,
    read_roots: Vec<PathBuf>,
    readable: ReadableRoots,
    /// What git's configuration names is left to the gate that decides again.
    previews: bool,
}

impl Gate {
    /// A gate for the project at `root`.
    ///
    /// # Errors
    ///
    /// When the root does not exist or is not a directory.
    pub fn new(root: &Path, policy: Policy, settings: Settings) -> Result<Self, ExecError> {
        let bad = |reason: String| ExecError::Root { path: root.to_path_buf(), reason };
        let real = std::fs::canonicalize(root).map_err(|error| bad(error.to_string()))?;
        if !real.is_dir() {
            return Err(bad("it is not a directory".to_owned()));
        }
        let read_roots: Vec<PathBuf> = settings
            .read_roots
            .iter()
            .flatten()
            .chain(settings.write_roots.iter().flatten())
            .map(|text| crate::config::expand_home(&real, text))
            .collect();
        let readable = ReadableRoots::new(
            std::iter::once(real.as_path()).chain(read_roots.iter().map(PathBuf::as_path)),
        );
        let named_root = (root.is_absolute() && root != real).then(|| root.to_path_buf());
        Ok(Self { root: real, named_root, policy, settings, read_roots, readable, previews: false })
    }

    /// The same with one layer more: rules that count until the process ends.
    #[must_use]
    pub fn with_layer(mut self, layer: Layer) -> Self {
        self.policy = self.policy.with_layer(layer);
        self
    }

    /// The same without starting git to see what its configuration names: for a front door that does not run the command,
    /// and hands whatever depends on that to another gate, which looks. Nothing can be approved by such a gate.
    #[must_use]
    pub fn previewing(mut self) -> Self {
        self.previews = true;
        self
    }

    /// The real project root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The sandbox mode.
    pub fn mode(&self) -> SandboxMode {
        self.settings.sandbox.unwrap_or(SandboxMode::ReadOnly)
    }

    /// The approval policy.
    pub fn approval(&self) -> ApprovalPolicy {
        self.settings.approval.unwrap_or(ApprovalPolicy::OnRequest)
    }

    /// The classifier's grammar.
    pub fn grammar(&self) -> Grammar {
        match self.settings.grammar {
            Some(cmdgate_policy::Grammar::Sequence) => Grammar::Sequence,
            Some(cmdgate_policy::Grammar::Pipeline | cmdgate_policy::Grammar::Single) | None => {
                Grammar::Pipeline
            }
        }
    }

    /// The decision about a text in a language that is not bash: a rule that denies what it seems to run holds, nothing
    /// else allows it, and a person is asked where somebody can be.
    pub(crate) fn not_understood(&self, request: &Request, why: &str, nobody_can_be_asked: bool) -> Decision {
        let decision = self.decide(request);
        if decision.effect == Effect::Deny && decision.source == Source::Rule {
            return decision;
        }
        let mut own = if nobody_can_be_asked {
            Decision::deny(Source::Policy, DecisionCode::PermissionDenied, why)
        } else {
            Decision::new(Effect::Ask, Source::Policy, Some(DecisionCode::ApprovalRequired), why)
        };
        own.workdir = decision.workdir;
        own
    }

    /// Decides a request.
    pub fn decide(&self, request: &Request) -> Decision {
        if let Some(refused) = refuse_malformed(&request.action) {
            return refused;
        }
        let workdir = match self.workdir(request.workdir.as_deref()) {
            Ok(workdir) => workdir,
            Err(refused) => return *refused,
        };
        let mut decision = match &request.action {
            Action::Shell(command) => self.decide_shell(command, &workdir),
            Action::Exec(argv) => self.decide_exec(argv, &workdir),
            Action::Read(path) => self.decide_file(path, Act::Read),
            Action::Write(path) => self.decide_file(path, Act::Write),
        };
        decision.workdir = workdir;
        decision
    }

    /// Decides a request that may run only because it is known to be harmless: what a rule or the approval policy would
    /// let pass is denied, and so is what a rule would ask about.
    pub fn decide_harmless(&self, request: &Request) -> Decision {
        let mut decision = self.decide(request);
        let harmless = decision.verdict == Some(Verdict::Safe);
        if decision.effect == Effect::Deny || (harmless && decision.effect == Effect::Allow) {
            return decision;
        }
        decision.reason = if harmless {
            format!("nobody is asked here, and {}", decision.reason)
        } else {
            "not known to read only inside the project, and nothing else runs here".to_owned()
        };
        decision.effect = Effect::Deny;
        decision.source = Source::ToolOverride;
        decision.code = Some(DecisionCode::PermissionDenied);
        if !harmless {
            // What allowed it elsewhere is not what denies it here.
            decision.ruling = None;
        }
        decision
    }

    /// Turns an allow into the token that lets it run. Anything else gives nothing.
    pub fn approve(&self, request: Request, decision: &Decision) -> Option<Approved> {
        (decision.effect == Effect::Allow && !self.previews).then(|| Approved {
            request,
            workdir: decision.workdir.clone(),
            provision: decision.provision.clone(),
            file: decision.file.clone(),
        })
    }

    /// Turns an answered ask into the token that lets it run. The request is decided again, so that a rule that came
    /// meanwhile counts: an approval lifts an ask and never a deny.
    ///
    /// # Errors
    ///
    /// The new decision, when it denies.
    pub fn approve_asked(&self, request: Request) -> Result<Approved, Box<Decision>> {
        let decision = self.decide(&request);
        match decision.effect {
            Effect::Deny => Err(Box::new(decision)),
            Effect::Allow | Effect::Ask if self.previews => Err(Box::new(Decision::deny(
                Source::Request,
                DecisionCode::PermissionDenied,
                "this was decided without looking at what git would run",
            ))),
            Effect::Allow | Effect::Ask => {
                let Decision { workdir, provision, file, .. } = decision;
                Ok(Approved { request, workdir, provision, file })
            }
        }
    }

    // ---- steps -------------------------------------------------------------------------------------------------

    fn decide_shell(&self, command: &str, workdir: &Path) -> Decision {
        let read_roots = self.texts_of_read_roots();
        let context = self.context(workdir, &read_roots);
        let found = classify(command, &context);
        let mut judged = self.judge(workdir, &found);
        let commands = unwrap::commands(command);
        if self.settings.grammar == Some(cmdgate_policy::Grammar::Single)
            && let Some(refused) = refuse_all_but_one_command(command)
        {
            return refused;
        }
        if let Some(refused) = self
            .refuse_blocked_paths(&commands, workdir)
            .or_else(|| self.refuse_wandering_patterns(command, workdir))
        {
            return refused;
        }
        // Paths are judged by rules even where the grammar of the verdict stops early.
        let for_rules = classify(command, &Context { grammar: Grammar::Sequence, ..context });
        let mut rulings = self.path_rulings(&for_rules, workdir);
        rulings.extend(self.wrapped_path_rulings(&commands, &for_rules, workdir));
        rulings.extend(self.command_rulings(&commands));
        let allows = |argv: &[String]| self.is_allowed_by_rules(argv);
        if judged.verdict == Verdict::NeedsReview
            && !commands.incomplete
            && rulings.iter().any(|ruling| ruling.act == Act::Exec && ruling.allows_by_rule())
            && beyond::rest_is_harmless(&found, allows)
            && let Ok(provision) = self.conditions(&found, workdir)
            && self.settings.environment.add.iter().flatten().all(|name| !changes_programs(name))
        {
            // The allowed command gets what the settings add.
            judged.provision = Provision { clean_environment: false, listed_environment: true, ..provision };
            judged.rest_is_harmless = true;
        }
        let beyond = Beyond::of(command, &for_rules, |path, directory| {
            self.may_redirect_into(path, &workdir.join(directory))
        });
        self.compose(judged, commands, &rulings, beyond)
    }

    /// Whether rules allow everything that these words run.
    fn is_allowed_by_rules(&self, argv: &[String]) -> bool {
        let commands = unwrap::commands_of_argv(argv);
        !commands.incomplete
            && !commands.argvs.is_empty()
            && commands.argvs.iter().all(|argv| self.policy.check_exec_at(argv, now()).allows_by_rule())
    }

    /// The rulings on every command; of the merely possible ones, only those that a rule denies or asks about.
    fn command_rulings(&self, commands: &unwrap::Commands) -> Vec<Ruling> {
        let certain = commands.argvs.iter().map(|argv| self.policy.check_exec_at(argv, now()));
        let possible = commands
            .possible
            .iter()
            .map(|argv| self.policy.check_exec_at(argv, now()))
            .filter(|ruling| ruling.rule.is_some() && ruling.effect != Effect::Allow);
        certain.chain(possible).chain(self.syntax_rulings(commands)).collect()
    }

    /// The denies and asks that are written for what the line has besides plain commands: see [`crate::syntax`].
    fn syntax_rulings(&self, commands: &unwrap::Commands) -> Vec<Ruling> {
        const MARK: &str = "syntax:";
        let about_syntax = |pattern: &str| pattern.starts_with(MARK);
        let mut rulings = Vec::new();
        if commands.syntax.is_empty()
            || !self
                .policy
                .rules()
                .any(|(_, rule)| rule.act == Act::Exec && about_syntax(rule.pattern.as_str()))
        {
            return rulings;
        }
        for name in &commands.syntax {
            for argv in &commands.argvs {
                let target = format!("{MARK}{name} {}", argv.join(" "));
                for (layer, rule) in self.policy.matching(Act::Exec, &target, Some(now())) {
                    if about_syntax(&rule.pattern) && rule.effect != Effect::Allow {
                        let mut ruling = self.policy.check_at(Act::Exec, &target, now());
                        ruling.effect = rule.effect;
                        layer.clone_into(&mut ruling.layer);
                        ruling.rule = Some(rule);
                        rulings.push(ruling);
                    }
                }
            }
        }
        rulings
    }

    fn decide_exec(&self, argv: &[String], workdir: &Path) -> Decision {
        let words: Vec<&str> = argv.iter().map(String::as_str).collect();
        let read_roots = self.texts_of_read_roots();
        let context = self.context(workdir, &read_roots);
        let classification = classify_argv(&words, &context);
        let judged = self.judge(workdir, &classification);
        let commands = unwrap::commands_of_argv(argv);
        if let Some(refused) = self.refuse_blocked_paths(&commands, workdir) {
            return refused;
        }
        let mut rulings = self.path_rulings(&classification, workdir);
        rulings.extend(self.wrapped_path_rulings(&commands, &classification, workdir));
        rulings.extend(self.command_rulings(&commands));
        self.compose(judged, commands, &rulings, Beyond::default())
    }

    /// Checks that the conditions of a safe verdict can be met here.
    fn judge(&self, workdir: &Path, classification: &Classification<'_>) -> Judged {
        let mut judged = Judged {
            verdict: classification.verdict(),
            conditions: classification.conditions.iter().collect(),
            findings: classification.findings.clone(),
            provision: Provision::default(),
            rest_is_harmless: false,
        };
        if judged.verdict == Verdict::Safe {
            match self.conditions(classification, workdir) {
                Ok(provision) => judged.provision = provision,
                Err(unmet) => {
                    judged.verdict = Verdict::NeedsReview;
                    judged.findings.push(Finding {
                        code: unmet.code,
                        span: unmet.span.unwrap_or(Span::new(0, 0)),
                        message: Cow::Owned(unmet.why),
                        row: None,
                    });
                }
            }
        }
        judged
    }

    fn conditions(&self, found: &Classification<'_>, workdir: &Path) -> Result<Provision, provide::Unmet> {
        provide::conditions(found, workdir, &self.root, &self.readable, self.mode(), self.previews)
    }

    fn texts_of_read_roots(&self) -> Vec<&str> {
        self.read_roots.iter().chain(&self.named_root).filter_map(|path| path.to_str()).collect()
    }

    /// The classifier's view of the project. One whose path is not UTF-8 is judged without its name: absolute paths
    /// are outside then.
    fn context<'c>(&'c self, workdir: &'c Path, read_roots: &'c [&'c str]) -> Context<'c> {
        let context = Context::new(self.grammar());
        match (self.root.to_str(), workdir.to_str()) {
            (Some(root), Some(cwd)) => context.with_root(root).with_cwd(cwd).with_read_roots(read_roots),
            (None, _) | (_, None) => context,
        }
    }

    /// Contract P8: the paths that the classifier found, as read and write.
    fn path_rulings(&self, classification: &Classification<'_>, workdir: &Path) -> Vec<Ruling> {
        let mut rulings = Vec::new();
        let effects = &classification.effects;
        for (act, list) in [(Act::Read, &effects.reads), (Act::Write, &effects.writes)] {
            for used in list {
                let base = workdir.join(effects.directory(used.directory));
                let text = used.path.as_ref();
                rulings.extend(self.path_ruling(act, Some(text), &lexical_join(&base, Path::new(text))));
                // What a pattern matches is judged as if it were named. One that is not followed is not proved either.
                let matched =
                    if used.pattern { resolve::expand(&base, used, |_| Ok(())) } else { Ok(Vec::new()) };
                for path in matched.into_iter().flatten() {
                    rulings.extend(self.path_ruling(act, None, &lexical_join(&base, &path)));
                }
            }
        }
        for host in &effects.network {
            let ruling = self.policy.check_at(Act::Net, host, now());
            if ruling.rule.is_some() {
                rulings.push(ruling);
            }
        }
        rulings
    }

    /// The same for commands that others run (`bash -c`, `env`, `sudo`), as far as a rule denies or asks: what a person
    /// allows of a path says nothing about the wrapper.
    fn wrapped_path_rulings(
        &self,
        commands: &unwrap::Commands,
        around: &Classification<'_>,
        workdir: &Path,
    ) -> Vec<Ruling> {
        let read_roots = self.texts_of_read_roots();
        let context = self.context(workdir, &read_roots);
        let judged = |argv: &[String]| around.effects.runs.iter().any(|run| run.argv == argv);
        let wrapped = commands.argvs.iter().chain(&commands.possible).filter(|argv| !judged(argv));
        let mut rulings = Vec::new();
        for argv in wrapped {
            let words: Vec<&str> = argv.iter().map(String::as_str).collect();
            rulings.extend(self.path_rulings(&classify_argv(&words, &context), workdir));
        }
        rulings.retain(|ruling| ruling.effect != Effect::Allow);
        rulings
    }

    /// What a rule says of one path. A default says nothing about a path inside a command: the command's own decision
    /// does.
    fn path_ruling(&self, act: Act, text: Option<&str>, lexical: &Path) -> Option<Ruling> {
        let real = real_place(lexical).unwrap_or_else(|| lexical.to_path_buf());
        let mut names: Vec<String> = text.into_iter().map(str::to_owned).collect();
        names.extend(self.names_of(lexical, &real));
        Some(self.policy.check_names(act, &names, Some(now()))).filter(|ruling| ruling.rule.is_some())
    }

    /// Contract S13 to S16 with P3: puts verdict, rules and settings together.
    fn compose(
        &self,
        judged: Judged,
        commands: unwrap::Commands,
        rulings: &[Ruling],
        beyond: Beyond,
    ) -> Decision {
        let by_rule =
            |effect: Effect| rulings.iter().find(|ruling| ruling.rule.is_some() && ruling.effect == effect);
        let mut decision = if let Some(ruling) = by_rule(Effect::Deny) {
            let mut decision =
                Decision::deny(Source::Rule, DecisionCode::PermissionDenied, ruling.to_string());
            decision.ruling = Some(ruling.clone());
            decision
        } else if let Some(ruling) = rulings.iter().find(|ruling| self.lacks_its_sandbox(ruling)) {
            let mut decision = Decision::deny(
                Source::Policy,
                DecisionCode::PermissionDenied,
                format!(
                    "`{}` runs inside the read_only sandbox with the network off, or not at all",
                    ruling.target
                ),
            );
            decision.ruling = Some(ruling.clone());
            decision
        } else if let Some(ruling) = by_rule(Effect::Ask) {
            let mut decision = Decision::new(
                Effect::Ask,
                Source::Rule,
                Some(DecisionCode::ApprovalRequired),
                ruling.to_string(),
            );
            decision.ruling = Some(ruling.clone());
            decision
        } else {
            self.compose_with_tool(&judged, &commands, rulings, &beyond)
        };
        decision.redirects_beyond = beyond.writes;
        decision.verdict = Some(judged.verdict);
        // A rule alone allows without conditions.
        let unconditional = decision.source == Source::Rule && !judged.rest_is_harmless;
        decision.findings = judged.findings;
        decision.conditions = if unconditional { Vec::new() } else { judged.conditions };
        decision.commands = commands;
        decision.provision = judged.provision;
        decision
    }

    /// Contract S13 to S15, where no rule denies or asks: the generic decision, and the shell's own judgement over it.
    fn compose_with_tool(
        &self,
        judged: &Judged,
        commands: &unwrap::Commands,
        rulings: &[Ruling],
        beyond: &Beyond,
    ) -> Decision {
        let read_only = self.mode() == SandboxMode::ReadOnly;
        let exec_allowed = judged.rest_is_harmless
            || !commands.incomplete
                && !commands.argvs.is_empty()
                && rulings.iter().filter(|ruling| ruling.act == Act::Exec).all(Ruling::allows_by_rule);
        let beyond_rules = if !exec_allowed || judged.verdict == Verdict::Safe {
            None
        } else if let Some(name) = &beyond.sets {
            Some(format!("it sets `{name}`, and a rule for a program does not cover that"))
        } else {
            // A sandbox keeps what the command writes inside.
            let writes = beyond.writes.as_ref().filter(|_| self.mode() == SandboxMode::DangerFullAccess);
            writes.map(|text| format!("`{text}` writes where a rule for a program does not reach"))
        };
        let uncovered = beyond_rules.is_some();
        let by_rule = exec_allowed && !uncovered && self.approval() != ApprovalPolicy::Strict;
        let of_exec = || rulings.iter().filter(|ruling| ruling.act == Act::Exec);
        let generic = if by_rule {
            let mut allowing = of_exec().filter(|ruling| ruling.allows_by_rule()).peekable();
            let first = allowing.peek().copied();
            let ruling = allowing.find(|ruling| ruling.only_in_sandbox).or(first);
            let mut decision = Decision::new(
                Effect::Allow,
                Source::Rule,
                None,
                ruling.map_or_else(String::new, |ruling| {
                    let rest = if judged.rest_is_harmless { "; the rest only reads" } else { "" };
                    format!("{ruling}{rest}")
                }),
            );
            decision.ruling = ruling.cloned();
            decision
        } else if let (Some(why), false) = (beyond_rules, self.approval() == ApprovalPolicy::Never) {
            Decision::new(Effect::Ask, Source::Policy, Some(DecisionCode::ApprovalRequired), why)
        } else if judged.verdict != Verdict::Safe
            && !read_only
            && (commands.incomplete || commands.interprets)
            && self.approval() == ApprovalPolicy::Never
            && self.has_strict_exec_rules()
        {
            Decision::deny(
                Source::Policy,
                DecisionCode::PermissionDenied,
                "which programs this would run cannot be told, so the rules that deny or ask cannot be applied",
            )
        } else {
            let strictest = of_exec().max_by_key(|ruling| ruling.effect).filter(|_| !uncovered).cloned();
            let mut ruling = strictest.unwrap_or_else(|| self.policy.check_at(Act::Exec, "", now()));
            if commands.incomplete && ruling.allows_by_rule() {
                // It allows what can be told of the line, and there is more.
                ruling.rule = None;
                ruling.effect = Effect::Ask;
            }
            self.generic(ruling)
        };
        let own = match judged.verdict {
            Verdict::Safe => Some(Effect::Allow),
            Verdict::NeedsReview if read_only && !by_rule => Some(Effect::Deny),
            Verdict::NeedsReview => None,
        };
        let composed = compose(generic.effect, own);
        match (composed.source, composed.effect) {
            (PermissionSource::Generic, _) => generic,
            (PermissionSource::ToolOverride, Effect::Allow | Effect::Ask) => Decision::new(
                Effect::Allow,
                Source::ToolOverride,
                None,
                "known to read only inside the project",
            ),
            (PermissionSource::ToolOverride, Effect::Deny) => Decision::deny(
                Source::ToolOverride,
                DecisionCode::PermissionDenied,
                "not known to be read-only, and this is a read_only run",
            ),
        }
    }

    /// Contract H4: a program that the policy lets run in the read-only sandbox alone, and this run has another.
    fn lacks_its_sandbox(&self, ruling: &Ruling) -> bool {
        let network = self.settings.network.allow_domains.as_deref().is_some_and(|hosts| !hosts.is_empty());
        ruling.only_in_sandbox && (self.mode() != SandboxMode::ReadOnly || network)
    }

    /// Whether any rule beyond the built-in ones denies or asks about programs.
    fn has_strict_exec_rules(&self) -> bool {
        self.policy.rules().any(|(layer, rule)| {
            rule.act == Act::Exec && rule.effect != Effect::Allow && !layer.name.starts_with("builtin")
        })
    }

    /// Contract S15: no rule and no proof speaks, so the default of the policy and the approval policy do.
    fn generic(&self, ruling: Ruling) -> Decision {
        let effect = match (ruling.effect, self.approval(), ruling.rule.is_some()) {
            (Effect::Ask, ApprovalPolicy::Never, false) => Effect::Allow,
            (Effect::Allow, ApprovalPolicy::Strict, _) if ruling.act != Act::Read => Effect::Ask,
            (effect, _, _) => effect,
        };
        let code = match effect {
            Effect::Allow => None,
            Effect::Ask => Some(DecisionCode::ApprovalRequired),
            Effect::Deny => Some(DecisionCode::PermissionDenied),
        };
        let reason = if ruling.rule.is_some() {
            ruling.to_string()
        } else {
            let approval = self.approval().as_str();
            match effect {
                Effect::Allow => format!("no rule speaks against it (approval policy {approval})"),
                Effect::Ask => {
                    format!("not known to be harmless, and no rule allows it (approval policy {approval})")
                }
                Effect::Deny => "no rule allows it, and the default is to deny".to_owned(),
            }
        };
        let source = if ruling.rule.is_some() { Source::Rule } else { Source::Policy };
        let mut decision = Decision::new(effect, source, code, reason);
        decision.ruling = Some(ruling);
        decision
    }
}

/// What the classifier and the file system say together.
struct Judged {
    verdict: Verdict,
    findings: Vec<Finding>,
    conditions: Vec<Condition>,
    provision: Provision,
    /// What is not proved harmless is allowed by rules, and the conditions of the rest are met.
    rest_is_harmless: bool,
}

fn refuse_malformed(action: &Action) -> Option<Decision> {
    let refuse = |why: &str| Some(Decision::deny(Source::Request, DecisionCode::ValidationError, why));
    match action {
        Action::Shell(command) if command.trim().is_empty() => refuse("`command` is empty"),
        Action::Shell(command) if command.contains('\0') => refuse("`command` holds a NUL byte"),
        Action::Exec(argv) => match argv.first() {
            None => refuse("`argv` is empty: give the program first"),
            Some(program) if program.is_empty() => refuse("the program's name is empty"),
            Some(_) if argv.iter().any(|word| word.contains('\0')) => refuse("`argv` holds a NUL byte"),
            Some(_) => None,
        },
        Action::Read(path) | Action::Write(path)
            if path.as_os_str().is_empty() || path.as_os_str().as_encoded_bytes().contains(&0) =>
        {
            refuse("`path` is empty or holds a NUL byte")
        }
        Action::Shell(_) | Action::Read(_) | Action::Write(_) => None,
    }
}

/// Contract H2: one simple command, without any construct of the shell.
fn refuse_all_but_one_command(command: &str) -> Option<Decision> {
    let refuse = |why: String| {
        Some(Decision::deny(
            Source::Policy,
            DecisionCode::PermissionDenied,
            format!("one simple command at a time: {why}"),
        ))
    };
    match cmdgate_lexer::lex(command, Grammar::Pipeline) {
        Err(error) => refuse(error.to_string()),
        Ok(script) => match script.list.items.as_slice() {
            [item] if item.pipeline.stages.len() > 1 => refuse("`|` joins several".to_owned()),
            [item] if item.pipeline.negated || item.pipeline.timed => {
                refuse("a keyword stands before it".to_owned())
            }
            [_] => None,
            _ => refuse("there are several".to_owned()),
        },
    }
}

/// The time of the decision, for rules with an end.
fn now() -> Timestamp {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_secs());
    Timestamp::from_unix_seconds(i64::try_from(seconds).unwrap_or(i64::MAX))
}
