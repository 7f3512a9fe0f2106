//! Puts this program in front of an agent, and takes it away again.
//!
//! Only entries that run this program's `hook` are touched; everything else in the agent's files stays, in its order, with its
//! comments. A file that is changed is kept beside itself as `<name>.before-cmdgate`, and when nothing else has changed it
//! meanwhile, uninstalling puts exactly that back.

mod document;
mod edit;
mod entries;
pub mod found;
pub mod health;
pub mod version;

use crate::hook::{Agent, quote};
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
    /// Whose files are changed.
    pub scope: Scope,
    /// The home directory or the project.
    base: PathBuf,
    /// Where else entries of this program may stand.
    others: Vec<PathBuf>,
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
    /// The file is there and is not what the agent reads.
    #[error("{path} cannot be read ({what}), so nothing was changed: mend it, or add this by hand:\n{entry}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
        /// What to add.
        entry: String,
    },
    /// The file of a project is a link that leads out of it.
    #[error("{path} leads to {target}, outside the project; nothing was changed")]
    LeadsOut {
        /// The file.
        path: PathBuf,
        /// Where it leads.
        target: PathBuf,
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
    /// What becomes of the copy of the file as it was.
    backup: Backup,
}

/// What a file was before this program was entered.
enum Untouched {
    /// This text.
    Text(String),
    /// There was none.
    Nothing,
    /// Somebody has changed it since, or it was not entered by this program.
    Unknown,
}

/// What becomes of the copy of a file as it was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Backup {
    /// The present text is copied.
    Write,
    /// The one that is there is still the last without this program.
    Keep,
    /// It is put back, and so needed no more.
    Restore,
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
        let base = if scope == Scope::User { home } else { project };
        let mut file = Self::hooks_file(agent, scope, home, project);
        let config = codex_config(base);
        if agent == Agent::Codex && !file.exists() && document::holds_hooks(&config) {
            file = config;
        }
        let files = found::files(agent, home, project).into_iter();
        let others = files.filter(|known| known.0 == scope && known.1 != file).map(|known| known.1).collect();
        let options = if contain { vec!["--contain".to_owned()] } else { Vec::new() };
        Self { agent, scope, base: base.to_path_buf(), others, file, program: program.to_path_buf(), options }
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

    /// What installing would change: at least the file itself, also when it is as it should be already.
    ///
    /// # Errors
    ///
    /// When a file is there and cannot be changed without losing something.
    pub fn install(&self) -> Result<Vec<Change>, InstallError> {
        let mut changes = vec![self.install_in(&self.file)?];
        if self.agent == Agent::Goose {
            changes.push(self.manifest(true)?);
        }
        for other in &self.others {
            changes.extend(self.uninstall_from(other)?);
        }
        Ok(changes)
    }

    /// What taking the hook away would change, in every file of the scope that has it.
    ///
    /// # Errors
    ///
    /// As [`Plan::install`].
    pub fn uninstall(&self) -> Result<Vec<Change>, InstallError> {
        let mut changes = Vec::new();
        for file in std::iter::once(&self.file).chain(&self.others) {
            changes.extend(self.uninstall_from(file)?);
        }
        if self.agent == Agent::Goose && changes.iter().any(|change| change.after.is_none()) {
            changes.push(self.manifest(false)?);
        }
        Ok(changes)
    }

    /// Whether the hook stands in the files exactly once, as it would be installed.
    ///
    /// # Errors
    ///
    /// When a file cannot be read.
    pub fn is_installed(&self) -> Result<bool, InstallError> {
        Ok(self.install()?.iter().all(|change| change.before.is_some() && !change.is_needed()))
    }

    /// The text of a file of this plan; a project's file may not be a link that leads out of it.
    fn text(&self, file: &Path) -> Result<Option<String>, InstallError> {
        if self.scope == Scope::Project
            && let (Ok(target), Ok(base)) = (fs::canonicalize(file), fs::canonicalize(&self.base))
            && !target.starts_with(base)
        {
            return Err(InstallError::LeadsOut { path: file.to_path_buf(), target });
        }
        document::read(file).map_err(|trouble| self.unreadable(trouble))
    }

    fn install_in(&self, file: &Path) -> Result<Change, InstallError> {
        let before = self.text(file)?;
        let after = match before.as_deref().map(|text| self.untouched(file, text)) {
            // From what was there at first, so that the same comes out whatever was installed in between.
            Some(Untouched::Text(kept)) => self.with(file, Some(&kept))?,
            Some(Untouched::Nothing) => self.with(file, None)?,
            Some(Untouched::Unknown) | None => self.with(file, before.as_deref())?,
        };
        let known = backup_of(file).exists();
        let had = before.as_deref().is_some_and(|text| self.registered(file, text).is_some());
        let backup = if known && had { Backup::Keep } else { Backup::Write };
        Ok(Change { file: file.to_path_buf(), before, after: Some(after), backup })
    }

    /// The text of a file with the hook.
    fn with(&self, file: &Path, before: Option<&str>) -> Result<String, InstallError> {
        match self.agent {
            Agent::Opencode => Ok(self.opencode_plugin()),
            Agent::Cline => self.cline_script(before),
            Agent::ClaudeCode
            | Agent::Codex
            | Agent::Gemini
            | Agent::Cursor
            | Agent::Copilot
            | Agent::Windsurf
            | Agent::Goose => {
                let plan = Self { file: file.to_path_buf(), ..self.clone() };
                match before.filter(|text| !text.trim().is_empty()) {
                    Some(text) if is_toml(file) => plan.edit_toml(text, true),
                    Some(text) => plan.edit_json(text, true),
                    None if is_toml(file) => plan.edit_toml("", true),
                    None => Ok(plan.whole()),
                }
            }
        }
    }

    /// The entry of this program in a file, as a plan that would make it; none when there is none.
    fn registered(&self, file: &Path, text: &str) -> Option<Self> {
        let found = found::in_text(self.agent, self.scope, file, text).ok()?;
        let words = found.first()?.runs.words(self.agent)?;
        let program = PathBuf::from(words.first()?);
        let options = words.get(3..).unwrap_or(&[]).to_vec();
        Some(Self { program, options, ..self.clone() })
    }

    /// What a file was before this program was entered, when nobody has changed it since.
    fn untouched(&self, file: &Path, now: &str) -> Untouched {
        let Some(plan) = self.registered(file, now) else { return Untouched::Unknown };
        let made = |text: Option<&str>| plan.with(file, text).is_ok_and(|made| made == now);
        match document::read(&backup_of(file)) {
            Ok(Some(kept)) if self.registered(file, &kept).is_none() && made(Some(&kept)) => {
                Untouched::Text(kept)
            }
            Ok(None) if made(None) => Untouched::Nothing,
            Ok(_) | Err(_) => Untouched::Unknown,
        }
    }

    fn uninstall_from(&self, file: &Path) -> Result<Option<Change>, InstallError> {
        let Some(before) = self.text(file)? else { return Ok(None) };
        match found::in_text(self.agent, self.scope, file, &before) {
            Ok(found) if found.is_empty() => return Ok(None),
            Ok(_) => {}
            Err(trouble) if *file == self.file => return Err(self.unreadable(trouble)),
            // The agent cannot read it either.
            Err(_) => return Ok(None),
        }
        let change = |after: Option<String>, backup| {
            Ok(Some(Change { file: file.to_path_buf(), before: Some(before.clone()), after, backup }))
        };
        match self.untouched(file, &before) {
            Untouched::Text(kept) => return change(Some(kept), Backup::Restore),
            Untouched::Nothing => return change(None, Backup::Keep),
            Untouched::Unknown => {}
        }
        let plan = Self { file: file.to_path_buf(), ..self.clone() };
        let after = match self.agent {
            Agent::Opencode | Agent::Cline => None,
            Agent::ClaudeCode
            | Agent::Codex
            | Agent::Gemini
            | Agent::Cursor
            | Agent::Copilot
            | Agent::Windsurf
            | Agent::Goose => {
                let text = if is_toml(file) {
                    plan.edit_toml(&before, false)?
                } else {
                    plan.edit_json(&before, false)?
                };
                // A file of this program's own name holds nothing of others.
                let own = matches!(self.agent, Agent::Copilot | Agent::Goose) && file == self.file;
                let value = document::value(file, &text).map_err(|trouble| self.unreadable(trouble))?;
                let bare = value.as_object().is_some_and(|object| object.keys().all(|key| key == "version"));
                if own && bare { None } else { Some(text) }
            }
        };
        change(after, if backup_of(file).exists() { Backup::Keep } else { Backup::Write })
    }

    /// What makes a directory a plugin of goose.
    fn manifest(&self, install: bool) -> Result<Change, InstallError> {
        let directory = self.file.parent().and_then(Path::parent).unwrap_or(Path::new("."));
        let file = directory.join("plugin.json");
        let before = self.text(&file)?;
        let own = document::pretty(&serde_json::json!({
            "name": "cmdgate", "version": "1.0.0", "description": "One policy for every agent's shell commands",
        }));
        let after = match (&before, install) {
            (None, true) => Some(own),
            (Some(text), false) if *text == own => None,
            (before, _) => before.clone(),
        };
        Ok(Change { file, before, after, backup: Backup::Keep })
    }

    /// Cline runs a file: a script that calls the hook and nothing else.
    fn cline_script(&self, before: Option<&str>) -> Result<String, InstallError> {
        let ours = format!("#!/bin/sh\n# Written by `harness install cline`.\nexec {}\n", self.command());
        match before {
            Some(text) if !text.contains("hook cline") => Err(InstallError::Shape {
                path: self.file.clone(),
                what: format!("another script is there already; call `{}` from it", self.command()),
            }),
            Some(_) | None => Ok(ours),
        }
    }
}

