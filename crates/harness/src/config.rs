//! Configuration: which layers there are, in which order, and which of them may loosen.
//!
//! From the weakest to the strongest voice of settings: built-in, `/etc/cmdgate/policy.toml` (operator),
//! `$XDG_CONFIG_HOME/cmdgate/policy.toml` (user) with the rules that were remembered beside it, `.cmdgate.toml` of the
//! project, files named with `--policy`, and flags. For rules there is no order: a deny of any layer counts. The
//! project's file can be written by whoever wrote the project, and by the agent, so it may only tighten until a person
//! has trusted exactly its content.

use crate::trust::TrustStore;
use cmdgate_policy::{
    ApprovalPolicy, Grammar, Layer, Policy, PolicyErrors, PolicyFile, ProfileName, SandboxMode, Settings,
};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The operator's file.
pub const OPERATOR_FILE: &str = "/etc/cmdgate/policy.toml";
/// The project's file, in the project root.
pub const PROJECT_FILE: &str = ".cmdgate.toml";
/// A policy file larger than this, in bytes, is refused before it is read.
const LARGEST_FILE: u64 = 16 * 1024 * 1024;

/// What the command line sets.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// `--sandbox`
    pub sandbox: Option<SandboxMode>,
    /// `--approval`
    pub approval: Option<ApprovalPolicy>,
    /// `--grammar`
    pub grammar: Option<Grammar>,
    /// `--profile`
    pub profile: Option<ProfileName>,
    /// `--timeout-ms`
    pub timeout_ms: Option<NonZeroU64>,
    /// `--policy FILE`, in order.
    pub files: Vec<PathBuf>,
}

/// The directories of the user, taken from the environment once.
#[derive(Debug, Clone)]
pub struct UserDirs {
    /// `$XDG_CONFIG_HOME/cmdgate`, or `~/.config/cmdgate`.
    pub config: Option<PathBuf>,
    /// `$XDG_STATE_HOME/cmdgate`, or `~/.local/state/cmdgate`.
    pub state: Option<PathBuf>,
}

impl UserDirs {
    /// From the environment. Relative values of the XDG variables are ignored, as their specification says.
    pub fn from_environment() -> Self {
        let home = std::env::home_dir().filter(|home| home.is_absolute());
        let xdg = |name: &str, fallback: &str| {
            std::env::var_os(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
                .or_else(|| home.as_ref().map(|home| home.join(fallback)))
                .map(|base| base.join("cmdgate"))
        };
        Self { config: xdg("XDG_CONFIG_HOME", ".config"), state: xdg("XDG_STATE_HOME", ".local/state") }
    }
}

/// One file that was looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The layer's name.
    pub layer: &'static str,
    /// Where it is, or would be.
    pub path: PathBuf,
    /// What became of it.
    pub state: OriginState,
}

/// What became of a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OriginState {
    /// There is none.
    Absent,
    /// Read in full.
    Read,
    /// Read, but it may only tighten, because its content has not been trusted.
    OnlyTightens,
}

/// The effective configuration.
#[derive(Debug)]
pub struct Loaded {
    /// All layers.
    pub policy: Policy,
    /// What the layers and the command line set.
    pub settings: Settings,
    /// The files, in order.
    pub origins: Vec<Origin>,
}

/// Why the configuration could not be read. Nothing is decided without it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A file is there and cannot be read.
    #[error("cannot read {path}: {source}; mend it or move it away")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file named on the command line is not there.
    #[error("there is no policy file {path}")]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// A file is larger than any policy.
    #[error("{path} has {bytes} bytes, and a policy file has at most {LARGEST_FILE}")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// A file is not a policy.
    #[error("{errors}")]
    Policy {
        /// The file's text, for showing the place.
        text: String,
        /// What is wrong in it.
        errors: PolicyErrors,
    },
    /// The record of trusted files cannot be read.
    #[error(transparent)]
    Trust(#[from] crate::trust::TrustError),
}

/// Reads all layers for the project at `root`.
///
/// # Errors
///
/// Any file that is there and is not a readable, valid policy.
pub fn load(root: &Path, dirs: &UserDirs, overrides: &Overrides) -> Result<Loaded, ConfigError> {
    let mut policy = Policy::default();
    let mut origins = Vec::new();
    let mut add = |layer: &'static str,
                   path: PathBuf,
                   policy: Policy,
                   tighten_only: &dyn Fn(&str) -> Result<bool, ConfigError>| {
        let Some(text) = read(&path)? else {
            origins.push(Origin { layer, path, state: OriginState::Absent });
            return Ok::<Policy, ConfigError>(policy);
        };
        let only_tightens = tighten_only(&text)?;
        let layers = parse(&path, &text)?.into_layers(layer);
        let policy = layers.into_iter().fold(policy, |policy, layer: Layer| {
            policy.with_layer(layer.with_origin(&path).with_tighten_only(only_tightens))
        });
        let state = if only_tightens { OriginState::OnlyTightens } else { OriginState::Read };
        origins.push(Origin { layer, path, state });
        Ok(policy)
    };
    let trusted = |_: &str| Ok(false);
    policy = add("operator", PathBuf::from(OPERATOR_FILE), policy, &trusted)?;
    if let Some(config) = &dirs.config {
        policy = add("user", config.join("policy.toml"), policy, &trusted)?;
        policy = add("remembered", config.join("remembered.toml"), policy, &trusted)?;
    }
    let project_file = root.join(PROJECT_FILE);
    policy = add("project", project_file.clone(), policy, &|text| {
        let store = TrustStore::open(dirs.state.as_deref())?;
        Ok(!store.is_trusted(&project_file, text.as_bytes()))
    })?;
    for file in &overrides.files {
        if !file.exists() {
            return Err(ConfigError::Missing { path: file.clone() });
        }
        policy = add("command-line", file.clone(), policy, &trusted)?;
    }
    let mut settings = policy.settings();
    settings.sandbox = overrides.sandbox.or(settings.sandbox);
    settings.approval = overrides.approval.or(settings.approval);
    settings.grammar = overrides.grammar.or(settings.grammar);
    settings.profile = overrides.profile.or(settings.profile);
    settings.limits.timeout_ms = overrides.timeout_ms.or(settings.limits.timeout_ms);
    Ok(Loaded { policy, settings, origins })
}

fn read(path: &Path) -> Result<Option<String>, ConfigError> {
    let failed = |source: io::Error| ConfigError::Read { path: path.to_path_buf(), source };
    match fs::metadata(path) {
        Ok(meta) if meta.len() > LARGEST_FILE => {
            return Err(ConfigError::TooLarge { path: path.to_path_buf(), bytes: meta.len() });
        }
        Ok(meta) if !meta.is_file() => {
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")));
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // A link that leads nowhere is a mistake that would else silently drop a layer.
            return match fs::symlink_metadata(path) {
                Ok(_) => Err(failed(error)),
                Err(_) => Ok(None),
            };
        }
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(None),
        Err(error) => return Err(failed(error)),
    }
    fs::read_to_string(path).map(Some).map_err(failed)
}

fn parse(path: &Path, text: &str) -> Result<PolicyFile, ConfigError> {
    PolicyFile::parse(&path.display().to_string(), text)
        .map_err(|errors| ConfigError::Policy { text: text.to_owned(), errors })
}

/// A folder as a settings file names it: absolute, `~/…`, or relative to the project.
pub(crate) fn expand_home(root: &Path, text: &str) -> PathBuf {
    if let Some(rest) = text.strip_prefix("~/")
        && let Some(home) = std::env::home_dir()
    {
        return home.join(rest);
    }
    root.join(text)
}
