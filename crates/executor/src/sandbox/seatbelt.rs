//! The macOS profile: a pure function, compiled and tested on every system.
//!
//! A profile is a small Scheme program for `sandbox-exec`. Everything is denied unless a rule allows it, and the last
//! rule that matches decides, so each deny stands after the allow that it narrows. Paths are passed as parameters
//! (`-D`), never written into the text; only regular expressions hold them, escaped.
//!
//! The rules for files are the decision table of the plan, line by line, save for the places that only a Linux sandbox
//! has (`/proc`, a private `/tmp`). Three things differ and are stricter than on Linux:
//!
//! - Protected names are denied whether or not they exist, and in every spelling of their letters, for the file system
//!   as a rule does not tell `.ENVRC` from `.envrc`.
//! - There is no private `/tmp`: one directory may be written, and `TMPDIR` and `TMPPREFIX` must name it.
//! - There is no private network: loopback reaches the services of this machine and is denied unless asked for.
//!
//! Only a Mac can prove that every operation and filter named here is known to its kernel, that the last match decides
//! across `file-write*` and `file-write-unlink`, that `file-link` is asked about the source of a hard link, that a path
//! below `/System/Volumes/Data` is judged under one of the two spellings denied here, and that the services allowed
//! suffice for daily work. A mistake of the first kind makes `sandbox-exec` refuse the profile, so nothing runs; the
//! canary tries reading, writing and the network before the first command. Hard links that existed before a run, and
//! processes that left their session, parent and environment behind, are open on macOS.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

pub use crate::plan::Covers;
use crate::plan::{Plan, Rule};
use crate::sandbox::Reads;

/// The program that applies a profile. Never looked up on `PATH`.
pub const PROGRAM: &str = "/usr/bin/sandbox-exec";

/// What `sandbox-exec` exits with when the kernel refuses the profile, as it does inside another sandbox
/// (`EX_OSERR` of sysexits(3)).
pub const REFUSED: i32 = 71;

/// Which way to the network is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Door {
    /// None. Unix sockets inside the writable directories work.
    #[default]
    Closed,
    /// This machine's own services.
    Loopback,
    /// One port of this machine, on which a proxy listens.
    Proxy(u16),
    /// Everything.
    Open,
}

/// A path that cannot be said in a profile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("describe {path:?} to sandbox-exec: {reason}")]
#[non_exhaustive]
pub struct ProfileError {
    /// The path.
    pub path: PathBuf,
    /// Why not.
    pub reason: &'static str,
}

/// One line of the table of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRule {
    /// What it covers.
    pub covers: Covers,
    /// Allows or denies reading; `None` leaves it as earlier lines have it.
    pub read: Option<bool>,
    /// Allows or denies writing.
    pub write: Option<bool>,
    /// Whether the name may be spelled in capitals or small letters.
    pub any_case: bool,
}

/// What a profile is made from. All paths are absolute, symlinks resolved.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Confinement {
    /// Whether all files may be read that no rule hides; else only the system's own and what the rules allow.
    pub read_everything: bool,
    /// The table of files, in order.
    pub rules: Vec<FileRule>,
    /// Directories that may be written as a whole; unix sockets may be made and reached there.
    pub writable: Vec<PathBuf>,
    /// Paths that may not be renamed or removed, lest others lie elsewhere all at once.
    pub pinned: Vec<PathBuf>,
    /// The directory for temporary files.
    pub tmp: PathBuf,
    /// The network.
    pub door: Door,
}

/// A profile with the parameters it mentions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// The text after `-p`.
    pub text: String,
    /// Names and values of `-D`.
    pub parameters: Vec<(String, OsString)>,
}

/// Readable when only the project and the system are.
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/System",
    "/Library",
    "/Applications",
    "/opt",
    "/nix",
    "/dev",
    "/private/etc",
    "/private/var/db/dyld",
    "/private/var/db/timezone",
    "/private/var/db/xcode_select_link",
    "/private/var/select",
];

/// Where the same files are seen a second time on a machine with a separate data volume.
const DATA_VOLUME: &str = "/System/Volumes/Data";

/// Services that every program asks for; the rest (opening documents, the keychain, other programs) is denied.
const SERVICES: &[&str] = &[
    "com.apple.system.opendirectoryd.libinfo",
    "com.apple.cfprefsd.daemon",
    "com.apple.cfprefsd.agent",
    "com.apple.logd",
    "com.apple.system.notification_center",
];

/// Services that are needed to use a network: name resolution and the check of certificates (Go asks for that one).
const NETWORK_SERVICES: &[&str] = &[
    "com.apple.SystemConfiguration.configd",
    "com.apple.dnssd.service",
    "com.apple.trustd",
    "com.apple.trustd.agent",
];

