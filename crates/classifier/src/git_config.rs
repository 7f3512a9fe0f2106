//! What provides [`Condition::GitHardened`](crate::Condition::GitHardened): the environment under which git runs no program
//! that its configuration names, writes nothing on the side and reaches no network.
//!
//! A repository's own configuration can name programs that git starts in the midst of `git status` or `git diff`: a file
//! system monitor, diff programs, text converters, filters, hooks, a pager, gpg. Configuration that is given through
//! `GIT_CONFIG_COUNT`, `GIT_CONFIG_KEY_n` and `GIT_CONFIG_VALUE_n` outweighs every file, so [`harden`] gives each such key a
//! value that starts nothing. It is pure: whoever runs the command does the input and output.
//!
//! [`FIXED`] holds for every run. For each directory in [`Effects::repositories`](crate::Effects::repositories):
//!
//! 1. In that directory, under [`FIXED`] and without the variables of [`must_be_absent`], run
//!    `git config --list -z --includes`. It reads configuration and nothing else: it starts no program.
//! 2. Under the environment that [`harden`] gives for that alone, because git starts a file system monitor whenever it reads
//!    the index: if the work tree has submodules, run `git config --list -z --no-includes --file .gitmodules` at its top as well; where
//!    the work tree lacks that file, the same with `--blob :.gitmodules` and `--blob HEAD:.gitmodules`.
//! 3. Call [`harden`] with both outputs. With `Hardening::refuse` the condition cannot be provided. Otherwise resolve
//!    [`Hardening::reads`] and [`Hardening::work_tree`], which must lie inside the project.
//! 4. Run the command with [`Hardening::environment`] set and the variables of [`must_be_absent`] removed.
//!
//! Where one command runs git in several repositories, each is looked at on its own, and the environment is that of all
//! their listings joined: a listing is a row of entries, each ended by a NUL.
//!
//! One thing is left, which nothing turns off: where the index is split, reading it sets the time of the file
//! `sharedindex.*`. Its content stays.
//!
//! Git must be [`supported`]: older ones do not know `GIT_CONFIG_COUNT`.
//!
//! ```
//! use cmdgate_classifier::git_config::harden;
//!
//! let hostile = b"core.fsmonitor\n./evil.sh\0filter.x.clean\n./evil.sh\0";
//! let hardening = harden(hostile, b"");
//! assert!(hardening.refuse.is_none());
//! assert_eq!(hardening.value_of("core.fsmonitor"), Some(""));
//! assert_eq!(hardening.value_of("filter.x.clean"), Some(""));
//! ```

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Variables that every run of git gets, the listing of its configuration included.
///
/// `GIT_CONFIG_NOSYSTEM` and `GIT_ATTR_NOSYSTEM` are not among them: the machine's own files are part of the machine, what
/// they name is neutralised by its key, and git should see the same settings as in its user's terminal.
pub const FIXED: &[(&str, &str)] = &[
    // `git status` would refresh and write the index.
    ("GIT_OPTIONAL_LOCKS", "0"),
    // A partial clone would fetch the objects that it lacks (since git 2.44; before that the next line holds it).
    ("GIT_NO_LAZY_FETCH", "1"),
    // No transport is allowed, helpers and local paths included.
    ("GIT_ALLOW_PROTOCOL", ""),
    ("GIT_PROTOCOL_FROM_USER", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", ""),
    // Outweighs `core.pager` and `pager.*`, and git itself takes `cat` to mean no pager.
    ("GIT_PAGER", "cat"),
    // `trace2.*Target` in the user's configuration writes files, and cannot be outweighed by configuration.
    ("GIT_TRACE2", "0"),
    ("GIT_TRACE2_EVENT", "0"),
    ("GIT_TRACE2_PERF", "0"),
];

/// Configuration that is always set.
const ALWAYS: &[(&str, &str)] = &[
    // Empty is off for every version: before git 2.36 `false` was the name of a hook.
    ("core.fsmonitor", ""),
    // `post-index-change` among others.
    ("core.hookspath", "/dev/null"),
    // `git diff` would refresh and write the index, whatever `GIT_OPTIONAL_LOCKS` says.
    ("diff.autorefreshindex", "false"),
    ("log.showsignature", "false"),
    // Git would start itself in submodules, where another configuration counts.
    ("submodule.recurse", "false"),
    ("status.submodulesummary", "false"),
    // A directory in the work tree that looks like a bare repository brings a configuration of its own.
    ("safe.barerepository", "explicit"),
    ("gpg.program", NO_GPG),
    ("gpg.openpgp.program", NO_GPG),
    ("gpg.x509.program", NO_GPG),
    ("gpg.ssh.program", NO_GPG),
    ("gpg.ssh.defaultkeycommand", NO_GPG),
];

// Git cannot be told to forget a diff program; these names cannot exist, are run without a shell, and stand in git's own
// error message, where they help.
const NO_GPG: &str = "/dev/null/gpg-is-not-run";
const NO_EXTERNAL_DIFF: &str = "/dev/null/use--no-ext-diff";
const NO_TEXTCONV: &str = "/dev/null/use--no-textconv";
const NOTHING: &str = "/dev/null/is-not-run";

/// Keys that are outweighed where the configuration has them. `*` stands for the name in the middle.
const IF_PRESENT: &[(&str, &str, Loss)] = &[
    ("diff.external", NO_EXTERNAL_DIFF, Loss::Fails),
    ("diff.*.command", NO_EXTERNAL_DIFF, Loss::Fails),
    ("diff.*.textconv", NO_TEXTCONV, Loss::Fails),
    ("diff.*.cachetextconv", "false", Loss::None),
    ("filter.*.clean", "", Loss::Differs),
    ("filter.*.smudge", "", Loss::Differs),
    ("filter.*.process", "", Loss::Differs),
    ("filter.*.required", "false", Loss::None),
    ("merge.*.driver", NOTHING, Loss::None),
    ("gpg.*.program", NO_GPG, Loss::None),
    ("gpg.*.defaultkeycommand", NO_GPG, Loss::None),
    ("core.editor", NOTHING, Loss::None),
    ("sequence.editor", NOTHING, Loss::None),
    ("core.askpass", NOTHING, Loss::None),
    ("core.sshcommand", NOTHING, Loss::None),
    ("core.gitproxy", NOTHING, Loss::None),
    ("core.alternaterefscommand", NOTHING, Loss::None),
    ("core.pager", "cat", Loss::None),
    ("credential.helper", "", Loss::None),
    ("credential.*.helper", "", Loss::None),
    ("interactive.difffilter", NOTHING, Loss::None),
    ("uploadpack.packobjectshook", NOTHING, Loss::None),
    ("remote.*.uploadpack", NOTHING, Loss::None),
    ("remote.*.receivepack", NOTHING, Loss::None),
    ("tar.*.command", NOTHING, Loss::None),
    ("trailer.*.command", NOTHING, Loss::None),
    ("trailer.*.cmd", NOTHING, Loss::None),
    ("difftool.*.cmd", NOTHING, Loss::None),
    ("mergetool.*.cmd", NOTHING, Loss::None),
    ("man.*.cmd", NOTHING, Loss::None),
    ("browser.*.cmd", NOTHING, Loss::None),
    ("sendemail.sendmailcmd", NOTHING, Loss::None),
    ("imap.tunnel", NOTHING, Loss::None),
    // Files that may lie anywhere.
    ("core.excludesfile", "/dev/null", Loss::Differs),
    ("core.attributesfile", "/dev/null", Loss::Differs),
    ("mailmap.file", "/dev/null", Loss::Differs),
    ("diff.orderfile", "/dev/null", Loss::Differs),
];

/// What is lost when a key is outweighed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loss {
    /// Nothing that a safe command would show.
    None,
    /// The output may differ from that in the user's terminal.
    Differs,
    /// A command that needs the program fails.
    Fails,
}

