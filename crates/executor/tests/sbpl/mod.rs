//! Just enough of the language of macOS sandbox profiles to read ours back and to ask it questions.
//!
//! What is not known here is an error or does not match: a profile that uses more must teach it to this reader first.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use cmdgate_executor::sandbox::seatbelt::Profile;

/// Operations that our profiles may name.
const OPERATIONS: &[&str] = &[
    "default",
    "process-exec",
    "process-fork",
    "signal",
    "process-info*",
    "file-read*",
    "file-read-data",
    "file-read-metadata",
    "file-map-executable",
    "file-write*",
    "file-write-data",
    "file-write-unlink",
    "file-write-setugid",
    "file-link",
    "file-ioctl",
    "pseudo-tty",
    "sysctl-read",
    "sysctl-write",
    "ipc-posix-sem",
    "ipc-posix-shm-read*",
    "mach-host*",
    "mach-lookup",
    "user-preference-read",
    "system-socket",
    "network-bind",
    "network-inbound",
    "network-outbound",
];

/// Filters that our profiles may name.
const FILTERS: &[&str] = &[
    "subpath",
    "literal",
    "regex",
    "require-all",
    "require-any",
    "require-not",
    "vnode-type",
    "extension",
    "target",
    "sysctl-name",
    "sysctl-name-prefix",
    "ipc-posix-name-prefix",
    "global-name",
    "socket-domain",
    "socket-protocol",
    "local",
    "remote",
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node {
    List(Vec<Node>),
    Symbol(String),
    Text(String),
}

impl Node {
    pub(crate) fn list(&self) -> &[Node] {
        match self {
            Node::List(nodes) => nodes,
            Node::Symbol(_) | Node::Text(_) => panic!("a list was expected in place of {self:?}"),
        }
    }

    pub(crate) fn symbol(&self) -> &str {
        match self {
            Node::Symbol(name) => name,
            Node::List(_) | Node::Text(_) => panic!("a word was expected in place of {self:?}"),
        }
    }

    pub(crate) fn text(&self) -> &str {
        match self {
            Node::Text(text) => text,
            Node::List(_) | Node::Symbol(_) => panic!("a text was expected in place of {self:?}"),
        }
    }
}

/// Reads a whole profile: balanced lists of words and texts, with comments.
pub(crate) fn parse(text: &str) -> Result<Vec<Node>, String> {
    let mut open: Vec<Vec<Node>> = vec![Vec::new()];
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        let node = match character {
            '(' => {
                open.push(Vec::new());
                continue;
            }
            ')' => {
                let done = open.pop().unwrap();
                if open.is_empty() {
                    return Err("a parenthesis is closed that was not opened".to_owned());
                }
                Node::List(done)
            }
            ';' => {
                while rest.next_if(|&next| next != '\n').is_some() {}
                continue;
            }
            '"' => {
                let mut text = String::new();
                loop {
                    match rest.next().ok_or("a text is not closed")? {
                        '"' => break,
                        '\\' => match rest.next().ok_or("a text is not closed")? {
                            escaped @ ('"' | '\\') => text.push(escaped),
                            other => return Err(format!("the escape \\{other} is not known")),
                        },
                        other => text.push(other),
                    }
                }
                Node::Text(text)
            }
            blank if blank.is_whitespace() => continue,
            other if other.is_ascii_alphanumeric() || "-*".contains(other) => {
                let mut word = String::from(other);
                while let Some(next) =
                    rest.next_if(|next| next.is_ascii_alphanumeric() || "-*_".contains(*next))
                {
                    word.push(next);
                }
                Node::Symbol(word)
            }
            other => return Err(format!("the character {other:?} is out of place")),
        };
        open.last_mut().unwrap().push(node);
    }
    if open.len() != 1 {
        return Err("a parenthesis is not closed".to_owned());
    }
    Ok(open.pop().unwrap())
}

struct Rule {
    allow: bool,
    operations: Vec<String>,
    filters: Vec<Node>,
}

/// A profile that was read back together with its parameters.
pub(crate) struct Evaluator {
    rules: Vec<Rule>,
    parameters: Vec<(String, OsString)>,
    expressions: RefCell<BTreeMap<String, regex::bytes::Regex>>,
}

