//! Where the paths that a command reads really lie: symlinks followed, patterns expanded.
//!
//! The classifier judges paths by their text. A symlink inside the project can lead anywhere, and `..` after a symlink
//! is physical, so whoever relies on a safe verdict has to look at the files: this is the provider of
//! [`Condition::PathsResolveInside`](cmdgate_classifier::Condition::PathsResolveInside).

use cmdgate_classifier::{Effects, PathUse};
use std::fs::{self, FileType};
use std::io;
use std::path::{Component, Path, PathBuf};

/// A pattern that matches more files than this is not followed.
const MOST_MATCHES: usize = 10_000;

/// Why a path was not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Escape {
    /// Index into the effects' reads.
    pub index: usize,
    /// The path as the command names it.
    pub path: String,
    /// Why, as a sentence fragment.
    pub why: String,
}

/// The directories inside which reading is fine, all real paths.
#[derive(Debug, Clone)]
pub struct ReadableRoots {
    roots: Vec<PathBuf>,
}

impl ReadableRoots {
    /// The project root and further roots; those that do not exist are dropped.
    pub fn new<'p>(roots: impl IntoIterator<Item = &'p Path>) -> Self {
        Self { roots: roots.into_iter().filter_map(|root| fs::canonicalize(root).ok()).collect() }
    }

    /// Whether a path resolves inside.
    ///
    /// # Errors
    ///
    /// Why not, as a sentence fragment.
    pub(crate) fn holds(&self, path: &Path) -> Result<(), String> {
        path_inside(path, self)
    }

    fn hold(&self, real: &Path) -> bool {
        self.roots.iter().any(|root| real.starts_with(root)) || real == Path::new("/dev/null")
    }
}

/// Checks every path that the effects read, from the working directory `cwd`. What lies outside by its text has a finding
/// already.
///
/// # Errors
///
/// The first path that leads out, or that is a device, FIFO or socket, or that cannot be followed.
pub fn all_inside(effects: &Effects<'_>, cwd: &Path, roots: &ReadableRoots) -> Result<(), Escape> {
    for (index, used) in effects.reads.iter().enumerate().filter(|(_, used)| !used.outside) {
        let escape = |why: String| Escape { index, path: used.path.to_string(), why };
        let base = cwd.join(effects.directory(used.directory));
        if used.pattern {
            pattern_inside(&base, used, roots).map_err(escape)?;
        } else {
            path_inside(&base.join(used.path.as_ref()), roots).map_err(escape)?;
        }
    }
    Ok(())
}

fn path_inside(path: &Path, roots: &ReadableRoots) -> Result<(), String> {
    match fs::canonicalize(path) {
        Ok(real) => {
            if !roots.hold(&real) {
                return Err(format!("leads to {}, outside the project", real.display()));
            }
            let kind = fs::metadata(&real).map_err(|error| error.to_string())?.file_type();
            readable_kind(kind, &real)
        }
        // What does not exist cannot be read; the part of it that does exist must lie inside, so that nothing is told
        // about places outside.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            let mut existing = path;
            while let Some(parent) = existing.parent() {
                existing = parent;
                if let Ok(real) = fs::canonicalize(existing) {
                    return if roots.hold(&real) {
                        dangling_link(path)
                    } else {
                        Err(format!("leads to {}, outside the project", real.display()))
                    };
                }
            }
            Err("cannot be followed".to_owned())
        }
        Err(error) => Err(format!("cannot be followed: {error}")),
    }
}

/// A symlink that leads nowhere now may lead somewhere when the command runs.
fn dangling_link(path: &Path) -> Result<(), String> {
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.file_type().is_symlink() => Err("is a symlink that leads nowhere".to_owned()),
        Ok(_) | Err(_) => Ok(()),
    }
}

#[cfg(unix)]
fn readable_kind(kind: FileType, real: &Path) -> Result<(), String> {
    use std::os::unix::fs::FileTypeExt;
    if real != Path::new("/dev/null")
        && (kind.is_fifo() || kind.is_socket() || kind.is_block_device() || kind.is_char_device())
    {
        return Err("is a device, FIFO or socket, which may block for ever".to_owned());
    }
    Ok(())
}

#[cfg(not(unix))]
fn readable_kind(_: FileType, _: &Path) -> Result<(), String> {
    Ok(())
}

