//! Where a command would run: `--root`, `--cwd`, `--grammar`.

use crate::exit::Exit;
use clap::ValueEnum;
use cmdgate_classifier::Grammar;
use std::path::{Component, Path, PathBuf};

/// `--grammar`
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum GrammarName {
    /// One pipeline of simple commands.
    Pipeline,
    /// Sequences, redirections, loops and simple expansions as well.
    Sequence,
}

impl From<GrammarName> for Grammar {
    fn from(name: GrammarName) -> Self {
        match name {
            GrammarName::Pipeline => Self::Pipeline,
            GrammarName::Sequence => Self::Sequence,
        }
    }
}

/// The current directory, or why there is none.
pub(crate) fn current() -> Result<PathBuf, Exit> {
    std::env::current_dir().map_err(|error| {
        if error.kind() == std::io::ErrorKind::NotFound {
            let what = "the current directory is not there any more: change into one that is";
            return super::fail(Exit::Failed, what);
        }
        super::fail(Exit::Failed, format_args!("the current directory cannot be read: {error}"))
    })
}

/// The enclosing git repository of `directory`, or `directory` itself.
pub(crate) fn enclosing_repository(directory: &Path) -> PathBuf {
    directory.ancestors().find(|dir| dir.join(".git").exists()).unwrap_or(directory).to_path_buf()
}

/// `path` made absolute by text alone: joined to the current directory, `.` dropped and `..` cancelled.
pub(crate) fn absolute(current: &Path, path: &Path) -> PathBuf {
    let mut absolute = PathBuf::new();
    for component in current.join(path).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                absolute.pop();
            }
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => absolute.push(component),
        }
    }
    absolute
}
