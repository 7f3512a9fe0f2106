//! Puts this program in front of an agent, and takes it away again.
//!
//! Only entries that run this program's `hook` are touched; everything else in the agent's files stays, in its order, with its
//! comments. A file that is changed is kept beside itself as `<name>.before-cmdgate` (`<name>.before-cmdgate-1` and so on where
//! that name is taken), and when nothing else has changed it meanwhile, uninstalling puts exactly that back.

mod copies;
mod document;
mod edit;
mod entries;
pub mod found;
pub mod health;
pub mod home;
pub mod version;

use crate::hook::{Agent, quote};
use copies::Copies;
use home::Home;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// What follows the hook in a shell's line. The hook itself ends with 0, or with 2 and a reason.
const OR_BLOCK: &str = " || { [ $? -eq 2 ] || echo 'cmdgate: the hook failed' >&2; exit 2; }";
/// The file of a project's plugin for goose, and of the user's as it was named at first.
const GOOSES_PLUGIN: &str = "cmdgate/hooks/hooks.json";
/// What stands before and behind the hook in the script for Cline, which looks at the answer alone.
const CLINE_BEGINS: &str = "if answer=$(";
const CLINE_GOES_ON: &str = ") && [ -n \"$answer\" ]; then";

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
    /// The file of a project, or a directory on the way to it, is a link that leads out of it.
    #[error("{path} leads to {target}, outside the project; nothing was changed")]
    LeadsOut {
        /// The file.
        path: PathBuf,
        /// Where it leads.
        target: PathBuf,
    },
    /// Something stands where this program would keep or make a file, and is not what it would have made.
    #[error("{path} is in the way: {what}; nothing was changed, so move it away and try again")]
    InTheWay {
        /// What is in the way.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The home directory or project is not an absolute path, so the file would depend on the current directory.
    #[error(
        "{path:?} is not an absolute path; nothing was changed, so set HOME to the whole path of your home directory"
    )]
    Relative {
        /// The home directory or project.
        path: PathBuf,
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
    /// The project that may not be left; none for the user's own files.
    project: Option<PathBuf>,
}

/// What a file was before this program was entered.
enum Untouched {
    /// This text, of which this is the copy.
    Text(String, PathBuf),
    /// There was none.
    Nothing,
    /// Somebody has changed it since, or it was not entered by this program.
    Unknown,
}

/// What becomes of the copy of a file as it was before.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Backup {
    /// The present text is copied to a new file of this name.
    Write(PathBuf),
    /// The one that is there, if any, is still the last without this program.
    Keep(Option<PathBuf>),
    /// It is put back, and so needed no more.
    Restore(PathBuf),
}

impl Plan {
    /// The plan for an agent.
    pub fn new(
        agent: Agent,
        scope: Scope,
        home: &Home,
        project: &Path,
        program: &Path,
        contain: bool,
    ) -> Self {
        let base = if scope == Scope::User { home.path() } else { project };
        let mut file = Self::hooks_file(agent, scope, home, project);
        let config = codex_config(&Self::directory(agent, scope, home, project));
        if agent == Agent::Codex && !file.exists() && document::holds_hooks(&config) {
            file = config;
        }
        let files = found::files(agent, home, project).into_iter();
        let others = files.filter(|known| known.0 == scope && known.1 != file).map(|known| known.1).collect();
        let options = if contain { vec!["--contain".to_owned()] } else { Vec::new() };
        Self { agent, scope, base: base.to_path_buf(), others, file, program: program.to_path_buf(), options }
    }

    /// The directory of an agent's settings.
    pub(crate) fn directory(agent: Agent, scope: Scope, home: &Home, project: &Path) -> PathBuf {
        match scope {
            Scope::User => home.settings(agent),
            Scope::Project => home::of_project(agent, project),
        }
    }

