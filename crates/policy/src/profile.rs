//! Ready-made sets of rules and settings.

use crate::error::PolicyErrors;
use crate::file::PolicyFile;
use crate::layer::Layer;
use crate::policy::Policy;
use crate::program::Program;
use crate::settings::{ProfileName, Settings};

/// The text of the hardened profile.
const HARDENED: &str = include_str!("hardened.toml");

/// A policy to start from.
///
/// ```
/// use cmdgate_policy::{Effect, Profile, SandboxMode};
/// let hardened = Profile::hardened();
/// assert_eq!(hardened.policy().check_exec(&["git", "log", "--oneline"]).effect, Effect::Allow);
/// assert_eq!(hardened.policy().check_exec(&["git", "push"]).effect, Effect::Deny);
/// assert_eq!(hardened.policy().check_exec(&["curl", "example.com"]).effect, Effect::Deny);
/// assert!(hardened.policy().check_exec(&["python", "x.py"]).only_in_sandbox);
/// assert_eq!(hardened.settings().sandbox, Some(SandboxMode::ReadOnly));
/// assert_eq!(hardened.settings().blocking("/etc/passwd"), Some("/etc"));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    name: ProfileName,
    policy: Policy,
}

impl Profile {
    /// The built-in layers: [`Policy::default`].
    pub fn standard() -> Self {
        Self { name: ProfileName::Default, policy: Policy::default() }
    }

    /// Listed programs only, git with its reading subcommands, everything else denied and nobody asked; a
    /// read-only sandbox without network; the system's own folders closed. The rows stand in
    /// [`Profile::hardened_text`].
    pub fn hardened() -> Self {
        Self { name: ProfileName::Hardened, policy: crate::builtin::hardened() }
    }

    /// The profile of that name.
    pub fn named(name: ProfileName) -> Self {
        match name {
            ProfileName::Default => Self::standard(),
            ProfileName::Hardened => Self::hardened(),
        }
    }

    /// The hardened profile as a policy file, to be read, copied and changed.
    pub const fn hardened_text() -> &'static str {
        HARDENED
    }

    /// The built-in layers as a policy file, to be read.
    pub const fn standard_text() -> &'static str {
        crate::builtin::TEXT
    }

    /// A changed copy of the hardened profile: the file goes on top of the built-in layers, as that one does,
    /// and where no rule matches the stricter of both answers.
    pub fn hardened_from_toml(source_name: &str, text: &str) -> Result<Self, PolicyErrors> {
        Ok(Self { name: ProfileName::Hardened, policy: over_builtin(PolicyFile::parse(source_name, text)?) })
    }

    /// Which profile it is.
    pub fn name(&self) -> ProfileName {
        self.name
    }

    /// The policy without any further layer.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The settings of the policy.
    pub fn settings(&self) -> Settings {
        self.policy.settings()
    }

    /// The programs that the profile lists.
    pub fn programs(&self) -> impl Iterator<Item = &Program> {
        self.policy.layers().iter().flat_map(|layer| &layer.programs)
    }

    /// The policy with further layers on top. On the hardened profile they may only tighten: what an
    /// operator, a person or a project allows elsewhere is no part of it.
    pub fn with_layers(self, layers: impl IntoIterator<Item = Layer>) -> Policy {
        let tighten_only = match self.name {
            ProfileName::Default => false,
            ProfileName::Hardened => true,
        };
        layers.into_iter().fold(self.policy, |policy, layer| {
            let tighten_only = tighten_only || layer.tighten_only;
            policy.with_layer(layer.with_tighten_only(tighten_only))
        })
    }
}

pub(crate) fn over_builtin(file: PolicyFile) -> Policy {
    Policy::default().merge(file.into_policy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hardened_profile_reads_and_its_examples_hold() {
        let file = PolicyFile::parse("hardened.toml", HARDENED).unwrap();
        let results = file.run_examples();
        assert!(!results.is_empty() && results.iter().all(crate::ExampleResult::passed));
        assert_eq!(Profile::hardened_from_toml("hardened.toml", HARDENED).unwrap(), Profile::hardened());
    }
}
