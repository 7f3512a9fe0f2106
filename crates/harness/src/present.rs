//! What the model sees of a run (contract S24).

use crate::read;
use cmdgate_executor::output::render;
use cmdgate_executor::{Captured, Finished, Outcome, Stream};
use similar::TextDiff;
use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::time::Duration;

/// After this time a difference is no longer looked for line by line, and is shown in larger pieces.
const LONGEST_DIFF: Duration = Duration::from_secs(2);
/// A file larger than this, in bytes, is not compared with what would be written.
const LARGEST_COMPARED: u64 = 1024 * 1024;

/// The text of a finished run: command, workdir, exit code and time, both streams.
///
/// ```text
/// Command: git status
/// Workdir: .
/// Exit code: 0 (34ms)
///
/// stdout:
/// On branch main
///
/// stderr:
/// (empty)
/// ```
pub fn report(command: &str, root: &Path, finished: &Finished) -> String {
    let mut text = String::new();
    let millis = finished.duration.as_millis();
    let _ = writeln!(text, "Command: {command}");
    let _ = writeln!(text, "Workdir: {}", shown_workdir(root, &finished.workdir));
    let _ = match &finished.outcome {
        Outcome::Exited(code) => writeln!(text, "Exit code: {code} ({millis}ms)"),
        Outcome::Signaled(signal) => writeln!(text, "Ended by signal {signal} ({millis}ms)"),
        Outcome::TimedOut { kill_incomplete } => {
            writeln!(text, "TIMEOUT: killed after {millis}ms{}", leftover(*kill_incomplete))
        }
        Outcome::Cancelled { kill_incomplete } => {
            writeln!(text, "ABORTED: killed after {millis}ms{}", leftover(*kill_incomplete))
        }
        Outcome::SandboxFailed { stage, text: what, remedy } => {
            writeln!(text, "EXECUTION_ERROR: the sandbox failed at {}: {what}; {remedy}", stage.name())
        }
        Outcome::NotStarted(why) => writeln!(text, "EXECUTION_ERROR: {}", not_started(why)),
    };
    stream(&mut text, &finished.stdout, Stream::Stdout);
    stream(&mut text, &finished.stderr, Stream::Stderr);
    for denial in &finished.denials {
        let _ = write!(text, "\n[{}]", denial.line());
    }
    if !finished.denials.is_empty() {
        text.push('\n');
    }
    text
}

/// Text that others wrote, for a person's terminal: what would move the cursor, change colours, hide or reorder what is
/// shown becomes visible.
///
/// ```
/// assert_eq!(cmdgate_harness::present::printable("a\u{1b}[2Kb\n\u{202e}"), "a\\u{1b}[2Kb\\n\\u{202e}");
/// ```
pub fn printable(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut shown, c| {
        if is_unseen(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
        shown
    })
}

/// What changed, as a unified difference, for a person's terminal.
pub fn difference(before: &str, now: &str) -> String {
    let diff = TextDiff::configure().timeout(LONGEST_DIFF).diff_lines(before, now);
    let text = diff.unified_diff().context_radius(3).missing_newline_hint(false).to_string();
    text.lines().map(|line| format!("  {}", printable(line))).collect::<Vec<_>>().join("\n")
}

/// What writing this content to a file would change, for a person's terminal.
pub fn written(path: &Path, content: &str) -> String {
    let all = || content.lines().map(|line| format!("  +{}", printable(line))).collect::<Vec<_>>().join("\n");
    match read::text(path, LARGEST_COMPARED) {
        Ok(before) if before == content => "it holds exactly that already".to_owned(),
        Ok(before) => difference(&before, content),
        Err(error) if error.kind() == io::ErrorKind::NotFound => format!("a new file:\n{}", all()),
        Err(error) => format!("in the place of what is there, which is not shown ({error}):\n{}", all()),
    }
}

/// Whether a character moves the cursor, changes, hides or reorders what is shown, or cannot be seen.
pub(crate) fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// Why nothing was started, as a sentence fragment.
pub fn not_started(why: &cmdgate_executor::NotStarted) -> String {
    use cmdgate_executor::NotStarted;
    match why {
        NotStarted::ProgramNotFound { program } => {
            format!("program `{program}` is not available on this machine")
        }
        NotStarted::NotExecutable { program, reason } => {
            format!("program `{program}` cannot be executed: {reason}")
        }
        NotStarted::System { reason } => format!("no process could be started: {reason}"),
    }
}

/// The working directory relative to the root, `.` for the root itself.
pub fn shown_workdir(root: &Path, workdir: &Path) -> String {
    match workdir.strip_prefix(root) {
        Ok(relative) if relative.as_os_str().is_empty() => ".".to_owned(),
        Ok(relative) => relative.display().to_string(),
        Err(_) => workdir.display().to_string(),
    }
}

const fn leftover(kill_incomplete: bool) -> &'static str {
    if kill_incomplete { ", and something could not be shown to be gone" } else { "" }
}

fn stream(text: &mut String, captured: &Captured, which: Stream) {
    let shown = render(captured, which);
    let shown = shown.strip_suffix('\n').unwrap_or(&shown);
    let shown = if shown.is_empty() { "(empty)" } else { shown };
    let _ = writeln!(text, "\n{}:\n{shown}", which.name());
}
