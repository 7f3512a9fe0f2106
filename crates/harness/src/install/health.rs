//! Whether the agents that are here are behind this program, and whether it would refuse what it must.

use super::document;
use super::entries::Difference;
use super::found::{self, Registration, Runs};
use super::home::Home;
use super::version::{self, Version};
use super::{OR_BLOCK, Plan, Scope, codex_config};
use crate::hook::Agent;
use serde_json::Value;
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// What every built-in policy denies, whatever other layers allow: it reads a file of secrets.
const DANGEROUS: &str = "cat .env; rm -rf /";
/// How long the canary may take; longer than the hook's own patience.
const CANARY_PATIENCE: Duration = Duration::from_secs(8);
/// How long an agent may take to say its version.
const VERSION_PATIENCE: Duration = Duration::from_secs(10);

/// How a check went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// As it should be.
    Ok,
    /// Worth knowing; nothing can be done about it here.
    Note,
    /// Works, with less than everything.
    Warning,
    /// A registered hook does not do what it is there for.
    Failed,
}

impl Status {
    /// The stable spelling.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Failed => "failed",
        }
    }
}

/// One thing looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// A stable name: `settings`, `version`, `registered`, `shared`, `program`, `fail_closed`, `trusted`, `nested`, `canary`.
    pub name: &'static str,
    /// How it went.
    pub status: Status,
    /// What was found.
    pub detail: String,
    /// What to do about it.
    pub remedy: Option<String>,
}

/// One agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentHealth {
    /// The agent.
    pub agent: Agent,
    /// Where it was found: programs and directories.
    pub seen: Vec<PathBuf>,
    /// Everything looked at.
    pub checks: Vec<Check>,
}

/// Where to look.
#[derive(Debug, Clone)]
pub struct Places {
    /// The user's home directory, and where agents keep their settings instead.
    pub home: Home,
    /// The project.
    pub project: PathBuf,
    /// The search path for programs.
    pub path: Vec<PathBuf>,
}

impl Places {
    /// A program of this name; never one that the project could have put there.
    fn program(&self, names: &[&str]) -> Option<PathBuf> {
        let trusted = |dir: &&PathBuf| {
            let real = std::fs::canonicalize(dir).unwrap_or_else(|_| (*dir).clone());
            dir.is_absolute() && !real.starts_with(&self.project)
        };
        let dirs: Vec<&PathBuf> = self.path.iter().filter(trusted).collect();
        names.iter().flat_map(|name| dirs.iter().map(move |dir| dir.join(name))).find(|file| executable(file))
    }
}

/// Looks at every agent whose settings or program are here. `progress` hears what is about to take a while.
pub fn agents(places: &Places, mut progress: impl FnMut(&str)) -> Vec<AgentHealth> {
    let mut all = Vec::new();
    for agent in Agent::ALL {
        let program = places.program(agent.programs());
        let mut seen: Vec<PathBuf> = program.iter().cloned().collect();
        seen.extend(agent.settings(&places.home, &places.project).into_iter().filter(|dir| dir.exists()));
        if seen.is_empty() {
            continue;
        }
        let checks = look(agent, places, program.as_deref(), &all, &mut progress);
        all.push(AgentHealth { agent, seen, checks });
    }
    all
}

fn look(
    agent: Agent,
    places: &Places,
    program: Option<&Path>,
    before: &[AgentHealth],
    progress: &mut impl FnMut(&str),
) -> Vec<Check> {
    let files = found::files(agent, &places.home, &places.project);
    let (registrations, troubles) = found::registrations(agent, &files);
    let mut checks: Vec<Check> = troubles
        .iter()
        .map(|trouble| Check {
            name: "settings",
            status: Status::Warning,
            detail: trouble.to_string(),
            remedy: Some(format!("mend the file; {} may not read it either", agent.name())),
        })
        .collect();
    let installed = version_of(agent, program, progress);
    checks.push(version_check(agent, program, installed));
    checks.extend(registered(agent, places, &registrations));
    if registrations.is_empty() {
        return checks;
    }
    if let Some(check) = twice_over(agent, before) {
        checks.push(check);
    }
    checks.push(programs(agent, places, &registrations));
    checks.push(fail_closed(agent, &registrations, installed));
    if agent == Agent::Codex {
        checks.push(trusted(places, &registrations));
        checks.extend(nested(places, &registrations));
    }
    let mut tried: Vec<&Runs> = Vec::new();
    for registration in &registrations {
        if !tried.contains(&&registration.runs) {
            tried.push(&registration.runs);
            progress(&format!("{}: trying `{}`", agent.name(), registration.runs.text()));
            checks.push(canary(agent, places, registration));
        }
    }
    checks
}