/// Keys whose files are read before anything could outweigh them: every value is read, not the last.
const READS: &[&str] = &["blame.ignorerevsfile", "fsck.skiplist"];

/// How git is to be run in one place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hardening {
    /// Variables to set, by name. [`FIXED`] is among them.
    pub environment: Vec<(String, String)>,
    /// The configured programs that are off although a safe command might have used them: a `git diff` that needs one of
    /// the diff programs or text converters among them fails and says which flag helps. A front door may rather ask.
    pub disabled: Vec<String>,
    /// Files that git may read because the configuration says so. Each must resolve inside the project; relative ones count
    /// from the top of the work tree.
    pub reads: Vec<String>,
    /// Where the configuration moves the work tree to, relative to the repository's own directory. It must resolve inside
    /// the project. Submodules have it too.
    pub work_tree: Option<String>,
    /// Why git must not be called safe here at all.
    pub refuse: Option<Refusal>,
}

/// Why a configuration cannot be made harmless.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The key, as git lists it.
    pub key: String,
    /// Why, as a sentence fragment.
    pub why: &'static str,
}

impl Hardening {
    /// The value that outweighs what the configuration says of `key`, if one does. Section and variable in lower case.
    pub fn value_of(&self, key: &str) -> Option<&str> {
        self.environment.iter().find_map(|(name, value)| {
            let number = name.strip_prefix("GIT_CONFIG_KEY_")?;
            if value != key {
                return None;
            }
            let name = format!("GIT_CONFIG_VALUE_{number}");
            self.environment.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
        })
    }
}

