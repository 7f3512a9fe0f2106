//! Proposes rules from the commands that ran before.
//!
//! Sessions of Claude Code and Codex, and this program's own trace, are counted and nothing else: no word of theirs is
//! believed, and whoever could write such a file could write any number into it. So a rule is proposed only for what one
//! look at it can judge: never for what runs what it is told to, fetches, publishes, removes, or changes the system; and
//! each comes with what else it would have matched.

use crate::approve::remember;
use crate::gate::{Gate, Request};
use crate::unwrap;
use cmdgate_classifier::Verdict;
use cmdgate_policy::{Act, Effect, Layer, Pattern, Rule, escape};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, BufRead};

/// A line of a session that is longer than this, in bytes, is skipped.
const LONGEST_LINE: u64 = 16 * 1024 * 1024;
/// A command that is longer than this, in bytes, is skipped.
const LONGEST_COMMAND: usize = 10_000;
/// More different commands than this are not looked at.
const MOST_COMMANDS: usize = 20_000;

/// Programs for which no rule is proposed, besides those that run what they are told to.
const NEVER: &[&str] = &[
    "apt",
    "apt-get",
    "at",
    "aws",
    "az",
    "base64",
    "bw",
    "chattr",
    "chgrp",
    "chmod",
    "chown",
    "cp",
    "crontab",
    "curl",
    "dd",
    "dnf",
    "ftp",
    "gcloud",
    "gh",
    "glab",
    "gpg",
    "install",
    "iptables",
    "kill",
    "killall",
    "ln",
    "mkfs",
    "mount",
    "mv",
    "nc",
    "ncat",
    "netcat",
    "op",
    "openssl",
    "pass",
    "passwd",
    "pkill",
    "reboot",
    "rm",
    "rmdir",
    "rsync",
    "scp",
    "security",
    "sftp",
    "shred",
    "shutdown",
    "socat",
    "svn",
    "systemctl",
    "tar",
    "tee",
    "telnet",
    "terraform",
    "truncate",
    "umount",
    "unzip",
    "useradd",
    "usermod",
    "vault",
    "visudo",
    "wget",
    "yum",
];
/// Whether a program fetches, publishes, removes, or changes the system, so that no rule is proposed for it.
pub(crate) fn is_never_proposed(program: &str) -> bool {
    NEVER.contains(&program)
}

/// The subcommands for which a rule may be proposed: they build, test, check, format or record what is there. For all
/// others none is, for among them is what fetches, installs, publishes, removes, or runs what it is told to, under more
/// names than one knows (`npm isntall`).
const BUILDS: &[(&str, &[&str])] = &[
    ("cargo", &["b", "bench", "build", "c", "check", "clippy", "doc", "fmt", "nextest", "t", "test"]),
    ("composer", &["test", "validate"]),
    ("dotnet", &["build", "format", "test"]),
    ("flutter", &["analyze", "test"]),
    ("git", &["add", "commit", "init", "mv", "switch", "tag"]),
    ("go", &["build", "fmt", "test", "vet"]),
    ("gradle", &["assemble", "build", "check", "test"]),
    ("helm", &["lint"]),
    ("mix", &["compile", "format", "test"]),
    ("mvn", &["compile", "test", "verify"]),
    ("npm", &["run", "start", "t", "test"]),
    ("pnpm", &["build", "lint", "run", "start", "test"]),
    ("yarn", &["build", "lint", "run", "start", "test"]),
];

