//! Commands inside commands: what `bash -c`, `eval`, `env`, `sudo` and their like would run.
//!
//! A rule that denies `rm` must hold for `bash -c 'rm x'` too. This is for the rules of a policy alone: the classifier
//! never calls such a command safe.

use cmdgate_classifier::{Context, Grammar, Run, classify};
use std::collections::BTreeSet;

/// Wrapped deeper than this, a command counts as not understood.
const DEEPEST: u8 = 6;

/// The commands that a line would run, as far as they can be told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Commands {
    /// Each as its words.
    pub argvs: Vec<Vec<String>>,
    /// Wrappers that only run what follows them, and other readings of a wrapper's words: a rule that denies or asks
    /// counts for these, a rule that allows is not needed.
    pub possible: Vec<Vec<String>>,
    /// Whether there may be others: text that is not understood, or a program whose name is not known.
    pub incomplete: bool,
    /// Whether one of them is given a script, in which anything may stand.
    pub interprets: bool,
    /// What there is besides plain commands: see [`crate::syntax`].
    pub syntax: BTreeSet<&'static str>,
}

/// All commands of a command line.
pub fn commands(line: &str) -> Commands {
    let mut found = Commands::default();
    collect(line, &mut found, DEEPEST);
    found
}

/// All commands of an argument list.
pub fn commands_of_argv(argv: &[String]) -> Commands {
    let mut found = Commands::default();
    add(argv.to_vec(), &mut found, DEEPEST);
    found
}

fn collect(line: &str, found: &mut Commands, depth: u8) {
    if depth == 0 {
        found.incomplete = true;
        return;
    }
    crate::syntax::collect(line, &mut found.syntax);
    let classification = classify(line, &Context::new(Grammar::Sequence));
    if classification.effects.runs.is_empty() && !classification.findings.is_empty() {
        found.incomplete = true;
    }
    for Run { argv, exact, .. } in &classification.effects.runs {
        let words: Vec<String> = argv.iter().map(ToString::to_string).collect();
        if !exact && words.first().is_none_or(|program| program.contains(['$', '`', '*', '?', '['])) {
            found.incomplete = true;
        }
        add(words, found, depth);
    }
}