impl Confinement {
    /// What a plan asks for. `tmp` is the one directory for temporary files, private to the user (0700).
    ///
    /// Every line of the plan's table about the project, its roots, protected and hidden paths is taken over in order;
    /// the lines about `/dev`, `/proc`, `/run` and `/tmp` describe mounts that only Linux has.
    pub fn of(plan: &Plan, tmp: &Path, door: Door) -> Self {
        let mut rules = Vec::new();
        let mut pinned: Vec<PathBuf> = Vec::new();
        for zone in &plan.zones {
            let rule =
                |read, write, any_case| FileRule { covers: zone.covers.clone(), read, write, any_case };
            if let Err(Rule::Hidden(_)) = &zone.read {
                rules.push(rule(Some(false), Some(false), false));
            } else if let Err(Rule::Protected(_)) = &zone.write {
                rules.push(rule(None, Some(false), true));
                let below = match &zone.covers {
                    Covers::Tree(path) | Covers::Exactly(path) => path.clone(),
                    Covers::Prefix { directory, prefix } => directory.join(prefix),
                };
                let inside = |path: &&Path| plan.writable.iter().any(|root| path.starts_with(root));
                pinned.extend(below.ancestors().skip(1).take_while(inside).map(Path::to_owned));
            } else if let (Covers::Tree(path), Ok(())) = (&zone.covers, &zone.read)
                && path != Path::new("/")
            {
                // What may be written is said by the roots: a private place of Linux is writable in the plan too, and
                // may bear the name of one.
                match &zone.write {
                    Ok(()) if plan.writable.contains(path) => rules.push(rule(Some(true), Some(true), false)),
                    Err(Rule::ReadOnlyMode | Rule::OutsideWritableRoots) => {
                        rules.push(rule(Some(true), Some(false), false));
                    }
                    Ok(())
                    | Err(
                        Rule::Protected(_)
                        | Rule::Hidden(_)
                        | Rule::NotVisible
                        | Rule::System
                        | Rule::HostSocket(_),
                    ) => {}
                }
            }
        }
        Self {
            read_everything: plan.reads == Reads::Everything,
            rules,
            writable: plan.writable.clone(),
            pinned,
            tmp: tmp.to_owned(),
            door,
        }
    }

    /// Writes the profile.
    ///
    /// # Errors
    /// A path is relative, or one that must be put into a regular expression is not UTF-8.
    pub fn profile(&self) -> Result<Profile, ProfileError> {
        let mut out = Writer { text: String::with_capacity(4096), parameters: Vec::new() };
        out.line("(version 1)");
        out.line("(deny default)");
        out.part("the command and what it starts");
        out.line("(allow process-fork)");
        out.line("(allow signal (target same-sandbox))");
        out.line("(allow process-info* (target same-sandbox))");
        self.files(&mut out)?;
        devices(&mut out);
        out.part("the system");
        // All of sysctl but other processes' arguments and environments: runtimes ask for ever new names.
        out.line("(allow sysctl-read)");
        out.line("(deny sysctl-read (sysctl-name-prefix \"kern.procargs\"))");
        out.line("(allow sysctl-write (sysctl-name \"kern.grade_cputype\"))");
        out.line("(allow ipc-posix-sem)");
        out.line("(allow ipc-posix-shm-read* (ipc-posix-name-prefix \"apple.cfprefs.\"))");
        out.line("(allow mach-host*)");
        out.line("(allow user-preference-read)");
        out.services(SERVICES);
        self.network(&mut out)?;
        Ok(Profile { text: out.text, parameters: out.parameters })
    }

