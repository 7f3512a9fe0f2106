//! Where paths really lie, and what may be done there.

use super::{Decision, DecisionCode, Gate, Source, now};
use crate::unwrap;
use cmdgate_classifier::Grammar;
use cmdgate_executor::{ExecError, WorkdirProblem};
use cmdgate_policy::{Act, Effect, SandboxMode};
use std::path::{Path, PathBuf};

impl Gate {
    /// The real working directory (contract S16, S20): it must lie inside the project by name and by real path.
    pub(super) fn workdir(&self, named: Option<&Path>) -> Result<PathBuf, Box<Decision>> {
        let Some(named) = named else { return Ok(self.root.clone()) };
        let refuse = |problem: WorkdirProblem| {
            let error = ExecError::Workdir { path: named.to_path_buf(), problem };
            let code = match problem {
                WorkdirProblem::OutsideAllowedRoot => DecisionCode::PathOutsideAllowedRoot,
                WorkdirProblem::Missing => DecisionCode::PathNotFound,
                WorkdirProblem::NotADirectory => DecisionCode::PathNotADirectory,
                WorkdirProblem::Unreadable => DecisionCode::PathUnreadable,
            };
            Box::new(Decision::deny(Source::PathPolicy, code, error.to_string()))
        };
        let roots: Vec<&Path> = std::iter::once(self.root.as_path())
            .chain(self.named_root.as_deref())
            .chain(self.read_roots.iter().map(PathBuf::as_path))
            .collect();
        let lexical = lexical_join(&self.root, named);
        if !roots.iter().any(|root| lexical.starts_with(root)) {
            return Err(refuse(WorkdirProblem::OutsideAllowedRoot));
        }
        let real = std::fs::canonicalize(&lexical).map_err(|error| {
            let kind = error.kind();
            refuse(if kind == std::io::ErrorKind::NotFound {
                WorkdirProblem::Missing
            } else if kind == std::io::ErrorKind::NotADirectory {
                WorkdirProblem::NotADirectory
            } else {
                WorkdirProblem::Unreadable
            })
        })?;
        let inside = std::iter::once(&self.root)
            .chain(&self.read_roots)
            .any(|root| std::fs::canonicalize(root).is_ok_and(|root| real.starts_with(root)));
        if !inside {
            return Err(refuse(WorkdirProblem::OutsideAllowedRoot));
        }
        if !real.is_dir() {
            return Err(refuse(WorkdirProblem::NotADirectory));
        }
        Ok(real)
    }

    /// Contract H3: no word of any command leads to a blocked place, by name or through a symlink, as it stands, after an
    /// `=`, or attached to a short flag.
    pub(super) fn refuse_blocked_paths(
        &self,
        commands: &unwrap::Commands,
        workdir: &Path,
    ) -> Option<Decision> {
        self.settings.blocked_paths.first()?;
        let words = commands.argvs.iter().chain(&commands.possible).flatten();
        for word in words {
            let after_equals = word.split_once('=').map(|(_, value)| value);
            let attached = word.find(['/', '~']).and_then(|at| word.get(at..));
            for text in [Some(word.as_str()), after_equals, attached].into_iter().flatten() {
                let text = if text.starts_with('~') {
                    crate::config::expand_home(workdir, text)
                } else {
                    text.into()
                };
                let lexical = lexical_join(workdir, &text);
                let Some(real) = real_place(&lexical) else {
                    return Some(Decision::deny(
                        Source::PathPolicy,
                        DecisionCode::PermissionDenied,
                        format!(
                            "`{word}` is a symlink to nothing, which may come to lie in a blocked folder"
                        ),
                    ));
                };
                for path in [&lexical, &real] {
                    if let Some(blocked) = self.settings.blocking(&path.to_string_lossy()) {
                        return Some(Decision::deny(
                            Source::PathPolicy,
                            DecisionCode::PermissionDenied,
                            format!("`{word}` leads to {}, and {blocked} is blocked", path.display()),
                        ));
                    }
                }
            }
        }
        None
    }

    /// Contract H3: a pattern that bash expands is let through only where it names entries of one folder, and none of
    /// them is, or leads to, a blocked place.
    pub(super) fn refuse_wandering_patterns(&self, command: &str, workdir: &Path) -> Option<Decision> {
        self.settings.blocked_paths.first()?;
        let refuse = |word: &str| {
            Some(Decision::deny(
                Source::PathPolicy,
                DecisionCode::PermissionDenied,
                format!("`{word}` is a pattern that may lead to a blocked folder; name the files"),
            ))
        };
        let Ok(script) = cmdgate_lexer::lex(command, Grammar::Pipeline) else {
            return refuse(command);
        };
        let stages = script.list.items.iter().flat_map(|item| &item.pipeline.stages);
        for stage in stages {
            let cmdgate_lexer::Command::Simple(segment) = stage else { return refuse(command) };
            for word in segment.words.iter().filter(|word| word.literal().is_none()) {
                let text = command.get(word.span.range()).unwrap_or(command);
                // A lone tilde is expanded and judged with the other words.
                if text.starts_with('~') && !text.contains(['*', '?', '[', '{']) {
                    continue;
                }
                let (folder, last) = text.rsplit_once('/').unwrap_or(("", text));
                let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
                if !folder.chars().all(plain) || last.contains("..") {
                    return refuse(text);
                }
                let folder = if folder.is_empty() && text.starts_with('/') { "/" } else { folder };
                let folder = lexical_join(workdir, Path::new(folder));
                let entries = std::fs::read_dir(&folder).into_iter().flatten().filter_map(Result::ok);
                let reached = std::iter::once(folder.clone()).chain(entries.map(|entry| entry.path()));
                for path in reached {
                    let real = std::fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
                    let blocked = |path: &Path| self.settings.blocking(&path.to_string_lossy()).is_some();
                    if blocked(&path) || blocked(&real) {
                        return refuse(text);
                    }
                }
            }
        }
        None
    }

