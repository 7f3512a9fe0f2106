//! The spellings under which one target is looked up.
//!
//! A rule that loosens must match what will really be opened or started, so it sees only the *firm*
//! spellings. A rule that tightens also sees the *loose* ones: the raw text, the program's last path
//! component, the command with its spaces evened out. Rules that match loosely can make an answer stricter
//! and never looser.

use crate::act::Act;
use crate::glob::fold;
use crate::ruling::MatchedOn;
use std::borrow::Cow;

/// One spelling of a target.
pub(crate) struct Form<'a> {
    pub(crate) text: Cow<'a, str>,
    /// The same with the case folded where that is sound for the act.
    pub(crate) folded: Cow<'a, str>,
    /// The same with all of its case folded; the index is searched with this one.
    pub(crate) scan: Cow<'a, str>,
    pub(crate) loose: bool,
    pub(crate) on: MatchedOn,
    pub(crate) spaces: Spaces,
    /// Of a blurred spelling, the one in which the spaces are marked.
    pub(crate) marked: Option<String>,
}

/// What the spaces of a spelling tell about words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spaces {
    /// Each stands between two words, as far as is known.
    Between,
    /// Some stand within a word.
    Blurred,
    /// Each stands between two words, and those within one are [`WITHIN`].
    Marked,
}

/// Stands for a space within a word, and for a word that is empty.
const WITHIN: &str = "\u{1f}";

/// All spellings of a target.
pub(crate) struct Forms<'a> {
    list: Vec<Form<'a>>,
}

impl<'a> Forms<'a> {
    pub(crate) fn of(act: Act, target: &'a str) -> Self {
        let mut forms = Self { list: Vec::with_capacity(4) };
        forms.add_target(act, target);
        forms
    }

    pub(crate) fn of_argv(argv: &'a [impl AsRef<str>], joined: &'a str) -> Self {
        let mut forms = Self { list: Vec::with_capacity(4) };
        let [program, ..] = argv else { return forms };
        forms.add_command(program.as_ref(), joined);
        let blurs = |word: &str| word.is_empty() || word.contains(' ');
        if argv.iter().any(|word| blurs(word.as_ref())) {
            let mark =
                |word: &str| if word.is_empty() { WITHIN.to_owned() } else { word.replace(' ', WITHIN) };
            let marked = argv.iter().map(|word| mark(word.as_ref())).collect::<Vec<_>>().join(" ");
            let even = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            for form in &mut forms.list {
                let of_program = matches!(form.on, MatchedOn::Program | MatchedOn::Basename);
                if of_program && !blurs(program.as_ref()) {
                    continue;
                }
                form.spaces = Spaces::Blurred;
                if form.text == joined {
                    form.marked = Some(marked.clone());
                } else if form.text == even(joined) {
                    let words = argv.iter().map(|word| mark(&even(word.as_ref())));
                    form.marked = Some(words.collect::<Vec<_>>().join(" "));
                }
            }
            forms.push(Act::Exec, Cow::Owned(marked), false, MatchedOn::Command);
            if let Some(form) = forms.list.last_mut() {
                form.spaces = Spaces::Marked;
            }
        }
        forms
    }

    pub(crate) fn add_target(&mut self, act: Act, target: &'a str) {
        match act {
            Act::Read | Act::Write => self.add_path(act, target),
            Act::Exec => {
                let program = target.split(' ').next().unwrap_or_default();
                self.add_command(program, target);
            }
            Act::Net => self.add_host(target),
        }
    }

    pub(crate) fn all(&self) -> &[Form<'a>] {
        &self.list
    }

