//! `cargo xtask audit trace`: runs what is called safe, as `harness run` does, in a hostile repository under a kernel trace.
//!
//! A command is clean when it started no program but those it names, tried to write nothing but `/dev/null` and private
//! temporary files, opened no network socket, and read nothing outside the project but the system's own files.

use crate::steps::root;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use cmdgate_classifier::{Context, Grammar, Verdict, classify};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// `cargo xtask audit trace`
#[derive(Debug, Args)]
pub struct Cli {
    /// Take agent-commands from this directory [default: `../shared/cases` where it is]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Run only so many, chosen evenly (controls and the context tier first)
    #[arg(long)]
    sample: Option<usize>,
    /// Run just these commands
    #[arg(long)]
    command: Vec<String>,
}

/// What the harness itself starts: git to read the configuration, the sandbox, and the shell in it.
const OWN: &[&str] = &["harness", "git", "bwrap", "bash"];

/// What the shims of pyenv start to find the interpreter.
const PYENV: &[&str] =
    &["pyenv", "bash", "python3.11", "env", "sort", "sed", "readlink", "dirname", "basename", "cat", "cut"];

/// What a program starts of itself, and nothing else.
const HELPERS: &[(&str, &[&str])] = &[
    // Shell scripts by nature, on Debian.
    ("which", &["sh", "which.debianutils"]),
    ("egrep", &["sh", "grep"]),
    ("fgrep", &["sh", "grep"]),
    (
        "git submodule",
        &[
            "sh",
            "git-submodule",
            "git-sh-i18n--envsubst",
            "git-submodule--helper",
            "basename",
            "sed",
            "uname",
        ],
    ),
    // The shims of pyenv ask it for the interpreter; npm is a script of node.
    ("python3", PYENV),
    ("python", PYENV),
    ("pip", PYENV),
    ("npm", &["node", "env"]),
    ("npx", &["node", "env"]),
    ("yarn", &["node", "env"]),
    // rustup's proxies run the tool of the chosen toolchain.
    ("cargo", &["rustc"]),
];

/// What one trace showed.
#[derive(Debug, Default)]
pub struct Seen {
    /// What should not have happened, one line each.
    pub faults: Vec<String>,
    /// Why the command did not really run, where it did not.
    pub not_run: Option<String>,
}

/// What the traces of many commands showed.
#[derive(Debug, Default)]
pub struct Traced {
    /// How many ran and did nothing that they should not.
    pub clean: usize,
    /// Those that did not run here, and why.
    pub not_run: BTreeMap<String, String>,
    /// What the others did that should not have happened, one line each.
    pub faults: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize)]
struct Row {
    command: Option<String>,
    label: Option<String>,
    tier: Option<String>,
    verdict: Option<String>,
}

/// Runs the audit.
pub fn run(cli: &Cli) -> Result<ExitCode> {
    let fixture = Fixture::make()?;
    let commands = if cli.command.is_empty() {
        collect(cli.dir.as_deref(), &fixture, cli.sample)?
    } else {
        cli.command.clone()
    };
    let Traced { clean, not_run, faults } = trace_all(&fixture, &commands)?;
    let mut out = io::stdout().lock();
    for (command, why) in &not_run {
        writeln!(out, "NOT RUN   {command:?}: {why}")?;
    }
    for (command, lines) in &faults {
        writeln!(out, "NOT CLEAN {command:?}")?;
        for line in lines {
            writeln!(out, "    {line}")?;
        }
    }
    writeln!(
        out,
        "{} safe commands: {clean} ran and were clean, {} did not run here (decided otherwise in this repository, or the \
         program is missing), {} were not clean",
        commands.len(),
        not_run.len(),
        faults.len()
    )?;
    // What did not run shows nothing.
    let enough = clean * 10 >= commands.len() * 9;
    Ok(if faults.is_empty() && enough { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Traces every command, two at a time.
pub fn trace_all(fixture: &Fixture, commands: &[String]) -> Result<Traced> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Traced> = Mutex::default();
    let failure: Mutex<Option<anyhow::Error>> = Mutex::default();
    std::thread::scope(|scope| {
        for worker in 0..2 {
            let (next, results, failure) = (&next, &results, &failure);
            scope.spawn(move || {
                while let Some(command) = commands.get(next.fetch_add(1, Ordering::Relaxed)) {
                    match fixture.trace(command, worker) {
                        Ok(seen) => {
                            let mut results =
                                results.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                            if !seen.faults.is_empty() {
                                results.faults.insert(command.clone(), seen.faults);
                            } else if let Some(why) = seen.not_run {
                                results.not_run.insert(command.clone(), why);
                            } else {
                                results.clean += 1;
                            }
                        }
                        Err(error) => {
                            *failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(error);
                            return;
                        }
                    }
                }
            });
        }
    });
    if let Some(error) = failure.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
        return Err(error);
    }
    Ok(results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))
}

