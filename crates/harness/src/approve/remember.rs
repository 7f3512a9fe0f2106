//! Rules that a person asked to be remembered: which ones can be, and the file in which they stand.
//!
//! The file, `remembered.toml` beside the user's policy, is an ordinary policy file: a person can read, change and
//! empty it. Rules for one project stand in a layer that is called `project:` and the project's real path; they count
//! nowhere else.

use crate::config;
use crate::gate::{Decision, Source};
use crate::read;
use cmdgate_policy::{
    Act, Effect, Pattern, Policy, PolicyFile, Rule, Severity, Timestamp, escape, lint_at, runs_anything,
};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, value};

/// The file's name in the user's configuration directory.
pub const FILE: &str = "remembered.toml";
/// What the name of a project's layer begins with.
const PROJECT: &str = "project:";

/// How long, and for which projects, a rule is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Until this process ends.
    Session,
    /// In this project.
    Project,
    /// In every project of this user.
    User,
}

/// A rule to remember.
#[derive(Debug, Clone, PartialEq)]
pub struct Remember {
    /// The rule.
    pub rule: Rule,
    /// Where it counts.
    pub scope: Scope,
}

/// Why a rule is not remembered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RememberError {
    /// It would let more pass than a person can see.
    #[error("the rule `{pattern}` is not remembered: {why}")]
    Refused {
        /// Its pattern.
        pattern: String,
        /// Why not.
        why: String,
    },
    /// The file cannot be used.
    #[error("the remembered rules {path} cannot be used: {what}; mend the file or move it away")]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// There is no directory for it.
    #[error("there is no configuration directory for remembered rules: set HOME or XDG_CONFIG_HOME")]
    NoDirectory,
}

/// Programs that run what a file or their surroundings say, or make others do so, besides those that
/// [`runs_anything`] knows. A rule for them says nothing.
const RUNNERS: &[&str] = &[
    "ash",
    "powershell",
    "pypy",
    "nodejs",
    "luajit",
    "mawk",
    "nawk",
    "builtin",
    "source",
    ".",
    "pipx",
    "kubectl",
    "ltrace",
    "flock",
    "script",
    "expect",
    "find",
    "fd",
    "vim",
    "vi",
    "emacs",
    "make",
    "gmake",
    "Rscript",
    "julia",
    "ghci",
    "java",
    "sed",
];

/// Whether a program runs what it is told to.
pub fn is_runner(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or(program);
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    [name, bare].into_iter().any(|name| RUNNERS.contains(&name) || runs_anything(name))
}

/// The rule that "always" would write for what was asked about, when there can be one: the program with its subcommand
/// and any arguments, or exactly this command where there is no subcommand.
pub fn propose(decision: &Decision, policy: &Policy) -> Result<Rule, RememberError> {
    let refused = |why: &str| RememberError::Refused { pattern: String::new(), why: why.to_owned() };
    let [argv] = decision.commands.argvs.as_slice() else {
        return Err(refused("it is not one single command"));
    };
    if decision.commands.incomplete || decision.commands.interprets || !decision.commands.possible.is_empty()
    {
        return Err(refused("it runs what its arguments or a file say"));
    }
    if decision.source == Source::Rule && decision.effect == Effect::Ask {
        return Err(refused("a rule asks every time, and an ask beats an allow"));
    }
    let (Some(program), second) = (argv.first(), argv.get(1)) else {
        return Err(refused("it has no program"));
    };
    let subcommand = second.filter(|word| {
        word.starts_with(|c: char| c.is_ascii_lowercase())
            && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    });
    let has_subcommands = subcommand.is_some() && takes_subcommands(program);
    let rule = match subcommand {
        Some(word) if has_subcommands => {
            Rule::new(Act::Exec, Effect::Allow, &format!("{} {} **", escape(program), escape(word)))
        }
        Some(_) | None => {
            // Side by side they would read like other words: `rm 'a b'` like `rm a b`.
            if argv.iter().any(|word| word.is_empty() || word.contains(' ')) {
                return Err(refused(
                    "a rule cannot tell a word with a space in it, or an empty one, from other words",
                ));
            }
            Rule::new(Act::Exec, Effect::Allow, &escape(&argv.join(" "))).map(Rule::whole)
        }
    };
    let rule = rule.map_err(|error| refused(&error.to_string()))?.words();
    check(&rule, policy)?;
    Ok(rule)
}

/// Programs whose first word is a subcommand; of others, the first word may be the very file that is written.
fn takes_subcommands(program: &str) -> bool {
    [
        "apt",
        "brew",
        "bundle",
        "cargo",
        "composer",
        "dotnet",
        "flutter",
        "gem",
        "gh",
        "git",
        "glab",
        "go",
        "gradle",
        "hatch",
        "helm",
        "mix",
        "mvn",
        "npm",
        "pdm",
        "pip",
        "pip3",
        "pnpm",
        "poetry",
        "rake",
        "rustup",
        "swift",
        "terraform",
        "tox",
        "uv",
        "yarn",
        "zig",
    ]
    .contains(&program)
}

