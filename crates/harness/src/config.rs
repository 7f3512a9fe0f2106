//! Configuration: which layers there are, in which order, and which of them may loosen.
//!
//! From the weakest to the strongest voice of settings: built-in, `/etc/cmdgate/policy.toml` (operator),
//! `$XDG_CONFIG_HOME/cmdgate/policy.toml` (user) with the rules that were remembered beside it, `.cmdgate.toml` of the
//! project, files named with `--policy`, and flags. For rules there is no order: a deny of any layer counts. The
//! project's file can be written by whoever wrote the project, and by the agent, so it may only tighten until a person
//! has trusted exactly its content.

use crate::approve::remember;
use crate::read;
use crate::trust::TrustStore;
use cmdgate_policy::{
    ApprovalPolicy, Grammar, Layer, Policy, PolicyErrors, PolicyFile, Profile, ProfileName, SandboxMode,
    Settings,
};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The operator's file.
pub const OPERATOR_FILE: &str = "/etc/cmdgate/policy.toml";
/// The project's file, in the project root.
pub const PROJECT_FILE: &str = ".cmdgate.toml";
/// The layer of what the command line sets, and of the files that it names.
pub(crate) const COMMAND_LINE: &str = "command-line";
/// The layer of what the contract of an agent's run sets.
pub(crate) const CONTRACT: &str = "contract";
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
    /// `--trace FILE`. In the project it is a protected path, with the files that belong to it.
    pub trace: Option<PathBuf>,
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

impl Loaded {
    /// The file that rules are remembered in, where there is a place for one.
    pub fn remembered_file(&self) -> Option<&Path> {
        self.origins.iter().find(|origin| origin.layer == "remembered").map(|origin| origin.path.as_path())
    }

    /// The file that only tightens because its content has not been trusted.
    pub fn untrusted_file(&self) -> Option<&Path> {
        let mut origins = self.origins.iter();
        origins.find(|origin| origin.state == OriginState::OnlyTightens).map(|origin| origin.path.as_path())
    }
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
    let real = fs::canonicalize(root).unwrap_or_else(|_| root.to_path_buf());
    let mut stack = Stack::default();
    stack.add("operator", Path::new(OPERATOR_FILE), |_| Ok(false))?;
    if let Some(config) = &dirs.config {
        stack.add("user", &config.join("policy.toml"), |_| Ok(false))?;
        stack.add("remembered", &config.join(remember::FILE), |_| Ok(false))?;
        // Of the rules remembered for single projects, only this one's count.
        stack.layers.retain(|layer| remember::counts_in(&layer.name, &real));
    }
    // Trusted is the file in its real place, whichever way the project was reached.
    let project_file = real.join(PROJECT_FILE);
    stack.add("project", &project_file, |text| {
        let store = TrustStore::open(dirs.state.as_deref())?;
        Ok(!store.is_trusted(&project_file, text.as_bytes()))
    })?;
    for file in &overrides.files {
        stack.add(COMMAND_LINE, file, |_| Ok(false))?;
        // Looked at only once: one that goes away meanwhile is not silently left out.
        if stack.origins.last().is_none_or(|origin| origin.state == OriginState::Absent) {
            return Err(ConfigError::Missing { path: file.clone() });
        }
    }
    stack.layers.push(overrides.as_layer(&real));
    // The strictest profile that any layer names is the ground on which all of them stand.
    let profile =
        stack.layers.iter().filter_map(|layer| layer.settings.profile).max().unwrap_or(ProfileName::Default);
    let policy = Profile::named(profile).with_layers(stack.layers);
    let settings = policy.settings();
    Ok(Loaded { policy, settings, origins: stack.origins })
}

/// The layers that were read so far.
#[derive(Debug, Default)]
struct Stack {
    layers: Vec<Layer>,
    origins: Vec<Origin>,
}

impl Stack {
    /// Reads one file, if it is there; `only_tightens` says of its text whether it may do no more than that.
    fn add(
        &mut self,
        layer: &'static str,
        path: &Path,
        only_tightens: impl FnOnce(&str) -> Result<bool, ConfigError>,
    ) -> Result<(), ConfigError> {
        let state = match read(path)? {
            None => OriginState::Absent,
            Some(text) => {
                let only_tightens = only_tightens(&text)?;
                self.layers.extend(parse(path, &text)?.into_layers(layer).into_iter().map(|layer| {
                    let tighten_only = only_tightens || layer.tighten_only;
                    layer.with_origin(path).with_tighten_only(tighten_only)
                }));
                if only_tightens { OriginState::OnlyTightens } else { OriginState::Read }
            }
        };
        self.origins.push(Origin { layer, path: path.to_path_buf(), state });
        Ok(())
    }
}

impl Overrides {
    /// What the command line sets for a project, as the topmost layer: a lock below it holds.
    fn as_layer(&self, root: &Path) -> Layer {
        let mut layer = Layer::new(COMMAND_LINE);
        layer.settings.sandbox = self.sandbox;
        layer.settings.approval = self.approval;
        layer.settings.grammar = self.grammar;
        layer.settings.profile = self.profile;
        layer.settings.limits.timeout_ms = self.timeout_ms;
        if let Some(trace) = &self.trace {
            layer.settings.protected_paths = files_of_trace(trace, root);
        }
        layer
    }
}

/// The files of a trace that lies in the project, relative to it: the database, what SQLite keeps beside it, and what waits
/// to be brought in.
fn files_of_trace(trace: &Path, root: &Path) -> Vec<String> {
    let named = std::path::absolute(trace).unwrap_or_else(|_| trace.to_path_buf());
    // The directory of one that is not there yet, and what a link leads to.
    let in_place = named
        .parent()
        .zip(named.file_name())
        .and_then(|(directory, name)| fs::canonicalize(directory).ok().map(|directory| directory.join(name)));
    let mut places: Vec<PathBuf> = in_place.into_iter().chain(fs::canonicalize(&named).ok()).collect();
    places.dedup();
    let inside = places.iter().filter_map(|place| place.strip_prefix(root).ok()?.to_str());
    inside
        .flat_map(|path| {
            ["", "-wal", "-shm", "-spool"].map(|end| cmdgate_policy::escape(&format!("{path}{end}")))
        })
        .collect()
}

fn read(path: &Path) -> Result<Option<String>, ConfigError> {
    let failed = |source: io::Error| ConfigError::Read { path: path.to_path_buf(), source };
    match policy_text(path) {
        Ok(text) => Ok(Some(text)),
        // A link that leads nowhere is a mistake that would else silently drop a layer.
        Err(error) if error.kind() == io::ErrorKind::NotFound && fs::symlink_metadata(path).is_err() => {
            Ok(None)
        }
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

/// The text of a policy file, which is a regular one of no more than 16 MiB.
pub(crate) fn policy_text(path: &Path) -> io::Result<String> {
    read::text(path, LARGEST_FILE)
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
