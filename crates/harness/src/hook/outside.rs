//! Conditions as they are in the shell of the agent, whose environment this process inherits.

use std::ffi::OsStr;
use std::path::Path;

/// Variables that change what bash or the programs of the tables do.
const MUST_BE_ABSENT: &[&str] = &[
    "BASH_ENV",
    "ENV",
    "SHELLOPTS",
    "BASHOPTS",
    "CDPATH",
    "GLOBIGNORE",
    "IFS",
    "POSIXLY_CORRECT",
    "PROMPT_COMMAND",
    "PS4",
    "LESSOPEN",
    "LESSCLOSE",
    "LESS",
    "LESSKEY",
    "LESSKEYIN",
    "MORE",
    "TAR_OPTIONS",
    "GREP_OPTIONS",
    "GAWK_PERSIST_FILE",
    "DEBUGINFOD_URLS",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "ACK_OPTIONS",
    "ACKRC",
    "UNZIP",
    "UNZIPOPT",
    "ZIPINFO",
    "ZIPINFOOPT",
    "JQ_COLORS",
    "AWKPATH",
    "AWKLIBPATH",
    "BAT_CONFIG_PATH",
    "BAT_OPTS",
    "BAT_PAGER",
    "FD_CONFIG_PATH",
    "TREE_COLORS",
    "RUSTUP_TOOLCHAIN",
    "NODE_OPTIONS",
    "PYTHONSTARTUP",
    "PYTHONPATH",
    "PYTHONHOME",
    "PERL5OPT",
    "PERL5LIB",
    "RUBYOPT",
    "LOCPATH",
    "NLSPATH",
    "GCONV_PATH",
    "MAGIC",
    "TZDIR",
    "XDG_CONFIG_DIRS",
];

/// Whether a variable of this name changes what bash or the programs of the tables do. Git's own are not among them: git
/// is never run in such an environment.
pub(crate) fn changes_programs(name: &str) -> bool {
    let loader = name.starts_with("LD_") || name.starts_with("DYLD_") || name.starts_with("BASH_FUNC_");
    loader || MUST_BE_ABSENT.contains(&name)
}

/// Why the environment is not clean; none when it is.
pub(super) fn unclean_environment(root: &Path) -> Option<String> {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if changes_programs(&text) {
            return Some(format!("the variable {text} is set in the agent's environment"));
        }
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    unclean_path(&path, root)
        .map(|entry| format!("PATH holds {entry:?}, where the project could put a program"))
}

/// The first entry of a search path that is not to be trusted.
fn unclean_path(path: &OsStr, root: &Path) -> Option<String> {
    std::env::split_paths(path)
        .find(|entry| {
            let real = std::fs::canonicalize(entry).unwrap_or_else(|_| entry.clone());
            let places = ["/tmp", "/var/tmp", "/dev/shm"];
            !entry.is_absolute()
                || real.starts_with(root)
                || entry.starts_with(root)
                || places.iter().any(|place| real.starts_with(place))
        })
        .map(|entry| entry.to_string_lossy().into_owned())
}

/// What in a configuration of git is looked at in full before a command is handed on.
const UNUSUAL: &[&str] =
    &["include", "alias", "hook", "excludesfile", "attributesfile", "worktree", "submodule"];

/// Whether a repository is as most are, so that what its configuration names will be neutralised where the command runs,
/// and need not be asked of git beforehand. This decides about time and not about safety: whoever runs the command looks.
pub fn is_ordinary_repository(top: &Path, home: Option<&Path>) -> bool {
    let plain = |path: &Path, must_be: bool| match std::fs::symlink_metadata(path) {
        Ok(meta) if meta.is_file() && meta.len() < 64 * 1024 => {
            std::fs::read_to_string(path).is_ok_and(|text| {
                let text = text.to_ascii_lowercase();
                !UNUSUAL.iter().any(|word| text.contains(word))
            })
        }
        Ok(_) => false,
        Err(_) => !must_be,
    };
    plain(&top.join(".git/config"), true)
        && std::fs::symlink_metadata(top.join(".git")).is_ok_and(|meta| meta.is_dir())
        && std::fs::symlink_metadata(top.join(".gitmodules")).is_err()
        && home.is_none_or(|home| {
            plain(&home.join(".gitconfig"), false) && plain(&home.join(".config/git/config"), false)
        })
        && plain(Path::new("/etc/gitconfig"), false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repositories_with_anything_unusual_are_looked_at() {
        let scratch = tempfile::tempdir().unwrap();
        let (top, home) = (scratch.path().join("p"), scratch.path().join("h"));
        let ordinary = || is_ordinary_repository(&top, Some(&home));
        std::fs::create_dir_all(top.join(".git")).unwrap();
        std::fs::create_dir_all(&home).unwrap();
        assert!(!ordinary());
        std::fs::write(top.join(".git/config"), "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = x\n")
            .unwrap();
        assert!(ordinary());
        for unusual in [
            "[Include]\npath = x\n",
            "[alias]\nst = status\n",
            "[core]\nhooksPath = x\n",
            "[core]\nworktree = /\n",
        ] {
            std::fs::write(home.join(".gitconfig"), unusual).unwrap();
            assert!(!ordinary(), "{unusual}");
        }
        std::fs::write(home.join(".gitconfig"), "[user]\nname = T\n").unwrap();
        assert!(ordinary());
        std::fs::write(top.join(".gitmodules"), "").unwrap();
        assert!(!ordinary());
    }

    #[test]
    fn search_paths() {
        let root = Path::new("/home/u/p");
        assert_eq!(unclean_path(OsStr::new("/usr/bin:/bin"), root), None);
        for bad in [".:/usr/bin", "/usr/bin:", "/home/u/p/node_modules/.bin:/bin", "/tmp/x:/bin", "bin"] {
            assert!(unclean_path(OsStr::new(bad), root).is_some(), "{bad}");
        }
    }
}
