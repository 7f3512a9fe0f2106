//! Denials read from output: never more than a likelihood, and only where the plan denies the very path or host
//! that a line complains about.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use crate::outcome::{Certainty, Denial, DeniedOperation};
use crate::plan::{Access, Operation, Plan, Rule};
use crate::proxy::NetworkDecision;
use crate::sandbox::Network;

/// More than this many are noise.
const MOST: usize = 8;
/// A line longer than this is not an error message.
const LONGEST_LINE: usize = 1000;

const WRITE_ERRORS: &[&str] = &["Read-only file system", "EROFS", "Device or resource busy", "EBUSY"];
const ACCESS_ERRORS: &[&str] = &["Permission denied", "EACCES", "Operation not permitted", "EPERM"];
const ABSENT_ERRORS: &[&str] = &["No such file or directory", "ENOENT"];
const NETWORK_ERRORS: &[&str] = &[
    "Network is unreachable",
    "ENETUNREACH",
    "Could not resolve host",
    "Temporary failure in name resolution",
    "Name or service not known",
    "EAI_AGAIN",
    "ENOTFOUND",
    "Could not resolve proxy",
    "No address associated",
];

/// What a line of output suggests was denied.
pub(crate) fn likely(plan: &Plan, text: &str) -> Vec<Denial> {
    let mut found: Vec<Denial> = Vec::new();
    for line in text.lines().filter(|line| line.len() <= LONGEST_LINE) {
        if found.len() >= MOST {
            break;
        }
        let Some(denial) = of_line(plan, line) else { continue };
        if !found.iter().any(|known| known.operation == denial.operation) {
            found.push(denial);
        }
    }
    found
}

fn of_line(plan: &Plan, line: &str) -> Option<Denial> {
    let says = |errors: &[&str]| errors.iter().any(|error| line.contains(error));
    let likely = |operation, rule: &str, advice: String| Denial {
        operation,
        rule: rule.to_owned(),
        certainty: Certainty::Likely,
        reverted: false,
        evidence: line.trim().to_owned(),
        advice,
    };
    if says(NETWORK_ERRORS) {
        return match plan.network {
            Network::Off => Some(likely(
                DeniedOperation::Network(line.trim().to_owned()),
                "network_off",
                "the network is off; ask for it to be turned on if it is needed".to_owned(),
            )),
            Network::Domains(_) => Some(likely(
                DeniedOperation::Network(line.trim().to_owned()),
                "network_domains",
                "only the listed hosts can be reached, and only through the proxy in HTTP_PROXY".to_owned(),
            )),
            Network::On => None,
        };
    }
    let (written, refused, absent) = (says(WRITE_ERRORS), says(ACCESS_ERRORS), says(ABSENT_ERRORS));
    if !(written || refused || absent) {
        return None;
    }
    for path in paths(line) {
        let path = absolute(&plan.workdir, &path);
        for operation in [Operation::Read, Operation::Write] {
            let Access::Deny(rule) = plan.decide(operation, &path) else { continue };
            // Each error of the kernel has its own causes in the sandbox; ordinary permissions have the rest.
            let fits = match &rule {
                Rule::ReadOnlyMode | Rule::OutsideWritableRoots | Rule::Protected(_) => {
                    written && operation == Operation::Write
                }
                Rule::Hidden(_) | Rule::NotVisible => refused || absent,
                Rule::System => written || refused,
                Rule::HostSocket(_) => refused,
            };
            if !fits {
                continue;
            }
            let advice = advice(&rule);
            let operation = match operation {
                Operation::Read => DeniedOperation::Read(path),
                Operation::Write => DeniedOperation::Write(path),
            };
            return Some(likely(operation, rule.name(), advice));
        }
    }
    None
}

fn advice(rule: &Rule) -> String {
    match rule {
        Rule::ReadOnlyMode => {
            "the sandbox is read-only; write to /tmp, or ask for `workspace_write`".to_owned()
        }
        Rule::OutsideWritableRoots => {
            "only the project and /tmp can be written; write there, or ask for a further writable root"
                .to_owned()
        }
        Rule::Protected(path) => {
            format!(
                "{} is protected; ask the user to change it, or to take it off the protected list",
                path.display()
            )
        }
        Rule::Hidden(path) => format!("{} is hidden because it holds secrets", path.display()),
        Rule::NotVisible => "only the project and the system directories can be seen".to_owned(),
        Rule::System => "settings of the system cannot be changed".to_owned(),
        Rule::HostSocket(_) => "services of the host cannot be reached".to_owned(),
    }
}

/// What in a line looks like a path, the likeliest first: what stands in quotes, words with a slash, and what stands
/// alone between colons, each time the one nearest to the error first (the shell's own name stands at the beginning).
fn paths(line: &str) -> Vec<PathBuf> {
    let mut quoted = Vec::new();
    for (open, close) in [('\'', '\''), ('"', '"'), ('`', '\''), ('\u{2018}', '\u{2019}')] {
        let mut rest = line;
        while let Some((_, after)) = rest.split_once(open) {
            let Some((inside, tail)) = after.split_once(close) else { break };
            quoted.push(inside);
            rest = tail;
        }
    }
    let words =
        line.split_whitespace().map(|word| word.trim_matches([':', ',', '(', ')', '\'', '"', '[', ']']));
    let (absolute, relative): (Vec<&str>, Vec<&str>) =
        words.filter(|word| word.contains('/')).partition(|word| word.starts_with('/'));
    let alone = line.rsplit(": ").map(str::trim).filter(|text| !text.contains(' '));
    quoted
        .into_iter()
        .chain(absolute.into_iter().rev())
        .chain(relative.into_iter().rev())
        .chain(alone)
        .filter(|text| !text.is_empty() && text.len() < 4096)
        .map(|text| PathBuf::from(OsStr::from_bytes(text.as_bytes())))
        .collect()
}

