//! Runs bash over many command lines and collects the calls that it made.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

/// What bash did with one command line.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    /// The calls, in no particular order: the words of each.
    pub(crate) calls: Vec<Vec<String>>,
    /// Whether bash refused the text.
    pub(crate) syntax_error: bool,
}

/// How bash is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Mode {
    /// Patterns that match no file vanish instead of staying what they are, so that a pattern which the lexer took for
    /// text shows.
    pub(crate) null_glob: bool,
    /// Bytes instead of characters (`LC_ALL=C`).
    pub(crate) bytes: bool,
    /// Every command line in a bash of its own, as `bash -c`, instead of `eval` in a subshell.
    pub(crate) own_process: bool,
}

/// The loop that runs in bash. Descriptor 9 carries the reports, 8 the command lines, each ended by a NUL.
///
/// `w…` succeed, `f…` fail, `r0` reports what it reads. Every command line is first only parsed, as the body of a
/// function that is never called. A report is one write, so that those of the stages of a pipeline cannot mix; because
/// bash writes at every newline, newlines travel as SOH.
const DRIVER: &str = r#"
__report() { printf '%s\0' R "$I" "$#" "${@//$'\n'/$'\1'}" >&9; }
w0() { __report w0 "$@"; }
w1() { __report w1 "$@"; }
f0() { __report f0 "$@"; return 1; }
r0() { local b; IFS= read -r -d '' b; __report r0 "$@" "$b"; return 0; }
command_not_found_handle() { __report "$@"; return 127; }
exec 8<&0 9>&1
export x='p q'
unset y z
I=0
case $0 in
  *own*) export -f __report w0 w1 f0 r0 command_not_found_handle; export I ;;
  *null*) shopt -s nullglob ;;
esac
while IFS= read -r -d '' -u 8 __line; do
  (
    exec 8<&- </dev/null >/dev/null 2>/dev/null
    eval -- "__never() {
$__line
}" || printf '%s\0' S "$I" >&9
    case $0 in
      *own*) "$BASH" --norc -c -- "$__line" ;;
      *) eval -- "$__line" ;;
    esac
  )
  I=$((I+1))
done
"#;

/// Where `program` is installed.
fn which(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Bash in an empty folder, without programs; behind bubblewrap, where that works, so that even a mistake here could
/// write nothing.
fn bash() -> Command {
    static WRAPPER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let wrapper = WRAPPER.get_or_init(|| {
        let bwrap = which("bwrap")?;
        let works =
            Command::new(&bwrap).args(WRAPPED).arg("true").status().is_ok_and(|status| status.success());
        works.then_some(bwrap)
    });
    let program = which("bash").expect("this test needs bash");
    let mut command = if let Some(bwrap) = wrapper {
        let mut command = Command::new(bwrap);
        command.args(WRAPPED).arg(program);
        command
    } else {
        static EMPTY: OnceLock<tempfile::TempDir> = OnceLock::new();
        let mut command = Command::new(program);
        command.current_dir(EMPTY.get_or_init(|| tempfile::tempdir().unwrap()));
        command
    };
    command.env_clear().envs([("PATH", "/nonexistent"), ("HOME", "/hh"), ("LC_ALL", "C.UTF-8")]);
    command.args(["--norc", "--noprofile"]);
    command
}

const WRAPPED: [&str; 12] = [
    "--ro-bind",
    "/",
    "/",
    "--tmpfs",
    "/tmp",
    "--dev",
    "/dev",
    "--unshare-all",
    "--chdir",
    "/tmp",
    "--die-with-parent",
    "--",
];

/// What bash does with each of `sources`.
pub(crate) fn run(sources: &[&str], mode: Mode) -> Vec<Seen> {
    let name = match mode {
        Mode { own_process: true, .. } => "own",
        Mode { null_glob: true, .. } => "null",
        Mode { .. } => "plain",
    };
    let mut child = bash()
        .env("LC_ALL", if mode.bytes { "C" } else { "C.UTF-8" })
        .args(["-c", DRIVER, name])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("bash starts");
    let mut input = Vec::new();
    for source in sources {
        input.extend_from_slice(source.as_bytes());
        input.push(0);
    }
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        // A bash that died early closes the pipe; the missing reports then tell.
        drop(stdin.write_all(&input));
    });
    let pid = child.id();
    let (done, waiting) = std::sync::mpsc::channel::<()>();
    let guard = std::thread::spawn(move || {
        if waiting.recv_timeout(Duration::from_secs(150)) == Err(RecvTimeoutError::Timeout) {
            drop(Command::new("kill").args(["-9", &pid.to_string()]).status());
        }
    });
    let output = child.wait_with_output().unwrap();
    drop(done);
    writer.join().unwrap();
    guard.join().unwrap();
    assert!(output.status.success(), "bash ended with {} among {sources:?}", output.status);
    reports(&output.stdout, sources.len())
}

fn reports(output: &[u8], count: usize) -> Vec<Seen> {
    let text = std::str::from_utf8(output).expect("reports are UTF-8");
    let mut fields = text.split_terminator('\0');
    let mut seen = vec![Seen::default(); count];
    while let Some(kind) = fields.next() {
        let index: usize = fields.next().unwrap().parse().unwrap();
        match kind {
            "S" => seen[index].syntax_error = true,
            "R" => {
                let words: usize = fields.next().unwrap().parse().unwrap();
                seen[index]
                    .calls
                    .push(fields.by_ref().take(words).map(|word| word.replace('\u{1}', "\n")).collect());
            }
            other => panic!("not a report: {other:?}"),
        }
    }
    seen
}

/// The ones of `sources` that bash cannot parse, with what it says. Nothing is run.
pub(crate) fn syntax_errors<'s>(sources: &[&'s str]) -> Vec<(&'s str, String)> {
    let parse = |text: &str| {
        let mut child =
            bash().arg("-n").stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("bash starts");
        // Bash stops reading at an error, and then this pipe is closed.
        drop(child.stdin.take().unwrap().write_all(text.as_bytes()));
        let output = child.wait_with_output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        // A warning, such as that of a here-document that nothing ends, is a difference too.
        (!output.status.success() || !message.is_empty()).then_some(message)
    };
    let mut errors = Vec::new();
    // Many in one process, each as the body of a function; one by one only where something is wrong.
    let whole_limit = 60_000;
    let mut batch = Vec::new();
    let mut whole = String::new();
    for (index, source) in sources.iter().enumerate() {
        batch.push(*source);
        writeln!(whole, "f{index}() {{\n{source}\n}}").unwrap();
        if whole.len() > whole_limit || index + 1 == sources.len() {
            if parse(&whole).is_some() {
                errors.extend(batch.iter().filter_map(|source| Some((*source, parse(source)?))));
            }
            batch.clear();
            whole.clear();
        }
    }
    errors
}
