//! Whether the sandbox holds on this machine: the very command line that commands will get, run once with a
//! canary inside.
//!
//! The canary must be able to write what it may, must fail to write what it may not, and looks at itself:
//! capabilities, filters, process number, interfaces, and every mount that can be written. The answer is remembered
//! per binary (device, inode, size, times of change) and rung for as long as this process lives, and [`kept`] for the
//! next one where the caller says where.

pub(crate) mod kept;

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::error::{ExecError, Stage};
use crate::find::Binary;
use crate::output::{Keep, OutputMode};
use crate::plan::{self, Mount, Plan};
use crate::process::{self, Hold, Launch};
use crate::sandbox::bwrap::{self, Descriptors, Features};
use crate::sandbox::remedy::{self, Facts};
use crate::sandbox::{PrivateTmp, Rung, Sandbox, seccomp};
use crate::session::Session;
use crate::supervise::{self, Captures, Control, End, Output};
use crate::view::HostView;
use kept::Situation;

/// A bubblewrap that has been shown to hold.
#[derive(Debug, Clone)]
pub(crate) struct Ready {
    pub(crate) binary: Binary,
    pub(crate) version: String,
    pub(crate) features: Features,
    /// Whether another process has shown it.
    pub(crate) recalled: bool,
}

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question<'a> {
    pub(crate) binary: &'a Binary,
    /// Nothing below it will do.
    pub(crate) floor: Rung,
    pub(crate) session: &'a Session,
    pub(crate) homes: &'a [PathBuf],
    /// Where answers are kept for other processes.
    pub(crate) kept: Option<&'a Path>,
}

impl Question<'_> {
    /// Where the answer is kept, and under which circumstances it counts.
    fn keeping(&self) -> Option<(&Path, Situation)> {
        Some((self.kept?, Situation::gather(self.binary, self.homes)?))
    }
}

/// Longer than any healthy machine needs, so that a loaded one does not fail.
const LIMIT: Duration = Duration::from_secs(30);

type Known = Mutex<HashMap<Binary, Ready>>;

fn known() -> &'static Known {
    static KNOWN: OnceLock<Known> = OnceLock::new();
    KNOWN.get_or_init(Known::default)
}

/// Finds the highest rung that holds, not below the floor, and remembers it.
pub(crate) async fn ready(question: Question<'_>) -> Result<Ready, ExecError> {
    // Held throughout, so that twenty-four commands at once make one canary.
    let mut known = known().lock().await;
    if let Some(ready) = known.get(question.binary).filter(|ready| ready.features.rung >= question.floor) {
        return Ok(ready.clone());
    }
    let keeping = question.keeping();
    let recalled =
        keeping.as_ref().and_then(|(place, situation)| kept::recall(place, situation, question.binary));
    if let Some(ready) = recalled.filter(|ready| ready.features.rung >= question.floor) {
        known.insert(question.binary.clone(), ready.clone());
        return Ok(ready);
    }
    let ready = examine(question).await?;
    if let Some((place, situation)) = &keeping {
        kept::keep(place, situation, &ready);
    }
    known.insert(question.binary.clone(), ready.clone());
    Ok(ready)
}

/// The same, forgetting what was remembered and kept.
pub(crate) async fn anew(question: Question<'_>) -> Result<Ready, ExecError> {
    known().lock().await.remove(question.binary);
    if let Some((place, situation)) = question.keeping() {
        kept::drop_kept(place, &situation);
    }
    ready(question).await
}