/// Whether a variable of this name must not be inherited by git, unless [`Hardening::environment`] sets it: `GIT_DIR`,
/// `GIT_EXTERNAL_DIFF`, `GIT_CONFIG_GLOBAL`, `GIT_TRACE` and many more change what git reads, runs and writes.
///
/// ```
/// use cmdgate_classifier::git_config::must_be_absent;
/// assert!(must_be_absent("GIT_EXTERNAL_DIFF"));
/// assert!(!must_be_absent("HOME"));
/// ```
pub fn must_be_absent(name: &str) -> bool {
    name.starts_with("GIT_") || matches!(name, "SSH_ASKPASS" | "EMAIL" | "LESSOPEN" | "LESSCLOSE" | "PAGER")
}

/// Whether the git that calls itself this (`git version 2.47.3`) is one that can be hardened: 2.31 or newer.
///
/// ```
/// use cmdgate_classifier::git_config::supported;
/// assert!(supported("git version 2.47.3"));
/// assert!(!supported("git version 2.30.2"));
/// assert!(!supported("jit version 9"));
/// ```
pub fn supported(version: &str) -> bool {
    let Some(numbers) = version.trim().strip_prefix("git version ") else {
        return false;
    };
    let mut parts = numbers.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse::<u32>().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (2, 31)
}

/// More keys than this are not outweighed one by one: the environment has its bounds.
const MOST_KEYS: usize = 2_000;

