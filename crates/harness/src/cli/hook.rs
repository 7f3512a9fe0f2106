//! `harness hook` and `harness allow-once`.

use super::decide::{ApprovalName, DecideArgs, SandboxName};
use super::out::{self, say};
use crate::config::UserDirs;
use crate::exit::Exit;
use crate::gate::{Decision, Request, Source};
use crate::hook::code::{Codes, Entry, Recorded, bound_to};
use crate::hook::{self, Agent, Asked, Asks, Containment, LONGEST_PAYLOAD, Payload, Reply, Verdict};
use crate::present::printable;
use crate::session::{RecordId, Session};
use crate::store::{Store, StoreError};
use cmdgate_policy::Effect;
use std::io::{self, Read, Write};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// How long the end of the process waits for standard error to take why there is no decision.
const LONGEST_SAYING: Duration = Duration::from_millis(200);

const NESTED: &str = "the agent's own sandbox is on, and no other can be set up in it: turn that off \
    (`sandbox_mode = \"danger-full-access\"` for Codex), so that `--contain` takes its place";

/// Answer an agent's hook: its JSON on standard input, its answer in its own shape
///
/// What cannot be read or decided is answered with ask or deny, never with allow. The exit status is what the agent's
/// contract names.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  harness hook claude-code < payload.json\n  harness install claude-code")]
pub(crate) struct HookArgs {
    /// The agent
    #[arg(value_enum)]
    agent: Agent,
    /// Put every command that no rule denies into the sandbox, and ask only where a rule does; for agents that let a hook
    /// change the command
    #[arg(long)]
    contain: bool,
    /// The sandbox for commands that are put into it, and the mode under which is decided [default: workspace_write]
    #[arg(long, value_enum, value_name = "MODE")]
    sandbox: Option<SandboxName>,
    /// When a person is asked [default: on_request]
    #[arg(long, value_enum, value_name = "POLICY")]
    approval: Option<ApprovalName>,
    /// A policy file besides the usual ones; can be repeated
    #[arg(long, value_name = "FILE")]
    policy: Vec<PathBuf>,
    /// The trace database [default: trace.db in the state directory]
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

/// Allow one run of the command that was refused with this code
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  harness allow-once k3v9xp\n  harness allow-once --yes k3v9xp")]
pub(crate) struct AllowOnceArgs {
    /// The code
    code: String,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

pub(crate) fn hook(args: &HookArgs) -> ExitCode {
    static ANSWERED: AtomicBool = AtomicBool::new(false);
    let agent = args.agent;
    // Well before the agent loses patience and runs the command.
    std::thread::spawn(move || {
        std::thread::sleep(agent.patience());
        if !ANSWERED.swap(true, Ordering::SeqCst) {
            std::process::exit(i32::from(refuse(agent, "no decision in time")));
        }
    });
    // Not caught: a build for users ends with the panic itself.
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        tell(panic);
        if !ANSWERED.swap(true, Ordering::SeqCst) {
            std::process::exit(i32::from(refuse(agent, "an internal error")));
        }
    }));
    let reply = answer(args);
    if ANSWERED.swap(true, Ordering::SeqCst) {
        // The other thread is answering, and ends the process.
        loop {
            std::thread::park();
        }
    }
    ExitCode::from(send(&reply))
}

/// Answers that nothing was decided, and then says why on standard error; gives back the exit code. The agent waits for the
/// end of this process, so that a standard error that nobody reads, or that another thread holds, may not keep it.
fn refuse(agent: Agent, why: &'static str) -> u8 {
    let reply = agent.answer(None, &Verdict::Deny { reason: why.to_owned() });
    let (said, told) = mpsc::channel();
    let exit = send(&reply);
    // Where the answer itself stands on standard error, it has said why.
    if reply.stderr.is_empty() {
        std::thread::spawn(move || {
            say!("cmdgate: {why}");
            let _ = said.send(());
        });
        let _ = told.recv_timeout(LONGEST_SAYING);
    }
    exit
}

