//! Git under hostile configuration: what the classifier calls safe starts nothing but git, writes nothing and reaches no
//! network, once the environment of [`cmdgate_classifier::git_config::harden`] is in place.
//!
//! Everything is watched by the kernel (`strace`). Each hazard is first shown to be real: without the environment the
//! same command is seen to do harm, so that a watcher that sees nothing cannot pass. Needs Linux, `git`, `strace`, `bash`
//! and `script`, and fails without them.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]

use cmdgate_classifier::git_config::{FIXED, Hardening, harden, must_be_absent, supported};
use cmdgate_classifier::{Classification, Condition, Context, Grammar, Verdict, classify};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

// ---- places --------------------------------------------------------------------------------------------------------

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

/// A fresh directory of this test run.
fn scratch(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("git-hardening-{}", std::process::id()))
        .join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    path
}

/// A copy of the fixture: `proj` is the project, `home` the home directory, `secret.txt` and `outside` lie outside.
struct Place {
    base: PathBuf,
}

impl Place {
    fn new(name: &str) -> Self {
        static BASE: OnceLock<PathBuf> = OnceLock::new();
        let template = BASE.get_or_init(|| {
            let base = scratch("template");
            let built = Command::new("bash")
                .arg(workspace().join("tests/data/make-fixture.sh"))
                .arg(&base)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .expect("bash and git are needed to build the fixture");
            assert!(built.success(), "the fixture could not be built");
            base
        });
        let base = scratch(name);
        let copied = Command::new("cp").arg("-a").arg(template).arg(&base).status().unwrap();
        assert!(copied.success());
        let place = Self { base };
        // The programs that must not run leave a mark at a fixed place.
        let pwn = place.project().join("pwn.sh");
        let text = std::fs::read_to_string(&pwn).unwrap();
        std::fs::write(&pwn, place.here(&text)).unwrap();
        place
    }

    fn project(&self) -> PathBuf {
        self.base.join("proj")
    }

    /// The case sets assume the fixture at `/w`.
    fn here(&self, text: &str) -> String {
        text.replace("/w/", &format!("{}/", self.base.display()))
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.project())
            .env_clear()
            .env("PATH", std::env::var("PATH").unwrap())
            .env("HOME", self.base.join("home"))
            .env("LC_ALL", "C.UTF-8")
            .env("TERM", "xterm")
            .stdin(Stdio::null());
        command
    }

    fn set_up(&self, script: &str) {
        let done = self
            .command("bash")
            .arg("-c")
            .arg(self.here(script))
            .env("GIT_AUTHOR_DATE", "2024-01-02T03:04:05Z")
            .env("GIT_COMMITTER_DATE", "2024-01-02T03:04:05Z")
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success() || errors.trim().is_empty(), "set-up failed: {script}\n{errors}");
        let _ = std::fs::remove_file(self.base.join("CANARY"));
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.base);
    }
}

// ---- watching ------------------------------------------------------------------------------------------------------

/// How a command is run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Output {
    Pipe,
    /// A pager starts only on a terminal.
    Terminal,
}

const TRACED: &str = "execve,execveat,connect,sendto,open,openat,openat2,creat,unlink,unlinkat,rename,renameat,renameat2,\
                      mkdir,mkdirat,rmdir,link,linkat,symlink,symlinkat,truncate,ftruncate,chmod,fchmod,fchmodat,utimensat";

