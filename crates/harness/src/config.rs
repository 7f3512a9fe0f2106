//! Configuration: which layers there are, in which order, and which of them may loosen.

use std::path::{Path, PathBuf};

/// A folder as a settings file names it: absolute, `~/…`, or relative to the project.
pub(crate) fn expand_home(root: &Path, text: &str) -> PathBuf {
    if let Some(rest) = text.strip_prefix("~/")
        && let Some(home) = std::env::home_dir()
    {
        return home.join(rest);
    }
    root.join(text)
}
