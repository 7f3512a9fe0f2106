//! Puts this program in front of an agent, and takes it away again.
//!
//! Only entries that run this program's `hook` are touched; everything else in the agent's files stays, in its order. A file
//! that is changed is kept beside itself as `<name>.before-cmdgate`.

mod document;
mod entries;
pub mod found;
pub mod health;
pub mod version;

use crate::hook::{Agent, quote};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Whose files are changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Scope {
    /// The user's own, for every project.
    User,
    /// Those of the project.
    Project,
}

/// How the hook is to be entered.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The agent.
    pub agent: Agent,
    /// The file that is changed or made.
    pub file: PathBuf,
    /// The `harness` program, as an absolute path.
    pub program: PathBuf,
    /// Options of `harness hook` after the agent's name.
    pub options: Vec<String>,
}

/// Why it was not done. Nothing was changed then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InstallError {
    /// A file cannot be read or written.
    #[error("cannot use {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not plain JSON.
    #[error("{path} is not plain JSON ({what}): comments would be lost, so add this by hand:\n{entry}")]
    NotPlainJson {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
        /// What to add.
        entry: String,
    },
    /// The file has another shape than the agent's documentation gives.
    #[error("{path} has another shape than expected: {what}; nothing was changed")]
    Shape {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
}

/// What a change would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The file.
    pub file: PathBuf,
    /// Its text before; none when there is no such file.
    pub before: Option<String>,
    /// Its text after; none when the file goes.
    pub after: Option<String>,
}

impl Plan {
    /// The plan for an agent.
    pub fn new(
        agent: Agent,
        scope: Scope,
        home: &Path,
        project: &Path,
        program: &Path,
        contain: bool,
    ) -> Self {
        let file = Self::hooks_file(agent, scope, home, project);
        let options = if contain { vec!["--contain".to_owned()] } else { Vec::new() };
        Self { agent, file, program: program.to_path_buf(), options }
    }

    /// The file that holds an agent's hooks.
    pub fn hooks_file(agent: Agent, scope: Scope, home: &Path, project: &Path) -> PathBuf {
        let base = match scope {
            Scope::User => home,
            Scope::Project => project,
        };
        let user = scope == Scope::User;
        match agent {
            Agent::ClaudeCode => base.join(".claude/settings.json"),
            Agent::Codex => base.join(".codex/hooks.json"),
            Agent::Gemini => base.join(".gemini/settings.json"),
            Agent::Cursor => base.join(".cursor/hooks.json"),
            Agent::Copilot if user => base.join(".copilot/hooks/cmdgate.json"),
            Agent::Copilot => base.join(".github/hooks/cmdgate.json"),
            Agent::Opencode if user => base.join(".config/opencode/plugins/cmdgate.js"),
            Agent::Opencode => base.join(".opencode/plugins/cmdgate.js"),
            Agent::Windsurf if user => base.join(".codeium/windsurf/hooks.json"),
            Agent::Windsurf => base.join(".windsurf/hooks.json"),
            Agent::Cline => base.join(".cline/hooks/PreToolUse"),
            Agent::Goose => base.join(".agents/plugins/cmdgate/hooks/hooks.json"),
        }
    }

    /// The command line of the hook, for agents that take one text. It stays the same from version to version, because Codex
    /// trusts exactly this text.
    pub fn command(&self) -> String {
        let words =
            [self.program.to_string_lossy().into_owned(), "hook".to_owned(), self.agent.name().to_owned()];
        words.iter().chain(&self.options).map(|word| quote(word)).collect::<Vec<_>>().join(" ")
    }

    /// What installing would change.
    ///
    /// # Errors
    ///
    /// When the file is there and cannot be changed without losing something.
    pub fn install(&self) -> Result<Change, InstallError> {
        self.change(true)
    }

    /// What taking the hook away would change.
    ///
    /// # Errors
    ///
    /// As [`Plan::install`].
    pub fn uninstall(&self) -> Result<Change, InstallError> {
        self.change(false)
    }