fn add(argv: Vec<String>, found: &mut Commands, depth: u8) {
    if argv.is_empty() {
        return;
    }
    if depth == 0 {
        found.incomplete = true;
        return;
    }
    let program = argv.first().map_or("", |program| program.rsplit('/').next().unwrap_or(program));
    let rest = argv.get(1..).unwrap_or(&[]);
    for script in options::scripts(program, rest) {
        collect(&script, found, depth - 1);
    }
    match program {
        "bash" | "sh" | "dash" | "zsh" | "ksh" | "fish" | "ash" => match script_of_shell(rest) {
            Some(script) => collect(script, found, depth - 1),
            None => found.interprets = true,
        },
        "busybox" | "toybox" => add(rest.to_vec(), found, depth - 1),
        "eval" => collect(&rest.join(" "), found, depth - 1),
        "trap" => {
            if let Some(script) = rest.iter().find(|word| !word.starts_with('-')) {
                collect(script, found, depth - 1);
            }
        }
        "git" => git(rest, found, depth),
        "sed" | "gsed" => {
            found.incomplete |= !options::sed_runs_nothing(rest);
        }
        // What they run stands in a file or comes from their input.
        "at" | "batch" | "crontab" => {
            found.incomplete |= !matches!(rest, [only] if only == "-l");
        }
        // They change what a name stands for.
        "hash" | "alias" | "enable" | "bind" => {
            let changes = |word: &String| match program {
                "hash" => word.starts_with('-') && word.contains('p'),
                "alias" => word.contains('='),
                "enable" => word.starts_with('-') && word.contains('f'),
                _ => word.starts_with('-') && word.contains('x'),
            };
            if rest.iter().any(changes) {
                found.incomplete = true;
            }
        }
        "cargo" => {
            // `--config target.….runner=…`, or a file that says so.
            let before_dashes = rest.iter().take_while(|word| *word != "--");
            found.incomplete |= before_dashes.into_iter().any(|word| word.starts_with("--config"));
        }
        _ if options::WRAPPERS.contains(&program) || is_loader(program) => {
            if program == "env"
                && let Some(split) = options::split_string(rest)
            {
                found.incomplete |= !split.certain;
                let words = std::iter::once(argv.first().cloned().unwrap_or_default()).chain(split.words);
                add(words.collect(), found, depth - 1);
            }
            // Some take one word as a script.
            if options::WRAPPERS_OF_TEXT.contains(&program) {
                let text =
                    |word: &&String| word.contains([' ', '\t', '\n', ';', '&', '|', '$', '`', '<', '>', '(']);
                for script in rest.iter().filter(text) {
                    collect(script, found, depth - 1);
                }
            }
            inside_wrapper(program, rest, found, depth);
            let only_runs = ["timeout", "nice", "ionice", "stdbuf", "command", "time"];
            if let Some(name) = only_runs.into_iter().find(|name| *name == program) {
                found.syntax.insert(name);
                found.possible.push(argv);
                return;
            }
        }
        "find" | "fd" | "fdfind" => {
            let runs = ["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"];
            for (at, word) in rest.iter().enumerate() {
                if runs.contains(&word.as_str()) && depth > 1 {
                    add(rest.get(at + 1..).unwrap_or(&[]).to_vec(), found, depth - 1);
                }
            }
        }
        // They fetch and run a package that is called like the first operand.
        "npx" | "uvx" | "pipx" => {
            found.interprets = true;
            let begins = rest.iter().position(|word| !word.starts_with('-')).unwrap_or(rest.len());
            found.possible.push(rest.get(begins..).unwrap_or(&[]).to_vec());
        }
        "." | "source" | "python" | "python3" | "node" | "perl" | "ruby" | "php" | "lua" | "awk" | "gawk"
        | "make" | "ssh" | "docker" | "kubectl" | "tclsh" | "osascript" | "deno" | "bun" => {
            found.interprets = true;
        }
        _ => {}
    }
    found.argvs.push(argv);
}

/// The dynamic loader, which runs the program that it is given.
fn is_loader(program: &str) -> bool {
    program.starts_with("ld") && program.contains(".so")
}

/// Where the inner command begins depends on the wrapper's own flags: every word that may begin it counts.
fn inside_wrapper(program: &str, rest: &[String], found: &mut Commands, depth: u8) {
    let number = |word: &str| {
        word.trim_end_matches(['s', 'm', 'h', 'd']).bytes().all(|b| b.is_ascii_digit() || b == b'.')
    };
    if depth <= 1 {
        found.incomplete = true;
        return;
    }
    // Words that no flag stands before, of which an operand may be one, then the command.
    let operands = usize::from(options::WITH_OPERAND.contains(&program));
    let mut free = 0_usize;
    let mut after_flag = false;
    let mut begins = 0_usize;
    for (at, word) in rest.iter().enumerate() {
        let follows_flag = std::mem::replace(&mut after_flag, word.starts_with('-'));
        if word.starts_with('-') || word.contains('=') || number(word) {
            continue;
        }
        let inner = rest.get(at..).unwrap_or(&[]).to_vec();
        match begins {
            0 => add(inner, found, depth - 1),
            1 | 2 => {
                let mut maybe = Commands::default();
                add(inner, &mut maybe, depth - 1);
                found.possible.extend(maybe.argvs);
                found.possible.extend(maybe.possible);
                found.syntax.extend(maybe.syntax);
            }
            _ if free <= operands => {
                found.possible.push(inner);
                found.incomplete = true;
            }
            _ => break,
        }
        free += usize::from(!follows_flag);
        begins += 1;
    }
}