    pub(crate) fn firm(&self) -> impl Iterator<Item = &Form<'a>> {
        self.list.iter().filter(|form| !form.loose)
    }

    fn push(&mut self, act: Act, text: Cow<'a, str>, loose: bool, on: MatchedOn) {
        if self.list.iter().any(|form| form.text == text && (loose || !form.loose)) {
            return;
        }
        let (folded, scan) = match &text {
            Cow::Borrowed(text) => (fold_target(act, text), fold(text)),
            Cow::Owned(text) => {
                (Cow::Owned(fold_target(act, text).into_owned()), Cow::Owned(fold(text).into_owned()))
            }
        };
        self.list.push(Form { text, folded, scan, loose, on, spaces: Spaces::Between, marked: None });
    }

    fn add_path(&mut self, act: Act, raw: &'a str) {
        let clean = normalise_path(raw);
        let same = clean == raw;
        let name = match &clean {
            Cow::Borrowed(clean) => last_component(clean).map(Cow::Borrowed),
            Cow::Owned(clean) => last_component(clean).map(|name| Cow::Owned(name.to_owned())),
        };
        self.push(act, clean, false, MatchedOn::Target);
        if let Some(name) = name {
            self.push(act, name, false, MatchedOn::Basename);
        }
        if !same {
            self.push(act, Cow::Borrowed(raw), true, MatchedOn::Target);
            if let Some(name) = last_component(raw.trim_end_matches('/')) {
                self.push(act, Cow::Borrowed(name), true, MatchedOn::Basename);
            }
        }
    }

    fn add_command(&mut self, program: &'a str, joined: &'a str) {
        // A command without arguments is both; it is taken as the whole.
        self.push(Act::Exec, Cow::Borrowed(joined), false, MatchedOn::Command);
        self.push(Act::Exec, Cow::Borrowed(program), false, MatchedOn::Program);
        let arguments = joined.strip_prefix(program).unwrap_or_default();
        self.add_loose_command(program, arguments);
        if joined.contains("  ")
            || joined.contains(|c: char| c.is_whitespace() && c != ' ')
            || joined != joined.trim()
        {
            let even = joined.split_whitespace().collect::<Vec<_>>().join(" ");
            let (program, arguments) =
                even.split_at_checked(even.find(' ').unwrap_or(even.len())).unwrap_or_default();
            let (program, arguments) = (program.to_owned(), arguments.to_owned());
            self.push(Act::Exec, Cow::Owned(even), true, MatchedOn::Command);
            self.push(Act::Exec, Cow::Owned(program.clone()), true, MatchedOn::Program);
            self.add_loose_command(&program, &arguments);
        }
    }

    /// `/bin/rm -r x` is also `rm` and `rm -r x`, and `//bin/./rm` is also `/bin/rm`.
    fn add_loose_command(&mut self, program: &str, arguments: &str) {
        if !program.contains('/') {
            return;
        }
        let clean = normalise_path(program);
        if clean != program {
            self.push(Act::Exec, Cow::Owned(format!("{clean}{arguments}")), true, MatchedOn::Command);
        }
        if let Some(name) = last_component(&clean) {
            self.push(Act::Exec, Cow::Owned(format!("{name}{arguments}")), true, MatchedOn::Command);
            self.push(Act::Exec, Cow::Owned(name.to_owned()), true, MatchedOn::Basename);
        }
        if clean != program {
            self.push(Act::Exec, clean.into_owned().into(), true, MatchedOn::Program);
        }
    }

    fn add_host(&mut self, raw: &'a str) {
        let lower = fold(raw);
        let (authority, is_url) = match lower.split_once("://") {
            Some((_, rest)) => (rest.split(['/', '?', '#', '\\']).next().unwrap_or_default(), true),
            None => (&*lower, false),
        };
        // `good.example@evil.example` reaches the second: no rule may allow what is not plainly a host.
        let (user, address) = match authority.rsplit_once('@') {
            Some((user, address)) => (Some(user), address),
            None => (None, authority),
        };
        let (host, port) = split_port(address);
        let host = host.strip_suffix('.').unwrap_or(host);
        let loose = user.is_some() || !is_host(host) || port.is_some_and(|port| !is_port(port));
        self.push(Act::Net, Cow::Owned(host.to_owned()), loose, MatchedOn::Host);
        if let Some(port) = port {
            self.push(Act::Net, Cow::Owned(format!("{host}:{port}")), loose, MatchedOn::Target);
        }
        if is_url {
            self.push(Act::Net, lower.clone(), loose, MatchedOn::Target);
        }
        self.push(Act::Net, lower, true, MatchedOn::Target);
        self.push(Act::Net, Cow::Borrowed(raw), true, MatchedOn::Target);
    }
}