async fn examine(question: Question<'_>) -> Result<Ready, ExecError> {
    let Question { binary, floor, session, homes, .. } = question;
    let facts = Facts::gather(&binary.path);
    let version = ask(binary, "--version").await?.trim().trim_start_matches("bubblewrap ").to_owned();
    let help = ask(binary, "--help").await?;
    let has = |option: &str| help.split_whitespace().any(|word| word == option);
    for needed in
        ["--add-seccomp-fd", "--json-status-fd", "--block-fd", "--perms", "--remount-ro", "--die-with-parent"]
    {
        if !has(needed) {
            return Err(ExecError::SandboxUnavailable {
                stage: Stage::SetUp,
                text: format!("bubblewrap {version} does not know {needed}"),
                remedy: remedy::set_up("Unknown option", &facts),
            });
        }
    }
    let mut first = None;
    for rung in [Rung::Full, Rung::Reduced, Rung::SharedProc] {
        if rung < floor || (rung == Rung::Full && (binary.set_id || !has("--disable-userns"))) {
            continue;
        }
        let features = Features { rung, size: has("--size") && !binary.set_id, root: facts.root };
        let mut shown = canary(binary, features, session, homes, &facts).await;
        // A file that goes away between the plan and the mounts is not the sandbox's fault.
        if matches!(shown, Err(ExecError::SandboxUnavailable { stage: Stage::SetUp, .. })) {
            shown = canary(binary, features, session, homes, &facts).await;
        }
        match shown {
            Ok(()) => return Ok(Ready { binary: binary.clone(), version, features, recalled: false }),
            // The canary having come up and shown a hole is not a reason to try with less.
            Err(error @ ExecError::SandboxUnavailable { stage: Stage::Canary, .. }) => return Err(error),
            Err(error) => first = Some(first.unwrap_or(error)),
        }
    }
    Err(first.unwrap_or_else(|| ExecError::SandboxUnavailable {
        stage: Stage::SetUp,
        text: format!("bubblewrap {version} is set-user-id or too old for the rung {}", floor.name()),
        remedy: remedy::install(&facts),
    }))
}

/// What bubblewrap prints about itself.
async fn ask(binary: &Binary, option: &str) -> Result<String, ExecError> {
    let failed = |text: String| ExecError::SandboxUnavailable {
        stage: Stage::Start,
        text,
        remedy: remedy::install(&Facts::gather(&binary.path)),
    };
    let start = async {
        let (out_read, out_write) = process::pipe()?;
        let (err_read, err_write) = process::pipe()?;
        let launch = Launch {
            program: binary.path.clone(),
            arguments: vec![option.into()],
            environment: Vec::new(),
            directory: PathBuf::from("/"),
            streams: [process::null()?, out_write, err_write],
            keep: Vec::new(),
            groups: Vec::new(),
            resources: Vec::new(),
            hold: None,
            tree: None,
            session: false,
            terminal: false,
            outlives: false,
        };
        let captures = Arc::new(Captures::new(&OutputMode {
            keep: Keep::Head,
            max_chars: 65_536,
            max_lines: None,
            ..OutputMode::default()
        }));
        let output = Output::new(out_read, err_read, captures.clone())?;
        let ended = supervise::simple(launch, output, LIMIT).await?;
        io::Result::Ok((ended, captures))
    };
    let (status, captures) =
        start.await.map_err(|error| failed(format!("{}: {error}", binary.path.display())))?;
    let text = captures.stdout().snapshot(Keep::Head).head + &captures.stderr().snapshot(Keep::Head).head;
    match status {
        Some(status) if status.success() => Ok(text),
        Some(status) => {
            Err(failed(format!("`{} {option}` ended with {status}: {text}", binary.path.display())))
        }
        None => Err(failed(format!("`{} {option}` did not answer", binary.path.display()))),
    }
}