    fn files(&self, out: &mut Writer) -> Result<(), ProfileError> {
        out.part("files: the last rule that matches decides");
        if self.read_everything {
            out.line("(allow process-exec file-read* file-map-executable)");
        } else {
            // Resolving a path looks at each directory above it, and at the three symlinks of every macOS.
            let mut above: BTreeSet<&Path> = ["/etc", "/tmp", "/var"].map(Path::new).into();
            let shown =
                self.rules.iter().filter(|rule| rule.read == Some(true)).filter_map(|rule| {
                    match &rule.covers {
                        Covers::Tree(path) | Covers::Exactly(path) => Some(path.as_path()),
                        Covers::Prefix { .. } => None,
                    }
                });
            above.extend(SYSTEM.iter().flat_map(|path| Path::new(path).ancestors().skip(1)));
            let mut filters: Vec<String> =
                above.iter().map(|path| format!("(literal {})", quote(&path.to_string_lossy()))).collect();
            let shown: BTreeSet<&Path> =
                shown.chain([self.tmp.as_path()]).flat_map(|path| path.ancestors().skip(1)).collect();
            for path in shown.difference(&above) {
                filters.push(out.literal(path)?);
            }
            out.rule("allow", "file-read-metadata", &filters);
            // Starting any program lists the root directory.
            out.line("(allow file-read-data (literal \"/\"))");
            let filters: Vec<String> =
                SYSTEM.iter().map(|path| format!("(subpath {})", quote(path))).collect();
            out.line(&format!("(allow process-exec file-read* file-map-executable {})", filters.join(" ")));
            out.line(&format!("(deny process-exec file-read* (subpath {}))", quote(DATA_VOLUME)));
        }
        for rule in &self.rules {
            let mut filters = out.filters(&rule.covers, rule.any_case)?;
            match rule.read {
                Some(true) => {
                    out.rule("allow", "process-exec file-read* file-map-executable", &filters);
                }
                Some(false) => {
                    if let Covers::Tree(path) | Covers::Exactly(path) = &rule.covers {
                        filters.push(out.subpath(&data_volume(path))?);
                    }
                    out.rule("deny", "process-exec file-read*", &filters);
                }
                None => {}
            }
            match rule.write {
                Some(true) => out.rule("allow", "file-write*", &filters),
                Some(false) => out.rule("deny", "file-write*", &filters),
                None => {}
            }
        }
        out.part("temporary files");
        let tmp = out.subpath(&self.tmp)?;
        out.rule("allow", "process-exec file-read* file-map-executable file-write*", &[tmp]);
        out.part("what would undo the rules above");
        let pinned: BTreeSet<&PathBuf> =
            self.pinned.iter().chain(&self.writable).chain([&self.tmp]).collect();
        for path in pinned {
            let pin = out.literal(path)?;
            out.rule("deny", "file-write-unlink", &[pin]);
        }
        // A second name for a file outside would make it writable: rules go by name. The price is `ln`, and pnpm.
        out.line("(deny file-link)");
        out.line("(deny file-write-setugid)");
        Ok(())
    }

    fn network(&self, out: &mut Writer) -> Result<(), ProfileError> {
        out.part("network");
        out.line("(allow system-socket (socket-domain AF_UNIX))");
        for path in self.writable.iter().chain([&self.tmp]) {
            let path = out.subpath(path)?;
            out.line(&format!("(allow network-bind (local unix-socket {path}))"));
            out.line(&format!("(allow network-outbound (remote unix-socket {path}))"));
        }
        match self.door {
            Door::Closed => {}
            Door::Loopback => {
                out.line("(allow network-bind network-inbound (local ip \"localhost:*\"))");
                out.line("(allow network-outbound (remote ip \"localhost:*\"))");
            }
            Door::Proxy(port) => {
                out.line(&format!("(allow network-outbound (remote ip \"localhost:{port}\"))"));
            }
            Door::Open => {
                // By address only: "everything" would hold the sockets of Docker and of the ssh agent.
                out.line("(allow system-socket (socket-domain AF_ROUTE))");
                out.line("(allow system-socket (require-all (socket-domain AF_SYSTEM) (socket-protocol 2)))");
                out.line("(allow network-bind network-inbound (local ip \"*:*\"))");
                out.line("(allow network-outbound (remote ip \"*:*\"))");
                out.line("(allow network-outbound (literal \"/private/var/run/mDNSResponder\"))");
                out.services(NETWORK_SERVICES);
            }
        }
        Ok(())
    }
}

/// Devices that hold nothing, and the terminals that the command makes itself.
fn devices(out: &mut Writer) {
    out.part("devices");
    for device in ["/dev/null", "/dev/zero"] {
        out.line(&format!(
            "(allow file-read* file-write-data (require-all (literal {}) (vnode-type CHARACTER-DEVICE)))",
            quote(device)
        ));
    }
    out.line("(allow file-read* file-write-data (literal \"/dev/stdout\") (literal \"/dev/stderr\") (subpath \"/dev/fd\"))");
    out.line("(allow pseudo-tty)");
    out.line("(allow file-read* file-write-data file-ioctl (literal \"/dev/ptmx\"))");
    out.line(
        "(allow file-read* file-write-data file-ioctl \
         (require-all (regex \"^/dev/ttys[0-9]+$\") (extension \"com.apple.sandbox.pty\")))",
    );
}

impl Profile {
    /// The arguments of [`PROGRAM`] that run `command` under this profile.
    ///
    /// Standard input must be a pipe that somebody else reads. A shell inside the sandbox writes one byte to it, puts the
    /// null device in its place and becomes the command. So a byte means that the profile was applied, and no byte that
    /// the sandbox failed, whatever was exited with; and the command never holds the pipe.
    pub fn arguments(&self, command: &[OsString]) -> Vec<OsString> {
        let mut all: Vec<OsString> = vec!["-p".into(), OsString::from(&self.text)];
        for (name, value) in &self.parameters {
            let mut definition = OsString::from(format!("{name}="));
            definition.push(value);
            all.push("-D".into());
            all.push(definition);
        }
        all.push("--".into());
        all.push("/bin/sh".into());
        all.push("-c".into());
        all.push("exec 3</dev/null; printf r >&0; exec \"$@\" <&3 3<&-".into());
        all.push("sh".into());
        all.extend(command.iter().cloned());
        all
    }
}