/// What git is told to run.
fn git(rest: &[String], found: &mut Commands, depth: u8) {
    let mut at = 0;
    while let Some(word) = rest.get(at) {
        let value = rest.get(at + 1).map_or("", String::as_str);
        match word.as_str() {
            "-c" => git_setting(value, found, depth),
            "-C" | "--git-dir" | "--work-tree" | "--namespace" | "--super-prefix" | "--attr-source" => {}
            "--config-env" | "--exec-path" => found.incomplete = true,
            _ if word.starts_with("--config-env=") || word.starts_with("--exec-path=") => {
                found.incomplete = true;
                at += 1;
                continue;
            }
            _ if word.starts_with('-') => {
                at += 1;
                continue;
            }
            _ => break,
        }
        at += 2;
    }
    let args = rest.get(at + 1..).unwrap_or(&[]);
    let subcommand = rest.get(at).map_or("", String::as_str);
    match subcommand {
        "bisect" if args.first().is_some_and(|word| word == "run") => {
            add(args.get(1..).unwrap_or(&[]).to_vec(), found, depth - 1);
        }
        "submodule" => {
            if let Some(at) = args.iter().position(|word| word == "foreach") {
                let script: Vec<&str> = args
                    .iter()
                    .skip(at + 1)
                    .map(String::as_str)
                    .skip_while(|word| word.starts_with('-'))
                    .collect();
                collect(&script.join(" "), found, depth - 1);
            }
        }
        "filter-branch" | "for-each-repo" | "send-email" => found.incomplete = true,
        "clone" => {
            for setting in options::values(args, "c", &["config"]) {
                git_setting(&setting, found, depth);
            }
        }
        _ => {}
    }
    let (shorts, longs): (&str, &[&str]) = match subcommand {
        "rebase" => ("x", &["exec"]),
        "difftool" => ("x", &["extcmd"]),
        "grep" => ("O", &["open-files-in-pager"]),
        "clone" => ("u", &["upload-pack"]),
        "fetch" | "pull" | "ls-remote" | "fetch-pack" => ("", &["upload-pack", "exec"]),
        "push" | "send-pack" => ("", &["receive-pack", "exec"]),
        "archive" => ("", &["exec"]),
        _ => ("", &[]),
    };
    for script in options::values(args, shorts, longs) {
        collect(&script, found, depth - 1);
    }
    for word in args {
        if let Some((_, script)) = word.split_once("ext::") {
            found.incomplete = true;
            collect(script, found, depth - 1);
        }
    }
}

/// A `name=value` of git's configuration.
fn git_setting(setting: &str, found: &mut Commands, depth: u8) {
    let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
    let name = name.to_ascii_lowercase();
    if name.starts_with("alias.") {
        match value.strip_prefix('!') {
            Some(script) => collect(script, found, depth - 1),
            None => collect(&format!("git {value}"), found, depth - 1),
        }
    } else if options::GIT_SETTINGS.iter().any(|part| name.contains(part)) {
        found.incomplete = true;
    }
}

/// The text after `-c` of a shell, whose short flags may be bundled (`bash -lc`).
fn script_of_shell(args: &[String]) -> Option<&str> {
    let mut args = args.iter();
    while let Some(word) = args.next() {
        if word.starts_with('-') && !word.starts_with("--") && word.contains('c') {
            return args.find(|next| !next.starts_with(['-', '+'])).map(String::as_str);
        }
        if word.ends_with(['o', 'O']) && word.starts_with(['-', '+']) && !word.starts_with("--")
            || matches!(word.as_str(), "--rcfile" | "--init-file")
        {
            args.next();
        } else if !word.starts_with('-') && !word.starts_with('+') {
            return None;
        }
    }
    None
}

