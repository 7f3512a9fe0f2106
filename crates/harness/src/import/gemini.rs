//! Gemini CLI: `[[rule]]` of its policy files (geminicli.com/docs/reference/policy-engine). The rule with the highest
//! priority counts; files of an administrator come before those of a user.
//!
//! A `commandPrefix` is bound at a word. A `commandRegex` has to match at the beginning of the command and goes on as far
//! as it likes. Every part of a line is judged, and a redirection is asked about unless the rule says otherwise.

use super::ordered::{Ranked, carry};
use super::text::{Piece, Wild};
use super::{Draft, ImportError, Place, SourceFile};
use cmdgate_policy::Effect;
use std::ops::Range;
use std::path::Path;
use toml_edit::{Document, Item, Table, Value};

const ASKS: &str = "Gemini CLI asks about loops, groups and redirections, and does not look through programs that run others";
/// What 0.61.0 was seen to ask about, with a rule that allows everything inside.
const OTHER: &[&str] =
    &["assignment", "command", "control", "group", "ionice", "negation", "nice", "stdbuf", "time", "timeout"];
/// And unless the rule allows it.
const REDIRECT: &[&str] = &[
    "assignment",
    "command",
    "control",
    "group",
    "ionice",
    "negation",
    "nice",
    "redirect",
    "stdbuf",
    "time",
    "timeout",
];
/// What 0.61.0 calls dangerous: it asks about these where a rule that says nothing about the command allows them. It
/// looks at the first command of a line only, and at fewer spellings.
const DANGEROUS: &[&str] = &[
    "rm -f **",
    "rm -rf **",
    "rm -fr **",
    "ln *-*s*",
    "sudo **",
    "*find*-exec*",
    "*find*-ok*",
    "*find*-delete*",
    "*find*-fls*",
    "*find*-fprint*",
    "*rg *--pre*",
    "*rg *--hostname-bin*",
    "*rg *-z*",
    "*rg *--search-zip*",
    "git* -c*",
    "git* --config-env*",
    "git* --output*",
    "git* --ext-diff*",
    "git* --textconv*",
    "git* --exec*",
    "git* --paginate*",
    "git* branch **",
    "base64* -o*",
    "base64* --output*",
];
const ASKS_DANGEROUS: &str = "Gemini CLI asks before `rm -rf`, `find -exec`, `git -c` and the like; here, wherever they stand in a line";
/// The modes that it knows; with another one, it reads nothing of the file.
const MODES: &[&str] = &["default", "autoEdit", "yolo", "plan"];
/// The name of the shell tool.
const SHELL: &str = "run_shell_command";
/// More alternatives than this in one expression are not written out.
const MOST_ALTERNATIVES: usize = 32;

pub(super) fn read(files: &[SourceFile], draft: &mut Draft) -> Result<(), ImportError> {
    let mut rules = Vec::new();
    let mut folders: Vec<&Path> = Vec::new();
    for file in files {
        let document = Document::parse(file.text.as_str()).map_err(|error| {
            ImportError::new(file, line(file, error.span()), one_line_of(error.message()))
        })?;
        let administrator = file.name.starts_with("/etc/") || file.name.contains("ProgramData");
        // Which folder is the user's, a project's or an extension's is not known, and so neither which comes first.
        let parent = Path::new(&file.name).parent().unwrap_or(Path::new(""));
        let folder = if administrator {
            0
        } else if let Some(known) = folders.iter().position(|known| *known == parent) {
            known + 1
        } else {
            folders.push(parent);
            folders.len()
        };
        let origin = Origin { file, folder, is_extension: file.name.contains("/extensions/") };
        for (key, item) in document.iter() {
            let at = line(file, item.span());
            match (key, item) {
                ("rule", Item::ArrayOfTables(tables)) => {
                    for table in tables {
                        rule(&origin, table, &mut rules, draft)?;
                    }
                }
                ("rule", _) => return Err(ImportError::new(file, at, "write rules as `[[rule]]`")),
                (other, _) => draft.leave(&Place::new(file, at, other), "it is no rule about commands")?,
            }
        }
    }
    carry(&rules, ASKS, draft)?;
    if folders.len() > 1 {
        draft.imported.remarks.push(
            "which of the folders comes first is not known, so nothing in one overrides what another denies or asks about",
        );
    }
    Ok(())
}