    /// The file that holds an agent's hooks.
    pub fn hooks_file(agent: Agent, scope: Scope, home: &Home, project: &Path) -> PathBuf {
        Self::directory(agent, scope, home, project).join(match agent {
            Agent::ClaudeCode | Agent::Gemini => "settings.json",
            Agent::Codex | Agent::Cursor | Agent::Windsurf => "hooks.json",
            Agent::Copilot => "hooks/cmdgate.json",
            Agent::Opencode => "plugins/cmdgate.js",
            Agent::Cline => "hooks/PreToolUse",
            Agent::Goose if scope == Scope::User => {
                return home::gooses_plugin(&home.settings(agent)).join("hooks/hooks.json");
            }
            Agent::Goose => GOOSES_PLUGIN,
        })
    }

    /// The command line of the hook, for agents that take one text. It stays the same from version to version, because Codex
    /// trusts exactly this text.
    pub fn command(&self) -> String {
        let words =
            [self.program.to_string_lossy().into_owned(), "hook".to_owned(), self.agent.name().to_owned()];
        words.iter().chain(&self.options).map(|word| quote(word)).collect::<Vec<_>>().join(" ")
    }

    /// The same for a shell, so that it blocks where the program is gone or crashes: agents that take nothing else for a no
    /// take code 2 with a text.
    pub fn command_or_block(&self) -> String {
        self.command() + OR_BLOCK
    }

    /// What installing would change: at least the file itself, also when it is as it should be already.
    ///
    /// # Errors
    ///
    /// When a file is there and cannot be changed without losing something.
    pub fn install(&self) -> Result<Vec<Change>, InstallError> {
        let mut changes = vec![self.install_in(&self.file)?];
        if self.agent == Agent::Goose {
            changes.push(self.manifest(&self.file, true)?);
        }
        for other in &self.others {
            changes.extend(self.uninstall_all(other)?);
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
            changes.extend(self.uninstall_all(file)?);
        }
        Ok(changes)
    }