fn is_toml(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "toml")
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
        // Behind a link stands the file that is meant, in the user's own collection of settings, say.
        let file = fs::canonicalize(&self.file).unwrap_or_else(|_| self.file.clone());
        let backup = backup_of(&self.file);
        if let (Some(before), Backup::Write) = (&self.before, self.backup) {
            fs::write(&backup, before).map_err(failed(&backup))?;
        }
        let Some(after) = &self.after else {
            return match fs::remove_file(&self.file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(&self.file)(error)),
                Ok(()) | Err(_) => Ok(()),
            };
        };
        let directory = file.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(directory).map_err(failed(directory))?;
        // A whole new file takes the place of the old one, so that the agent never reads half of it.
        let mut new = tempfile::NamedTempFile::new_in(directory).map_err(failed(directory))?;
        io::Write::write_all(&mut new, after.as_bytes()).map_err(failed(&file))?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = if after.starts_with("#!") { 0o755 } else { 0o644 };
            let mode = fs::metadata(&file).map_or(mode, |meta| meta.permissions().mode() | (mode & 0o111));
            new.as_file().set_permissions(fs::Permissions::from_mode(mode)).map_err(failed(&file))?;
        }
        new.persist(&file).map_err(|error| failed(&file)(error.error))?;
        if self.backup == Backup::Restore {
            fs::remove_file(&backup).map_err(failed(&backup))?;
        }
        Ok(())
    }

    /// The copy of the file as it was, where there is one after the change.
    pub fn kept(&self) -> Option<PathBuf> {
        let backup = backup_of(&self.file);
        backup.exists().then_some(backup)
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

#[cfg(test)]
mod tests;