/// Options whose values are commands.
mod options {
    /// Programs that run the words that follow.
    pub(super) const WRAPPERS: &[&str] = &[
        "env",
        "sudo",
        "doas",
        "nohup",
        "setsid",
        "nice",
        "ionice",
        "timeout",
        "stdbuf",
        "command",
        "exec",
        "builtin",
        "time",
        "watch",
        "chroot",
        "unshare",
        "runuser",
        "su",
        "strace",
        "ltrace",
        "flock",
        "xargs",
        "parallel",
        "caffeinate",
        "systemd-run",
        "script",
        "setpriv",
        "chrt",
        "taskset",
        "prlimit",
        "nsenter",
        "firejail",
        "bwrap",
        "dbus-run-session",
        "xvfb-run",
        "fakeroot",
        "unbuffer",
        "valgrind",
        "perf",
        "pkexec",
        "sg",
        "entr",
        "rlwrap",
        "hyperfine",
        "coproc",
        "numactl",
        "faketime",
        "setarch",
        "linux32",
        "linux64",
        "choom",
        "gosu",
        "chpst",
        "eatmydata",
        "torsocks",
        "proxychains",
        "proxychains4",
        "gtimeout",
        "genv",
        "gnice",
        "gstdbuf",
        "xterm",
        "start-stop-daemon",
        "tini",
        "dumb-init",
        "run-parts",
    ];
    /// Those of them with an operand before the command.
    pub(super) const WITH_OPERAND: &[&str] =
        &["chroot", "flock", "su", "runuser", "sg", "gosu", "taskset", "chrt", "faketime", "setarch"];
    /// Those of them that hand a word to a shell.
    pub(super) const WRAPPERS_OF_TEXT: &[&str] = &[
        "watch",
        "su",
        "runuser",
        "flock",
        "parallel",
        "script",
        "sg",
        "hyperfine",
        "entr",
        "xterm",
        "sudo",
    ];
    /// Parts of names of git's settings that may name a program, in lower case.
    pub(super) const GIT_SETTINGS: &[&str] = &[
        "command",
        "pager",
        "editor",
        "external",
        "textconv",
        "driver",
        ".cmd",
        "helper",
        "program",
        "fsmonitor",
        "hook",
        "askpass",
        "process",
        "clean",
        "smudge",
        "proxy",
        "path",
        "include",
        "uploadpack",
        "receivepack",
        ".update",
        "browser",
        "man.",
        "tool",
        "protocol",
        "template",
        "vcs",
        "runcommand",
    ];

    /// The scripts in the options of a program.
    pub(super) fn scripts(program: &str, rest: &[String]) -> Vec<String> {
        let (shorts, longs): (&str, &[&str]) = match program {
            "script" | "su" | "runuser" | "flock" | "sg" => ("c", &["command", "session-command"]),
            "fish" => ("C", &["command", "init-command"]),
            "rsync" => ("e", &["rsh", "rsync-path"]),
            "mapfile" | "readarray" | "complete" | "compgen" => ("C", &[]),
            "tar" | "gtar" | "bsdtar" | "cpio" => (
                "IF",
                &[
                    "use-compress-program",
                    "to-command",
                    "info-script",
                    "new-volume-script",
                    "rsh-command",
                    "rmt-command",
                    "checkpoint-action",
                ],
            ),
            "sort" | "gsort" => ("", &["compress-program"]),
            "split" | "gsplit" => ("", &["filter"]),
            "rg" => ("", &["pre", "hostname-bin"]),
            "man" => ("P", &["pager", "html"]),
            "scp" | "sftp" => ("S", &[]),
            "go" => ("", &["exec", "toolexec", "vettool"]),
            "xterm" => ("e", &[]),
            _ => return Vec::new(),
        };
        let mut found = values(rest, shorts, longs);
        let tar = matches!(program, "tar" | "gtar" | "bsdtar");
        if tar {
            // `tar cIf zstd a.tar`: the flags without a dash, their values in order behind them.
            if let Some(flags) = rest.first().filter(|word| !word.starts_with('-'))
                && flags.contains(['I', 'F'])
            {
                found.extend(rest.iter().skip(1).cloned());
            }
        }
        for value in &mut found {
            if tar && let Some(script) = value.strip_prefix("exec=") {
                *value = script.to_owned();
            }
        }
        found.retain(|value| {
            !tar || !["dot", "echo", "bell", "ttyout", "totals", "sleep", "wait"]
                .iter()
                .any(|action| value == action || value.starts_with(&format!("{action}=")))
        });
        found
    }

