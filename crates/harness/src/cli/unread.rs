//! Payloads of agents' hooks that could not be read or decided about: they are answered, and so they are recorded.

use super::decide::DecideArgs;
use crate::config::{self, UserDirs};
use crate::gate::{Decision, DecisionCode, Request, Source};
use crate::hook::Agent;
use crate::session::{Recorder as _, Session};
use crate::store::RunInfo;
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
        anstream::eprintln!("cmdgate: that this payload came is not recorded: {error}");
    }
}

fn write(
    agent: Agent,
    payload: &[u8],
    why: &str,
    trace: Option<&PathBuf>,
    policy: &[PathBuf],
) -> Result<(), String> {
    let store = super::run::open_store(trace).map_err(|_| "the trace cannot be used".to_owned())?;
    store.leave_the_log().map_err(|error| error.to_string())?;
    let here = std::env::current_dir().map_err(|error| error.to_string())?;
    let root = super::place::enclosing_repository(&here);
    let goal = Some(format!("{} unread", agent.name()));
    let session = session(&root, policy);
    let recorder = match &session {
        Some(session) => store.begin_in("hook", goal, session),
        None => store.begin(&RunInfo {
            kind: "hook",
            goal,
            root: root.to_string_lossy().into_owned(),
            sandbox: "workspace_write",
            approval: "on_request",
        }),
    };
    let recorder = recorder.map_err(|error| error.to_string())?;
    let redactor = match &session {
        Some(session) => store.redactor().clone().with_patterns(&session.gate().settings().trace.redact),
        None => Ok(store.redactor().clone()),
    };
    let redactor = redactor.map_err(|error| error.to_string())?;
    let kept = |text: &str| redactor.text(text).chars().take(KEPT).collect::<String>();
    let size = payload.len();
    let text = match session {
        Some(_) => {
            let begins = String::from_utf8_lossy(payload.get(..LOOKED_AT).unwrap_or(payload));
            format!("(a payload of {size} bytes) {}", kept(&begins))
        }
        // Without the settings it is not known what else is a secret.
        None => format!("(a payload of {size} bytes)"),
    };
    let why = kept(why);
    let decision = Decision::deny(Source::Request, DecisionCode::ValidationError, why);
    let step = recorder.decided(&Request::shell(text), &decision).map_err(|error| error.to_string());
    recorder.finish("not read").map_err(|error| error.to_string())?;
    step.map(|_| ())
}

/// The settings, which say what else is a secret; none where they cannot be used.
fn session(root: &Path, policy: &[PathBuf]) -> Option<Session> {
    let decide = DecideArgs { policy: policy.to_vec(), ..DecideArgs::default() };
    let loaded = config::load(root, &UserDirs::from_environment(), &decide.overrides(None)).ok()?;
    Session::new(root, loaded).ok()
}