/// Where rules come from.
struct Origin<'f> {
    file: &'f SourceFile,
    /// 0 is the administrator's.
    folder: usize,
    is_extension: bool,
}

fn one_line_of(message: &str) -> String {
    super::one_line(message.trim())
}

fn line(file: &SourceFile, span: Option<Range<usize>>) -> usize {
    let before = span.and_then(|span| file.text.get(..span.start)).unwrap_or_default();
    before.matches('\n').count() + 1
}

/// A table and the file it stands in, for what is wrong with its values.
struct Entry<'f, 't> {
    file: &'f SourceFile,
    table: &'t Table,
}

impl Entry<'_, '_> {
    fn wrong(&self, key: &str, what: &str) -> ImportError {
        let span = self.table.get(key).and_then(Item::span).or_else(|| self.table.span());
        ImportError::new(self.file, line(self.file, span), format!("`{key}` {what}"))
    }

    fn text(&self, key: &str) -> Result<Option<&str>, ImportError> {
        match self.table.get(key) {
            None => Ok(None),
            Some(item) => item.as_str().map(Some).ok_or_else(|| self.wrong(key, "is no text")),
        }
    }

    /// One text, or a list of them.
    fn texts(&self, key: &str) -> Result<Option<Vec<&str>>, ImportError> {
        let Some(item) = self.table.get(key) else { return Ok(None) };
        match item {
            Item::Value(Value::String(text)) => Ok(Some(vec![text.value()])),
            Item::Value(Value::Array(list)) => {
                let texts: Option<Vec<&str>> = list.iter().map(Value::as_str).collect();
                let texts = texts.ok_or_else(|| self.wrong(key, "is no list of texts"))?;
                if texts.is_empty() { Err(self.wrong(key, "is an empty list")) } else { Ok(Some(texts)) }
            }
            Item::Value(_) | Item::None | Item::Table(_) | Item::ArrayOfTables(_) => {
                Err(self.wrong(key, "is neither a text nor a list of texts"))
            }
        }
    }

    fn flag(&self, key: &str) -> Result<Option<bool>, ImportError> {
        match self.table.get(key) {
            None => Ok(None),
            Some(item) => {
                item.as_bool().map(Some).ok_or_else(|| self.wrong(key, "is neither true nor false"))
            }
        }
    }
}

const KNOWN: &[&str] = &[
    "toolName",
    "mcpName",
    "subagent",
    "toolAnnotations",
    "argsPattern",
    "commandPrefix",
    "commandRegex",
    "decision",
    "priority",
    "denyMessage",
    "modes",
    "interactive",
    "allowRedirection",
    "name",
    "description",
];