/// The target as a pattern that ignores case sees it; see [`crate::pattern`].
fn fold_target(act: Act, text: &str) -> Cow<'_, str> {
    match act {
        Act::Read | Act::Write => fold(text),
        Act::Exec => match text.split_once(' ') {
            None => fold(text),
            Some((program, arguments)) => match fold(program) {
                Cow::Borrowed(_) => Cow::Borrowed(text),
                Cow::Owned(program) => Cow::Owned(format!("{program} {arguments}")),
            },
        },
        Act::Net => Cow::Borrowed(text),
    }
}

/// Removes `.`, empty components and `a/..`, as the text alone tells. A path that a symlink bends is the
/// caller's to resolve.
pub(crate) fn normalise_path(raw: &str) -> Cow<'_, str> {
    if raw.is_empty() || is_normal(raw) {
        return Cow::Borrowed(raw);
    }
    let rooted = raw.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in raw.split('/') {
        match part {
            "" | "." => {}
            ".." => match parts.last() {
                Some(&"..") => parts.push(part),
                Some(_) => {
                    parts.pop();
                }
                None if rooted => {}
                None => parts.push(part),
            },
            other => parts.push(other),
        }
    }
    let joined = parts.join("/");
    Cow::Owned(match (rooted, joined.is_empty()) {
        (true, _) => format!("/{joined}"),
        (false, true) => ".".to_owned(),
        (false, false) => joined,
    })
}

fn is_normal(path: &str) -> bool {
    let mut only_up = !path.starts_with('/');
    path == "/"
        || path == "."
        || path.strip_prefix('/').unwrap_or(path).split('/').all(|part| match part {
            "" | "." => false,
            ".." => only_up,
            _ => {
                only_up = false;
                true
            }
        })
}

pub(crate) fn last_component(path: &str) -> Option<&str> {
    let name = path.rsplit('/').next()?;
    (!name.is_empty()).then_some(name)
}

fn split_port(address: &str) -> (&str, Option<&str>) {
    if let Some(inside) = address.strip_prefix('[') {
        // `[::1]:443`
        return match inside.split_once(']') {
            Some((host, rest)) => (host, rest.strip_prefix(':')),
            None => (address, None),
        };
    }
    match address.split_once(':') {
        Some((host, port)) if !port.contains(':') => (host, Some(port)),
        // More than one colon without brackets: an IPv6 address.
        _ => (address, None),
    }
}

fn is_host(host: &str) -> bool {
    !host.is_empty()
        && host.chars().all(|c| {
            c.is_ascii_alphanumeric()
                || matches!(c, '.' | '-' | '_' | ':' | '%')
                || !c.is_ascii() && c.is_alphanumeric()
        })
}

fn is_port(port: &str) -> bool {
    port.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_evened_out() {
        for (raw, clean) in [
            ("a/b", "a/b"),
            ("./a", "a"),
            ("a//b/", "a/b"),
            ("a/./b", "a/b"),
            ("a/../b", "b"),
            ("../b", "../b"),
            ("../../b", "../../b"),
            ("a/../../b", "../b"),
            ("/../etc", "/etc"),
            ("//etc/./passwd", "/etc/passwd"),
            (".", "."),
            ("./", "."),
            ("a/..", "."),
            ("/", "/"),
            ("", ""),
            ("..", ".."),
            (".env", ".env"),
        ] {
            assert_eq!(normalise_path(raw), clean, "{raw}");
            assert_eq!(normalise_path(clean), clean, "{clean} again");
        }
    }

    #[test]
    fn a_host_is_plain_or_loose() {
        let firm = |target: &str| {
            Forms::of(Act::Net, target).firm().map(|form| form.text.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(firm("Example.COM."), ["example.com"]);
        assert_eq!(firm("example.com:443"), ["example.com", "example.com:443"]);
        assert_eq!(firm("[::1]:443"), ["::1", "::1:443"]);
        assert_eq!(firm("::1"), ["::1"]);
        assert_eq!(firm("https://example.com/a"), ["example.com", "https://example.com/a"]);
        for hostile in [
            "https://example.com@evil.test/",
            "evil.test/.example.com",
            "a b",
            "",
            "x:99999",
            "evil.test#.example.com",
        ] {
            assert_eq!(firm(hostile), Vec::<String>::new(), "{hostile}");
        }
    }
}
