//! Denials read from output: never more than a likelihood, and only where the plan denies the very path or host
//! that a line complains about.

mod line;

use std::path::{Component, Path, PathBuf};

use self::line::{Kind, UNNAMED};
use crate::outcome::{Certainty, Denial, DeniedOperation};
use crate::plan::{Access, Operation, Plan, Rule};
use crate::proxy::NetworkDecision;
use crate::sandbox::Network;

/// More than this many are noise.
const MOST: usize = 8;
/// A line longer than this is not an error message.
const LONGEST_LINE: usize = 1000;

/// What the lines of some texts suggest was denied.
pub(crate) fn likely(plan: &Plan, texts: &[&str]) -> Vec<Denial> {
    let mut found: Vec<Denial> = Vec::new();
    for text in texts {
        // Where a name stands that the error on the next line is about.
        let mut previous = "";
        // A carriage return is how a progress meter goes back to the start of its line.
        for line in text.split(['\n', '\r']).filter(|line| line.len() <= LONGEST_LINE) {
            if found.len() >= MOST {
                break;
            }
            if let Some(denial) = of_line(plan, line, previous)
                && !found.iter().any(|known| known.operation == denial.operation)
            {
                found.push(denial);
            }
            if !matches!(line.trim(), "" | "Caused by:") {
                previous = line;
            }
        }
    }
    // Further lines about the same failure name no host.
    let unnamed = DeniedOperation::Network(UNNAMED.to_owned());
    let named = |denial: &Denial| {
        matches!(denial.operation, DeniedOperation::Network(_)) && denial.operation != unnamed
    };
    if found.iter().any(named) {
        found.retain(|denial| denial.operation != unnamed);
    }
    found
}