fn version_of(agent: Agent, program: Option<&Path>, progress: &mut impl FnMut(&str)) -> Option<Version> {
    let program = program.filter(|_| agent.read_from().is_some())?;
    progress(&format!("{}: asking {} for its version", agent.name(), program.display()));
    let ran = run(Command::new(program).arg("--version"), &[], VERSION_PATIENCE)?;
    version::first_in(&ran.stdout)
}

/// Whether the adapter was read from this version of the agent.
fn version_check(agent: Agent, program: Option<&Path>, installed: Option<Version>) -> Check {
    let check = |status, detail: String, remedy: Option<&str>| Check {
        name: "version",
        status,
        detail,
        remedy: remedy.map(ToOwned::to_owned),
    };
    let Some(read_from) = agent.read_from() else {
        return check(
            Status::Note,
            "the adapter follows the documentation, which names no version".to_owned(),
            None,
        );
    };
    let Some(program) = program else {
        return check(
            Status::Note,
            format!(
                "the program is not on PATH, so its version is not known; the adapter was read from {read_from}"
            ),
            None,
        );
    };
    let Some(installed) = installed else {
        return check(
            Status::Warning,
            format!("{} does not say its version", program.display()),
            Some("run it with --version"),
        );
    };
    if installed < agent.oldest() {
        return check(
            Status::Warning,
            format!(
                "{installed} is older than {}, from which on its hooks do what is relied on",
                agent.oldest()
            ),
            Some("update the agent"),
        );
    }
    if installed > read_from {
        return check(
            Status::Note,
            format!(
                "{installed} is newer than {read_from}, from which the adapter was read; the canary still counts"
            ),
            None,
        );
    }
    check(Status::Ok, format!("{installed}, and the adapter was read from {read_from}"), None)
}

/// Once for each event, in one place, and as it would be installed.
fn registered(agent: Agent, places: &Places, registrations: &[Registration]) -> Vec<Check> {
    let name = "registered";
    let Some(first) = registrations.first() else {
        return vec![Check {
            name,
            status: Status::Warning,
            detail: "not behind cmdgate".to_owned(),
            remedy: Some(format!("harness install {}", agent.name())),
        }];
    };
    let reinstall = |scope: Scope| {
        let scope = if scope == Scope::Project { " --scope project" } else { "" };
        format!("harness install {}{scope}", agent.name())
    };
    let mut checks: Vec<Check> = switched_off(agent, places, registrations).into_iter().collect();
    let mut events: Vec<(&str, Vec<&Registration>)> = Vec::new();
    for registration in registrations {
        match events.iter_mut().find(|(event, _)| *event == registration.event) {
            Some((_, list)) => list.push(registration),
            None => events.push((&registration.event, vec![registration])),
        }
    }
    for (event, list) in &events {
        if list.len() > 1 {
            let places: Vec<String> = list
                .iter()
                .map(|one| format!("{} (entry {})", one.file.display(), one.place.0 + 1))
                .collect();
            checks.push(Check {
                name,
                status: Status::Warning,
                detail: format!("{event} is registered {} times: {}", list.len(), places.join(", ")),
                remedy: Some(format!(
                    "harness uninstall {} in one of the places, so that each command is decided once",
                    agent.name()
                )),
            });
        }
    }
    for scope in [Scope::User, Scope::Project] {
        let here: Vec<&Registration> = registrations.iter().filter(|one| one.scope == scope).collect();
        let Some(one) = here.first() else { continue };
        let Some(words) = one.runs.words(agent) else { continue };
        let program = words.first().map_or("", String::as_str);
        let contain = words.iter().any(|word| word == "--contain");
        let plan = Plan::new(agent, scope, &places.home, &places.project, Path::new(program), contain);
        let missing: Vec<String> =
            plan.events().into_iter().filter(|event| !here.iter().any(|one| one.event == *event)).collect();
        if !missing.is_empty() {
            checks.push(Check {
                name,
                status: Status::Failed,
                detail: format!("{} is missing, so what it is for is not asked about", missing.join(", ")),
                remedy: Some(reinstall(scope)),
            });
        }
        for one in here {
            if let Some(difference) = plan.difference(one) {
                let (status, wrong) = match difference {
                    Difference::Weaker(wrong) => (Status::Warning, wrong),
                    Difference::Unheard(wrong) => (Status::Failed, wrong),
                };
                checks.push(Check {
                    name,
                    status,
                    detail: format!("{} in {}: {wrong}", one.event, one.file.display()),
                    remedy: Some(reinstall(scope)),
                });
            }
        }
    }
    if checks.is_empty() {
        let events: Vec<&str> = events.iter().map(|(event, _)| *event).collect();
        checks.push(Check {
            name,
            status: Status::Ok,
            detail: format!("{} in {}", events.join(", "), first.file.display()),
            remedy: None,
        });
    }
    checks
}

