//! What a line of output complains about, as the usual programs put it. Nothing here decides anything: a reading that
//! the plan does not deny is dropped.

/// What was said to be wrong with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It cannot be written: `EROFS`, `EBUSY`.
    Unwritable,
    /// It may not be used: `EACCES`, `EPERM`.
    Refused,
    /// It is not there: `ENOENT`.
    Absent,
}

/// What a network denial is about where no host is named.
pub(super) const UNNAMED: &str = "the network";

/// Messages of the C library, in lower case because Go, Rust and Node write them so, and names of errors.
const FILE_ERRORS: &[(&str, Kind)] = &[
    ("read-only file system", Kind::Unwritable),
    ("device or resource busy", Kind::Unwritable),
    ("permission denied", Kind::Refused),
    ("operation not permitted", Kind::Refused),
    ("no such file or directory", Kind::Absent),
    ("EROFS", Kind::Unwritable),
    ("EBUSY", Kind::Unwritable),
    ("EACCES", Kind::Refused),
    ("EPERM", Kind::Refused),
    ("ENOENT", Kind::Absent),
];

/// The same for a network that is not there.
const NETWORK_ERRORS: &[&str] = &[
    "network is unreachable",
    "could not resolve host",
    "could not resolve proxy",
    "temporary failure in name resolution",
    "name or service not known",
    "no address associated",
    "unable to resolve host address",
    "ENETUNREACH",
    "EAI_AGAIN",
    "ENOTFOUND",
];

/// What a resolver's or a connection's error puts before the host.
const BEFORE_HOST: &[&str] = &[
    "Could not resolve host: ",
    "Could not resolve hostname ",
    "Could not resolve proxy: ",
    "unable to resolve host address ",
    "getaddrinfo EAI_AGAIN ",
    "getaddrinfo ENOTFOUND ",
    "connect ENETUNREACH ",
    "Failed to resolve ",
    "Failed to open TCP connection to ",
    "Resolving ",
    ": lookup ",
];

/// What shells put between their own part of a message and the name.
const SHELL_WORDS: &[&str] = &[
    "cd: can't cd to ",
    "cd: ",
    "pushd: ",
    "source: ",
    ".: ",
    "exec: ",
    "cannot create ",
    "cannot open ",
    "can't create ",
    "can't open ",
];

/// What programs put before a name that they do not quote.
const BEFORE_NAME: &[&str] = &[
    "could not lock config file ",
    "could not write config file ",
    "unable to create file ",
    "unable to create directory ",
    "couldn't open temporary file ",
    "couldn't open file ",
    "cannot open output file ",
    "cannot create directory ",
    "can't create directory ",
    "cannot create ",
    "can't create ",
    "cannot open ",
    "can't open ",
    "can't read ",
    "could not open ",
    "could not create ",
    "failed to open ",
    "failed to create ",
    "unable to open ",
    "open ",
    "mkdir ",
    "create ",
    "remove ",
    "unlink ",
    "stat ",
    "lstat ",
    "write ",
    "chmod ",
];

/// What programs put between a name and the error, or before a name, as a part of its own.
const NOT_NAMES: &[&str] = &[
    "connect",
    "open",
    "write",
    "bind",
    "mkdir",
    "unlink",
    "rename",
    "stat",
    "Cannot open",
    "Cannot mkdir",
    "Cannot unlink",
    "open failed",
    "error",
    "fatal",
    "warning",
    "Error",
    "write error",
];

/// The error in a line, and what stands on either side of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Complaint<'a> {
    before: &'a str,
    after: &'a str,
    line: &'a str,
    /// What is wrong.
    pub(super) kind: Kind,
}

/// Where one of the errors stands: a name is a word of its own, a message may stand anywhere.
fn position(line: &str, lower: &str, error: &str) -> Option<usize> {
    if error.starts_with(|first: char| first.is_ascii_lowercase()) {
        return lower.rfind(error);
    }
    let letter = |side: Option<char>| side.is_some_and(|side| side.is_alphanumeric() || side == '_');
    line.match_indices(error)
        .filter(|&(start, _)| {
            let (before, after) = (line.get(..start), line.get(start + error.len()..));
            !letter(before.and_then(|before| before.chars().next_back()))
                && !letter(after.and_then(|after| after.chars().next()))
        })
        .map(|(start, _)| start)
        .last()
}

