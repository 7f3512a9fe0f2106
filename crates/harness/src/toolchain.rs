//! Keeps the project's files from choosing which version of a language's tools runs.
//!
//! `cargo` is often the proxy of rustup, which runs the `cargo` of a directory that `rust-toolchain.toml` names; `go`
//! fetches the toolchain that `go.mod` names. Both let variables decide instead. The shims of asdf and mise run a path
//! that `.tool-versions` names, and no variable stops all of them.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The variables to set, or why that would not be enough.
pub(crate) fn fixed() -> Result<Vec<(String, String)>, String> {
    let var = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let home = var("HOME");
    let rustup = var("RUSTUP_HOME")
        .map(PathBuf::from)
        .or_else(|| home.as_deref().map(|home| Path::new(home).join(".rustup")));
    let settings = rustup.and_then(|folder| std::fs::read_to_string(folder.join("settings.toml")).ok());
    from(settings.as_deref(), var("PATH"))
}

fn from(rustup_settings: Option<&str>, path: Option<OsString>) -> Result<Vec<(String, String)>, String> {
    let path = path.unwrap_or_default();
    if let Some(shims) = std::env::split_paths(&path).find(|entry| runs_paths_of_project(entry)) {
        let shims = shims.display();
        return Err(format!("`{shims}` on PATH runs a program that a file of the project may name"));
    }
    if rustup_settings.is_none() && std::env::split_paths(&path).any(|entry| entry.join("rustup").is_file()) {
        return Err("rustup has no settings yet, and its proxies would write some; `rustup show` makes them"
            .to_owned());
    }
    let chosen = rustup_settings
        .and_then(|text| text.parse::<toml::Table>().ok())
        .and_then(|table| Some(table.get("default_toolchain")?.as_str()?.to_owned()))
        // No toolchain has this name: the proxy then says so, and does not look at the project.
        .unwrap_or_else(|| "none-chosen".to_owned());
    Ok(vec![
        ("GOTOOLCHAIN".to_owned(), "local".to_owned()),
        ("RUSTUP_TOOLCHAIN".to_owned(), chosen),
        ("RUSTUP_AUTO_INSTALL".to_owned(), "0".to_owned()),
    ])
}

/// Whether this entry of `PATH` holds the shims of asdf or mise. Those of pyenv, rbenv and nodenv take only names of
/// installed versions from the project.
fn runs_paths_of_project(entry: &Path) -> bool {
    let has = |name: &str| entry.iter().any(|part| part == OsStr::new(name));
    has("shims") && [".asdf", "asdf", ".mise", "mise", "rtx"].into_iter().any(has)
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract: X1
    #[test]
    fn rustups_default_is_named() {
        let settings = "version = \"12\"\ndefault_toolchain = \"stable-x\"\n[overrides]\n\"/p\" = \"evil\"\n";
        let set = from(Some(settings), Some("/usr/bin".into())).unwrap();
        assert!(set.contains(&("RUSTUP_TOOLCHAIN".into(), "stable-x".into())));
        assert!(set.contains(&("GOTOOLCHAIN".into(), "local".into())));
    }

    // contract: X1
    #[test]
    fn without_a_default_no_installed_toolchain_is_named() {
        for settings in [None, Some(""), Some("not toml"), Some("default_toolchain = 3")] {
            let set = from(settings, None).unwrap();
            assert!(set.contains(&("RUSTUP_TOOLCHAIN".into(), "none-chosen".into())), "{settings:?}");
        }
    }

    // contract: X1
    #[test]
    fn the_proxies_of_a_rustup_without_settings_would_write() {
        let path = tempfile::tempdir().unwrap();
        assert!(from(None, Some(path.path().into())).is_ok());
        std::fs::write(path.path().join("rustup"), "").unwrap();
        assert!(from(None, Some(path.path().into())).is_err());
        assert!(from(Some(""), Some(path.path().into())).is_ok());
    }

    // contract: X1
    #[test]
    fn shims_that_run_paths_of_the_project_cannot_be_fixed() {
        assert!(from(None, Some("/usr/bin:/home/u/.asdf/shims".into())).is_err());
        assert!(from(None, Some("/home/u/.local/share/mise/shims".into())).is_err());
        assert!(from(None, Some("/home/u/.pyenv/shims:/bin".into())).is_ok());
    }
}
