//! The git directories of a project, and what git executes or is configured by in them.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::Request;
use crate::sandbox::{GitAccess, Mode};
use crate::view::{FsView, Kind};

/// What is known about the repository that the project is.
#[derive(Debug, Default)]
pub(super) struct Git {
    /// Paths that git executes or is configured by.
    pub(super) guarded: Vec<PathBuf>,
    /// A git directory outside the project that belongs to it (a linked worktree's).
    pub(super) grants: Vec<PathBuf>,
    /// Every git directory that was found.
    pub(super) directories: Vec<PathBuf>,
}

/// What git executes or is configured by, in a git directory.
const GIT_GUARDED: &[&str] = &["hooks", "config", "config.worktree", "commondir"];
/// How deep below a root, and among how many entries, nested repositories are looked for before a run.
const NESTED_DEPTH: usize = 3;
const NESTED_ENTRIES: usize = 2000;
/// Directories that are not searched: large, and full of other people's files.
const NOT_SEARCHED: &[&str] = &[".git", "node_modules", "target", ".venv", "venv", "__pycache__", ".cache"];

impl Git {
    pub(super) fn look(request: &Request<'_>, view: &dyn FsView, roots: &[PathBuf]) -> Self {
        let mut git = Self::default();
        if request.sandbox.mode != Mode::WorkspaceWrite {
            return git;
        }
        for root in roots {
            let mut budget = NESTED_ENTRIES;
            for repository in nested(view, root, NESTED_DEPTH, &mut budget) {
                git.add(request, view, &repository.join(".git"));
            }
        }
        git.guarded.sort();
        git.guarded.dedup();
        git
    }

    fn add(&mut self, request: &Request<'_>, view: &dyn FsView, dot_git: &Path) {
        let guarded = request.sandbox.git == GitAccess::Guarded;
        match view.kind(dot_git) {
            Kind::Directory => self.add_directory(request, view, dot_git),
            Kind::File => {
                // A linked worktree or a submodule: the file names the real directory.
                if request.sandbox.git != GitAccess::Open {
                    self.guarded.push(dot_git.to_owned());
                }
                let Some(directory) = git_file(view, dot_git) else { return };
                let common = view
                    .text(&directory.join("commondir"))
                    .and_then(|text| view.real(&directory.join(line(&text)?)))
                    .unwrap_or_else(|| directory.clone());
                let inside = common.starts_with(request.root);
                // Only a directory that names this worktree in return is granted: a `.git` file alone could
                // have been written to reach somebody else's repository.
                let answers = view
                    .text(&directory.join("gitdir"))
                    .and_then(|text| view.real(Path::new(&line(&text)?)))
                    .is_some_and(|back| Some(back) == view.real(dot_git));
                if !inside && guarded && answers {
                    self.grants.push(common.clone());
                }
                if inside || answers {
                    self.add_directory(request, view, &common);
                }
            }
            Kind::Symlink | Kind::Missing | Kind::Socket | Kind::Other => {}
        }
    }

    fn add_directory(&mut self, request: &Request<'_>, view: &dyn FsView, directory: &Path) {
        if self.directories.iter().any(|known| known == directory) {
            return;
        }
        self.directories.push(directory.to_owned());
        match request.sandbox.git {
            GitAccess::Open => {}
            GitAccess::ReadOnly => self.guarded.push(directory.to_owned()),
            GitAccess::Guarded => {
                self.guarded.extend(GIT_GUARDED.iter().map(|name| directory.join(name)));
                for (name, kind) in view.entries(&directory.join("worktrees")) {
                    if kind == Kind::Directory {
                        let worktree = directory.join("worktrees").join(name);
                        self.guarded.push(worktree.join("config.worktree"));
                    }
                }
                self.add_modules(view, &directory.join("modules"), NESTED_DEPTH);
            }
        }
    }

    /// Submodules' git directories lie below `modules`, at the depth of their names.
    fn add_modules(&mut self, view: &dyn FsView, modules: &Path, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return };
        for (name, kind) in view.entries(modules) {
            if kind != Kind::Directory {
                continue;
            }
            let module = modules.join(name);
            if view.kind(&module.join("HEAD")) == Kind::File {
                self.guarded.extend(GIT_GUARDED.iter().map(|name| module.join(name)));
                self.directories.push(module.clone());
                self.add_modules(view, &module.join("modules"), depth);
            } else {
                self.add_modules(view, &module, depth);
            }
        }
    }
}

/// Directories at or below `root` that hold a `.git`.
fn nested(view: &dyn FsView, root: &Path, depth: usize, budget: &mut usize) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut below = Vec::new();
    for (name, kind) in view.entries(root) {
        let Some(left) = budget.checked_sub(1) else { break };
        *budget = left;
        if name == ".git" {
            found.push(root.to_owned());
        } else if kind == Kind::Directory && !NOT_SEARCHED.iter().any(|&skipped| name == skipped) {
            below.push(root.join(name));
        }
    }
    if let Some(depth) = depth.checked_sub(1) {
        for directory in below {
            found.extend(nested(view, &directory, depth, budget));
        }
    }
    found
}

/// The directory that a `.git` file names (gitrepository-layout(5)).
fn git_file(view: &dyn FsView, dot_git: &Path) -> Option<PathBuf> {
    let text = view.text(dot_git)?;
    let target = line(text.strip_prefix(b"gitdir:")?)?;
    view.real(&dot_git.parent()?.join(target))
}

/// The text up to the end of the first line, blanks taken off both ends.
fn line(text: &[u8]) -> Option<OsString> {
    let first = text.split(|&byte| byte == b'\n').next()?.trim_ascii();
    (!first.is_empty()).then(|| OsStr::from_bytes(first).to_owned())
}