/// The complaint about a file in a line.
pub(super) fn complaint(line: &str) -> Option<Complaint<'_>> {
    // The lower case of ASCII letters is as long as they are: positions hold for both.
    let lower = line.to_ascii_lowercase();
    let mut found: Option<(usize, usize, Kind)> = None;
    for &(error, kind) in FILE_ERRORS {
        let Some(start) = position(line, &lower, error) else { continue };
        let end = start + error.len();
        found = Some(match found {
            None => (start, end, kind),
            // `EROFS: read-only file system` is one error with two names; what stands further off is another remark.
            Some((from, to, first)) if start <= to + 2 && from <= end + 2 => {
                (from.min(start), to.max(end), first)
            }
            Some(known) => known,
        });
    }
    let (start, end, kind) = found?;
    Some(Complaint { before: line.get(..start)?, after: line.get(end..)?, line, kind })
}

impl Complaint<'_> {
    /// The names that the line may be about, the likeliest first. `previous` is the line before, which some programs
    /// put the name in.
    pub(super) fn names(&self, previous: &str) -> Vec<String> {
        let before = self.before.trim_end();
        let subject = before.strip_suffix([':', '(']).map(str::trim);
        if let Some(rest) = subject.and_then(shell_message) {
            return shell_name(rest).into_iter().collect();
        }
        if let Some((_, rest)) = self.after.split_once(" @ ").and_then(|(_, rest)| rest.split_once(" - ")) {
            return ruby_names(rest);
        }
        if self.after.starts_with([':', ',']) {
            // Python, Node: what follows. The target of a renaming stands last.
            let mut names = quoted(self.after);
            names.reverse();
            if !names.is_empty() {
                return names;
            }
            let rest = self.after.trim_start_matches([':', ',', ' ']);
            if before.starts_with("zsh:") || (rest.starts_with('/') && subject.is_none()) {
                return vec![rest.to_owned()];
            }
        }
        if let Some(subject) = subject.filter(|subject| !subject.is_empty()) {
            let mut names = quoted(subject);
            names.reverse();
            if names.is_empty() { unquoted(subject) } else { names }
        } else if before.trim().is_empty() {
            named_anywhere(previous)
        } else {
            named_anywhere(self.line)
        }
    }
}

/// What follows the shell's own part: `PROGRAM: line N: …` (bash), `PROGRAM: N: …` (dash).
fn shell_message(subject: &str) -> Option<&str> {
    let (_, rest) = subject.split_once(": ")?;
    let (number, rest) = rest.strip_prefix("line ").unwrap_or(rest).split_once(": ")?;
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(rest)
}

fn shell_name(rest: &str) -> Option<String> {
    if rest.ends_with(": write error") || rest.contains("here-document") {
        return None;
    }
    let name = SHELL_WORDS.iter().find_map(|words| rest.strip_prefix(words)).unwrap_or(rest);
    Some(name.to_owned())
}

/// `/usr/x (Errno::EROFS)`, `(a, b) (Errno::EBUSY)`.
fn ruby_names(rest: &str) -> Vec<String> {
    let names = rest.rsplit_once(" (Errno::").map_or(rest, |(names, _)| names);
    match names.strip_prefix('(').and_then(|names| names.strip_suffix(')')) {
        Some(pair) => pair.rsplit(", ").map(str::to_owned).collect(),
        None => vec![names.to_owned()],
    }
}

/// A name without quotes: all after the program's own and such words as `Cannot open`, or the end of it.
fn unquoted(subject: &str) -> Vec<String> {
    let mut parts: Vec<&str> = subject.split(": ").collect();
    while parts.len() > 1 && parts.last().is_some_and(|part| NOT_NAMES.contains(part)) {
        parts.pop();
    }
    if parts.len() > 1 {
        parts.remove(0);
    }
    while parts.len() > 1 && parts.first().is_some_and(|part| NOT_NAMES.contains(part)) {
        parts.remove(0);
    }
    let name = parts.join(": ");
    let mut names = readings(&name);
    if let Some(last) = parts.last().filter(|_| parts.len() > 1) {
        names.extend(readings(last));
    }
    names
}

fn readings(text: &str) -> Vec<String> {
    if text.starts_with(['/', '.']) {
        return vec![text.to_owned()];
    }
    let mut names = Vec::new();
    let stripped = BEFORE_NAME.iter().find_map(|words| text.strip_prefix(words));
    if let Some(name) = stripped {
        names.push(name.to_owned());
    } else if let Some((_, name)) = text.split_once(" /") {
        names.push(format!("/{name}"));
    } else {
        names.push(text.to_owned());
    }
    let last = text.rsplit(' ').next().unwrap_or(text);
    if last.contains('/') || last.starts_with('.') {
        names.push(last.to_owned());
    }
    names
}

