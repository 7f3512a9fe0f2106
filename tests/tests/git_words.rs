//! Git reads its words as the classifier says it does: argument lists that the classifier calls safe are run, leave every
//! file as it was, and show nothing that lies outside the project.
//!
//! Each flag of each table is followed by a word that writes when git takes it for a flag: `--output=…`, which most
//! subcommands have. A flag whose row says of its value anything else than git's own parser does, swallows that word on
//! one side only, and is found. Random lists follow, of flags in all spellings and of such words.
//!
//! `CMDGATE_GIT_WORDS` sets how many random lists are run (500), `CMDGATE_GIT_WORDS_SEED` which ones.
// contract: S10, S12, X2

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]

use cmdgate_classifier::git_config::harden;
use cmdgate_classifier::spec::{CommandSpec, Stance, Value};
use cmdgate_classifier::{Context, Grammar, Verdict, classify_argv, commands};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Xorshift: the same lists for the same seed, everywhere.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(bound).unwrap()).unwrap()
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// Words that write, run or end flags when git takes them for what they look like.
const SHARP: &[&str] = &[
    "--output=canary",
    "--output",
    "canary",
    "-Ocanary",
    "-O",
    "--",
    "-S",
    "-n",
    "-",
    "--outp=canary",
    "--end-of-options",
    "-d",
    "-D",
    "-m",
    "-M",
    "-f",
    "-w",
    "-e",
    "-c",
    "-C",
    "-u",
    "-t",
    "-q",
    "-F",
    "add",
    "set",
    "push",
    "create",
    "expire",
    "--ext-diff",
    "--add",
    "--unset",
    "--edit",
    "-l",
    "--list",
    "--no-list",
    "--lost-found",
    "--delete",
    "../secret.txt",
    "../outside/note.txt",
    "-X../secret.txt",
    "--file=../secret.txt",
    "-O./pwn.sh",
    "--upload-pack=./pwn.sh",
    "--no-index",
    "--dirty",
];

const PLAIN: &[&str] = &[
    "HEAD",
    "main",
    "HEAD~1",
    "main..feature",
    "v1.0",
    "a.txt",
    "b.txt",
    "src",
    "docs/one.md",
    "newname",
    "list",
    "show",
    "core.bare",
    "user.name",
    "value",
    "5",
    "1,2:a.txt",
    "refs/heads/main",
    "refs/heads/newname",
    "all",
    "short",
    "always",
    "HEAD:a.txt",
    "alpha",
    "x",
    "origin",
    "0",
];

fn subcommands<'s>(spec: &'s CommandSpec, path: &[&'s str], all: &mut Vec<(Vec<&'s str>, &'s CommandSpec)>) {
    if spec.stance != Stance::Judged {
        return;
    }
    if !path.is_empty() {
        all.push((path.to_vec(), spec));
    }
    for sub in spec.subcommands {
        let path: Vec<&str> = path.iter().copied().chain([sub.name()]).collect();
        subcommands(sub, &path, all);
    }
}

/// Some of a table's flags, and other words.
fn words(dice: &mut Dice, spec: &CommandSpec) -> Vec<String> {
    let mut words = Vec::new();
    for _ in 0..=dice.below(6) {
        let flag = &spec.flags[dice.below(spec.flags.len())];
        let name = dice.one(flag.names).to_owned();
        match dice.below(10) {
            0 | 1 => words.push(dice.one(SHARP).to_owned()),
            2 => words.push(dice.one(PLAIN).to_owned()),
            3 => {
                // A bundle of short flags.
                let mut bundle = String::from("-");
                for _ in 0..=dice.below(2) {
                    let flag = &spec.flags[dice.below(spec.flags.len())];
                    bundle.extend(flag.names.iter().find_map(|name| {
                        let letter = name.strip_prefix('-')?;
                        (letter.len() == 1).then_some(letter)
                    }));
                }
                if dice.chance(30) {
                    bundle.push_str(dice.one(PLAIN));
                }
                words.push(bundle);
            }
            _ => {
                let value = if dice.chance(50) { dice.one(PLAIN) } else { dice.one(SHARP) };
                match (flag.value, dice.below(4)) {
                    (Value::None, _) | (Value::Optional(_), 0) => words.push(name),
                    (_, 1) if name.starts_with("--") => words.push(format!("{name}={value}")),
                    (_, 1) => words.push(format!("{name}{value}")),
                    (_, _) => words.extend([name, value.to_owned()]),
                }
            }
        }
    }
    if dice.chance(50) {
        words.push(dice.one(PLAIN).to_owned());
    }
    if dice.chance(40) {
        words.push(dice.one(SHARP).to_owned());
    }
    words
}

type State = (u64, u32, i64, i64, u64);

fn snapshot(directory: &Path, all: &mut BTreeMap<PathBuf, State>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let meta = path.symlink_metadata().unwrap();
        if meta.is_dir() {
            snapshot(&path, all);
        }
        all.insert(path, (meta.len(), meta.mode(), meta.mtime(), meta.mtime_nsec(), meta.ino()));
    }
}

/// A fixture in which git runs, and how it looked before.
struct Place {
    base: PathBuf,
    environment: Vec<(String, String)>,
    before: BTreeMap<PathBuf, State>,
}