    /// What taking the hook out of one file would change, with what belongs to that file.
    fn uninstall_all(&self, file: &Path) -> Result<Vec<Change>, InstallError> {
        let mut changes: Vec<Change> = self.uninstall_from(file)?.into_iter().collect();
        if self.agent == Agent::Goose && changes.iter().any(|change| change.after.is_none()) {
            changes.push(self.manifest(file, false)?);
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

    /// The text of a file of this plan; neither it nor its copies may lie outside a project.
    fn text(&self, file: &Path) -> Result<Option<String>, InstallError> {
        if !self.base.is_absolute() {
            return Err(InstallError::Relative { path: self.base.clone() });
        }
        if self.scope == Scope::Project {
            copies::stays_in(&self.base, file)?;
        }
        document::read(file).map_err(|trouble| self.unreadable(trouble))
    }

    fn change(&self, file: &Path, before: Option<String>, after: Option<String>, backup: Backup) -> Change {
        let project = (self.scope == Scope::Project).then(|| self.base.clone());
        Change { file: file.to_path_buf(), before, after, backup, project }
    }

    fn install_in(&self, file: &Path) -> Result<Change, InstallError> {
        let before = self.text(file)?;
        let copies = Copies::of(file)?;
        let Some(text) = before.as_deref() else {
            let after = self.with(file, None)?;
            // Uninstalling could not tell this file from the copy of one that was there before.
            if let Some((_, path)) = self.original(file, &after, &copies) {
                return Err(InstallError::InTheWay {
                    path,
                    what: "it has the name of a copy of this program",
                });
            }
            return Ok(self.change(file, None, Some(after), Backup::Keep(None)));
        };
        let (after, backup) = match self.untouched(file, text, &copies) {
            // From what was there at first, so that the same comes out whatever was installed in between.
            Untouched::Text(kept, copy) => (self.with(file, Some(&kept))?, Backup::Keep(Some(copy))),
            Untouched::Nothing => (self.with(file, None)?, Backup::Keep(None)),
            Untouched::Unknown => {
                let after = self.with(file, Some(text))?;
                // Of a script or plugin nothing stays, also not what somebody added to it.
                let edited = !matches!(self.agent, Agent::Opencode | Agent::Cline);
                let last = copies.last().filter(|_| edited && self.registered(file, text).is_some());
                let backup = match last {
                    Some(last) => Backup::Keep(Some(last)),
                    None if after == text => Backup::Keep(None),
                    None => Backup::Write(copies.next(file)?),
                };
                (after, backup)
            }
        };
        Ok(self.change(file, before, Some(after), backup))
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
    fn untouched(&self, file: &Path, now: &str, copies: &Copies) -> Untouched {
        let Some(plan) = self.registered(file, now) else { return Untouched::Unknown };
        match plan.original(file, now, copies) {
            Some((kept, copy)) => Untouched::Text(kept, copy),
            None if plan.with(file, None).is_ok_and(|made| made == now) => Untouched::Nothing,
            None => Untouched::Unknown,
        }
    }

    /// The latest copy from which this plan makes the text, and where it is.
    fn original(&self, file: &Path, made: &str, copies: &Copies) -> Option<(String, PathBuf)> {
        copies.found.iter().rev().find_map(|copy| {
            let kept = copies::text(copy)?;
            let is_it = self.registered(file, &kept).is_none()
                && self.with(file, Some(&kept)).is_ok_and(|text| text == made);
            is_it.then(|| (kept, copy.clone()))
        })
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
        let copies = Copies::of(file)?;
        let change =
            |after: Option<String>, backup| Ok(Some(self.change(file, Some(before.clone()), after, backup)));
        match self.untouched(file, &before, &copies) {
            Untouched::Text(kept, copy) => return change(Some(kept), Backup::Restore(copy)),
            Untouched::Nothing => return change(None, Backup::Keep(None)),
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
                let own = self.agent == Agent::Goose || (self.agent == Agent::Copilot && file == self.file);
                let value = document::value(file, &text).map_err(|trouble| self.unreadable(trouble))?;
                let bare = value.as_object().is_some_and(|object| object.keys().all(|key| key == "version"));
                if own && bare { None } else { Some(text) }
            }
        };
        // A file that goes may hold what somebody has added to it.
        let backup = match copies.last() {
            Some(last) if after.is_some() => Backup::Keep(Some(last)),
            Some(_) | None => Backup::Write(copies.next(file)?),
        };
        change(after, backup)
    }

    /// What makes a directory a plugin of goose.
    fn manifest(&self, hooks: &Path, install: bool) -> Result<Change, InstallError> {
        let directory = hooks.parent().and_then(Path::parent).unwrap_or(Path::new("."));
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
        Ok(self.change(&file, before, after, Backup::Keep(None)))
    }

    /// Cline runs a file: a script that calls the hook and nothing else.
    fn cline_script(&self, before: Option<&str>) -> Result<String, InstallError> {
        let ours = format!(
            "#!/bin/sh\n# Written by `harness install cline`.\n{CLINE_BEGINS}{}{CLINE_GOES_ON}\n  \
             printf '%s\\n' \"$answer\"\nelse\n  \
             printf '%s\\n' '{{\"cancel\":true,\"errorMessage\":\"cmdgate: the hook failed\"}}'\nfi\n",
            self.command()
        );
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
        if let Some(project) = &self.project {
            copies::stays_in(project, &self.file)?;
        }
        // Behind a link stands the file that is meant, in the user's own collection of settings, say.
        let file = fs::canonicalize(&self.file).unwrap_or_else(|_| self.file.clone());
        if let (Some(before), Backup::Write(copy)) = (&self.before, &self.backup) {
            copies::write(copy, &file, before)?;
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
        if let Backup::Restore(copy) = &self.backup
            && copies::text(copy).as_ref() == Some(after)
        {
            fs::remove_file(copy).map_err(failed(copy))?;
        }
        Ok(())
    }

    /// The copy of the file as it was, where there is one after the change.
    pub fn kept(&self) -> Option<PathBuf> {
        let copy = match &self.backup {
            Backup::Write(copy) | Backup::Restore(copy) => copy,
            Backup::Keep(copy) => copy.as_ref()?,
        };
        fs::symlink_metadata(copy).is_ok().then(|| copy.clone())
    }
}

/// The settings of Codex in its directory.
fn codex_config(directory: &Path) -> PathBuf {
    directory.join("config.toml")
}

/// Where the file as it was is kept, unless that name was taken before.
pub fn backup_of(file: &Path) -> PathBuf {
    copies::numbered(file, 0)
}

#[cfg(test)]
mod tests;