/// Runs `words` under the kernel's eye and returns what it did that reading git does not do.
fn harm(
    place: &Place,
    words: &[&str],
    environment: &[(String, String)],
    output: Output,
    directory: &Path,
) -> Vec<String> {
    let before = snapshot(&place.base);
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let trace = scratch(&format!("trace-{}", RUNS.fetch_add(1, Ordering::Relaxed)));
    std::fs::create_dir_all(&trace).unwrap();
    let mut command = place.command("strace");
    command.args(["-ff", "-qq", "-s", "300", "-e", &format!("trace={TRACED}"), "-o"]).arg(trace.join("t"));
    // What waits for ever when nothing holds it back is ended, with all that it started.
    command.args(["timeout", "10"]);
    match output {
        Output::Pipe => command.args(words),
        Output::Terminal => command.args(["script", "-qefc", words.last().unwrap(), "/dev/null"]),
    };
    for (name, value) in environment {
        command.env(name, value);
    }
    let done = command
        .current_dir(directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .expect("strace is needed to watch git");
    let mut found = Vec::new();
    let mut programs = 0;
    for entry in std::fs::read_dir(&trace).unwrap() {
        let text = std::fs::read(entry.unwrap().path()).unwrap();
        for line in String::from_utf8_lossy(&text).lines() {
            programs += usize::from(line.starts_with("execve"));
            if let Some(what) = harmful(line, place, output) {
                found.push(what);
            }
        }
    }
    assert!(programs > 0, "strace saw nothing: {}", String::from_utf8_lossy(&done.stderr));
    let _ = std::fs::remove_dir_all(&trace);
    let after = snapshot(&place.base);
    for (path, state) in &after {
        if before.get(path) != Some(state) {
            found.push(format!("changed {}", path.display()));
        }
    }
    found.extend(
        before
            .keys()
            .filter(|path| !after.contains_key(*path))
            .map(|path| format!("removed {}", path.display())),
    );
    found
}

/// Git hands text to a diff program or converter in a temporary file, and has written it before it finds that the program
/// cannot be run. Like the temporary files of `sort`, it is gone at the end, and lies in the run's own `/tmp`.
fn is_temporary(path: &str) -> bool {
    path.strip_prefix("/tmp/").is_some_and(|rest| rest.starts_with("git-blob-"))
}

/// Says what a traced call did, if it is not what git does when it reads.
fn harmful(line: &str, place: &Place, output: Output) -> Option<String> {
    let call = line.split('(').next()?;
    let failed = line.rsplit(" = ").next()?.starts_with('-');
    let path = line.split('"').nth(1).unwrap_or("");
    if is_temporary(path) && !call.starts_with("exec") {
        return None;
    }
    match call {
        "execve" | "execveat" => {
            // A name below the null device can never be a program.
            let own = is_own_program(path, output)
                || failed && (path.starts_with("/dev/null/") || !path.starts_with('.'));
            (!own).then(|| format!("ran {path}"))
        }
        "connect" | "sendto" => {
            let local = line.contains("sa_family=AF_UNIX") && line.contains("/nscd/")
                || call == "sendto" && !line.contains("sa_family");
            (!local).then(|| format!("reached {line}"))
        }
        "open" | "openat" | "openat2" | "creat" => {
            let writes = call == "creat"
                || ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"].iter().any(|flag| line.contains(flag));
            if writes && !failed && !path.starts_with("/dev/") {
                return Some(format!("opened for writing {path}"));
            }
            let outside = ["secret.txt", "/outside/", "id_rsa"].iter().any(|part| path.contains(part));
            (outside && !failed && !path.starts_with(&*place.project().to_string_lossy()))
                .then(|| format!("read {path}"))
        }
        _ => (!failed && !path.starts_with("/dev/")).then(|| format!("{call} {path}")),
    }
}

/// Git, its own helpers, and what this test runs them with.
fn is_own_program(path: &str, output: Output) -> bool {
    static GIT: OnceLock<(PathBuf, PathBuf)> = OnceLock::new();
    let (git, core) = GIT.get_or_init(|| {
        let found = Command::new("bash").args(["-c", "command -v git; git --exec-path"]).output().unwrap();
        let text = String::from_utf8(found.stdout).unwrap();
        let mut lines = text.lines().map(PathBuf::from);
        (lines.next().expect("git is needed"), lines.next().expect("git is needed"))
    });
    let path = Path::new(path);
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
    let system =
        path.starts_with("/bin") || path.starts_with("/usr/bin") || path.starts_with("/usr/local/bin");
    path == git
        || path.starts_with(core)
        || system && matches!(name, "bash" | "timeout" | "xargs" | "cat")
        || system && output == Output::Terminal && matches!(name, "script" | "sh" | "dash")
        // `git submodule` and, in older gits, `git bisect` are shell scripts of git's own.
        || system && matches!(name, "sh" | "basename" | "sed" | "uname" | "git" | "gettext" | "envsubst")
}

type State = (u64, u32, i64, i64, u64);

fn snapshot(base: &Path) -> BTreeMap<PathBuf, State> {
    fn walk(directory: &Path, all: &mut BTreeMap<PathBuf, State>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            if meta.is_dir() {
                walk(&path, all);
            }
            all.insert(path, (meta.len(), meta.mode(), meta.mtime(), meta.mtime_nsec(), meta.ino()));
        }
    }
    let mut all = BTreeMap::new();
    walk(base, &mut all);
    all
}