/// What to do when there was no byte: see [`Profile::arguments`].
pub fn remedy(code: Option<i32>, text: &str) -> &'static str {
    if code == Some(REFUSED) && text.contains("sandbox_apply") {
        "this process is in a macOS sandbox already, and sandboxes do not nest: start it outside of that one, or run \
         with danger_full_access where the outer sandbox is protection enough"
    } else if code == Some(REFUSED) {
        "macOS refused the profile: please report it with the version of macOS"
    } else {
        "check that /usr/bin/sandbox-exec and /bin/sh can be run"
    }
}

struct Writer {
    text: String,
    parameters: Vec<(String, OsString)>,
}

impl Writer {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn part(&mut self, title: &str) {
        self.line("");
        self.line(&format!("; {title}"));
    }

    fn rule(&mut self, action: &str, operations: &str, filters: &[String]) {
        self.line(&format!("({action} {operations} {})", filters.join(" ")));
    }

    fn services(&mut self, names: &[&str]) {
        let filters: Vec<String> =
            names.iter().map(|name| format!("(global-name {})", quote(name))).collect();
        self.rule("allow", "mach-lookup", &filters);
    }

    /// A reference to a parameter with this value, made when there is none yet.
    fn parameter(&mut self, path: &Path) -> Result<String, ProfileError> {
        if !path.is_absolute() {
            return Err(ProfileError { path: path.to_owned(), reason: "it is not absolute" });
        }
        let known = self.parameters.iter().find(|(_, value)| value == path.as_os_str());
        let name = if let Some((name, _)) = known {
            name.clone()
        } else {
            let name = format!("PATH_{}", self.parameters.len());
            self.parameters.push((name.clone(), path.as_os_str().to_owned()));
            name
        };
        Ok(format!("(param {})", quote(&name)))
    }

    fn subpath(&mut self, path: &Path) -> Result<String, ProfileError> {
        Ok(format!("(subpath {})", self.parameter(path)?))
    }

    fn literal(&mut self, path: &Path) -> Result<String, ProfileError> {
        Ok(format!("(literal {})", self.parameter(path)?))
    }

    /// Filters of which any must match.
    fn filters(&mut self, covers: &Covers, any_case: bool) -> Result<Vec<String>, ProfileError> {
        let mut filters = Vec::new();
        match covers {
            Covers::Exactly(path) => filters.push(self.literal(path)?),
            Covers::Tree(path) => {
                filters.push(self.subpath(path)?);
                if any_case && let (Some(directory), Some(name)) = (path.parent(), path.file_name()) {
                    filters.push(below(directory, name, "(/|$)")?);
                }
            }
            Covers::Prefix { directory, prefix } => filters.push(below(directory, prefix, "")?),
        }
        Ok(filters)
    }
}

/// A regular expression for a name in a directory, in capitals or small letters, and for what is below it.
fn below(directory: &Path, name: &OsStr, end: &str) -> Result<String, ProfileError> {
    let unreadable = |path: &Path| ProfileError { path: path.to_owned(), reason: "it is not UTF-8" };
    let directory_text = directory.to_str().ok_or_else(|| unreadable(directory))?;
    let name = name.to_str().ok_or_else(|| unreadable(&directory.join(name)))?;
    let directory_text = directory_text.trim_end_matches('/');
    Ok(format!(
        "(regex {})",
        quote(&format!("^{}/{}{end}", pattern(directory_text, false), pattern(name, true)))
    ))
}

/// A regular expression that matches exactly this text, or this text in any case.
fn pattern(text: &str, any_case: bool) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    for character in text.chars() {
        match character {
            letter if any_case && letter.is_ascii_alphabetic() => {
                let _ = write!(out, "[{}{}]", letter.to_ascii_lowercase(), letter.to_ascii_uppercase());
            }
            '.' | '[' | '(' | ')' | '*' | '+' | '?' | '{' | '}' | '|' | '$' | '^' | '\\' => {
                out.push('\\');
                out.push(character);
            }
            // `]` by itself is an ordinary character.
            _ => out.push(character),
        }
    }
    out
}

/// A string of the profile's language.
fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => {
                out.push('\\');
                out.push(character);
            }
            _ => out.push(character),
        }
    }
    out.push('"');
    out
}

fn data_volume(path: &Path) -> PathBuf {
    Path::new(DATA_VOLUME).join(path.strip_prefix("/").unwrap_or(path))
}