fn absolute(workdir: &Path, path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in workdir.join(path).components() {
        match part {
            Component::ParentDir => {
                clean.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => clean.push(part),
        }
    }
    clean
}

/// What the filters or the proxy refused.
pub(crate) fn reported(exit_code: Option<i32>, network: &[NetworkDecision]) -> Vec<Denial> {
    /// 128 and SIGSYS: a system call of another architecture, which the filter answers by killing.
    const KILLED_BY_FILTER: i32 = 159;
    let mut found = Vec::new();
    if exit_code == Some(KILLED_BY_FILTER) {
        found.push(Denial {
            operation: DeniedOperation::SystemCall("a system call of another architecture".to_owned()),
            rule: "seccomp".to_owned(),
            certainty: Certainty::Likely,
            reverted: false,
            evidence: "exit code 159, which is 128 and the number of SIGSYS".to_owned(),
            advice: "programs for another architecture cannot run in the sandbox".to_owned(),
        });
    }
    for decision in network.iter().filter(|decision| !decision.allowed).take(MOST) {
        let target = format!("{}:{}", decision.host, decision.port);
        if found.iter().any(|known: &Denial| known.operation == DeniedOperation::Network(target.clone())) {
            continue;
        }
        found.push(Denial {
            operation: DeniedOperation::Network(target),
            rule: "network_domains".to_owned(),
            certainty: Certainty::Certain,
            reverted: false,
            evidence: decision.reason.clone(),
            advice: "ask for the host to be put on the allow list if it is needed".to_owned(),
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Request, plan};
    use crate::sandbox::{Reads, Sandbox};
    use crate::view::fake::FakeView;

    fn planned(sandbox: &Sandbox) -> Plan {
        let view = FakeView::new(&[
            "/p/f",
            "/p/.vscode/",
            "/home/u/.ssh/id",
            "/etc/shadow",
            "/tmp/",
            "/srv/x",
            "/p/w.sock=",
        ]);
        let root = Path::new("/p");
        let homes = [PathBuf::from("/home/u")];
        let request = Request {
            sandbox,
            root,
            root_as_given: root,
            workdir: root,
            homes: &homes,
            session_tmp: None,
            shared_memory: 0,
        };
        plan(&request, &view)
    }

    fn found(sandbox: &Sandbox, line: &str) -> Option<(DeniedOperation, String)> {
        likely(&planned(sandbox), line).pop().map(|denial| {
            assert_eq!(denial.certainty, Certainty::Likely);
            (denial.operation, denial.rule)
        })
    }

    fn write(path: &str, rule: &str) -> (DeniedOperation, String) {
        (DeniedOperation::Write(path.into()), rule.to_owned())
    }

    fn read(path: &str, rule: &str) -> (DeniedOperation, String) {
        (DeniedOperation::Read(path.into()), rule.to_owned())
    }

    #[test]
    fn a_complaint_about_a_denied_path_is_a_likely_denial() {
        let (ro, ww) = (Sandbox::read_only(), Sandbox::workspace_write());
        let confined = Sandbox { reads: Reads::ProjectAndSystem, ..Sandbox::read_only() };
        let cases = [
            (
                &ww,
                "touch: cannot touch '/srv/x': Read-only file system",
                write("/srv/x", "outside_writable_roots"),
            ),
            (&ro, "bash: line 1: out: Read-only file system", write("/p/out", "read_only")),
            (
                &ww,
                "/bin/bash: line 1: /srv/y: Read-only file system",
                write("/srv/y", "outside_writable_roots"),
            ),
            (&ro, "bash: line 1: sub/out: Read-only file system", write("/p/sub/out", "read_only")),
            (&ww, "rm: cannot remove '.vscode': Device or resource busy", write("/p/.vscode", "protected")),
            (&ww, "cat: /home/u/.ssh/id: No such file or directory", read("/home/u/.ssh/id", "hidden")),
            (&ww, "cat: /etc/shadow: Permission denied", read("/etc/shadow", "hidden")),
            (&confined, "cat: /srv/x: No such file or directory", read("/srv/x", "not_visible")),
            (
                &ww,
                "Error: EROFS: read-only file system, open '/usr/lib/x'",
                write("/usr/lib/x", "outside_writable_roots"),
            ),
            (&ww, "w.sock: connect: Permission denied", read("/p/w.sock", "host_socket")),
        ];
        for (sandbox, line, expected) in cases {
            assert_eq!(found(sandbox, line), Some(expected), "{line}");
        }
    }

    #[test]
    fn a_complaint_that_the_sandbox_did_not_cause_is_none() {
        let ww = Sandbox::workspace_write();
        for line in [
            "cat: /root/x: Permission denied",
            "cat: missing: No such file or directory",
            "touch: cannot touch '/p/x': Permission denied",
            "/srv/x is a nice path",
            "sandbox: test failed in /p/sandbox/denied_test.rs",
            "bash: foo: command not found",
        ] {
            assert_eq!(found(&ww, line), None, "{line}");
        }
        let online = Sandbox { network: Network::On, ..ww };
        assert_eq!(found(&online, "curl: (6) Could not resolve host: example.com"), None);
    }

    #[test]
    fn a_network_error_without_a_network_is_a_likely_denial() {
        let found =
            likely(&planned(&Sandbox::read_only()), "ok\ncurl: (6) Could not resolve host: example.com\n");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].rule, "network_off");
    }
}