fn rule<'f>(
    origin: &Origin<'f>,
    table: &Table,
    rules: &mut Vec<Ranked<'f>>,
    draft: &mut Draft,
) -> Result<(), ImportError> {
    let file = origin.file;
    let entry = Entry { file, table };
    let (decision, effect) = match entry.text("decision")? {
        Some("allow") => ("allow", Effect::Allow),
        Some("ask_user") => ("ask_user", Effect::Ask),
        Some("deny") => ("deny", Effect::Deny),
        Some(_) => return Err(entry.wrong("decision", "is not one of allow, ask_user, deny")),
        None => return Err(entry.wrong("decision", "is missing")),
    };
    let priority = match table.get("priority").map(|item| (item.as_integer(), item.as_float())) {
        None => return Err(entry.wrong("priority", "is missing")),
        Some((Some(priority @ 0..=999), _)) => u64::try_from(priority).unwrap_or_default(),
        Some(_) => return Err(entry.wrong("priority", "is not a whole number from 0 to 999")),
    };
    // An empty text is none; in a list it is one, for what begins with a blank or a quote.
    let is_list = table.get("commandPrefix").is_some_and(Item::is_array);
    let prefixes = entry.texts("commandPrefix")?.filter(|texts| is_list || texts.as_slice() != [""]);
    let regex = entry.text("commandRegex")?.filter(|text| !text.is_empty());
    let args = entry.text("argsPattern")?.filter(|text| !text.is_empty());
    let Some(tools) = entry.texts("toolName")? else {
        return Err(entry.wrong("toolName", "is missing"));
    };
    let modes = entry.texts("modes")?;
    if modes.as_ref().is_some_and(|modes| modes.iter().any(|mode| !MODES.contains(mode))) {
        return Err(entry.wrong("modes", "names a mode that is none of default, autoEdit, yolo, plan"));
    }
    let interactive = entry.flag("interactive")?;
    let redirection = entry.flag("allowRedirection")?.unwrap_or(false);
    let message = entry.text("denyMessage")?;
    if prefixes.is_some() && regex.is_some() {
        return Err(entry.wrong("commandRegex", "stands beside `commandPrefix`; keep one of them"));
    }
    let what = prefixes
        .as_ref()
        .map(|prefixes| prefixes.join(", "))
        .or_else(|| regex.or(args).map(ToOwned::to_owned));
    let place = Place::new(
        file,
        line(file, table.span()),
        format!("{decision} {} ({priority})", what.unwrap_or_default()),
    );
    // A `*` inside a name is a wildcard for tools of MCP servers only.
    let about_shell = tools.iter().any(|tool| matches!(*tool, SHELL | "*"));
    if !about_shell || table.contains_key("mcpName") {
        return draft.leave(&place, "it is about another tool than commands");
    }
    if origin.is_extension && effect == Effect::Allow {
        return draft.leave(&place, "Gemini CLI lets no extension allow anything");
    }
    let narrowed = if table.contains_key("subagent") || table.contains_key("toolAnnotations") {
        Some("it is for some agents or tools only, which are not told apart here")
    } else if modes.is_some_and(|modes| !modes.contains(&"default")) {
        Some("it is not for the mode `default`, and modes are not told apart here")
    } else if interactive.is_some() {
        Some("it depends on whether a person is there")
    } else if table.iter().any(|(key, _)| !KNOWN.contains(&key)) {
        Some("it has a condition that is not known here")
    } else {
        None
    };
    if let (Some(why), Effect::Allow) = (narrowed, effect) {
        return draft.leave(&place, why);
    }
    let mut stricter = narrowed;
    let mut except: &[&str] = &[];
    let wilds = if let Some(prefixes) = prefixes {
        prefixes.into_iter().map(prefix).collect()
    } else if let Some(regex) = regex {
        let expression = Expression::read(regex);
        if !expression.exact {
            if effect == Effect::Allow {
                return draft.leave(&place, "its expression cannot be written as a pattern");
            }
            stricter = Some("what its expression says is written as a pattern for more");
        }
        expression.wilds
    } else if args.is_some() {
        if effect == Effect::Allow {
            return draft.leave(&place, "its expression is about the arguments as JSON");
        }
        stricter = Some("its expression is about the arguments as JSON: it holds for every command");
        vec![Wild::parse("*", '*', None)]
    } else {
        if effect == Effect::Allow {
            (except, stricter) = (DANGEROUS, Some(ASKS_DANGEROUS));
        }
        vec![Wild::parse("*", '*', None)]
    };
    let tier: u64 = if origin.folder == 0 { 5 } else { 4 };
    rules.push(Ranked {
        place,
        effect,
        wilds,
        rank: tier * 1000 + priority,
        reason: message.map(ToOwned::to_owned),
        folder: origin.folder,
        except,
        spares_only: false,
        asks_with: if redirection { OTHER } else { REDIRECT },
        stricter,
    });
    Ok(())
}

/// A `commandPrefix`: behind it stands a blank, a quote or the end. One that ends in a blank wants another character.
fn prefix(text: &str) -> Wild {
    if !text.is_empty() && text.trim() == text {
        return Wild::prefix(text);
    }
    let mut wild = Wild { pieces: vec![Piece::One, Piece::Any], bound: false };
    if !text.is_empty() {
        wild.pieces.insert(0, Piece::Text(text.to_owned()));
    }
    wild
}

/// A regular expression that matches at the beginning of a text, as patterns for the whole.
struct Expression {
    wilds: Vec<Wild>,
    exact: bool,
}

