//! Which entries of a git configuration make git run a program or look elsewhere, and how to take them out.

use std::ops::Range;

/// One entry, lower-cased where git does not care about case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    section: String,
    subsection: Option<String>,
    key: String,
    value: String,
    /// Where it stands in the text.
    span: Range<usize>,
}

impl Entry {
    /// The name as `git config` prints it.
    pub(crate) fn name(&self) -> String {
        match &self.subsection {
            Some(subsection) => format!("{}.{subsection}.{}", self.section, self.key),
            None => format!("{}.{}", self.section, self.key),
        }
    }
}

/// The entries that make git run something, read something else, or talk to somebody else. `Err` when the text
/// is not understood, which is as bad.
pub(crate) fn hostile(text: &[u8]) -> Result<Vec<Entry>, ()> {
    Ok(parse(text)?.into_iter().filter(is_hostile).collect())
}

/// The text without these entries.
pub(crate) fn without(text: &[u8], entries: &[Entry]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(text.len());
    let mut at = 0;
    for entry in entries {
        kept.extend_from_slice(text.get(at..entry.span.start).unwrap_or_default());
        at = at.max(entry.span.end);
    }
    kept.extend_from_slice(text.get(at..).unwrap_or_default());
    kept
}

/// git-config(1), every variable that names a program, a file of further configuration, a directory to work in, or
/// rewrites where git connects to.
fn is_hostile(entry: &Entry) -> bool {
    let (key, value) = (entry.key.as_str(), entry.value.as_str());
    match entry.section.as_str() {
        "core" => {
            matches!(
                key,
                "fsmonitor"
                    | "hookspath"
                    | "sshcommand"
                    | "pager"
                    | "editor"
                    | "askpass"
                    | "gitproxy"
                    | "worktree"
                    | "alternaterefscommand"
                    | "attributesfile"
            ) && !(key == "fsmonitor" && matches!(value, "true" | "false"))
        }
        // Large file storage is configured by the same fixed words everywhere.
        "filter" => {
            matches!(key, "clean" | "smudge" | "process")
                && !(entry.subsection.as_deref() == Some("lfs")
                    && matches!(
                        value,
                        "git-lfs clean -- %f" | "git-lfs smudge -- %f" | "git-lfs filter-process"
                    ))
        }
        "diff" => matches!(key, "external" | "command" | "textconv" | "tool" | "guitool"),
        "merge" => matches!(key, "driver" | "tool" | "guitool"),
        "mergetool" | "difftool" | "browser" | "man" | "guitool" => matches!(key, "cmd" | "path"),
        "credential" => matches!(key, "helper"),
        "alias" | "submodule" => value.trim_start().starts_with('!'),
        "gpg" => matches!(key, "program" | "defaultkeycommand"),
        "sequence" => key == "editor",
        "include" | "includeif" => key == "path",
        "url" => matches!(key, "insteadof" | "pushinsteadof"),
        "protocol" => key == "allow",
        "remote" => {
            matches!(key, "uploadpack" | "receivepack" | "vcs") || (key == "url" && value.contains("::"))
        }
        "uploadpack" => key == "packobjectshook",
        "pager" => !matches!(value, "true" | "false"),
        "interactive" => key == "difffilter",
        "trailer" | "tar" => matches!(key, "command" | "cmd"),
        "init" => key == "templatedir",
        "sendemail" => matches!(key, "smtpserver" | "sendmailcmd" | "tocmd" | "cccmd" | "headercmd"),
        "imap" => key == "tunnel",
        "web" => key == "browser",
        "instaweb" => matches!(key, "httpd" | "browser"),
        "http" => matches!(key, "proxy" | "cookiefile" | "sslcert" | "sslkey"),
        _ => false,
    }
}