/// A setting of the agent by which it runs no hook, or not this one.
fn switched_off(agent: Agent, places: &Places, registrations: &[Registration]) -> Option<Check> {
    let hooks = found::files(agent, &places.home, &places.project);
    let is_off = |file: &Path| {
        let text = document::read(file).ok()??;
        let value = document::value(file, &text).ok()?;
        let is = |pointer: &str, wanted: bool| value.pointer(pointer) == Some(&Value::Bool(wanted));
        let named = |name: &Value| {
            registrations.iter().any(|one| {
                let name = name.as_str();
                name.is_some()
                    && (name == one.handler.get("name").and_then(Value::as_str)
                        || name == one.handler.get("command").and_then(Value::as_str))
            })
        };
        match agent {
            Agent::ClaudeCode | Agent::Copilot if is("/disableAllHooks", true) => Some("disableAllHooks"),
            Agent::Gemini if is("/hooksConfig/enabled", false) => Some("hooksConfig.enabled"),
            Agent::Gemini => {
                let disabled = value.pointer("/hooksConfig/disabled").and_then(Value::as_array);
                disabled.is_some_and(|list| list.iter().any(named)).then_some("hooksConfig.disabled")
            }
            Agent::ClaudeCode
            | Agent::Codex
            | Agent::Cursor
            | Agent::Copilot
            | Agent::Opencode
            | Agent::Windsurf
            | Agent::Cline
            | Agent::Goose => None,
        }
    };
    // That of Copilot is about the file in which it stands; those of the others, a project's too, are about all hooks.
    let counts = |file: &Path| agent != Agent::Copilot || registrations.iter().any(|one| one.file == file);
    hooks.iter().filter(|(_, file)| counts(file)).find_map(|(_, file)| {
        let key = is_off(file)?;
        Some(Check {
            name: "registered",
            status: Status::Failed,
            detail: format!(
                "`{key}` in {} switches it off: {} runs no such hook",
                file.display(),
                agent.name()
            ),
            remedy: Some("take the line out".to_owned()),
        })
    })
}

/// Agents that run other agents' hooks as well.
fn twice_over(agent: Agent, before: &[AgentHealth]) -> Option<Check> {
    let claude = before.iter().find(|health| health.agent == Agent::ClaudeCode)?;
    let behind = claude.checks.iter().any(|check| check.name == "canary");
    matches!(agent, Agent::Cursor | Agent::Copilot).then_some(())?;
    behind.then(|| Check {
        name: "shared",
        status: Status::Note,
        detail: format!(
            "{} also runs the hooks of Claude Code, which are registered too: a command may be decided twice, and the \
             stricter answer counts",
            agent.name()
        ),
        remedy: None,
    })
}