// ---- providing the condition -----------------------------------------------------------------------------------------

/// What whoever runs the command does: asks git for its configuration in every directory where it will run. `None` when
/// the answer is that git must not be run without asking.
fn provide(place: &Place, judged: &Classification<'_>) -> Option<Vec<(String, String)>> {
    let mut environment = fixed();
    for id in &judged.effects.repositories {
        let directory = place.project().join(judged.effects.directory(*id));
        if directory.is_dir() {
            assert_eq!(environment, fixed(), "no case here runs git in several repositories");
            environment = hardening_of(place, &directory)?.environment;
        }
    }
    Some(environment)
}

fn fixed() -> Vec<(String, String)> {
    FIXED.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn hardening_of(place: &Place, directory: &Path) -> Option<Hardening> {
    let fixed = fixed();
    let list = |args: &[&str]| {
        let words: Vec<&str> =
            ["git", "config", "--list", "-z"].into_iter().chain(args.iter().copied()).collect();
        let done = harm(place, &words, &fixed, Output::Pipe, directory);
        assert!(done.is_empty(), "listing the configuration itself does harm: {done:?}");
        let mut command = place.command("git");
        command
            .current_dir(directory)
            .args(words.iter().skip(1))
            .envs(fixed.iter().map(|(name, value)| (name, value)));
        command.output().unwrap().stdout
    };
    let config = list(&["--includes"]);
    let mut modules = Vec::new();
    if directory.join(".gitmodules").exists() {
        modules = list(&["--no-includes", "--file", ".gitmodules"]);
    }
    let hardening = harden(&config, &modules);
    if hardening.refuse.is_some() || !hardening.reads.is_empty() {
        return None;
    }
    if let Some(work_tree) = &hardening.work_tree {
        // The repository's own directory is the one that was entered in all the cases here.
        let real = directory.join(work_tree).canonicalize().ok()?;
        if !real.starts_with(place.project()) {
            return None;
        }
    }
    Some(hardening)
}

/// What became of one command.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    /// The classifier holds it back.
    HeldBack,
    /// The condition is not provided: a person would be asked.
    Asked,
    /// It ran and did no harm.
    Clean,
    Harm(Vec<String>),
}

fn run_hardened(place: &Place, command: &str, output: Output) -> Ended {
    let root = place.project().to_string_lossy().into_owned();
    let command = place.here(command);
    let context = Context::new(Grammar::Sequence).with_root(&root);
    let judged = classify(&command, &context);
    if judged.verdict() == Verdict::NeedsReview {
        return Ended::HeldBack;
    }
    assert!(judged.conditions.contains(Condition::GitHardened), "{command}");
    let Some(environment) = provide(place, &judged) else {
        return Ended::Asked;
    };
    let found = harm(place, &["bash", "-c", &command], &environment, output, &place.project());
    if found.is_empty() { Ended::Clean } else { Ended::Harm(found) }
}

fn run_bare(place: &Place, command: &str, output: Output) -> Vec<String> {
    harm(place, &["bash", "-c", &place.here(command)], &[], output, &place.project())
}

// ---- the tests -------------------------------------------------------------------------------------------------------

#[test]
fn the_git_on_this_machine_can_be_hardened() {
    let version = Command::new("git").arg("version").output().expect("git is needed").stdout;
    assert!(supported(&String::from_utf8_lossy(&version)));
}

