//! What every sandbox test needs: an identity to run as, a project with things worth protecting around it, and a
//! way to tell whether any of them was touched.
//!
//! Every test runs twice, each time in a process of its own: as root and as an ordinary user. Where the other
//! identity cannot be had, that half is said to be missing, and in CI it fails.
#![allow(dead_code, reason = "each test binary uses its own part")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "test support: a failure here is a failed test"
)]

pub(crate) mod table;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::future::Future;
use std::io::Read as _;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use cmdgate_executor::{Environment, Executor, ExecutorBuilder, Finished, Outcome, OutputMode, Sandbox};

/// Set in the processes that do the testing.
const CHILD: &str = "CMDGATE_TEST_IDENTITY";
/// Where the compiled helper lies.
const HELPER: &str = "CMDGATE_TEST_HELPER";
/// The ordinary user that root makes for the tests.
const USER: &str = "cmdgate-test";
/// Stands in the parent's environment and must never be seen by a command.
pub(crate) const TOKEN: &str = "s3cr3t-from-the-environment";
/// Stands in files that must never be read.
pub(crate) const SECRET: &str = "s3cr3t-from-a-file";

/// Runs the calling test's body as root and as an ordinary user.
pub(crate) fn both<F: Future<Output = ()>>(body: impl FnOnce() -> F) {
    both_with(Vec::new, body);
}

/// The same with further variables, which are worked out once, by the process that starts the two halves.
pub(crate) fn both_with<F: Future<Output = ()>>(
    variables: impl FnOnce() -> Vec<(&'static str, PathBuf)>,
    body: impl FnOnce() -> F,
) {
    if std::env::var_os(CHILD).is_some() {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        return runtime.block_on(body());
    }
    let name = std::thread::current().name().expect("libtest names its threads").to_owned();
    let exe = reachable(&std::env::current_exe().unwrap());
    let variables = variables();
    let rerun = |mut command: Command, exe: &Path, name: &str, identity: &str| {
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        rerun(command, exe, name, identity);
    };
    if is_root() {
        rerun(Command::new(&exe), &exe, &name, "root");
        rerun(as_user(), &exe, &name, "user");
    } else {
        rerun(Command::new(&exe), &exe, &name, "user");
        let sudo = Command::new("sudo").args(["-n", "true"]).stderr(Stdio::null()).status();
        if sudo.is_ok_and(|status| status.success()) {
            let mut command = Command::new("sudo");
            command.args(["-n", "--preserve-env", "--"]).arg(&exe);
            rerun(command, &exe, &name, "root");
        } else {
            assert!(std::env::var_os("CI").is_none(), "{name}: the half as root needs root or sudo");
            eprintln!("{name}: the half as root was not run");
        }
    }
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn rerun(mut command: Command, exe: &Path, name: &str, identity: &str) {
    if command.get_program() != exe {
        command.arg(exe);
    }
    let home = shared_directory().join(format!("home-{identity}"));
    if !home.exists() {
        fs::create_dir_all(&home).unwrap();
        if is_root() && identity == "user" {
            let (uid, gid) = user();
            std::os::unix::fs::chown(&home, Some(uid), Some(gid)).unwrap();
        }
    }
    let output = command
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(CHILD, identity)
        .env("HOME", &home)
        .env("SBX_TOKEN", TOKEN)
        .env("OPENAI_API_KEY", TOKEN)
        .env("TMUX", "/tmp/tmux-0/default,1,0")
        .env("SSH_AUTH_SOCK", "/tmp/agent.sock")
        .env(HELPER, compiled_helper())
        .env_remove("RUST_BACKTRACE")
        .current_dir("/")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} as {identity}: {}\n{text}", output.status);
    assert!(text.contains("1 passed"), "{name} as {identity} ran nothing:\n{text}");
    print!("as {identity}: {}", text.lines().filter(|line| line.starts_with("measured")).collect::<String>());
}

/// The number of the ordinary user, who is made when missing: programs like npm insist on an entry in the
/// user database.
fn user() -> (u32, u32) {
    static USER_IDS: OnceLock<(u32, u32)> = OnceLock::new();
    let look = || {
        let database = fs::read_to_string("/etc/passwd").unwrap();
        database.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            (fields[0] == USER).then(|| (fields[2].parse().unwrap(), fields[3].parse().unwrap()))
        })
    };
    *USER_IDS.get_or_init(|| {
        look().unwrap_or_else(|| {
            let made = ["useradd", "/usr/sbin/useradd"].iter().any(|useradd| {
                Command::new(useradd)
                    .args(["--no-create-home", "--shell", "/bin/bash", USER])
                    .status()
                    .is_ok_and(|status| status.success())
            });
            // Two test binaries may have tried at once.
            look()
                .unwrap_or_else(|| panic!("useradd {USER} {}", if made { "left no entry" } else { "failed" }))
        })
    })
}