/// Absolute, there, executable, and out of the agent's reach.
fn programs(agent: Agent, places: &Places, registrations: &[Registration]) -> Check {
    let check =
        |status, detail: String, remedy: Option<String>| Check { name: "program", status, detail, remedy };
    let again = Some(format!("harness install {}", agent.name()));
    let mut shown = String::new();
    for registration in registrations {
        let Some(words) = registration.runs.words(agent) else { continue };
        let program = PathBuf::from(words.first().map_or("", String::as_str));
        let text = program.display();
        if !program.is_absolute() {
            return check(
                Status::Failed,
                format!("`{text}` is not an absolute path: what runs depends on the agent's PATH"),
                again,
            );
        }
        if !program.exists() {
            return check(Status::Failed, format!("{text} does not exist"), again);
        }
        if !executable(&program) {
            return check(
                Status::Failed,
                format!("{text} is not executable"),
                Some(format!("chmod +x {text}")),
            );
        }
        let real = std::fs::canonicalize(&program).unwrap_or_else(|_| program.clone());
        if real.starts_with(&places.project) {
            return check(
                Status::Warning,
                format!("{text} lies inside the project, where the agent could replace it"),
                Some("install harness outside the project, and `harness install` from there".to_owned()),
            );
        }
        shown = text.to_string();
    }
    check(Status::Ok, shown, None)
}

/// Whether a broken hook blocks.
fn fail_closed(agent: Agent, registrations: &[Registration], installed: Option<Version>) -> Check {
    let check = |status, detail: &str, remedy: Option<String>| Check {
        name: "fail_closed",
        status,
        detail: detail.to_owned(),
        remedy,
    };
    let again = Some(format!("harness install {}", agent.name()));
    let set = |key: &str, value: &Value| {
        registrations
            .iter()
            .filter(|one| agent != Agent::ClaudeCode || one.event != "PermissionRequest")
            .all(|one| one.handler.get(key) == Some(value))
    };
    match agent {
        Agent::ClaudeCode if !set("onFailure", &Value::from("block")) => {
            check(Status::Warning, "`onFailure` is not `block`: a broken hook lets commands run", again)
        }
        Agent::ClaudeCode => match installed {
            None => check(
                Status::Note,
                "`onFailure: \"block\"` is set; whether this version knows it (2.1.300 does) cannot be told",
                None,
            ),
            Some(version) if version >= Version(2, 1, 300) => {
                check(Status::Ok, "`onFailure: \"block\"` is set, and this version knows it", None)
            }
            Some(version) if version >= Version(2, 1, 285) => check(
                Status::Warning,
                "`onFailure: \"block\"` is set; it came between 2.1.285 and 2.1.300, so this version may ignore it, and \
                 then a hook that takes too long lets the command run",
                Some("update Claude Code".to_owned()),
            ),
            Some(_) => check(
                Status::Warning,
                "`onFailure: \"block\"` is set, and this version ignores it: a hook that takes too long lets the \
                 command run",
                Some("update Claude Code to 2.1.300 or later".to_owned()),
            ),
        },
        Agent::Cursor if set("failClosed", &Value::Bool(true)) => {
            check(Status::Ok, "`failClosed` is set", None)
        }
        Agent::Cursor => {
            check(Status::Warning, "`failClosed` is not set: a broken hook lets commands run", again)
        }
        Agent::Goose if set("on_failure", &Value::from("block")) => {
            check(Status::Ok, "`on_failure: \"block\"` is set", None)
        }
        Agent::Goose => {
            check(Status::Warning, "`on_failure` is not `block`: a broken hook lets commands run", again)
        }
        Agent::Copilot => check(
            Status::Note,
            "a hook that crashes blocks; one that takes too long does not, and there is no option for it",
            None,
        ),
        Agent::Opencode => check(Status::Ok, "the plugin refuses whatever is not a plain permission", None),
        Agent::Codex | Agent::Gemini | Agent::Windsurf | Agent::Cline => check(
            Status::Note,
            "a hook that is gone or crashes blocks, as its line says; one that takes too long does not, and there is no \
             option for it",
            None,
        ),
    }
}