/// Names in a line that is not of any known form: what is in quotes and looks like a path, and absolute paths, but not
/// the program at the beginning.
fn named_anywhere(line: &str) -> Vec<String> {
    let mut names: Vec<String> =
        quoted(line).into_iter().filter(|name| name.contains('/') || name.starts_with('.')).collect();
    names.reverse();
    let rest = line.split_once(": ").map_or(line, |(_, rest)| rest);
    let words = rest.split_whitespace().rev();
    let trimmed = words.map(|word| word.trim_matches([':', ',', ';', '(', ')', '\'', '"', '`', '[', ']']));
    names.extend(trimmed.filter(|word| word.starts_with('/')).map(str::to_owned));
    names
}

/// What stands in quotes. Quotes open at the beginning of a word and close at the end of one; those inside are told
/// apart as the shell (`'\''`) and Python (`\'`) write them.
fn quoted(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    let mut before = ' ';
    while let Some(open) = rest.chars().next() {
        rest = rest.strip_prefix(open).unwrap_or_default();
        let word_starts = before.is_whitespace() || "([{=:,<>".contains(before);
        before = open;
        let close: &[char] = match open {
            '\'' => &['\''],
            '"' => &['"'],
            '`' => &['`', '\''],
            '\u{2018}' => &['\u{2019}'],
            _ => continue,
        };
        if !word_starts {
            continue;
        }
        if let Some((inside, tail)) = unquote(rest, close) {
            if !inside.is_empty() {
                found.push(inside);
            }
            rest = tail;
        }
    }
    found
}

fn unquote<'a>(text: &'a str, close: &[char]) -> Option<(String, &'a str)> {
    let mut inside = String::new();
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let tail = rest.strip_prefix(next)?;
        if close.contains(&next) {
            if let Some(tail) = tail.strip_prefix("\\''") {
                inside.push('\'');
                rest = tail;
                continue;
            }
            if !tail.starts_with(char::is_alphanumeric) {
                return Some((inside, tail));
            }
        }
        if next == '\\'
            && let Some(tail) = ['\'', '"', '\\'].iter().find_map(|escaped| tail.strip_prefix(*escaped))
        {
            inside.extend(rest.chars().nth(1));
            rest = tail;
            continue;
        }
        inside.push(next);
        rest = tail;
    }
    None
}

/// The host that a line says cannot be reached; [`UNNAMED`] where it says so of none.
pub(super) fn unreachable(line: &str) -> Option<String> {
    let lower = line.to_ascii_lowercase();
    let says = NETWORK_ERRORS.iter().any(|error| position(line, &lower, error).is_some());
    // A connection that nobody accepts is the command's own affair where it is to the machine itself.
    let connect = || after(line, "Failed to connect to ").filter(|host| !own(host));
    if says { named_host(line).or_else(connect).or_else(|| Some(UNNAMED.to_owned())) } else { connect() }
}

/// Whether a host is the sandbox's own loopback.
fn own(host: &str) -> bool {
    host == "localhost" || host.starts_with("127.") || host == "::1" || host == "[::1]"
}

fn named_host(line: &str) -> Option<String> {
    BEFORE_HOST
        .iter()
        .find_map(|words| after(line, words))
        .or_else(|| {
            // bash: `bash: line 1: HOST: Temporary failure in name resolution`.
            let rest = line.rsplit_once(": ").map(|(rest, _)| rest).and_then(shell_message)?;
            host(rest)
        })
        .or_else(|| {
            let (_, rest) = line.split_once("://")?;
            let authority = rest.split(['/', '\'', '"', '?', ' ']).next()?;
            host(authority.rsplit('@').next()?)
        })
}

/// The host that follows some words.
fn after(line: &str, words: &str) -> Option<String> {
    let (_, rest) = line.split_once(words)?;
    host(rest.split(char::is_whitespace).next()?)
}

/// A host or address, with its port if it has one; the marks around it are taken off.
fn host(word: &str) -> Option<String> {
    let word = word.trim_matches(['\'', '"', '`', '\u{2018}', '\u{2019}', '(', ')', ',', ';', ':', '.']);
    let fits = |c: char| c.is_alphanumeric() || "-._:[]".contains(c);
    (!word.is_empty() && word.len() <= 260 && word.contains(char::is_alphanumeric) && word.chars().all(fits))
        .then(|| word.to_owned())
}