/// Whether a rule may be remembered under this policy: it allows, it is for no program that runs what it is told to, it
/// is clean to the policy's lint, and no deny stands against it.
///
/// # Errors
///
/// Why not.
pub fn check(rule: &Rule, policy: &Policy) -> Result<(), RememberError> {
    let pattern = rule.pattern.as_str();
    let refused = |why: String| Err(RememberError::Refused { pattern: pattern.to_owned(), why });
    if rule.effect != Effect::Allow {
        return Ok(());
    }
    if let Some(problem) = rule.problem() {
        return refused(problem.to_string());
    }
    if rule.act == Act::Exec {
        let program = pattern.split(' ').next().unwrap_or_default();
        if is_runner(program) {
            return refused(format!("`{program}` runs what its arguments or a file say"));
        }
        if program.contains(['*', '?', '[']) {
            return refused("it does not name the program".to_owned());
        }
    }
    let layer = "remembered now";
    let with = policy.clone().layer(layer).rule(rule.clone());
    let now = Timestamp::from(SystemTime::now());
    let doubt = lint_at(&with, now)
        .into_iter()
        .find(|lint| lint.layer == layer && lint.severity >= Severity::Warning);
    match doubt {
        Some(lint) => refused(lint.message),
        None => Ok(()),
    }
}

/// Which of some well-known commands a rule would let pass besides the one it was made for.
pub fn also_matches(rule: &Rule, argv: &[String]) -> Vec<String> {
    let Some(program) = argv.first() else { return Vec::new() };
    let this = argv.join(" ");
    if rule.whole {
        return Vec::new();
    }
    let stem = argv.iter().take(2).cloned().collect::<Vec<_>>().join(" ");
    [
        format!("{stem} --any-flag"),
        format!("{stem} any/file"),
        format!("{stem} --config=any/file"),
        program.clone(),
    ]
    .into_iter()
    .filter(|example| *example != this && rule.matches(example))
    .collect()
}

/// The layer's name of a project.
pub(crate) fn project_layer(root: &Path) -> String {
    format!("{PROJECT}{}", root.display())
}

/// Whether a layer of the file counts in a project.
pub(crate) fn counts_in(layer: &str, root: &Path) -> bool {
    !layer.starts_with(PROJECT) || layer == project_layer(root)
}

/// A rule of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Remembered {
    /// Its number in the file, from 1.
    pub number: usize,
    /// The project it is for; none when it counts everywhere.
    pub project: Option<String>,
    /// The rule.
    pub rule: Rule,
}

/// The file of remembered rules.
#[derive(Debug, Clone)]
pub struct RememberedFile {
    path: PathBuf,
}

impl RememberedFile {
    /// The file at this path; it need not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The rules, in their order.
    ///
    /// # Errors
    ///
    /// When the file is there and is no policy.
    pub fn list(&self) -> Result<Vec<Remembered>, RememberError> {
        let text = self.read()?;
        let layers = self.parse(&text)?.into_layers("remembered");
        let rules = layers.into_iter().flat_map(|layer| {
            let project = layer.name.strip_prefix(PROJECT).map(ToOwned::to_owned);
            layer.rules.into_iter().map(move |rule| (project.clone(), rule))
        });
        let numbered = rules.enumerate();
        Ok(numbered.map(|(at, (project, rule))| Remembered { number: at + 1, project, rule }).collect())
    }

    /// Adds a rule: for one project, or for all. A rule that is there already stays as it is.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or written.
    pub fn add(&self, rule: &Rule, root: Option<&Path>) -> Result<(), RememberError> {
        self.change(|document| {
            let rules = match root {
                None => array(document.as_table_mut(), "rule"),
                Some(root) => {
                    let name = project_layer(root);
                    let layers = array(document.as_table_mut(), "layer")?;
                    let named =
                        |layer: &Table| layer.get("name").and_then(Item::as_str) == Some(name.as_str());
                    if !layers.iter().any(named) {
                        let mut layer = Table::new();
                        layer.insert("name", value(name.clone()));
                        layers.push(layer);
                    }
                    layers.iter_mut().find(|layer| named(layer)).and_then(|layer| array(layer, "rule"))
                }
            }?;
            let pattern = rule.pattern.as_str();
            let same = |table: &Table| {
                table.get("pattern").and_then(Item::as_str) == Some(pattern)
                    && table.get("act").and_then(Item::as_str) == Some(rule.act.as_str())
                    && table.get("expires").is_none()
                    && table.get("words").and_then(Item::as_bool).unwrap_or(false) == rule.words
                    && table.get("whole").and_then(Item::as_bool).unwrap_or(false) == rule.whole
            };
            if !rules.iter().any(same) {
                rules.push(table_of(rule));
            }
            Some(())
        })
        .map(|_| ())
    }