/// Reads `config`, the output of `git config --list -z --includes`, and `modules`, that of
/// `git config --list -z --no-includes --file .gitmodules` (empty without submodules; several may be joined), and says how
/// git is to be run.
pub fn harden(config: &[u8], modules: &[u8]) -> Hardening {
    let mut out = Hardening::default();
    let mut keys: BTreeMap<String, String> = BTreeMap::new();
    for (key, value) in ALWAYS {
        keys.insert((*key).to_owned(), (*value).to_owned());
    }
    let mut ignores_all = false;
    let mut work_tree = None;
    for entry in entries(config) {
        match entry {
            Err(refusal) => {
                out.refuse.get_or_insert(refusal);
            }
            Ok(entry) => {
                entry.outweigh(&mut keys, &mut out);
                match entry.shape().as_str() {
                    "diff.ignoresubmodules" => ignores_all = entry.value == "all",
                    "core.worktree" => work_tree = Some(entry.value.to_owned()),
                    _ => {}
                }
            }
        }
    }
    out.work_tree = work_tree;
    let ignored = if ignores_all { "all" } else { "dirty" };
    keys.insert("diff.ignoresubmodules".to_owned(), ignored.to_owned());
    for entry in entries(modules) {
        match entry {
            Err(refusal) => {
                out.refuse.get_or_insert(refusal);
            }
            Ok(entry) => entry.ignore_submodule(&mut keys),
        }
    }
    if keys.len() > MOST_KEYS {
        out.refuse
            .get_or_insert(Refusal { key: String::new(), why: "there are more keys than are outweighed" });
        return out;
    }
    for (name, value) in FIXED {
        out.environment.push(((*name).to_owned(), (*value).to_owned()));
    }
    out.environment.push(("GIT_CONFIG_COUNT".to_owned(), keys.len().to_string()));
    for (number, (key, value)) in keys.into_iter().enumerate() {
        out.environment.push((format!("GIT_CONFIG_KEY_{number}"), key));
        out.environment.push((format!("GIT_CONFIG_VALUE_{number}"), value));
    }
    out
}

/// One key and its value.
struct Entry<'a> {
    section: String,
    name: Option<&'a str>,
    variable: String,
    value: &'a str,
}

/// The entries of a listing.
fn entries(listing: &[u8]) -> impl Iterator<Item = Result<Entry<'_>, Refusal>> {
    listing.split(|byte| *byte == 0).filter(|text| !text.is_empty()).map(Entry::parse)
}

impl<'a> Entry<'a> {
    fn parse(text: &'a [u8]) -> Result<Self, Refusal> {
        let newline = text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len());
        let (key, value) = text.split_at(newline);
        let Ok(key) = core::str::from_utf8(key) else {
            let key = String::from_utf8_lossy(key).into_owned();
            return Err(Refusal { key, why: "is not UTF-8, so it cannot be outweighed" });
        };
        // A value that is not UTF-8 is only compared with words, and equals none of them.
        let value = value.strip_prefix(b"\n").unwrap_or(value);
        let value = core::str::from_utf8(value).unwrap_or("\u{fffd}");
        let parts = key.split_once('.').and_then(|(section, rest)| {
            let (name, variable) = match rest.rsplit_once('.') {
                Some((name, variable)) => (Some(name), variable),
                None => (None, rest),
            };
            Some((section, name, variable)).filter(|(_, _, variable)| !variable.is_empty())
        });
        let Some((section, name, variable)) = parts else {
            return Err(Refusal { key: key.to_owned(), why: "is no key of a configuration" });
        };
        let (section, variable) = (section.to_ascii_lowercase(), variable.to_ascii_lowercase());
        Ok(Self { section, name, variable, value })
    }

    /// The key as git lists it.
    fn key(&self) -> String {
        match self.name {
            Some(name) => format!("{}.{name}.{}", self.section, self.variable),
            None => format!("{}.{}", self.section, self.variable),
        }
    }

    /// The key with `*` for the name in its middle.
    fn shape(&self) -> String {
        let star = if self.name.is_some() { ".*" } else { "" };
        format!("{}{star}.{}", self.section, self.variable)
    }

    fn outweigh(&self, keys: &mut BTreeMap<String, String>, out: &mut Hardening) {
        let shape = self.shape();
        let mut set = |value: &str| {
            keys.insert(self.key(), value.to_owned());
        };
        if let Some((_, value, loss)) = IF_PRESENT.iter().find(|(known, _, _)| *known == shape) {
            set(value);
            if *loss != Loss::None && !out.disabled.contains(&self.key()) {
                out.disabled.push(self.key());
            }
            return;
        }
        match shape.as_str() {
            shape if READS.contains(&shape) => out.reads.push(self.value.to_owned()),
            "format.pretty" if !plain_format(self.value) => set("medium"),
            "log.diffmerges" if !MERGES_PLAINLY.contains(&self.value) => set("separate"),
            "diff.submodule" if self.value != "log" => set("short"),
            "branch.sort" | "tag.sort"
                if self.value.contains("signature") || self.value.contains("describe") =>
            {
                set("refname");
            }
            // Since git 2.52 an alias may take the name of a deprecated command.
            "alias.whatchanged" | "alias.pack-redundant" => {
                out.refuse(self, "an alias may take the place of a command that git has");
            }
            "alias.*.command" if matches!(self.name, Some("whatchanged" | "pack-redundant")) => {
                out.refuse(self, "an alias may take the place of a command that git has");
            }
            "hook.*.command" => {
                out.refuse(self, "is a hook that the configuration names, which newer gits run");
            }
            shape if shape.starts_with("submodule.*.") => self.ignore_submodule(keys),
            _ => {}
        }
    }

    /// A submodule's own `ignore` outweighs `diff.ignoreSubmodules`, also where `.gitmodules` says it.
    fn ignore_submodule(&self, keys: &mut BTreeMap<String, String>) {
        if let ("submodule", Some(name)) = (self.section.as_str(), self.name) {
            let key = format!("submodule.{name}.ignore");
            let all = self.variable == "ignore" && self.value == "all";
            let value = keys.entry(key).or_insert_with(|| "dirty".to_owned());
            if all {
                "all".clone_into(value);
            } else if self.variable == "ignore" {
                "dirty".clone_into(value);
            }
        }
    }
}

