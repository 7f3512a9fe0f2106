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

/// Why the environment is not clean; none when it is.
pub(super) fn unclean_environment(root: &Path) -> Option<String> {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let loader = text.starts_with("LD_") || text.starts_with("DYLD_") || text.starts_with("BASH_FUNC_");
        // Git's own variables are not here: git is never left to the agent's shell.
        if loader || MUST_BE_ABSENT.contains(&text.as_ref()) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn search_paths() {
        let root = Path::new("/home/u/p");
        assert_eq!(unclean_path(OsStr::new("/usr/bin:/bin"), root), None);
        for bad in [".:/usr/bin", "/usr/bin:", "/home/u/p/node_modules/.bin:/bin", "/tmp/x:/bin", "bin"] {
            assert!(unclean_path(OsStr::new(bad), root).is_some(), "{bad}");
        }
    }
}