    /// The values of options in any spelling: `-c V`, `-qcV`, `--command V`, `--comm=V`, `-command=V`. Where it cannot be
    /// told whether a word is such an option, it counts.
    pub(super) fn values(rest: &[String], shorts: &str, longs: &[&str]) -> Vec<String> {
        let mut found = Vec::new();
        for (at, word) in rest.iter().enumerate() {
            let Some(flag) = word.strip_prefix('-') else { continue };
            let next = || rest.get(at + 1).cloned().unwrap_or_default();
            let (name, value) = flag
                .trim_start_matches('-')
                .split_once('=')
                .map_or((flag.trim_start_matches('-'), None), |(name, value)| (name, Some(value)));
            let abbreviated =
                |long: &&str| **long == *name || flag.starts_with('-') && long.starts_with(name);
            if !name.is_empty() && longs.iter().any(abbreviated) {
                found.push(value.map_or_else(next, ToOwned::to_owned));
                continue;
            }
            if let Some((_, value)) =
                flag.split_once(|c| shorts.contains(c)).filter(|_| !flag.starts_with('-'))
            {
                found.push(if value.is_empty() { next() } else { value.to_owned() });
            }
        }
        found
    }

    /// The words of `env` when a text is split into them.
    pub(super) struct Split {
        pub(super) words: Vec<String>,
        /// Whether `env` splits it like that.
        pub(super) certain: bool,
    }

    /// `env -S 'a b' c`, as if it were `env a b c`.
    pub(super) fn split_string(rest: &[String]) -> Option<Split> {
        let mut after_flag = false;
        for (at, word) in rest.iter().enumerate() {
            let flag = word.strip_prefix('-').filter(|flag| !flag.is_empty());
            let Some(flag) = flag else {
                // The value of a flag, a variable, or else the command.
                if !after_flag && !word.contains('=') && word != "-" {
                    return None;
                }
                after_flag = false;
                continue;
            };
            after_flag = true;
            let inline = match flag.strip_prefix('-') {
                Some(long) => {
                    let (name, value) = long.split_once('=').map_or((long, None), |(n, v)| (n, Some(v)));
                    if name.is_empty() || !"split-string".starts_with(name) {
                        continue;
                    }
                    value
                }
                None => match flag.split_once('S') {
                    Some((_, value)) => Some(value).filter(|value| !value.is_empty()),
                    None => continue,
                },
            };
            let (text, behind) = match inline {
                Some(text) => (text, at + 1),
                None => (rest.get(at + 1).map_or("", String::as_str), at + 2),
            };
            let certain =
                !text.contains(|c: char| matches!(c, '\\' | '$' | '#') || c != ' ' && c.is_whitespace());
            let split = shlex::split(text);
            let certain = certain && split.is_some();
            let mut words = split.unwrap_or_else(|| text.split_whitespace().map(ToOwned::to_owned).collect());
            words.extend(rest.iter().skip(behind).cloned());
            return Some(Split { words, certain });
        }
        None
    }