/// Prints the answer; gives back the exit code.
fn send(reply: &Reply) -> u8 {
    let sent =
        io::stdout().lock().write_all(reply.stdout.as_bytes()).and_then(|()| io::stdout().flush()).and_then(
            |()| match reply.stderr.as_str() {
                // Another thread may hold it.
                "" => Ok(()),
                text => io::stderr().lock().write_all(text.as_bytes()),
            },
        );
    // An answer that does not arrive must not read as "no opinion": two blocks with every agent that looks at the code.
    if sent.is_err() { 2 } else { reply.exit }
}

fn answer(args: &HookArgs) -> Reply {
    let agent = args.agent;
    let record = |bytes: &[u8], why: &str| {
        super::unread::record(agent, bytes, why, args.trace.as_ref(), &args.policy);
    };
    let unread = |bytes: &[u8], why: String| {
        say!("cmdgate: {why}");
        record(bytes, &why);
        agent.answer(None, &Verdict::Deny { reason: why })
    };
    let mut bytes = Vec::new();
    if let Err(error) = io::stdin().lock().take(LONGEST_PAYLOAD as u64 + 1).read_to_end(&mut bytes) {
        return unread(&bytes, format!("the payload cannot be read: {error}"));
    }
    let payload = match hook::read_payload(&bytes) {
        Ok(payload) => payload,
        Err(why) => return unread(&bytes, why),
    };
    let asked = match agent.parse(&payload) {
        Ok(Payload::Commands(asked)) => asked,
        Ok(Payload::Unrelated) => return agent.no_opinion(),
        Err(why) => {
            return unread(&bytes, format!("the payload is not what {} sends: {why}", agent.name()));
        }
    };
    match decided(args, &asked) {
        Ok(verdict) => agent.answer(Some(&asked), &verdict),
        Err(why) => {
            say!("cmdgate: {why}");
            record(&bytes, &why);
            // A command that a person says yes to would run outside the sandbox.
            let verdict =
                if args.contain { Verdict::Deny { reason: why } } else { Verdict::Ask { reason: why } };
            agent.answer(Some(&asked), &unasked(agent, &asked, verdict, None, Recorded::default()))
        }
    }
}