/// Codex skips hooks whose hash it has not stored, and all of them where the feature is off.
fn trusted(places: &Places, registrations: &[Registration]) -> Check {
    let check = |status, detail: String, remedy: Option<&str>| Check {
        name: "trusted",
        status,
        detail,
        remedy: remedy.map(ToOwned::to_owned),
    };
    let config = codex_config(&places.home.settings(Agent::Codex));
    let value = match document::read(&config) {
        Ok(text) => document::value(&config, &text.unwrap_or_default()),
        Err(trouble) => Err(trouble),
    };
    let value = match value {
        Ok(value) => value,
        Err(trouble) => return check(Status::Failed, trouble.to_string(), Some("mend the file")),
    };
    if value.pointer("/features/hooks") == Some(&Value::Bool(false)) {
        return check(
            Status::Failed,
            format!("`features.hooks` is off in {}: Codex runs no hook", config.display()),
            Some("set it to true, or remove the line"),
        );
    }
    let state = value.pointer("/hooks/state").and_then(Value::as_object);
    let untrusted: Vec<String> = registrations
        .iter()
        .map(|one| {
            let event = snake_case(&one.event);
            format!("{}:{event}:{}:{}", one.file.display(), one.place.0, one.place.1)
        })
        .filter(|key| {
            state.and_then(|state| state.get(key)?.get("trusted_hash")?.as_str()).is_none_or(str::is_empty)
        })
        .collect();
    if untrusted.is_empty() {
        return check(
            Status::Ok,
            format!(
                "a trusted hash is stored in {}; whether it is the present one only Codex knows",
                config.display()
            ),
            None,
        );
    }
    check(
        Status::Failed,
        format!("Codex skips the hook until a person has approved it: no hash for {}", untrusted.join(", ")),
        Some("type /hooks in Codex and approve it"),
    )
}

/// With `--contain`, the sandbox of this program takes the place of Codex's own: in that, no other can be set up.
fn nested(places: &Places, registrations: &[Registration]) -> Option<Check> {
    let contains = |one: &Registration| {
        one.runs.words(Agent::Codex).is_some_and(|words| words.iter().any(|word| word == "--contain"))
    };
    registrations.iter().any(contains).then_some(())?;
    let mode_in = |scope: Scope| {
        let config = codex_config(&Plan::directory(Agent::Codex, scope, &places.home, &places.project));
        let text = document::read(&config).ok()??;
        let value = document::value(&config, &text).ok()?;
        value.get("sandbox_mode").and_then(Value::as_str).map(ToOwned::to_owned)
    };
    let mode = mode_in(Scope::Project).or_else(|| mode_in(Scope::User));
    let file = codex_config(&places.home.settings(Agent::Codex));
    let remedy = Some(format!("set sandbox_mode = \"danger-full-access\" in {}", file.display()));
    let on = "and in it every contained command is refused";
    let (status, detail, remedy) = match mode {
        Some(mode) if mode == "danger-full-access" => {
            (Status::Ok, format!("Codex's own sandbox is off ({mode}), so `--contain` takes its place"), None)
        }
        Some(mode) => (Status::Warning, format!("Codex's own sandbox is on ({mode}), {on}"), remedy),
        None => (Status::Warning, format!("Codex's own sandbox is on, as nothing is set, {on}"), remedy),
    };
    Some(Check { name: "nested", status, detail, remedy })
}