    /// Removes the rule of that number; gives it back, or nothing when there is none.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or written.
    pub fn remove(&self, number: usize) -> Result<Option<Remembered>, RememberError> {
        let Some(found) = self.list()?.into_iter().find(|rule| rule.number == number) else {
            return Ok(None);
        };
        let removed = self.change(|document| {
            let mut at = number.checked_sub(1)?;
            let own = array(document.as_table_mut(), "rule")?;
            if at < own.len() {
                own.remove(at);
                return Some(());
            }
            at -= own.len();
            for layer in array(document.as_table_mut(), "layer")?.iter_mut() {
                let rules = array(layer, "rule")?;
                if at < rules.len() {
                    rules.remove(at);
                    return Some(());
                }
                at -= rules.len();
            }
            None
        })?;
        Ok(removed.then_some(found))
    }

    fn read(&self) -> Result<String, RememberError> {
        match config::policy_text(&self.path) {
            Ok(text) => Ok(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(self.failed(&error)),
        }
    }

    fn parse(&self, text: &str) -> Result<PolicyFile, RememberError> {
        PolicyFile::parse(&self.path.display().to_string(), text).map_err(|error| self.failed(&error))
    }

    fn failed(&self, what: &dyn std::fmt::Display) -> RememberError {
        RememberError::File { path: self.path.clone(), what: what.to_string() }
    }

    /// Changes the file under a lock; what results must be a policy, and takes the place of the old one as a whole.
    fn change(&self, change: impl FnOnce(&mut DocumentMut) -> Option<()>) -> Result<bool, RememberError> {
        let directory = self.path.parent().ok_or(RememberError::NoDirectory)?;
        let io = |error: io::Error| self.failed(&error);
        std::fs::create_dir_all(directory).map_err(io)?;
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        let lock = read::open_with(&self.path.with_extension("lock"), &mut options).map_err(io)?;
        lock.lock().map_err(io)?;
        let text = self.read()?;
        let mut document: DocumentMut = text.parse().map_err(|error| self.failed(&error))?;
        if change(&mut document).is_none() {
            return Ok(false);
        }
        let text = document.to_string();
        self.parse(&text)?;
        let mut new = tempfile::NamedTempFile::new_in(directory).map_err(io)?;
        io::Write::write_all(&mut new, text.as_bytes()).map_err(io)?;
        new.as_file().sync_all().map_err(io)?;
        new.persist(&self.path).map_err(|error| self.failed(&error.error))?;
        Ok(true)
    }
}

/// The list of tables of that name, made where it is missing; nothing when something else has the name.
fn array<'t>(table: &'t mut Table, name: &str) -> Option<&'t mut ArrayOfTables> {
    table.entry(name).or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new())).as_array_of_tables_mut()
}

