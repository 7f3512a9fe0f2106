//! The conditions of a safe verdict: which of them can be met here, and what the executor has to do for that.

use crate::repository;
use crate::resolve::{self, ReadableRoots};
use crate::toolchain;
use cmdgate_classifier::{Classification, Code, Condition, Conditions, Run, Span};
use cmdgate_policy::SandboxMode;
use std::path::Path;

/// What the executor does for a command so that its verdict holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Provision {
    /// Variables to set.
    pub(crate) environment: Vec<(String, String)>,
    /// Hide everything but the project and the system.
    pub(crate) confine_reads: bool,
    /// Pass nothing but the allowlist, whatever the settings add.
    pub(crate) clean_environment: bool,
    /// Pass no more than the allowlist and what the settings add, whatever the caller asks for.
    pub(crate) listed_environment: bool,
    /// Give it an empty input, whoever runs it: what it reads there could name other files.
    pub(crate) null_stdin: bool,
}

/// A condition that cannot be met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unmet {
    pub(crate) code: Code,
    pub(crate) span: Option<Span>,
    pub(crate) why: String,
}

/// The conditions that every run of the executor meets by itself: its environment is an allowlist, standard input is
/// the null device, and output goes to pipes.
const ALWAYS: Conditions = Conditions::NONE
    .with(Condition::CleanEnvironment)
    .with(Condition::NullStdin)
    .with(Condition::NoRipgrepConfig)
    .with(Condition::OutputNotTerminal);

/// Meets the conditions of a safe classification, or says which cannot be met. For a preview git is not started.
pub(crate) fn conditions(
    classification: &Classification<'_>,
    workdir: &Path,
    root: &Path,
    readable: &ReadableRoots,
    mode: SandboxMode,
    preview: bool,
) -> Result<Provision, Unmet> {
    let mut provision = Provision {
        clean_environment: true,
        null_stdin: classification.conditions.contains(Condition::NullStdin),
        ..Provision::default()
    };
    // What is held back runs only where a rule allows it, whatever stands for it.
    let held_back = |run: &Run<'_>| {
        let inside = |span: Span| run.span.start <= span.start && span.end <= run.span.end;
        classification.findings.iter().any(|finding| inside(finding.span))
    };
    for run in classification.effects.runs.iter().filter(|run| !held_back(run)) {
        if let Some(shims) = run.argv.first().and_then(|program| toolchain::shimmed(program)) {
            let why =
                format!("is found in `{}`, where a file of the project may name what runs", shims.display());
            return Err(Unmet { code: Code::ProgramRefused, span: Some(run.span), why });
        }
    }
    for condition in classification.conditions.without(ALWAYS).iter() {
        match condition {
            Condition::PathsResolveInside => {
                resolve::all_inside(&classification.effects, workdir, readable).map_err(|escape| Unmet {
                    code: Code::PathOutside,
                    span: classification.effects.reads.get(escape.index).map(|used| used.span),
                    why: escape.why,
                })?;
            }
            Condition::ReadsConfined => {
                if mode == SandboxMode::DangerFullAccess {
                    return Err(Unmet {
                        code: Code::PathUnknown,
                        span: None,
                        why: "may read outside the project, which nothing prevents without a sandbox"
                            .to_owned(),
                    });
                }
                provision.confine_reads = true;
            }
            Condition::GitHardened if preview => {}
            Condition::GitHardened => {
                let environment = repository::hardened(&classification.effects, workdir, root, readable)
                    .map_err(|why| Unmet { code: Code::FlagRuns, span: None, why })?;
                provision.environment.extend(environment);
            }
            Condition::ToolchainFixed => {
                let variables = toolchain::fixed(root).map_err(|why| Unmet {
                    code: Code::ProgramRefused,
                    span: None,
                    why,
                })?;
                provision.environment.extend(variables);
            }
            Condition::CleanEnvironment
            | Condition::NullStdin
            | Condition::NoRipgrepConfig
            | Condition::OutputNotTerminal => {}
        }
    }
    Ok(provision)
}