fn snake_case(event: &str) -> String {
    event.chars().enumerate().fold(String::new(), |mut text, (at, letter)| {
        if letter.is_ascii_uppercase() && at > 0 {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
        text
    })
}

/// A dangerous payload through the very line that is registered.
fn canary(agent: Agent, places: &Places, registration: &Registration) -> Check {
    let check =
        |status, detail: String, remedy: Option<String>| Check { name: "canary", status, detail, remedy };
    let line = registration.runs.text();
    // Whoever wrote the project could have written this entry: nothing of theirs is started.
    if registration.scope == Scope::Project && !is_this_program(agent, &registration.runs) {
        return check(
            Status::Warning,
            format!("not tried, because the project chose `{line}`, and it is not this program"),
            Some(format!("harness install {} --scope project", agent.name())),
        );
    }
    let mut command = match &registration.runs {
        Runs::Line(line) => {
            let mut shell = Command::new("sh");
            shell.arg("-c").arg(line);
            shell
        }
        Runs::Program { program, args } => {
            let mut command = Command::new(program);
            command.args(args);
            command
        }
    };
    let payload = agent.payload(DANGEROUS, &places.project).to_string();
    let begun = Instant::now();
    let Some(ran) = run(command.current_dir(&places.project), payload.as_bytes(), CANARY_PATIENCE) else {
        return check(
            Status::Failed,
            format!("`{line}` gave no answer within {CANARY_PATIENCE:?}, or did not start"),
            Some(format!("run it by hand; then harness install {}", agent.name())),
        );
    };
    let millis = begun.elapsed().as_millis();
    let taken = agent.takes(agent.first_event(), &ran.stdout, ran.code);
    if taken.refuses() {
        return check(Status::Ok, format!("`{DANGEROUS}` was refused in {millis} ms"), None);
    }
    let code = ran.code.map_or_else(|| "a signal".to_owned(), |code| format!("code {code}"));
    let first = ran.stderr.lines().next().unwrap_or("").chars().take(200).collect::<String>();
    check(
        Status::Failed,
        format!("`{line}` did not refuse `{DANGEROUS}`: it ended with {code}. {first}"),
        Some(format!("harness install {}, and try again", agent.name())),
    )
}

/// Whether this runs the very program that is running now, and nothing else.
fn is_this_program(agent: Agent, runs: &Runs) -> bool {
    let plain = match runs {
        Runs::Program { .. } => true,
        Runs::Line(line) => {
            let words = runs.words(agent).unwrap_or_default();
            let made = words.iter().map(|word| crate::hook::quote(word)).collect::<Vec<_>>().join(" ");
            line.strip_suffix(OR_BLOCK).unwrap_or(line) == made
        }
    };
    let words = runs.words(agent).unwrap_or_default();
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    let this = std::env::current_exe().ok().and_then(|path| real(&path));
    plain
        && words.get(3..).unwrap_or(&[]).iter().all(|option| option == "--contain")
        && words.first().is_some_and(|program| {
            let program = Path::new(program);
            program.is_absolute() && this.is_some() && real(program) == this
        })
}

/// What a short program gave.
struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// Runs a program with this input and kills it when the time is up; none when it did not start or did not end.
fn run(command: &mut Command, input: &[u8], patience: Duration) -> Option<Ran> {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().ok()?;
    let deadline = Instant::now() + patience;
    let mut stdin = child.stdin.take()?;
    let input = input.to_vec();
    // Threads, because a child that reads nothing or never closes its output must not hold this one.
    std::thread::spawn(move || {
        let _ = stdin.write_all(&input);
    });
    let stdout = collect(child.stdout.take()?);
    let stderr = collect(child.stderr.take()?);
    let ended = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(2)),
            Ok(None) | Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
        }
    };
    let text = |receiver: mpsc::Receiver<Vec<u8>>| {
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(50));
        String::from_utf8_lossy(&receiver.recv_timeout(left).unwrap_or_default()).into_owned()
    };
    Some(Ran { code: ended?.code(), stdout: text(stdout), stderr: text(stderr) })
}

/// Reads to the end, and no more than an answer may be long.
fn collect(source: impl Read + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = source.take(1 << 20).read_to_end(&mut bytes);
        let _ = sender.send(bytes);
    });
    receiver
}

pub(super) fn executable(file: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    }
    #[cfg(not(unix))]
    {
        file.is_file()
    }
}

impl Places {
    /// These of the present process.
    pub fn of(home: Home, project: PathBuf, path: &OsStr) -> Self {
        let project = std::fs::canonicalize(&project).unwrap_or(project);
        Self { home, project, path: std::env::split_paths(path).collect() }
    }
}