impl Hardening {
    fn refuse(&mut self, entry: &Entry<'_>, why: &'static str) {
        self.refuse.get_or_insert_with(|| Refusal { key: entry.key(), why });
    }
}

/// The values of `log.diffMerges` that do not merge again.
const MERGES_PLAINLY: &[&str] =
    &["off", "none", "first-parent", "1", "separate", "m", "combined", "c", "dense-combined", "cc"];

/// A format that is git's own, or text without a placeholder that asks for a signature or starts another git.
fn plain_format(value: &str) -> bool {
    const OWN: &[&str] =
        &["oneline", "short", "medium", "full", "fuller", "reference", "email", "raw", "mboxrd"];
    OWN.contains(&value) || value.contains('%') && !value.contains('G') && !value.contains("%(")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn listing(pairs: &[(&str, &str)]) -> Vec<u8> {
        pairs.iter().flat_map(|(key, value)| format!("{key}\n{value}\0").into_bytes()).collect()
    }

    #[test]
    fn every_program_is_outweighed() {
        // contract: X1
        for (shape, value, _) in IF_PRESENT {
            let key = shape.replace('*', "A b.c=\u{e9}");
            let hardening = harden(&listing(&[(&key, "./pwn.sh")]), b"");
            assert_eq!(hardening.value_of(&key), Some(*value), "{key}");
            assert_eq!(hardening.refuse, None);
        }
        for (key, value) in ALWAYS {
            assert_eq!(harden(b"", b"").value_of(key), Some(*value));
            assert_eq!(harden(&listing(&[(key, "./pwn.sh")]), b"").value_of(key), Some(*value), "{key}");
        }
    }

    #[test]
    fn keys_are_compared_as_git_does() {
        let hardening = harden(b"DIFF.Ab.TextConv\n./x\0", b"");
        assert_eq!(hardening.value_of("diff.Ab.textconv"), Some(NO_TEXTCONV));
        // A value with line feeds, a key without a value, and a name with dots.
        let hardening = harden(b"a.b\nx\ny\0filter.a.b.clean\0core.bare\0", b"");
        assert_eq!(hardening.value_of("filter.a.b.clean"), Some(""));
        assert_eq!(hardening.refuse, None);
    }

    #[test]
    fn what_cannot_be_outweighed_is_refused() {
        for hostile in
            [&b"diff.\xff.textconv\nx\0"[..], b"hook.x.command\n./x\0", b"alias.whatchanged\n!x\0", b"junk\0"]
        {
            assert!(harden(hostile, b"").refuse.is_some(), "{:?}", String::from_utf8_lossy(hostile));
        }
        assert!(harden(b"", b"submodule.\xff.path\nx\0").refuse.is_some());
        let many: Vec<u8> = (0..3_000).flat_map(|n| format!("diff.{n}.textconv\nx\0").into_bytes()).collect();
        assert!(harden(&many, b"").refuse.is_some());
    }

    #[test]
    fn hostile_formats_are_outweighed_and_others_kept() {
        for hostile in ["%G?", "mine", "%h %GS", "%(describe)", "%+G?"] {
            assert_eq!(
                harden(&listing(&[("format.pretty", hostile)]), b"").value_of("format.pretty"),
                Some("medium")
            );
        }
        for plain in ["oneline", "%h %s", "format:%an"] {
            assert_eq!(harden(&listing(&[("format.pretty", plain)]), b"").value_of("format.pretty"), None);
        }
        for (value, expected) in [("remerge", Some("separate")), ("on", Some("separate")), ("cc", None)] {
            assert_eq!(
                harden(&listing(&[("log.diffmerges", value)]), b"").value_of("log.diffmerges"),
                expected
            );
        }
    }

    #[test]
    fn submodules_are_not_entered() {
        let hardening = harden(b"", b"submodule.a/b.path\na/b\0submodule.a/b.ignore\nnone\0");
        assert_eq!(hardening.value_of("diff.ignoresubmodules"), Some("dirty"));
        assert_eq!(hardening.value_of("submodule.a/b.ignore"), Some("dirty"));
        let hardening =
            harden(b"diff.ignoresubmodules\nall\0submodule.x.ignore\nall\0submodule.x.url\nu\0", b"");
        assert_eq!(hardening.value_of("diff.ignoresubmodules"), Some("all"));
        assert_eq!(hardening.value_of("submodule.x.ignore"), Some("all"));
        // Whichever says it: the stricter of the two would have to be known to be the one that git reads.
        let hardening = harden(b"submodule.x.ignore\nall\0", b"submodule.x.ignore\nnone\0");
        assert_eq!(hardening.value_of("submodule.x.ignore"), Some("dirty"));
    }

    #[test]
    fn places_and_files_are_reported() {
        let hardening = harden(b"core.worktree\n../../../sub\0blame.ignorerevsfile\n/etc/passwd\0", b"");
        assert_eq!(hardening.work_tree.as_deref(), Some("../../../sub"));
        assert_eq!(hardening.reads, ["/etc/passwd"]);
    }

    #[test]
    fn versions() {
        for (version, expected) in [
            ("git version 2.47.3\n", true),
            ("git version 2.31.0", true),
            ("git version 3.0.0.rc1", true),
            ("git version 2.39.5 (Apple Git-154)", true),
            ("git version 2.30.9", false),
            ("git version 1.99", false),
            ("git version ", false),
            ("", false),
        ] {
            assert_eq!(supported(version), expected, "{version}");
        }
    }

    proptest! {
        #[test]
        fn any_listing_gives_a_whole_environment(config in proptest::collection::vec(any::<u8>(), 0..200)) {
            let hardening = harden(&config, &config);
            let keys = hardening.environment.iter().filter(|(name, _)| name.starts_with("GIT_CONFIG_KEY_")).count();
            let count = hardening.environment.iter().find(|(name, _)| name == "GIT_CONFIG_COUNT").unwrap();
            prop_assert_eq!(&count.1, &keys.to_string());
            for (name, value) in &hardening.environment {
                prop_assert!(must_be_absent(name));
                prop_assert!(!name.contains(['=', '\0']) && !value.contains('\0'));
            }
        }
    }
}