impl Place {
    fn new(name: &str) -> Self {
        let base = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("git-{name}-{}", std::process::id()));
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/make-fixture.sh");
        let built = Command::new("bash").arg(fixture).arg(&base).stderr(Stdio::null()).status();
        assert!(built.expect("bash is needed").success(), "the fixture could not be built");
        // The program that must not run leaves a mark.
        let pwn = base.join("proj/pwn.sh");
        let text = std::fs::read_to_string(&pwn).unwrap();
        std::fs::write(&pwn, text.replace("/w/", &format!("{}/", base.display()))).unwrap();
        let mut place = Self { base, environment: Vec::new(), before: BTreeMap::new() };
        let listing = place
            .git()
            .args(["config", "--list", "-z", "--includes"])
            .stdout(Stdio::piped())
            .output()
            .unwrap();
        place.environment = harden(&listing.stdout, b"").environment;
        snapshot(&place.base, &mut place.before);
        place
    }

    fn git(&self) -> Command {
        let mut command = Command::new("timeout");
        command
            .args(["5", "git"])
            .current_dir(self.base.join("proj"))
            .env_clear()
            .env("PATH", std::env::var("PATH").unwrap())
            .env("HOME", self.base.join("home"))
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::null());
        command
    }

    /// Runs the list if it is called safe, and tells whether git accepted it; none when it is held back.
    fn run(&self, argv: &[&str]) -> Option<bool> {
        let root = self.base.join("proj").to_string_lossy().into_owned();
        let context = Context::new(Grammar::Sequence).with_root(&root);
        if classify_argv(argv, &context).verdict() != Verdict::Safe {
            return None;
        }
        let done = self.git().args(&argv[1..]).output().unwrap();
        assert_ne!(done.status.code(), Some(124), "{argv:?} does not end");
        for shown in [&done.stdout, &done.stderr] {
            let shown = String::from_utf8_lossy(shown);
            let outside =
                ["CANARY-SECRET", "CANARY-NOTE", "CANARY-KEY"].iter().any(|text| shown.contains(text));
            assert!(!outside, "{argv:?} is called safe and shows a file that lies outside");
        }
        let mut after = BTreeMap::new();
        snapshot(&self.base, &mut after);
        assert!(
            after == self.before,
            "{argv:?} is called safe and changed {:?}",
            changes(&self.before, &after)
        );
        Some(done.status.success())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.base);
    }
}

#[test]
fn no_flag_swallows_what_git_does_not() {
    let place = Place::new("flags");
    let mut all = Vec::new();
    subcommands(commands::lookup("git").unwrap(), &[], &mut all);
    let mut ran = 0;
    for (path, spec) in all {
        let writes = if spec.flag("--output").is_some() { "--output=canary" } else { "newname" };
        // Where a word is an operand that cannot write, nothing can be shown by it.
        if writes == "newname" && spec.operands.rest.is_some() {
            continue;
        }
        for name in spec.flags.iter().flat_map(|flag| flag.names) {
            let argv: Vec<&str> =
                ["git"].into_iter().chain(path.iter().copied()).chain([*name, writes, "HEAD"]).collect();
            ran += u64::from(place.run(&argv).is_some());
        }
        // Behind `--`, `--end-of-options` or an operand that word is none either, if the classifier says so.
        let before: [&[&str]; 5] =
            [&["--"], &["HEAD", "--"], &["--", "--list"], &["--end-of-options"], &["HEAD"]];
        for words in before {
            let argv =
                ["git"].into_iter().chain(path.iter().copied()).chain(words.iter().copied()).chain([writes]);
            ran += u64::from(place.run(&argv.collect::<Vec<_>>()).is_some());
        }
    }
    assert!(ran > 50, "only {ran} lists ran");
}

#[test]
fn what_is_called_safe_leaves_every_file_as_it_was() {
    let number = |name: &str, usual: u64| std::env::var(name).map_or(usual, |text| text.parse().unwrap());
    let runs = number("CMDGATE_GIT_WORDS", 500);
    let mut dice = Dice(number("CMDGATE_GIT_WORDS_SEED", 0x9e37_79b9_7f4a_7c15));
    let place = Place::new("words");
    let mut all = Vec::new();
    subcommands(commands::lookup("git").unwrap(), &[], &mut all);
    let (mut ran, mut accepted) = (0, 0);
    while ran < runs {
        let (path, spec) = &all[dice.below(all.len())];
        let words = words(&mut dice, spec);
        let words = words.iter().map(String::as_str);
        let argv: Vec<&str> = ["git"].into_iter().chain(path.iter().copied()).chain(words).collect();
        if let Some(success) = place.run(&argv) {
            ran += 1;
            accepted += u64::from(success);
        }
    }
    assert!(accepted > runs / 10, "git accepted only {accepted} of {runs} lists: they show little");
}

fn changes(before: &BTreeMap<PathBuf, State>, after: &BTreeMap<PathBuf, State>) -> Vec<PathBuf> {
    let differs = |path: &&PathBuf| before.get(*path) != after.get(*path);
    before.keys().chain(after.keys()).filter(differs).cloned().collect()
}