fn as_user() -> Command {
    let (uid, gid) = user();
    let mut command = Command::new("setpriv");
    command.arg(format!("--reuid={uid}")).arg(format!("--regid={gid}"));
    command.args(["--clear-groups", "--inh-caps=-all", "--"]);
    command
}

/// A directory that both identities can reach and that is not covered by anything private in the sandbox.
fn shared_directory() -> PathBuf {
    let place = if is_root() { PathBuf::from("/srv") } else { PathBuf::from(env!("CARGO_TARGET_TMPDIR")) };
    let directory = place.join("cmdgate-tests");
    fs::create_dir_all(&directory).unwrap();
    directory
}

/// A program, where the ordinary user can execute it too.
pub(crate) fn reachable(program: &Path) -> PathBuf {
    static COPYING: Mutex<()> = Mutex::new(());
    if !is_root() {
        return program.to_owned();
    }
    let tried = as_user().arg("test").arg("-x").arg(program).status();
    if tried.is_ok_and(|status| status.success()) {
        return program.to_owned();
    }
    let _copying = COPYING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let metadata = fs::metadata(program).unwrap();
    let made = format!("{}-{}-", metadata.mtime(), metadata.mtime_nsec());
    let copy = shared_directory().join(made + program.file_name().unwrap().to_str().unwrap());
    if !copy.exists() {
        let partial = shared_directory().join(format!("partial-{}", std::process::id()));
        fs::copy(program, &partial).unwrap();
        // Of several at once the first stays: to replace it would be to change the program under those who use it.
        let flags = rustix::fs::RenameFlags::NOREPLACE;
        if rustix::fs::renameat_with(rustix::fs::CWD, &partial, rustix::fs::CWD, &copy, flags).is_err() {
            assert!(copy.exists());
            fs::remove_file(&partial).unwrap();
        }
    }
    copy
}

/// A project, a directory outside it, a home with secrets, and listeners that nobody may reach.
pub(crate) struct Fixture {
    pub(crate) base: PathBuf,
    pub(crate) project: PathBuf,
    pub(crate) outside: PathBuf,
    pub(crate) home: PathBuf,
    pub(crate) helper: PathBuf,
    sockets: Vec<(PathBuf, UnixListener)>,
    abstract_name: String,
    abstract_socket: UnixListener,
    pub(crate) tcp: TcpListener,
    pub(crate) udp: UdpSocket,
    pub(crate) host_process: Child,
    /// A descriptor of the outside directory that is not closed on exec.
    pub(crate) leaked: OwnedFd,
    host_files: Vec<PathBuf>,
    before: BTreeMap<PathBuf, String>,
}

