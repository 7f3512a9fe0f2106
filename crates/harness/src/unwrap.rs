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
    let program = argv.first().map_or("", |program| program.rsplit('/').next().unwrap_or(program));
    let rest = argv.get(1..).unwrap_or(&[]);
    match program {
        "bash" | "sh" | "dash" | "zsh" | "ksh" | "fish" | "ash" | "busybox" => match script_of_shell(rest) {
            Some(script) => collect(script, found, depth - 1),
            None => found.interprets = true,
        },
        "eval" => collect(&rest.join(" "), found, depth - 1),
        "env" | "sudo" | "doas" | "nohup" | "setsid" | "nice" | "ionice" | "timeout" | "stdbuf"
        | "command" | "exec" | "builtin" | "time" | "watch" | "chroot" | "unshare" | "runuser" | "su"
        | "strace" | "ltrace" | "flock" | "xargs" | "parallel" | "caffeinate" | "systemd-run" => {
            // Where the inner command begins depends on the wrapper's own flags: every word that may begin it counts.
            let number = |word: &str| {
                word.trim_end_matches(['s', 'm', 'h', 'd']).bytes().all(|b| b.is_ascii_digit() || b == b'.')
            };
            let mut begins = rest
                .iter()
                .enumerate()
                .filter(|(_, word)| !word.starts_with('-') && !word.contains('=') && !number(word))
                .map(|(at, _)| rest.get(at..).unwrap_or(&[]).to_vec());
            if depth > 1 {
                if let Some(first) = begins.next() {
                    add(first, found, depth - 1);
                }
                for other in begins.take(2) {
                    let mut maybe = Commands::default();
                    add(other, &mut maybe, depth - 1);
                    found.possible.extend(maybe.argvs);
                    found.possible.extend(maybe.possible);
                    found.syntax.extend(maybe.syntax);
                }
            }
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

/// The text after `-c` of a shell, whose short flags may be bundled (`bash -lc`).
fn script_of_shell(args: &[String]) -> Option<&str> {
    let mut args = args.iter();
    while let Some(word) = args.next() {
        if word.starts_with('-') && !word.starts_with("--") && word.contains('c') {
            return args.find(|next| !next.starts_with('-')).map(String::as_str);
        }
        if !word.starts_with('-') && !word.starts_with('+') {
            return None;
        }
    }
    None
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
}