    /// Whether the hook stands in the file exactly once, as it would be installed.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub fn is_installed(&self) -> Result<bool, InstallError> {
        let change = self.install()?;
        Ok(change.before.is_some() && change.before == change.after)
    }

    fn change(&self, install: bool) -> Result<Change, InstallError> {
        let before = match fs::read_to_string(&self.file) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(source) => return Err(InstallError::Io { path: self.file.clone(), source }),
        };
        let after = match self.agent {
            Agent::Opencode => install.then(|| self.opencode_plugin()),
            Agent::Cline => self.cline_script(before.as_deref(), install)?,
            Agent::ClaudeCode
            | Agent::Codex
            | Agent::Gemini
            | Agent::Cursor
            | Agent::Copilot
            | Agent::Windsurf
            | Agent::Goose => self.json(before.as_deref(), install)?,
        };
        Ok(Change { file: self.file.clone(), before, after })
    }

    /// Whether an entry of an event's list runs this program's hook.
    fn is_ours(&self, entry: &Value) -> bool {
        let inner = entry.get("hooks").and_then(Value::as_array);
        found::is_ours(entry, self.agent)
            || inner.is_some_and(|inner| inner.iter().any(|one| found::is_ours(one, self.agent)))
    }

    fn json(&self, before: Option<&str>, install: bool) -> Result<Option<String>, InstallError> {
        let mut document: Value = match before {
            Some(text) if !text.trim().is_empty() => {
                serde_json::from_str(text).map_err(|error| InstallError::NotPlainJson {
                    path: self.file.clone(),
                    what: error.to_string(),
                    entry: pretty(&self.entries()),
                })?
            }
            Some(_) | None if install => json!({}),
            Some(_) | None => return Ok(before.map(ToOwned::to_owned)),
        };
        let shape = |what: &str| InstallError::Shape { path: self.file.clone(), what: what.to_owned() };
        let top = document.as_object_mut().ok_or_else(|| shape("it is not an object"))?;
        if install && matches!(self.agent, Agent::Cursor | Agent::Copilot) {
            top.entry("version").or_insert(json!(1));
        }
        let hooks = top.entry("hooks").or_insert_with(|| json!({}));
        let hooks = hooks.as_object_mut().ok_or_else(|| shape("`hooks` is not an object"))?;
        for (event, entry) in self.entries().as_object().unwrap_or(&Map::new()) {
            let list = hooks.entry(event.clone()).or_insert_with(|| json!([]));
            let list = list.as_array_mut().ok_or_else(|| shape("an event's hooks are not a list"))?;
            let at = list.iter().position(|known| self.is_ours(known));
            list.retain(|known| !self.is_ours(known));
            if install {
                list.insert(at.unwrap_or(list.len()).min(list.len()), entry.clone());
            }
        }
        hooks.retain(|_, list| list.as_array().is_none_or(|list| !list.is_empty()));
        let nothing_else = hooks.is_empty();
        if nothing_else {
            top.remove("hooks");
        }
        let only_version = top.keys().all(|key| key == "version");
        if !install && nothing_else && only_version && matches!(self.agent, Agent::Copilot | Agent::Goose) {
            return Ok(None);
        }
        Ok(Some(pretty(&document)))
    }

    /// Cline runs a file: a script that calls the hook and nothing else.
    fn cline_script(&self, before: Option<&str>, install: bool) -> Result<Option<String>, InstallError> {
        let ours = format!("#!/bin/sh\n# Written by `harness install cline`.\nexec {}\n", self.command());
        match before {
            Some(text) if !text.contains("hook cline") => Err(InstallError::Shape {
                path: self.file.clone(),
                what: format!("another script is there already; call `{}` from it", self.command()),
            }),
            Some(_) | None => Ok(install.then_some(ours)),
        }
    }
}

impl Change {
    /// Whether anything would change.
    pub fn is_needed(&self) -> bool {
        self.before != self.after
    }

    /// Makes the change; the file as it was stays beside it.
    ///
    /// # Errors
    ///
    /// When a file cannot be written. The agent's file is then as it was.
    pub fn apply(&self) -> Result<(), InstallError> {
        let failed = |path: &Path| {
            let path = path.to_path_buf();
            move |source: io::Error| InstallError::Io { path, source }
        };
        if let Some(before) = &self.before {
            let backup = backup_of(&self.file);
            fs::write(&backup, before).map_err(failed(&backup))?;
        }
        let Some(after) = &self.after else {
            return match fs::remove_file(&self.file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(&self.file)(error)),
                Ok(()) | Err(_) => Ok(()),
            };
        };
        let directory = self.file.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(directory).map_err(failed(directory))?;
        // A whole new file takes the place of the old one, so that the agent never reads half of it.
        let mut new = tempfile::NamedTempFile::new_in(directory).map_err(failed(directory))?;
        io::Write::write_all(&mut new, after.as_bytes()).map_err(failed(&self.file))?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = if after.starts_with("#!") { 0o755 } else { 0o644 };
            let mode =
                fs::metadata(&self.file).map_or(mode, |meta| meta.permissions().mode() | (mode & 0o111));
            new.as_file().set_permissions(fs::Permissions::from_mode(mode)).map_err(failed(&self.file))?;
        }
        new.persist(&self.file).map_err(|error| failed(&self.file)(error.error))?;
        Ok(())
    }
}

/// The settings of Codex below a home directory or project.
pub(crate) fn codex_config(base: &Path) -> PathBuf {
    base.join(".codex/config.toml")
}

/// Where the file as it was is kept.
pub fn backup_of(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_os_string();
    name.push(".before-cmdgate");
    file.with_file_name(name)
}

fn pretty(value: &Value) -> String {
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}