fn git(directory: &Path, arguments: &[&str]) {
    let output = Command::new("git")
        .arg("-C")
        .arg(directory)
        .args(["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main"])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A number that nothing else on this machine uses.
pub(crate) fn unique() -> u64 {
    static COUNTER: Mutex<u64> = Mutex::new(0);
    let mut counter = COUNTER.lock().unwrap();
    *counter += 1;
    u64::from(std::process::id()) * 100 + *counter
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let place =
            if is_root() { PathBuf::from("/srv") } else { PathBuf::from(std::env::var_os("HOME").unwrap()) };
        let base = place.join(format!("cmdgate-test-{}", unique()));
        let project = base.join("project");
        let outside = base.join("outside");
        let home = base.join("home");
        for directory in [&project, &outside, &home.join(".ssh"), &home.join(".config/gh")] {
            fs::create_dir_all(directory).unwrap();
        }
        for file in [".ssh/id_test", ".npmrc", ".netrc", ".config/gh/hosts.yml"] {
            fs::write(home.join(file), format!("//registry/:_authToken={SECRET}\n")).unwrap();
        }
        fs::write(home.join(".gitconfig"), "[user]\nname = t\nemail = t@example.com\n").unwrap();
        fs::write(outside.join("victim"), "untouched\n").unwrap();

        fs::write(project.join("f"), "one\n").unwrap();
        fs::create_dir(project.join(".vscode")).unwrap();
        fs::write(project.join(".vscode/tasks.json"), "{}\n").unwrap();
        fs::write(project.join(".env"), "KEY=1\n").unwrap();
        git(&project, &["init", "-q"]);
        git(&project, &["config", "user.name", "t"]);
        git(&project, &["config", "user.email", "t@example.com"]);
        git(&project, &["add", "f"]);
        git(&project, &["commit", "-qm", "one"]);
        git(&project, &["worktree", "add", "-q", "wt"]);
        let helper = project.join("sc");
        fs::copy(compiled_helper(), &helper).unwrap();

        let mut host_files = vec![
            PathBuf::from(format!("/tmp/sbx_host_tmp-{}", unique())),
            PathBuf::from(format!("/dev/shm/sbx_host-{}", unique())),
        ];
        for file in &host_files {
            fs::write(file, SECRET).unwrap();
        }
        let mut places = vec![
            outside.join("u.sock"),
            home.join(".sbx.sock"),
            project.join("w.sock"),
            PathBuf::from(format!("/tmp/sbx-{}.sock", unique())),
        ];
        if is_root() {
            places.push(PathBuf::from(format!("/run/sbx-{}.sock", unique())));
        }
        let sockets: Vec<(PathBuf, UnixListener)> = places
            .into_iter()
            .map(|path| {
                let listener = UnixListener::bind(&path).unwrap();
                listener.set_nonblocking(true).unwrap();
                (path, listener)
            })
            .collect();
        host_files.extend(sockets.iter().map(|(path, _)| path.clone()));
        let abstract_name = format!("sbx-{}", unique());
        let address =
            <std::os::unix::net::SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(
                &abstract_name,
            )
            .unwrap();
        let abstract_socket = UnixListener::bind_addr(&address).unwrap();
        abstract_socket.set_nonblocking(true).unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        tcp.set_nonblocking(true).unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        udp.set_nonblocking(true).unwrap();
        let host_process = Command::new("sleep").arg("600").spawn().unwrap();
        let leaked =
            rustix::fs::open(&outside, rustix::fs::OFlags::DIRECTORY, rustix::fs::Mode::empty()).unwrap();

        let mut fixture = Self {
            base,
            project,
            outside,
            home,
            helper,
            sockets,
            abstract_name,
            abstract_socket,
            tcp,
            udp,
            host_process,
            leaked,
            host_files,
            before: BTreeMap::new(),
        };
        fixture.settle();
        fixture
    }

    /// Takes the present state of everything outside as the one to compare with.
    pub(crate) fn settle(&mut self) {
        self.before = self.state();
    }

    /// What a command is told about the things around it.
    pub(crate) fn variables(&self) -> Vec<(&'static str, OsString)> {
        let socket = |index: usize| self.sockets.get(index).map(|(path, _)| path.clone()).unwrap_or_default();
        vec![
            ("HOME", self.home.clone().into()),
            ("OUT", self.outside.clone().into()),
            ("WS", self.project.clone().into()),
            ("SC", self.helper.clone().into()),
            ("HOSTPID", self.host_process.id().to_string().into()),
            ("LEAKED", self.leaked.as_raw_fd().to_string().into()),
            ("TCP", self.tcp.local_addr().unwrap().port().to_string().into()),
            ("UDP", self.udp.local_addr().unwrap().port().to_string().into()),
            ("ABSTRACT", self.abstract_name.clone().into()),
            ("TMPSOCK", socket(3).into()),
            ("RUNSOCK", socket(4).into()),
            ("HOSTTMP", self.host_files[0].clone().into()),
            ("HOSTSHM", self.host_files[1].clone().into()),
        ]
    }

    pub(crate) fn builder(&self, sandbox: Sandbox) -> ExecutorBuilder {
        let environment = self
            .variables()
            .into_iter()
            .fold(Environment::allowlist(), |environment, (name, value)| environment.set(name, value));
        Executor::builder(&self.project)
            .sandbox(sandbox)
            .homes(vec![self.home.clone()])
            .environment(environment)
            .output(OutputMode { max_chars: 200_000, max_lines: None, ..OutputMode::default() })
            .timeout(Duration::from_secs(100))
    }

    pub(crate) fn executor(&self, sandbox: Sandbox) -> Executor {
        self.builder(sandbox).build().unwrap()
    }

    /// Runs one shell command under a sandbox.
    pub(crate) async fn run(&self, sandbox: Sandbox, command: impl AsRef<OsStr>) -> Finished {
        self.executor(sandbox).shell(command).run().await.unwrap()
    }

    /// Everything around the project that a command could have changed, and what must not change inside it.
    fn state(&self) -> BTreeMap<PathBuf, String> {
        let mut state = BTreeMap::new();
        for place in [
            &self.outside,
            &self.home,
            &self.project.join(".git/hooks"),
            &self.project.join(".git/config"),
            &self.project.join(".vscode"),
            &self.project.join(".env"),
        ] {
            describe(place, &mut state);
        }
        // The base itself: nothing may appear beside the project, and the project must not go away.
        for entry in fs::read_dir(&self.base).unwrap().flatten() {
            state.insert(entry.path(), "there".to_owned());
        }
        for setting in ["/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname"] {
            state.insert(setting.into(), fs::read_to_string(setting).unwrap_or_default());
        }
        for absent in ["/etc/sbx_test", "/sbx_test"] {
            state.insert(absent.into(), Path::new(absent).exists().to_string());
        }
        state
    }

    /// What was reached or changed that must not be; empty when all is well.
    pub(crate) fn damage(&mut self) -> Vec<String> {
        let after = self.state();
        let mut damage = Vec::new();
        for (path, now) in &after {
            match self.before.get(path) {
                None => damage.push(format!("{} appeared", path.display())),
                Some(then) if then != now => {
                    damage.push(format!("{} changed: {then:?} to {now:?}", path.display()));
                }
                Some(_) => {}
            }
        }
        damage.extend(
            self.before
                .keys()
                .filter(|path| !after.contains_key(*path))
                .map(|path| format!("{} went away", path.display())),
        );
        for (path, listener) in &self.sockets {
            if listener.accept().is_ok() {
                damage.push(format!("the socket {} was reached", path.display()));
            }
        }
        if self.abstract_socket.accept().is_ok() {
            damage.push("the abstract socket was reached".to_owned());
        }
        if self.tcp.accept().is_ok() {
            damage.push("the TCP listener was reached".to_owned());
        }
        if self.udp.recv(&mut [0; 8]).is_ok() {
            damage.push("the UDP socket was reached".to_owned());
        }
        if let Some(status) = self.host_process.try_wait().unwrap() {
            damage.push(format!("the host's process was ended: {status}"));
        }
        damage
    }

    /// What was reached, changed, read or let through that must not be; empty when all is well.
    pub(crate) fn harm(&mut self, finished: &Finished) -> Vec<String> {
        self.harm_in(&all_text(finished))
    }

    /// The same by the text of both streams.
    pub(crate) fn harm_in(&mut self, text: &str) -> Vec<String> {
        let mut harm = self.damage();
        if [TOKEN, SECRET].iter().any(|secret| text.contains(secret)) {
            harm.push("a secret was read".to_owned());
        }
        if text.contains("SUCCEEDED") {
            harm.push("something succeeded that must not".to_owned());
        }
        harm
    }

    /// Fails when there is any harm.
    pub(crate) fn unharmed(&mut self, finished: &Finished) {
        let harm = self.harm(finished);
        assert!(harm.is_empty(), "{harm:#?}\n{}", shown(finished));
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = self.host_process.kill();
        let _ = self.host_process.wait();
        for file in &self.host_files {
            let _ = fs::remove_file(file);
        }
        if std::thread::panicking() && std::env::var_os("CMDGATE_TEST_KEEP").is_some() {
            return;
        }
        let _ = Command::new("chmod").args(["-R", "u+rwX"]).arg(&self.base).stderr(Stdio::null()).status();
        let _ = fs::remove_dir_all(&self.base);
    }
}

