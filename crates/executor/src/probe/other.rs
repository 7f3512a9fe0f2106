//! What a system without a backend can enforce: nothing.

use super::{Check, CheckStatus, Report};
use crate::error::ExecError;
use crate::executor::Core;
use crate::sandbox::Rung;

/// Says that every run is refused.
#[expect(clippy::unused_async, reason = "other systems start processes here")]
pub(crate) async fn report(_core: &Core, _floor: Rung) -> Report {
    let (detail, remedy) = match crate::run::no_backend(std::env::consts::OS) {
        ExecError::SandboxUnavailable { text, remedy, .. } => (text, Some(remedy)),
        error => (error.to_string(), None),
    };
    Report {
        checks: vec![Check { name: "platform", status: CheckStatus::Failed, detail, remedy }],
        rung: None,
    }
}