fn table_of(rule: &Rule) -> Table {
    let mut table = Table::new();
    table.insert("act", value(rule.act.as_str()));
    table.insert("effect", value(rule.effect.as_str()));
    table.insert("pattern", value(rule.pattern.as_str()));
    if !rule.except.is_empty() {
        let except: toml_edit::Array = rule.except.iter().map(Pattern::as_str).collect();
        table.insert("except", value(except));
    }
    if rule.whole {
        table.insert("whole", value(true));
    }
    if rule.words {
        table.insert("words", value(true));
    }
    let created = Timestamp::from(SystemTime::now());
    let reason = rule.reason.as_deref().unwrap_or("approved by a person");
    table.insert("reason", value(format!("{reason} ({created})")));
    if let Some(expires) = rule.expires {
        table.insert("expires", value(expires.to_string()));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::{Gate, Request};
    use cmdgate_policy::{ApprovalPolicy, SandboxMode};

    fn proposal(command: &str) -> Result<Rule, RememberError> {
        let root = tempfile::tempdir().unwrap();
        let policy = Policy::default().layer("app").deny_exec("cargo publish **").ask_exec("npm install **");
        let mut settings = policy.settings();
        settings.sandbox = Some(SandboxMode::WorkspaceWrite);
        settings.approval = Some(ApprovalPolicy::OnRequest);
        let gate = Gate::new(root.path(), policy, settings).unwrap();
        let decision = gate.decide(&Request::shell(command));
        propose(&decision, gate.policy())
    }

    #[test]
    fn always_is_the_program_with_its_subcommand_or_exactly_this() {
        // contract: P7
        let rule = proposal("npm test -- --watch").unwrap();
        assert_eq!((rule.pattern.as_str(), rule.whole), ("npm test **", false));
        let rule = proposal("touch new.txt").unwrap();
        assert!(rule.whole && rule.matches("touch new.txt") && !rule.matches("touch other.txt"));
        // What reads the same side by side is another command.
        for other in ["rm 'a b'", "touch 'a b' c", "touch ''"] {
            assert!(proposal(other).unwrap_err().to_string().contains("cannot tell a word"), "{other}");
        }
        let policy = Policy::default().rule(proposal("touch a b").unwrap());
        assert_eq!(policy.check_exec(&["touch", "a", "b"]).effect, Effect::Allow);
        assert_eq!(policy.check_exec(&["touch", "a b"]).effect, Effect::Ask);
        let rule = proposal("npm test -- 'a b'").unwrap();
        assert_eq!(
            Policy::default().rule(rule).check_exec(&["npm", "test", "--", "a b"]).effect,
            Effect::Allow
        );
        let rule = proposal("touch 'a*b'").unwrap();
        assert!(rule.matches("touch a*b") && !rule.matches("touch axb"));
    }

    #[test]
    fn never_for_what_runs_anything() {
        // contract: P7
        for command in [
            "bash -c 'npm test'",
            "python3 x.py",
            "python3.12 -m pytest",
            "node build.js",
            "sudo npm test",
            "env A=b npm test",
            "xargs rm",
            "make test",
            "npx jest",
            "npm test && npm run build",
            "find . -name x -delete",
            "npm install left-pad",
        ] {
            assert!(proposal(command).is_err(), "{command}: {:?}", proposal(command));
        }
        let policy = Policy::default().layer("app").deny_exec("cargo publish **");
        for pattern in ["*", "bash **", "npm*", "/usr/bin/python3 **", "cargo publish **", "c?rgo test"] {
            let rule = Rule::new(Act::Exec, Effect::Allow, pattern).unwrap();
            assert!(check(&rule, &policy).is_err(), "{pattern}");
        }
        assert!(check(&Rule::new(Act::Exec, Effect::Allow, "cargo test **").unwrap(), &policy).is_ok());
    }

    #[test]
    fn rules_are_written_read_and_removed() {
        // contract: P7
        let dir = tempfile::tempdir().unwrap();
        let file = RememberedFile::new(dir.path().join("cmdgate").join(FILE));
        assert!(file.list().unwrap().is_empty());
        std::fs::create_dir_all(file.path().parent().unwrap()).unwrap();
        std::fs::write(
            file.path(),
            "# mine\n[[rule]]\nact = \"exec\"\neffect = \"allow\"\npattern = \"ls **\"\n",
        )
        .unwrap();
        let rule = |pattern: &str| Rule::new(Act::Exec, Effect::Allow, pattern).unwrap();
        file.add(&rule("npm test **"), Some(Path::new("/p"))).unwrap();
        file.add(&rule("npm test **"), Some(Path::new("/p"))).unwrap();
        file.add(&rule("cargo test **").until(Timestamp::from_unix_seconds(4_000_000_000)), None).unwrap();
        let listed: Vec<_> = file
            .list()
            .unwrap()
            .into_iter()
            .map(|rule| {
                (
                    rule.number,
                    rule.project,
                    rule.rule.pattern.as_str().to_owned(),
                    rule.rule.expires.is_some(),
                )
            })
            .collect();
        assert_eq!(
            listed,
            [
                (1, None, "ls **".to_owned(), false),
                (2, None, "cargo test **".to_owned(), true),
                (3, Some("/p".to_owned()), "npm test **".to_owned(), false),
            ]
        );
        assert!(std::fs::read_to_string(file.path()).unwrap().starts_with("# mine"), "comments stay");
        assert_eq!(file.remove(3).unwrap().unwrap().rule.pattern.as_str(), "npm test **");
        assert!(file.remove(3).unwrap().is_none() && file.remove(0).unwrap().is_none());
        assert_eq!(file.list().unwrap().len(), 2);
        assert!(counts_in("project:/p", Path::new("/p")) && !counts_in("project:/p", Path::new("/q")));
    }

    #[test]
    fn writers_at_once_lose_nothing() {
        // contract: P7
        let dir = tempfile::tempdir().unwrap();
        let file = RememberedFile::new(dir.path().join(FILE));
        std::thread::scope(|scope| {
            for n in 0..10 {
                let file = &file;
                scope.spawn(move || {
                    let rule = Rule::new(Act::Exec, Effect::Allow, &format!("npm task{n} **")).unwrap();
                    file.add(&rule, None).unwrap();
                });
            }
        });
        assert_eq!(file.list().unwrap().len(), 10);
    }
}
