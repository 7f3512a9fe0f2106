//! Keeps the project's files from choosing which version of a language's tools runs, or which program at all.
//!
//! `cargo` is often the proxy of rustup, which runs the `cargo` of a directory that `rust-toolchain.toml` names; `go`
//! fetches the toolchain that `go.mod` names. Both let variables decide instead. The shims of asdf and mise run a path
//! that `.tool-versions` names, those of Volta and aqua fetch the version that `package.json` or `aqua.yaml` names, and no
//! variable stops all of them. They stand for any program, `jq` and `rg` among them.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Where a search path finds a shim for this program that lets a file of the project name what runs.
pub(crate) fn shimmed(program: &str) -> Option<PathBuf> {
    shimmed_in(program, &std::env::var_os("PATH")?)
}

fn shimmed_in(program: &str, path: &OsStr) -> Option<PathBuf> {
    // Files are looked for only where there is any such directory.
    std::env::split_paths(path).find(|entry| lets_project_choose(entry))?;
    let first = std::env::split_paths(path).find(|entry| entry.join(program).is_file())?;
    lets_project_choose(&first).then_some(first)
}

/// The variables to set, or why that would not be enough.
pub(crate) fn fixed(root: &Path) -> Result<Vec<(String, String)>, String> {
    let var = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let home = var("HOME");
    let rustup = var("RUSTUP_HOME")
        .map(PathBuf::from)
        .or_else(|| home.as_deref().map(|home| Path::new(home).join(".rustup")));
    let settings =
        rustup.as_ref().and_then(|folder| std::fs::read_to_string(folder.join("settings.toml")).ok());
    let mut variables = from(settings.as_deref(), var("PATH"))?;
    if let Some(rustup) = rustup.filter(|_| var("RUSTUP_HOME").is_some()) {
        // Without it the proxies would make another one in the home directory.
        variables.push(("RUSTUP_HOME".to_owned(), outside(&rustup, root)?));
    }
    Ok(variables)
}

/// The text of rustup's directory, unless files of the project could stand in it.
fn outside(rustup: &Path, root: &Path) -> Result<String, String> {
    let text = rustup.to_str().filter(|_| rustup.is_absolute() && !rustup.starts_with(root));
    text.map(ToOwned::to_owned).ok_or_else(|| {
        format!("RUSTUP_HOME is `{}`, where the project could put a toolchain", rustup.display())
    })
}

fn from(rustup_settings: Option<&str>, path: Option<OsString>) -> Result<Vec<(String, String)>, String> {
    let path = path.unwrap_or_default();
    if let Some(shims) = std::env::split_paths(&path).find(|entry| lets_project_choose(entry)) {
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

/// Whether this entry of `PATH` holds shims that let a file of the project name what runs. Those of pyenv (since 2.3.3),
/// rbenv and nodenv take only names of installed versions from it; of others nothing is known.
fn lets_project_choose(entry: &Path) -> bool {
    let has = |name: &str| entry.iter().any(|part| part == OsStr::new(name));
    let names_only = [".pyenv", "pyenv", ".rbenv", "rbenv", ".nodenv", "nodenv"];
    (has("shims") && !names_only.into_iter().any(has))
        || has(".volta")
        || has("volta")
        || has("aquaproj-aqua")
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
    fn rustup_keeps_its_own_directory_outside_the_project() {
        let root = Path::new("/home/u/project");
        assert_eq!(outside(Path::new("/usr/local/rustup"), root).as_deref(), Ok("/usr/local/rustup"));
        for inside in ["rustup", "./rustup", "/home/u/project/.rustup", "/home/u/project"] {
            assert!(outside(Path::new(inside), root).is_err(), "{inside}");
        }
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
        for entry in
            ["/opt/asdf-data/shims", "/home/u/.goenv/shims", "/home/u/.volta/bin", "/home/u/.proto/shims"]
        {
            assert!(from(None, Some(format!("/bin:{entry}").into())).is_err(), "{entry}");
        }
    }

    // contract: X1
    #[test]
    fn the_first_program_on_the_search_path_is_the_one_that_runs() {
        let directory = tempfile::tempdir().unwrap();
        let make = |place: &str| {
            let place = directory.path().join(place);
            std::fs::create_dir_all(&place).unwrap();
            std::fs::write(place.join("jq"), "").unwrap();
            place
        };
        let (shims, plain) = (make(".asdf/shims"), make("bin"));
        let path = |entries: [&PathBuf; 2]| std::env::join_paths(entries).unwrap();
        assert_eq!(shimmed_in("jq", &path([&shims, &plain])), Some(shims.clone()));
        assert_eq!(shimmed_in("jq", &path([&plain, &shims])), None);
        assert_eq!(shimmed_in("rg", &path([&shims, &plain])), None);
        assert_eq!(shimmed_in("jq", &path([&plain, &plain])), None);
    }
}
