//! Conditions: what must be provided at run time for a verdict to hold.

use core::fmt;

macro_rules! conditions {
    ($($(#[doc = $doc:literal])+ $name:ident = $text:literal, $bit:expr;)+) => {
        /// Something that whoever runs the command must provide.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum Condition {
            $($(#[doc = $doc])+ $name = $bit,)+
        }

        impl Condition {
            /// Every condition, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// The stable spelling.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }

            /// What it means, in one or two sentences.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$name => concat!($($doc),+),)+ }
            }
        }
    };
}

conditions! {
    /// `PATH` holds no relative, empty or project-writable entry and finds no shim of a version manager for a program that
    /// runs (asdf's and mise's run a path that the project names), and `BASH_ENV`, `ENV`, exported functions, `LD_*`,
    /// `CDPATH`, `GLOBIGNORE`, `OLDPWD` and the options variables of the programs themselves are absent.
    CleanEnvironment = "clean_environment", 1;
    /// Standard input is the null device, so that a program that would look at it sees its end at once.
    NullStdin = "null_stdin", 1 << 1;
    /// Every path that the effects name resolves, symlinks followed, to a place inside the project, and is neither
    /// a device nor a FIFO.
    PathsResolveInside = "paths_resolve_inside", 1 << 2;
    /// What lies outside the project and the system directories is not visible at all, so that a symlink met on the
    /// way leads nowhere.
    ReadsConfined = "reads_confined", 1 << 3;
    /// Git is run without optional locks and lazy fetches, and every program that the repository's configuration
    /// could name (file system monitor, external diff, textconv and filter drivers, hooks, pager, gpg) is
    /// neutralised.
    GitHardened = "git_hardened", 1 << 4;
    /// ripgrep reads no configuration file (`RIPGREP_CONFIG_PATH` is unset).
    NoRipgrepConfig = "no_ripgrep_config", 1 << 5;
    /// Standard output is not a terminal, so that no pager starts.
    OutputNotTerminal = "output_not_terminal", 1 << 6;
    /// Which version of a language's tools runs is not chosen by files of the project: `RUSTUP_TOOLCHAIN` names an
    /// installed toolchain, `GOTOOLCHAIN` is `local`, and no entry of `PATH` holds shims that run a path named by the
    /// project (asdf, mise). Otherwise `rust-toolchain.toml` may name a directory whose `cargo` runs for
    /// `cargo --version`, and `go.mod` a toolchain that is fetched for `go version`.
    ToolchainFixed = "toolchain_fixed", 1 << 7;
}

/// A set of [`Condition`]s.
///
/// ```
/// use cmdgate_classifier::{Condition, Conditions};
/// let set = Conditions::NONE.with(Condition::GitHardened);
/// assert!(set.contains(Condition::GitHardened));
/// assert_eq!(set.iter().count(), 1);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Conditions(u16);

impl Conditions {
    /// No condition.
    pub const NONE: Self = Self(0);

    /// The set with one more condition.
    #[must_use]
    pub const fn with(self, condition: Condition) -> Self {
        Self(self.0 | condition as u16)
    }

    /// Both sets together.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether `condition` is in the set.
    pub const fn contains(self, condition: Condition) -> bool {
        self.0 & condition as u16 != 0
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The conditions of the set that are not in `provided`.
    #[must_use]
    pub const fn without(self, provided: Self) -> Self {
        Self(self.0 & !provided.0)
    }

    /// The conditions, in declaration order.
    pub fn iter(self) -> impl Iterator<Item = Condition> {
        Condition::ALL.iter().copied().filter(move |condition| self.contains(*condition))
    }
}

impl fmt::Debug for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