fn describe(path: &Path, state: &mut BTreeMap<PathBuf, String>) {
    let Ok(metadata) = fs::symlink_metadata(path) else { return };
    let mut text = format!("{:o} {}", metadata.permissions().mode(), metadata.uid());
    if metadata.is_file() {
        let mut content = Vec::new();
        if let Ok(mut file) = fs::File::open(path) {
            let _ = file.read_to_end(&mut content);
        }
        text += &String::from_utf8_lossy(&content);
    }
    state.insert(path.to_owned(), text);
    if metadata.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            describe(&entry.path(), state);
        }
    }
}

/// The helper that makes single system calls, compiled once by the process that starts the two halves.
fn compiled_helper() -> PathBuf {
    static COMPILED: OnceLock<PathBuf> = OnceLock::new();
    if let Some(helper) = std::env::var_os(HELPER) {
        return PathBuf::from(helper);
    }
    COMPILED
        .get_or_init(|| {
            let directory = shared_directory();
            let text = include_str!("syscalls.c");
            let sum = text.bytes().fold(5381_u64, |sum, byte| sum.wrapping_mul(33) ^ u64::from(byte));
            let output = directory.join(format!("sc-{sum:x}"));
            if !output.exists() {
                let source = directory.join(format!("sc-{}.c", std::process::id()));
                let partial = directory.join(format!("sc-{}", std::process::id()));
                fs::write(&source, text).unwrap();
                let compiled = Command::new("cc")
                    .arg("-pthread")
                    .arg("-o")
                    .arg(&partial)
                    .arg(&source)
                    .output()
                    .expect("cc is needed");
                assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
                fs::rename(&partial, &output).unwrap();
                fs::remove_file(source).unwrap();
            }
            output
        })
        .clone()
}