/// Every distinct command of the sets that is safe in the fixture, the most telling first.
pub fn collect(dir: Option<&Path>, fixture: &Fixture, sample: Option<usize>) -> Result<Vec<String>> {
    let data = root().join("tests/data");
    let agents =
        dir.map_or_else(|| root().join("../shared/cases"), Path::to_path_buf).join("agent-commands.jsonl");
    let project = fixture.project().to_string_lossy().into_owned();
    let context = Context::new(Grammar::Sequence).with_root(&project);
    let mut seen = BTreeSet::new();
    let mut first = Vec::new();
    let mut rest = Vec::new();
    for path in [
        data.join("adversarial.jsonl"),
        data.join("controls.jsonl"),
        data.join("typical-commands.jsonl"),
        agents,
    ] {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let row: Row = serde_json::from_str(line).with_context(|| path.display().to_string())?;
            let Some(command) = row.command else { continue };
            let telling =
                row.tier.is_some() && row.label.is_none() || row.verdict.is_none() && row.label.is_none();
            let command = command.replace("/home/user/project", &project);
            if classify(&command, &context).verdict() == Verdict::Safe && seen.insert(command.clone()) {
                if telling { first.push(command) } else { rest.push(command) }
            }
        }
    }
    if let Some(sample) = sample {
        let room = sample.saturating_sub(first.len());
        let step = (rest.len() / room.max(1)).max(1);
        rest = rest.into_iter().step_by(step).take(room).collect();
        first.truncate(sample);
    }
    first.extend(rest);
    Ok(first)
}

/// A hostile repository with everything around it.
#[derive(Debug)]
pub struct Fixture {
    base: PathBuf,
    harness: PathBuf,
}

