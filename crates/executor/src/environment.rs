//! Which environment variables reach a command.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::error::ExecError;

/// Names that are always passed (with everything that starts with `LC_`); `LANG` and `LC_*` only where they name the locale
/// `C` or `POSIX` or one in UTF-8.
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
///
/// In another character set than UTF-8 the same bytes can be other words to bash, and a locale named by a path is a file
/// that somebody has to be trusted with. So an inherited `LANG` or `LC_*` with any other value is dropped, and `LOCPATH`,
/// `LANGUAGE` and `NLSPATH`, which say where locales and messages are read from, are not inherited. That holds in every
/// sandbox, and without one unless everything is inherited; what [`Environment::set`] sets stays.
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

/// Where a computed environment will be used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// Whether the command runs in a sandbox, which gives it a `/tmp` of its own.
    pub(crate) sandboxed: bool,
    /// Directories whose programs are not to be trusted: the project and everything that may be written.
    pub(crate) untrusted: &'a [PathBuf],
    /// Whether the command has a terminal.
    pub(crate) terminal: bool,
}

/// What a command without any other `PATH` gets.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Whether bash would execute or be reconfigured by a variable.
fn forbidden(name: &OsStr) -> bool {
    const NAMES: [&str; 8] = [
        "BASH_ENV",
        "ENV",
        "SHELLOPTS",
        "BASHOPTS",
        "PS4",
        "PROMPT_COMMAND",
        "BASH_XTRACEFD",
        "BASH_LOADABLES_PATH",
    ];
    NAMES.iter().any(|&known| name == known) || name.as_encoded_bytes().starts_with(b"BASH_FUNC_")
}

fn allowed(name: &OsStr) -> bool {
    ALLOWED.iter().any(|&known| name == known) || name.as_encoded_bytes().starts_with(b"LC_")
}

/// Whether a variable would have bash and other programs read bytes in another way, or files from elsewhere.
fn odd_locale(name: &OsStr, value: &OsStr) -> bool {
    if ["LOCPATH", "LANGUAGE", "NLSPATH"].iter().any(|&known| name == known) {
        return true;
    }
    let names_a_locale = name == "LANG" || name.as_encoded_bytes().starts_with(b"LC_");
    names_a_locale && !value.to_str().is_some_and(known_locale)
}

/// `C`, `POSIX`, nothing, or `language.UTF-8`, perhaps with `@modifier` (setlocale(3)).
fn known_locale(value: &str) -> bool {
    if matches!(value, "" | "C" | "POSIX") {
        return true;
    }
    let (locale, modifier) = value.split_once('@').unwrap_or((value, ""));
    let Some((language, charset)) = locale.split_once('.') else { return false };
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    !language.is_empty()
        && plain(language)
        && plain(modifier)
        && (charset.eq_ignore_ascii_case("UTF-8") || charset.eq_ignore_ascii_case("UTF8"))
}

impl Environment {
    /// The environment of a command, sorted by name. Pure: the parent's environment is an argument.
    pub(crate) fn compute(
        &self,
        parent: impl IntoIterator<Item = (OsString, OsString)>,
        place: Place<'_>,
    ) -> Result<Vec<(OsString, OsString)>, ExecError> {
        let mut result: BTreeMap<OsString, OsString> = parent
            .into_iter()
            .filter(|(name, _)| self.inherit_all || allowed(name) || self.named.contains(name))
            .filter(|(name, value)| {
                let everything = self.inherit_all && !place.sandboxed;
                everything || !odd_locale(name, value)
            })
            .collect();
        if let Some(path) = result.get(OsStr::new("PATH")) {
            let clean = sanitised(path, place.untrusted);
            result.insert("PATH".into(), clean);
        }
        let mut give = |name: &str, value: &str, over: bool| {
            if over || !result.contains_key(OsStr::new(name)) {
                result.insert(name.into(), value.into());
            }
        };
        give("PATH", DEFAULT_PATH, false);
        if place.sandboxed {
            give("TMPDIR", "/tmp", true);
            give("TMPPREFIX", "/tmp/zsh", true);
        }
        // There is nobody to page for, to answer a prompt or to see a cursor move.
        if !self.inherit_all {
            give("TERM", "dumb", !place.terminal);
            give("PAGER", "cat", false);
            give("GIT_PAGER", "cat", false);
        }
        give("GIT_TERMINAL_PROMPT", "0", false);
        for (name, value) in &self.set {
            if name.is_empty() || name.as_encoded_bytes().contains(&b'=') {
                return Err(ExecError::EnvironmentName { name: name.to_string_lossy().into_owned() });
            }
            result.insert(name.clone(), value.clone());
        }
        result.retain(|name, _| !forbidden(name) && !self.removed.contains(name));
        if let Some((name, _)) = result
            .iter()
            .find(|(name, value)| [name, value].iter().any(|text| text.as_encoded_bytes().contains(&0)))
        {
            return Err(ExecError::NulByte {
                what: format!("environment variable {}", name.to_string_lossy()),
            });
        }
        Ok(result.into_iter().collect())
    }
}

