//! Which environment variables reach a command.

use std::ffi::{OsStr, OsString};

/// Names that are always passed (with everything that starts with `LC_`).
pub const ALLOWED: [&str; 9] = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TZ", "LANG"];

/// Names that [`Environment::toolchains`] adds: where compilers and package managers keep their things.
pub const TOOLCHAIN: [&str; 24] = [
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "CARGO_TARGET_DIR",
    "GOPATH",
    "GOROOT",
    "GOCACHE",
    "GOMODCACHE",
    "GOFLAGS",
    "JAVA_HOME",
    "MAVEN_HOME",
    "GRADLE_HOME",
    "ANDROID_HOME",
    "NVM_DIR",
    "PNPM_HOME",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "GEM_HOME",
    "RBENV_ROOT",
    "DOTNET_ROOT",
    "PKG_CONFIG_PATH",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// Which environment variables reach a command. The default is the allowlist [`ALLOWED`] and `LC_*`.
///
/// Whatever is chosen, `BASH_ENV`, `ENV`, `SHELLOPTS`, `BASHOPTS`, `PS4`, `PROMPT_COMMAND` and exported shell functions of the parent
/// are never passed, because bash would execute them; and relative, empty and project-writable entries are
/// taken out of an inherited `PATH`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Environment {
    pub(crate) inherit_all: bool,
    pub(crate) named: Vec<OsString>,
    pub(crate) set: Vec<(OsString, OsString)>,
    pub(crate) removed: Vec<OsString>,
}

impl Environment {
    /// The allowlist alone.
    pub fn allowlist() -> Self {
        Self::default()
    }

    /// Everything that the parent has, secrets included. An explicit choice.
    pub fn inherit() -> Self {
        Self { inherit_all: true, ..Self::default() }
    }

    /// Adds the names in [`TOOLCHAIN`].
    #[must_use]
    pub fn toolchains(mut self) -> Self {
        self.named.extend(TOOLCHAIN.iter().map(OsString::from));
        self
    }

    /// Passes one more variable of the parent, if it is set there.
    #[must_use]
    pub fn pass(mut self, name: impl AsRef<OsStr>) -> Self {
        self.named.push(name.as_ref().to_owned());
        self
    }

    /// Sets a variable, whatever the parent has. Wins over everything else.
    #[must_use]
    pub fn set(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        let name = name.as_ref();
        self.set.retain(|(known, _)| known != name);
        self.set.push((name.to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Keeps a variable from being passed.
    #[must_use]
    pub fn remove(mut self, name: impl AsRef<OsStr>) -> Self {
        let name = name.as_ref();
        self.set.retain(|(known, _)| known != name);
        self.removed.push(name.to_owned());
        self
    }
}