    pub(super) fn decide_file(&self, path: &Path, act: Act) -> Decision {
        let lexical = lexical_join(&self.root, path);
        let roots = match act {
            Act::Read => std::iter::once(self.root.clone()).chain(self.read_roots.iter().cloned()).collect(),
            Act::Write | Act::Exec | Act::Net => self.write_roots(),
        };
        let named_inside = roots.iter().any(|root| lexical.starts_with(root))
            || self.named_root.as_ref().is_some_and(|root| lexical.starts_with(root));
        let mut real_roots = roots.iter().filter_map(|root| std::fs::canonicalize(root).ok());
        let real =
            real_place(&lexical).filter(|real| named_inside && real_roots.any(|root| real.starts_with(root)));
        let Some(real) = real else {
            return Decision::deny(
                Source::PathPolicy,
                DecisionCode::PathOutsideAllowedRoot,
                format!("{} lies outside the project", path.display()),
            );
        };
        if act == Act::Write {
            if self.mode() == SandboxMode::ReadOnly {
                return Decision::deny(
                    Source::Policy,
                    DecisionCode::PermissionDenied,
                    "nothing is written in a read_only run",
                );
            }
            if let Some(pattern) = self.protecting(&real) {
                return Decision::deny(
                    Source::PathPolicy,
                    DecisionCode::PermissionDenied,
                    format!("{} is protected by `{pattern}`", path.display()),
                );
            }
        }
        let names = self.names_of(&lexical, &real);
        let ruling = self.policy.check_names(act, &names, Some(now()));
        let mut decision = self.generic(ruling);
        decision.file = real;
        decision
    }

    fn write_roots(&self) -> Vec<PathBuf> {
        let named = self.settings.write_roots.iter().flatten();
        std::iter::once(self.root.clone())
            .chain(named.map(|text| crate::config::expand_home(&self.root, text)))
            .collect()
    }

    /// Whether output may be redirected into a path where a rule allows the program: it lies in the project or another
    /// writable root and is not protected, or a rule allows to write it.
    pub(super) fn may_redirect_into(&self, path: &str, directory: &Path) -> bool {
        let lexical = lexical_join(directory, Path::new(path));
        let Some(real) = real_place(&lexical) else { return false };
        let ruling = self.policy.check_names(Act::Write, &self.names_of(&lexical, &real), Some(now()));
        if ruling.rule.is_some() {
            return ruling.effect == Effect::Allow;
        }
        let mut roots = self.write_roots().into_iter().filter_map(|root| std::fs::canonicalize(root).ok());
        let relative = real.strip_prefix(&self.root).unwrap_or(&real).to_string_lossy();
        roots.any(|root| real.starts_with(root)) && self.settings.protecting(&relative).is_none()
    }

    /// The protected path that covers `real`, relative to the project.
    fn protecting(&self, real: &Path) -> Option<&str> {
        if self.mode() == SandboxMode::DangerFullAccess {
            return None;
        }
        let relative = real.strip_prefix(&self.root).ok()?;
        self.settings.protecting(&relative.to_string_lossy())
    }

    /// The names by which rules may mean a path.
    pub(super) fn names_of(&self, lexical: &Path, real: &Path) -> Vec<String> {
        let mut names = Vec::with_capacity(4);
        for path in [lexical, real] {
            names.push(path.to_string_lossy().into_owned());
            if let Ok(relative) = path.strip_prefix(&self.root) {
                names.push(relative.to_string_lossy().into_owned());
            }
        }
        names.dedup();
        names
    }
}

/// The real place of what exists of a path; none for what a dangling symlink leads to, which may be anywhere.
pub(super) fn real_place(lexical: &Path) -> Option<PathBuf> {
    let mut existing = lexical;
    loop {
        match std::fs::canonicalize(existing) {
            Ok(real) => return Some(real.join(lexical.strip_prefix(existing).unwrap_or(Path::new("")))),
            Err(_) if std::fs::symlink_metadata(existing).is_ok_and(|meta| meta.is_symlink()) => {
                return None;
            }
            Err(_) => match existing.parent() {
                Some(parent) => existing = parent,
                None => return Some(lexical.to_path_buf()),
            },
        }
    }
}

/// `path` from `base`, with `.` dropped and `..` cancelled by text.
pub(crate) fn lexical_join(base: &Path, path: &Path) -> PathBuf {
    use std::path::Component;
    let mut joined = PathBuf::new();
    for component in base.join(path).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                joined.pop();
            }
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => joined.push(component),
        }
    }
    joined
}