/// A finished run as text, for messages.
pub(crate) fn shown(finished: &Finished) -> String {
    format!(
        "outcome: {:?}\nstdout: {}{}\nstderr: {}{}\ndenials: {:#?}",
        finished.outcome,
        finished.stdout.head,
        finished.stdout.tail,
        finished.stderr.head,
        finished.stderr.tail,
        finished.denials
    )
}

pub(crate) fn all_text(finished: &Finished) -> String {
    [&finished.stdout.head, &finished.stdout.tail, &finished.stderr.head, &finished.stderr.tail]
        .into_iter()
        .cloned()
        .collect()
}

pub(crate) fn stdout(finished: &Finished) -> &str {
    &finished.stdout.head
}

/// Fails unless the command ended with 0 and its output holds every part.
pub(crate) fn worked(finished: &Finished, parts: &[&str]) {
    assert_eq!(finished.outcome, Outcome::Exited(0), "{}", shown(finished));
    for part in parts {
        assert!(stdout(finished).contains(part), "{part:?} is missing\n{}", shown(finished));
    }
}

/// Processes whose command line or environment holds `mark`.
pub(crate) fn processes_with(mark: &str) -> Vec<u32> {
    let own = std::process::id();
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|&pid| pid != own)
        .filter(|pid| {
            let has = |file: &str| {
                fs::read(format!("/proc/{pid}/{file}"))
                    .is_ok_and(|text| String::from_utf8_lossy(&text).contains(mark))
            };
            let zombie =
                fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "));
            !zombie && (has("cmdline") || has("environ"))
        })
        .collect()
}

/// Waits until a condition holds; false when it does not within a generous time.
pub(crate) async fn eventually(mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + Duration::from_secs(20);
    while Instant::now() < deadline {
        if condition() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    condition()
}