impl Fixture {
    /// Makes the repository anew, outside `/tmp`, which is private in the sandbox.
    ///
    /// # Errors
    ///
    /// When a program that it needs is missing.
    pub fn make() -> Result<Self> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let harness = crate::demo::harness_binary()?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let base = root().join(format!("target/audit-trace-{}-{number}", std::process::id()));
        fs::create_dir_all(&base)?;
        let base = base.canonicalize()?;
        let script = root().join("tests/data/make-fixture.sh");
        let fixture = Self { base: base.join("w"), harness };
        let status = Command::new("bash").arg(&script).arg(&fixture.base).stdout(Stdio::null()).status()?;
        if !status.success() {
            bail!("{} failed", script.display());
        }
        fixture.make_hostile()?;
        Ok(fixture)
    }

    /// The project root.
    pub fn project(&self) -> PathBuf {
        self.base.join("proj")
    }

    /// Everything in a repository that could make a program start, a file be written or an outside file be read.
    fn make_hostile(&self) -> Result<()> {
        let canary = self.base.join("CANARY");
        let pwn = self.project().join("pwn.sh");
        fs::write(&pwn, format!("#!/bin/sh\necho \"RAN $0 $*\" >> {}\nexec cat\n", canary.display()))?;
        let evil = pwn.to_string_lossy().into_owned();
        let git = |args: &[&str]| -> Result<()> {
            let status = Command::new("git")
                .args(args)
                .current_dir(self.project())
                .env("HOME", self.base.join("home"))
                .status()?;
            if status.success() { Ok(()) } else { bail!("git {args:?} failed") }
        };
        for key in [
            "core.fsmonitor",
            "core.pager",
            "pager.log",
            "pager.diff",
            "diff.external",
            "diff.t.command",
            "diff.t.textconv",
            "filter.f.clean",
            "filter.f.smudge",
            "merge.m.driver",
            "gpg.program",
            "core.sshCommand",
            "core.editor",
            "sequence.editor",
            "credential.helper",
            "core.askPass",
            "interactive.diffFilter",
            "core.alternateRefsCommand",
        ] {
            git(&["config", key, &evil])?;
        }
        for (key, value) in [
            ("alias.st", "!./pwn.sh"),
            ("log.showSignature", "true"),
            ("pretty.mine", "%G?"),
            ("mailmap.file", "../secret.txt"),
            ("merge.default", "m"),
        ] {
            git(&["config", key, value])?;
        }
        fs::write(self.project().join(".git/info/attributes"), "*.txt diff=t filter=f\n*.md diff=t\n")?;
        let hooks = self.project().join(".git/hooks");
        fs::create_dir_all(&hooks)?;
        for hook in [
            "post-index-change",
            "post-checkout",
            "reference-transaction",
            "pre-auto-gc",
            "fsmonitor-watchman",
        ] {
            fs::copy(&pwn, hooks.join(hook))?;
        }
        for (name, text) in [
            ("rc", "--pre=./pwn.sh\n"),
            (".rgrc", "--pre=./pwn.sh\n"),
            (".ugrep", "filter=txt:./pwn.sh %\n"),
            (".jq", "def f: env;\n"),
            (".nvmrc", "../../evil\n"),
            (".tool-versions", "nodejs path:./evil\n"),
            ("rust-toolchain.toml", "[toolchain]\npath = \"./evil\"\n"),
            (".python-version", "../../evil\n"),
            ("json.py", "import os; os.system('./pwn.sh')\n"),
            ("-oz.txt", "x\n"),
            ("--output=zz", "x\n"),
            ("-fnames.txt", "x\n"),
            ("+!id", "x\n"),
        ] {
            fs::write(self.project().join(name), text)?;
        }
        // The index is stale: git would like to refresh it.
        let status = Command::new("touch").arg("a.txt").arg("b.txt").current_dir(self.project()).status()?;
        if !status.success() {
            bail!("touch failed");
        }
        fs::write(self.base.join("home/.colordiffrc"), "diff_cmd=./pwn.sh\n")?;
        Ok(())
    }

    /// Runs one command as a person would, under a trace of everything that comes of it.
    ///
    /// # Errors
    ///
    /// When strace or the harness does not start.
    pub fn trace(&self, command: &str, worker: usize) -> Result<Seen> {
        let log = self.base.join(format!("trace-{worker}.log"));
        let path = std::env::var("PATH").unwrap_or_default();
        let output = Command::new("strace")
            .args(["--follow-forks", "--decode-fds=path", "--string-limit=4096", "--quiet=all", "--output"])
            .arg(&log)
            .arg("--trace=execve,execveat,%file,socket,connect,sendto,sendmsg")
            .arg(&self.harness)
            .args(["run", "--json", "--grammar", "sequence", "--timeout-ms", "60000", "--root"])
            .arg(self.project())
            .arg("--workdir")
            .arg(self.project())
            .arg("--trace")
            .arg(self.base.join(format!("trace-{worker}.db")))
            .args(["--", command])
            .current_dir(self.project())
            .env("HOME", self.base.join("home"))
            // A hostile environment of the caller.
            .env("PATH", format!(".:{path}"))
            .env("BASH_ENV", "./pwn.sh")
            .env("RIPGREP_CONFIG_PATH", "rc")
            .env("GIT_EXTERNAL_DIFF", "./pwn.sh")
            .env("LESSOPEN", "|./pwn.sh %s")
            .env("TAR_OPTIONS", "--checkpoint=1 --checkpoint-action=exec=./pwn.sh")
            .env("OLDPWD", self.base.join("outside"))
            // The toolchains are those of this machine, whatever the home.
            .env("RUSTUP_HOME", rustup_home())
            .env_remove("RUSTUP_TOOLCHAIN")
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_STATE_HOME")
            .stdin(Stdio::null())
            .output()
            .context("starting strace")?;
        let text = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
        let mut seen = Seen::default();
        if self.base.join("CANARY").exists() {
            fs::remove_file(self.base.join("CANARY"))?;
            seen.faults.push("the canary program ran".to_owned());
        }
        let reply: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let outcome = reply.pointer("/run/outcome").and_then(serde_json::Value::as_str);
        // A pause may be longer than the harness waits.
        let paused = outcome == Some("timed_out") && command.split_whitespace().any(|word| word == "sleep");
        let ended = outcome == Some("exited") || paused;
        if reply.get("reply").and_then(serde_json::Value::as_str) == Some("ran") && !ended {
            seen.faults.push(format!("it did not end by itself: {outcome:?}"));
        }
        let missing = reply.pointer("/run/exit_code") == Some(&127.into());
        seen.not_run = (!ended || missing).then(|| {
            let text = |place| reply.pointer(place).and_then(serde_json::Value::as_str);
            let why = if missing {
                text("/run/stderr/text")
            } else {
                // What a rule says stands above what was found.
                text("/rule").and_then(|_| text("/reason")).or_else(|| text("/findings/0/message"))
            };
            why.unwrap_or("it gave no reason").trim().to_owned()
        });
        self.read_log(command, &text, &mut seen);
        Ok(seen)
    }

    fn read_log(&self, command: &str, log: &str, seen: &mut Seen) {
        let project = self.project();
        let context_root = project.to_string_lossy().into_owned();
        let context = Context::new(Grammar::Sequence).with_root(&context_root);
        let runs = classify(command, &context).effects.runs;
        let mut named: BTreeSet<String> =
            runs.iter().filter_map(|run| run.argv.first().map(ToString::to_string)).collect();
        // With its subcommand, where that is a program of its own.
        named.extend(runs.iter().filter_map(|run| Some(run.argv.get(..2)?.join(" "))));
        let helpers: BTreeSet<&str> = HELPERS
            .iter()
            .filter(|(program, _)| named.contains(*program))
            .flat_map(|(_, helpers)| helpers.iter().copied())
            .collect();
        let shims = ["python", "python3", "pip"].iter().any(|program| named.contains(*program));
        let started = |program: &str| {
            OWN.contains(&program)
                || shims && (program.starts_with("pyenv") || program == "tr")
                || named.contains(program)
                || helpers.contains(program)
                || program == "fdfind" && named.contains("fd")
        };
        let mut before: BTreeSet<&str> = BTreeSet::new();
        let mut inside = false;
        let mut shell = "";
        let mut unfinished: BTreeMap<&str, &str> = BTreeMap::new();
        for line in log.lines() {
            let Some((pid, call)) = line.split_once(' ') else { continue };
            let call = call.trim_start();
            // A call during which another process was seen stands in two lines.
            if let Some(begin) = call.strip_suffix("<unfinished ...>") {
                unfinished.insert(pid, begin);
                continue;
            }
            let joined = call
                .strip_prefix("<... ")
                .and_then(|rest| rest.split_once("resumed>"))
                .and_then(|(_, end)| Some([unfinished.remove(pid)?, end].concat()));
            let call = joined.as_deref().unwrap_or(call);
            let result = call.rsplit(" = ").next().unwrap_or("");
            let succeeded = !result.starts_with('-') && !result.starts_with('?');
            if call.starts_with("exec") && succeeded {
                let path = quoted(call).unwrap_or_default();
                let program = path.rsplit('/').next().unwrap_or("");
                // The canary of the sandbox tries to leave it.
                // A shell of the harness stands by to end what is left of it.
                let guard = call.contains("\"cmdgate-guard\"");
                if !started(program) && !guard && (inside || program != "unshare") {
                    seen.faults.push(format!("started {path}"));
                }
                // The shell of the command itself, not that of the canary.
                if program == "bash" && call.contains("\"-c\"") && call.contains(&escaped_start(command)) {
                    inside = true;
                    shell = pid;
                }
            }
            if !inside {
                before.insert(pid);
                continue;
            }
            let of_command = pid == shell || !before.contains(pid);
            if of_command {
                self.judge_call(call, succeeded, seen);
            }
        }
    }

    /// One system call of the command.
    fn judge_call(&self, call: &str, succeeded: bool, seen: &mut Seen) {
        let name = call.split('(').next().unwrap_or("");
        match name {
            "open" | "openat" | "openat2" | "creat" => {
                let writes =
                    ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"].iter().any(|flag| call.contains(flag));
                let path = opened(call);
                if writes && !harmless_to_write(&path) {
                    seen.faults.push(format!("tried to write {path}"));
                } else if succeeded && !self.may_read(&path) && !is_substitution(call, &path) {
                    seen.faults.push(format!("read {path}"));
                }
            }
            "unlink" | "unlinkat" | "rename" | "renameat" | "renameat2" | "mkdir" | "mkdirat" | "rmdir"
            | "link" | "linkat" | "symlink" | "symlinkat" | "chmod" | "fchmodat" | "chown" | "lchown"
            | "fchownat" | "truncate" | "mknod" | "mknodat" | "utimensat" | "utime" | "utimes"
            | "setxattr" | "lsetxattr" | "removexattr" => {
                let path = quoted(call).unwrap_or_default();
                if !path.starts_with("/tmp/") {
                    seen.faults.push(format!("tried to change something: {}", first_chars(call, 160)));
                }
            }
            // The kernel alone answers `NETLINK_ROUTE`, about this machine's own interfaces (getifaddrs(3)).
            "socket" if ["AF_UNIX", "AF_LOCAL", "NETLINK_ROUTE"].iter().all(|kind| !call.contains(kind)) => {
                seen.faults.push(format!("made a socket: {}", first_chars(call, 120)));
            }
            "connect" | "sendto" | "sendmsg"
                if succeeded && !call.contains("AF_UNIX") && !call.contains("AF_NETLINK") =>
            {
                seen.faults.push(format!("sent something: {}", first_chars(call, 120)));
            }
            _ => {}
        }
    }

    /// The project, and what belongs to the machine or to the user's own settings of git.
    fn may_read(&self, path: &str) -> bool {
        const SYSTEM: &[&str] = &[
            "/usr",
            "/bin",
            "/sbin",
            "/lib",
            "/etc",
            "/proc",
            "/sys",
            "/dev",
            "/opt",
            "/run",
            "/tmp",
            "/nix",
            "/var/lib/dpkg",
            "/var/cache/man",
        ];
        let path = Path::new(path);
        let home = self.base.join("home");
        let toolchains = std::env::home_dir().unwrap_or_default();
        // ripgrep and fd look for ignore rules, and for the repository that they are of, in every directory above.
        let rules = [".gitignore", ".ignore", ".rgignore", ".fdignore", ".git"];
        let above = path.parent().is_some_and(|parent| self.base.starts_with(parent));
        path == Path::new("/")
            || above && path.file_name().is_some_and(|name| rules.iter().any(|rule| name == *rule))
            // cargo looks there before it prints its version, and shows nothing of it, not even of what it cannot read.
            || path.ends_with(".cargo/config.toml")
                && path.ancestors().nth(2).is_some_and(|above| self.base.starts_with(above))
            || path.ends_with(".git/info/exclude")
            || path.components().any(|part| part.as_os_str() == "worktrees") && path.ends_with("commondir")
            || path.starts_with(self.project())
            || self.base.ancestors().any(|above| above == path)
            || SYSTEM.iter().any(|system| path.starts_with(system))
            || [".gitconfig", ".config/git", ".gitattributes"].iter().any(|name| path.starts_with(home.join(name)))
            // Programs that are installed for this user alone.
            || [".cargo", ".rustup", ".pyenv", ".nvm"].iter().any(|name| path.starts_with(toolchains.join(name)))
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        if let Some(scratch) = self.base.parent() {
            // What cannot be removed is under `target`, where it disturbs nobody.
            let _ = fs::remove_dir_all(scratch);
        }
    }
}