/// Whether a command with a subcommand is of the kind for which a rule may be proposed.
fn builds(argv: &[String]) -> bool {
    let [program, subcommand, rest @ ..] = argv else { return false };
    let known = BUILDS.iter().any(|(name, all)| name == program && all.contains(&subcommand.as_str()));
    let flag = |long: &str, short: char| {
        rest.iter().any(|word| match word.strip_prefix("--") {
            Some(name) => name.starts_with(long),
            None => word.starts_with('-') && word.contains(short),
        })
    };
    known
        && match (program.as_str(), subcommand.as_str()) {
            // Another word is another thing to do.
            ("mvn" | "gradle", _) => rest.is_empty(),
            // Besides scripts it runs programs by their names.
            ("yarn", "run") => rest.len() == 1,
            ("cargo", "doc") => !flag("op", '\0'),
            ("git", "tag") => !flag("d", 'd'),
            ("git", "switch") => !rest.iter().any(|word| word.starts_with('-')),
            _ => true,
        }
}

/// The commands that ran, with how often.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    /// Each command line, and how often it ran.
    pub commands: BTreeMap<String, usize>,
    /// Lines of sessions that could not be read.
    pub skipped: usize,
}

impl History {
    /// Counts a command that ran.
    pub fn add(&mut self, command: &str) {
        let command = command.trim();
        if command.is_empty() || command.len() > LONGEST_COMMAND || command.contains('\0') {
            self.skipped += 1;
        } else if let Some(count) = self.commands.get_mut(command) {
            *count += 1;
        } else if self.commands.len() < MOST_COMMANDS {
            self.commands.insert(command.to_owned(), 1);
        } else {
            self.skipped += 1;
        }
    }

    /// Counts the commands of one session of Claude Code or Codex, one JSON value a line. Of a command that was refused,
    /// or of which nothing came back, nothing is counted; nor of a line that is not understood.
    ///
    /// # Errors
    ///
    /// When the session cannot be read.
    pub fn read_session(&mut self, mut session: impl BufRead) -> io::Result<()> {
        // What was asked for, until its answer comes.
        let mut open: HashMap<String, String> = HashMap::new();
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = io::Read::take(&mut session, LONGEST_LINE).read_until(b'\n', &mut line)?;
            if read == 0 {
                return Ok(());
            }
            if u64::try_from(read).is_ok_and(|read| read == LONGEST_LINE) && !line.ends_with(b"\n") {
                self.skipped += 1;
                skip_line(&mut session)?;
                continue;
            }
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            match serde_json::from_slice::<Value>(&line) {
                Ok(value) => self.entry(&value, &mut open),
                Err(_) => self.skipped += 1,
            }
        }
    }

    fn entry(&mut self, value: &Value, open: &mut HashMap<String, String>) {
        let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(ToOwned::to_owned);
        // Claude Code: `message.content[]` with `tool_use` and `tool_result`.
        let content =
            value.get("message").and_then(|message| message.get("content")).and_then(Value::as_array);
        for item in content.into_iter().flatten() {
            match item.get("type").and_then(Value::as_str) {
                Some("tool_use")
                    if matches!(item.get("name").and_then(Value::as_str), Some("Bash" | "Monitor")) =>
                {
                    let command = item.get("input").and_then(|input| text(input, "command"));
                    if let (Some(id), Some(command)) = (text(item, "id"), command) {
                        open.insert(id, command);
                    }
                }
                Some("tool_result") => {
                    let command = text(item, "tool_use_id").and_then(|id| open.remove(&id));
                    let failed = item.get("is_error").and_then(Value::as_bool).unwrap_or(false);
                    if let (Some(command), false) = (command, failed) {
                        self.add(&command);
                    }
                }
                Some(_) | None => {}
            }
        }
        // `codex exec --json`: `item.completed` with a `command_execution`.
        if let Some(item) = value.get("item")
            && value.get("type").and_then(Value::as_str) == Some("item.completed")
            && item.get("type").and_then(Value::as_str) == Some("command_execution")
            && item.get("exit_code").and_then(Value::as_i64).is_some()
            && item.get("status").and_then(Value::as_str) != Some("declined")
            && let Some(command) = text(item, "command")
        {
            self.add(&inside_shell(shlex::split(&command).as_deref(), &command));
        }
        // Codex: `payload` with `function_call` and `function_call_output`.
        let Some(payload) = value.get("payload") else { return };
        match payload.get("type").and_then(Value::as_str) {
            Some("function_call" | "local_shell_call") => {
                let arguments =
                    text(payload, "arguments").and_then(|text| serde_json::from_str::<Value>(&text).ok());
                let action = arguments.as_ref().or(payload.get("action"));
                let given = action.and_then(|action| action.get("command").or(action.get("cmd")));
                let command = given.and_then(|given| match given {
                    Value::String(line) => Some(line.clone()),
                    Value::Array(words) => {
                        let words: Option<Vec<String>> =
                            words.iter().map(|word| word.as_str().map(ToOwned::to_owned)).collect();
                        let line = words.as_ref().map(|words| joined(words));
                        line.map(|line| inside_shell(words.as_deref(), &line))
                    }
                    Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
                });
                if let (Some(id), Some(command)) = (text(payload, "call_id"), command) {
                    open.insert(id, command);
                }
            }
            Some("function_call_output" | "local_shell_call_output") => {
                let command = text(payload, "call_id").and_then(|id| open.remove(&id));
                let output = payload.get("output");
                let output = output
                    .map(|output| output.as_str().map_or_else(|| output.to_string(), ToOwned::to_owned));
                if let (Some(command), Some(output)) = (command, output)
                    && !output.contains("rejected")
                    && !output.contains("aborted")
                {
                    self.add(&command);
                }
            }
            Some(_) | None => {}
        }
    }
}