async fn canary(
    binary: &Binary,
    features: Features,
    session: &Session,
    homes: &[PathBuf],
    facts: &Facts,
) -> Result<(), ExecError> {
    let failed = |stage: Stage, text: String| {
        let remedy = match stage {
            Stage::Canary => {
                "do not use this machine's sandbox; run `doctor` and report what it prints".to_owned()
            }
            Stage::Find | Stage::Start | Stage::SetUp | Stage::Platform | Stage::Proxy | Stage::Limits => {
                remedy::set_up(&text, facts)
            }
        };
        ExecError::SandboxUnavailable { stage, text, remedy }
    };
    let place = session.subdirectory("canary-").map_err(ExecError::io("make a directory for the canary"))?;
    let (inside, outside) = (place.path().join("inside"), place.path().join("outside"));
    for directory in [&inside, &outside] {
        std::fs::create_dir(directory).map_err(ExecError::io("make a directory for the canary"))?;
    }
    let sandbox = Sandbox {
        read_roots: vec![outside.clone()],
        tmp: PrivateTmp::Memory(1 << 20),
        ..Sandbox::workspace_write()
    };
    let request = plan::Request {
        sandbox: &sandbox,
        root: &inside,
        root_as_given: &inside,
        workdir: &inside,
        homes,
        session_tmp: None,
        shared_memory: 1 << 20,
    };
    let plan = plan::plan(&request, &HostView);
    let captures = Arc::new(Captures::new(&OutputMode {
        keep: Keep::Head,
        max_chars: 1 << 20,
        max_lines: None,
        ..OutputMode::default()
    }));
    let mark = OsString::from_iter([OsStr::new(".cmdgate-"), place.path().file_name().unwrap_or_default()]);
    let replaced: Vec<PathBuf> =
        homes.iter().filter(|home| plan.replaced(home)).map(|home| home.join(&mark)).collect();
    let shut: Vec<&Path> = homes
        .iter()
        .filter(|home| !plan.replaced(home))
        .map(PathBuf::as_path)
        .chain([outside.as_path()])
        .collect();
    let script = script(&shut, &replaced);
    let ended = run_canary(binary, features, &plan, &script, captures.clone())
        .await
        .map_err(|error| failed(Stage::Start, format!("{}: {error}", binary.path.display())))?;
    let output = captures.stdout().snapshot(Keep::Head).head;
    let message = captures.stderr().snapshot(Keep::Head).head.trim().to_owned();
    match (ended.end, ended.reported) {
        (End::Exited, Some(_)) => {}
        (End::Exited, None) => {
            let text =
                if message.is_empty() { "bubblewrap ended without a word".to_owned() } else { message };
            return Err(failed(Stage::SetUp, text));
        }
        (End::TimedOut | End::Cancelled, _) => {
            return Err(failed(Stage::SetUp, format!("the canary did not end within {} s", LIMIT.as_secs())));
        }
    }
    let wrote_inside = std::fs::read_to_string(inside.join("file")).is_ok_and(|text| text == "canary\n");
    // All are looked at, so that none of them stays.
    let through: Vec<&PathBuf> = replaced.iter().filter(|path| std::fs::remove_file(path).is_ok()).collect();
    if let Some(path) = through.first() {
        return Err(failed(
            Stage::Canary,
            format!("the canary could write {}, which must be out of reach", path.display()),
        ));
    }
    judge(&output, &plan, features, wrote_inside).map_err(|hole| failed(Stage::Canary, hole))
}

async fn run_canary(
    binary: &Binary,
    features: Features,
    plan: &Plan,
    script: &OsString,
    captures: Arc<Captures>,
) -> io::Result<supervise::Ended> {
    let (out_read, out_write) = process::pipe()?;
    let (err_read, err_write) = process::pipe()?;
    let (status_read, status_write) = process::pipe()?;
    let (block_read, block_write) = process::block()?;
    let [first, second] = seccomp::filters(true).map_err(io::Error::other)?;
    let filters = [process::filled_pipe(first)?, process::filled_pipe(second)?];
    let descriptors = Descriptors {
        seccomp: [process::number(&filters[0]), process::number(&filters[1])],
        status: process::number(&status_write),
        block: process::number(&block_read),
        terminal: false,
    };
    let bash = crate::run::bash().ok_or_else(|| io::Error::other("bash was not found"))?;
    let [first, second] = filters;
    let launch = Launch {
        program: binary.path.clone(),
        arguments: bwrap::arguments(plan, features, descriptors, &bwrap::shell_words(&bash, script)),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        directory: PathBuf::from("/"),
        streams: [process::null()?, out_write, err_write],
        keep: vec![first, second, status_write, block_read],
        groups: Vec::new(),
        resources: Vec::new(),
        hold: Some(Hold { block: block_write, status: status_read }),
        tree: None,
        session: false,
        terminal: false,
        outlives: false,
    };
    let output = Output::new(out_read, err_read, captures)?;
    let control = Control { deadline: Some(Instant::now() + LIMIT), cancel: CancellationToken::new() };
    supervise::confined(launch, output, &control, |_| Ok(())).await
}

