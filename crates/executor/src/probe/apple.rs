//! What a Mac can enforce.

use std::path::Path;

use super::{Check, CheckStatus, Report};
use crate::apple;
use crate::error::ExecError;
use crate::executor::Core;
use crate::limits::{Holds, Limits};
use crate::sandbox::{Rung, seatbelt};

/// Looks at everything. The canary is run again, whatever was remembered.
pub(crate) async fn report(core: &Core, floor: Rung) -> Report {
    let mut checks = vec![super::bash()];
    let mut add = |name, status, detail: String, remedy: Option<String>| {
        checks.push(Check { name, status, detail, remedy });
    };
    let held = match core.session() {
        Ok(session) => apple::canary(Path::new(seatbelt::PROGRAM), &session).await,
        Err(error) => Err(error),
    };
    let rung = match held {
        Ok(()) if floor <= Rung::Reduced => {
            add(
                "canary",
                CheckStatus::Ok,
                "sandbox-exec holds; macOS reaches the rung `reduced`".to_owned(),
                None,
            );
            Some(Rung::Reduced)
        }
        Ok(()) => {
            let detail = "macOS reaches the rung `reduced`, and `full` is asked for".to_owned();
            add("canary", CheckStatus::Failed, detail, Some("lower `lowest_rung` to `reduced`".to_owned()));
            None
        }
        Err(ExecError::SandboxUnavailable { stage, text, remedy }) => {
            let detail = format!("failed at stage {}: {text}", stage.name());
            add("canary", CheckStatus::Failed, detail, Some(remedy));
            None
        }
        Err(error) => {
            add("canary", CheckStatus::Failed, error.to_string(), None);
            None
        }
    };
    let asked = Limits { memory: Some(1 << 30), ..Limits::default() };
    for status in apple::limits(&asked, true).1 {
        if let Holds::Unenforced(reason) = status.holds {
            let detail = format!("{}: {reason}", status.kind.name());
            add("limits", CheckStatus::Warning, detail, None);
        }
    }
    let detail =
        "without a PID namespace, what a command leaves behind is searched for and killed".to_owned();
    add("kill", CheckStatus::Warning, detail, None);
    Report { checks, rung }
}
