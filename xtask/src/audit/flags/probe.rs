//! Runs a program with one flag and reads what it complains of.

use super::list::{self, Arity};
use cmdgate_classifier::spec::CommandSpec;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An empty git repository in which programs run.
#[derive(Debug)]
pub(super) struct Place {
    directory: tempfile::TempDir,
    /// Whether `bwrap` can be used, so that a table that is wrong costs nothing.
    confined: bool,
}

impl Place {
    pub(super) fn new() -> std::io::Result<Self> {
        let directory = tempfile::tempdir()?;
        std::fs::write(directory.path().join("a.txt"), "a\n")?;
        let mut place = Self { directory, confined: false };
        // Without git the directory stays a plain one, which only tables of git would notice.
        let git = |words: &[&str]| {
            let words = ["git", "-c", "user.name=n", "-c", "user.email=e"].iter().chain(words);
            place.output(&words.map(|word| (*word).to_owned()).collect::<Vec<_>>())
        };
        let _ = git(&["init", "-q", "."]);
        let _ = git(&["commit", "-q", "--allow-empty", "-m", "x"]);
        place.confined = true;
        place.confined = place.output(&["true".into()]).is_some_and(|(text, ok)| ok && text.is_empty());
        Ok(place)
    }

    /// Both streams of several runs of two seconds at the most, one after the other in one confinement.
    fn outputs(&self, commands: &[Vec<String>]) -> Vec<String> {
        let mut script = String::new();
        for argv in commands {
            script.push_str("timeout 2");
            for word in argv {
                script.push_str(" '");
                script.push_str(&word.replace('\'', r"'\''"));
                script.push('\'');
            }
            script.push_str(" </dev/null 2>&1; printf '%s' \"$0\"\n");
        }
        let limit = (10 + 2 * commands.len()).to_string();
        // A mark that no program prints.
        let mark = "\n-- end of one run of the audit --\n";
        let argv = ["bash".to_owned(), "-c".to_owned(), script, mark.to_owned()];
        let text = self.output_within(&limit, &argv).map_or_else(String::new, |(text, _)| text);
        let mut outputs: Vec<String> = text.split(mark).map(str::to_owned).collect();
        outputs.resize(commands.len(), String::new());
        outputs
    }

    /// Both streams of a run of two seconds at the most, and whether it succeeded.
    fn output(&self, argv: &[String]) -> Option<(String, bool)> {
        self.output_within("2", argv)
    }

    fn output_within(&self, seconds: &str, argv: &[String]) -> Option<(String, bool)> {
        let here = self.directory.path();
        let mut command = if self.confined {
            let mut command = Command::new("bwrap");
            command.args(["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-net"]);
            command.args(["--die-with-parent", "--new-session", "--bind"]).arg(here).arg(here);
            command.arg("--chdir").arg(here).args(["timeout", seconds]);
            command
        } else {
            let mut command = Command::new("timeout");
            command.arg(seconds);
            command
        };
        let output = command
            .args(argv)
            .current_dir(here)
            .stdin(Stdio::null())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", here)
            .env("LC_ALL", "C")
            .env("TERM", "dumb")
            .env("COLUMNS", "200")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .ok()?;
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.push_str(&String::from_utf8_lossy(&output.stderr));
        Some((text, output.status.success()))
    }
}

/// What a program says against a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Complaint {
    /// Nothing: it knows the flag, or does not say.
    Nothing,
    /// There is no such flag.
    Unknown,
    /// The flag stands alone and needs a value.
    NeedsValue,
    /// The flag was given a value and takes none.
    TakesNone,
}

/// An installed program, or a builtin of bash, with the subcommand that is meant.
#[derive(Debug, Clone)]
pub(super) struct Program {
    argv: Vec<String>,
    words: Vec<String>,
    builtin: bool,
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words.join(" "))
    }
}

impl Program {
    /// The first of the table's names that is installed.
    pub(super) fn find(spec: &CommandSpec) -> Option<Self> {
        if spec.checked.starts_with("GNU bash") {
            let name = spec.name();
            // The words after the script are the positional parameters; the name itself is from the table.
            let argv = ["bash", "-c", &format!("{name} \"$@\""), "bash"].map(str::to_owned).to_vec();
            return Some(Self { argv, words: vec![name.to_owned()], builtin: true });
        }
        let name = spec.names.iter().find(|name| on_path(name))?;
        let words = vec![(*name).to_owned()];
        Some(Self { argv: words.clone(), words, builtin: false })
    }

    pub(super) fn subcommand(&self, name: &str) -> Self {
        let mut program = self.clone();
        program.argv.push(name.to_owned());
        program.words.push(name.to_owned());
        program
    }

