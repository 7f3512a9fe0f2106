//! Payloads of agents' hooks that could not be read or decided about: they are answered, and so they are recorded.

use super::decide::DecideArgs;
use super::out::say;
use crate::config::{self, UserDirs};
use crate::gate::{Decision, DecisionCode, Request, Source};
use crate::hook::Agent;
use crate::redact::Redactor;
use crate::session::Session;
use crate::store::{RunInfo, Store};
use std::path::{Path, PathBuf};

/// How many characters of the payload are kept.
const KEPT: usize = 400;
/// How many of its bytes are looked at. Secrets are taken out of these before the rest is cut off, so that no half of one
/// is kept.
const LOOKED_AT: usize = 64 * 1024;

/// Writes down that a payload came, from whom, and why it was refused. That it cannot be written changes nothing about the
/// answer, which is a refusal.
pub(super) fn record(agent: Agent, payload: &[u8], why: &str, trace: Option<&PathBuf>, policy: &[PathBuf]) {
    if let Err(error) = write(agent, payload, why, trace, policy) {
        say!("cmdgate: that this payload came is not recorded: {error}");
    }
}

fn write(
    agent: Agent,
    payload: &[u8],
    why: &str,
    trace: Option<&PathBuf>,
    policy: &[PathBuf],
) -> Result<(), String> {
    let here = std::env::current_dir().map_err(|error| error.to_string())?;
    let root = super::place::enclosing_repository(&here);
    let session = session(&root, policy);
    let redactor = Redactor::from_environment();
    let (info, redactor, kept) = if let Some(session) = &session {
        let redactor = redactor.with_patterns(&session.gate().settings().trace.redact);
        let begins = payload.get(..LOOKED_AT).unwrap_or(payload);
        (RunInfo::of("hook", None, session), redactor.map_err(|error| error.to_string())?, begins)
    } else {
        let root = root.to_string_lossy().into_owned();
        let info =
            RunInfo { kind: "hook", goal: None, root, sandbox: "workspace_write", approval: "on_request" };
        // Without the settings it is not known what else is a secret.
        (info, redactor, <&[u8]>::default())
    };
    let cut = |text: &str| redactor.text(text).chars().take(KEPT).collect::<String>();
    let text = format!("(a payload of {} bytes) {}", payload.len(), cut(&String::from_utf8_lossy(kept)));
    let decision = Decision::deny(Source::Request, DecisionCode::ValidationError, cut(why));
    let info = RunInfo { goal: Some(format!("{} unread", agent.name())), ..info };
    let trace = super::run::trace_at(trace).map_err(|_| "the trace cannot be used".to_owned())?;
    let decided = [(Request::shell(text.trim_end()), decision)];
    Store::note(trace, &info, &redactor, &decided, "not read").map_err(|error| error.to_string())
}

/// The settings, which say what else is a secret; none where they cannot be used.
fn session(root: &Path, policy: &[PathBuf]) -> Option<Session> {
    let decide = DecideArgs { policy: policy.to_vec(), ..DecideArgs::default() };
    let loaded = config::load(root, &UserDirs::from_environment(), &decide.overrides(None)).ok()?;
    Session::new(root, loaded).ok()
}