/// Checks every match of a pattern.
fn pattern_inside(base: &Path, used: &PathUse<'_>, roots: &ReadableRoots) -> Result<(), String> {
    let matches = expand(base, used, |directory| path_inside(directory, roots))?;
    matches.iter().try_for_each(|place| path_inside(place, roots))
}

/// Expands a pattern as the shell would, component by component. `may_list` is asked before a directory is listed.
///
/// # Errors
///
/// What `may_list` says; or that the pattern is none that can be followed, or matches too much.
pub(crate) fn expand(
    base: &Path,
    used: &PathUse<'_>,
    may_list: impl Fn(&Path) -> Result<(), String>,
) -> Result<Vec<PathBuf>, String> {
    let pattern = Path::new(used.path.as_ref());
    let mut places = vec![if pattern.is_absolute() { PathBuf::from("/") } else { base.to_path_buf() }];
    for component in pattern.components() {
        let Component::Normal(name) = component else {
            if matches!(component, Component::ParentDir) {
                for place in &mut places {
                    place.push("..");
                }
            }
            continue;
        };
        let name = name.to_str().ok_or("is not valid UTF-8")?;
        if !name.contains(['*', '?', '[', '\\']) {
            for place in &mut places {
                place.push(name);
            }
            continue;
        }
        let matcher = globset_component(name)?;
        let mut matched = Vec::new();
        for place in &places {
            may_list(place)?;
            let Ok(entries) = fs::read_dir(place) else { continue };
            for entry in entries.flatten() {
                let file = entry.file_name();
                let hidden = file.as_encoded_bytes().starts_with(b".");
                if (!hidden || name.starts_with('.')) && matcher.matches(&file) {
                    matched.push(entry.path());
                    if matched.len() > MOST_MATCHES {
                        return Err(format!("matches more than {MOST_MATCHES} files"));
                    }
                }
            }
        }
        places = matched;
    }
    Ok(places)
}

/// One component of a shell pattern.
struct ComponentPattern {
    glob: globset::GlobMatcher,
}

impl ComponentPattern {
    fn matches(&self, name: &std::ffi::OsStr) -> bool {
        self.glob.is_match(name)
    }
}

fn globset_component(pattern: &str) -> Result<ComponentPattern, String> {
    // Bash negates a class with `^` too, and takes `{` literally here: braces are expanded before patterns are.
    let translated = pattern.replace("[^", "[!").replace('{', "[{]").replace('}', "[}]");
    globset::GlobBuilder::new(&translated)
        .literal_separator(true)
        .backslash_escape(true)
        .build()
        .map(|glob| ComponentPattern { glob: glob.compile_matcher() })
        .map_err(|error| format!("is a pattern that is not followed: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cmdgate_classifier::{Context, Grammar, classify};
    use std::os::unix::fs::symlink;

    fn check(root: &Path, command: &str) -> Result<(), String> {
        let text = root.to_str().unwrap();
        let classification = classify(command, &Context::new(Grammar::Sequence).with_root(text));
        all_inside(&classification.effects, root, &ReadableRoots::new([root])).map_err(|escape| escape.why)
    }

    #[test]
    fn symlinks_devices_and_patterns() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("p");
        fs::create_dir_all(root.join("sub/deep")).unwrap();
        fs::create_dir_all(dir.path().join("out/x")).unwrap();
        fs::write(root.join("a.txt"), "a").unwrap();
        fs::write(root.join("sub/b.txt"), "b").unwrap();
        fs::write(dir.path().join("secret.txt"), "s").unwrap();
        symlink("../secret.txt", root.join("link.txt")).unwrap();
        symlink("../out", root.join("linkdir")).unwrap();
        symlink(dir.path().join("out/x"), root.join("sub/link")).unwrap();
        symlink("nowhere", root.join("dangling")).unwrap();
        symlink("a.txt", root.join("inner")).unwrap();

        for fine in
            ["cat a.txt", "cat inner", "cat missing", "cat sub/*.txt", "cat ./sub/../a.txt", "cat </dev/null"]
        {
            assert_eq!(check(&root, fine), Ok(()), "{fine}");
        }
        for held in [
            "cat link.txt",
            "cat linkdir/x",
            "cat sub/link/../secret.txt",
            "cat *",
            "cat dangling",
            "cat linkdir/*",
        ] {
            assert!(check(&root, held).is_err(), "{held}");
        }
    }
}