/// The verdict, recorded.
fn decided(args: &HookArgs, asked: &Asked) -> Result<Verdict, String> {
    let agent = args.agent;
    let cwd = match &asked.cwd {
        Some(cwd) => cwd.clone(),
        None => std::env::current_dir().map_err(|error| format!("no working directory: {error}"))?,
    };
    let decide = DecideArgs {
        // A directory that the model chose does not choose the project.
        root: Some(super::place::enclosing_repository(asked.session.as_ref().unwrap_or(&cwd))),
        sandbox: Some(args.sandbox.unwrap_or(SandboxName::WorkspaceWrite)),
        approval: args.approval.or(args.contain.then_some(ApprovalName::Never)),
        grammar: Some(super::place::GrammarName::Sequence),
        policy: args.policy.clone(),
        trace: args.trace.clone(),
        ..DecideArgs::default()
    };
    let session = decide
        .deciding(None)
        .map_err(|_| "the policy cannot be used: `harness check -- true` says why".to_owned())?;
    // The agent runs nothing that depends on git's configuration: it is handed to `harness run`, which asks git, or a person
    // is asked. Half a dozen processes of git are most of the time that this would take.
    let ordinary = hook::is_ordinary_repository(session.gate().root(), std::env::home_dir().as_deref());
    // The process ends with its answer, and the system takes back everything at once. What is recorded is committed by then.
    let session = ManuallyDrop::new(if ordinary { session.previewing() } else { session });
    let containment = containment(args)?;
    let (verdict, decisions) = hook::decide(session.gate(), agent, asked, Some(&containment));
    let rewritten = matches!(verdict, Verdict::Rewrite { .. } | Verdict::AskRewrite { .. });
    let verdict = if args.contain && rewritten && agent.own_sandbox(asked) == Some(true) {
        Verdict::Deny { reason: NESTED.to_owned() }
    } else {
        verdict
    };
    let by_code = match &verdict {
        Verdict::Ask { .. } => agent.asks() != Asks::Native,
        Verdict::AskRewrite { .. } => agent.asks() != Asks::Native || !agent.asks_about_rewrites(),
        Verdict::Allow { .. } | Verdict::Rewrite { .. } | Verdict::Deny { .. } => false,
    };
    let run = Run {
        containment: &containment,
        sandbox: session.gate().mode().as_str(),
        root: session.gate().root(),
        decisions: &decisions,
        args,
    };
    let goal = format!("{} {} {}", agent.name(), asked.event, asked.keys);
    let trace = super::run::trace_at(args.trace.as_ref()).map_err(unusable)?;
    let failed = |error: StoreError| {
        say!("harness: {error}");
        "the trace cannot be used".to_owned()
    };
    if !by_code {
        Store::note_decisions(trace, "hook", Some(goal), &session, &decisions, "answered").map_err(failed)?;
        return Ok(unasked(agent, asked, verdict, Some(&run), Recorded::default()));
    }
    // What a person says about it later is written down where it was asked.
    let store = Store::open(trace).map_err(failed)?;
    let (recorded_run, records) = store
        .record_decisions("hook", Some(goal), &session, &decisions, "answered")
        .map_err(|error| error.to_string())?;
    if let Some(permission) = take_permission(&run.asker(), &directory_of(asked), &hook::texts(asked)) {
        let reason = "allowed once by its code".to_owned();
        record_permission(&store, &session, (recorded_run, &records), &decisions, &permission)?;
        return match verdict {
            Verdict::AskRewrite { commands, .. } => {
                run.permit()?;
                Ok(Verdict::Rewrite { commands, reason })
            }
            Verdict::Ask { .. } | Verdict::Allow { .. } | Verdict::Rewrite { .. } | Verdict::Deny { .. } => {
                Ok(Verdict::Allow { reason })
            }
        };
    }
    drop(store);
    let recorded = Recorded {
        trace: args.trace.as_ref().map(std::path::absolute).transpose().map_err(|error| error.to_string())?,
        steps: records.iter().map(|record| record.0).collect(),
    };
    Ok(unasked(agent, asked, verdict, Some(&run), recorded))
}

/// Writes down that a person has allowed this once, before anything comes of it. The permission is used up by then: one
/// that cannot be recorded allows nothing.
fn record_permission(
    store: &Store,
    session: &Session,
    (run, records): (i64, &[RecordId]),
    decisions: &[(Request, Decision)],
    permission: &Entry,
) -> Result<(), String> {
    let reason = format!("allow-once {}", permission.code);
    let recorder = store.reopen_in(run, session).map_err(|error| error.to_string())?;
    for (record, (request, decision)) in records.iter().zip(decisions) {
        recorder.approved_because(*record, request, decision, &reason).map_err(|error| error.to_string())?;
    }
    recorder.finish(&format!("approved by {reason}")).map_err(|error| error.to_string())
}

/// What the answer says where the trace cannot be opened; standard error says more.
fn unusable(_: Exit) -> String {
    "the trace cannot be used".to_owned()
}

/// What a contained run is told.
struct Run<'a> {
    containment: &'a Containment,
    /// The mode of its sandbox.
    sandbox: &'static str,
    /// The project.
    root: &'a Path,
    decisions: &'a [(Request, Decision)],
    args: &'a HookArgs,
}