    /// Whether a call of sed has no `e`, neither as a command nor as a flag; what is not understood may have one.
    pub(super) fn sed_runs_nothing(rest: &[String]) -> bool {
        let sandboxed = |word: &String| word.len() > 4 && "--sandbox".starts_with(word.as_str());
        if rest.iter().any(sandboxed) {
            return true;
        }
        let mut scripts = Vec::new();
        let mut operand = None;
        let mut words = rest.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "-e" | "--expression" => scripts.extend(words.next().map(String::as_str)),
                "-l" | "--line-length" => drop(words.next()),
                "--" => {
                    operand = operand.or(words.next().map(String::as_str));
                    break;
                }
                "--version" | "--help" | "--quiet" | "--silent" | "--regexp-extended" | "--posix"
                | "--debug" | "--null-data" | "--separate" | "--unbuffered" | "--in-place"
                | "--follow-symlinks" => {}
                _ if word.starts_with("--in-place=") || word.starts_with("-i") => {}
                _ if word.starts_with("--expression=") => {
                    scripts.extend(word.split_once('=').map(|(_, script)| script));
                }
                // Bundles of flags without a value, and an `e` with its script at their end.
                _ if word.starts_with('-') && word.len() > 1 => {
                    let flags = word.trim_start_matches(['-', 'n', 'r', 'E', 's', 'u', 'z']);
                    match flags.strip_prefix('e') {
                        Some("") => scripts.extend(words.next().map(String::as_str)),
                        Some(script) => scripts.push(script),
                        None if flags.is_empty() || flags.starts_with('i') => {}
                        None => return false,
                    }
                }
                _ => operand = operand.or(Some(word.as_str())),
            }
        }
        if scripts.is_empty() {
            scripts.extend(operand);
        }
        scripts.iter().all(|script| script_runs_nothing(script))
    }

    fn script_runs_nothing(script: &str) -> bool {
        let mut rest = script.chars().peekable();
        loop {
            while rest
                .next_if(|c| c.is_whitespace() || c.is_ascii_digit() || ";{}$,!~+".contains(*c))
                .is_some()
            {}
            let Some(c) = rest.next() else { return true };
            match c {
                '/' => {
                    if !pass(&mut rest, '/') {
                        return false;
                    }
                    while rest.next_if(|c| matches!(c, 'I' | 'M')).is_some() {}
                }
                's' | 'y' => {
                    let Some(delimiter) =
                        rest.next().filter(|c| !c.is_alphanumeric() && !matches!(c, '\\' | '\n' | '['))
                    else {
                        return false;
                    };
                    if !pass(&mut rest, delimiter) || !pass(&mut rest, delimiter) {
                        return false;
                    }
                    while rest
                        .next_if(|c| c.is_ascii_digit() || matches!(c, 'g' | 'p' | 'i' | 'I' | 'm' | 'M'))
                        .is_some()
                    {}
                    if rest.peek().is_some_and(|c| !matches!(c, ';' | '}' | '\n' | ' ')) {
                        return false;
                    }
                }
                'p' | 'P' | 'd' | 'D' | 'n' | 'N' | 'h' | 'H' | 'g' | 'G' | 'x' | 'l' | 'q' | 'Q' | 'F'
                | '=' | 'z' => {}
                'b' | 't' | 'T' | ':' => {
                    while rest.next_if(|c| *c == ' ' || c.is_ascii_alphanumeric() || *c == '_').is_some() {}
                }
                'a' | 'i' | 'c' | '#' | 'r' | 'R' | 'w' | 'W' => {
                    while rest.next_if(|c| *c != '\n').is_some() {}
                }
                _ => return false,
            }
        }
    }

    /// Goes behind the next delimiter; false where versions of sed differ in which that is.
    fn pass(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, delimiter: char) -> bool {
        let mut in_brackets = false;
        while let Some(c) = rest.next() {
            match c {
                _ if c == delimiter => return !in_brackets,
                '\\' => drop(rest.next()),
                '[' => in_brackets = true,
                ']' => in_brackets = false,
                _ => {}
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn programs(line: &str) -> Vec<String> {
        commands(line).argvs.iter().map(|argv| argv[0].clone()).collect()
    }

    #[test]
    fn sees_through_wrappers() {
        // contract: P8
        for line in [
            "rm x",
            "ls && rm x",
            "bash -c 'rm x'",
            "bash -lc 'ls; rm x'",
            "eval rm x",
            "env A=b rm x",
            "timeout 5 rm x",
            "find . -name x -exec rm {} +",
            "ls | xargs rm",
            "ls | xargs -n1 rm",
            "nice -n 5 bash -c \"rm x\"",
            "echo $(rm x)",
        ] {
            assert!(programs(line).iter().any(|program| program == "rm"), "{line}: {:?}", programs(line));
        }
    }

    #[test]
    fn other_readings_of_a_wrapper_count_for_denials() {
        // contract: P8
        let found = commands("sudo -u root rm x");
        assert!(found.possible.iter().any(|argv| argv.first().is_some_and(|program| program == "rm")));
    }

    #[test]
    fn says_when_it_does_not_know() {
        for line in
            ["ls >(rm x)", "$x y", "python3 -c 'import os'", "bash script.sh", "source x", "f() { rm x; }; f"]
        {
            let found = commands(line);
            assert!(found.incomplete || found.interprets, "{line}");
        }
        assert!(!commands("ls -la && cat a").incomplete);
    }

    #[test]
    fn what_options_run_is_seen_or_said_to_be_unknown() {
        // contract: P8
        for line in [
            "env -S 'rm x'",
            "env -Srm",
            "env -S'rm x'",
            "env --split-string='rm x'",
            "env --split-string 'rm x'",
            "env --split='rm x'",
            "env -iS 'rm x'",
            "env -u A -S 'B=c rm' x",
            "env -S '-i rm' x",
            "env -S 'env -S \"rm x\"'",
            r"env -S 'r\cm'",
            "env -u A -C B -a C rm x",
            "/usr/bin/env -vS 'rm x'",
            "script -c rm",
            "script -qc 'rm x' /dev/null",
            "script --command='rm x'",
            "trap rm EXIT",
            "trap -- 'ls; rm x' EXIT",
            "rsync -e rm a b:",
            "rsync -ave 'rm x' a b:",
            "rsync --rsh=rm a b:",
            "/lib64/ld-linux-x86-64.so.2 /sbin/rm",
            "/lib/ld-musl-x86_64.so.1 --library-path /x /sbin/rm",
            "git bisect run rm x",
            "git submodule foreach rm x",
            "git submodule foreach --recursive 'ls && rm x'",
            "git -C a submodule --quiet foreach rm",
            "git rebase -x rm main",
            "git rebase --exec='rm x' main",
            "git rebase -ix rm main",
            "git difftool -x rm",
            "git difftool --extcmd=rm",
            "git -c alias.x='!rm x' x",
            "git -c alias.x='bisect run rm' x",
            "git -c core.pager=rm log",
            "git --config-env=core.pager=X log",
            "git clone -c core.sshCommand=rm a",
            "git fetch --upload-pack=rm a",
            "git clone 'ext::rm x' a",
            "tar --checkpoint=1 --checkpoint-action=exec=rm -cf a b",
            "tar --checkpoint-action exec=rm -cf a b",
            "tar -I rm -xf a",
            "tar -xIrm -f a",
            "tar xIf rm a",
            "tar --use-compress-program=rm -xf a",
            "tar --to-command='rm x' -xf a",
            "sed 1e",
            "sed '1e rm x' a",
            "sed -n 's/a/rm x/e' a",
            "sed -e p -e 1e a",
            "sed -f script a",
            "mapfile -C rm -c 1 a",
            "readarray -Crm -c 1 a",
            "hash -p /bin/rm ls",
            "echo rm x | at now",
            "echo '* * * * * rm' | crontab -",
            "su -crm",
            "su root --command='rm x'",
            "watch 'ls; rm x'",
            "bash -o pipefail -c 'rm x'",
            "busybox rm x",
            "busybox sh -c 'rm x'",
            "go test -exec 'rm x' ./...",
            "cargo test --config target.x.runner=rm",
            "sort --compress-program=rm a",
            "split --filter='rm x' a",
        ] {
            let found = commands(line);
            let is_rm = |argv: &Vec<String>| {
                argv.first().is_some_and(|program| program.rsplit('/').next() == Some("rm"))
            };
            assert!(
                found.incomplete || found.argvs.iter().chain(&found.possible).any(is_rm),
                "{line}: {found:?}"
            );
        }
    }

    #[test]
    fn options_that_run_nothing_are_known() {
        for line in [
            "env A=b npm test",
            "env -i npm test",
            "env -u A npm run build a b c",
            "git status",
            "git -c color.ui=never log",
            "git rebase main",
            "git submodule update",
            "tar -czf a.tgz b",
            "tar xf a.tar",
            "tar --checkpoint-action=dot -cf a b",
            "sed -n 1,5p a",
            "sed -i 's/there/e/g' a",
            "sed -E -e 's|a/b|e|' -e '/x/d' a",
            "sed ':a;N;$!ba;s/\\n/ /g' a",
            "crontab -l",
            "go test ./...",
            "cargo test",
            "rsync -av a b",
            "sort -u a",
            "timeout 60 cargo test -p a --test b c d",
        ] {
            assert!(!commands(line).incomplete, "{line}: {:?}", commands(line));
        }
        assert_eq!(programs("rsync -av a b"), ["rsync"]);
        assert_eq!(programs("tar -czf a.tgz b"), ["tar"]);
    }
}