fn skip_line(session: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = session.fill_buf()?;
        if buffer.is_empty() {
            return Ok(());
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(buffer.len(), |at| at + 1);
        session.consume(used);
        if end.is_some() {
            return Ok(());
        }
    }
}

fn joined(words: &[String]) -> String {
    let words: Vec<String> =
        words.iter().map(|word| shlex::try_quote(word).map_or_else(|_| word.clone(), Into::into)).collect();
    words.join(" ")
}

/// The script of `bash -lc script`, as Codex runs its commands; else the line.
fn inside_shell(words: Option<&[String]>, line: &str) -> String {
    if let Some([shell, flag, script]) = words
        && matches!(shell.rsplit('/').next(), Some("bash" | "sh" | "zsh"))
        && matches!(flag.as_str(), "-c" | "-lc")
    {
        return script.clone();
    }
    line.to_owned()
}

/// A rule that would have saved questions.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    /// The rule.
    pub rule: Rule,
    /// How many questions it would have saved by itself.
    pub saves: usize,
    /// In how many lines that were asked about it has a part.
    pub needed: usize,
    /// Different commands of the history that it matches.
    pub matches: Vec<String>,
    /// What else it would let pass, as examples.
    pub also: Vec<String>,
}

/// The rules that would have saved questions under this gate, the most saving first. Each is needed in at least `least`
/// lines.
pub fn propose(history: &History, gate: &Gate, least: usize) -> Vec<Proposal> {
    let mut candidates: BTreeMap<String, Proposal> = BTreeMap::new();
    // What is known of a command's words: the pattern of its rule, if it can have one.
    let mut known: HashMap<Vec<String>, Option<String>> = HashMap::new();
    let mut seen: BTreeSet<Vec<String>> = BTreeSet::new();
    for (line, count) in &history.commands {
        let decision = gate.decide(&Request::shell(line.clone()));
        seen.extend(decision.commands.argvs.iter().cloned());
        // What a line does besides running programs, a rule does not cover.
        let covered =
            decision.commands.syntax.iter().all(|name| matches!(*name, "comment" | "file" | "redirect"));
        if decision.effect != Effect::Ask
            || decision.commands.incomplete
            || decision.commands.interprets
            || !covered
        {
            continue;
        }
        let mut needed: BTreeSet<String> = BTreeSet::new();
        let mut hopeless = false;
        for argv in &decision.commands.argvs {
            let ruling = gate.policy().check_exec(argv);
            if ruling.effect == Effect::Allow && ruling.rule.is_some() {
                continue;
            }
            let pattern = known.entry(argv.clone()).or_insert_with(|| {
                let rule = candidate(argv, gate)?;
                let pattern = rule.pattern.as_str().to_owned();
                let also = remember::also_matches(&rule, argv);
                candidates.entry(pattern.clone()).or_insert(Proposal {
                    rule,
                    saves: 0,
                    needed: 0,
                    matches: Vec::new(),
                    also,
                });
                Some(pattern)
            });
            match pattern {
                Some(pattern) => {
                    needed.insert(pattern.clone());
                }
                None => hopeless = true,
            }
        }
        // A line with a part that no rule is proposed for is asked about whatever the others say.
        if hopeless {
            continue;
        }
        for pattern in &needed {
            if let Some(proposal) = candidates.get_mut(pattern) {
                proposal.needed += count;
                if needed.len() == 1 {
                    proposal.saves += count;
                }
            }
        }
    }
    let mut proposals: Vec<Proposal> =
        candidates.into_values().filter(|proposal| proposal.needed >= least.max(1)).collect();
    for proposal in &mut proposals {
        let matching =
            seen.iter().map(|argv| argv.join(" ")).filter(|command| proposal.rule.matches(command));
        proposal.matches = matching.collect();
        let text = format!("learned: {} lines that were asked about needed it", proposal.needed);
        proposal.rule.reason = Some(text);
    }
    proposals.sort_by(|a, b| {
        (b.saves, b.needed)
            .cmp(&(a.saves, a.needed))
            .then_with(|| a.rule.pattern.as_str().cmp(b.rule.pattern.as_str()))
    });
    proposals
}