impl Evaluator {
    /// Reads a profile and checks its form: only known words, and exactly the parameters that are given.
    pub(crate) fn new(profile: &Profile) -> Result<Self, String> {
        let nodes = parse(&profile.text)?;
        let mut rules = Vec::new();
        let mut used = BTreeSet::new();
        for (index, node) in nodes.iter().enumerate() {
            let parts = node.list();
            let head = parts[0].symbol();
            match (index, head) {
                (0, "version") => assert_eq!(parts[1].symbol(), "1"),
                (0, _) => return Err("the version does not come first".to_owned()),
                (_, "allow" | "deny") => {
                    let mut operations = Vec::new();
                    let mut filters = Vec::new();
                    for part in &parts[1..] {
                        match part {
                            Node::Symbol(name) if filters.is_empty() => {
                                if !OPERATIONS.contains(&name.as_str()) {
                                    return Err(format!("the operation {name} is not known"));
                                }
                                operations.push(name.clone());
                            }
                            Node::List(_) => {
                                check_filter(part, &mut used)?;
                                filters.push(part.clone());
                            }
                            Node::Symbol(_) | Node::Text(_) => {
                                return Err(format!("{part:?} is out of place"));
                            }
                        }
                    }
                    if operations.is_empty() {
                        return Err("a rule names no operation".to_owned());
                    }
                    rules.push(Rule { allow: head == "allow", operations, filters });
                }
                (_, other) => return Err(format!("{other} is no rule")),
            }
        }
        let given: BTreeSet<String> = profile.parameters.iter().map(|(name, _)| name.clone()).collect();
        if given != used || given.len() != profile.parameters.len() {
            return Err(format!("parameters given {given:?} and used {used:?} differ"));
        }
        Ok(Self { rules, parameters: profile.parameters.clone(), expressions: RefCell::default() })
    }

    /// Would the kernel let this operation on a path through? The last rule that matches decides.
    pub(crate) fn allows(&self, operation: &str, path: &Path) -> bool {
        let mut allowed = false;
        for rule in &self.rules {
            let named = rule.operations.iter().any(|pattern| covers(pattern, operation));
            if named
                && (rule.filters.is_empty() || rule.filters.iter().any(|filter| self.matches(filter, path)))
            {
                allowed = rule.allow;
            }
        }
        allowed
    }

    /// Rules that name this operation, as text.
    #[allow(dead_code, reason = "one of the two test programs asks")]
    pub(crate) fn rules_for(&self, operation: &str) -> Vec<String> {
        self.rules
            .iter()
            .filter(|rule| {
                rule.operations.iter().any(|pattern| pattern != "default" && covers(pattern, operation))
            })
            .map(|rule| format!("{} {:?}", if rule.allow { "allow" } else { "deny" }, rule.filters))
            .collect()
    }

    fn matches(&self, filter: &Node, path: &Path) -> bool {
        let parts = filter.list();
        let value = || self.value(&parts[1]);
        let bytes = path.as_os_str().as_bytes();
        match parts[0].symbol() {
            "literal" => bytes == value(),
            "subpath" => {
                let tree = value();
                bytes
                    .strip_prefix(tree.as_slice())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/") || tree == b"/")
            }
            "regex" => self
                .expressions
                .borrow_mut()
                .entry(parts[1].text().to_owned())
                .or_insert_with_key(|text| regex::bytes::Regex::new(&format!("(?-u){text}")).unwrap())
                .is_match(bytes),
            "require-all" => parts[1..].iter().all(|part| self.matches(part, path)),
            "require-any" => parts[1..].iter().any(|part| self.matches(part, path)),
            "require-not" => !self.matches(&parts[1], path),
            // Of the devices that are asked about, all are what the profile expects; nobody was handed a terminal.
            "vnode-type" => parts[1].symbol() == "CHARACTER-DEVICE",
            _ => false,
        }
    }

    fn value(&self, node: &Node) -> Vec<u8> {
        match node {
            Node::Text(text) => text.clone().into_bytes(),
            Node::List(parts) => {
                let name = parts[1].text();
                let (_, value) = self.parameters.iter().find(|(known, _)| known == name).unwrap();
                value.as_bytes().to_vec()
            }
            Node::Symbol(_) => panic!("a text or parameter was expected in place of {node:?}"),
        }
    }
}

fn covers(pattern: &str, operation: &str) -> bool {
    pattern == "default"
        || pattern == operation
        || pattern.strip_suffix('*').is_some_and(|start| operation.starts_with(start))
}

fn check_filter(node: &Node, used: &mut BTreeSet<String>) -> Result<(), String> {
    let parts = node.list();
    let name = parts[0].symbol();
    if name == "param" {
        used.insert(parts[1].text().to_owned());
        return Ok(());
    }
    if !FILTERS.contains(&name) && !["unix-socket", "ip"].contains(&name) {
        return Err(format!("the filter {name} is not known"));
    }
    for part in &parts[1..] {
        match part {
            Node::List(_) => check_filter(part, used)?,
            Node::Symbol(_) | Node::Text(_) => {}
        }
    }
    Ok(())
}