impl Expression {
    /// Reads plain characters, `.`, `.*`, `.+` and groups of plain alternatives. From the first thing on that is more
    /// than that, anything may follow.
    fn read(text: &str) -> Self {
        let mut found = Self { wilds: vec![Wild::default()], exact: true };
        let mut rest = text;
        if let Some(after) = rest.strip_prefix('^') {
            // It never matches there: a command does not begin where the arguments do.
            found.exact = false;
            rest = after;
        }
        if has_bare_bar(rest) {
            // What an alternative without a group ends before is a matter of the whole expression.
            return Self { wilds: vec![Wild::parse("*", '*', None)], exact: false };
        }
        let mut characters = rest.chars().peekable();
        while let Some(c) = characters.next() {
            let mut piece = match c {
                '\\' => match characters.next() {
                    Some(escaped) if escaped.is_ascii_punctuation() || escaped == ' ' => {
                        Piece::Text(escaped.to_string())
                    }
                    Some('b') => {
                        found.exact = false;
                        continue;
                    }
                    Some(_) | None => Piece::Any,
                },
                '.' => Piece::One,
                '(' => {
                    let mut group = String::new();
                    let closed = loop {
                        match characters.next() {
                            None => break false,
                            Some(')') => break true,
                            Some(c) => group.push(c),
                        }
                    };
                    let group = group.strip_prefix("?:").unwrap_or(&group).to_owned();
                    let plain =
                        |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ' ' | '/' | ':' | '|');
                    let choices: Vec<&str> = group.split('|').collect();
                    let quantified = matches!(characters.peek(), Some('*' | '+' | '?' | '{'));
                    if closed
                        && group.chars().all(plain)
                        && !quantified
                        && found.wilds.len() * choices.len() <= MOST_ALTERNATIVES
                    {
                        let before = std::mem::take(&mut found.wilds);
                        for wild in &before {
                            for choice in &choices {
                                let mut wild = wild.clone();
                                push(&mut wild, Piece::Text((*choice).to_owned()));
                                found.wilds.push(wild);
                            }
                        }
                        continue;
                    }
                    return found.cut();
                }
                '[' | ')' | '{' | '}' | '|' | '$' | '^' | '*' | '+' | '?' => return found.cut(),
                c => Piece::Text(c.to_string()),
            };
            match characters.peek() {
                Some('*') if piece == Piece::One => {
                    characters.next();
                    piece = Piece::Any;
                }
                Some('*' | '?' | '{' | '+') => return found.cut(),
                Some(_) | None => {}
            }
            if piece == Piece::Any && c == '\\' {
                return found.cut();
            }
            for wild in &mut found.wilds {
                push(wild, piece.clone());
            }
        }
        for wild in &mut found.wilds {
            push(wild, Piece::Any);
        }
        found
    }

    fn cut(mut self) -> Self {
        self.exact = false;
        for wild in &mut self.wilds {
            push(wild, Piece::Any);
        }
        self
    }
}

fn has_bare_bar(text: &str) -> bool {
    let (mut depth, mut escaped) = (0_usize, false);
    text.chars().any(|c| {
        let was = escaped;
        escaped = c == '\\' && !was;
        match c {
            '(' if !was => depth += 1,
            ')' if !was => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == '|' && !was && depth == 0
    })
}

fn push(wild: &mut Wild, piece: Piece) {
    match (wild.pieces.last_mut(), piece) {
        (Some(Piece::Text(before)), Piece::Text(more)) => before.push_str(&more),
        (Some(Piece::Any), Piece::Any) => {}
        (_, piece) => wild.pieces.push(piece),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_become_patterns_for_at_least_what_they_match() {
        for (regex, expected, exact) in [
            ("git status", &["git status*"][..], true),
            ("git (status|log)", &["git status*", "git log*"], true),
            ("npm run .*test", &["npm run *test*"], true),
            (r"node \.\/x", &["node ./x*"], true),
            ("^git", &["git*"], false),
            ("git st?", &["git s*"], false),
            (r"git\s+push", &["git*"], false),
            ("rm|mv", &["*"], false),
            ("[a-z]+", &["*"], false),
            ("a(b", &["a*"], false),
            ("git push$", &["git push*"], false),
        ] {
            let read = Expression::read(regex);
            let patterns: Vec<String> =
                read.wilds.iter().flat_map(|wild| wild.for_tightening().patterns).collect();
            assert_eq!(
                (patterns.iter().map(String::as_str).collect::<Vec<_>>().as_slice(), read.exact),
                (expected, exact),
                "{regex}"
            );
        }
    }
}