/// Where rustup keeps its toolchains and settings.
fn rustup_home() -> PathBuf {
    let usual = || std::env::home_dir().unwrap_or_default().join(".rustup");
    std::env::var_os("RUSTUP_HOME").map_or_else(usual, PathBuf::from)
}

/// The file that a call opened: what the kernel says, or what was asked for.
fn opened(call: &str) -> String {
    let result = call.rsplit(" = ").next().unwrap_or("");
    if let Some((_, path)) = result.split_once('<') {
        return path.trim_end_matches('>').to_owned();
    }
    quoted(call).unwrap_or_default()
}

/// Whether a call opened what stands in the place of `<(…)`: a pipe of the command's own shell.
fn is_substitution(call: &str, path: &str) -> bool {
    path.starts_with("pipe:[") && quoted(call).is_some_and(|asked| asked.starts_with("/dev/fd/"))
}

/// The first text in quotes.
fn quoted(call: &str) -> Option<String> {
    let (_, rest) = call.split_once('"')?;
    rest.split_once('"').map(|(text, _)| text.to_owned())
}

/// How strace writes the beginning of a text, as far as nothing in it is escaped.
fn escaped_start(command: &str) -> String {
    let plain =
        command.chars().take_while(|c| c.is_ascii_graphic() && !"\"\\".contains(*c) || *c == ' ').take(60);
    format!("\"-c\", \"--\", \"{}", plain.collect::<String>())
}

fn harmless_to_write(path: &str) -> bool {
    ["/dev/null", "/dev/tty"].contains(&path) || path.starts_with("/tmp/") || path.starts_with("/proc/self/")
}

fn first_chars(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}