fn of_line(plan: &Plan, line: &str, previous: &str) -> Option<Denial> {
    let likely = |operation, rule: &str, advice: String| Denial {
        operation,
        rule: rule.to_owned(),
        certainty: Certainty::Likely,
        reverted: false,
        evidence: line.trim().to_owned(),
        advice,
    };
    if let Some(host) = line::unreachable(line) {
        let operation = DeniedOperation::Network(host);
        return match plan.network {
            Network::Off => Some(likely(
                operation,
                "network_off",
                "the network is off; ask for it to be turned on if it is needed".to_owned(),
            )),
            Network::Domains(_) => Some(likely(
                operation,
                "network_domains",
                "only the listed hosts can be reached, and only through the proxy in HTTP_PROXY".to_owned(),
            )),
            Network::On => None,
        };
    }
    let complaint = line::complaint(line)?;
    let kind = complaint.kind;
    for name in complaint.names(previous).iter().filter(|name| !name.is_empty() && name.len() < 4096) {
        let path = absolute(&plan.workdir, Path::new(name));
        for operation in [Operation::Read, Operation::Write] {
            let Access::Deny(rule) = plan.decide(operation, &path) else { continue };
            // Each error of the kernel has its own causes in the sandbox; ordinary permissions have the rest.
            let fits = match &rule {
                Rule::ReadOnlyMode | Rule::OutsideWritableRoots | Rule::Protected(_) => {
                    kind == Kind::Unwritable && operation == Operation::Write
                }
                Rule::Hidden(_) | Rule::NotVisible => kind != Kind::Unwritable,
                Rule::System => kind != Kind::Absent,
                Rule::HostSocket(_) => kind == Kind::Refused,
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
        likely(&planned(sandbox), &[line]).pop().map(|denial| {
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

    /// Messages as the programs wrote them in the sandbox.
    #[test]
    fn a_denial_names_what_the_message_is_about() {
        let outside = |path: &str| write(path, "outside_writable_roots");
        let protected = |path: &str| write(path, "protected");
        let cases = [
            ("/bin/bash: line 1: .cmdgate.toml: Read-only file system", protected("/p/.cmdgate.toml")),
            (
                "/bin/bash: line 1: .vscode/settings.json: Read-only file system",
                protected("/p/.vscode/settings.json"),
            ),
            ("/bin/bash: line 1: /usr/x: Read-only file system", outside("/usr/x")),
            ("/bin/bash: line 1: /usr/a b: c: Read-only file system", outside("/usr/a b: c")),
            ("/bin/bash: line 1: /usr/it's: Read-only file system", outside("/usr/it's")),
            ("s.sh: line 1: /usr/x: Read-only file system", outside("/usr/x")),
            ("sh: 1: cannot create /usr/x: Read-only file system", outside("/usr/x")),
            ("sh: can't create /usr/x: Read-only file system", outside("/usr/x")),
            ("touch: /usr/x: Read-only file system", outside("/usr/x")),
            ("touch: cannot touch \"/usr/it's\": Read-only file system", outside("/usr/it's")),
            (r#"touch: cannot touch '/usr/it'\''s "q"': Read-only file system"#, outside("/usr/it's \"q\"")),
            ("touch: cannot touch '/usr/a b': Read-only file system", outside("/usr/a b")),
            ("mkdir: cannot create directory ‘/usr/a: b’: Read-only file system", outside("/usr/a: b")),
            (
                "mv: inter-device move failed: 'a.txt' to '/usr/x'; unable to remove target: Read-only file system",
                outside("/usr/x"),
            ),
            ("mv: cannot move '.vscode' to 'zz': Device or resource busy", protected("/p/.vscode")),
            (
                "sed: couldn't open temporary file .vscode/sedD5UaWQ: Read-only file system",
                protected("/p/.vscode/sedD5UaWQ"),
            ),
            ("tar: /usr/x.tar: Cannot open: Read-only file system", outside("/usr/x.tar")),
            ("sort: open failed: /usr/x: Read-only file system", outside("/usr/x")),
            ("awk: cannot open \"/usr/x\" for output (Read-only file system)", outside("/usr/x")),
            ("/usr/bin/ld: cannot open output file /usr/x: Read-only file system", outside("/usr/x")),
            ("OSError: [Errno 30] Read-only file system: '/usr/x'", outside("/usr/x")),
            ("OSError: [Errno 30] Read-only file system: \"/usr/it's a\"", outside("/usr/it's a")),
            ("OSError: [Errno 16] Device or resource busy: '.vscode' -> 'zz'", protected("/p/.vscode")),
            ("Error: EROFS: read-only file system, open '/usr/x y'", outside("/usr/x y")),
            ("Error: EBUSY: resource busy or locked, rename '.vscode' -> 'zz'", protected("/p/.vscode")),
            (
                "-e:1:in `write': Read-only file system @ rb_sysopen - /usr/x (Errno::EROFS)",
                outside("/usr/x"),
            ),
            (
                "-e:1:in `rename': Device or resource busy @ rb_file_s_rename - (.vscode, zz) (Errno::EBUSY)",
                protected("/p/.vscode"),
            ),
            ("cannot open /usr/x: Read-only file system at -e line 1.", outside("/usr/x")),
            ("open /usr/x: read-only file system", outside("/usr/x")),
            ("fatal: could not create work tree dir '/usr/zz': Read-only file system", outside("/usr/zz")),
            (
                "error: could not write config file .gitmodules: Device or resource busy",
                protected("/p/.gitmodules"),
            ),
            (
                "error: failed to create package `zz` at `/usr/zz`\n\nCaused by:\n  failed to create directory \
                 `/usr/zz`\n\nCaused by:\n  Read-only file system (os error 30)",
                outside("/usr/zz"),
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(found(&Sandbox::workspace_write(), text), Some(expected), "{text}");
        }
    }

    #[test]
    fn the_program_that_complains_is_not_what_it_complains_about() {
        // After `cd /usr`, which no line tells.
        for line in [
            "/bin/bash: line 1: f: Read-only file system",
            "/usr/bin/touch: cannot touch 'f': Read-only file system",
            "/usr/bin/tee: f: Read-only file system",
            "/bin/bash: line 1: echo: write error: Read-only file system",
            "  code: 'EROFS',",
            "OSError: [Errno 30] Read-only file system",
        ] {
            assert_eq!(found(&Sandbox::workspace_write(), line), None, "{line}");
        }
    }

    /// Messages as the programs wrote them in the sandbox.
    #[test]
    fn a_network_denial_names_the_host() {
        let cases = [
            ("curl: (6) Could not resolve host: example.com", "example.com"),
            (
                "  0     0    0     0    0     0      0      0 --:--:-- --:--:-- --:--:--     0\rcurl: (6) Could not resolve host: example.com",
                "example.com",
            ),
            (
                "curl: (7) Failed to connect to 93.184.216.34 port 80 after 0 ms: Couldn't connect to server",
                "93.184.216.34",
            ),
            (
                "Resolving example.com (example.com)... failed: Temporary failure in name resolution.\nwget: unable to resolve host address ‘example.com’",
                "example.com",
            ),
            (
                "fatal: unable to access 'https://example.com/a.git/': Could not resolve host: example.com",
                "example.com",
            ),
            (
                "ssh: Could not resolve hostname example.com: Temporary failure in name resolution\nfatal: Could not read from remote repository.",
                "example.com",
            ),
            (
                "npm error code EAI_AGAIN\nnpm error syscall getaddrinfo\nnpm error errno EAI_AGAIN\nnpm error request to https://registry.npmjs.org/left-pad failed, reason: getaddrinfo EAI_AGAIN registry.npmjs.org",
                "registry.npmjs.org",
            ),
            (
                "WARNING: Retrying (Retry(total=0, connect=None, read=None, redirect=None, status=None)) after connection broken by 'NewConnectionError('<pip._vendor.urllib3.connection.HTTPSConnection object at 0x7ff96837c7d0>: Failed to establish a new connection: [Errno -3] Temporary failure in name resolution')': /simple/left-pad/",
                UNNAMED,
            ),
            (
                "socket.gaierror: [Errno -3] Temporary failure in name resolution\nurllib3.exceptions.NameResolutionError: HTTPSConnection(host='example.com', port=443): Failed to resolve 'example.com' ([Errno -3] Temporary failure in name resolution)",
                "example.com",
            ),
            ("OSError: [Errno 101] Network is unreachable", UNNAMED),
            ("  [cause]: Error: getaddrinfo EAI_AGAIN example.com\n    code: 'EAI_AGAIN',\n", "example.com"),
            ("Error: connect ENETUNREACH 93.184.216.34:80 - Local (0.0.0.0:0)", "93.184.216.34:80"),
            ("  [6] Could not resolve hostname (Could not resolve host: index.crates.io)", "index.crates.io"),
            (
                "/usr/lib/ruby/3.1.0/socket.rb:227:in `getaddrinfo': Failed to open TCP connection to example.com:80 (getaddrinfo: Temporary failure in name resolution) (SocketError)",
                "example.com:80",
            ),
            (
                "go: example.com/x@latest: module example.com/x: Get \"https://proxy.golang.org/example.com/x/@v/list\": dial tcp: lookup proxy.golang.org on 10.255.255.53:53: dial udp 10.255.255.53:53: connect: network is unreachable",
                "proxy.golang.org",
            ),
            ("bash: line 1: example.com: Temporary failure in name resolution", "example.com"),
        ];
        for (text, host) in cases {
            let found = likely(&planned(&Sandbox::read_only()), &[text]);
            let operations: Vec<_> = found.iter().map(|denial| denial.operation.clone()).collect();
            assert_eq!(operations, [DeniedOperation::Network(host.to_owned())], "{text}");
            assert_eq!(found[0].rule, "network_off");
        }
        let own = "curl: (7) Failed to connect to 127.0.0.1 port 9 after 0 ms: Couldn't connect to server";
        assert_eq!(found(&Sandbox::read_only(), own), None);
    }
}