/// The `PATH` that a command gets in a project at `root`: this process's own without the entries that are relative, empty,
/// or lie where the project or another user could have put a program.
pub fn search_path(root: &Path) -> OsString {
    let inherited = std::env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
    sanitise_path(&inherited, &[root.to_path_buf()])
}

/// [`sanitise_path`], remembering the last answer: the links of a search path are followed once, not for every
/// command.
fn sanitised(path: &OsStr, untrusted: &[PathBuf]) -> OsString {
    type Answer = (OsString, Vec<PathBuf>, OsString);
    static LAST: Mutex<Option<Answer>> = Mutex::new(None);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((known, roots, clean)) = &*last
        && known == path
        && roots == untrusted
    {
        return clean.clone();
    }
    let clean = sanitise_path(path, untrusted);
    *last = Some((path.to_owned(), untrusted.to_vec(), clean.clone()));
    clean
}

/// Takes out of a search path what is relative, empty (the current directory), or lies where the command, or
/// the project, could have put a program.
fn sanitise_path(path: &OsStr, untrusted: &[PathBuf]) -> OsString {
    let places = ["/tmp", "/var/tmp", "/dev/shm"];
    let trusted = |entry: &Path| {
        !untrusted.iter().any(|root| entry.starts_with(root))
            && !places.iter().any(|&place| entry.starts_with(place))
    };
    let kept = std::env::split_paths(path).filter(|entry| {
        entry.is_absolute()
            && !entry.components().any(|part| part == std::path::Component::ParentDir)
            && trusted(entry)
            && std::fs::canonicalize(entry).map_or(true, |real| trusted(&real))
    });
    let joined = std::env::join_paths(kept).unwrap_or_default();
    if joined.is_empty() { DEFAULT_PATH.into() } else { joined }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compute(environment: &Environment, parent: &[(&str, &str)]) -> Vec<(String, String)> {
        let place =
            Place { sandboxed: true, untrusted: &[PathBuf::from("/home/u/project")], terminal: false };
        environment
            .compute(parent.iter().map(|(name, value)| (name.into(), value.into())), place)
            .unwrap()
            .into_iter()
            .map(|(name, value)| (name.into_string().unwrap(), value.into_string().unwrap()))
            .collect()
    }

    fn value<'a>(environment: &'a [(String, String)], name: &str) -> Option<&'a str> {
        environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    // contract: S19
    #[test]
    fn only_listed_names_pass() {
        let parent = [
            ("PATH", "/usr/bin"),
            ("HOME", "/home/u"),
            ("LC_ALL", "C"),
            ("OPENAI_API_KEY", "k"),
            ("FOO", "1"),
            ("BAR", "2"),
        ];
        let passed = compute(&Environment::allowlist().pass("FOO").set("NEW", "x"), &parent);
        let names: Vec<&str> = passed.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "FOO",
                "GIT_PAGER",
                "GIT_TERMINAL_PROMPT",
                "HOME",
                "LC_ALL",
                "NEW",
                "PAGER",
                "PATH",
                "TERM",
                "TMPDIR",
                "TMPPREFIX"
            ]
        );
    }

    // contract: S19
    #[test]
    fn a_locale_in_which_bytes_mean_something_else_does_not_pass() {
        let good =
            ["C", "POSIX", "", "C.UTF-8", "C.utf8", "en_US.UTF-8", "de_DE.utf8@euro", "sr_RS.UTF-8@latin"];
        let bad = [
            "ja_JP.SJIS",
            "zh_TW.BIG5",
            "zh_CN.GB18030",
            "en_US",
            "en_US.ISO-8859-1",
            "tr_TR@x",
            "/tmp/locale",
            "../../tmp/x.UTF-8",
            "/tmp/x.UTF-8",
            "x.UTF-8@../y",
            "x.UTF-8.SJIS",
            ".UTF-8",
            "C ",
            "c",
        ];
        for name in ["LANG", "LC_ALL", "LC_CTYPE", "LC_COLLATE", "LC_ANYTHING"] {
            for environment in
                [Environment::allowlist(), Environment::allowlist().pass(name), Environment::inherit()]
            {
                for value_given in good {
                    let passed = compute(&environment, &[(name, value_given)]);
                    assert_eq!(value(&passed, name), Some(value_given));
                }
                for value_given in bad {
                    let passed = compute(&environment, &[(name, value_given)]);
                    assert_eq!(value(&passed, name), None, "{value_given}");
                }
            }
        }
        let chosen = compute(&Environment::allowlist().set("LC_ALL", "ja_JP.SJIS"), &[]);
        assert_eq!(value(&chosen, "LC_ALL"), Some("ja_JP.SJIS"));
    }

    // contract: S19, P15
    #[test]
    fn where_locales_and_messages_are_read_from_is_not_inherited() {
        for name in ["LOCPATH", "LANGUAGE", "NLSPATH"] {
            let parent = [(name, "/tmp/x"), ("LANG", "ja_JP.SJIS"), ("PATH", "/usr/bin")];
            for environment in
                [Environment::allowlist(), Environment::allowlist().pass(name), Environment::inherit()]
            {
                assert_eq!(value(&compute(&environment, &parent), name), None);
            }
            let chosen = compute(&Environment::allowlist().set(name, "/usr/share/x"), &parent);
            assert_eq!(value(&chosen, name), Some("/usr/share/x"));
            // Without a sandbox, everything is everything; the allowlist is the same there.
            let place = Place { sandboxed: false, untrusted: &[], terminal: false };
            let parent = || parent.iter().map(|&(name, value)| (name.into(), value.into()));
            let names = |environment: Environment| -> Vec<OsString> {
                environment.compute(parent(), place).unwrap().into_iter().map(|(name, _)| name).collect()
            };
            assert!(names(Environment::inherit()).iter().any(|known| known == name));
            let listed = names(Environment::allowlist().pass(name));
            assert!(!listed.iter().any(|known| known == name || known == "LANG"), "{listed:?}");
        }
    }

    // contract: S19
    #[test]
    fn what_bash_would_execute_never_passes() {
        let parent = [
            ("BASH_ENV", "/x"),
            ("ENV", "/x"),
            ("BASH_FUNC_ls%%", "() { evil; }"),
            ("SHELLOPTS", "xtrace"),
            ("PS4", "$(evil)"),
            ("PROMPT_COMMAND", "evil"),
        ];
        let every =
            Environment::inherit().pass("BASH_ENV").set("ENV", "/y").set("BASH_FUNC_cat%%", "() { evil; }");
        for (name, _) in compute(&every, &parent) {
            assert!(!forbidden(OsStr::new(&name)), "{name}");
        }
    }

    // contract: P15
    #[test]
    fn inheriting_passes_everything_else() {
        let passed =
            compute(&Environment::inherit(), &[("OPENAI_API_KEY", "k"), ("TERM", "xterm"), ("PATH", "/bin")]);
        assert_eq!(value(&passed, "OPENAI_API_KEY"), Some("k"));
        assert_eq!(value(&passed, "TERM"), Some("xterm"));
        assert_eq!(value(&passed, "PAGER"), None);
        assert_eq!(value(&passed, "TMPDIR"), Some("/tmp"));
    }

    // contract: S19
    #[test]
    fn the_search_path_loses_what_a_command_could_have_written() {
        let path =
            ":.:bin:/usr/bin:/home/u/project/node_modules/.bin:/tmp/x:/home/u/project/../project/b:/bin";
        let passed = compute(&Environment::allowlist(), &[("PATH", path)]);
        assert_eq!(value(&passed, "PATH"), Some("/usr/bin:/bin"));
        let nothing_left = compute(&Environment::allowlist(), &[("PATH", ".:bin")]);
        assert_eq!(value(&nothing_left, "PATH"), Some(DEFAULT_PATH));
        let explicit = compute(&Environment::allowlist().set("PATH", "/home/u/project/bin"), &[]);
        assert_eq!(value(&explicit, "PATH"), Some("/home/u/project/bin"));
    }

    #[test]
    fn a_removed_name_stays_away_and_a_bad_one_is_refused() {
        let passed = compute(&Environment::allowlist().remove("HOME"), &[("HOME", "/home/u")]);
        assert_eq!(value(&passed, "HOME"), None);
        let place = Place { sandboxed: false, untrusted: &[], terminal: false };
        for name in ["", "A=B"] {
            let error = Environment::allowlist().set(name, "x").compute([], place).unwrap_err();
            assert!(matches!(error, ExecError::EnvironmentName { .. }), "{error}");
        }
        let error = Environment::allowlist().set("A", "x\0y").compute([], place).unwrap_err();
        assert!(matches!(error, ExecError::NulByte { .. }), "{error}");
    }
}
