//! The options by which the deciding commands share root, policy and modes.

use super::out::say;
use super::place::enclosing_repository;
use crate::config::{self, ConfigError, Loaded, Overrides, UserDirs};
use crate::exit::Exit;
use crate::session::Session;
use clap::ValueEnum;
use cmdgate_policy::{ApprovalPolicy, Grammar, ProfileName, SandboxMode};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

/// Options that every deciding command takes.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct DecideArgs {
    /// Project root [default: the enclosing git repository, or the current directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// Directory in which the command runs, relative to the root [default: the current directory if it lies inside
    /// the root, else the root]
    #[arg(long, value_name = "DIR", visible_alias = "cwd")]
    pub(crate) workdir: Option<PathBuf>,
    /// What the kernel lets the command do [default: read_only, unless a policy says otherwise]
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) sandbox: Option<SandboxName>,
    /// When a person is asked [default: on_request, unless a policy says otherwise]
    #[arg(long, value_enum, value_name = "POLICY")]
    pub(crate) approval: Option<ApprovalName>,
    /// Which shell constructs the verdict understands [default: pipeline, unless a policy says otherwise]
    #[arg(long, value_enum)]
    pub(crate) grammar: Option<super::place::GrammarName>,
    /// A ready-made set of rules and settings
    #[arg(long, value_enum)]
    pub(crate) profile: Option<ProfileArg>,
    /// A policy file besides the usual ones; can be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Vec<PathBuf>,
    /// The trace that the command line named, which nothing that runs may write.
    #[arg(skip)]
    pub(crate) trace: Option<PathBuf>,
}

/// `--sandbox`
#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum SandboxName {
    /// Nothing is written outside a private /tmp, and no network.
    ReadOnly,
    /// The project is writable except protected paths, and no network.
    WorkspaceWrite,
    /// No sandbox at all.
    DangerFullAccess,
}

/// `--approval`
#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum ApprovalName {
    /// Never: what no rule forbids is allowed.
    Never,
    /// When a command is not known to be harmless and no rule allows it.
    OnRequest,
    /// Whenever a command is not known to be harmless, whatever the rules allow.
    Strict,
}

/// `--profile`
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ProfileArg {
    /// The built-in layers.
    Default,
    /// Listed programs only, read-only, no network.
    Hardened,
}

impl DecideArgs {
    /// The root, as it was named or found.
    pub(crate) fn root(&self) -> Result<PathBuf, Exit> {
        let root = match &self.root {
            None => return super::place::current().map(|current| enclosing_repository(&current)),
            Some(root) if root.is_absolute() => root.clone(),
            Some(root) => super::place::current()?.join(root),
        };
        match std::fs::metadata(&root) {
            Ok(found) if found.is_dir() => Ok(root),
            Ok(_) => {
                Err(super::fail(Exit::Failed, format_args!("--root {}: it is not a directory", shown(&root))))
            }
            Err(error) => Err(super::fail(Exit::Failed, format_args!("--root {}: {error}", shown(&root)))),
        }
    }

    /// What these options set.
    pub(crate) fn overrides(&self, timeout_ms: Option<NonZeroU64>) -> Overrides {
        Overrides {
            sandbox: self.sandbox.map(|name| match name {
                SandboxName::ReadOnly => SandboxMode::ReadOnly,
                SandboxName::WorkspaceWrite => SandboxMode::WorkspaceWrite,
                SandboxName::DangerFullAccess => SandboxMode::DangerFullAccess,
            }),
            approval: self.approval.map(|name| match name {
                ApprovalName::Never => ApprovalPolicy::Never,
                ApprovalName::OnRequest => ApprovalPolicy::OnRequest,
                ApprovalName::Strict => ApprovalPolicy::Strict,
            }),
            grammar: self.grammar.map(|name| match name {
                super::place::GrammarName::Pipeline => Grammar::Pipeline,
                super::place::GrammarName::Sequence => Grammar::Sequence,
            }),
            profile: self.profile.map(|name| match name {
                ProfileArg::Default => ProfileName::Default,
                ProfileArg::Hardened => ProfileName::Hardened,
            }),
            timeout_ms,
            files: self.policy.clone(),
            trace: self.trace.clone(),
        }
    }

    /// The same for what is recorded in the trace that the command line names, if it names one.
    pub(crate) fn recorded_in(&self, trace: Option<&PathBuf>) -> Self {
        Self { trace: trace.cloned(), ..self.clone() }
    }

    /// The effective configuration for the root.
    pub(crate) fn load(&self, root: &Path, timeout_ms: Option<NonZeroU64>) -> Result<Loaded, Exit> {
        config::load(root, &UserDirs::from_environment(), &self.overrides(timeout_ms))
            .map_err(|error| config_failed(&error))
    }

    /// A session for the root.
    pub(crate) fn session(&self, timeout_ms: Option<NonZeroU64>) -> Result<Session, Exit> {
        let session = self.deciding(timeout_ms)?;
        match UserDirs::from_environment().state {
            Some(state) => session
                .keep_preflight(&state.join("preflight"))
                .map_err(|error| super::fail(Exit::Failed, error)),
            None => Ok(session),
        }
    }

    /// The same for a command that runs nothing.
    pub(crate) fn deciding(&self, timeout_ms: Option<NonZeroU64>) -> Result<Session, Exit> {
        let root = self.root()?;
        let loaded = self.load(&root, timeout_ms)?;
        Session::new(&root, loaded).map_err(|error| super::fail(Exit::Failed, error))
    }

    /// The working directory: the one named, or the current one when it lies inside the root.
    pub(crate) fn workdir(&self, session: &Session) -> Option<PathBuf> {
        self.workdir.clone().or_else(|| {
            let current = std::env::current_dir().ok()?;
            let real = std::fs::canonicalize(current).ok()?;
            real.starts_with(session.gate().root()).then_some(real)
        })
    }
}

fn shown(path: &Path) -> String {
    crate::present::printable(&path.to_string_lossy())
}

/// Shows what is wrong with the configuration, with the place in the file where there is one.
pub(crate) fn config_failed(error: &ConfigError) -> Exit {
    match error {
        ConfigError::Policy { text, errors } => {
            say!("{}", crate::diagnose::policy_errors(text, errors));
            Exit::Policy
        }
        ConfigError::Read { .. } | ConfigError::Missing { .. } | ConfigError::Trust(_) => {
            super::fail(Exit::Policy, error)
        }
    }
}