    fn is_git(&self) -> bool {
        self.words.first().is_some_and(|word| word == "git")
    }

    fn run(&self, place: &Place, arguments: &[&str]) -> String {
        let mut argv = self.argv.clone();
        argv.extend(arguments.iter().map(|word| (*word).to_owned()));
        place.output(&argv).map_or_else(String::new, |(text, _)| text)
    }

    /// The first line that says a version.
    pub(super) fn version(&self, place: &Place) -> String {
        let program = if self.builtin {
            vec!["bash".to_owned(), "--version".to_owned()]
        } else {
            let name = self.argv.first().cloned().unwrap_or_default();
            let flag = match name.as_str() {
                "go" | "gofmt" => {
                    return place
                        .output(&["go".into(), "version".into()])
                        .map_or_else(String::new, |o| first_line(&o.0));
                }
                "unzip" | "zipinfo" => {
                    return place
                        .output(&["unzip".into(), "-v".into()])
                        .map_or_else(String::new, |o| first_line(&o.0));
                }
                "xxd" | "perl" | "php" | "ruby" => "-v",
                "sqlite3" => "-version",
                "tmux" | "lsmod" => "-V",
                _ => "--version",
            };
            vec![name, flag.to_owned()]
        };
        place.output(&program).map_or_else(String::new, |(text, _)| first_line(&text))
    }

    /// The flags that the program names itself.
    pub(super) fn listed(&self, place: &Place) -> BTreeMap<String, Option<Arity>> {
        if self.builtin {
            let name = self.words.first().cloned().unwrap_or_default();
            let help = place.output(&["bash".into(), "-c".into(), format!("help {name}")]);
            return list::parse(&help.map_or_else(String::new, |(text, _)| text));
        }
        if self.is_git() {
            return self.git_list(place);
        }
        if self.words.first().is_some_and(|word| word == "find") {
            // Several predicates a line: their names are told, their arity is not.
            let help = self.run(place, &["--help"]);
            let words = help.split(|c: char| c.is_whitespace() || "[]()".contains(c));
            let names =
                words.filter(|word| word.len() > 2 && word.starts_with('-') && !word.starts_with("--"));
            return names.map(|name| (name.trim_end_matches(',').to_owned(), None)).collect();
        }
        let first = self.words.first().map(String::as_str);
        let mut found = BTreeMap::new();
        let helps: &[&[&str]] = match first {
            Some("zstd" | "zstdcat") => &[&["-H"]],
            Some("xz" | "xzcat") => &[&["--long-help"]],
            Some("unzip" | "zipinfo") => &[],
            Some("gofmt") => &[&["-h"]],
            Some(_) | None => &[&["--help"], &["-h"]],
        };
        for help in helps {
            found = list::parse(&self.run(place, help));
            if !found.is_empty() {
                break;
            }
        }
        for arity in found.values_mut() {
            *arity = match (first, *arity) {
                // What stands behind the flag is an operand.
                (Some("dpkg" | "dpkg-query"), _) => None,
                // Brackets mark every value.
                (Some("less"), Some(Arity::Optional)) => Some(Arity::Required),
                (_, arity) => arity,
            };
        }
        found
    }

    /// Git's own completion helper, which names every option of a subcommand that has a parser of its own.
    fn git_list(&self, place: &Place) -> BTreeMap<String, Option<Arity>> {
        let mut found = BTreeMap::new();
        if self.words.len() < 2 {
            return found;
        }
        // Neither source tells a value that is optional from one that is needed; the runs do.
        let helper = self.run(place, &["--git-completion-helper-all"]);
        if !helper.contains("fatal:") && !helper.contains("usage:") {
            let words = helper.split_whitespace().filter(|word| word.len() > 2 && word.starts_with("--"));
            found.extend(words.map(|word| (word.trim_end_matches('=').to_owned(), None)));
        }
        found.extend(list::parse(&self.run(place, &["-h"])).into_keys().map(|name| (name, None)));
        found
    }

    /// Whether the program complains of a flag that nothing has, so that its silence means that it knows one.
    pub(super) fn talks(&self, place: &Place) -> bool {
        let name =
            if self.words.first().is_some_and(|word| word == "find") { "-zz-frob" } else { "--zz-frob" };
        complaint(&self.run(place, &[name]), &[name]) == Complaint::Unknown
    }