impl Run<'_> {
    /// For whom a code is: a yes to a command in the sandbox is none to the same command outside, and none to a command that
    /// does something else because a file that it names has another content by now.
    fn asker(&self) -> String {
        let how = if self.args.contain { "contained" } else { "as it is" };
        let asker = format!("{} {how}", self.args.agent.name());
        self.decisions.iter().fold(asker, |asker, (_, decision)| bound_to(&asker, decision, self.root))
    }

    /// Whether a rule asks, and not just nobody allows.
    fn asks_by_rule(&self) -> bool {
        self.decisions
            .iter()
            .any(|(_, decision)| decision.effect == Effect::Ask && decision.source == Source::Rule)
    }

    /// Lets the contained commands that are asked about run once, under the permit that stands in their text.
    fn permit(&self) -> Result<(), String> {
        let permit = self.containment.permit.as_ref().ok_or("there is no permit for it")?;
        let mut codes = Codes::open(&UserDirs::from_environment()).map_err(|error| error.to_string())?;
        for (request, decision) in self.decisions {
            codes
                .permit_run(
                    permit,
                    &bound_to(self.sandbox, decision, self.root),
                    &decision.workdir,
                    &request.action,
                )
                .map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

/// An ask as the agent can take it: as it is, or refused with a code.
fn unasked(
    agent: Agent,
    asked: &Asked,
    verdict: Verdict,
    run: Option<&Run<'_>>,
    recorded: Recorded,
) -> Verdict {
    let bounded = || agent.own_sandbox(asked) == Some(true);
    let by_code = match agent.asks() {
        Asks::Native => false,
        Asks::BySilence if asked.unattended => true,
        // Its prompt is about to come.
        Asks::BySilence if asked.event == "PermissionRequest" => false,
        // Without a sandbox of its own it would run the command unasked, and in it what a rule asks about.
        Asks::BySilence => run.is_none_or(Run::asks_by_rule) || !bounded(),
        Asks::ByCode => true,
    };
    // No sandbox can be set up in the agent's own, which bounds it already.
    if let Verdict::Rewrite { reason, .. } = &verdict
        && agent.asks() == Asks::BySilence
        && bounded()
    {
        return Verdict::Ask { reason: reason.clone() };
    }
    let reason = match verdict {
        Verdict::Ask { reason } if by_code => reason,
        Verdict::AskRewrite { reason, .. } if by_code || !agent.asks_about_rewrites() => reason,
        Verdict::AskRewrite { commands, reason } => {
            return match run.map(Run::permit) {
                Some(Ok(())) => Verdict::AskRewrite { commands, reason },
                Some(Err(why)) => Verdict::Deny { reason: format!("{reason} ({why})") },
                None => Verdict::Deny { reason },
            };
        }
        verdict @ (Verdict::Ask { .. }
        | Verdict::Allow { .. }
        | Verdict::Rewrite { .. }
        | Verdict::Deny { .. }) => {
            return verdict;
        }
    };
    // Without a decision there is nothing that a yes could lift.
    let Some(run) = run else { return Verdict::Deny { reason } };
    let code = Codes::open(&UserDirs::from_environment())
        .and_then(|mut codes| codes.ask(&run.asker(), &directory_of(asked), &hook::texts(asked), recorded));
    match code {
        Ok(code) => Verdict::Deny {
            reason: format!(
                "{reason}. A person can allow it once with `harness allow-once {code}`; then try again"
            ),
        },
        Err(error) => Verdict::Deny { reason: format!("{reason} ({error})") },
    }
}

/// What a person has allowed once, if it is exactly this; uses that up.
fn take_permission(asker: &str, cwd: &Path, texts: &[String]) -> Option<Entry> {
    match Codes::open(&UserDirs::from_environment()).and_then(|mut codes| codes.take(asker, cwd, texts)) {
        Ok(taken) => taken,
        Err(error) => {
            say!("cmdgate: {error}");
            None
        }
    }
}

/// The real directory: a symlink may lead elsewhere when the answer comes.
fn directory_of(asked: &Asked) -> PathBuf {
    let named = asked.cwd.clone().or_else(|| std::env::current_dir().ok()).unwrap_or_default();
    std::fs::canonicalize(&named).unwrap_or(named)
}

fn containment(args: &HookArgs) -> Result<Containment, String> {
    let program =
        std::env::current_exe().map_err(|error| format!("this program's own path is not known: {error}"))?;
    let sandbox = match args.sandbox.unwrap_or(SandboxName::WorkspaceWrite) {
        SandboxName::ReadOnly => "read_only",
        SandboxName::WorkspaceWrite => "workspace_write",
        SandboxName::DangerFullAccess => "danger_full_access",
    };
    let mut options =
        vec!["--sandbox".to_owned(), sandbox.to_owned(), "--grammar".to_owned(), "sequence".to_owned()];
    if args.contain {
        // The sandbox bounds it, so nobody is asked; what a rule denies or asks about was seen to before.
        options.extend(["--approval".to_owned(), "never".to_owned()]);
    }
    for file in &args.policy {
        options.extend(["--policy".to_owned(), file.to_string_lossy().into_owned()]);
    }
    if let Some(trace) = &args.trace {
        let trace = std::path::absolute(trace).map_err(|error| format!("--trace: {error}"))?;
        options.extend(["--trace".to_owned(), trace.to_string_lossy().into_owned()]);
    }
    let permit = if args.contain {
        Some(crate::hook::code::permit().map_err(|error| error.to_string())?)
    } else {
        None
    };
    Ok(Containment { program, options, always: args.contain, permit })
}

pub(crate) fn allow_once(args: &AllowOnceArgs) -> Exit {
    allow(args).unwrap_or_else(|exit| exit)
}

/// Shows what is asked about; nobody says yes to what was not shown.
fn show(text: &str) -> Result<(), Exit> {
    let mut stdout = anstream::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(|error| {
        super::fail(
            Exit::Failed,
            format_args!("standard output cannot be written: {error}; nothing was allowed"),
        )
    })
}

fn allow(args: &AllowOnceArgs) -> Result<Exit, Exit> {
    let failed = |error| super::fail(Exit::Failed, error);
    let find = || {
        let codes = Codes::open(&UserDirs::from_environment()).map_err(failed)?;
        let unknown = || crate::hook::code::CodeError::Unknown(args.code.clone());
        let entry = codes.find(&args.code).cloned();
        Ok((entry.ok_or_else(|| super::fail(Exit::Unwell, unknown()))?, codes))
    };
    // The file of codes is free while the person thinks: agents ask meanwhile.
    let entry = find()?.0;
    show(&format!("In {}:\n{}\n", printable(&entry.cwd.to_string_lossy()), printable(&entry.shown)))?;
    // The answer is recorded before it counts: one that cannot be recorded allows nothing.
    let record = |yes: bool| {
        let store = super::run::open_store(entry.recorded.trace.as_ref())?;
        let reason = format!("allow-once {}", entry.code);
        store
            .answered_once(&entry.recorded.steps, &entry.cwd, yes, &reason)
            .map_err(|error| super::fail(Exit::Failed, error))
    };
    if !args.yes {
        show("Allow exactly this, once? [y/N] ")?;
        let mut answer = String::new();
        if io::stdin().read_line(&mut answer).is_err() {
            return Err(Exit::Failed);
        }
        if !matches!(answer.trim(), "y" | "Y" | "yes") {
            record(false)?;
            out::write("Not allowed.\n")?;
            return Ok(Exit::Unwell);
        }
    }
    let (still, mut codes) = find()?;
    if still != entry {
        return Err(super::fail(Exit::Unwell, "it was asked again meanwhile; say allow-once again"));
    }
    record(true)?;
    codes.allow(&args.code).map_err(failed)?;
    out::write("Allowed once. The agent can try again now.\n")?;
    Ok(Exit::Success)
}