/// What the canary does. Builtins of bash only, but for one `unshare` where there is one. Opening a kernel
/// setting to append and writing nothing changes nothing, even where it succeeds.
///
/// `shut` are directories in which nothing may be made. In the place of `replaced` something may, as long as it does not
/// come to be on the host.
fn script(shut: &[&Path], replaced: &[PathBuf]) -> OsString {
    let mut script = OsString::from(
        "while read -r key value _; do case $key in \
           CapInh:|CapPrm:|CapEff:|CapBnd:|CapAmb:|NoNewPrivs:|Seccomp:) echo \"$key$value\";; esac; done </proc/self/status\n\
         echo pid:$$\n\
         while read -r name _; do case $name in *:*) echo \"net:$name\";; esac; done </proc/net/dev\n\
         while read -r _ _ _ _ point options _; do case $options in rw*) echo \"rw:$point\";; esac; done </proc/self/mountinfo\n\
         echo canary >file && echo inside:ok\n\
         try() { (: >>\"$1\") 2>/dev/null && echo \"hole:$1\"; }\n\
         for setting in kernel/core_pattern kernel/hostname vm/overcommit_memory; do try /proc/sys/$setting; done\n\
         try /.cmdgate-canary; try /etc/.cmdgate-canary; try /usr/.cmdgate-canary\n\
         [ -x /usr/bin/unshare ] && /usr/bin/unshare -U /bin/true 2>/dev/null && echo hole:unshare\n",
    );
    for place in shut {
        script.push("try ");
        script.push(quoted(&place.join(".cmdgate-canary")));
        script.push("\n");
    }
    for path in replaced {
        script.push("(: >>");
        script.push(quoted(path));
        script.push(") 2>/dev/null\n");
    }
    script.push("echo end:ok\n");
    script
}

/// A path between single quotes.
fn quoted(path: &Path) -> OsString {
    let mut quoted = OsString::from("'");
    for (index, piece) in path.as_os_str().as_encoded_bytes().split(|&byte| byte == b'\'').enumerate() {
        if index > 0 {
            quoted.push("'\\''");
        }
        quoted.push(std::os::unix::ffi::OsStrExt::from_bytes(piece) as &std::ffi::OsStr);
    }
    quoted.push("'");
    quoted
}

/// Judges what the canary saw; the error names the hole.
fn judge(output: &str, plan: &Plan, features: Features, wrote_inside: bool) -> Result<(), String> {
    let values =
        |key: &'static str| output.lines().filter_map(move |line| line.strip_prefix(key)?.strip_prefix(':'));
    let one = |key: &'static str| values(key).next().unwrap_or_default();
    if one("end") != "ok" {
        return Err("the canary did not run to its end".to_owned());
    }
    if !wrote_inside || one("inside") != "ok" {
        return Err("the canary could not write inside the project".to_owned());
    }
    if let Some(hole) = values("hole").next() {
        return Err(format!("the canary could open {hole}, which must be out of reach"));
    }
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        if one(set).is_empty() || one(set).bytes().any(|digit| digit != b'0') {
            return Err(format!("the canary holds capabilities: {set} is {}", one(set)));
        }
    }
    if one("NoNewPrivs") != "1" {
        return Err("the canary could gain privileges: NoNewPrivs is not set".to_owned());
    }
    if one("Seccomp") != "2" {
        return Err("the canary runs without its system call filters".to_owned());
    }
    if !one("pid").parse::<u32>().is_ok_and(|pid| pid <= 4) {
        return Err(format!("the canary is not in a PID namespace of its own: it is process {}", one("pid")));
    }
    if values("net").any(|interface| interface != "lo:") {
        return Err("the canary sees the host's network interfaces".to_owned());
    }
    let expected = |point: &str| {
        let point = PathBuf::from(unescape(point));
        point.starts_with("/dev")
            || (point.starts_with("/proc") && features.rung != Rung::SharedProc && !features.root)
            || plan.mounts.iter().any(|mount| match mount {
                Mount::Writable(path)
                | Mount::Memory { target: path, .. }
                | Mount::WritableAt { target: path, .. } => point == *path,
                Mount::ReadOnly(_)
                | Mount::ReadOnlyIfPresent(_)
                | Mount::Devices
                | Mount::Processes
                | Mount::Cover(_)
                | Mount::Link { .. }
                | Mount::Seal(_) => false,
            })
    };
    match values("rw").find(|point| !expected(point)) {
        Some(point) => Err(format!("the canary could write to the mount {point}")),
        None => Ok(()),
    }
}

/// Undoes the octal escapes of proc_pid_mountinfo(5).
fn unescape(point: &str) -> OsString {
    let mut bytes = Vec::with_capacity(point.len());
    let mut rest = point.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let octal = (byte == b'\\')
            .then(|| tail.get(..3))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        if let Some(value) = octal {
            bytes.push(value);
            rest = tail.get(3..).unwrap_or_default();
        } else {
            bytes.push(byte);
            rest = tail;
        }
    }
    std::os::unix::ffi::OsStringExt::from_vec(bytes)
}