/// Rows of the adversarial set whose text is ordinary, and whose hazard lies in the repository.
#[test]
fn adversarial_configurations_do_nothing() {
    // contract: X1, X3
    let text = std::fs::read_to_string(workspace().join("tests/data/adversarial.jsonl")).unwrap();
    let (mut clean, mut asked, mut held, mut failures) = (0, 0, 0, String::new());
    for line in text.lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let field = |name: &str| row[name].as_str().unwrap_or("");
        if field("program") != "git" || !matches!(field("tier"), "context" | "cautious") {
            continue;
        }
        let output = if field("setup").contains("core.pager") { Output::Terminal } else { Output::Pipe };
        let place = Place::new(field("id"));
        place.set_up(field("setup"));
        match run_hardened(&place, field("command"), output) {
            Ended::HeldBack => held += 1,
            Ended::Asked => asked += 1,
            Ended::Clean => {
                clean += 1;
                if run_bare(&place, field("command"), output).is_empty() {
                    let _ = writeln!(
                        failures,
                        "{}: the hazard of `{}` is not real here",
                        field("id"),
                        field("command")
                    );
                }
            }
            Ended::Harm(found) => {
                let _ = writeln!(failures, "{}: `{}` {found:?}", field("id"), field("command"));
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
    assert!(clean >= 20, "only {clean} rows ran; {asked} asked, {held} held back");
}

/// Everything at once: each key that names a program, all hooks, hostile attributes, a submodule with a configuration of
/// its own, a signed commit, an index that is stale, trace files, included configuration, files outside.
const HOSTILE: &str = r#"
P=$PWD/pwn.sh
printf '#!/bin/sh\necho "[GNUPG:] SIG_CREATED D" >&2\ncat >/dev/null\necho -----BEGIN PGP SIGNATURE-----\necho x\necho -----END PGP SIGNATURE-----\n' > fakegpg
chmod +x fakegpg
git init -q s
git -C s commit -q --allow-empty -m x
echo x > s/x.txt; git -C s add x.txt; git -C s commit -q -m y
printf '[submodule "s"]\n\tpath = s\n\turl = ./s\n\tignore = none\n' > .gitmodules
git add s .gitmodules 2>/dev/null
git -c gpg.program=$PWD/fakegpg commit -S -q -m signed
git stash -q 2>/dev/null; git checkout -q -b z HEAD~1; echo q >> b.txt; git commit -qam z; git checkout -q main; git merge -q -s ours z -m merged
git bisect start -q HEAD HEAD~2 >/dev/null; git checkout -q main
git notes add -m note HEAD
git bundle create -q b.bundle main
git remote add origin git://127.0.0.1/x
git update-ref refs/remotes/origin/main main
for key in core.fsmonitor core.pager pager.log pager.diff pager.branch pager.config core.editor sequence.editor core.sshCommand \
  core.gitProxy core.askPass core.alternateRefsCommand credential.helper gpg.program gpg.ssh.program gpg.x509.program \
  filter.f.clean filter.f.smudge merge.m.driver trailer.x.command interactive.diffFilter tar.x.command remote.origin.uploadpack \
  difftool.t.cmd mergetool.t.cmd browser.b.cmd uploadpack.packObjectsHook; do
  git config "$key" "$P"
done
git config filter.f.required true; git config merge.default m
git config log.showSignature true; git config format.pretty '%h %G?'; git config pretty.mine '%G?'
git config diff.ignoreSubmodules none; git config status.submoduleSummary true; git config submodule.recurse true
git config diff.submodule diff; git config submodule.s.ignore none; git config log.diffMerges remerge
git config core.excludesFile ../secret.txt; git config mailmap.file ../secret.txt
git config diff.orderFile ../secret.txt; git config core.untrackedCache true; git config alias.status "!$P"; git config alias.x "!$P"
git config branch.sort signature; git config tag.sort signature; git config help.autoCorrect immediate
git config --global trace2.normalTarget $HOME/../trace.log; git config --global trace2.eventTarget $HOME/../event.log
printf '[core]\n\tfsmonitor = %s\n' "$P" > .git/more; git config include.path more
(cd s; git config core.fsmonitor "$P"; git config filter.g.clean "$P"; git config diff.external "$P"; echo '* filter=g' > .git/info/attributes
 cp "$P" .git/hooks/post-index-change; touch x.txt)
echo '* filter=f merge=m' > .git/info/attributes
for hook in post-index-change pre-commit post-checkout reference-transaction pre-auto-gc fsmonitor-watchman post-rewrite; do cp "$P" .git/hooks/$hook; done
echo changed >> src/main.py
find . -name '*.txt' -not -path './.git/*' -exec touch {} +
"#;

/// Beside all that: what makes git hand text to programs.
const DIFF_PROGRAMS: &str = r#"
git config diff.external $PWD/pwn.sh; git config diff.t.command $PWD/pwn.sh
git config diff.t.textconv $PWD/pwn.sh; git config diff.t.cachetextconv true
echo '* filter=f merge=m diff=t' > .git/info/attributes
"#;

/// Beside all that: a partial clone that lacks an object.
const PARTIAL_CLONE: &str = r#"
git config core.repositoryformatversion 1; git config extensions.partialClone origin; git config remote.origin.promisor true
B=$(GIT_NO_LAZY_FETCH=1 git -c core.fsmonitor= rev-parse v1.0:b.txt); rm -f .git/objects/${B:0:2}/${B:2}
"#;

/// The safe commands of the classifier's own cases.
fn safe_commands() -> Vec<String> {
    let text = std::fs::read_to_string(workspace().join("crates/classifier/cases/git.case")).unwrap();
    text.lines().filter_map(|line| line.strip_prefix("safe ")).map(str::to_owned).collect()
}

fn battery(name: &str, scripts: &[&str]) {
    let place = Place::new(name);
    for script in scripts {
        place.set_up(script);
    }
    let root = place.project().to_string_lossy().into_owned();
    let (mut ran, mut failures) = (0, String::new());
    let mut known: BTreeMap<PathBuf, Vec<(String, String)>> = BTreeMap::new();
    for command in safe_commands() {
        let command = command.replace("/home/user/project", &root);
        let judged = classify(&command, &Context::new(Grammar::Sequence).with_root(&root));
        assert_eq!(judged.verdict(), Verdict::Safe, "{command}");
        let mut environment = fixed();
        for id in &judged.effects.repositories {
            let directory = place.project().join(judged.effects.directory(*id));
            if directory.is_dir() {
                let provided = known.entry(directory.clone()).or_insert_with(|| {
                    hardening_of(&place, &directory)
                        .expect("this configuration can be outweighed")
                        .environment
                });
                environment.clone_from(provided);
            }
        }
        let found = harm(&place, &["bash", "-c", &command], &environment, Output::Pipe, &place.project());
        ran += 1;
        if !found.is_empty() {
            let _ = writeln!(failures, "`{command}` {found:?}");
        }
    }
    assert!(failures.is_empty(), "{name}:\n{failures}");
    assert!(ran > 100, "only {ran} commands ran");
    // The repository is as hostile as it looks.
    for command in ["git status", "git diff", "git log -1 -p", "git ls-files -m", "git branch"] {
        assert!(!run_bare(&place, command, Output::Pipe).is_empty(), "{name}: `{command}` does no harm here");
    }
}

#[test]
fn every_safe_command_is_clean_in_a_hostile_repository() {
    // contract: X1, X3
    battery("hostile", &[HOSTILE]);
}

#[test]
fn every_safe_command_is_clean_where_diff_programs_are_configured() {
    // contract: X1, X3
    battery("diff-programs", &[HOSTILE, DIFF_PROGRAMS]);
}

#[test]
fn every_safe_command_is_clean_in_a_partial_clone() {
    // contract: X1, X3
    battery("partial-clone", &[HOSTILE, PARTIAL_CLONE]);
}

#[test]
fn what_cannot_be_outweighed_is_asked_about() {
    // contract: X1
    for (name, script) in [
        ("hook", "git config hook.x.command ./pwn.sh; git config hook.x.event post-index-change"),
        ("alias", "git config alias.whatchanged '!./pwn.sh'"),
        ("work-tree", "git config core.worktree ../../outside"),
        ("ignore-revs", "git config blame.ignoreRevsFile ../secret.txt"),
    ] {
        let place = Place::new(name);
        place.set_up(script);
        assert_eq!(run_hardened(&place, "git blame a.txt", Output::Pipe), Ended::Asked, "{name}");
    }
}

#[test]
fn inherited_variables_that_matter_are_removed() {
    // contract: X1, S19
    for name in [
        "GIT_DIR",
        "GIT_EXTERNAL_DIFF",
        "GIT_CONFIG_PARAMETERS",
        "GIT_TRACE",
        "GIT_SSH_COMMAND",
        "GIT_EXEC_PATH",
    ] {
        assert!(must_be_absent(name));
    }
}