    /// Runs the program with each flag, alone and, where its long name may have one, with a value.
    pub(super) fn probes<'n>(
        &self,
        place: &Place,
        names: &[(&'n str, Arity, &[&str])],
    ) -> BTreeMap<&'n str, Complaint> {
        let with = |word: String| self.argv.iter().cloned().chain([word]).collect::<Vec<String>>();
        let runs: Vec<_> = names.iter().map(|(name, ..)| with((*name).to_owned())).collect();
        let outputs = place.outputs(&runs);
        let mut said: BTreeMap<&str, Complaint> = BTreeMap::new();
        let mut again = Vec::new();
        for ((name, table, all), output) in names.iter().zip(&outputs) {
            let answer = complaint(output, all);
            said.insert(name, answer);
            // Some flags exist only with `=` and a value (`git log --min-parents=1`).
            let unclear = match answer {
                Complaint::Unknown => *table == Arity::Optional,
                Complaint::Nothing => *table != Arity::Required,
                Complaint::NeedsValue | Complaint::TakesNone => false,
            };
            if unclear && name.starts_with("--") {
                again.push((*name, *all, answer));
            }
        }
        let runs: Vec<_> = again.iter().map(|(name, ..)| with(format!("{name}=x"))).collect();
        for ((name, all, before), output) in again.into_iter().zip(place.outputs(&runs)) {
            let answer = complaint(&output, all);
            if before == Complaint::Unknown || answer == Complaint::TakesNone {
                said.insert(name, answer);
            }
        }
        said
    }
}

/// What the output says of the flag, under any of its names.
fn complaint(output: &str, names: &[&str]) -> Complaint {
    const UNKNOWN: [&str; 12] = [
        "unrecognized option",
        "unrecognised option",
        "unknown option",
        "invalid option",
        "illegal option",
        "unknown switch",
        "unrecognized argument",
        "which wasn't expected",
        "unexpected argument",
        "unknown predicate",
        "there is no ",
        "unknown argument",
    ];
    const NEEDS: [&str; 14] = [
        "requires an argument",
        "requires a value",
        "missing argument to",
        "value is required for",
        "expects an argument",
        // `git -c`
        "expects a configuration string",
        "needs an argument",
        "requires a parameter",
        "missing value for",
        "missing argument after",
        "is required after",
        "needs a value",
        "given for '-",
        // find takes the missing word for the flag itself.
        "invalid argument `-",
    ];
    const NONE: [&str; 5] = [
        "doesn't allow an argument",
        "takes no value",
        "expecting any more values",
        "unexpected value",
        "does not take",
    ];
    for line in output.lines().take(6) {
        let lower = line.to_lowercase();
        let is_named = |name: &&str| {
            let bare = name.trim_start_matches('-');
            let forms = [format!("'{bare}'"), format!("`{bare}'"), format!("-- {bare}"), format!(" {bare} ")];
            line.contains(*name)
                || forms.iter().any(|form| line.contains(form.as_str()) || line.ends_with(form.trim_end()))
        };
        let names_it = names.iter().any(is_named);
        if !names_it {
            continue;
        }
        let says = |phrases: &[&str]| phrases.iter().any(|phrase| lower.contains(phrase));
        if says(&NONE) {
            return Complaint::TakesNone;
        }
        if says(&NEEDS)
            || names.iter().any(|name| lower.contains(&format!("bad {} argument", name.to_lowercase())))
        {
            return Complaint::NeedsValue;
        }
        if says(&UNKNOWN) {
            return Complaint::Unknown;
        }
    }
    Complaint::Nothing
}

fn first_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| line.contains(|c: char| c.is_ascii_digit()));
    line.unwrap_or_default().chars().take(100).collect()
}

fn on_path(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|entry: PathBuf| entry.join(name))
        .any(|file: PathBuf| Path::is_file(&file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_are_told_apart() {
        for (output, name, want) in [
            ("cat: invalid option -- 'Z'", "-Z", Complaint::Unknown),
            ("cat: unrecognized option '--frob'", "--frob", Complaint::Unknown),
            ("head: option requires an argument -- 'n'", "-n", Complaint::NeedsValue),
            ("ls: option '--width' requires an argument", "--width", Complaint::NeedsValue),
            ("ls: option '--all' doesn't allow an argument", "--all", Complaint::TakesNone),
            ("error: unknown option `frob'", "--frob", Complaint::Unknown),
            ("error: unknown switch `Z'", "-Z", Complaint::Unknown),
            ("error: option `format' requires a value", "--format", Complaint::NeedsValue),
            ("error: option `list' takes no value", "--list", Complaint::TakesNone),
            ("fatal: unrecognized argument: --frob", "--frob", Complaint::Unknown),
            ("find: unknown predicate `-frob'", "-frob", Complaint::Unknown),
            ("bash: printf: -q: invalid option", "-q", Complaint::Unknown),
            ("cat: --frob: No such file or directory", "--frob", Complaint::Nothing),
            ("cat: invalid option -- 'Y'", "-Z", Complaint::Nothing),
        ] {
            assert_eq!(complaint(output, &[name]), want, "{output}");
        }
    }
}