/// The rule for one command, if there can be one.
fn candidate(argv: &[String], gate: &Gate) -> Option<Rule> {
    let program = argv.first()?;
    let subcommand = argv.get(1).map_or("", String::as_str);
    // A path may lead to a file that anyone wrote; and only plain words are judged at one look.
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if program.contains('/')
        || NEVER.contains(&program.as_str())
        || argv.iter().any(|word| word.is_empty() || !word.chars().all(plain))
    {
        return None;
    }
    let commands = unwrap::commands_of_argv(argv);
    if commands.argvs.len() != 1 || !commands.syntax.is_empty() {
        return None;
    }
    let decision = gate.decide(&Request::exec(argv.iter().cloned()));
    let mut rule = remember::propose(&decision, gate.policy()).ok()?;
    // This very command and no other: only where it is known to be harmless, and a part of a line that is not.
    if rule.whole && decision.verdict != Some(Verdict::Safe) {
        return None;
    }
    if !rule.whole && !builds(argv) {
        return None;
    }
    // A script that the package manager runs by its name; others take flags that run what a file or the command says.
    if subcommand == "run" {
        let script = argv.get(2).filter(|script| !script.starts_with('-'))?;
        if !["npm", "pnpm", "yarn", "composer"].contains(&program.as_str())
            || argv.iter().skip(2).take_while(|word| *word != "--").any(|word| word.starts_with('-'))
            || script.contains('=')
        {
            return None;
        }
    }
    // Nearly every program with subcommands has flags that start others (`go test -exec`, `cargo test --config`,
    // `npm run x --script-shell`), so it is this very command that is proposed.
    if !rule.whole {
        rule.pattern = Pattern::new(escape(&argv.join(" "))).ok()?;
        rule = rule.whole();
        remember::check(&rule, gate.policy()).ok()?;
    }
    Some(rule.words())
}

/// The proposals as a layer.
pub fn layer(proposals: &[Proposal]) -> Layer {
    let rules = proposals.iter().map(|proposal| proposal.rule.clone());
    rules.filter(|rule| rule.act == Act::Exec).fold(Layer::new("learned"), Layer::with_rule)
}