/// Reads the format of git-config(1), "Syntax".
fn parse(text: &[u8]) -> Result<Vec<Entry>, ()> {
    let mut entries = Vec::new();
    let mut section = (String::new(), None);
    let mut reader = Reader { text, at: 0 };
    if text.starts_with(b"\xef\xbb\xbf") {
        reader.at = 3;
    }
    while let Some(byte) = reader.peek() {
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => reader.at += 1,
            b'#' | b';' => reader.line(),
            b'[' => section = reader.header()?,
            _ if byte.is_ascii_alphabetic() => {
                let start = reader.at;
                let (key, value) = reader.variable()?;
                let (section, subsection) = section.clone();
                entries.push(Entry { section, subsection, key, value, span: start..reader.at });
            }
            _ => return Err(()),
        }
    }
    Ok(entries)
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek();
        self.at += usize::from(byte.is_some());
        byte
    }

    /// Up to the end of the line, which is left.
    fn line(&mut self) {
        while self.peek().is_some_and(|byte| byte != b'\n') {
            self.at += 1;
        }
    }

    fn header(&mut self) -> Result<(String, Option<String>), ()> {
        self.at += 1;
        let mut name = Vec::new();
        let mut subsection = None;
        loop {
            match self.next().ok_or(())? {
                b']' => break,
                b' ' | b'\t' if subsection.is_none() => {}
                b'"' if subsection.is_none() => {
                    let mut text = Vec::new();
                    loop {
                        match self.next().ok_or(())? {
                            b'"' => break,
                            b'\\' => text.push(self.next().ok_or(())?),
                            b'\n' => return Err(()),
                            byte => text.push(byte),
                        }
                    }
                    subsection = Some(String::from_utf8_lossy(&text).into_owned());
                }
                byte if byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.' => name.push(byte),
                _ => return Err(()),
            }
        }
        let name = String::from_utf8_lossy(&name).to_ascii_lowercase();
        // The old form: [section.subsection]
        Ok(match name.split_once('.') {
            Some((section, rest)) if subsection.is_none() => (section.to_owned(), Some(rest.to_owned())),
            _ => (name, subsection),
        })
    }

    fn variable(&mut self) -> Result<(String, String), ()> {
        let mut key = Vec::new();
        while let Some(byte) = self.peek().filter(|byte| byte.is_ascii_alphanumeric() || *byte == b'-') {
            key.push(byte.to_ascii_lowercase());
            self.at += 1;
        }
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        let key = String::from_utf8_lossy(&key).into_owned();
        match self.peek() {
            Some(b'=') => self.at += 1,
            // A key alone means true.
            None | Some(b'\n' | b'\r' | b'#' | b';') => {
                self.line();
                return Ok((key, "true".to_owned()));
            }
            Some(_) => return Err(()),
        }
        let mut value = Vec::new();
        let mut quoted = false;
        loop {
            match self.next() {
                None => break,
                Some(b'\n') if quoted => return Err(()),
                Some(b'\n') => {
                    self.at -= 1;
                    break;
                }
                Some(b'"') => quoted = !quoted,
                Some(b'\\') => match self.next() {
                    Some(b'\r') if self.peek() == Some(b'\n') => self.at += 1,
                    Some(b'\n') => {}
                    Some(b'n') => value.push(b'\n'),
                    Some(b't') => value.push(b'\t'),
                    Some(b'b') => {
                        value.pop();
                    }
                    Some(byte @ (b'"' | b'\\')) => value.push(byte),
                    Some(_) | None => return Err(()),
                },
                Some(b'#' | b';') if !quoted => {
                    self.line();
                    break;
                }
                Some(byte) => value.push(byte),
            }
        }
        if quoted {
            return Err(());
        }
        Ok((key, String::from_utf8_lossy(value.trim_ascii()).into_owned()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(text: &str) -> Vec<String> {
        hostile(text.as_bytes()).unwrap().iter().map(Entry::name).collect()
    }

    #[test]
    fn every_spelling_of_a_hostile_entry_is_found() {
        let texts = [
            "[core]\n\tfsmonitor = /x\n",
            "[core] fsmonitor=/x",
            "[CORE]\nFsMonitor=\"/x\"\n",
            "[core]\n  bare = true\n  fsmonitor \t = \\\n /x # why\n",
            "\u{feff}[core]\nfsmonitor=/x;c\n",
            "[core]#c\nfsmonitor=/x",
        ];
        for text in texts {
            assert_eq!(names(text), ["core.fsmonitor"], "{text:?}");
        }
        let all = "[include]path=e\n[includeIf \"gitdir:x\"]path=e\n[filter \"x\"]clean=c\n[diff.x]textconv=t\n[alias]s=!sh\n\
                   [credential \"https://x\"]helper=h\n[url \"u\"]insteadOf=x\n[remote \"o\"]uploadpack=x\n[remote \"o\"]url=ext::sh\n";
        assert_eq!(
            names(all),
            [
                "include.path",
                "includeif.gitdir:x.path",
                "filter.x.clean",
                "diff.x.textconv",
                "alias.s",
                "credential.https://x.helper",
                "url.u.insteadof",
                "remote.o.uploadpack",
                "remote.o.url"
            ]
        );
    }

    #[test]
    fn an_ordinary_configuration_is_left_alone() {
        let text = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tfsmonitor = true\n\
                    [remote \"origin\"]\n\turl = https://example.com/x.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n\
                    [branch \"main\"]\n\tremote = origin\n[filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n[alias]\n\tst = status\n\
                    [user]\n\tname = \"A # B\"\n";
        assert_eq!(names(text), Vec::<String>::new());
        assert_eq!(without(text.as_bytes(), &[]), text.as_bytes());
    }

    #[test]
    fn what_is_taken_out_leaves_the_rest_as_it_was() {
        let text = b"[core]\n\tbare = false\n\tfsmonitor = /x\n[user]\n\tname = t\n";
        let hostile = hostile(text).unwrap();
        let kept = without(text, &hostile);
        assert_eq!(kept, b"[core]\n\tbare = false\n\t\n[user]\n\tname = t\n");
        assert_eq!(super::hostile(&kept).unwrap(), []);
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        for text in ["[core", "[core]\nfsmonitor", "[core]\n=x", "[core]\na = \"x\n", "[core]\na = \\q"] {
            let parsed = parse(text.as_bytes());
            assert!(parsed.is_err() || text.ends_with("fsmonitor"), "{text:?}: {parsed:?}");
        }
    }

    proptest! {
        #[test]
        fn taking_hostile_entries_out_leaves_none(text in "[\\[\\]a-z=!/\"\\\\#; \n.]{0,80}", key in "fsmonitor|hookspath|pager") {
            let text = format!("[core]\n{key} = /x\n{text}");
            if let Ok(found) = hostile(text.as_bytes()) {
                prop_assert!(!found.is_empty());
                let kept = without(text.as_bytes(), &found);
                let rest = hostile(&kept);
                prop_assert!(rest.is_ok_and(|rest| rest.is_empty()), "{kept:?}");
            }
        }
    }
}
